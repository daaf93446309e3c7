"""The evidence cursor, which moves by words and sentences. Positions are offsets in the raw texts, in code points."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property

from annotate.highlights import words
from annotate.tui.unit import Markable, Picker
from judge.text import sentences

HELP = "mark: ←→ word  ↑↓ sentence  ⇥ text  space begin  ⏎ mark  ⌫ unmark  Esc done"


class _Text:
    """A text with the positions of its words and sentences."""

    def __init__(self, name: str, raw: str) -> None:
        self.name, self._raw = name, raw
        self.words = words(raw)
        self.starts = [start for start, _ in self.words]

    # Only arrow up and down, and Enter without a span, need sentences. Marking begins without splitting a long text.
    @cached_property
    def sentences(self) -> list[tuple[int, int]]:
        return sentences(self._raw) or [(0, len(self._raw))]

    def word_at(self, offset: int) -> int:
        return max(0, bisect_right(self.starts, offset) - 1)

    def sentence_at(self, offset: int) -> int:
        return max(0, bisect_right([a for a, _ in self.sentences], offset) - 1)


class Evidence:
    """A cursor in the texts of a unit, which determines the span that Enter would mark."""

    def __init__(self, texts: Sequence[Markable], first: tuple[Markable, int] | None = None) -> None:
        """Place the cursor at `first`, which is a text with an offset, or at the first word if `first` is None."""
        self._texts = [t for t in (_Text(m.name, m.raw) for m in texts) if t.words]
        self._at = next((n for n, t in enumerate(self._texts) if first and t.name == first[0].name), 0)
        if self._texts:
            start = self._text.word_at(first[1]) if first and self._text.name == first[0].name else 0
            self.picker = Picker(self._text.name, *self._text.words[start])

    @property
    def usable(self) -> bool:
        """Whether there is a text with a word that can be marked."""
        return bool(self._texts)

    @property
    def _text(self) -> _Text:
        return self._texts[self._at]

    def word(self, step: int) -> None:
        """Move to the next or the previous word, which can be in the next or the previous text."""
        at = self._text.word_at(self.picker.start) + step
        if 0 <= at < len(self._text.words):
            self._to(at)
        elif self._turn(step):
            self._to(0 if step > 0 else len(self._text.words) - 1)

    def sentence(self, step: int) -> None:
        """Move to the first word of the next or the previous sentence."""
        at = self._text.sentence_at(self.picker.start) + step
        if not 0 <= at < len(self._text.sentences):
            if not self._turn(step):
                return
            at = 0 if step > 0 else len(self._text.sentences) - 1
        self._to(self._text.word_at(self._text.sentences[at][0]))

    def text(self, step: int) -> None:
        """Move to the beginning of the next or the previous text."""
        if self._turn(step):
            self._to(0)

    def _turn(self, step: int) -> bool:
        # A span is within one text, so the cursor cannot leave it while a span is begun.
        if self.picker.anchor is not None or not 0 <= self._at + step < len(self._texts):
            return False
        self._at += step
        return True

    def _to(self, index: int) -> None:
        self.picker.name = self._text.name
        self.picker.start, self.picker.end = self._text.words[index]

    def resume(self, begun: tuple[str, int, int]) -> None:
        """Resume an unfinished span, given the name of its text, its anchor and the position of the cursor."""
        name, anchor, cursor = begun
        for at, text in enumerate(self._texts):
            if text.name == name:
                self._at = at
                self._to(text.word_at(cursor))
                self.picker.anchor = text.words[text.word_at(anchor)][0]

    def begin(self) -> None:
        """Start a span at the cursor. If a span is already in progress, discard it."""
        # The same key discards it, because Escape ends marking.
        self.picker.anchor = None if self.picker.anchor is not None else self.picker.start

    def span(self) -> tuple[int, int]:
        """Return the span that Enter marks, and remove the anchor.

        The span reaches from the anchor to the cursor. Without an anchor, it is the sentence at the cursor.
        """
        text, picker = self._text, self.picker
        if picker.anchor is None:
            for start, end in text.sentences:
                if start <= picker.start < end:
                    return start, end
            return picker.start, picker.end
        anchor = text.words[text.word_at(picker.anchor)]
        picker.anchor = None
        return min(anchor[0], picker.start), max(anchor[1], picker.end)


def with_span(
    spans: list[tuple[str, int, int]], name: str, start: int, end: int
) -> list[tuple[str, int, int]]:
    """Add a span to the spans, and return all of them. Spans that the new span touches are merged with it."""
    kept = []
    for other, a, b in spans:
        # Spans that touch are merged, because overlapping spans could not be unmarked one by one.
        if other == name and a <= end and start <= b:
            start, end = min(a, start), max(b, end)
        else:
            kept.append((other, a, b))
    return sorted([*kept, (name, start, end)])


def remove_span(spans: list[tuple[str, int, int]], name: str, at: int) -> list[tuple[str, int, int]]:
    """Return the spans that do not contain `at`. If no span contains `at`, return all spans except the last one."""
    kept = [s for s in spans if not (s[0] == name and s[1] <= at < s[2])]
    return kept if len(kept) < len(spans) else spans[:-1]


def find_dragged_words(
    texts: Sequence[Markable], beside: bool, start: int, end: int
) -> tuple[str, int, int] | None:
    """Return the words that were selected with the mouse as (text, start, end), or None if no word was
    selected.

    The arguments `start` and `end` are offsets in a pane. If `beside` is true, this is the pane beside the
    body, otherwise the body. The returned offsets are code points in the raw text. If the selection covers
    several texts, the result is for the text with the longest selected part.
    """
    best: tuple[int, str, int, int] | None = None
    for text in texts:
        low, high = max(start - text.at, 0), min(end - text.at, len(text.shown.text))
        if text.beside is not beside or low >= high:
            continue
        a, b = (text.shown.raw(place, len(text.raw)) for place in (low, high))
        # A word that was dragged over in part is marked whole.
        over = [(x, y) for x, y in words(text.raw) if x < b and a < y]
        if over and (best is None or high - low > best[0]):
            best = high - low, text.name, over[0][0], over[-1][1]
    return None if best is None else best[1:]
