"""The state of one model server: its rate controller, and whether it is reachable.

A server that cannot be reached, or that fails or refuses many calls in a row, counts as down. Then only one
call at a time is sent, to find out whether the server is back.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from judge.errors import ProviderError, RateLimited, Rejected, ServerFault, Unreachable
from judge.providers.base import Provider
from judge.runner.rate import RateController
from judge.runner.retry import retry_after_of

SUSPECTS, IN_A_ROW = 3, 16
"""A server counts as down when it accepts no connection, or when calls for SUSPECTS new units have failed and
at least IN_A_ROW calls in a row have failed. In a simulation with a limit of three calls in a row, a
server that closed every second connection counted as down, and 300 units of 0.5 s each took 14 s. When it
did not count as down and the pauses were shorter, the same units took 3 s.
"""
REFUSALS, REFUSED_SECONDS = 64, 5.0
"""A server also counts as down when it has refused this many calls in a row over at least this many seconds.
With 16 calls, a server that refused 90 % of calls at random counted as down (0.9 ** 16 = 0.19, but 0.9 ** 64
= 0.001).
"""
FLOW = 8
"""A refused call waits at most as long as the server took for this many of its last answers. In a simulation
with 50 % random refusals, 600 units took up to 20 s with 32 answers, and at most 5 s with 8 answers.
"""
RECENT_FLOWS, LEAST_FLOW = 64, 0.5
"""The number of recent values of this time whose minimum is used, and a lower bound for that minimum in seconds."""
FIRST_CALLS, FEWEST_FIRST_CALLS = 100, 16
"""The share of units whose first call failed is computed from the last 100 units. At least 16 units are
needed. Retries are not counted, because a few units that always fail would otherwise look like a server
that often fails.
"""
FIRST_PROBE, LAST_PROBE = 0.5, 30.0
"""Seconds between the calls that check whether a server is back. The first value is doubled after each call,
up to the second value.
"""


class End(Enum):
    """The outcome of a call, as evidence about the server's capacity."""

    REPLY = "reply"
    REFUSED = "refused"
    FAILED = "failed"
    LEFT = "left"


class Slot(NamedTuple):
    """Permission for one call: the server, the time at which the permission was given, the server's limit at
    that time, and the call's tokens.
    """

    server: ModelServer
    at: float
    limit: int
    tokens: int


@dataclass(slots=True)
class FirstCall:
    """The first call for a unit. `is_failed` is None until the call has ended."""

    is_failed: bool | None = None


class ModelServer:
    """One server: its rate controller, and whether it is down.

    Times are in seconds on the caller's clock, and `now` is the current time.
    """

    def __init__(
        self,
        provider: Provider | None,
        ceiling: int,
        start: int | None = None,
        known: Mapping[str, int] | None = None,
    ) -> None:
        self.provider = provider
        url = provider.describe().get("base_url") if provider is not None else None
        self.url = url if isinstance(url, str) else None
        start = start or (known or {}).get(self.url or "")
        self.rate = RateController(ceiling, start, getattr(provider, "timeout", None) or math.inf)
        self.down_since: float | None = None
        self.error: ProviderError | None = None
        self.answered_at = -math.inf
        self._refused_from = -math.inf
        self._answers: deque[float] = deque(maxlen=FLOW)
        self._flows: deque[float] = deque(maxlen=RECENT_FLOWS)
        self._suspects: set[str] = set()
        self._refusals = self._failures = 0
        self._first_calls: deque[FirstCall] = deque(maxlen=FIRST_CALLS)
        self._probing = False
        self._probe_at = 0.0
        self._probes = 0

    @property
    def is_down(self) -> bool:
        """Whether the server is down and calls wait for it."""
        return self.down_since is not None

    @property
    def in_flight(self) -> int:
        """Number of calls in flight."""
        return self.rate.in_flight

    @property
    def limit(self) -> int:
        """Maximum number of calls in flight; 1 while the server is down."""
        return 1 if self.is_down else self.rate.limit

    @property
    def has_room(self) -> bool:
        """Whether a slot is free."""
        return not self._probing if self.is_down else self.rate.in_flight < self.rate.limit

    def delay(self, now: float, tokens: int = 0) -> float:
        """Return how many seconds to wait before sending a call with this many tokens. It is assumed that a
        slot is free.
        """
        return max(0.0, self._probe_at - now) if self.is_down else self.rate.delay(now, tokens)

    def take(self, now: float, tokens: int = 0) -> Slot:
        """Record that a call is being sent. Return its slot."""
        self._probing = self.is_down
        self.rate.record_sent(now, tokens)
        return Slot(self, now, self.rate.limit, tokens)

    def leave(self, slot: Slot, now: float, end: End) -> None:
        """Record that the call in a slot has ended."""
        # Calls that were sent before the outage began do not test whether the server is back.
        if self.down_since is not None and slot.at >= self.down_since:
            self._probing = False
        self.rate.record_end(slot.tokens)
        if end is End.REPLY:
            self.rate.record_reply(now, slot.at, slot.limit)
            self._record_answer(now)
        elif end is End.REFUSED:
            self.rate.record_refusal(now, slot.at)

    def flow(self, now: float) -> float:
        """Return the seconds since the first of the last FLOW answers, or infinity if there are fewer.

        The time has an upper limit, because answers become rare at the end of a run, when only the last units
        are waiting. Without the limit, these units would wait even longer. The limit is the shortest time
        that FLOW successive answers took recently, but at least LEAST_FLOW.
        """
        if len(self._answers) < FLOW:
            return math.inf
        return min(now - self._answers[0], max(LEAST_FLOW, min(self._flows)))

    def failing(self) -> float:
        """Return the share of the last FIRST_CALLS units whose first call failed, or 0 if there are too few units."""
        ended = [call.is_failed for call in self._first_calls if call.is_failed is not None]
        # The + 1 keeps it below 1 if all failed, so that a unit that never succeeds is given up at last.
        return sum(ended) / (len(ended) + 1) if len(ended) >= FEWEST_FIRST_CALLS else 0.0

    def first_call(self) -> FirstCall:
        """Record that the first call for a unit is being sent. Return the record in which the caller stores
        how the call ends.

        Calls are counted in the order in which they were sent. If they were counted in the order in which
        they ended, refusals would come first because they are faster than answers.
        """
        self._first_calls.append(FirstCall())
        return self._first_calls[-1]

    def record_failure(self, slot: Slot, now: float, begun: float, unit: str, error: ProviderError) -> bool:
        """Record a temporary failure of a call. The first call for its unit was sent at `begun`.

        Return whether the failure counts as one of the unit's tries. It does not count if the server is down
        or overloaded.
        """
        if self.down_since is not None:
            if slot.at >= self.down_since:
                self._probes += 1
                wait = min(LAST_PROBE, FIRST_PROBE * 2.0 ** (self._probes - 1))
                self._probe_at = now + max(wait, retry_after_of(error))
                self.error = error
            return False
        timed_out = isinstance(error, Unreachable) and error.timed_out
        # While units are left to send, a whole time-out without any answer is evidence by itself. At the end of a run
        # the calls still open may be those of units that no server answers.
        since = slot.at if timed_out and self.rate.feeding else begun
        if isinstance(error, RateLimited):
            if self._refusals == 0:
                self._refused_from = slot.at
            # A refusal of a call that was sent before the last answer is no evidence that the server is down now.
            self._refusals += self.answered_at < slot.at
        elif since > self.answered_at:
            # Failures are counted by unit, because a single unit that always fails is not evidence of an outage.
            self._suspects.add(unit)
        self._failures += 1
        absent = isinstance(error, Unreachable) and not error.sent and self.answered_at < slot.at
        refuses_all = self._refusals >= REFUSALS and now - self._refused_from >= REFUSED_SECONDS
        fails_all = len(self._suspects) >= SUSPECTS and (timed_out or self._failures >= IN_A_ROW)
        if absent or fails_all or refuses_all:
            self.went_down(now, error)
            return False
        # A time-out of an overloaded server says nothing about the unit.
        return not (timed_out and self.rate.record_timeout(now, slot.at))

    def went_down(self, now: float, error: ProviderError) -> None:
        """Mark the server as down from this time on."""
        self.down_since, self.error = now, error
        self._probing, self._probes = False, 0
        self._probe_at = now + max(FIRST_PROBE / 4, retry_after_of(error))
        self._suspects.clear()
        self._refusals = self._failures = 0

    def _record_answer(self, now: float) -> None:
        self.answered_at = now
        self._answers.append(now)
        if len(self._answers) == FLOW:
            self._flows.append(now - self._answers[0])
        self._suspects.clear()
        self._refusals = self._failures = 0
        if self.is_down:
            self.down_since = self.error = None
            self._probing = False
            self.rate.restart(now)


def ending(error: BaseException | None) -> End:
    """Return the outcome of a call that raised this error (None = no error)."""
    # A server that refuses the content of a request has capacity for others.
    if error is None or isinstance(error, Rejected):
        return End.REPLY
    if isinstance(error, RateLimited) or (isinstance(error, ServerFault) and error.overloaded):
        return End.REFUSED
    return End.FAILED if isinstance(error, ProviderError) else End.LEFT
