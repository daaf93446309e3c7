"""What the parts of the labelling screen share: the unit at hand, how it looks, what is typed; and the one way
in which anything is committed or refused."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import ParamSpec, TypeVar

from textual.screen import Screen

from annotate.sitting.blind import Busy
from annotate.sitting.events import State
from annotate.tui.at_hand import AtHand
from annotate.tui.intentions import Intentions
from annotate.tui.view import UnitView
from judge.errors import AdjudgeError

P = ParamSpec("P")
T = TypeVar("T")
PATIENCE = 10.0
"""Seconds that a commit waits for another program that writes in the study; keys wait with it."""
TELL_AFTER = 0.3


class Workplace:
    """The unit at hand on the screen. What is drawn has been committed."""

    def __init__(self, hand: AtHand, view: UnitView, typed: Intentions) -> None:
        self.hand, self.view, self.typed = hand, view, typed
        self.desk = hand.desk
        self.refused: str | None = None
        """Why the last change was not stored."""

    def show(self, position: int, message: str = "") -> None:
        """Go to a unit."""
        self.hand.go(position)
        self.view.show()
        self.view.say(message)

    async def open(self, screen: Screen[None]) -> None:
        """A box, or the list, above this screen: it takes the keys until it is closed."""
        await self.view.app.push_screen(screen)

    def recount(self) -> None:
        """Progress and pace, after an event."""
        self.hand.recount()
        self.view.draw_top()

    async def commit(self, at: float, change: Callable[..., State], *what: object) -> bool:
        """Commit `change(position, *what, times)` of the unit at hand, for a key typed at `at`. Whether it was
        stored; when it was not, that has been told."""
        unit, seen = self.hand.unit, self.view.since_paint(at)
        spent = self.hand.take_time()._replace(shown_ms=0 if seen is None else round(seen * 1000))
        state = await self.attempt(change, unit.position, *what, spent)
        if state is None:
            self.hand.give_back(spent)
        else:
            unit.state = state
        return state is not None

    async def attempt(self, change: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Do something that commits. While another program writes in the study it waits, and so do the keys."""
        begun, told = monotonic(), False
        while True:
            try:
                done = change(*args, **kwargs)
            except Busy as e:
                waited = monotonic() - begun
                if waited > PATIENCE:
                    self._not_stored(e)
                    return None
                if waited > TELL_AFTER and not told:
                    told = True
                    self.view.say("waiting for another program that writes in the study; no key is lost")
                await asyncio.sleep(0.001)
            except AdjudgeError as e:
                self._not_stored(e)
                return None
            else:
                self.refused = None
                if told:
                    self.view.say("")
                return done

    def _not_stored(self, e: AdjudgeError) -> None:
        self.refused = str(e)
        self.refuse(f"not stored: {e}")

    def refuse(self, why: str) -> None:
        """Say why something was not done; what was typed behind it before this could be seen is dropped."""
        self.view.say(why, error=True)
        self.view.app.bell()
        self.typed.refuse()
        self.view.app.screen.call_after_refresh(self.typed.seen)
