"""The tables of the document in LaTeX (booktabs), to be put into a paper with \\input.

Numbers are columns `r`, short texts `l`, long texts paragraphs that share the rest of the line. A table that is wider
than a line, or has too many columns, is split into parts. Widths are counted in characters. Nothing is scaled, so all
letters have one size.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from annotate.report.cells import Shown, grid
from annotate.report.model import Block, Cases, Disagreement, Document, Facts, Figure, Paragraph, Table
from judge.console import visible

LINE = 75
"""The characters of a line of an article in \\small, approximately."""
MOST_COLUMNS = 8
"""The most columns of a table or of a part of it."""
SHORT = 24
"""A longer text becomes a paragraph."""
GAP = 2
"""The width of the gap between two columns, in characters."""
LONG_WORD = 14
"""A longer word may be broken."""
_BREAKS = "/_-.:,;|=&?@·"


@dataclass(frozen=True)
class TabularLayout:
    """The columns of one table or of one part of it.

    `indices` are its columns, `spec` the argument of \\begin{tabular}, `room` the characters of a line of a paragraph.
    `stacked`: intervals are below their values.
    """

    indices: tuple[int, ...]
    spec: str
    room: int
    stacked: bool


def pieces(word: str) -> list[str]:
    """Split a long word where it may be broken: after its separators, and every LONG_WORD characters without one."""
    # Identifiers and URLs have no spaces, and TeX breaks a line only at spaces and hyphens that it knows.
    if len(word) <= LONG_WORD:
        return [word]
    parts = [""]
    for c in word:
        if len(parts[-1]) >= LONG_WORD or (parts[-1] and parts[-1][-1] in _BREAKS and c not in _BREAKS):
            parts.append("")
        parts[-1] += c
    return parts


def lines(head: str) -> list[str]:
    """Break the head of a column of numbers into lines about as wide as the numbers."""
    return textwrap.wrap(head, LONG_WORD, break_long_words=False) or [""]


def layouts(
    heads: Sequence[str], numbers: Sequence[bool], rows: Sequence[Sequence[Shown]], stacked: bool
) -> list[TabularLayout]:
    """Return one layout for each part of a table. The first column, which names the rows, is in every part.

    `stacked` puts intervals below their values. They go there in any case if the table is too wide otherwise.
    """
    wide = [_wide(head, numbers[i], [row[i] for row in rows], stacked) for i, head in enumerate(heads)]
    if not stacked and sum(min(n, SHORT) for n in wide) > LINE:
        return layouts(heads, numbers, rows, True)
    # A paragraph can be as narrow as a short text; a number cannot be broken.
    least = [n if numbers[i] else min(n, SHORT) for i, n in enumerate(wide)]
    first, *rest = range(len(heads))
    parts = [[first]]
    for i in rest:
        used = sum(least[j] for j in parts[-1])
        if len(parts[-1]) > 1 and (used + least[i] > LINE or len(parts[-1]) == MOST_COLUMNS):
            parts.append([first])
        parts[-1].append(i)
    return [_layout(part, numbers, wide, stacked) for part in parts]


def _wide(head: str, numeric: bool, cells: Sequence[Shown], stacked: bool) -> int:
    """Return the width of a column in characters, with the gap before the next one."""
    texts = [
        part for c in cells for part in ((c.text + c.marks, c.interval) if stacked else (c.flat + c.marks,))
    ]
    return max(map(len, [*(lines(head) if numeric else [head]), *texts])) + GAP


def _layout(
    part: Sequence[int], numbers: Sequence[bool], wide: Sequence[int], stacked: bool
) -> TabularLayout:
    long = [i for i in part if not numbers[i] and wide[i] > SHORT]
    rest = LINE - sum(wide[i] for i in part if i not in long)
    room = max(rest // max(1, len(long)), SHORT)
    paragraph = rf">{{\raggedright\arraybackslash}}p{{{(room - GAP) / LINE:.2f}\linewidth}}"
    spec = "".join(paragraph if i in long else "r" if numbers[i] else "l" for i in part)
    return TabularLayout(tuple(part), f"@{{}}{spec}@{{}}", room, stacked)


HEAD = r"""% Tables of an adjudge report, for \input. The preamble needs:
%   \usepackage{booktabs,longtable,array}
% Texts may contain any Unicode: compile with lualatex or xelatex and a font that has it
% (pdflatex does for Latin text)."""
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # \textquotedbl is not in pdflatex's default encoding; its slot 34 holds a double quote in every one.
    '"': r"\symbol{34}",
    "'": r"{\textquotesingle}",
    "`": r"\textasciigrave{}",
    # TeX makes a dash of two hyphens, and an optional argument of a bracket behind the end of a row.
    "-": r"{-}",
    "[": r"{[}",
    "]": r"{]}",
    "·": r"\textperiodcentered{}",
    "…": r"\ldots{}",
}
_PATTERN = re.compile("|".join(map(re.escape, _SPECIAL)))
# A float cannot be broken at the end of a page, so longer tables are several.
LINES_OF_A_FLOAT = 40


def render(document: Document) -> str:
    """Return the verdicts as paragraphs, then the tables, figures and notes of every section."""
    return "\n".join(_lines(document)) + "\n"


def short(document: Document) -> str:
    """Return only the blocks of the document, for a paper."""
    lines = [line for s in document.sections for b in s.blocks for line in _block(b)]
    return "\n".join([HEAD, *lines, *([text(document.no_ruling)] if document.no_ruling else [])]) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield HEAD
    yield f"% {' '.join(visible(document.title).split())}"
    # With long names, TeX cannot fill lines well: loose lines are better than lines in the margin.
    yield r"\begingroup\sloppy"
    yield from _facts(Facts("about", document.title, document.about))
    for ruling in document.rulings:
        parts = [ruling.sentence, ruling.because + ".", *ruling.warnings, ruling.rule, ruling.like]
        yield from ("", r"\paragraph{Verdict}", " ".join(text(part) for part in parts))
    if document.no_ruling:
        yield from ("", r"\paragraph{Verdict}", text(document.no_ruling))
    for section in document.sections:
        if section.blocks:
            yield from ("", rf"\paragraph{{{text(section.title)}}}")
            keys = (b.table.key if isinstance(b, Figure) else getattr(b, "key", "") for b in section.blocks)
            refs = [rf"\ref{{tab:{_label(key)}}}" for key in keys if key]
            if refs:
                yield f"({'Tables' if len(refs) > 1 else 'Table'} {', '.join(refs)}.)"
            for block in section.blocks:
                yield from _block(block)
    without_content = [s for s in document.sections if not s.blocks]
    if without_content:
        yield from ("", r"\paragraph{What this report cannot say}")
        yield from (f"{text(s.title)}: {text(s.absent)}." for s in without_content)
    yield from ("", r"\paragraph{How to read the numbers}")
    yield from map(text, document.reading)
    yield r"\par\endgroup"


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Paragraph):
        if block.style == "quote":
            yield from (r"\begin{quote}", *_paragraphs(block.text), r"\end{quote}")
        else:
            yield from (text(block.text), "")
    elif isinstance(block, Facts):
        yield from _facts(block)
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Figure):
        yield from (text(block.text), "")
        yield from _table(block.table, block.caption)
    elif isinstance(block, Cases):
        yield from _cases(block)


def _paragraphs(value: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", visible(value).strip()):
        # A line that starts an item starts a line here too.
        for line in re.split(r"\n(?=[-*] )", block):
            yield from (text(line), "")


def _facts(facts: Facts) -> Iterator[str]:
    rows = [[text(name), text(value)] for name, value in facts.rows]
    spec = _two(0.25, 0.7)
    yield from _long(facts.key, facts.caption, spec, "small", [[row] for row in rows])


def _cases(cases: Cases) -> Iterator[str]:
    groups = [list(_case(number, case)) for number, case in enumerate(cases.rows, 1)]
    yield from _long(cases.key, cases.caption, _two(0.22, 0.74), "footnotesize", groups)


def _case(number: int, case: Disagreement) -> Iterator[list[str]]:
    yield [rf"\textbf{{{number}}} unit", text(case.unit_id)]
    labels = (
        rf"{text(s.who)}: \textbf{{{text(s.label)}}}" + (f" ({text(s.how_sure)})" if s.how_sure else "")
        for s in case.labels
    )
    yield ["labels", "; ".join(labels)]
    for name, value in case.shown:
        yield [text(name), text(value)]
    for s in case.labels:
        if s.rationale:
            yield [f"{text(s.who)} says why", text(s.rationale)]


def _two(first: float, second: float) -> str:
    ragged = r">{\raggedright\arraybackslash}"
    return rf"@{{}}{ragged}p{{{first}\linewidth}}{ragged}p{{{second}\linewidth}}@{{}}"


def _table(table: Table, caption: str = "") -> Iterator[str]:
    cells = grid(table)
    shown = cells.rows[: table.shown()]
    notes = [text(note) for note in table.left_out() + list(table.notes)]
    notes += [rf"\textsuperscript{{{mark}}} {text(remark)}" for mark, remark in cells.remarks]
    parts = [
        (layout, page)
        for layout in layouts(cells.heads, cells.numbers, shown, cells.dense)
        for page in _pages(shown, layout)
    ]
    for number, (layout, page) in enumerate(parts, 1):
        title, key = caption or table.caption, table.key
        if len(parts) > 1:
            title = f"{title}, part {number} of {len(parts)}"
            key = key if number == 1 else f"{key}-{number}"
        heads = [_head(cells.heads[i], cells.numbers[i]) for i in layout.indices]
        rows = [[_cell(row[i], layout.stacked) for i in layout.indices] for row in page]
        # The notes belong to all parts, so they are below the last one.
        yield from _float(key, title, layout, heads, rows, notes if number == len(parts) else [])


def _pages(rows: Sequence[Sequence[Shown]], layout: TabularLayout) -> Iterator[Sequence[Sequence[Shown]]]:
    """Yield the rows in groups that fit on a page."""
    start, used = 0, 0
    for n, row in enumerate(rows):
        # A row is as high as its longest paragraph.
        height = max(1 + len(row[i].flat) // layout.room for i in layout.indices)
        if used + height > LINES_OF_A_FLOAT and n > start:
            yield rows[start:n]
            start, used = n, 0
        used += height
    yield rows[start:]


def _head(head: str, numeric: bool) -> str:
    return _stack("b", map(text, lines(head))) if numeric else text(head)


def _cell(cell: Shown, stacked: bool) -> str:
    marks = rf"\textsuperscript{{{cell.marks}}}" if cell.marks else ""
    if stacked and cell.interval:
        return _stack("t", [text(cell.text) + marks, rf"\scriptsize {text(cell.interval)}"])
    return text(cell.flat) + marks


def _stack(place: str, stacked: Iterable[str]) -> str:
    """Stack the lines of a cell that TeX would not break. `place`: the top (t) or bottom (b) line is on the row's baseline."""
    return rf"\begin{{tabular}}[{place}]{{@{{}}r@{{}}}}" + r"\\".join(stacked) + r"\end{tabular}"


def _float(
    key: str,
    caption: str,
    layout: TabularLayout,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
) -> Iterator[str]:
    yield from ("", r"\begin{table}[htbp]", r"\centering\small", r"\setlength{\tabcolsep}{4pt}")
    yield rf"\caption{{{text(caption)}}}\label{{tab:{_label(key)}}}"
    yield r"\par\smallskip"
    yield rf"\begin{{tabular}}{{{layout.spec}}}"
    yield from (r"\toprule", " & ".join(heads) + r" \\", r"\midrule")
    yield from (" & ".join(row) + r" \\" for row in rows)
    yield from (r"\bottomrule", r"\end{tabular}")
    if notes:
        yield r"\par\raggedright"
        yield from (rf"\par\smallskip {note}" for note in notes)
    yield from (r"\end{table}", "")


def _long(
    key: str, caption: str, spec: str, size: str, groups: Sequence[Sequence[Sequence[str]]]
) -> Iterator[str]:
    """Yield a table of paragraphs that continues over pages, with space between the groups of rows."""
    yield from ("", rf"{{\{size}", r"\setlength{\tabcolsep}{4pt}", rf"\begin{{longtable}}{{{spec}}}")
    yield rf"\caption{{{text(caption)}}}\label{{tab:{_label(key)}}}\\"
    # The second pair is for the pages after the first, which need no caption.
    yield from (r"\toprule", r"\endfirsthead", r"\toprule", r"\endhead")
    for i, group in enumerate(groups):
        if i and len(group) > 1:
            yield r"\addlinespace"
        yield from (" & ".join(row) + r" \\" for row in group)
    yield from (r"\bottomrule", r"\end{longtable}", "}", "")


def text(value: str) -> str:
    """Return a text as one line in which nothing is a command, and long words may be broken."""
    return " ".join(r"\allowbreak{}".join(map(_escaped, pieces(word))) for word in visible(value).split())


def _escaped(piece: str) -> str:
    return _PATTERN.sub(lambda m: _SPECIAL[m[0]], piece)


def _label(key: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")
