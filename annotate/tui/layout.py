"""Fit Markdown tables and code to the width of a pane, by replacing parts of the stored text.

The cells of a table that fits are padded to align. A wider table is printed row by row, with one cell per
line. Long lines of code are broken, and the continuation is indented. Words never change: the layout replaces
only bars (`|`), the line under a table's header, and spaces.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len

from annotate.tui.untrusted import Replacement, ShownText, make_one_line, make_visible

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)[ \t]*\S")
_BAR = re.compile(r"\\.|\|")
_RULE = re.compile(r":?-+:?")
LABEL = 30
"""The maximum width, in columns, of a header that is repeated before a cell."""
HANGING = 2
"""The additional indentation, in columns, of the continuation of a long line of code."""


class _Line(NamedTuple):
    """A line without its line break, and its offset in the text."""

    at: int
    text: str

    @property
    def end(self) -> int:
        return self.at + len(self.text)


class _Cell(NamedTuple):
    """A table cell without surrounding spaces. `start` and `end` are offsets in the text, and `columns` is the width."""

    start: int
    end: int
    text: str
    columns: int


# Each key press draws the unit again, with the same texts in the same columns.
@lru_cache(maxsize=64)
def lay_out(raw: str, columns: int) -> ShownText:
    """Return a text as displayed in a width of `columns`. If `columns` is 0, tables and code are displayed as stored."""
    return make_visible(raw, list(replacements(raw, columns)) if columns else ())


def replacements(raw: str, columns: int) -> Iterator[Replacement]:
    """Yield the replacements that lay out the tables and the code of a text, in order."""
    lines, at = [], 0
    for text in raw.split("\n"):
        lines.append(_Line(at, text.removesuffix("\r")))
        at += len(text) + 1
    n, after_blank = 0, True
    while n < len(lines):
        line, begin = lines[n], n
        n += 1
        if fence := _FENCE.match(line.text):
            # As in CommonMark, a fence that is not closed is code to the end of the text.
            closing = re.compile(rf" {{0,3}}{fence[1][0]}{{{len(fence[1])},}}[ \t]*")
            while n < len(lines) and not closing.fullmatch(lines[n].text):
                yield from _hanging(lines[n], columns)
                n += 1
            n += 1
        elif after_blank and _INDENTED.match(line.text):
            yield from _hanging(line, columns)
            while n < len(lines) and (_INDENTED.match(lines[n].text) or not lines[n].text.strip()):
                yield from _hanging(lines[n], columns)
                n += 1
        elif n < len(lines) and _is_header(line, lines[n]):
            n += 1
            while n < len(lines) and lines[n].text.strip() and _bars(lines[n]):
                n += 1
            yield from _table(lines[begin:n], columns)
        after_blank = n <= len(lines) and not lines[n - 1].text.strip()


def _bars(line: _Line) -> list[int]:
    """Return the offsets of the bars (`|`) that separate cells. A bar after a backslash is part of a cell."""
    if "|" not in line.text:
        return []
    return [line.at + m.start() for m in _BAR.finditer(line.text) if m[0] == "|"]


def _cells(line: _Line) -> list[_Cell]:
    """Return the cells in a row. The row may begin and end with a bar."""
    bars = _bars(line)
    ends = [line.at - 1, *bars, line.end]
    spans = list(pairwise(ends))
    if bars and not line.text[: bars[0] - line.at].strip():
        spans = spans[1:]
    if bars and not line.text[bars[-1] + 1 - line.at :].strip() and len(spans) > 1:
        spans = spans[:-1]
    out = []
    for before, end in spans:
        text = line.text[before + 1 - line.at : end - line.at]
        start = before + 1 + len(text) - len(text.lstrip(" \t"))
        text = text.strip(" \t")
        start = start if text else before + 1
        out.append(_Cell(start, start + len(text), text, cell_len(make_visible(text).text)))
    return out


def _is_header(line: _Line, under: _Line) -> bool:
    """Return whether `line` is the header of a table, that is, `under` has the same number of cells, all made of dashes."""
    # GitHub's Markdown has the same rule. Without the count, a title over a line of dashes would be a header.
    if "-" not in under.text or not _bars(under) or not _bars(line):
        return False
    rule = _cells(under)
    return all(_RULE.fullmatch(cell.text) for cell in rule) and len(rule) == len(_cells(line))


def _table(lines: Sequence[_Line], columns: int) -> Iterator[Replacement]:
    """Yield the replacements for a table: for its header, the line under the header, and its rows."""
    header, rule, *rows = (_cells(line) for line in lines)
    widest: list[int] = []
    # Cells are printed one by one, because a row in a hostile text can have thousands of cells.
    for row in (header, *rows):
        widest += [0] * (len(row) - len(widest))
        for n, cell in enumerate(row):
            widest[n] = max(widest[n], cell.columns)
    if sum(widest) + 3 * len(widest) + 1 <= columns:
        sides = [cell.text for cell in rule] + ["-"] * (len(widest) - len(rule))
        yield from _align_row(lines[0], header, widest, sides)
        yield lines[1].at, lines[1].end, "├" + "┼".join("─" * (width + 2) for width in widest) + "┤"
        for line, row in zip(lines[2:], rows, strict=True):
            yield from _align_row(line, row, widest, sides)
        return
    yield from _align_row(lines[0], header, [0] * len(widest), ["-"] * len(widest))
    yield lines[1].at, lines[1].end, "─" * min(LABEL, columns)
    labels = [make_one_line(cell.text, LABEL) for cell in header]
    for line, row in zip(lines[2:], rows, strict=True):
        at = line.at
        for n, cell in enumerate(row):
            label = labels[n] if n < len(labels) and labels[n] else f"column {n + 1}"
            yield at, cell.start, ("\n" if n else "") + label + ": "
            at = cell.end
        # An empty line separates the rows.
        yield at, line.end, "" if line is lines[-1] else "\n"


def _align_row(
    line: _Line, row: Sequence[_Cell], widest: Sequence[int], sides: Sequence[str]
) -> Iterator[Replacement]:
    """Yield the replacements for a row, which pad each cell to its column's width. Colons in `sides` set the alignment."""
    at, right = line.at, ""
    for n, cell in enumerate(row):
        spare = max(widest[n] - cell.columns, 0)
        left = spare if sides[n].endswith(":") else 0
        if sides[n].startswith(":"):
            left //= 2
        yield at, cell.start, (f"{right} │ " if n else "│ ") + " " * left
        at, right = cell.end, " " * (spare - left)
    yield at, line.end, f"{right} │"


def _hanging(line: _Line, columns: int) -> Iterator[Replacement]:
    """Yield the replacements that break a long line of code, at spaces if possible, and indent its continuation."""
    text = line.text
    if cell_len(make_visible(text).text) <= columns:
        return
    code = text.lstrip(" \t")
    indent = min(cell_len(make_visible(text[: len(text) - len(code)]).text) + HANGING, columns // 2)
    least = len(text) - len(code)
    # Chinese and Japanese characters take two columns, and escaped ones up to ten.
    widths = [1 if " " <= c <= "~" else cell_len(make_visible(c).text) for c in text]
    begin, room = 0, columns
    while True:
        at, used = begin, 0
        while at < len(text) and used + widths[at] <= room:
            used += widths[at]
            at += 1
        if at == len(text):
            return
        after_space = max(text.rfind(" ", begin, at), text.rfind("\t", begin, at)) + 1
        # At least one character goes into each row, even if it is wider than the remaining columns.
        begin = after_space if after_space > max(begin, least) else max(at, begin + 1)
        yield line.at + begin, line.at + begin, "\n" + " " * indent
        room = columns - indent
