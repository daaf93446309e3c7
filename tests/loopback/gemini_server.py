"""Gemini's chat completions on 127.0.0.1, as Google's compatible address speaks them.

https://ai.google.dev/gemini-api/docs/openai. Errors come in a list of one, a wrong key is a 400, fields that it does not know
are refused by name, and thinking counts in the reply's tokens.
"""

import json
from typing import Any

from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import Out, arguments, header, serve

KNOWN = {
    "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "n", "stop", "stream",
    "response_format", "reasoning_effort", "tools", "tool_choice", "extra_body", "presence_penalty",
}  # fmt: skip


class GeminiServer(OpenAIServer):
    """See the module."""

    path = "/v1beta/openai/chat/completions"
    suffix = "/v1beta/openai"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.key = "gemini-test-key"

    def other(self, method: str, path: str, head: str) -> Out:
        if method == "GET" and path == f"{self.suffix}/models":
            data = [{"id": "models/gemini-2.5-flash", "object": "model", "owned_by": "google"}]
            return Out(json.dumps({"object": "list", "data": data}).encode())
        return super().other(method, path, head)

    def error(self, status: int, fault: Fault) -> Out:
        word = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
        error = {
            "code": status,
            "message": fault.message or "injected",
            "status": word.get(status, "INTERNAL"),
        }
        return Out(json.dumps([{"error": error}]).encode(), status)

    def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
        if header(head, "authorization") != f"Bearer {self.key}":
            return self.error(400, Fault("400", message="API key not valid. Please pass a valid API key."))
        if unknown := sorted(set(body) - KNOWN):
            said = " ".join(f'Unknown name "{name}": Cannot find field.' for name in unknown)
            return self.error(400, Fault("400", message=f"Invalid JSON payload received. {said}"))
        key, self.key = self.key, None
        out = super().answer(body, head, fault)
        self.key = key
        if out.status != 200:
            return out
        document = json.loads(out.body)
        del document["usage"]["prompt_tokens_details"]
        document["model"] = body["model"]
        document["usage"]["completion_tokens"] += 96
        return Out(json.dumps(document).encode())


def main() -> None:
    """`python -m tests.loopback.gemini_server --port 0`"""
    options = arguments("Gemini's chat completions on 127.0.0.1").parse_args()
    serve(GeminiServer(delay=options.delay, port=options.port, record=options.record), options.fault)


if __name__ == "__main__":
    main()
