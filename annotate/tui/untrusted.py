"""Untrusted text made fit for a terminal, with the offsets of the original kept."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from judge.console import visible

TAB = "    "
_JOINER = "\u200d"
_TAKEN_APART = re.compile(r"\r\n|[\t\r]|[^\n\x20-\x7e\xa0-\u02ff\u0370-\u061b\u0620-\u17ff]")


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text as displayed; `at(offset)` leads from the original's code points to those of `text`."""

    text: str
    _starts: Sequence[int]
    _shifts: Sequence[int]

    def at(self, offset: int) -> int:
        """Where the character at `offset` of the original begins in `text`."""
        i = bisect_right(self._starts, offset - 1) - 1
        return offset + (self._shifts[i] if i >= 0 else 0)

    def raw(self, offset: int, length: int) -> int:
        """The other way: the first character of the original, which has `length`, that begins there or later."""
        return bisect_left(range(length), offset, key=self.at)


def shown(raw: str) -> ShownText:
    """Control, direction and invisible characters as escapes, tabs as spaces, line ends as one.

    Joiners between emoji are left out, because terminals disagree about the width of what they join.
    """
    parts: list[str] = []
    starts: list[int] = []
    deltas: list[int] = []
    at = 0
    for match in _TAKEN_APART.finditer(raw):
        found = match[0]
        new = (
            TAB if found == "\t" else "\n" if found == "\r\n" else "" if found == _JOINER else visible(found)
        )
        if new == found:
            continue
        parts += [raw[at : match.start()], new]
        at = match.end()
        starts.append(match.start())
        deltas.append(len(new) - len(found))
    parts.append(raw[at:])
    return ShownText("".join(parts), starts, list(accumulate(deltas)))


def one_line(raw: str | None, width: int = 0) -> str:
    """A text in one line, safe to show; cut to `width` characters when that is given."""
    flat = visible(" ".join((raw or "").replace(_JOINER, "").split()))
    return flat if not width or len(flat) <= width else flat[: width - 1] + "…"
