"""The queue of the user's actions (key presses, clicks and menu choices), which are handled one by one, in order.

Textual runs a screen's `on_key` immediately, but runs a binding only after the key has bubbled to the app. With these
two paths, the order can change: in a burst, the keys `s`, Backspace, `r` were stored as support, refute, undo.
Therefore every key goes into this queue, and the app finishes one action (commit, dialog, next unit) before it takes
the next.

When an action is refused, all actions that were typed before the refusal was visible are discarded. Otherwise a label
that was typed ahead for the next unit would be given to the current unit.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

from textual import events

SETTLE = 0.3
"""The seconds within which nobody can react to a new screen. A key pressed earlier was typed ahead."""
HELD_MS = 40
"""A key counts as held down at its third press, if presses follow each other within this many milliseconds."""
# A busy machine delivers repetitions unevenly, so this is longer than HELD_MS.
RELEASED = 0.25
"""A held key counts as released after this many seconds without a repetition."""


@dataclass(slots=True)
class UserAction:
    """One action of the user, and the monotonic time at which it occurred (`at`).

    A key press or pasted text has an `event`. A click or a menu choice has a `callback`.
    """

    event: events.Key | events.Paste | None = None
    callback: Callable[[], Awaitable[None]] | None = None
    at: float = field(default_factory=monotonic)

    @property
    def key(self) -> str:
        """Textual's name for the key, or an empty string for a paste, a click or a menu choice."""
        return self.event.key if isinstance(self.event, events.Key) else ""

    @property
    def character(self) -> str | None:
        """The character that the key types, or None if it types no character."""
        return self.event.character if isinstance(self.event, events.Key) else None


class ActionQueue:
    """A queue of actions. After a refusal, it marks actions as invalid if they were typed before the refusal was visible."""

    def __init__(self) -> None:
        self._waiting: deque[UserAction] = deque()
        self._there = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._void_until = -math.inf
        self.dropped = 0
        """The number of invalid actions that were taken from the queue since the last refusal."""

    def add(self, action: UserAction, *, first: bool = False) -> None:
        """Add an action at the end of the queue. If `first` is true, add it at the front instead.

        An action goes to the front if the action that is now being handled caused it.
        """
        (self._waiting.appendleft if first else self._waiting.append)(action)
        self._idle.clear()
        self._there.set()

    async def take(self) -> tuple[UserAction, bool]:
        """Wait for the next action, and take it from the queue. Return the action and whether it is valid."""
        while not self._waiting:
            self._idle.set()
            self._there.clear()
            await self._there.wait()
        action = self._waiting.popleft()
        # What counts is the time of typing. On a slow machine, the action may be handled much later.
        valid = action.at > self._void_until
        self.dropped += not valid
        return action, valid

    def next_key(self) -> str:
        """Return the next key without taking it, or an empty string if the next action is not a valid key press."""
        if self._waiting and self._waiting[0].at > self._void_until:
            return self._waiting[0].key
        return ""

    async def wait_until_done(self) -> None:
        """Wait until the queue is empty and its last action is finished."""
        await self._idle.wait()

    def refuse(self) -> None:
        """Invalidate all actions that are typed before the refusal is on the screen (see `record_seen`)."""
        # Nobody can have seen the refusal before it is painted.
        self._void_until = math.inf
        self.dropped = 0

    def record_seen(self) -> None:
        """Record that the refusal is on the screen now. Actions typed at least SETTLE seconds later are valid again."""
        self._void_until = monotonic() + SETTLE


class HeldKeys:
    """A detector that distinguishes a key that is held down from a key that is pressed repeatedly."""

    def __init__(self, within_ms: float | None = None) -> None:
        self._within = (HELD_MS if within_ms is None else within_ms) / 1000
        self._last, self._at, self._run = "", -math.inf, 0

    def is_held(self, action: UserAction) -> bool:
        """Count a key press. Return whether it is at least the third in a rapid series of presses of the same key."""
        name = action.key
        # Once a key is held, only a longer pause counts as a release. Otherwise a busy machine would label again.
        within = max(self._within, RELEASED) if self._run >= 3 else self._within
        again = self._within > 0 and name == self._last and action.at - self._at <= within
        self._run = self._run + 1 if again else 1
        self._last, self._at = name, action.at
        # Two quick presses can be intended, because two units may have the same label.
        return self._run >= 3
