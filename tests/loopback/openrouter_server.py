"""OpenRouter's chat completions on 127.0.0.1: https://openrouter.ai/docs/api-reference/overview

Replies say which provider answered, come after white space that keeps the connection alive, and may hold an error under
status 200. `down`: the providers that fail; a request that allows no other one then fails.
"""

import json
from typing import Any

from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import Out, arguments, header, serve


class OpenRouterServer(OpenAIServer):
    """See the module."""

    path = "/api/v1/chat/completions"
    suffix = "/api/v1"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.logprobs = "none"
        self.key = "or-test-key"
        self.down: set[str] = set()
        self.credit = True

    def error(self, status: int, fault: Fault) -> Out:
        error = {"code": status, "message": fault.message or "injected"}
        return Out(json.dumps({"error": error, "user_id": "user_x"}).encode(), status)

    def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
        if header(head, "authorization") != f"Bearer {self.key}":
            return self.error(401, Fault("401", message="No auth credentials found"))
        if not self.credit:
            return self.error(402, Fault("400", message="Insufficient credits. Add more and retry."))
        wanted = (body.get("provider") or {}).get("order") or ["Anyone"]
        there = [name for name in wanted if name not in self.down]
        if not there and (body.get("provider") or {}).get("allow_fallbacks") is False:
            error = {
                "code": 502,
                "message": "Provider returned error",
                "metadata": {"provider_name": wanted[0]},
            }
            return Out(b"\n\n" + json.dumps({"error": error}).encode())
        key, self.key = self.key, None
        out = super().answer(body, head, fault)
        self.key = key
        if out.status != 200:
            return out
        document = {**json.loads(out.body), "id": f"gen-{self.requests}", "provider": (there or ["Other"])[0]}
        document["model"] = body["model"]
        document["choices"][0] |= {"native_finish_reason": "STOP"}
        document["choices"][0]["message"] |= {"reasoning": None}
        return Out(b"\n   \n" + json.dumps(document).encode())


def main() -> None:
    """`python -m tests.loopback.openrouter_server --port 0`"""
    options = arguments("OpenRouter's chat completions on 127.0.0.1").parse_args()
    serve(OpenRouterServer(delay=options.delay, port=options.port, record=options.record), options.fault)


if __name__ == "__main__":
    main()
