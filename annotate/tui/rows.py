"""Which row of a pane each character of its text stands in, so that matches can be counted and turned to."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache

# Textual wraps with this function; its own `Content.wrap` drops the spaces by which rows would be counted.
from rich._wrap import divide_line


@lru_cache(maxsize=4)
def row_starts(text: str, width: int) -> Sequence[int]:
    """Where each row of a text begins when it is wrapped to `width` columns: for both panes, before and after a
    change of the layout, a text is wrapped once."""
    starts, at = [], 0
    for line in text.split("\n"):
        starts.append(at)
        starts += [at + cut for cut in divide_line(line, width)]
        at += len(line) + 1
    return starts


def row_of(starts: Sequence[int], offset: int) -> int:
    """The row of a character."""
    return max(bisect_right(starts, offset) - 1, 0)


def matches_above(matches: Sequence[int], starts: Sequence[int], top: int) -> Sequence[int]:
    """Those of the sorted `matches` that begin above the row `top`."""
    return matches[: bisect_left(matches, starts[top])] if top < len(starts) else matches


def matches_below(matches: Sequence[int], starts: Sequence[int], end: int) -> Sequence[int]:
    """Those of the sorted `matches` that begin in the row `end` or below it."""
    return matches[bisect_left(matches, starts[end]) :] if end < len(starts) else ()
