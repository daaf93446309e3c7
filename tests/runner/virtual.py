"""An event loop whose time is simulated: what a run does in minutes takes the CPU that it costs, and no clock decides."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

from judge.errors import RateLimited
from judge.providers.base import BaseProvider
from judge.runner import RunReport
from judge.types import Reply, Request
from tests.runner.helpers import label

TURN_SECONDS = 2e-5
"""What a turn of the loop takes in its own time."""


class _Jumping(selectors.DefaultSelector):
    """Where nothing is ready, the time of the next timer is there at once."""

    loop: SimulatedLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Without a timer it is another thread that is waited for (a commit), and that takes the time it takes.
        ready = super().select(None if timeout is None else 0)
        if not ready and timeout is not None:
            self.loop.seconds += max(timeout, TURN_SECONDS)
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    """`seconds` is its time."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        selector = _Jumping()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.seconds

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Without the limit that Python 3.12 sets: threads end in real time, whatever is simulated."""
        await super().shutdown_default_executor()


def simulated(work: Coroutine[Any, Any, RunReport]) -> RunReport:
    """What the run reports, in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(work)


class Limited(BaseProvider):
    """A provider whose server refuses what `takes` does not take at the time (from 0) at which a call arrives.

    Calls arrive 0.3 ms after they are sent and a little late (0.1 ms in the mean); who is refused knows it 0.3 ms
    later, who is not is answered after `seconds`. `retry_after` is what a refusal says, None = nothing.
    """

    def __init__(
        self,
        takes: Callable[[float], bool],
        seed: int,
        seconds: float = 0.001,
        retry_after: float | None = None,
    ) -> None:
        self.takes, self.seconds, self.retry_after = takes, seconds, retry_after
        self.draw = random.Random(seed)
        self.requests = 0
        self.begun: float | None = None
        self.ended = 0.0

    async def complete(self, request: Request) -> Reply:
        time = asyncio.get_running_loop().time
        self.begun = time() if self.begun is None else self.begun
        self.requests += 1
        await asyncio.sleep(0.0003 + self.draw.expovariate(1 / 0.0001))
        taken = self.takes(time() - self.begun)
        await asyncio.sleep(self.seconds if taken else 0.0003)
        self.ended = time() - self.begun
        if not taken:
            raise RateLimited("slow down", self.retry_after)
        return label()
