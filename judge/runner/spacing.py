"""Space out the calls to a server that refuses too many of them (429, 503), and search for its rate limit."""

from __future__ import annotations

import math

TOLERATED_SHARE, TOLERATED_CALLS = 0.15, 10.0
"""Refusals are evidence of a rate limit if they exceed this share of the calls by more than this number.
Fewer refusals are retried without slowing other calls down: 5 % random refusals must not reduce the rate
of a fast server.
"""
WINDOW_CALLS = 200
"""Number of calls after which the count of refusals is restarted."""
TRIAL_CALLS = 32
"""Number of calls after which a slower rate is evaluated. At one call per second, this takes half a minute."""
FEW_ACCEPTED = 0.1
"""If fewer calls than this share are accepted, the rate is quartered instead of halved."""
BURST_SECONDS = 0.1
"""The shortest period from which a rate is computed. Calls sent within less time are a burst."""
TARGET_SHARE, TARGET_SHARE_LATE = 0.13, 0.06
"""Share of refusals at which the rate settles when it follows a limit. With fewer refusals, a part of the
limit would be unused. The share is smaller if a refusal arrives too late for its slot to be used again.
"""
NEAR_SHARE = 0.5
"""A refused slot can be used again if the refusal arrives within this fraction of the time between two calls."""
STEP = 0.04
"""The amount by which one refusal lowers the logarithm of a rate that follows a limit."""
SLOWEST_RATE = 1 / 30
"""The lowest rate, in calls per second: two calls a minute are enough to find out soon that a limit has been
lifted.
"""
TIMER_SECONDS = 0.002
"""The maximum delay of a timer, in seconds. If the time between calls is not much longer than that, the next
calls make up for the delay.
"""


class Spacing:
    """Computes the time between calls to a server that refuses too many of them.

    A few refusals do not change the rate. When more than `TOLERATED_SHARE` of the calls are refused, the rate
    is reduced until fewer are refused. After that, the rate rises a little with every call and falls with
    every refusal, so that about `TARGET_SHARE` of the calls are refused (the weighted up-down method,
    Kaernbach 1991, Perception & Psychophysics 49, 227-229). If a slower rate does not help, the server
    refuses calls at random. In that case, the refusals are tolerated, and calls are no longer spaced.
    """

    def __init__(self, since: float = -math.inf) -> None:
        """`since` is the time from which calls count. Refusals of calls that were sent earlier are ignored."""
        self.rate: float | None = None
        """Calls per second; None = as many as the concurrency allows."""
        self._background = 0.0
        self._trial: _Trial | None = None
        self._next = self._fastest = 0.0
        self._calls_since_refusal = 0
        self._refused_in_a_row = 0
        self._refusal_seconds = 0.0
        """The longest time that a refusal took to arrive, in seconds."""
        self._counted_from, self._counted_until = since, math.inf
        self._sent = self._refused = 0

    def delay(self, now: float) -> float:
        """Return the seconds until the next call may be sent."""
        return 0.0 if self.rate is None else max(0.0, self._next - now)

    def record_sent(self, now: float) -> None:
        """Record that a call is being sent."""
        trial = self._trial
        if trial is None and self._sent >= WINDOW_CALLS:
            if self.rate is None:
                self._background = min(self._background, self._refused / self._sent)
            self._begin(now)
        if trial is None or self._sent < TRIAL_CALLS:
            self._counted_from = now if self._sent == 0 else self._counted_from
            self._sent += 1
            self._counted_until = now
        elif now > self._counted_until + 1.5 * self._refusal_seconds:
            # All refusals of the counted calls have arrived by now.
            self._end_trial(trial, now)
        if self.rate is None:
            return
        gap = 1 / self.rate
        if self._trial is None and now - self._next < gap / 2:
            # The rate only rises if it currently limits the calls. Otherwise a higher rate would not be tested.
            self._calls_since_refusal += 1
            target = self._target
            # If refusals are missing for much longer than the target share predicts, the limit is far away, so the rate rises faster.
            faster = min(8.0, max(1.0, self._calls_since_refusal * target / 4))
            self._change(faster * self._step * target / (1 - target))
        late = TIMER_SECONDS if gap < 2 * TIMER_SECONDS else 0.0
        self._next = max(self._next, now - late) + gap

    def record_answer(self) -> None:
        """Record that a call was answered."""
        self._refused_in_a_row = 0

    def record_refusal(self, now: float, sent_at: float) -> bool:
        """Record that a call was refused. Return whether a search for a slower rate begins."""
        self._refusal_seconds = max(now - sent_at, 0.95 * self._refusal_seconds)
        if not self._counted_from <= sent_at <= self._counted_until:
            # The call was sent at a different rate.
            return False
        self._refused += 1
        if self._trial is not None:
            return False
        if self.rate is None:
            if self._refused <= TOLERATED_CALLS + (TOLERATED_SHARE + self._background) * self._sent:
                return False
            self._search(now, self._sent / max(now - self._counted_from, BURST_SECONDS) / 2)
            return True
        self._calls_since_refusal = 0
        self._change(-self._step)
        if (now - sent_at) * self.rate < NEAR_SHARE:
            # The refusal arrived before the next call is due, so the refused slot is used again, a little later each
            # time. After a fixed window is used up, the server refuses many slots in a row.
            self._next = min(self._next, now + 4.0**self._refused_in_a_row / (16 * self.rate))
        self._refused_in_a_row += 1
        if self.rate < self._fastest / 4:
            self._search(now, self.rate)
            return True
        return False

    @property
    def _target(self) -> float:
        """The target share of refused calls. At this share, the rate stays the same on average."""
        near = (
            TARGET_SHARE
            if self.rate and self._refusal_seconds * self.rate < NEAR_SHARE
            else TARGET_SHARE_LATE
        )
        return self._background + (1 - self._background) * near

    @property
    def _step(self) -> float:
        """The amount by which a refusal lowers the log rate. It is smaller if more calls are sent before the
        refusal arrives.
        """
        assert self.rate is not None
        return STEP / (1 + self._refusal_seconds * self.rate / 4)

    def _change(self, step: float) -> None:
        assert self.rate is not None
        self.rate = max(SLOWEST_RATE, self.rate * math.exp(step))
        self._fastest = max(self._fastest, self.rate)

    def _search(self, now: float, rate: float) -> None:
        """Search downwards from this rate for a rate at which fewer calls are refused."""
        self._trial = _Trial()
        self.rate = max(SLOWEST_RATE, rate)
        self._begin(now)

    def _end_trial(self, trial: _Trial, now: float) -> None:
        """Keep the slower rate, slow down further, or stop spacing calls, depending on whether the slower
        rate has helped.
        """
        assert self.rate is not None
        taken = 1 - self._refused / self._sent
        gained = 1.0 if trial.accepted is None else (taken - trial.accepted) / (1.001 - trial.accepted)
        if gained > 2 / 3 and taken >= 1 - self._background - TOLERATED_SHARE:
            self._trial, self._fastest = None, self.rate
        elif gained < 1 / 3 and trial.expected >= 1:
            self._background, self._trial, self.rate = 1 - taken, None, None
        else:
            if trial.accepted is None and taken > 0:
                trial.accepted = trial.expected = taken
            # Under a rate limit the share of accepted calls grows as the rate is cut.
            cut = 4 if taken < FEW_ACCEPTED else 2
            trial.expected *= cut
            self.rate = max(SLOWEST_RATE, self.rate / cut)
        self._begin(now)

    def _begin(self, now: float) -> None:
        """Restart the count of calls and refusals."""
        self._counted_from, self._counted_until = now, math.inf
        self._sent = self._refused = 0


class _Trial:
    """A search for a slower rate.

    `accepted` is the share of calls that the server accepted when the search began. `expected` is the share
    that a server with a rate limit would accept at the current rate.
    """

    def __init__(self) -> None:
        self.accepted: float | None = None
        self.expected = 0.0
