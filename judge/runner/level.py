"""How many calls a server is worth: the fewest in flight that bring most replies per second.

Hill climbing on goodput, the rate of replies. A level is measured over whole rounds (as many endings
as calls in flight, so that calls which come back in bunches are counted fairly). It doubles while that
pays; later it now and then tries a step up, which must bring more, and a step down, which must not
bring less. Latency is no signal of its own, because a server that batches grows slower and better at
once (Little's law: replies per second = calls in flight / latency); it only says when a call would
come too near to its time-out.
"""

from __future__ import annotations

import math

FIRST = 8
"""Calls at first: a server that takes one at a time must get through them within one time-out."""
STEP = 1.25
PAYS = 0.15
"""A level p % higher must bring PAYS * p % more replies a second, or the one below is as good."""
LEAST_ENDINGS = 16
ENOUGH_SECONDS = 20.0
LEAST_SECONDS = 0.02
MOST_EPOCHS = 64
"""Epochs between two tries at most; every try that finds nothing doubles them."""
SAFE = 0.5
"""Part of the time-out that the expected latency may take."""


class Level:
    """The number of calls that may be in flight, `limit`, between 1 and `ceiling`.

    `timeout` is that of one call, in seconds. Told of every call's begin (`took`) and end (`ended`);
    times are of any one clock.
    """

    def __init__(self, ceiling: int, timeout: float = math.inf, now: float = 0.0) -> None:
        self.ceiling, self.timeout = max(1, ceiling), timeout
        self.limit = min(FIRST, self.ceiling)
        self.cuts = 0
        self._best: float | None = None
        self._home = self.limit
        self._factor = 2.0
        self._held, self._hold = 0, 1
        self._down_next = False
        self._cut_at = -math.inf
        self._latency, self._good_at = 0.0, -math.inf
        self._in_flight = 0
        self._looked = now
        self._begin(now)

    def took(self, now: float) -> None:
        """A call is sent."""
        self._area += self._in_flight * (now - self._looked)
        self._looked = now
        self._in_flight += 1

    def ended(self, now: float, sent_at: float, good: bool) -> None:
        """A call came back, `good` with a reply."""
        self._area += self._in_flight * (now - self._looked)
        self._looked = now
        self._in_flight -= 1
        if good:
            self._good_at = now
            self._latency += 0.1 * (now - sent_at - self._latency) if self._latency else now - sent_at
        if self._settling > 0:
            self._settling -= 1
            if self._settling == 0:
                self._start(now)
            return
        self._endings += 1
        self._good += good
        self._taken += now - sent_at
        if self._endings >= self._most or (self._endings >= self.limit and self._is_long(now)):
            self._decide(now)

    def timed_out(self, now: float, sent_at: float) -> None:
        """A call had no answer in time: one that stalls while others come back fast is a failure as any,
        else there is a queue, and it is too long."""
        if self.timeout == math.inf:
            self.timeout = max(now - sent_at, LEAST_SECONDS)
        stalled = self._good_at >= sent_at and self._latency < self.timeout / 4
        if sent_at <= self._cut_at or stalled:
            return
        rate = self._good / max(now - self._since, self.timeout)
        self.cut(now, max(1, min(self.limit // 2, int(rate * self.timeout * SAFE / 2))))

    def cut(self, now: float, limit: int) -> None:
        """Go down to a level at once and find the way up from there in small steps."""
        self._cut_at = now
        self.cuts += 1
        self._best = None
        self._factor = STEP
        self.limit = self._home = max(1, min(limit, self.limit))
        self._held, self._hold = 0, 1
        self._begin(now)

    def restart(self, now: float) -> None:
        """After an outage: from a small level upwards again."""
        self.limit = self._home = max(1, min(FIRST, self.limit))
        self._best, self._factor = None, 2.0
        self._held, self._hold = 0, 1
        self._begin(now)

    def interrupted(self, now: float) -> None:
        """Sending was held for another reason: what was measured says nothing."""
        self.limit = self._home
        self._begin(now)

    # Epochs

    def _begin(self, now: float) -> None:
        """Measure anew, once the calls of before are back."""
        self._settling = self.limit
        self._most = max(self.limit, LEAST_ENDINGS)
        self._looked = now
        self._start(now)

    def _start(self, now: float) -> None:
        self._since = now
        self._endings = self._good = 0
        self._area = self._taken = 0.0

    def _is_long(self, now: float) -> bool:
        return now - self._since > ENOUGH_SECONDS

    def _decide(self, now: float) -> None:
        seconds = now - self._since
        if seconds < LEAST_SECONDS:
            self._most += self.limit
            return
        busy = self._area / seconds
        # Little's law; a plain count errs where replies come in waves.
        rate = busy * self._good / max(self._taken, 1e-9)
        if busy < 0.75 * self.limit:
            # There was too little to send (or it was paced): nothing is learnt of this level, unless more
            # went than the former one let through.
            if busy > self._home:
                self._home = min(self.limit, math.ceil(busy / 0.75))
            self.limit = self._home
        elif self.limit == self._home:
            self._at_home(rate)
        elif self.limit > self._home:
            self._tried_up(rate)
        else:
            self._tried_down(rate)
        self._begin(now)

    def _at_home(self, rate: float) -> None:
        fell = self._best is not None and rate < 0.7 * self._best
        self._best = rate if self._best is None or fell else 0.8 * self._best + 0.2 * rate
        if fell:
            self._hold, self._down_next = 1, True
        self._held += 1
        if self._held < self._hold:
            return
        self._held = 0
        higher = max(self.limit + 1, math.ceil(self.limit * self._factor))
        can_rise = self.limit < self.ceiling and self._is_safe(min(self.ceiling, higher), rate)
        if not self._is_safe(self.limit, rate) or (self.limit > 1 and (self._down_next or not can_rise)):
            self._down_next = False
            self.limit = min(self.limit - 1, int(self.limit / STEP)) or 1
        elif can_rise:
            self._down_next = self._factor == STEP
            self.limit = min(self.ceiling, higher)

    def _is_safe(self, level: int, rate: float) -> bool:
        """Whether calls would be back well within their time-out if a higher level brought nothing."""
        return level == 1 or (rate > 0 and level / rate <= self.timeout * SAFE)

    def _tried_up(self, rate: float) -> None:
        best = self._best or 0.0
        if rate >= best * (1 + PAYS * (self.limit / self._home - 1)):
            self._settle(rate)
            return
        self._back()

    def _tried_down(self, rate: float) -> None:
        best = self._best or 0.0
        if rate >= best * (1 - PAYS * (1 - self.limit / self._home)) or not self._is_safe(self._home, best):
            # What was best stays what to compare with: many small losses are not accepted one by one.
            self._settle(max(rate, best))
            return
        self._back()

    def _settle(self, rate: float) -> None:
        up = self.limit > self._home
        self._home, self._best = self.limit, rate
        self._held, self._hold = 0, 1
        self._down_next = not up

    def _back(self) -> None:
        self.limit = self._home
        self._factor = STEP
        self._held, self._hold = 0, min(MOST_EPOCHS, self._hold * 2)
