"""The queue of the user's actions (key presses, clicks and menu choices), which are handled one by one in their order.

Textual runs a screen's `on_key` at once, but a binding only after the key has bubbled to the app. These two paths can
change the order: in a burst, `s`, Backspace, `r` was stored as support, refute, undo. So every key goes into this
queue, and the app finishes one action (commit, dialog, next unit) before it takes the next.

When an action is refused, the actions that were typed before anybody could see the refusal become void. Otherwise a
label typed ahead for the next unit would be given to this one.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

from textual import events

SETTLE = 0.3
"""Nobody reacts to a new screen within this many seconds, so an earlier key was typed ahead."""
HELD_MS = 40
"""A key that is pressed a third time within this many milliseconds after the second is held down."""
# A busy machine delivers repetitions unevenly, so this is longer than HELD_MS.
RELEASED = 0.25
"""A held key counts as released after this many seconds without a repetition."""


@dataclass(slots=True)
class UserAction:
    """A key press or pasted text (`event`), or a click or menu choice (`callback`), with its monotonic time."""

    event: events.Key | events.Paste | None = None
    callback: Callable[[], Awaitable[None]] | None = None
    at: float = field(default_factory=monotonic)

    @property
    def key(self) -> str:
        """The key's name in Textual, or an empty string for a paste, a click or a menu choice."""
        return self.event.key if isinstance(self.event, events.Key) else ""

    @property
    def character(self) -> str | None:
        """The character that the key types, or None if it types no character."""
        return self.event.character if isinstance(self.event, events.Key) else None


class ActionQueue:
    """A queue in which waiting actions become void after a refusal."""

    def __init__(self) -> None:
        self._waiting: deque[UserAction] = deque()
        self._there = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._void_until = -math.inf
        self.dropped = 0
        """The number of actions since the last refusal that were void."""

    def put(self, action: UserAction, *, first: bool = False) -> None:
        """Add an action at the end or, if it results from the action being handled, at the front (`first`)."""
        (self._waiting.appendleft if first else self._waiting.append)(action)
        self._idle.clear()
        self._there.set()

    async def take(self) -> tuple[UserAction, bool]:
        """Wait for the next action. Return the action and whether it is valid."""
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
        """Return the next key in the queue if it is valid, otherwise an empty string."""
        if self._waiting and self._waiting[0].at > self._void_until:
            return self._waiting[0].key
        return ""

    async def done(self) -> None:
        """Wait until the queue is empty and its last action is finished."""
        await self._idle.wait()

    def refuse(self) -> None:
        """Make all actions void that are typed before `seen` is called."""
        # Nobody can have seen the refusal before it is painted.
        self._void_until = math.inf
        self.dropped = 0

    def seen(self) -> None:
        """Record that the refusal is painted: keys typed at least SETTLE seconds later are valid again."""
        self._void_until = monotonic() + SETTLE


class HeldKeys:
    """A detector of keys that are held down and not just pressed repeatedly."""

    def __init__(self, within_ms: float | None = None) -> None:
        self._within = (HELD_MS if within_ms is None else within_ms) / 1000
        self._last, self._at, self._run = "", -math.inf, 0

    def is_held(self, action: UserAction) -> bool:
        """Count a key press. Return whether it is at least the third of a fast series of the same key."""
        name = action.key
        # Once a key is held, only a longer pause counts as a release. Otherwise a busy machine would label again.
        within = max(self._within, RELEASED) if self._run >= 3 else self._within
        again = self._within > 0 and name == self._last and action.at - self._at <= within
        self._run = self._run + 1 if again else 1
        self._last, self._at = name, action.at
        # Two quick presses can be intended, because two units may have the same label.
        return self._run >= 3
