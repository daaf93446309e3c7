"""The labelling screen, which shows one unit and has one key per label.

The screen consists of the unit's state (`at_hand`), the view that draws the state, the workplace that commits changes,
and the key handlers (`form`, `commands`, `marking`). `take` passes each key to one handler. While evidence is being
marked, this is `marking`. Otherwise, label keys go to `form`, and all other keys go to `commands`. Clicks and menu
choices go through the same queue as keys (`_handle_click`, `app.py`).
"""

from collections.abc import Awaitable, Callable
from time import monotonic

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from annotate.sitting.desk import Desk
from annotate.tui import actions
from annotate.tui.actions import ActionQueue, HeldKeys, UserAction
from annotate.tui.at_hand import AtHand
from annotate.tui.commands import ONCE, Commands
from annotate.tui.label_panel import PICK
from annotate.tui.marking import Marking
from annotate.tui.settings import read_held_ms
from annotate.tui.view import UnitView
from annotate.tui.workplace import Workplace


class LabelScreen(Screen[None]):
    """The labelling screen. It passes each key, click and change of size to the part that handles it."""

    def __init__(self, desk: Desk, keymap: dict[str, str], typed: ActionQueue) -> None:
        super().__init__()
        self.hand = AtHand(desk, keymap)
        self.view = UnitView(self.hand)
        self.place = Workplace(self.hand, self.view, typed)
        self.marking = Marking(self.place)
        self.commands = Commands(self.place, self.marking)
        self.held_keys = HeldKeys(read_held_ms())
        self.command_of = {key: name for name, keys in self.hand.keys.items() for key in keys}
        """A map from each key to its command."""
        self._pressed = 0.0
        """The monotonic time of the last mouse press."""

    def compose(self) -> ComposeResult:
        """Yield the view's widgets."""
        yield from self.view.compose()

    def on_mount(self) -> None:
        """Show the first unit on which the user must still keep or revise a label.

        If there is no such unit, show the first open unit or the end of the batch.
        """
        desk = self.hand.desk
        self.view.fit(self.app.size)
        self.place.show(desk.first())
        if desk.following(0) is None:
            self.place.typed.add(UserAction(callback=self.commands.finish))

    def on_resize(self, event: events.Resize) -> None:
        """Fit the layout to the terminal's new size."""
        self.view.fit(event.size)

    async def take(self, action: UserAction) -> bool:
        """Handle a key. Return False for keys that Textual handles, which open the menu or copy text."""
        hand, refuse = self.hand, self.place.refuse
        if self.view.small:
            refuse("the terminal is too small for labelling")
            return True
        if not action.key:
            # Each letter of a pasted text could be a label.
            self.view.say("pasted text is not read as labels; press + to open a note", error=True)
            return True
        # This comes first, because all keys must be counted, also while evidence is being marked.
        is_repeated = self.held_keys.is_held(action)
        label = hand.label_of(action.character)
        if hand.evidence is not None:
            if not await self.marking.take(action):
                if action.key.startswith("ctrl+"):
                    return False
                refuse(
                    "you are still marking: press Esc first, then the label" if label else "Esc ends marking"
                )
        elif label is not None and is_repeated:
            refuse("holding a key down does not repeat a label")
        elif label is not None:
            await self.commands.answer(*label, action.at)
        elif name := self.command_of.get(action.key):
            if is_repeated and name in ONCE:
                refuse("holding a key down does not repeat this command")
            else:
                await self.commands.run(name, action.at)
        elif action.key.startswith("ctrl+"):
            return False
        elif action.character and action.character.isprintable():
            refuse(f"the key {action.character} has no function here; ? shows all keys")
        return True

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Record when a mouse button was pressed."""
        # The click event comes when the button is released. By then, another unit may be on the screen.
        self._pressed = event.time

    def on_text_selected(self) -> None:
        """Mark the selected text as evidence."""
        chosen = {widget.id: selection for widget, selection in self.selections.items()}
        panes = [name for name in ("body", "aside") if name in chosen]
        if not panes:
            return
        self.clear_selection()
        if len(chosen) > 1:
            self.place.refuse("a mark must be within one text")
            return
        content = self.query_one(f"#{panes[0]}", Static).content
        act = self.marking.mark_drag(panes[0] == "aside", chosen[panes[0]], str(content))
        if act is not None:
            self._handle_click(act)

    def on_click(self, event: events.Click) -> None:
        """Give the label whose rows were clicked."""
        if PICK not in event.style.meta:
            return
        question, label = event.style.meta[PICK]
        field = self.hand.desk.fields[question]
        value, at = list(self.hand.labels[field].values())[label], monotonic()
        self._handle_click(lambda: self.commands.answer(field, value, at))

    def action_go(self, position: int) -> None:
        """Go to the part of the answer that was clicked."""

        async def go() -> None:
            self.place.show(position)

        self._handle_click(go)

    def _handle_click(self, act: Callable[[], Awaitable[None]]) -> None:
        unit, since = self.hand.unit.position, self.view.since_paint(self._pressed)
        # The second half of a double click comes before anybody has seen the next unit.
        seen = since is not None and since >= actions.SETTLE

        async def checked() -> None:
            if self.view.small or self.app.screen is not self:
                return
            # The action has waited in the queue: keys before it may have led to another unit.
            if seen and self.hand.unit.position == unit:
                await act()
            else:
                self.place.refuse("the click was ignored, because the unit had just changed")

        self.place.typed.add(UserAction(callback=checked))
