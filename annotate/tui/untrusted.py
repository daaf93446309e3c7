"""Untrusted text made fit for a terminal, with the offsets of the original kept."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from judge.console import visible

TAB = "    "
_JOINER = "\u200d"
_TAKEN_APART = re.compile(r"\r\n|[\t\r]|[^\n\x20-\x7e\xa0-\u02ff\u0370-\u061b\u0620-\u17ff]")


Replacement = tuple[int, int, str]
"""From here to there of the original, and what is displayed instead: an insertion where both are the same."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text as displayed. `at` and `end` lead from the original's code points to those of `text`, `raw` leads back."""

    text: str
    added: Sequence[tuple[int, int]]
    """What the layout put into `text`."""
    _replaced: Sequence[Replacement]
    _starts: Sequence[int]
    _ends: Sequence[int]
    """Where each replacement begins in the original and ends in `text`."""

    def at(self, offset: int) -> int:
        """Where the character at `offset` of the original begins in `text`, or what is displayed instead of it."""
        i = bisect_right(self._starts, offset) - 1
        if i < 0:
            return offset
        _, end, new = self._replaced[i]
        return self._ends[i] - len(new) if offset < end else self._ends[i] + offset - end

    def end(self, offset: int) -> int:
        """Where what stands before `offset` of the original ends in `text`: before anything that is inserted there."""
        i = bisect_left(self._starts, offset) - 1
        return offset if i < 0 else self._ends[i] + max(offset - self._replaced[i][1], 0)

    def raw(self, offset: int, length: int) -> int:
        """The other way: the first character of the original, which has `length`, that begins there or later."""
        return bisect_left(range(length), offset, key=self.at)


def shown(raw: str, layout: Sequence[Replacement] = ()) -> ShownText:
    """Control, direction and invisible characters as escapes, tabs as spaces, line ends as one, and a layout.

    Joiners between emoji are left out, because terminals disagree about the width of what they join.
    The replacements of a layout do not overlap.
    """
    inside = {at for start, end, _ in layout for at in range(start, end)}
    replaced = [(start, end, new, True) for start, end, new in layout if end > start or new]
    for match in _TAKEN_APART.finditer(raw):
        found = match[0]
        new = (
            TAB if found == "\t" else "\n" if found == "\r\n" else "" if found == _JOINER else visible(found)
        )
        if new != found and match.start() not in inside:
            replaced.append((*match.span(), new, False))
    replaced.sort(key=lambda one: one[:2])
    parts: list[str] = []
    ends: list[int] = []
    added: list[tuple[int, int]] = []
    at = length = 0
    for start, end, new, by_layout in replaced:
        parts += [raw[at:start], new]
        length += start - at + len(new)
        at = end
        ends.append(length)
        if by_layout:
            added.append((length - len(new), length))
    parts.append(raw[at:])
    return ShownText("".join(parts), added, [one[:3] for one in replaced], [one[0] for one in replaced], ends)


def one_line(raw: str | None, width: int = 0) -> str:
    """A text in one line, safe to show; cut to `width` characters when that is given."""
    flat = visible(" ".join((raw or "").replace(_JOINER, "").split()))
    return flat if not width or len(flat) <= width else flat[: width - 1] + "…"
