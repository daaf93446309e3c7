"""The evidence cursor: words and sentences by keyboard, in code points of the raw text."""

from __future__ import annotations

from bisect import bisect_right

from annotate.tui.unit import Picker
from annotate.tui.words import tokens
from judge.text import sentences

HELP = "evidence: ←→ word  ↑↓ sentence  space begin  ⏎ mark (the sentence, or from where you began)  ⌫ unmark  Esc done"


class Evidence:
    """Moves a picker over one text and gives the span that Enter would mark."""

    def __init__(self, raw: str) -> None:
        self._tokens = tokens(raw)
        self._starts = [start for start, _ in self._tokens]
        self._sentences = sentences(raw) or [(0, len(raw))]
        first = self._tokens[0] if self._tokens else (0, 0)
        self.picker = Picker(*first)

    @property
    def usable(self) -> bool:
        """Whether there is anything to mark."""
        return bool(self._tokens)

    def word(self, step: int) -> None:
        """The next or the previous word."""
        at = bisect_right(self._starts, self.picker.start) - 1
        self._to(max(0, min(len(self._tokens) - 1, at + step)))

    def sentence(self, step: int) -> None:
        """The first word of the next or the previous sentence."""
        begins = [a for a, _ in self._sentences]
        at = bisect_right(begins, self.picker.start) - 1
        target = begins[max(0, min(len(begins) - 1, at + step))]
        self._to(max(0, bisect_right(self._starts, target) - 1))

    def _to(self, index: int) -> None:
        self.picker.start, self.picker.end = self._tokens[index]

    def begin(self) -> None:
        """Begin a span here, or give up the one begun."""
        self.picker.anchor = None if self.picker.anchor is not None else self.picker.start

    def span(self) -> tuple[int, int]:
        """What Enter marks: from the anchor to the cursor, else the sentence of the cursor."""
        if self.picker.anchor is None:
            for start, end in self._sentences:
                if start <= self.picker.start < end:
                    return start, end
            return self.picker.start, self.picker.end
        at = bisect_right(self._starts, self.picker.anchor) - 1
        anchor = self._tokens[at]
        self.picker.anchor = None
        return min(anchor[0], self.picker.start), max(anchor[1], self.picker.end)


def with_span(
    spans: list[tuple[str, int, int]], name: str, start: int, end: int
) -> list[tuple[str, int, int]]:
    """The spans with one more, those it touches joined to it."""
    kept = []
    for other, a, b in spans:
        if other == name and a <= end and start <= b:
            start, end = min(a, start), max(b, end)
        else:
            kept.append((other, a, b))
    return sorted([*kept, (name, start, end)])


def without_span(spans: list[tuple[str, int, int]], name: str, at: int) -> list[tuple[str, int, int]]:
    """The spans without those that hold `at`; without the last one when none does."""
    kept = [s for s in spans if not (s[0] == name and s[1] <= at < s[2])]
    return kept if len(kept) < len(spans) else spans[:-1]
