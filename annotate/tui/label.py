"""The labelling screen: one unit, one key per label, every key committed before the next is looked at.

`take` is the one way in for keys: labels first, which are single characters, then commands; while
marking, the keys of marking. Clicks and the menu come through the same queue (`picked`, `app.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from textual import events
from textual.widgets import Static

from annotate.sitting.blind import Busy
from annotate.sitting.desk import Desk, TimeSpent
from annotate.sitting.events import State, UnitStatus
from annotate.tui import intentions
from annotate.tui.afterwards import Afterwards
from annotate.tui.commands import Commands
from annotate.tui.intentions import HeldKeys, Intention, Intentions
from annotate.tui.marking import Marking
from annotate.tui.view import UnitScreen
from judge.errors import AdjudgeError

T = TypeVar("T")
PATIENCE = 10.0
"""Seconds that a commit waits for another program that writes in the study; keys wait with it."""
TELL_AFTER = 0.3


class LabelScreen(UnitScreen):
    """Takes intentions; what commands, marking and the time after a commit mean is in their own rooms."""

    def __init__(
        self, desk: Desk, keymap: dict[str, str], typed: Intentions, *, held_ms: float | None = None
    ) -> None:
        super().__init__(desk, keymap)
        self.typed, self._held = typed, HeldKeys(held_ms)
        self.commands, self.marking, self.afterwards = Commands(self), Marking(self), Afterwards(self)
        self._command_of = {key: name for name, keys in self.keys.items() for key in keys}
        self._pressed = 0.0
        """When the mouse was pressed last, monotonic."""
        self.refused: str | None = None
        """Why the last change was not stored."""

    def on_mount(self) -> None:
        """A batch without anything left to answer begins at its end."""
        self.begin()
        if self.counts["open"] == 0 and self.desk.second_open() is None:
            self.typed.put(Intention(act=self.commands.finish))

    async def take(self, one: Intention) -> bool:
        """Do what a key means. False for the few that Textual knows: the menu, copying."""
        self.clock.touch()
        if self.has_class("-too-small"):
            self.refuse("the terminal is too small to label in")
            return True
        if not one.key:
            self.say("pasted text labels nothing: + opens a note", error=True)
            return True
        held = self.is_held(one)
        found = self._label_of(one.character)
        if self.evidence is not None:
            if not await self.marking.take(one):
                if one.key.startswith("ctrl+"):
                    return False
                self.refuse(
                    "marking goes on: Esc ends it, then a label is a label" if found else "Esc ends marking"
                )
        elif found is not None and held:
            self.refuse("a key held down labels nothing")
        elif found is not None:
            await self.answer(*found, one.at)
        elif name := self._command_of.get(one.key):
            await self.commands.run(name, one.at)
        elif one.key.startswith("ctrl+"):
            return False
        elif one.character and one.character.isprintable():
            self.refuse(f"{one.character} is no key here; ? shows all keys")
        return True

    def is_held(self, one: Intention) -> bool:
        """Whether a key is held down; asked of every key, void ones too, since a held one goes on through them."""
        return self._held.is_held(one)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """The mouse is work too."""
        self.clock.touch()
        self._pressed = event.time

    def on_text_selected(self) -> None:
        """A text was dragged over: that is evidence. One mark lies in one text."""
        chosen = {widget.id: selection for widget, selection in self.selections.items()}
        panes = [name for name in ("body", "aside") if name in chosen]
        if not panes:
            return
        self.clear_selection()
        if len(chosen) > 1:
            self.refuse("a mark lies in one text: drag within it")
            return
        content = self.query_one(f"#{panes[0]}", Static).content
        act = self.marking.dragged(panes[0] == "aside", chosen[panes[0]], str(content))
        if act is not None:
            self._clicked(act)

    def knows(self, key: str) -> bool:
        """Whether a key is that of a command."""
        return key in self._command_of

    def _label_of(self, character: str | None) -> tuple[str, str] | None:
        if not character:
            return None
        fields = self.desk.fields
        order = [self.active, *fields] if self.active else fields
        for field in order:
            value = self.task_keys[field].get(character)
            if value is not None:
                return field, value
        return None

    def action_pick(self, question: int, label: int) -> None:
        """A click on a label: it is for the unit that was clicked on."""
        field = self.desk.fields[question]
        value, at = list(self.task_keys[field].values())[label], monotonic()
        self._clicked(lambda: self.answer(field, value, at))

    def action_go(self, position: int) -> None:
        """A click on a part of the answer."""

        async def go() -> None:
            self.show(position)

        self._clicked(go)

    def _clicked(self, act: Callable[[], Awaitable[None]]) -> None:
        unit, since = self.unit.position, self.since_paint(self._pressed)
        # A double click is one click: its second half comes before anybody has seen the next unit.
        seen = since is not None and since >= intentions.SETTLE

        async def checked() -> None:
            if self.has_class("-too-small") or self.app.screen is not self:
                return
            if seen and self.unit.position == unit:
                await act()
            else:
                self.refuse("another unit came up before the click; nothing was done")

        self.typed.put(Intention(act=checked))

    # Committing

    async def answer(self, field: str, value: str, at: float) -> None:
        """A label: commit it, then go on or show what is to be shown."""
        if self.phase != "label":
            await self.afterwards.answer(field, value, at)
            return
        was_done = self.unit.state.status(self.desk.fields) is UnitStatus.DONE
        state = await self.label(field, value, at)
        if state is not None:
            await self.labelled(state, was_done, value)

    async def label(self, field: str, value: str, at: float) -> State | None:
        """Commit a label of the unit on the screen."""
        position = self.unit.position
        return await self.commit(lambda spent: self.desk.label(position, field, value, spent), at)

    async def labelled(self, state: State, was_done: bool, value: str) -> None:
        """After the commit: the next question, what is to be shown, or the next unit."""
        self.unit.state = state
        self.recount()
        if state.status(self.desk.fields) is not UnitStatus.DONE:
            self.active = state.next_field(self.desk.fields)
            self.draw_labels()
            self.say("")
        elif self.afterwards.due:
            # An undo that is on its way takes back a label that nothing has been shown for.
            if self.typed.next_key() not in self.keys["undo"]:
                await self.afterwards.unveil()
        elif was_done:
            self.settle()
            self.draw_labels()
            self.say(f"changed to {value}; → goes on" if value else "changed; → goes on")
        else:
            await self.commands.advance()

    async def commit(self, change: Callable[[TimeSpent], T], at: float) -> T | None:
        """Do something that commits, with the times of the unit; None when it was refused, which has been told."""
        position, seen = self.unit.position, self.since_paint(at)
        spent = self.take_time()._replace(shown_ms=0 if seen is None else round(seen * 1000))
        done = await self.attempt(lambda: change(spent))
        if done is None:
            self.give_back(position, spent)
        return done

    async def attempt(self, change: Callable[[], T]) -> T | None:
        """Do something that commits. While another program writes in the study it waits, and so do the keys."""
        begun, told = monotonic(), False
        while True:
            try:
                done = change()
            except Busy as e:
                waited = monotonic() - begun
                if waited > PATIENCE:
                    self._not_stored(e)
                    return None
                if waited > TELL_AFTER and not told:
                    told = True
                    self.say("waiting for another program that writes in the study; no key is lost")
                await asyncio.sleep(0.001)
            except AdjudgeError as e:
                self._not_stored(e)
                return None
            else:
                self.refused = None
                if told:
                    self.say("")
                return done

    def _not_stored(self, e: AdjudgeError) -> None:
        self.refused = str(e)
        self.refuse(f"not stored: {e}")

    def refuse(self, why: str) -> None:
        """Say why something was not done; what was typed behind it before this could be seen is dropped."""
        self.say(why, error=True)
        self.app.bell()
        self.typed.refuse()
        self.app.screen.call_after_refresh(self.typed.seen)
