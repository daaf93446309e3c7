"""Marking evidence. The keyboard marks evidence in a mode that Escape ends; dragging the mouse over text always works."""

import json
from collections.abc import Awaitable, Callable
from time import monotonic

from textual.geometry import Offset
from textual.selection import Selection

from annotate.tui.actions import UserAction
from annotate.tui.evidence import HELP, Evidence, find_dragged_words, remove_span, with_span
from annotate.tui.workplace import Workplace
from judge.store.study import dumps

BEGUN = "evidence"
"""The name of the draft that stores an unfinished span as its text, its anchor and the position of the cursor."""
WORDS = {"left": -1, "right": 1}
SENTENCES = {"up": -1, "down": 1}
TEXTS = {"tab": 1, "shift+tab": -1}


class Marking:
    """The mode in which the arrows move a cursor from word to word, and Enter marks words as evidence."""

    def __init__(self, place: Workplace) -> None:
        self._place, self._hand, self._view = place, place.hand, place.view

    async def begin(self) -> None:
        """Start to mark evidence. The cursor starts at a hit of the last search or, if there is no hit, at a highlight."""
        text = self._view.text
        evidence = Evidence(text.texts, text.first) if text is not None else Evidence([])
        if not evidence.usable:
            self._place.refuse("this unit has no text in which evidence can be marked")
            return
        begun = self._place.desk.draft(self._hand.unit.position, BEGUN)
        # A span that was begun before a restart is resumed.
        if begun is not None:
            evidence.resume(json.loads(begun))
        self._hand.evidence, self._view.pane = evidence, "text"
        self._view.draw()
        self._follow()
        self._view.say(HELP)

    async def take(self, action: UserAction) -> bool:
        """Handle a key while evidence is being marked. Return False if the key has no function here."""
        hand, evidence, key = self._hand, self._hand.evidence, action.key
        if evidence is None:
            return False
        spans, name = hand.unit.state.spans, evidence.picker.name
        if key in WORDS:
            evidence.word(WORDS[key])
        elif key in SENTENCES:
            evidence.sentence(SENTENCES[key])
        elif key in TEXTS:
            evidence.text(TEXTS[key])
        elif key == "space":
            evidence.begin()
        elif key == "enter":
            await self._mark(with_span(spans, name, *evidence.span()), action.at)
        elif key in ("backspace", "delete"):
            await self._mark(remove_span(spans, name, evidence.picker.start), action.at)
        elif key == "escape" or key in hand.keys["evidence"]:
            hand.evidence = None
            self._view.say("")
        else:
            return False
        # The draft is stored after each key, because a lost connection ends the program without a warning.
        picker = evidence.picker
        begun = None if picker.anchor is None else dumps([picker.name, picker.anchor, picker.start])
        self._place.desk.keep_draft(hand.unit.position, BEGUN, begun)
        self._view.draw()
        if hand.evidence is not None:
            self._follow()
        return True

    def mark_drag(
        self, beside: bool, selection: Selection, pane: str
    ) -> Callable[[], Awaitable[None]] | None:
        """Return the action that marks the text selected by dragging, or None if no word was selected."""
        text, dragged_span = self._view.text, None
        if text is not None:
            ends = (_offset(pane, selection.start, 0), _offset(pane, selection.end, len(pane)))
            dragged_span = find_dragged_words(text.texts, beside, *ends)
        if dragged_span is None:
            return None
        name, start, end = dragged_span

        async def mark() -> None:
            hand = self._hand
            await self._mark(with_span(hand.unit.state.spans, name, start, end), monotonic())
            self._view.draw()
            if self._place.refused is None and hand.evidence is None:
                undo = hand.symbol("undo", "undo in the menu")
                self._view.say(f"marked as evidence; {undo} undoes this")

        return mark

    async def _mark(self, spans: list[tuple[str, int, int]], at: float) -> None:
        if await self._place.commit(at, self._place.desk.spans, spans) and self._hand.evidence is not None:
            self._view.say(HELP)

    def _follow(self) -> None:
        text, evidence = self._view.text, self._hand.evidence
        if text is not None and evidence is not None:
            dragged_span = next(t for t in text.texts if t.name == evidence.picker.name)
            self._view.texts.turn_to(dragged_span, evidence.picker.start)


def _offset(text: str, at: Offset | None, default: int) -> int:
    """Return the offset of a line and column in a text, or `default` if the position is None."""
    if at is None:
        return default
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: at.y]) + min(
        at.x, len(lines[at.y]) if at.y < len(lines) else 0
    )
