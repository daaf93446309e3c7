"""One queue of intentions: what a person typed, clicked or chose, in that order, for one consumer.

Textual runs a screen's `on_key` at once and a binding after the key has bubbled to the app: two ways are
two orders. Here every key goes into this queue as it comes, and the app takes one, finishes what it
means (commit, dialog, next unit), then takes the next.

What is refused makes what was typed behind it, before the refusal could be seen, meaningless: a label
typed ahead for the next unit would land on this one. `refuse` says so; such intentions come back from
`take` as void.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

from textual import events

SETTLE = 0.3
"""Seconds after something was painted in which a key cannot be an answer to it."""
HELD_MS = 40
"""A third identical label key within this many milliseconds of the second is a held key."""
RELEASED = 0.25
"""Seconds without it after which a held key has been let go; a busy machine delivers repeats unevenly."""


@dataclass(slots=True)
class Intention:
    """A key or pasted text (`event`), or what a click or the menu asks for (`act`); `at` is when, monotonic."""

    event: events.Key | events.Paste | None = None
    act: Callable[[], Awaitable[None]] | None = None
    at: float = field(default_factory=monotonic)

    @property
    def key(self) -> str:
        """The key's name as Textual has it; empty for what is no key."""
        return self.event.key if isinstance(self.event, events.Key) else ""

    @property
    def character(self) -> str | None:
        """What the key types."""
        return self.event.character if isinstance(self.event, events.Key) else None


class Intentions:
    """The queue; asyncio's, with a look at what comes next, and with the rule about refusals."""

    def __init__(self) -> None:
        self._waiting: deque[Intention] = deque()
        self._there = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._void_until = -math.inf
        self.dropped = 0
        """Intentions void since the last refusal."""

    def put(self, one: Intention, *, first: bool = False) -> None:
        """One more; `first` for what a key already taken asks for."""
        (self._waiting.appendleft if first else self._waiting.append)(one)
        self._idle.clear()
        self._there.set()

    async def take(self) -> tuple[Intention, bool]:
        """The next one, and whether it still means what it meant."""
        while not self._waiting:
            self._idle.set()
            self._there.clear()
            await self._there.wait()
        one = self._waiting.popleft()
        valid = one.at > self._void_until
        self.dropped += not valid
        return one, valid

    def next_key(self) -> str:
        """The key that comes next, if it is there already and means anything."""
        if self._waiting and self._waiting[0].at > self._void_until:
            return self._waiting[0].key
        return ""

    async def done(self) -> None:
        """Wait until all that came has been done."""
        await self._idle.wait()

    def refuse(self) -> None:
        """Something was refused: what comes before `seen` is void."""
        self._void_until = math.inf
        self.dropped = 0

    def seen(self) -> None:
        """The refusal has been painted; from here on, and the time it takes to see it, keys are typed in its sight."""
        self._void_until = monotonic() + SETTLE


class HeldKeys:
    """Tells a key that is held down from one that is pressed again."""

    def __init__(self, within_ms: float | None = None) -> None:
        self._within = (HELD_MS if within_ms is None else within_ms) / 1000
        self._last, self._at, self._run = "", -math.inf, 0

    def is_held(self, one: Intention) -> bool:
        """Whether this is the third or a later one of a run of the same key."""
        name = one.key
        within = max(self._within, RELEASED) if self._run >= 3 else self._within
        again = self._within > 0 and name == self._last and one.at - self._at <= within
        self._run = self._run + 1 if again else 1
        self._last, self._at = name, one.at
        return self._run >= 3
