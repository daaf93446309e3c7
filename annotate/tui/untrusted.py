"""Show untrusted text safely on a terminal, and convert offsets between the original and the displayed text."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from judge.console import visible
from judge.joiners import BETWEEN_EMOJI, find_needed

TAB = "    "
_REPLACED = {"\t": TAB, "\r\n": "\n"}
_TAKEN_APART = re.compile(r"\r\n|[\t\r]|[^\n\x20-\x7e\xa0-\u02ff\u0370-\u061b\u0620-\u17ff]")


Replacement = tuple[int, int, str]
"""(start, end, text): a range of the original, and the text that replaces it. If start equals end, the text is inserted."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text as it is displayed, with methods that convert offsets between the original and the displayed `text`.

    `find_offset` converts an offset in the original to an offset in `text`. `end` does the same for the end of a range.
    `raw` converts an offset in `text` back to the original.
    """

    text: str
    added: Sequence[tuple[int, int]]
    """The ranges of `text` that come from the layout and not from the original."""
    _replaced: Sequence[Replacement]
    _starts: Sequence[int]
    _ends: Sequence[int]
    """The start of each replacement in the original (`_starts`), and its end in `text` (`_ends`)."""

    def find_offset(self, offset: int) -> int:
        """Return the offset in `text` of the character that is at `offset` in the original, or of its replacement."""
        i = bisect_right(self._starts, offset) - 1
        if i < 0:
            return offset
        _, end, new = self._replaced[i]
        return self._ends[i] - len(new) if offset < end else self._ends[i] + offset - end

    def end(self, offset: int) -> int:
        """Return the offset in `text` of the end of a range that ends at `offset` in the original.

        Text that is inserted at `offset` is not part of the range.
        """
        i = bisect_left(self._starts, offset) - 1
        return offset if i < 0 else self._ends[i] + max(offset - self._replaced[i][1], 0)

    def raw(self, offset: int, length: int) -> int:
        """Return the offset in the original of the first character that is displayed at or after `offset` in `text`.

        `length` is the length of the original.
        """
        return bisect_left(range(length), offset, key=self.find_offset)


def make_visible(raw: str, layout: Sequence[Replacement] = ()) -> ShownText:
    """Return a text as it is displayed. The replacements in `layout` must not overlap.

    Control, direction and invisible characters become escapes, and tabs become spaces. Joiners and direction marks that the
    script needs remain, but joined emoji are shown apart.
    """
    # Textual counts the columns of joined emoji in two ways, so a drag would mark another word.
    apart = [(match.start(), match.end(), "", False) for match in BETWEEN_EMOJI.finditer(raw)]
    # A control character could move the cursor and overwrite the screen.
    # Characters that a layout replaces are not shown, so they need no escape.
    inside = {at for start, end, _ in layout for at in range(start, end)} | find_needed(raw)
    replaced = [(start, end, new, True) for start, end, new in layout if end > start or new] + apart
    for match in _TAKEN_APART.finditer(raw):
        character = match[0]
        new = _REPLACED[character] if character in _REPLACED else visible(character)
        if new != character and match.start() not in inside:
            replaced.append((*match.span(), new, False))
    replaced.sort(key=lambda replacement: replacement[:2])
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
    return ShownText(
        "".join(parts),
        added,
        [replacement[:3] for replacement in replaced],
        [replacement[0] for replacement in replaced],
        ends,
    )


def make_one_line(raw: str | None, width: int = 0) -> str:
    """Return a text as one line that is safe to show. If `width` is not 0, shorten the line to `width` characters."""
    flat = make_visible(" ".join((raw or "").split())).text
    return flat if not width or len(flat) <= width else flat[: width - 1] + "…"
