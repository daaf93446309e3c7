"""The document in LaTeX, with booktabs tables, to be included in a paper with \\input.

Numbers are in `r` columns, short texts in `l` columns, and long texts in paragraph columns that share the rest of the
line. A table that is too wide for a line, or that has too many columns, is split into parts. Widths are counted in
characters. Tables are not scaled, so all letters have the same size.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment

from judge.console import visible
from judge.document.blocks import CaseLabel, Document, Figure, Section, Table
from judge.document.cells import Shown, count_naming, grid
from judge.document.environment import environment
from judge.types import Json

LINE = 75
"""The approximate number of characters in a line of an article in \\small."""
MOST_COLUMNS = 8
"""The maximum number of columns in a table, or in one part of a split table."""
SHORT = 24
"""The maximum number of characters in a text that is not typeset as a paragraph."""
GAP = 2
"""The width of the gap between two columns, in characters."""
LONG_WORD = 14
"""The maximum number of characters in a word that is kept whole."""
_BREAKS = "/_-.:,;|=&?@·"


@dataclass(frozen=True)
class TabularLayout:
    """The layout of a table, or of one part of a split table.

    `indices` lists the columns of the part, and `spec` is the argument of \\begin{tabular}. `room` is the
    width of a paragraph column in characters. If `stacked` is true, each interval is below its value.
    """

    indices: tuple[int, ...]
    spec: str
    room: int
    stacked: bool


def pieces(word: str) -> list[str]:
    """Split a long word into pieces between which TeX may break it.

    A piece ends after a separator, or after LONG_WORD characters without a separator.
    """
    # Identifiers and URLs have no spaces, and TeX breaks a line only at spaces and at hyphens that it recognises.
    if len(word) <= LONG_WORD:
        return [word]
    parts = [""]
    for c in word:
        if len(parts[-1]) >= LONG_WORD or (parts[-1] and parts[-1][-1] in _BREAKS and c not in _BREAKS):
            parts.append("")
        parts[-1] += c
    return parts


def lines(head: str) -> list[str]:
    """Break the head of a number column into lines that are about as wide as the numbers."""
    return textwrap.wrap(head, LONG_WORD, break_long_words=False) or [""]


def layouts(
    heads: Sequence[str], numbers: Sequence[bool], rows: Sequence[Sequence[Shown]], stacked: bool
) -> list[TabularLayout]:
    """Return one layout for each part of a table. The columns that name the rows are in every part.

    If `stacked` is true, or if the table would be too wide, each interval is below its value.
    """
    wide = [
        _measure_width(head, numbers[i], [row[i] for row in rows], stacked) for i, head in enumerate(heads)
    ]
    if not stacked and sum(min(n, SHORT) for n in wide) > LINE:
        return layouts(heads, numbers, rows, True)
    # A paragraph can be as narrow as a short text, but a number cannot be broken.
    least = [n if numbers[i] else min(n, SHORT) for i, n in enumerate(wide)]
    names = list(range(count_naming(rows, numbers)))
    parts = [list(names)]
    for i in range(len(names), len(heads)):
        used = sum(least[j] for j in parts[-1])
        if len(parts[-1]) > len(names) and (used + least[i] > LINE or len(parts[-1]) == MOST_COLUMNS):
            parts.append(list(names))
        parts[-1].append(i)
    return [_layout(part, numbers, wide, stacked) for part in parts]


def _measure_width(head: str, numeric: bool, cells: Sequence[Shown], stacked: bool) -> int:
    """Return the width of a column in characters, including the gap before the next column."""
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
    # TeX turns two hyphens into a dash, and a bracket after the end of a row into an optional argument.
    "-": r"{-}",
    "[": r"{[}",
    "]": r"{]}",
    "·": r"\textperiodcentered{}",
    "…": r"\ldots{}",
}
_PATTERN = re.compile("|".join(map(re.escape, _SPECIAL)))
# A float cannot be split over two pages, so longer tables become several floats.
LINES_OF_A_FLOAT = 40


def render(document: Document) -> str:
    """Return the verdicts as paragraphs, then the tables, figures and notes of every section."""
    return _environment().get_template("page.tex.j2").render(document=document)


def render_short(document: Document) -> str:
    """Return the document's blocks for a paper, without the head of the report."""
    return _environment().get_template("short.tex.j2").render(document=document)


_DELIMITERS: dict[str, Any] = {
    "block_start_string": "<%",
    "block_end_string": "%>",
    "variable_start_string": "<<",
    "variable_end_string": ">>",
    "comment_start_string": "<#",
    "comment_end_string": "#>",
}
"""Jinja options for LaTeX templates. Jinja's usual delimiters are braces, which LaTeX uses itself."""


@cache
def _environment() -> Environment:
    made = environment(keep_trailing_newline=True, **_DELIMITERS)
    made.filters |= {
        "text": text,
        "label": _label,
        "said": _describe_label,
        "flat": lambda value: " ".join(visible(value).split()),
    }
    made.globals |= {"parts": _parts, "keys": _keys, "paragraphs": _paragraphs}
    return made


def _keys(section: Section) -> list[str]:
    """Return the keys of a section's tables. The section's text refers to the tables by these keys."""
    keys = (
        (b.table.key if b.table else "") if isinstance(b, Figure) else getattr(b, "key", "")
        for b in section.blocks
    )
    return [key for key in keys if key]


def _paragraphs(value: str) -> list[str]:
    """Split third-party text into paragraphs and list items, each of which starts a new line."""
    blocks = re.split(r"\n\s*\n", visible(value).strip())
    return [line for block in blocks for line in re.split(r"\n(?=[-*] )", block)]


def _describe_label(label: CaseLabel) -> str:
    sure = f" ({text(label.how_sure)})" if label.how_sure else ""
    return rf"{text(label.who)}: \textbf{{{text(label.label)}}}{sure}"


def _parts(table: Table, caption: str) -> Iterator[dict[str, Json]]:
    """Split a table into parts that each fit on a page. Yield the template variables for each part."""
    cells = grid(table)
    shown = cells.rows[: table.count_shown()]
    notes = [text(note) for note in table.note_omitted() + list(table.notes)]
    notes += [rf"\textsuperscript{{{mark}}} {text(remark)}" for mark, remark in cells.remarks]
    parts = [
        (layout, page)
        for layout in layouts(cells.heads, cells.numbers, shown, cells.dense)
        for page in _pages(shown, layout)
    ]
    for number, (layout, page) in enumerate(parts, 1):
        yield {
            "key": table.key if number == 1 else f"{table.key}-{number}",
            "title": f"{caption}, part {number} of {len(parts)}" if len(parts) > 1 else caption,
            "spec": layout.spec,
            "heads": [_head(cells.heads[i], cells.numbers[i]) for i in layout.indices],
            "rows": [[_cell(row[i], layout.stacked) for i in layout.indices] for row in page],
            # The notes apply to all parts, so they are below the last part.
            "notes": notes if number == len(parts) else [],
        }


def _pages(rows: Sequence[Sequence[Shown]], layout: TabularLayout) -> Iterator[Sequence[Sequence[Shown]]]:
    """Yield the rows in groups, each of which fits on a page."""
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
    value = text(cell.value) if cell.narrow or stacked else text(cell.flat)
    if cell.compared == "best":
        value = rf"\textbf{{{value}}}"
    if stacked and cell.interval and not cell.narrow:
        return _stack("t", [value + marks, rf"\scriptsize {text(cell.interval)}"])
    return value + marks


def _stack(place: str, stacked: Iterable[str]) -> str:
    """Return the LaTeX for a cell with several lines. It is needed because TeX does not wrap text in `r` columns.

    `place` selects the line that is on the row's baseline: the top (t) or the bottom (b).
    """
    return rf"\begin{{tabular}}[{place}]{{@{{}}r@{{}}}}" + r"\\".join(stacked) + r"\end{tabular}"


def text(value: str) -> str:
    """Return a text as one line, with LaTeX's special characters escaped and with break points in long words."""
    return " ".join(r"\allowbreak{}".join(map(_escape, pieces(word))) for word in visible(value).split())


def _escape(piece: str) -> str:
    return _PATTERN.sub(lambda m: _SPECIAL[m[0]], piece)


def _label(key: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")
