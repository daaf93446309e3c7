"""The tables of the document in LaTeX (booktabs), to be put into a paper with \\input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from annotate.report.cells import grid
from annotate.report.model import Block, Cases, Document, Facts, Figure, Paragraph, Said, Table
from judge.console import visible

HEAD = r"""% Tables of an adjudge report, for \input. The preamble needs:
%   \usepackage{booktabs,longtable,array}
% Texts may hold any Unicode: compile with lualatex or xelatex and a font that has it."""
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
    '"': r"\textquotedbl{}",
    "'": r"{\textquotesingle}",
    "`": r"\textasciigrave{}",
    "-": r"{-}",
    "[": r"{[}",
    "]": r"{]}",
    "·": r"\textperiodcentered{}",
    "…": r"\ldots{}",
}
_PATTERN = re.compile("|".join(map(re.escape, _SPECIAL)))
WIDE = 6


def render(document: Document) -> str:
    """The verdict as a paragraph, then one table after the other."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield HEAD
    yield f"% {_comment(document.title)}"
    for ruling in document.rulings:
        parts = [ruling.sentence, ruling.because + ".", *ruling.warnings, ruling.rule]
        yield from ("", r"\paragraph{Verdict}", " ".join(text(part) for part in parts))
    if document.no_ruling:
        yield from ("", r"\paragraph{Verdict}", text(document.no_ruling))
    for section in document.sections:
        yield from ("", f"% {_comment(section.title)}")
        if not section.blocks:
            yield f"% nothing: {_comment(section.absent)}"
        for block in section.blocks:
            yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Paragraph):
        for line in visible(block.text).split("\n"):
            yield f"% {_comment(line)}"
    elif isinstance(block, Facts):
        rows = [[text(name), text(value)] for name, value in block.rows]
        columns = r"@{}p{0.25\linewidth}p{0.7\linewidth}@{}"
        yield from _long(block.key, block.caption, columns, [], rows)
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Figure):
        yield from _table(block.table, block.caption)
    elif isinstance(block, Cases):
        rows = [
            [
                _case_labels(c.said),
                " ".join(rf"\textit{{{text(name)}:}} {text(value)}" for name, value in c.shown),
            ]
            for c in block.rows
        ]
        columns = r"@{}p{0.3\linewidth}p{0.65\linewidth}@{}"
        yield from _long(block.key, block.caption, columns, ["labels", "unit"], rows)


def _case_labels(said: Sequence[Said]) -> str:
    return r" \newline ".join(
        rf"{text(s.who)}: \textbf{{{text(s.label)}}}" + (f" ({text(s.how_sure)})" if s.how_sure else "")
        for s in said
    )


def _table(table: Table, caption: str = "") -> Iterator[str]:
    spelled = grid(table)
    shown = table.shown()
    heads = [text(h) for h in spelled.heads]
    rows = []
    for row in spelled.rows[:shown]:
        rows.append(
            [
                text(c.text if spelled.dense else c.flat)
                + (rf"\textsuperscript{{{c.marks}}}" if c.marks else "")
                for c in row
            ]
        )
        if spelled.dense:
            rows.append([rf"{{\scriptsize {text(c.interval)}}}" if c.interval else "" for c in row])
    columns = "@{}" + "".join("r" if n else "l" for n in spelled.numbers) + "@{}"
    long_text = max((len(c.text) for r in spelled.rows[:shown] for c in r[1:]), default=0) > 60
    if long_text:
        width = 0.96 / len(heads)
        columns = "@{}" + rf"p{{{width:.3f}\linewidth}}" * len(heads) + "@{}"
        yield from _long(table.key, caption or table.caption, columns, heads, rows)
        return
    size = r"\footnotesize" if len(heads) > WIDE else r"\small"
    yield from ("", r"\begin{table}[htbp]", r"\centering", size)
    yield rf"\caption{{{text(caption or table.caption)}}}"
    yield rf"\label{{tab:{_label(table.key)}}}"
    yield rf"\begin{{tabular}}{{{columns}}}"
    yield r"\toprule"
    yield " & ".join(heads) + r" \\"
    yield r"\midrule"
    yield from (" & ".join(row) + r" \\" for row in rows)
    yield from (r"\bottomrule", r"\end{tabular}")
    for note in table.left_out() + list(table.notes):
        yield rf"\par\smallskip {text(note)}"
    for mark, said in spelled.remarks:
        yield rf"\par\smallskip \textsuperscript{{{mark}}} {text(said)}"
    yield r"\end{table}"


def _long(
    key: str, caption: str, columns: str, heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[str]:
    yield from ("", r"{\small", rf"\begin{{longtable}}{{{columns}}}")
    yield rf"\caption{{{text(caption)}}}\label{{tab:{_label(key)}}}\\"
    top = [r"\toprule", *([" & ".join(heads) + r" \\", r"\midrule"] if heads else [])]
    yield from (*top, r"\endfirsthead", *top, r"\endhead")
    yield from (" & ".join(row) + r" \\" for row in rows)
    yield from (r"\bottomrule", r"\end{longtable}", "}")


def text(value: str) -> str:
    """One line in which nothing is a command."""
    return _PATTERN.sub(lambda m: _SPECIAL[m[0]], " ".join(visible(value).split()))


def _comment(value: str) -> str:
    return " ".join(visible(value).split())


def _label(key: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")
