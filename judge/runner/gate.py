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

from judge.types import RateState

CUT = 0.5
HOLD_WITHOUT_RETRY_AFTER = 1.0


class Gate:
    """Admits calls. `ceiling` bounds the concurrency, `start` is where slow start begins."""

    def __init__(self, ceiling: int, start: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = float(min(self.ceiling, max(1, start)))
        self.in_flight = 0
        self.cuts = 0
        self._clock = clock
        self._slow_start = True
        self._earned = 0
        self._not_before = 0.0
        self._last_cut = float("-inf")
        self._tokens_left: float | None = None
        self._tokens_reset = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def delay(self, tokens: int = 0) -> float:
        """Seconds until the send gate would let a call of this many tokens go."""
        now = self._clock()
        wait = self._not_before - now
        if self._tokens_left is not None:
            if now >= self._tokens_reset:
                self._tokens_left = None
            elif tokens > self._tokens_left:
                wait = max(wait, self._tokens_reset - now)
        return max(0.0, wait)

    def try_enter(self, tokens: int = 0) -> bool:
        """Take a slot if there is one now."""
        if self.in_flight >= int(self.limit) or self.delay(tokens) > 0:
            return False
        self.in_flight += 1
        if self._tokens_left is not None:
            self._tokens_left -= tokens
        return True

    async def enter(self, tokens: int = 0) -> None:
        """Take a slot, waiting for one as long as it takes."""
        while not self.try_enter(tokens):
            wait = self.delay(tokens)
            if wait > 0:
                await asyncio.sleep(wait)
            else:
                ticket = asyncio.get_running_loop().create_future()
                self._waiting.append(ticket)
                try:
                    await ticket
                except asyncio.CancelledError:
                    if ticket.done() and not ticket.cancelled():
                        self._wake()
                    raise

    def leave(self) -> None:
        """Give the slot back."""
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        free = int(self.limit) - self.in_flight
        while free > 0 and self._waiting:
            ticket = self._waiting.popleft()
            if not ticket.done():
                ticket.set_result(None)
                free -= 1

    def succeeded(self, rate: RateState | None = None) -> None:
        """Count a reply: one more slot per reply in slow start, else one per `limit` replies."""
        self._earned += 1
        if self.limit < self.ceiling and self._earned >= (1 if self._slow_start else int(self.limit)):
            self.limit = min(self.ceiling, self.limit + 1)
            self._earned = 0
        if rate is not None:
            self._note(rate)

    def limited(self, retry_after: float | None, sent_at: float) -> None:
        """A 429 for a call sent at `sent_at`: hold all sending, and cut unless this is an echo."""
        now = self._clock()
        hold = HOLD_WITHOUT_RETRY_AFTER if retry_after is None else max(0.0, retry_after)
        self._not_before = max(self._not_before, now + hold)
        self._slow_start = False
        self._earned = 0
        if sent_at > self._last_cut:
            self.limit = max(1.0, self.limit * CUT)
            self._last_cut = now
            self.cuts += 1

    def _note(self, rate: RateState) -> None:
        now = self._clock()
        if rate.remaining_requests == 0 and rate.reset_requests is not None:
            self._not_before = max(self._not_before, now + rate.reset_requests)
        if rate.remaining_tokens is not None and rate.reset_tokens is not None:
            self._tokens_left = float(rate.remaining_tokens)
            self._tokens_reset = now + rate.reset_tokens
