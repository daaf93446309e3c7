"""Joiners and direction marks: characters without width that are part of the spelling in some scripts."""

import re

JOINERS = ("\u200c", "\u200d", "\u200e", "\u200f", "\u061c")
"""The zero-width non-joiner and joiner, and the marks of direction (left to right, right to left, Arabic letter)."""
# Letters and marks of scripts whose letters change with their neighbours: Arabic, Syriac, Mandaic, N'Ko, Mongolian, and the
# scripts of India, Myanmar and Cambodia. There, joiners are spelling (Unicode 17, section 23.2).
_JOINING = "\u0620-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc"
_EMOJI = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
BETWEEN_EMOJI = re.compile(f"(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])")
"""A joiner between two emoji, such as those of a family."""
_AFTER_LETTER = re.compile(f"(?<=[{_JOINING}])[\u200c\u200d]")
_MARK = re.compile("(?<![\u200e\u200f\u061c])[\u200e\u200f\u061c]")


def find_needed(text: str) -> set[int]:
    """Return the offsets of the joiners and direction marks that the text needs, so that its readers know it.

    A joiner is needed after a letter of a script whose letters join, or between two emoji. A direction mark is needed in a
    line with letters that are written from right to left. Neither may be repeated.
    """
    needed = {match.start() for pattern in (_AFTER_LETTER, BETWEEN_EMOJI) for match in pattern.finditer(text)}
    at = 0
    for line in text.splitlines(keepends=True):
        if _RIGHT_TO_LEFT.search(line):
            needed.update(at + match.start() for match in _MARK.finditer(line))
        at += len(line)
    return needed


def drop_needed(text: str) -> str:
    """Return the text without the joiners and direction marks that it needs."""
    needed = find_needed(text)
    return "".join(character for at, character in enumerate(text) if at not in needed)
