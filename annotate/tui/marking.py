"""Marking evidence: by keyboard until Escape, and with the mouse whenever a text is dragged over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING

from textual.geometry import Offset
from textual.selection import Selection

from annotate.tui.evidence import HELP, Evidence, dragged_over, with_span, without_span
from annotate.tui.intentions import Intention
from annotate.tui.keymap import symbol

if TYPE_CHECKING:
    from annotate.tui.label import LabelScreen

WORDS = {"left": -1, "right": 1}
SENTENCES = {"up": -1, "down": 1}
TEXTS = {"tab": 1, "shift+tab": -1}


class Marking:
    """The mode in which arrows move a cursor over words, and Enter marks."""

    def __init__(self, screen: LabelScreen) -> None:
        self._screen = screen

    async def begin(self, at: float) -> None:
        """The cursor stands where the last search, or a highlight, is."""
        screen, text = self._screen, self._screen.text
        evidence = Evidence(text.texts, text.first) if text is not None else Evidence([])
        if not evidence.usable:
            screen.refuse("there is no text to mark in")
            return
        screen.evidence, screen.pane = evidence, "text"
        screen.draw()
        self._follow()
        screen.say(HELP)

    async def take(self, one: Intention) -> bool:
        """A key while marking; False when it is none of marking's."""
        screen, evidence, key = self._screen, self._screen.evidence, one.key
        if evidence is None:
            return False
        spans, name = screen.unit.state.spans, evidence.picker.name
        if key in WORDS:
            evidence.word(WORDS[key])
        elif key in SENTENCES:
            evidence.sentence(SENTENCES[key])
        elif key in TEXTS:
            evidence.text(TEXTS[key])
        elif key == "space":
            evidence.begin()
        elif key == "enter":
            await self._mark(with_span(spans, name, *evidence.span()), one.at)
        elif key in ("backspace", "delete"):
            await self._mark(without_span(spans, name, evidence.picker.start), one.at)
        elif key == "escape" or key in screen.keys["evidence"]:
            screen.evidence = None
            screen.say("")
        else:
            return False
        screen.draw()
        if screen.evidence is not None:
            self._follow()
        return True

    def dragged(self, beside: bool, selection: Selection, pane: str) -> Callable[[], Awaitable[None]] | None:
        """What a drag over the text `pane` asks for; None when it went over no word."""
        text, found = self._screen.text, None
        if text is not None:
            ends = (_place(pane, selection.start, 0), _place(pane, selection.end, len(pane)))
            found = dragged_over(text.texts, beside, *ends)
        if found is None:
            return None
        name, start, end = found

        async def mark() -> None:
            screen = self._screen
            await self._mark(with_span(screen.unit.state.spans, name, start, end), monotonic())
            screen.draw()
            if screen.refused is None and screen.evidence is None:
                undo = symbol(screen.keys["undo"][0]) if screen.keys["undo"] else "undo in the menu"
                screen.say(f"marked as evidence; {undo} takes it back")

        return mark

    async def _mark(self, spans: list[tuple[str, int, int]], at: float) -> None:
        screen, position = self._screen, self._screen.unit.position
        state = await screen.commit(lambda spent: screen.desk.spans(position, spans, spent), at)
        if state is not None:
            screen.unit.state = state
            if screen.evidence is not None:
                screen.say(HELP)

    def _follow(self) -> None:
        screen = self._screen
        text, evidence = screen.text, screen.evidence
        if text is not None and evidence is not None:
            found = next(t for t in text.texts if t.name == evidence.picker.name)
            screen.texts.turn_to(found, evidence.picker.start)


def _place(text: str, at: Offset | None, default: int) -> int:
    """Where a line and a column are in a text; None is its beginning, or its end."""
    if at is None:
        return default
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: at.y]) + min(
        at.x, len(lines[at.y]) if at.y < len(lines) else 0
    )
