"""How the rows of a terminal are shared between question, text and labels."""

from typing import Literal, NamedTuple

from textual.content import Content

Pane = Literal["head", "text", "labels"]
LEAST = {"head": 2, "text": 4, "labels": 3}
"""Rows that each keeps, if it has that many: text counts its rule."""
PART = {"head": 0.3, "labels": 0.45}
"""The share that each may take before the text gets what is left: a claim of three lines is read whole."""


class ShareRows(NamedTuple):
    """Rows for the head and for the labels; the text has the rest."""

    head: int
    labels: int


def rows_of(content: Content, width: int, most: int) -> int:
    """How many rows a text takes, counted no further than `most`."""
    start = content[: most * max(width, 1) + 1]
    return min(len(start.wrap(max(width, 1))), most)


def share(total: int, head: int, text: int, labels: int, chosen: Pane) -> ShareRows:
    """`head`, `text` and `labels` are the rows each would need. Question or labels, once chosen, get what the others can
    spare."""
    wanted = {"head": head, "text": text, "labels": labels}
    got = {name: min(n, LEAST[name]) for name, n in wanted.items()}
    part = {**PART, "text": 1.0, chosen: 1.0}
    order: list[Pane] = ["head", "labels", "text"]
    if chosen != "text":
        order.sort(key=lambda name: name != chosen)
    for limit in (part, dict.fromkeys(part, 1.0)):  # first within the shares, then what is left over
        for name in order:
            left = total - sum(got.values())
            room = max(int(total * limit[name]) - got[name], 0)
            got[name] += max(min(wanted[name] - got[name], left, room), 0)
    return ShareRows(got["head"], got["labels"])
