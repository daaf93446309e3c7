"""Limits for connections to a server: how fast new ones are opened, and how long a call may take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.tracing import Trace

CONNECTION_GAP_SECONDS = 0.002
"""The minimum number of seconds between two new connections to a server.

Small servers (Python's `http.server`, programs built on cpp-httplib) queue at most five connections that they
have not accepted yet. The operating system drops any further connections, and retries each of them after 1,
3, 7 and 15 s. When 100 connections to such a server were opened at once, the slowest connection took 1 to 14
s. With this interval, the slowest connection took 0.2 s.
"""
STOPPED_SECONDS, AWAKE_SECONDS = 1.0, 5.0
"""If a timer fires more than STOPPED_SECONDS late, the process must have been stopped.

The call then gets another AWAKE_SECONDS to finish.
"""


class SpacedConnector(aiohttp.TCPConnector):
    """A connection pool that opens a new connection at most every `CONNECTION_GAP_SECONDS`."""

    def __init__(self) -> None:
        # No limit: the runner alone decides how many calls run at once.
        super().__init__(limit=0)
        self._next_at = 0.0

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        now = asyncio.get_running_loop().time()
        at = max(now, self._next_at)
        self._next_at = at + CONNECTION_GAP_SECONDS
        if at > now:
            await asyncio.sleep(at - now)
        return await super()._create_connection(req, traces, timeout)


class TimeLimit:
    """A timeout for one call, like `asyncio.timeout`. Raises TimeoutError.

    If the process was stopped during the call (by SIGSTOP, or because the machine was suspended), the time-out
    is extended by a few seconds.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._limit = seconds, asyncio.timeout(None)

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watch(self._seconds, self._look)
        await self._limit.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._limit.__aexit__(kind, error, trace)

    def _watch(self, seconds: float, call: Callable[[], None]) -> None:
        self._due = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._due, call)

    def _look(self) -> None:
        # A timer that fires late shows that the process was stopped. The response may have arrived in the
        # meantime, and it has been paid for.
        if self._loop.time() - self._due > STOPPED_SECONDS:
            self._watch(AWAKE_SECONDS, self._end)
        else:
            self._end()

    def _end(self) -> None:
        self._limit.reschedule(self._loop.time())
