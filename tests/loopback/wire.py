"""A small HTTP/1.1 server on raw asyncio: fast enough to measure clients with, rude enough to test them.

It reads requests with a Content-Length, answers them one after the other on a kept connection, and
can reset, cut or delay an answer, which a web framework would not let it do.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from tests.loopback.capacity import Capacity, capacity
from tests.loopback.faults import Fault, Plan, rule

REASONS = {
    200: b"OK",
    400: b"Bad Request",
    401: b"Unauthorized",
    404: b"Not Found",
    429: b"Too Many Requests",
}
WITHHELD_SECONDS = 60.0
"""After so long a withheld answer is sent all the same: the test fails by what it asserts, and does not hang."""


@dataclass(slots=True)
class Out:
    """One answer. `close` ends the connection: "reset" or "closed" before it, "cut" in the middle of the body."""

    body: bytes
    status: int = 200
    headers: bytes = b""
    delay: float = 0.0
    close: str = ""
    content_type: bytes = b"application/json"


def header(head: str, name: str) -> str:
    """A request header's value, empty when it is missing."""
    for line in head.split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name:
            return value.strip()
    return ""


class LoopbackServer:
    """Base of the vendors' servers: sockets, counting, faults. Use as an async context manager.

    `delay` is in seconds before every answer. `requests` counts model calls (probes included),
    `max_concurrency` is the most that were open at once, `bodies` has their JSON while `record`.
    """

    path = "/"
    suffix = ""

    def __init__(self, *, delay: float = 0.0, port: int = 0, record: bool = False) -> None:
        self.delay, self.port, self.record = delay, port, record
        self.requests = self.open_now = self.max_concurrency = self.connections = 0
        self.bodies: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.heads: list[str] = []
        self.plan = Plan()
        self.extra_headers: dict[str, str] = {}
        self.capacity: Capacity | None = None
        self._clients: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._expected = 0
        self._withheld: list[tuple[_Connection, Out]] = []

    # What a vendor fills in

    def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
        raise NotImplementedError

    def error(self, status: int, fault: Fault) -> Out:
        raise NotImplementedError

    def other(self, method: str, path: str, head: str) -> Out:
        return Out(b'{"error":{"message":"no such address"}}', 404)

    def question(self, body: dict[str, Any]) -> str:
        raise NotImplementedError

    # Life

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self.port}{self.suffix}"

    async def start(self) -> Self:
        """Listen; after `stop`, again on the same port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self.port, backlog=1024, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        """Die: stop listening and reset every connection."""
        if self._server is not None:
            self._server.close()
            for client in list(self._clients):
                client.reset()
            await self._server.wait_closed()
            self._server = None
        await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def withhold(self, count: int) -> None:
        """Send no answer until `count` requests are open at once, so that no clock decides whether they are."""
        self._expected = count

    @property
    def withholds(self) -> bool:
        """Whether requests are still expected."""
        return self._expected > 0

    def keep(self, client: _Connection, out: Out) -> None:
        """Withhold an answer until the expected requests are open."""
        self._withheld.append((client, out))
        client.send_after(WITHHELD_SECONDS, out)
        if self.open_now >= self._expected:
            self._expected = 0
            for waiting, answer in self._withheld:
                if waiting.is_waiting:
                    waiting.send_after(answer.delay, answer)

    def script(self, *faults: Fault | str | None) -> None:
        """The next requests get these faults, in order (None = a good answer)."""
        self.plan.queue.extend(Fault(f) if isinstance(f, str) else f for f in faults)

    def reset_counts(self) -> None:
        """Forget what was counted and recorded (the probes of `open`, for instance)."""
        self.requests = self.max_concurrency = 0
        self.bodies.clear()
        self.raw.clear()
        self.heads.clear()

    def stats(self) -> dict[str, int]:
        return {
            "requests": self.requests,
            "max_concurrency": self.max_concurrency,
            "connections": self.connections,
        }

    def respond(self, method: str, path: str, head: str, payload: bytes) -> Out:
        if path == "/_stats":
            return Out(json.dumps(self.stats()).encode())
        if path == "/_bodies":
            return Out(json.dumps(self.bodies).encode())
        if method != "POST" or path != self.path:
            return self.other(method, path, head)
        self.requests += 1
        try:
            body = json.loads(payload)
        except ValueError:
            return self.error(400, Fault("400", message="the body is not JSON"))
        if self.record:
            self.bodies.append(body)
            self.raw.append(payload)
            self.heads.append(head)
        fault = None if self.plan.idle else self.plan.next(body, self.requests, self.question(body))
        out = self.faulty(body, head, fault) if fault else self.answer(body, head, None)
        out.delay += self.delay
        if self.capacity is not None and fault is None:
            wait = self.capacity.wait()
            if wait is None:
                out = self.error(429, Fault("429", message="too many requests"))
            else:
                out.delay += wait
        if self.extra_headers:
            out.headers += b"".join(f"{k}: {v}\r\n".encode() for k, v in self.extra_headers.items())
        return out

    def faulty(self, body: dict[str, Any], head: str, fault: Fault) -> Out:
        by_status = fault.kind.isdigit()
        out = self.error(int(fault.kind), fault) if by_status else self.answer(body, head, fault)
        if fault.kind in ("reset", "closed", "cut"):
            out.close = fault.kind
        elif fault.kind == "truncated":
            out.body = out.body[: len(out.body) // 2]
        elif fault.kind == "not_json":
            out.body = b"Bad gateway"
        elif fault.kind == "page":
            out.body = b"<!doctype html><title>Chat</title>"
            out.content_type = b"text/html; charset=utf-8"
        elif fault.kind == "empty":
            out.body = b'{"object":"nothing"}'
        out.delay += fault.seconds
        out.headers += b"".join(f"{k}: {v}\r\n".encode() for k, v in fault.headers.items())
        return out


Server = TypeVar("Server", bound=LoopbackServer)


class _Connection(asyncio.Protocol):
    """One kept connection: requests in, answers out after their delay."""

    def __init__(self, server: LoopbackServer) -> None:
        self.server = server
        self.buffer = b""
        self.transport: asyncio.Transport | None = None
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections += 1
        self.server._clients.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server._clients.discard(self)
        if self.timer is not None:
            self.timer.cancel()
            self.server.open_now -= 1
        self.transport = self.timer = None

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        if self.timer is None:
            self.take()

    def take(self) -> None:
        """Take one whole request from the buffer and set its answer's time."""
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].decode("latin-1")
        low = head.lower()
        at = low.find("\r\ncontent-length:")
        length = int(low[at + 17 :].split("\r\n", 1)[0]) if at >= 0 else 0
        if len(self.buffer) < end + 4 + length:
            return
        payload = self.buffer[end + 4 : end + 4 + length]
        self.buffer = self.buffer[end + 4 + length :]
        method, path, _ = head.split(" ", 2)
        server = self.server
        server.open_now += 1
        server.max_concurrency = max(server.max_concurrency, server.open_now)
        out = server.respond(method, path.partition("?")[0], head, payload)
        if server.withholds:
            server.keep(self, out)
        else:
            self.send_after(out.delay, out)

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is still to be sent: the client has not gone meanwhile."""
        return self.timer is not None

    def send_after(self, seconds: float, out: Out) -> None:
        """Set the time of the answer, instead of the one that was set before."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(seconds, self.send, out)

    def send(self, out: Out) -> None:
        self.timer = None
        self.server.open_now -= 1
        if self.transport is None:
            return
        if out.close == "reset":
            self.reset()
            return
        if out.close == "closed":
            self.transport.close()
            return
        head = b"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n" % (
            out.status,
            REASONS.get(out.status, b"Status"),
            out.content_type,
            len(out.body),
            out.headers,
        )
        if out.close == "cut":
            self.transport.write(head + out.body[: len(out.body) // 2])
            self.transport.close()
            return
        self.transport.write(head + out.body)
        if self.buffer:
            self.take()

    def reset(self) -> None:
        """A TCP reset, not a polite end."""
        if self.transport is not None:
            sock = self.transport.get_extra_info("socket")
            # Linger 0 makes the kernel send RST.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.transport.abort()


@contextlib.contextmanager
def threaded(server: Server) -> Iterator[Server]:
    """The server in a thread of its own, for tests of commands, which block theirs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(30)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def arguments(description: str) -> argparse.ArgumentParser:
    """The options that every server has on the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before every answer")
    parser.add_argument(
        "--capacity", metavar="KIND:N[,N]", help="serial:S, slots:N,S, batching:S,N, bucket:RATE"
    )
    parser.add_argument("--record", action="store_true", help="keep bodies for GET /_bodies")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="KIND[:every=N,first=N,after=N,share=X,random=X,times=N,...]",
    )
    return parser


def serve(server: LoopbackServer, faults: list[str], worth: str | None = None) -> None:
    """Run as a process until it is told to stop; prints the base URL first."""
    server.capacity = capacity(worth) if worth else None
    server.plan.rules = [rule(f) for f in faults]

    async def forever() -> None:
        async with server:
            print(server.url, flush=True)
            await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(forever())
