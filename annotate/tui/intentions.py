"""One queue of intentions: the user's key presses, clicks and menu choices in their order, for one consumer.

Textual runs a screen's `on_key` at once, and a binding only after the key has bubbled to the app. Two paths can change
the order: in a burst, `s`, Backspace, `r` was stored as support, refute, undo. So every key goes into this queue, and
the app finishes one intention (commit, dialog, next unit) before it takes the next.

If an intention is refused, later ones that were typed before the refusal could be seen are void. Otherwise a label
typed ahead for the next unit would be given to this one. `refuse` starts this, and `take` returns them as void.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

from textual import events

SETTLE = 0.3
"""Seconds after a paint within which a key cannot be a response to the new screen."""
HELD_MS = 40
"""A third identical label key within this many milliseconds after the second is a held key."""
RELEASED = 0.25
"""Seconds without a repetition after which a held key was released. A busy machine delivers repetitions unevenly."""


@dataclass(slots=True)
class Intention:
    """A key press or pasted text (`event`), or an action from a click or the menu (`act`), with its monotonic time."""

    event: events.Key | events.Paste | None = None
    act: Callable[[], Awaitable[None]] | None = None
    at: float = field(default_factory=monotonic)

    @property
    def key(self) -> str:
        """The key's name in Textual; empty for a paste or an action."""
        return self.event.key if isinstance(self.event, events.Key) else ""

    @property
    def character(self) -> str | None:
        """The character that the key types."""
        return self.event.character if isinstance(self.event, events.Key) else None


class Intentions:
    """A queue that can be inspected, and that makes intentions void after a refusal."""

    def __init__(self) -> None:
        self._waiting: deque[Intention] = deque()
        self._there = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._void_until = -math.inf
        self.dropped = 0
        """Intentions void since the last refusal."""

    def put(self, intention: Intention, *, first: bool = False) -> None:
        """Add an intention; `first` for one that follows from the key being handled."""
        (self._waiting.appendleft if first else self._waiting.append)(intention)
        self._idle.clear()
        self._there.set()

    async def take(self) -> tuple[Intention, bool]:
        """Wait for the next intention. Return it, and whether it is valid."""
        while not self._waiting:
            self._idle.set()
            self._there.clear()
            await self._there.wait()
        intention = self._waiting.popleft()
        # The time of typing decides, not the time of handling: on a slow machine they are far apart.
        valid = intention.at > self._void_until
        self.dropped += not valid
        return intention, valid

    def next_key(self) -> str:
        """Return the next key in the queue if it is valid, otherwise an empty string."""
        if self._waiting and self._waiting[0].at > self._void_until:
            return self._waiting[0].key
        return ""

    async def done(self) -> None:
        """Wait until the queue is empty and its last intention is finished."""
        await self._idle.wait()

    def refuse(self) -> None:
        """Make all intentions void that were typed before `seen` is called."""
        # Nobody has seen the refusal before it is painted, however long that takes.
        self._void_until = math.inf
        self.dropped = 0

    def seen(self) -> None:
        """Record that the refusal is painted: keys typed at least SETTLE seconds later are valid again."""
        self._void_until = monotonic() + SETTLE


class HeldKeys:
    """A detector of keys that are held down, as opposed to pressed repeatedly."""

    def __init__(self, within_ms: float | None = None) -> None:
        self._within = (HELD_MS if within_ms is None else within_ms) / 1000
        self._last, self._at, self._run = "", -math.inf, 0

    def is_held(self, intention: Intention) -> bool:
        """Return whether this key press is at least the third of a fast series of the same key."""
        name = intention.key
        # Once held, a longer pause is needed: otherwise a busy machine would let a held key label again.
        within = max(self._within, RELEASED) if self._run >= 3 else self._within
        again = self._within > 0 and name == self._last and intention.at - self._at <= within
        self._run = self._run + 1 if again else 1
        self._last, self._at = name, intention.at
        # Two quick presses can be on purpose: two units may have the same label.
        return self._run >= 3
