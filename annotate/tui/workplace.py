"""The shared state of the labelling screen (unit, view, queue), and the functions that commit or refuse an action."""

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any, ParamSpec, TypeVar

from textual.screen import Screen

from annotate.sitting.blind import Busy
from annotate.sitting.events import State
from annotate.tui.actions import ActionQueue
from annotate.tui.at_hand import AtHand
from annotate.tui.dialogs import Ask, Dialog
from annotate.tui.view import UnitView
from judge.errors import AdjudgeError

P = ParamSpec("P")
T = TypeVar("T")
PATIENCE = 10.0
"""The maximum time, in seconds, that a commit waits while another program writes to the study. Later keys wait, too."""
TELL_AFTER = 0.3


class Workplace:
    """The current unit and the screen that shows it. Only committed changes are drawn."""

    def __init__(self, hand: AtHand, view: UnitView, typed: ActionQueue) -> None:
        self.hand, self.view, self.typed = hand, view, typed
        self.desk = hand.desk
        self.refused: str | None = None
        """The reason why the last change was not stored, or None if it was stored."""

    def show(self, position: int, message: str = "") -> None:
        """Go to a unit, and show a message at the bottom."""
        self.hand.go(position)
        self.view.show()
        self.view.say(message)

    async def open(self, screen: Screen[None]) -> None:
        """Show a dialog or the list in front of this screen. The dialog or list handles the keys until it is closed."""
        await self.view.app.push_screen(screen)

    async def ask(self, title: str, draft: str, before: str, **options: Any) -> None:
        """Show an `Ask` dialog for entering text about the current unit.

        Text that was typed but not stored is kept as the draft named `draft`, even if the program is restarted.
        """
        desk, position = self.desk, self.hand.unit.position

        def on_escape(text: str) -> None:
            if text != before:
                self.view.say("the text was not stored; press the same key to open it again", error=True)

        keep = partial(desk.keep_draft, position, draft)
        kept = desk.draft(position, draft)
        await self.open(Ask(title, before=before, draft=kept, keep=keep, on_escape=on_escape, **options))

    def recount(self) -> None:
        """Recompute and draw the progress and the pace after an event."""
        self.hand.recount()
        self.view.draw_top()

    async def commit(self, at: float, change: Callable[..., State], *values: object) -> bool:
        """Commit a change to the current unit by calling `change(position, *values, times)`.

        `at` is the time at which the user typed the key. Return whether the change was stored. If it was not, show the
        reason.
        """
        unit, seen = self.hand.unit, self.view.since_paint(at)
        spent = self.hand.take_time()._replace(shown_ms=0 if seen is None else round(seen * 1000))
        state = await self.attempt(change, unit.position, *values, spent)
        if state is None:
            self.hand.give_back(spent)
        else:
            # Draw only now, because the screen never shows anything that is not stored.
            unit.state = state
        return state is not None

    async def attempt(self, change: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Call a function that commits, and return its result. While the study is locked, repeat the call.

        Return None if the commit fails.
        """
        # The keys wait too, because a label must not be stored before the label that was typed before it.
        begun, is_shown = monotonic(), False
        while True:
            try:
                done = change(*args, **kwargs)
            except Busy as e:
                waited = monotonic() - begun
                if waited > PATIENCE:
                    self._handle_not_stored(e)
                    return None
                if waited > TELL_AFTER and not is_shown:
                    is_shown = True
                    self.view.say("another program is writing to the study; your keys are kept")
                # During this wait, the screen is painted and keys go into the queue.
                await asyncio.sleep(0.001)
            except AdjudgeError as e:
                self._handle_not_stored(e)
                return None
            else:
                self.refused = None
                if is_shown:
                    self.view.say("")
                return done

    def _handle_not_stored(self, e: AdjudgeError) -> None:
        self.refused = str(e)
        self.refuse(f"not stored: {e}")

    def refuse(self, reason: str) -> None:
        """Show why an action was refused, and discard the keys that were typed before the user could see this."""
        self.view.say(reason, error=True)
        screen = self.view.app.screen
        if isinstance(screen, Dialog):
            screen.say(reason)
        # Annotators look at the text while they type, and not at the foot of the screen.
        self.view.app.bell()
        self.typed.refuse()
        screen.call_after_refresh(self.typed.record_seen)
