"""The rate controller: how many calls one server gets at once, and how fast they follow each other.

Calls run at the full concurrency unless there is evidence against it. Without an explicit concurrency the limit
starts at the one that the study last sustained at this address, else at `START`, and every good reply admits one more
call, up to `MOST`. Four observations lower it, and nothing else does:

- The vendors' rate headers: no call goes out before the time that they name. (Retry-After is about the refused call
  alone, see `judge.runner.calls`. Where it held back all calls, a server that took 10 calls a second got 2.)
- Refusals (429, 503) of more than `TOLERATED_SHARE` of the calls: calls are spaced evenly (`Spacing`).
- Time-outs while the other calls are slow too: the limit falls to what the server answers in half a time-out.
- A doubling of the limit that raises the latency so much that no more replies come back: it is undone.

A straggler lowers nothing. It is a call that is still open when no unit is left to send, or one that timed out while
the median latency is below a quarter of the time-out.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import median

from judge.types import RateState

MOST, START = 100, 16
"""Without an explicit concurrency: the largest limit, and the first one at a server that the study does not know."""
RECENT_REPLIES = 256
"""Replies from which throughput and median latency are computed: more than two rounds of `MOST` calls."""
SAFE_SHARE = 0.5
"""Share of the time-out that a call may be expected to take. Above it the limit does not grow, and time-outs lower it to
this: a server that answers one call at a time would otherwise spend its time on calls that nobody waits for any more."""
STRAGGLER_SHARE = 0.25
"""While the median latency is below this share of the time-out, a call that times out is a straggler."""
LEAST_GAIN = 1.2
"""A doubled limit must bring at least this many times the replies per second, or it is undone."""
DOUBLING_REPLIES = 32
"""Replies by which a doubling is judged, once. An earlier controller decided on about 16 calls, took noise for a rise, and
never had more than 24 of 100 calls in flight where latencies were log-normal."""
SURE_ERRORS = 2.5
"""Standard errors by which the mean log-latency must have risen before a doubling is undone."""
FORGET_SECONDS = 300.0
"""After so long a doubling that was undone is tried again: the server may have got more capacity."""

TOLERATED_SHARE, TOLERATED_CALLS = 0.15, 10.0
"""Refusals beyond this share of the calls and this many more are evidence of a rate limit. Fewer are retried and slow
nothing down: 5 % random refusals must not cost a fast server its rate."""
WINDOW_CALLS = 200
"""Calls after which the share of refusals is counted anew."""
TRIAL_CALLS = 32
"""Calls by which a slower rate is judged. At one call a second that is half a minute."""
FEW_ACCEPTED = 0.1
"""If fewer calls than this share are accepted, the rate is quartered instead of halved."""
BURST_SECONDS = 0.1
"""The shortest time from which a rate is computed: calls sent in less time are a burst."""
TARGET_SHARE, TARGET_SHARE_LATE = 0.13, 0.06
"""Share of refusals at which a rate that follows a limit settles: with fewer, some of the limit would be unused. It is
less where a refusal comes back too late for its slot to be tried again."""
NEAR_SHARE = 0.5
"""A refusal that is back within this part of the time between two calls is in time for that."""
STEP = 0.04
"""What one refusal takes off the logarithm of a rate that follows a limit."""
SLOWEST_RATE = 1 / 30
"""Calls per second below which no rate falls: two calls a minute show soon enough that a limit has gone."""
TIMER_SECONDS = 0.002
"""How late a timer may be. Where calls are hardly further apart than that, later ones make up for it."""


class RateController:
    """Limits the calls to one server. Times are in seconds, of one clock that the caller reads.

    `ceiling` bounds the calls in flight, `start` is the first limit, and `timeout` is that of one call.
    """

    def __init__(self, ceiling: int, start: int | None = None, timeout: float = math.inf) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = min(self.ceiling, max(1, start or START))
        self.timeout = timeout
        self.spacing = Spacing()
        self.in_flight = 0
        self.cuts = 0
        self.notes: list[str] = []
        """What people should know of the server, with what to type next."""
        self.most_used = 0
        self.feeding = True
        """Units are left to send."""
        self._requests, self._tokens = _Allowance(), _Allowance()
        self._full_at = self._cut_at = self._replied_at = -math.inf
        self._latencies: deque[float] = deque(maxlen=RECENT_REPLIES)
        self._replies: deque[float] = deque(maxlen=RECENT_REPLIES)
        self._doublings: dict[int, _Latency] = {}
        self._undone_above = self.ceiling
        self._try_again_at = math.inf

    @property
    def sustained(self) -> int:
        """The concurrency that the server has borne: the limit where it was reached, else the most calls at once."""
        return self.limit if self.most_used >= self.limit else self.most_used

    def delay(self, now: float, tokens: int = 0) -> float:
        """Seconds until a call of so many tokens may go out, if the limit has room for it."""
        waits = (self._requests.wait(1, now), self._tokens.wait(tokens, now))
        return max(0.0, self.spacing.delay(now), *waits)

    def sent(self, now: float, tokens: int = 0) -> None:
        """A call goes out."""
        self.in_flight += 1
        self.most_used = max(self.most_used, self.in_flight)
        if self.in_flight >= self.limit:
            self._full_at = now
        self.spacing.sent(now)
        self._requests.take(1, now)
        self._tokens.take(tokens, now)

    def ended(self, tokens: int = 0) -> None:
        """A call of so many tokens has come back, however it went."""
        self.in_flight -= 1
        self._requests.in_flight -= 1
        self._tokens.in_flight -= tokens

    def replied(self, now: float, sent_at: float, limit: int) -> None:
        """A good reply to a call that was sent under this limit."""
        self.spacing.accepted()
        self._latencies.append(now - sent_at)
        self._replies.append(now)
        self._replied_at = now
        if now >= self._try_again_at:
            self._doublings.clear()
            self._undone_above, self._try_again_at = self.ceiling, math.inf
        if self.limit >= self._undone_above or self._full_at < sent_at:
            return  # As many as there may be, or fewer were sent than the limit allows.
        self._judge_doubling(now, now - sent_at, limit)
        # Little's law: so long would a call take if one more brought no reply more per second.
        if self.limit < self._undone_above and self._throughput(now) > (self.limit + 1) / (
            self.timeout * SAFE_SHARE
        ):
            self.limit += 1

    def refused(self, now: float, sent_at: float) -> None:
        """The server turned a call down (429, 503)."""
        self.cuts += self.spacing.refused(now, sent_at)

    def timed_out(self, now: float, sent_at: float) -> bool:
        """Lower the limit if a call had no answer in time because the server has too many. Return whether that is so."""
        if sent_at <= self._cut_at:
            return True
        if self.timeout == math.inf:
            self.timeout = max(now - sent_at, 1e-3)  # The provider has one and does not say which.
        is_silent = self.feeding and self._replied_at < sent_at
        is_slow = bool(self._latencies) and median(self._latencies) >= self.timeout * STRAGGLER_SHARE
        served = int(self._throughput(now, until_now=True) * self.timeout * SAFE_SHARE)
        if not (is_silent or is_slow) or served >= self.limit or self.limit == 1:
            return False
        before, self.limit = self.limit, max(1, min(self.limit // 2, served))
        if not self.notes:
            self.notes.append(
                f"calls timed out after {self.timeout:g} s because the server was slow: concurrency was cut from {before} to "
                f"{self.limit}. --concurrency {self.limit} or a longer --timeout avoids the lost calls"
            )
        self.cuts += 1
        self._begin_again(now)
        return True

    def restart(self, now: float) -> None:
        """The server is back after an outage: begin as at an unknown one."""
        self.limit = min(self.limit, START)
        self.spacing = Spacing()
        self._begin_again(now)

    def obey(self, state: RateState, now: float, tokens: int = 0) -> None:
        """Obey the rate headers of the reply to a call of so many tokens that is still in flight here."""
        self._requests.note(
            state.remaining_requests, state.reset_requests, state.limit_requests, now, in_reply=1
        )
        self._tokens.note(
            state.remaining_tokens, state.reset_tokens, state.limit_tokens, now, in_reply=tokens
        )

    def _begin_again(self, now: float) -> None:
        """Forget what was measured at another limit; calls that were sent before are no evidence about this one."""
        self._cut_at = now
        self._replies.clear()
        self._doublings.clear()
        self._undone_above, self._try_again_at = self.ceiling, math.inf

    def _throughput(self, now: float, until_now: bool = False) -> float:
        """Replies per second, 0 before the second one; `until_now` counts the time without one since."""
        if len(self._replies) < 2:
            return 0.0
        seconds = (now if until_now else self._replies[-1]) - self._replies[0]
        return (len(self._replies) - 1) / max(seconds, 1e-6)

    def _judge_doubling(self, now: float, latency: float, limit: int) -> None:
        """Undo the last doubling of the limit if it has only made calls slower."""
        doubling = limit.bit_length()
        here = self._doublings.setdefault(doubling, _Latency())
        here.add(latency)
        before = self._doublings.get(doubling - 1)
        if before is None or before.n < DOUBLING_REPLIES / 2 or here.n != DOUBLING_REPLIES:
            return
        rise = here.mean - before.mean
        # Throughput is concurrency / latency, and the concurrency has doubled.
        if rise > math.log(2 / LEAST_GAIN) and rise > SURE_ERRORS * math.sqrt(here.error2 + before.error2):
            self.limit = self._undone_above = 2 ** (doubling - 1)
            self._try_again_at = now + FORGET_SECONDS
            self.cuts += 1


@dataclass(slots=True)
class _Latency:
    """Mean and variance of the logarithm of latencies (Welford 1962, Technometrics 4, 419-420)."""

    n: int = 0
    mean: float = 0.0
    _squares: float = 0.0

    def add(self, seconds: float) -> None:
        value = math.log(max(seconds, 1e-6))
        self.n += 1
        before = value - self.mean
        self.mean += before / self.n
        self._squares += before * (value - self.mean)

    @property
    def error2(self) -> float:
        """The squared standard error of the mean."""
        return self._squares / max(1, self.n - 1) / max(1, self.n)


class Spacing:
    """The time between calls to a server that refuses more of them than it should.

    Single refusals say nothing. When more than `TOLERATED_SHARE` of the calls are refused, the rate is halved until that
    helps. From there it rises a little with every call and falls with every refusal, and so settles where `TARGET_SHARE` of
    the calls are refused (the weighted up-down method, Kaernbach 1991, Perception & Psychophysics 49, 227-229). If a
    slower rate does not help, the server refuses at random: that share is tolerated, and calls go out freely again.
    """

    def __init__(self) -> None:
        self.rate: float | None = None
        """Calls per second, None = as many as the limit allows."""
        self._background = 0.0
        self._trial: _Trial | None = None
        self._next = self._fastest = 0.0
        self._calls_since_refusal = 0
        self._refused_in_a_row = 0
        self._refusal_seconds = 0.0
        """How long a refusal takes to come back, at most."""
        self._counted_from, self._counted_until = -math.inf, math.inf
        self._sent = self._refused = 0

    def delay(self, now: float) -> float:
        """Seconds until the next call may go out."""
        return 0.0 if self.rate is None else max(0.0, self._next - now)

    def sent(self, now: float) -> None:
        """A call goes out."""
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
            # The refusals of all the calls that count are back.
            self._end_trial(trial, now)
        if self.rate is None:
            return
        gap = 1 / self.rate
        if self._trial is None and now - self._next < gap / 2:
            # The rate is what holds calls back; otherwise a higher one would mean nothing.
            self._calls_since_refusal += 1
            target = self._target
            # Without a refusal for much longer than the target expects, the limit is far away: faster towards it.
            faster = min(8.0, max(1.0, self._calls_since_refusal * target / 4))
            self._change(faster * self._step * target / (1 - target))
        late = TIMER_SECONDS if gap < 2 * TIMER_SECONDS else 0.0
        self._next = max(self._next, now - late) + gap

    def accepted(self) -> None:
        """A call was answered."""
        self._refused_in_a_row = 0

    def refused(self, now: float, sent_at: float) -> bool:
        """A call was refused. Return whether a search for a slower rate begins."""
        self._refusal_seconds = max(now - sent_at, 0.95 * self._refusal_seconds)
        if not self._counted_from <= sent_at <= self._counted_until:
            return False  # It was sent at another rate.
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
            # The refusal is back before the next call is due: the slot that was missed is tried again, a little later
            # each time. A fixed window that is used up stays closed for many slots.
            self._next = min(self._next, now + 4.0**self._refused_in_a_row / (16 * self.rate))
        self._refused_in_a_row += 1
        if self.rate < self._fastest / 4:
            self._search(now, self.rate)
            return True
        return False

    @property
    def _target(self) -> float:
        """The share of refusals to settle at."""
        near = (
            TARGET_SHARE
            if self.rate and self._refusal_seconds * self.rate < NEAR_SHARE
            else TARGET_SHARE_LATE
        )
        return self._background + (1 - self._background) * near

    @property
    def _step(self) -> float:
        """What a refusal takes off the rate: less where it is known only after many more calls were sent."""
        assert self.rate is not None
        return STEP / (1 + self._refusal_seconds * self.rate / 4)

    def _change(self, step: float) -> None:
        assert self.rate is not None
        self.rate = max(SLOWEST_RATE, self.rate * math.exp(step))
        self._fastest = max(self._fastest, self.rate)

    def _search(self, now: float, rate: float) -> None:
        """Look for a rate at which fewer calls are refused, from this one downwards."""
        self._trial = _Trial()
        self.rate = max(SLOWEST_RATE, rate)
        self._begin(now)

    def _end_trial(self, trial: _Trial, now: float) -> None:
        """Decide whether the slower rate has helped, and what comes next."""
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
        """Count anew."""
        self._counted_from, self._counted_until = now, math.inf
        self._sent = self._refused = 0


class _Trial:
    """A search for a slower rate: the share of accepted calls at its start, and what a rate limit would accept now."""

    def __init__(self) -> None:
        self.accepted: float | None = None
        self.expected = 0.0


class _Allowance:
    """One of the limits that rate headers tell of: requests, or tokens.

    Until the reset, what is left is what the last reply said, less what is in flight: the server may not have counted
    that yet. What is there after the reset is known from the next reply on. Until then calls follow each other at the
    limit per window, since a burst would be refused wherever the reset was rounded down.
    """

    __slots__ = ("in_flight", "left", "limit", "next", "reset", "window")

    def __init__(self) -> None:
        self.left: float | None = None
        self.limit: float | None = None
        self.reset = self.next = -math.inf
        self.window = 0.0
        """The longest time until a reset that was ever named."""
        self.in_flight = 0.0

    def wait(self, cost: float, now: float) -> float:
        """Seconds until `cost` fits. No call waits for more than one reset, however large it is."""
        if self.left is not None and now >= self.reset:
            self.left = None
        if self.left is None:
            return max(0.0, self.next - now)
        return 0.0 if cost <= self.left else self.reset - now

    def take(self, cost: float, now: float) -> None:
        """Count what a call takes of it."""
        self.in_flight += cost
        if self.left is not None:
            self.left -= cost
        elif self.limit:
            self.next = max(self.next, now) + cost * self.window / self.limit

    def note(
        self, left: int | None, seconds: float | None, limit: int | None, now: float, in_reply: float
    ) -> None:
        """Note what a header says: so much is left of the limit, and in so many seconds it is full again.

        `in_reply` is the part of the call whose reply this is: the server has counted that one.
        """
        if left is None or seconds is None:
            return
        self.left, self.reset = left - max(0.0, self.in_flight - in_reply), now + seconds
        self.limit, self.window = limit, max(self.window, seconds)
