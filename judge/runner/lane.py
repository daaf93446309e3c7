"""One server as the runner sees it: how many calls, how fast, not before when, and whether it is there.

A call that is refused (429) costs itself a back-off and nobody else anything, unless the server says
when to come back (Retry-After) or its budget headers do. A server that cannot be reached, or has
answered none of several new units, is down: one call at a time asks whether it is back.
"""

from __future__ import annotations

import math
from collections import deque
from enum import Enum
from typing import NamedTuple

from judge.errors import ProviderError, RateLimited, Rejected, Unreachable
from judge.providers.base import Provider
from judge.runner.level import Level
from judge.runner.pace import Pace
from judge.runner.retry import told_to_wait
from judge.types import RateState

SUSPECTS = 3
"""This many units begun since a server's last answer, all of them failed, and it counts as down."""
REFUSALS, REFUSED_SECONDS = 16, 5.0
"""This many calls refused in a row, none answered for so long, are as much; sooner it may be a limit of the rate."""
FLOW = 32
"""As long as a server took for so many answers, a call that it refuses waits at most."""
FIRST_PROBE, LAST_PROBE = 0.5, 30.0
"""Seconds between the calls that look whether a server is back: doubled, up to the last."""


class End(Enum):
    """How a call ended, as far as the server's capacity goes."""

    REPLY = "reply"
    REFUSED = "refused"
    LATE = "late"
    FAILED = "failed"
    LEFT = "left"


class Slot(NamedTuple):
    """Leave for one call: to which server, and since when it counts as sent."""

    lane: Lane
    at: float


class Lane:
    """One server's gate. All times are of one clock, in seconds; `now` is the caller's reading of it."""

    def __init__(self, provider: Provider | None, ceiling: int, now: float) -> None:
        self.provider = provider
        url = provider.describe().get("base_url") if provider is not None else None
        self.url = url if isinstance(url, str) else None
        timeout: float = getattr(provider, "timeout", None) or math.inf
        self.level, self.pace = Level(ceiling, timeout, now), Pace()
        self.in_flight = 0
        self.down_since: float | None = None
        self.error: ProviderError | None = None
        self._not_before = 0.0
        self._held = False
        self._requests, self._tokens = _Budget(), _Budget()
        self._answered_at = self._refused_from = -math.inf
        self._answers: deque[float] = deque(maxlen=FLOW)
        self._suspects: set[str] = set()
        self._refusals = 0
        self._probing = False
        self._probe_at = 0.0
        self._probes = 0

    @property
    def limit(self) -> int:
        """Calls that may be in flight; one, while the server is down."""
        return self.level.limit if self.down_since is None else 1

    @property
    def has_room(self) -> bool:
        """Whether a slot is free."""
        return self.in_flight < self.level.limit if self.down_since is None else not self._probing

    def delay(self, now: float, tokens: int = 0) -> float:
        """Seconds for which a call of this many tokens is held back, a free slot taken for granted."""
        if self.down_since is not None:
            return max(0.0, self._probe_at - now)
        return max(
            0.0,
            self._not_before - now,
            self.pace.delay(now),
            self._requests.wait(1, now),
            self._tokens.wait(tokens, now),
        )

    def take(self, now: float, tokens: int = 0) -> Slot:
        """A call goes out."""
        self.in_flight += 1
        if self.down_since is not None:
            self._probing = True
        if self._held:
            self._held = False
            self.level.interrupted(now)
        self.level.took(now)
        self.pace.took(now)
        self._requests.take(1)
        self._tokens.take(tokens)
        return Slot(self, now)

    def leave(self, now: float, sent_at: float, end: End) -> None:
        """It came back."""
        self.in_flight -= 1
        if self.down_since is not None and sent_at >= self.down_since:
            self._probing = False
        self.level.ended(now, sent_at, end is End.REPLY)
        if end is End.LATE:
            self.level.timed_out(now, sent_at)
        if end is not End.LEFT and self.pace.ended(now, sent_at, end is End.REFUSED):
            self.level.interrupted(now)
        if end is End.REPLY:
            self._answered(now)

    def note(self, rate: RateState, now: float) -> None:
        """What a reply's headers say is left."""
        self._requests.note(rate.remaining_requests, rate.reset_requests, now)
        self._tokens.note(rate.remaining_tokens, rate.reset_tokens, now)

    def hold(self, now: float, seconds: float) -> None:
        """The server said when to come back."""
        self._not_before = max(self._not_before, now + seconds)
        self._held = True

    # Whether it is there

    @property
    def is_down(self) -> bool:
        """Whether the server is being waited for."""
        return self.down_since is not None

    @property
    def has_answered(self) -> bool:
        """Whether anything was ever answered."""
        return self._answered_at > -math.inf

    def answered_since(self, begun: float) -> bool:
        """Whether anything was answered since."""
        return self._answered_at >= begun

    def flow(self, now: float) -> float:
        """Seconds since the last FLOW answers began to come, infinite before as many have."""
        return now - self._answers[0] if len(self._answers) == FLOW else math.inf

    def failed(self, now: float, sent_at: float, begun: float, unit: str, error: ProviderError) -> None:
        """A call has failed in a way that may pass; its unit's first call went out at `begun`."""
        if self.down_since is not None:
            if sent_at < self.down_since:
                return
            self._probes += 1
            wait = min(LAST_PROBE, FIRST_PROBE * 2.0 ** (self._probes - 1))
            self._probe_at = now + max(wait, told_to_wait(error))
            self.error = error
            return
        if isinstance(error, RateLimited):
            if self._refusals == 0:
                self._refused_from = sent_at
            self._refusals += not self.answered_since(sent_at)
        elif begun > self._answered_at:
            self._suspects.add(unit)
        absent = isinstance(error, Unreachable) and not error.sent and not self.answered_since(sent_at)
        refuses_all = self._refusals >= REFUSALS and now - self._refused_from >= REFUSED_SECONDS
        if absent or len(self._suspects) >= SUSPECTS or refuses_all:
            self.went_down(now, error)

    def went_down(self, now: float, error: ProviderError) -> None:
        """Wait for the server from now on."""
        self.down_since, self.error = now, error
        self._probing, self._probes = False, 0
        self._probe_at = now + FIRST_PROBE / 4
        self._suspects.clear()
        self._refusals = 0

    def _answered(self, now: float) -> None:
        self._answered_at = now
        self._answers.append(now)
        self._suspects.clear()
        self._refusals = 0
        if self.down_since is not None:
            self.down_since = self.error = None
            self._probing = False
            self.level.restart(now)
            self.pace = Pace()


def ending(error: BaseException | None) -> End:
    """How a call ended that raised this, None = nothing."""
    if error is None or isinstance(error, Rejected):
        return End.REPLY
    if isinstance(error, RateLimited):
        return End.REFUSED
    if isinstance(error, Unreachable) and error.timed_out:
        return End.LATE
    return End.FAILED if isinstance(error, ProviderError) else End.LEFT


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
