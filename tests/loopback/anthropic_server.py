"""Anthropic's messages API on 127.0.0.1: https://docs.anthropic.com/en/api/messages"""

import json
from typing import Any

from tests.loopback.answers import content_text, described, instance, last_user
from tests.loopback.faults import Fault
from tests.loopback.wire import LoopbackServer, Out, arguments, header, serve

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


class AnthropicServer(LoopbackServer):
    """`structured`: takes `output_config`. `key`: the only accepted key, None = all.

    `models`: the only known models, empty = all. `cached`: tokens (read from, written to) the cache.
    `listing`: has the addresses under /v1/models.
    """

    path = "/v1/messages"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.structured = True
        self.key: str | None = None
        self.models: list[str] = []
        self.cached = (0, 0)
        self.listing = True

    def question(self, body: dict[str, Any]) -> str:
        return last_user(body.get("messages", ()))

    def other(self, method: str, path: str, head: str) -> Out:
        if not self.listing or method != "GET" or not path.startswith("/v1/models/"):
            return self.error(404, Fault("404", message="Not found"))
        if refused := self._unknown_key(head):
            return refused
        name = path.removeprefix("/v1/models/")
        if self.models and name not in self.models:
            return self.error(404, Fault("404", message=f"model: {name}"))
        return Out(json.dumps({"type": "model", "id": name}).encode())

    def error(self, status: int, fault: Fault) -> Out:
        kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
        error = {"type": kind, "message": fault.message or f"injected fault {status}"}
        return Out(json.dumps({"type": "error", "error": error, "request_id": "req_x"}).encode(), status)

    def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
        kind = fault.kind if fault else ""
        if kind == "quota":
            reason = "Your credit balance is too low to access the Anthropic API."
            return self.error(400, Fault("quota", message=reason))
        if refused := self._refused(body, head):
            return refused
        wrong = kind == "wrong_label"
        question = self.question(body)
        schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
        if schema:
            text = json.dumps(instance(schema, question, wrong))
        else:
            system = content_text(body.get("system"))
            turns = [content_text(m["content"]) for m in body["messages"] if m["role"] == "user"]
            text = described("\n".join([system, *turns]), question, wrong)
        stop = {"refusal": "refusal", "length": "max_tokens", "window": "model_context_window_exceeded"}
        if kind == "refusal":
            text = ""
        elif kind in ("length", "window"):
            text = text[: len(text) // 2]
        content = [{"type": "text", "text": text}] if text else []
        size = len(content_text(body.get("system"))) + len(question)
        from_cache, written = self.cached
        usage = {
            "input_tokens": size // 4,
            "output_tokens": len(text) // 4 + 1,
            "cache_read_input_tokens": from_cache,
            "cache_creation_input_tokens": written,
        }
        message: dict[str, Any] = {
            "id": f"msg_{self.requests}",
            "type": "message",
            "role": "assistant",
            "model": body["model"] + "-20260101",
            "content": content,
            "stop_reason": stop.get(kind, "end_turn"),
            "stop_sequence": None,
            "usage": usage,
        }
        return Out(json.dumps(message).encode(), headers=b"request-id: req_%d\r\n" % self.requests)

    def _refused(self, body: dict[str, Any], head: str) -> Out | None:
        """The error for a request that the API or this server's settings do not allow."""
        if refused := self._unknown_key(head):
            return refused
        if self.models and body["model"] not in self.models:
            return self.error(404, Fault("404", message=f"model: {body['model']}"))
        problem = ""
        if not header(head, "anthropic-version"):
            problem = "anthropic-version: header is required"
        elif "max_tokens" not in body:
            problem = "max_tokens: Field required"
        elif any(m["role"] not in ("user", "assistant") for m in body["messages"]):
            problem = "messages: Unexpected role"
        elif not self.structured and "output_config" in body:
            problem = "output_config: Extra inputs are not permitted"
        for name in ("temperature", "top_p", "top_k", "seed"):
            if name in body:
                problem = f"{name}: Extra inputs are not permitted"
        return self.error(400, Fault("400", message=problem)) if problem else None

    def _unknown_key(self, head: str) -> Out | None:
        sent = header(head, "x-api-key") or header(head, "authorization").removeprefix("Bearer ")
        if self.key is None or sent == self.key:
            return None
        # It repeats the key it was given, to see that the client does not.
        return self.error(401, Fault("401", message=f"invalid x-api-key {sent}"))


def main() -> None:
    """`python -m tests.loopback.anthropic_server --port 0 --delay 0.05`"""
    parser = arguments("Anthropic messages on 127.0.0.1")
    parser.add_argument("--key", help="the only accepted key")
    options = parser.parse_args()
    server = AnthropicServer(delay=options.delay, port=options.port, record=options.record)
    server.key = options.key
    serve(server, options.fault)


if __name__ == "__main__":
    main()
