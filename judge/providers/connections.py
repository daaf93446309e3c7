"""Limits for connections to a server: how fast new ones are opened, and how long a call may take."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from contextvars import ContextVar
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


is_new: ContextVar[bool] = ContextVar("is_new")
"""Whether the current call has opened a connection, instead of reusing an idle one."""
_KEEP_ALIVE = re.compile(r"\btimeout=(\d{1,6})\b", re.IGNORECASE)


class SpacedConnector(aiohttp.TCPConnector):
    """A connection pool that opens a new connection at most every `CONNECTION_GAP_SECONDS`."""

    def __init__(self) -> None:
        # No limit: the runner alone decides how many calls run at once.
        super().__init__(limit=0)
        self._next_at = 0.0

    def limit_idle(self, keep_alive: str) -> None:
        """Close idle connections before the server does, according to its header `Keep-Alive: timeout=SECONDS`."""
        announced = _KEEP_ALIVE.search(keep_alive)
        if announced is not None:
            # Half of the time, because a request may already be under way when the server closes the connection.
            self._keepalive_timeout = min(self._keepalive_timeout or math.inf, float(announced[1]) / 2)

    def close_idle(self) -> None:
        """Close all idle connections. If the server has closed one of them, it has probably closed the others too."""
        for idle in self._conns.values():
            for handler, _ in idle:
                handler.close()
        self._conns.clear()

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        is_new.set(True)
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
