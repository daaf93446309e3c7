"""A server whose model changes behind its name, or repeats itself badly: chat completions on 127.0.0.1, in a thread."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from tests.loopback.answers import codes, instance, last_user, pick


class ChangingServer:
    """`constant`: every answer is this label; `noise`: the share of answers that are random labels instead of the usual one;
    `unreadable`: no answer has a label.

    `fingerprint` and `reports` are what it says of itself. It gives no probabilities, so that answers are JSON.
    """

    def __init__(self) -> None:
        self.constant: str | None = None
        self.noise = 0.0
        self.unreadable = False
        self.fingerprint: str | None = "fp_1"
        self.reports = "model-1"
        self.asked = 0
        self.random = random.Random(1)
        self.lock = Lock()
        self.url = ""

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one call."""
        question = last_user(body.get("messages", ()))
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        with self.lock:
            self.asked += 1
            is_noise = self.random.random() < self.noise
            salt = str(self.random.random()) if is_noise else ""
        if schema:
            answer = instance(schema, question + salt)
            for name, kind in schema.get("properties", {}).items():
                if self.constant in (kind.get("enum") or ()):
                    answer[name] = self.constant
            text = json.dumps(answer)
        else:
            text = pick(question, "code", codes(question) or ["yes"])
        if self.unreadable:
            text = "I would rather not say."
        return {
            "id": "x", "object": "chat.completion", "created": 1, "model": self.reports,
            "system_fingerprint": self.fingerprint,
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }  # fmt: skip


@contextmanager
def changing_server() -> Iterator[ChangingServer]:
    """The server while the block runs."""
    state = ChangingServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            sent = json.dumps(state.reply(body)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
