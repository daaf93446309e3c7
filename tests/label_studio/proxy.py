"""A loopback proxy in front of a real server, that can fail a request before or after passing it on, or hold it."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx


class Proxy:
    """`fail(path, nth, passed)`: the nth request whose method and path hold `path` gets a 500, passed on first or not."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._rule: tuple[str, int, bool] | None = None
        self._hold: tuple[str, int] | None = None
        self.held = threading.Event()
        self.seen: list[str] = []
        self._count = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _go(self) -> None:
                outer._handle(self)

            do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _go

            def log_message(self, *args: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def fail(self, path: str, nth: int = 1, *, passed: bool = False) -> None:
        """Fail one request from now on."""
        self._rule, self._count = (path, nth, passed), 0

    def hold(self, path: str, nth: int = 1) -> None:
        """Never answer one request from now on, and set `held`."""
        self._hold, self._count = (path, nth), 0
        self.held.clear()

    def heal(self) -> None:
        """Pass everything on."""
        self._rule = self._hold = None

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        with self._lock:
            asked = f"{request.command} {request.path}"
            self.seen.append(asked)
            rule, hold = self._rule, self._hold
            looked_for = (rule or hold or ("\0", 0))[0]
            if looked_for in asked:
                self._count += 1
            number = self._count if looked_for in asked else -1
        if hold and number == hold[1]:
            self.held.set()
            threading.Event().wait(60)
            return
        failing = rule is not None and number == rule[1]
        if failing and rule is not None and not rule[2]:
            self._answer(request, 500, {}, b'{"detail": "injected"}')
            return
        headers = {
            k: v
            for k, v in request.headers.items()
            if k.lower() not in ("host", "content-length", "accept-encoding")
        }
        reply = httpx.request(
            request.command, self._target + request.path, content=body, headers=headers, timeout=120
        )
        if failing:
            self._answer(request, 500, {}, b'{"detail": "injected after the server did it"}')
        else:
            self._answer(
                request,
                reply.status_code,
                {"Content-Type": reply.headers.get("content-type", "")},
                reply.content,
            )

    def _answer(
        self, request: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes
    ) -> None:
        request.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)
