"""What a loopback server is good for: one call at a time, several, batches, or so many a second."""

from __future__ import annotations

import heapq
import time
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


def capacity(text: str) -> Capacity:
    """`serial:0.05`, `slots:0.05,10`, `batching:0.05,40` or `bucket:100` of the command line."""
    kind, _, rest = text.partition(":")
    numbers = [float(n) for n in rest.split(",")]
    if kind == "serial":
        return Slots(numbers[0])
    if kind == "slots":
        return Slots(numbers[0], int(numbers[1]))
    if kind == "batching":
        return Batching(numbers[0], int(numbers[1]))
    if kind == "bucket":
        return Bucket(numbers[0])
    raise ValueError(f"no capacity '{text}'")
