"""How many calls may be in flight, and when the next may go: additive increase, multiplicative cut.

Three clocks are kept apart on purpose: the send gate (Retry-After and exhausted budgets hold every
call back until a time), the debounce of cuts (429s of calls sent before the last cut are echoes of
the same event and do not cut again), and the count of successes that earns the next slot. Server
faults and time-outs are not rate limits and touch none of them.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from judge.types import RateState

CUT = 0.5
HOLD_WITHOUT_RETRY_AFTER = 1.0
MOST_AT_FIRST = 128


class Timer(Protocol):
    """What a timer gives back."""

    def cancel(self) -> None:
        """Never fire."""


def _later(seconds: float, call: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, call)


class _Budget:
    """What the server says is left of one of its limits, less what was sent since it said so."""

    __slots__ = ("left", "reset")

    def __init__(self) -> None:
        self.left: float | None = None
        self.reset = 0.0

    def wait(self, cost: float, now: float) -> float:
        """Seconds until `cost` fits. A budget that is full again is unknown: nothing larger is waited for."""
        if self.left is None:
            return 0.0
        if now >= self.reset:
            self.left = None
            return 0.0
        return 0.0 if cost <= self.left else self.reset - now

    def take(self, cost: float) -> None:
        if self.left is not None:
            self.left -= cost

    def note(self, left: int | None, seconds: float | None, now: float) -> None:
        if left is not None and seconds is not None:
            self.left, self.reset = float(left), now + seconds


class Gate:
    """Admits calls in the order in which they came. `ceiling` bounds the concurrency.

    It starts at half of the ceiling (128 at most) and grows by one for every reply, which doubles
    it per round, until the first cut; from then on by one per round.
    """

    def __init__(
        self,
        ceiling: int,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], Timer] = _later,
    ) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = float(min(MOST_AT_FIRST, (self.ceiling + 1) // 2))
        self.in_flight = 0
        self.cuts = 0
        self._clock, self._later = clock, later
        self._slow_start = True
        self._earned = 0
        self._not_before = 0.0
        self._last_cut = float("-inf")
        self._requests, self._tokens = _Budget(), _Budget()
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._resting: set[asyncio.Future[None]] = set()
        self._timer: Timer | None = None
        self.is_shut = False

    def delay(self, tokens: int = 0) -> float:
        """Seconds for which the send gate would hold back a call of this many tokens."""
        now = self._clock()
        return max(0.0, self._not_before - now, self._requests.wait(1, now), self._tokens.wait(tokens, now))

    async def enter(self, tokens: int = 0) -> None:
        """Take a slot, waiting for one as long as it takes. Raises CancelledError once `shut`."""
        if self.is_shut:
            raise asyncio.CancelledError
        if not self._waiting and self.in_flight < int(self.limit) and self.delay(tokens) <= 0:
            self._take(tokens)
            return
        ticket = asyncio.get_running_loop().create_future()
        self._waiting.append((ticket, tokens))
        self._admit()
        try:
            await ticket
        except asyncio.CancelledError:
            # Cancelled between the admission and this line: the slot must go to the next one.
            if ticket.done() and not ticket.cancelled():
                self.leave()
            else:
                ticket.cancel()
                self._admit()
            raise

    def leave(self) -> None:
        """Give the slot back."""
        self.in_flight -= 1
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

    def shut(self) -> None:
        """Let nobody in any more; those who wait are cancelled."""
        self.is_shut = True
        for ticket in [ticket for ticket, _ in self._waiting] + list(self._resting):
            ticket.cancel()
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def succeeded(self, rate: RateState | None = None) -> None:
        """Count a reply, and note what its headers say is left."""
        self._earned += 1
        if self.limit < self.ceiling and self._earned >= (1 if self._slow_start else int(self.limit)):
            self.limit = min(self.ceiling, self.limit + 1)
            self._earned = 0
        if rate is not None:
            now = self._clock()
            self._requests.note(rate.remaining_requests, rate.reset_requests, now)
            self._tokens.note(rate.remaining_tokens, rate.reset_tokens, now)

    def limited(self, retry_after: float | None, sent_at: float) -> None:
        """A 429 for a call sent at `sent_at`: hold all sending, and cut unless this is an echo."""
        now = self._clock()
        hold = HOLD_WITHOUT_RETRY_AFTER if retry_after is None else max(0.0, retry_after)
        self._not_before = max(self._not_before, now + hold)
        self._slow_start = False
        if sent_at > self._last_cut:
            self.limit = max(1.0, self.limit * CUT)
            self._last_cut = now
            self._earned = 0
            self.cuts += 1

    def _take(self, tokens: int) -> None:
        self.in_flight += 1
        self._requests.take(1)
        self._tokens.take(tokens)

    def _admit(self) -> None:
        """Let in who is first, as far as slots and budgets go, and look again when the hold ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            ticket, tokens = self._waiting[0]
            if ticket.done():
                self._waiting.popleft()
                continue
            if self.in_flight >= int(self.limit):
                return
            if (wait := self.delay(tokens)) > 0:
                self._timer = self._later(wait, self._admit)
                return
            self._waiting.popleft()
            self._take(tokens)
            ticket.set_result(None)


def _set(ticket: asyncio.Future[None]) -> None:
    if not ticket.done():
        ticket.set_result(None)
