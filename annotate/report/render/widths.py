"""How wide the columns of a LaTeX table are: what fits as it is, what wraps, and what is cut into parts.

TeX wraps nothing by itself in `l` and `r` columns. The width of a text is estimated from its characters,
for the 345 pt of an article's line; columns that wrap get shares of `\\linewidth`, so that wider pages use
their width.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from annotate.report.cells import Shown

LINE = 345.0
GAP = 8.0
"""Between columns: twice the \\tabcolsep of 4 pt that the tables set."""
SIZES = {"small": 9.0, "footnotesize": 8.0, "scriptsize": 7.0}
LONG_WORD = 14
_BREAKS = "/_-.:,;|=&?@·"
_NARROW = "ijltfrI.,:;'!|()[] "
_WIDE = "mwMW%@—…"
# In tenths of the size: Computer Modern's widths, rounded up.
_SAFETY = 1.06


@dataclass(frozen=True)
class TabularLayout:
    """The columns of one table or of one part of it.

    `indices` are its columns, `spec` what \\begin{tabular} takes, `stacked` whether intervals stand below
    their values, `wraps` whether columns are paragraphs.
    """

    indices: tuple[int, ...]
    size: str
    spec: str
    stacked: bool
    wraps: bool


def pieces(word: str) -> list[str]:
    """Where a long word may be broken: after its separators, and every few characters without one."""
    if len(word) <= LONG_WORD:
        return [word]
    found = [""]
    for c in word:
        if len(found[-1]) >= LONG_WORD or (found[-1] and found[-1][-1] in _BREAKS and c not in _BREAKS):
            found.append("")
        found[-1] += c
    return found


def width(text: str, size: float = 10.0) -> float:
    """About how wide a text is, in points."""
    return sum(map(_em, text)) * size * _SAFETY


def _em(c: str) -> float:
    if c in _NARROW:
        return 0.36
    if c in _WIDE:
        return 0.9
    if unicodedata.east_asian_width(c) in "WF":
        return 1.0
    if c.isupper():
        return 0.72
    return 0.53 if c.isascii() else 0.65


def layouts(
    heads: Sequence[str], numbers: Sequence[bool], rows: Sequence[Sequence[Shown]], stacked: bool
) -> list[TabularLayout]:
    """One layout when the columns fit into a line, more when the table has to be cut into parts.

    `stacked` asks for intervals below their values from the start.
    """
    columns = [
        _Column(head, numeric, [row[i] for row in rows])
        for i, (head, numeric) in enumerate(zip(heads, numbers, strict=True))
    ]
    indices = tuple(range(len(columns)))
    gaps = GAP * (len(columns) - 1)
    for below in (stacked,) if stacked else (False, True):
        for size in ("small", "footnotesize"):
            if not below and sum(c.natural(size) for c in columns) + gaps <= LINE:
                spec = "@{}" + "".join("r" if c.numeric else "l" for c in columns) + "@{}"
                return [TabularLayout(indices, size, spec, False, False)]
        for size in ("footnotesize", "scriptsize") if below else ("footnotesize",):
            if sum(c.comfortable(size, below) for c in columns) + gaps <= LINE:
                return [_wrapped(columns, indices, size, below)]
    return [_wrapped(columns, part, "scriptsize", True) for part in _even(columns, "scriptsize")]


@dataclass(frozen=True)
class _Column:
    head: str
    numeric: bool
    cells: Sequence[Shown]

    def natural(self, size: str) -> float:
        """On one line, the head too."""
        return max([width(self.head, SIZES[size]), *(_inline(c, SIZES[size]) for c in self.cells)])

    def comfortable(self, size: str, stacked: bool) -> float:
        """Wrapped, but readable: what `least` says, and room for a few words of text."""
        if self.numeric:
            return self.least(size, stacked)
        return max(self.least(size, stacked), min(self.natural(size), 70.0))

    def least(self, size: str, stacked: bool) -> float:
        """Values in one piece, text and heads broken wherever they may be."""
        points = SIZES[size]
        head = max((width(p, points) for word in self.head.split() for p in pieces(word)), default=0.0)
        if self.numeric:
            own = [_stacked(c, points) if stacked else _inline(c, points) for c in self.cells]
        else:
            own = [
                width(p, points) + width(c.marks, points * 0.8)
                for c in self.cells
                for word in c.flat.split()
                for p in pieces(word)
            ]
        return max([head, *own])


def _inline(cell: Shown, points: float) -> float:
    return width(cell.flat, points) + width(cell.marks, points * 0.8)


def _stacked(cell: Shown, points: float) -> float:
    return max(width(cell.text, points) + width(cell.marks, points * 0.8), width(cell.interval, 7.0))


def _wrapped(columns: Sequence[_Column], indices: Sequence[int], size: str, stacked: bool) -> TabularLayout:
    chosen = [columns[i] for i in indices]
    room = LINE - GAP * (len(chosen) - 1)
    least = [c.least(size, stacked) for c in chosen]
    want = [0.0 if c.numeric else max(0.0, c.natural(size) - w) for c, w in zip(chosen, least, strict=True)]
    rest = max(0.0, room - sum(least))
    grow = min(1.0, rest / sum(want)) if sum(want) else 0.0
    spec = "".join(
        rf">{{\{'raggedleft' if c.numeric else 'raggedright'}\arraybackslash}}"
        rf"p{{{min(room, low + grow * more) / LINE:.3f}\linewidth}}"
        for c, low, more in zip(chosen, least, want, strict=True)
    )
    return TabularLayout(tuple(indices), size, "@{}" + spec + "@{}", stacked, True)


def _even(columns: Sequence[_Column], size: str) -> list[tuple[int, ...]]:
    """As few parts as a line allows, about equally wide."""
    best = list(_parts(columns, size, LINE))
    for limit in range(int(LINE), int(LINE / 2), -10):
        parts = list(_parts(columns, size, limit))
        if len(parts) > len(best):
            break
        best = parts
    return best


def _parts(columns: Sequence[_Column], size: str, limit: float) -> Iterator[tuple[int, ...]]:
    """As many columns as `limit` takes, the first of them in every part: it names the rows."""
    first = columns[0].comfortable(size, True)
    part, used = [0], first
    for i, column in enumerate(columns[1:], 1):
        wide = min(column.comfortable(size, True), LINE - first - GAP) + GAP
        if used + wide > limit and len(part) > 1:
            yield tuple(part)
            part, used = [0], first
        part.append(i)
        used += wide
    yield tuple(part)
