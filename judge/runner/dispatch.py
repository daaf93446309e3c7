"""Admission of calls: one queue in front of one server or several.

A refused call waits out its own backoff, or the Retry-After of its refusal, and delays no other call.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from judge.errors import ProviderError
from judge.providers.base import Provider
from judge.runner.rate import MOST
from judge.runner.server import End, ModelServer, Slot

EARLY_SECONDS = 0.001
"""A loop's timer is up to this late; the rest is waited for by looking at the clock."""


class Timer(Protocol):
    """A timer that was set."""

    def cancel(self) -> None:
        """Never fire."""


class _Precise:
    """A timer that is not late: spaced calls go out at even distances, to a server that counts them."""

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._at, self._call = self._loop.time() + seconds, call
        self._handle: asyncio.Handle = self._loop.call_later(max(0.0, seconds - EARLY_SECONDS), self._look)

    def _look(self) -> None:
        if self._loop.time() >= self._at:
            self._call()
        else:
            self._handle = self._loop.call_soon(self._look)

    def cancel(self) -> None:
        self._handle.cancel()


class Dispatcher:
    """Admits calls in the order in which they came, each to the server with most room.

    `concurrency` is the number of calls to each server that the user gave, None = none given; `most` is the number that
    the provider can use. `known` has the concurrency that the study last sustained, by address. `patience` is how
    long, in seconds, all servers may be down.
    """

    def __init__(
        self,
        concurrency: int | None,
        providers: Sequence[Provider | None] = (None,),
        patience: float = 1800.0,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], Timer] = _Precise,
        most: int | None = None,
        known: Mapping[str, int] | None = None,
    ) -> None:
        ceiling = concurrency or MOST
        if most is not None:
            ceiling = min(ceiling, most)
        self.patience = patience
        self._clock, self._later = clock, later
        self.servers = [ModelServer(provider, ceiling, concurrency, known) for provider in providers]
        self.ceiling = ceiling * len(providers)
        self._waiting: deque[tuple[asyncio.Future[Slot], int]] = deque()
        self._resting: set[asyncio.Future[None]] = set()
        self._timer: Timer | None = None
        self.is_shut = False
        self.paused = False
        self.refused = 0
        """Calls that servers have turned down (429, 503)."""

    @property
    def in_flight(self) -> int:
        """Calls under way."""
        return sum(server.in_flight for server in self.servers)

    @property
    def limit(self) -> int:
        """Calls that may be under way now."""
        return sum(server.limit for server in self.servers)

    @property
    def cuts(self) -> int:
        """How often a server was sent less."""
        return sum(server.rate.cuts for server in self.servers)

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of the servers."""
        return tuple(f"{server.url}: {note}" for server in self.servers for note in server.rate.notes)

    @property
    def has_answered(self) -> bool:
        """Whether any server has ever answered a call."""
        return any(server.answered_at > -math.inf for server in self.servers)

    def feed_is_empty(self) -> None:
        """No unit is left to send: what is still open are stragglers."""
        for server in self.servers:
            server.rate.feeding = False

    def down_for(self) -> tuple[float, ProviderError] | None:
        """Seconds for which no server at all has been there, with what the last one said; None = one is."""
        since = [(server.down_since, server.error) for server in self.servers]
        known = [(at, error) for at, error in since if at is not None and error is not None]
        if len(known) < len(since):
            return None
        at, error = max(known, key=lambda one: one[0])
        return self._clock() - at, error

    def now(self) -> float:
        """Seconds by the clock that all times here are of."""
        return self._clock()

    async def enter(self, tokens: int = 0) -> Slot:
        """Take a slot, waiting for one as long as it takes. Raises CancelledError once `shut`."""
        if self.is_shut:
            raise asyncio.CancelledError
        if not self._waiting and not self.paused:
            slot, _ = self._choose(tokens)
            if slot is not None:
                return slot
        ticket: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        self._waiting.append((ticket, tokens))
        self._admit()
        try:
            return await ticket
        except asyncio.CancelledError:
            # Cancelled between the admission and this line: the slot must go to the next one.
            if ticket.done() and not ticket.cancelled():
                self.leave(ticket.result(), End.LEFT)
            else:
                ticket.cancel()
                self._admit()
            raise

    def leave(self, slot: Slot, end: End) -> None:
        """Give the slot back."""
        self.refused += end is End.REFUSED
        slot.server.leave(slot, self._clock(), end)
        if self._waiting:
            self._admit()

    async def rest(self, seconds: float) -> None:
        """Wait outside, before a retry. Raises CancelledError once `shut`."""
        if self.is_shut:
            raise asyncio.CancelledError
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self._later(seconds, lambda: _set(ticket))
        self._resting.add(ticket)
        try:
            await ticket
        finally:
            timer.cancel()
            self._resting.discard(ticket)

    def pause(self, paused: bool) -> None:
        """Let nobody in for now, or again; calls under way end."""
        self.paused = paused
        self._admit()

    def shut(self) -> None:
        """Let nobody in any more; those who wait are cancelled."""
        self.is_shut = True
        for ticket in [ticket for ticket, _ in self._waiting]:
            ticket.cancel()
        for resting in list(self._resting):
            resting.cancel()
        self._waiting.clear()
        self._stop_timer()

    def _choose(self, tokens: int) -> tuple[Slot | None, float | None]:
        """Take a slot where most is free; else the seconds until one may be taken, None = when one is left."""
        now = self._clock()
        best: ModelServer | None = None
        load, soonest = 2.0, None
        for server in self.servers:
            if not server.has_room:
                continue
            wait = server.delay(now, tokens)
            if wait > 0:
                soonest = wait if soonest is None else min(soonest, wait)
            elif (share := server.in_flight / server.limit) < load or best is None:
                best, load = server, share
        return (None if best is None else best.take(now, tokens)), soonest

    def _admit(self) -> None:
        """Let in who is first, as far as slots and allowances go, and look again when the wait ends."""
        self._stop_timer()
        while self._waiting and not self.paused:
            ticket, tokens = self._waiting[0]
            if ticket.done():
                self._waiting.popleft()
                continue
            slot, wait = self._choose(tokens)
            if slot is None:
                if wait is not None:
                    self._timer = self._later(wait, self._admit)
                return
            self._waiting.popleft()
            ticket.set_result(slot)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _set(ticket: asyncio.Future[None]) -> None:
    if not ticket.done():
        ticket.set_result(None)
