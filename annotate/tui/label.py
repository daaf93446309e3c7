"""The labelling screen: one unit, one key per label, every key committed before the next is looked at.

It has its parts: what is at hand, the view that draws it, the workplace where things are committed, and those who
know what a key means there: the form of the unit, commands, marking. `take` is the one way in for keys: labels first, which
are single characters, then commands; while marking, the keys of marking. Clicks and the menu come through the
same queue (`_clicked`, `app.py`).
"""

from collections.abc import Awaitable, Callable
from time import monotonic

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from annotate.sitting.desk import Desk
from annotate.tui import intentions
from annotate.tui.at_hand import AtHand
from annotate.tui.commands import ONCE, Commands
from annotate.tui.intentions import HeldKeys, Intention, Intentions
from annotate.tui.marking import Marking
from annotate.tui.view import UnitView
from annotate.tui.workplace import Workplace


class LabelScreen(Screen[None]):
    """Keys, clicks and sizes come in here and go to the part that knows them."""

    def __init__(
        self, desk: Desk, keymap: dict[str, str], typed: Intentions, *, held_ms: float | None = None
    ) -> None:
        super().__init__()
        self.hand = AtHand(desk, keymap)
        self.view = UnitView(self.hand)
        self.place = Workplace(self.hand, self.view, typed)
        self.marking = Marking(self.place)
        self.commands = Commands(self.place, self.marking)
        self._held = HeldKeys(held_ms)
        self._command_of = {key: name for name, keys in self.hand.keys.items() for key in keys}
        self._pressed = 0.0
        """When the mouse was pressed last, monotonic."""

    def compose(self) -> ComposeResult:
        """The widgets of the view."""
        yield from self.view.compose()

    def on_mount(self) -> None:
        """Resume where work stopped: a second layer that is missing, else the first open unit, else the end."""
        desk = self.hand.desk
        self.view.fit(self.app.size)
        second = desk.second_open()
        self.place.show(second or desk.next_open() or desk.neighbour(0, 1) or 1)
        if self.hand.counts["open"] == 0 and second is None:
            self.place.typed.put(Intention(act=self.commands.finish))

    def on_resize(self, event: events.Resize) -> None:
        """Another layout."""
        self.view.fit(event.size)

    async def take(self, one: Intention) -> bool:
        """Do what a key means. False for the few that Textual knows: the menu, copying."""
        hand, refuse = self.hand, self.place.refuse
        if self.view.small:
            refuse("the terminal is too small to label in")
            return True
        if not one.key:
            self.view.say("pasted text labels nothing: + opens a note", error=True)
            return True
        held = self.is_held(one)
        found = hand.label_of(one.character)
        if hand.evidence is not None:
            if not await self.marking.take(one):
                if one.key.startswith("ctrl+"):
                    return False
                refuse(
                    "marking goes on: Esc ends it, then a label is a label" if found else "Esc ends marking"
                )
        elif found is not None and held:
            refuse("a key held down labels nothing")
        elif found is not None:
            await self.commands.answer(*found, one.at)
        elif name := self._command_of.get(one.key):
            if held and name in ONCE:
                refuse("a key held down does this no more")
            else:
                await self.commands.run(name, one.at)
        elif one.key.startswith("ctrl+"):
            return False
        elif one.character and one.character.isprintable():
            refuse(f"{one.character} is no key here; ? shows all keys")
        return True

    def is_held(self, one: Intention) -> bool:
        """Whether a key is held down; asked of every key, void ones too, since a held one goes on through them."""
        return self._held.is_held(one)

    def knows(self, key: str) -> bool:
        """Whether a key is that of a command."""
        return key in self._command_of

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """When a click began."""
        self._pressed = event.time

    def on_text_selected(self) -> None:
        """A text was dragged over: that is evidence. One mark lies in one text."""
        chosen = {widget.id: selection for widget, selection in self.selections.items()}
        panes = [name for name in ("body", "aside") if name in chosen]
        if not panes:
            return
        self.clear_selection()
        if len(chosen) > 1:
            self.place.refuse("a mark lies in one text: drag within it")
            return
        content = self.query_one(f"#{panes[0]}", Static).content
        act = self.marking.dragged(panes[0] == "aside", chosen[panes[0]], str(content))
        if act is not None:
            self._clicked(act)

    def action_pick(self, question: int, label: int) -> None:
        """A click on a label: it is for the unit that was clicked on."""
        field = self.hand.desk.fields[question]
        value, at = list(self.hand.labels[field].values())[label], monotonic()
        self._clicked(lambda: self.commands.answer(field, value, at))

    def action_go(self, position: int) -> None:
        """A click on a part of the answer."""

        async def go() -> None:
            self.place.show(position)

        self._clicked(go)

    def _clicked(self, act: Callable[[], Awaitable[None]]) -> None:
        unit, since = self.hand.unit.position, self.view.since_paint(self._pressed)
        # A double click is one click: its second half comes before anybody has seen the next unit.
        seen = since is not None and since >= intentions.SETTLE

        async def checked() -> None:
            if self.view.small or self.app.screen is not self:
                return
            if seen and self.hand.unit.position == unit:
                await act()
            else:
                self.place.refuse("another unit came up before the click; nothing was done")

        self.place.typed.put(Intention(act=checked))
