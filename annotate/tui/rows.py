"""The rows of a terminal: which row contains a character, and how the question, the text and the labels share the rows."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

# Textual wraps with this function. Its `Content.wrap` drops spaces, so offsets could not be counted with it.
from rich._wrap import divide_line
from textual.content import Content

Pane = Literal["head", "text", "labels"]
LEAST = {"head": 2, "text": 4, "labels": 3}
"""The minimum number of rows for each part, unless the part needs fewer. The rows of the text include its border line."""
# With these shares, a three-line claim is fully visible at 80x24.
PART = {"head": 0.3, "labels": 0.45}
"""The maximum share of the rows for each part while the text needs the remaining rows."""


class ShareRows(NamedTuple):
    """The number of rows for the head and for the labels. The text gets the remaining rows."""

    head: int
    labels: int


def rows_of(content: Content, width: int, most: int) -> int:
    """Return the number of rows that a text needs in `width` columns, but at most `most`."""
    # Only the beginning is wrapped, because a passage can have a hundred thousand characters.
    start = content[: most * max(width, 1) + 1]
    return min(len(start.wrap(max(width, 1))), most)


def share(total: int, head: int, text: int, labels: int, chosen: Pane) -> ShareRows:
    """Divide `total` rows between the parts. `head`, `text` and `labels` are the numbers of rows that the
    parts need.

    If the head or the labels are the chosen pane, they get all the rows that they need. The other parts then
    keep at least their minimum number of rows.
    """
    needed = {"head": head, "text": text, "labels": labels}
    got = {name: min(n, LEAST[name]) for name, n in needed.items()}
    part = {**PART, "text": 1.0, chosen: 1.0}
    order: list[Pane] = ["head", "labels", "text"]
    if chosen != "text":
        order.sort(key=lambda name: name != chosen)
    # First divide the shares, then the remaining rows.
    for limit in (part, dict.fromkeys(part, 1.0)):
        for name in order:
            remaining = total - sum(got.values())
            room = max(int(total * limit[name]) - got[name], 0)
            got[name] += max(min(needed[name] - got[name], remaining, room), 0)
    return ShareRows(got["head"], got["labels"])


@lru_cache(maxsize=4)
def row_starts(text: str, width: int) -> Sequence[int]:
    """Return the offset at which each row begins in a text that is wrapped to `width` columns."""
    # Cached for both panes, before and after a change of the layout, so that a long text is wrapped only once.
    starts, at = [], 0
    for line in text.split("\n"):
        starts.append(at)
        starts += [at + cut for cut in divide_line(line, width)]
        at += len(line) + 1
    return starts


def row_of(starts: Sequence[int], offset: int) -> int:
    """Return the number of the row that contains the character at `offset`."""
    return max(bisect_right(starts, offset) - 1, 0)


def matches_above(matches: Sequence[int], starts: Sequence[int], top: int) -> Sequence[int]:
    """Return the matches that begin above the row `top`. `matches` must be sorted."""
    return matches[: bisect_left(matches, starts[top])] if top < len(starts) else matches


def matches_below(matches: Sequence[int], starts: Sequence[int], end: int) -> Sequence[int]:
    """Return the matches that begin in the row `end` or below it. `matches` must be sorted."""
    return matches[bisect_left(matches, starts[end]) :] if end < len(starts) else ()
