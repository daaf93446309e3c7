"""The columns of a LaTeX table: TeX measures what stands on one line, and shrinks a table that is wider than its line.

Numbers are `r`, short texts `l`, long ones paragraphs that share the line; nothing here knows how wide a character is.
Only a table that TeX would have to make too small to read is cut into parts, by counting characters.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from annotate.report.cells import Shown

LINE = 75
"""About how many characters of \\small an article's line holds."""
MOST = 105
"""Characters beside each other that still can be read when they are shrunk to a line."""
SHORT = 24
"""A text of more characters is a paragraph."""
LONG_WORD = 14
_BREAKS = "/_-.:,;|=&?@·"


@dataclass(frozen=True)
class TabularLayout:
    """The columns of one table or of one part of it.

    `indices` are its columns, `spec` what \\begin{tabular} takes, `room` the characters of a line of a paragraph,
    `stacked` whether intervals stand below their values.
    """

    indices: tuple[int, ...]
    spec: str
    room: int
    stacked: bool


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


def lines(head: str) -> list[str]:
    """The head of a column of numbers, in lines hardly wider than its numbers."""
    return textwrap.wrap(head, LONG_WORD, break_long_words=False) or [""]


def layouts(
    heads: Sequence[str], numbers: Sequence[bool], rows: Sequence[Sequence[Shown]], stacked: bool
) -> list[TabularLayout]:
    """One layout, or more when the table has to be cut into parts; the first column, which names the rows, is in each.

    `stacked` asks for intervals below their values, where they go too when a line does not hold them.
    """
    wide = [_wide(head, numbers[i], [row[i] for row in rows], stacked) for i, head in enumerate(heads)]
    if not stacked and sum(min(n, SHORT) for n in wide) > LINE:
        return layouts(heads, numbers, rows, True)
    first, *rest = range(len(heads))
    least = min(wide[first], SHORT)
    n_parts = math.ceil(sum(min(wide[i], SHORT) for i in rest) / (MOST - least))
    size = math.ceil(len(rest) / max(1, n_parts)) or 1
    parts = [(first, *rest[at : at + size]) for at in range(0, len(rest) or 1, size)]
    return [_layout(part, numbers, wide, stacked) for part in parts]


def _wide(head: str, numeric: bool, cells: Sequence[Shown], stacked: bool) -> int:
    """Characters beside each other in a column, with the gap before the next one."""
    texts = [
        part for c in cells for part in ((c.text + c.marks, c.interval) if stacked else (c.flat + c.marks,))
    ]
    return max(map(len, [*(lines(head) if numeric else [head]), *texts])) + 2


def _layout(
    part: Sequence[int], numbers: Sequence[bool], wide: Sequence[int], stacked: bool
) -> TabularLayout:
    long = [i for i in part if not numbers[i] and wide[i] > SHORT]
    rest = LINE - sum(wide[i] for i in part if i not in long)
    room = max(rest // max(1, len(long)), SHORT)
    paragraph = rf">{{\raggedright\arraybackslash}}p{{{room / LINE:.2f}\linewidth}}"
    spec = "".join(paragraph if i in long else "r" if numbers[i] else "l" for i in part)
    return TabularLayout(tuple(part), f"@{{}}{spec}@{{}}", room, stacked)
