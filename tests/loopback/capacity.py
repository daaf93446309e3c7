"""What a loopback server is good for: one call at a time, several, batches, or so many a second."""

import heapq
import math
import random
import time
from collections.abc import Callable, Mapping
from typing import Protocol


class Capacity(Protocol):
    """How long a request that comes now waits and works, in seconds; None = it is refused."""

    def wait(self) -> float | None: ...


class Slots:
    """`slots` calls at a time, `seconds` each; the others queue. One slot is a serial server.

    What nobody waits for any more is worked on all the same, as most servers do.
    """

    def __init__(self, seconds: float, slots: int = 1) -> None:
        self.seconds, self._free = seconds, [0.0] * slots

    def wait(self) -> float:
        now = time.monotonic()
        end = max(heapq.heappop(self._free), now) + self.seconds
        heapq.heappush(self._free, end)
        return end - now


class Batching:
    """Latency grows from `seconds` to its double while the calls at work grow to `size`, and throughput
    with them to `size / 2` times that of one call; calls beyond `size` queue."""

    def __init__(self, seconds: float, size: int) -> None:
        self.seconds, self.size = seconds, size
        self._ends: list[float] = []

    def wait(self) -> float:
        now = time.monotonic()
        while self._ends and self._ends[0] <= now:
            heapq.heappop(self._ends)
        at_work = len(self._ends)
        # A queued call starts when enough of those before it have ended.
        start = now if at_work < self.size else heapq.nsmallest(at_work - self.size + 1, self._ends)[-1]
        end = start + self.seconds * (1 + min(at_work + 1, self.size) / self.size)
        heapq.heappush(self._ends, end)
        return end - now


class Bucket:
    """`rate` calls a second, each no sooner than 1 / rate after the one before: no burst at all."""

    def __init__(self, rate: float) -> None:
        self.gap, self._next = 1.0 / rate, 0.0

    def wait(self) -> float | None:
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + self.gap
        return 0.0


class LogNormal:
    """Latencies that differ as those of real models do: log-normal, drawn with a seed. `stall`: a share of the calls
    takes `stall_seconds` instead."""

    def __init__(
        self, seconds: float, sigma: float, stall: float = 0.0, stall_seconds: float = 60.0, seed: float = 1
    ) -> None:
        self.draw = random.Random(seed)
        self.median, self.sigma, self.stall, self.stall_seconds = seconds, sigma, stall, stall_seconds

    def wait(self) -> float:
        latency = self.median * math.exp(self.draw.gauss(0.0, self.sigma))
        return self.stall_seconds if self.draw.random() < self.stall else latency


class Changing:
    """Every call takes `before` seconds at first and `after` later: after so many calls, or after so many seconds."""

    def __init__(
        self, before: float, after: float, calls: float = math.inf, seconds: float = math.inf
    ) -> None:
        self.before, self.after, self.calls, self.seconds = before, after, calls, seconds
        self._begun: float | None = None

    def wait(self) -> float:
        now = time.monotonic()
        self._begun = self._begun or now
        self.calls -= 1
        return self.after if self.calls < 0 or now - self._begun >= self.seconds else self.before


class Mixed:
    """Short answers and, in one call of `every`, a very long one."""

    def __init__(self, short: float, long: float, every: float) -> None:
        self.short, self.long, self.every = short, long, every
        self._calls = 0

    def wait(self) -> float:
        self._calls += 1
        return self.long if self._calls % self.every == 0 else self.short


def capacity(text: str) -> Capacity:
    """`serial:0.05`, `slots:0.05,10`, `batching:0.05,40`, `bucket:100`, `lognormal:MEDIAN,SIGMA[,SHARE,SECONDS]`,
    `cold:BEFORE,AFTER,CALLS`, `slowing:BEFORE,AFTER,SECONDS` or `mixed:SHORT,LONG,EVERY` of the command line."""
    kind, _, rest = text.partition(":")
    return _KINDS[kind](*(float(n) for n in rest.split(",")))


_KINDS: Mapping[str, Callable[..., Capacity]] = {
    "serial": Slots,
    "slots": lambda seconds, slots: Slots(seconds, int(slots)),
    "batching": lambda seconds, size: Batching(seconds, int(size)),
    "bucket": Bucket,
    "lognormal": LogNormal,
    "cold": Changing,
    "slowing": lambda before, after, seconds: Changing(before, after, seconds=seconds),
    "mixed": Mixed,
}
