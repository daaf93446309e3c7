"""The rate controller of one server: it limits the number of concurrent calls, and the rate at which calls
are sent.

If the user sets a concurrency, it is the initial and the largest limit. Otherwise, the limit starts at the
concurrency that the server at this address last sustained or, if the study has none, at `START`. Good replies
then raise the limit step by step, up to `MOST`. Only four observations slow down the calls:

- The vendors' rate headers: no call is sent before the time in the headers. Retry-After delays only the
  refused call (see `judge.runner.calls`). If it delayed all calls, a server that allows 10 calls per second
  would receive only 2.
- Refusals (429, 503) of more than 15 % of the calls: calls are spaced evenly (`judge.runner.spacing`).
- Time-outs while the other calls are slow too: the limit falls to the number of calls that the server answers
  in half a time-out.
- A doubling of the limit that raises the latency but not the number of replies per second: the doubling is
  undone.

A straggler does not lower the limit. A straggler is a call that is still open when no unit is left to send,
or a call that timed out while the median latency is below a quarter of the time-out.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import median

from judge.runner.spacing import Spacing
from judge.types import RateState

MOST, START = 100, 16
"""The largest limit, and the initial limit for a server without stored facts. Both apply if no concurrency is set."""
RECENT_REPLIES = 256
"""Number of recent replies from which throughput and median latency are computed: more than two rounds of
`MOST` calls.
"""
SAFE_SHARE = 0.5
"""Share of the time-out that calls should take at most. Above this share, the limit does not grow, and a
time-out lowers the limit. Otherwise, a server that answers one call at a time would spend its time on
calls that have already timed out.
"""
STRAGGLER_SHARE = 0.25
"""While the median latency is below this share of the time-out, a call that times out is a straggler."""
LEAST_GAIN = 1.2
"""A doubling of the limit is undone unless it multiplies the replies per second by at least this factor."""
DOUBLING_REPLIES = 32
"""A doubling is evaluated once, after this number of replies. An earlier controller decided after about 16
calls. With log-normal latencies, it mistook noise for a rise and never had more than 24 of 100 calls in
flight.
"""
SURE_ERRORS = 2.5
"""Number of standard errors by which the mean log-latency must have risen before a doubling is undone."""
FORGET_SECONDS = 300.0
"""After this time, a doubling that was undone is tried again, because the server may have gained capacity."""


class RateController:
    """Limits the calls to one server. Times are in seconds on the caller's clock.

    `ceiling` is the maximum number of calls in flight, `start` is the initial limit, and `timeout` is the
    time-out of one call.
    """

    def __init__(self, ceiling: int, start: int | None = None, timeout: float = math.inf) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = min(self.ceiling, max(1, start or START))
        self.timeout = timeout
        self.spacing = Spacing()
        self.in_flight = 0
        self.cuts = 0
        self.notes: list[str] = []
        """Remarks on the server for the user, each with the option to use next."""
        self.most_used = 0
        self.feeding = True
        """Whether units are left to send."""
        self._requests, self._tokens = Allowance(), Allowance()
        self._full_at = self._cut_at = self._replied_at = -math.inf
        self._latencies: deque[float] = deque(maxlen=RECENT_REPLIES)
        self._replies: deque[float] = deque(maxlen=RECENT_REPLIES)
        self._doublings: dict[int, _Latency] = {}
        self._undone_above = self.ceiling
        self._try_again_at = math.inf

    @property
    def sustained(self) -> int:
        """The largest number of calls in flight so far, or the current limit if that is lower."""
        return self.limit if self.most_used >= self.limit else self.most_used

    def delay(self, now: float, tokens: int = 0) -> float:
        """Return the seconds until a call with this many tokens may be sent.

        The limit on concurrent calls is not considered.
        """
        waits = (self._requests.wait(1, now), self._tokens.wait(tokens, now))
        return max(0.0, self.spacing.delay(now), *waits)

    def record_sent(self, now: float, tokens: int = 0) -> None:
        """Record that a call with this many tokens is being sent."""
        self.in_flight += 1
        self.most_used = max(self.most_used, self.in_flight)
        if self.in_flight >= self.limit:
            self._full_at = now
        self.spacing.record_sent(now)
        self._requests.take(1, now)
        self._tokens.take(tokens, now)

    def record_end(self, tokens: int = 0) -> None:
        """Record that a call with this many tokens has ended, whether or not it succeeded."""
        self.in_flight -= 1
        self._requests.in_flight -= 1
        self._tokens.in_flight -= tokens

    def record_reply(self, now: float, sent_at: float, limit: int) -> None:
        """Record a good reply to a call that was sent when the limit was `limit`."""
        self.spacing.record_answer()
        self._latencies.append(now - sent_at)
        self._replies.append(now)
        self._replied_at = now
        if now >= self._try_again_at:
            self._doublings.clear()
            self._undone_above, self._try_again_at = self.ceiling, math.inf
        if self.limit >= self._undone_above or self._full_at < sent_at:
            # The limit is at its maximum, or it was not reached, so that nothing is known about a higher one.
            return
        self._judge_doubling(now, now - sent_at, limit)
        # By Little's law, a call would take this long if one more call added no replies per second.
        if self.limit < self._undone_above and self._throughput(now) > (self.limit + 1) / (
            self.timeout * SAFE_SHARE
        ):
            self.limit += 1

    def record_refusal(self, now: float, sent_at: float) -> None:
        """Record that the server refused a call (429, 503)."""
        self.cuts += self.spacing.record_refusal(now, sent_at)

    def record_timeout(self, now: float, sent_at: float) -> bool:
        """Record a time-out, and lower the limit if the time-out shows that the server has too many calls.

        Return whether the limit was the reason for the time-out.
        """
        # The call was sent before the last reduction, which was a reaction to the same overload.
        if sent_at <= self._cut_at:
            return True
        if self.timeout == math.inf:
            # The provider has a time-out but does not report it.
            self.timeout = max(now - sent_at, 1e-3)
        is_silent = self.feeding and self._replied_at < sent_at
        is_slow = bool(self._latencies) and median(self._latencies) >= self.timeout * STRAGGLER_SHARE
        served = int(self._throughput(now, until_now=True) * self.timeout * SAFE_SHARE)
        # The other calls are answered in time: it is a straggler, which fewer calls would not help.
        if not (is_silent or is_slow) or served >= self.limit or self.limit == 1:
            return False
        before, self.limit = self.limit, max(1, min(self.limit // 2, served))
        if not self.notes:
            self.notes.append(
                f"calls timed out after {self.timeout:g} s because the server was slow, so concurrency was reduced from {before} "
                f"to {self.limit}; to lose no calls, use --concurrency {self.limit} or a longer --timeout"
            )
        self.cuts += 1
        self._begin_again(now)
        return True

    def restart(self, now: float) -> None:
        """Start again after an outage as if the server had never been used."""
        self.limit = min(self.limit, START)
        # Refusals of calls from before the outage may still arrive. With no calls counted, they would set the slowest rate.
        self.spacing = Spacing(since=now)
        self._begin_again(now)

    def obey(self, state: RateState, now: float, tokens: int = 0) -> None:
        """Apply the rate headers of a reply.

        `tokens` is the number of tokens of the answered call. This call is still included among the calls in
        flight.
        """
        self._requests.note(
            state.remaining_requests, state.reset_requests, state.limit_requests, now, in_reply=1
        )
        self._tokens.note(
            state.remaining_tokens, state.reset_tokens, state.limit_tokens, now, in_reply=tokens
        )

    def _begin_again(self, now: float) -> None:
        """Discard the measurements made at another limit. Calls that were sent at that limit are not evidence
        about the current one.
        """
        self._cut_at = now
        self._replies.clear()
        self._doublings.clear()
        self._undone_above, self._try_again_at = self.ceiling, math.inf

    def _throughput(self, now: float, until_now: bool = False) -> float:
        """Return the replies per second, or 0 before the second reply.

        If `until_now` is True, the time since the last reply is included.
        """
        if len(self._replies) < 2:
            return 0.0
        seconds = (now if until_now else self._replies[-1]) - self._replies[0]
        return (len(self._replies) - 1) / max(seconds, 1e-6)

    def _judge_doubling(self, now: float, latency: float, limit: int) -> None:
        """Undo the last doubling of the limit if it only made calls slower."""
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
        # Latencies are about log-normal. A mean of the seconds would be decided by the few slowest calls.
        value = math.log(max(seconds, 1e-6))
        self.n += 1
        before = value - self.mean
        self.mean += before / self.n
        self._squares += before * (value - self.mean)

    @property
    def error2(self) -> float:
        """The squared standard error of the mean."""
        return self._squares / max(1, self.n - 1) / max(1, self.n)


class Allowance:
    """A server's limit on requests or on tokens, according to its rate headers.

    Until the limit is reset, the remaining amount is the value in the last reply minus the calls in flight,
    which the server may not have counted yet. After the reset, the amount is unknown until the next reply.
    During that time, calls are spaced evenly over the window: the server may have rounded the reset time
    down, and would then refuse a burst of calls.
    """

    __slots__ = ("in_flight", "left", "limit", "next", "reset", "window")

    def __init__(self) -> None:
        self.left: float | None = None
        self.limit: float | None = None
        self.reset = self.next = -math.inf
        self.window = 0.0
        """The longest time until a reset in any header so far, in seconds."""
        self.in_flight = 0.0

    def wait(self, cost: float, now: float) -> float:
        """Return the seconds until a call with this cost may be sent.

        A call that exceeds the whole limit is sent after the next reset.
        """
        if self.left is not None and now >= self.reset:
            self.left = None
        if self.left is None:
            return max(0.0, self.next - now)
        return 0.0 if cost <= self.left else self.reset - now

    def take(self, cost: float, now: float) -> None:
        """Subtract from the limit the cost of a call that is about to be sent."""
        self.in_flight += cost
        if self.left is not None:
            self.left -= cost
        elif self.limit:
            self.next = max(self.next, now) + cost * self.window / self.limit

    def note(
        self, left: int | None, seconds: float | None, limit: int | None, now: float, in_reply: float
    ) -> None:
        """Record a rate header.

        `left` is the amount that remains until the limit is reset, `seconds` from now. `in_reply` is the cost
        of the answered call, which is already subtracted from `left` but is still included in the cost in
        flight.
        """
        if left is None or seconds is None:
            return
        # The server may not have counted the calls in flight when it wrote the header.
        self.left, self.reset = left - max(0.0, self.in_flight - in_reply), now + seconds
        # A header has the rest of the window and not its length, so the longest rest so far counts.
        self.limit, self.window = limit, max(self.window, seconds)
