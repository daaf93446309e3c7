"""Admit calls from one queue to one or several servers.

A refused call waits for its own backoff, or for the Retry-After in its refusal, and does not delay other
calls.
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
"""The maximum delay of the event loop's timers, in seconds. The last part of a wait is therefore spent
polling the clock.
"""


class Timer(Protocol):
    """A timer that has been set."""

    def cancel(self) -> None:
        """Cancel the timer."""


class _Precise:
    """A precise timer. It is needed because a rate-limited server refuses calls that are not evenly spaced."""

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
    """Admits calls in order of arrival. Each call goes to the server with the lowest load.

    The load is the number of calls in flight divided by the server's limit. `concurrency` is the number of
    concurrent calls per server, as set by the user (None = not set). `most` is the largest number that the
    provider supports. `known` maps each address to the concurrency that its server last sustained. `patience`
    is the longest time in seconds for which all servers may be down.
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
        """Number of calls that servers have refused (429, 503)."""

    @property
    def in_flight(self) -> int:
        """Number of calls in flight."""
        return sum(server.in_flight for server in self.servers)

    @property
    def limit(self) -> int:
        """Number of calls that may currently be in flight."""
        return sum(server.limit for server in self.servers)

    @property
    def cuts(self) -> int:
        """Number of times that the concurrency or the rate was reduced for a server."""
        return sum(server.rate.cuts for server in self.servers)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user about the servers."""
        return tuple(f"{server.url}: {note}" for server in self.servers for note in server.rate.notes)

    @property
    def has_answered(self) -> bool:
        """Whether any server has ever answered a call."""
        return any(server.answered_at > -math.inf for server in self.servers)

    def feed_is_empty(self) -> None:
        """Record that no unit is left to send. Calls that are still open are stragglers from now on."""
        for server in self.servers:
            server.rate.feeding = False

    def down_for(self) -> tuple[float, ProviderError] | None:
        """Return for how many seconds all servers have been down, and the last error. Return None if a server
        is up.
        """
        since = [(server.down_since, server.error) for server in self.servers]
        known = [(at, error) for at, error in since if at is not None and error is not None]
        if len(known) < len(since):
            return None
        # All servers have been down since the last of them went down.
        at, error = max(known, key=lambda outage: outage[0])
        return self._clock() - at, error

    def get_time(self) -> float:
        """Return the current time of the clock, in seconds."""
        return self._clock()

    async def enter(self, tokens: int = 0) -> Slot:
        """Wait until a server has room for a call, and return a slot: the permission to send the call.

        Raises CancelledError after `shut`.
        """
        if self.is_shut:
            raise asyncio.CancelledError
        # If other calls are waiting, this call must queue behind them.
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
        """Record that the call with this slot has ended. A waiting call may then be sent."""
        self.refused += end is End.REFUSED
        slot.server.leave(slot, self._clock(), end)
        if self._waiting:
            self._admit()

    async def sleep(self, seconds: float) -> None:
        """Wait before a retry. The waiting call does not count as in flight. Raises CancelledError after
        `shut`.
        """
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
        """Pause or resume admitting calls. Calls in flight are not affected."""
        self.paused = paused
        self._admit()

    def shut(self) -> None:
        """Stop admitting calls permanently, and cancel the waiting calls."""
        self.is_shut = True
        for ticket in [ticket for ticket, _ in self._waiting]:
            ticket.cancel()
        for resting in list(self._resting):
            resting.cancel()
        self._waiting.clear()
        self._stop_timer()

    def _choose(self, tokens: int) -> tuple[Slot | None, float | None]:
        """Return a slot (the permission to send a call) at the server with the lowest load.

        If no call may be sent now, return None and the number of seconds until one may be sent, or (None,
        None) if another call has to end first.
        """
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
        """Admit waiting calls in order until no server has room for another. Set a timer for the next call."""
        self._stop_timer()
        while self._waiting and not self.paused:
            ticket, tokens = self._waiting[0]
            if ticket.done():
                # Its caller was cancelled while it waited.
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
    # The run may have been stopped in the same turn of the event loop.
    if not ticket.done():
        ticket.set_result(None)
