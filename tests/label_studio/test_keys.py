"""Where the key of Label Studio goes: to the server that the user names, by no redirect and no proxy to another one."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.cli.helpers import Done

Run = Callable[..., Done]


class Recorder:
    """A server that keeps what it receives; with `to` it redirects every request there, method and body included."""

    def __init__(self, to: str = "") -> None:
        self.received: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _go(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                outer.received.append(f"{self.command} {self.path}\n{self.headers}{body}")
                self.send_response(307 if to else 404)
                if to:
                    self.send_header("Location", to + self.path)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST = do_PATCH = _go

            def log_message(self, *args: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def recording(to: str = "") -> Iterator[Recorder]:
    result = Recorder(to)
    threading.Thread(target=result.server.serve_forever, daemon=True).start()
    try:
        yield result
    finally:
        result.server.shutdown()
        result.server.server_close()


def personal_token() -> str:
    """A personal access token, which the SDK posts in the body to get a token for an hour."""
    return jwt.encode(
        {"token_type": "refresh", "exp": int(time.time()) + 3600}, "a secret of the server " * 2
    )


@pytest.mark.parametrize("key", ["canary-legacy-token", personal_token()], ids=["legacy", "personal"])
def test_a_redirect_is_not_followed(key: str, study: Path, annotate: Run) -> None:
    """The body of a redirected POST is sent again: a personal token, or the texts of the batch."""
    with recording() as other, recording(to=other.url) as named:
        done = annotate("push", "pilot", "--url", named.url, db=study, key=key, code=3)
    assert named.received and not other.received
    assert done.err.strip().endswith(
        f"{named.url} redirects to another address (HTTP 307); pass the final address"
    )


def test_no_proxy_for_a_server_on_this_machine(
    study: Path, annotate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording() as proxy, recording() as named:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        annotate("push", "pilot", "--url", named.url, db=study, key="canary-legacy-token", code=3)
    assert named.received and not proxy.received
