"""OpenAI's chat completions on 127.0.0.1: https://platform.openai.com/docs/api-reference/chat

Settings make it an older or a smaller server: which output formats it takes, whether it gives
log-probabilities, which parameters it refuses.
"""

import json
import math
from typing import Any

from tests.loopback.answers import codes, described, instance, last_user, pick
from tests.loopback.faults import Fault
from tests.loopback.wire import LoopbackServer, Out, arguments, header, serve

_ERROR_TYPES = {
    401: "invalid_request_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}


class OpenAIServer(LoopbackServer):
    """`formats`: accepted response formats. `logprobs`: given, none (ignored), refused (400),
    forbidden (403).

    `tokens`: how an answer is cut into tokens: plain, space (" A"), blank ("\\n" then "A"), loose (a
    third of the mass on tokens that are no code). `refuse`: parameters answered with 400. `key`: the
    only accepted key, None = all. `models`: the only known models, empty = all. `vague_errors`:
    refusals do not say what is refused. `usage`: fields of the usage instead of the right ones (a value `...` leaves one out);
    `streams`: answers are events, and the usage is in the last one. `reports`: the model's name in answers, None = as asked, with a date.
    """

    path = "/v1/chat/completions"
    suffix = "/v1"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.formats = {"json_schema", "json_object"}
        self.logprobs = "given"
        self.tokens = "plain"
        self.refuse: set[str] = set()
        self.key: str | None = None
        self.models: list[str] = []
        self.cached_tokens = 0
        self.vague_errors = False
        self.usage: dict[str, Any] = {}
        self.streams = False
        self.reports: str | None = None

    def question(self, body: dict[str, Any]) -> str:
        return last_user(body.get("messages", ()))

    def error(self, status: int, fault: Fault) -> Out:
        error = {
            "message": fault.message or f"injected fault {status}",
            "type": _ERROR_TYPES.get(status, "invalid_request_error"),
            "param": fault.param,
            "code": fault.code,
        }
        return Out(json.dumps({"error": error}).encode(), status)

    def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
        kind = fault.kind if fault else ""
        if kind == "quota":
            message = "You exceeded your current quota, please check your plan and billing details."
            return self.error(429, Fault("quota", message=message, code="insufficient_quota"))
        if refused := self._refused(body, head):
            return refused
        wrong = kind == "wrong_label"
        question = self.question(body)
        offered = codes(question)
        form = body.get("response_format") or {}
        logprobs = "null"
        if schema := (form.get("json_schema") or {}).get("schema"):
            text = json.dumps(instance(schema, question, wrong))
        elif offered:
            text = "Z" if wrong else pick(question, "code", offered)
            if body.get("logprobs") and self.logprobs == "given":
                logprobs = json.dumps({"content": self._positions(text, offered, body), "refusal": None})
        else:
            turns = [m for m in body["messages"] if m.get("role") != "assistant"]
            text = described("\n".join(str(m.get("content")) for m in turns), question, wrong)
        refusal, finish = "null", "stop"
        if kind == "refusal":
            text, refusal = "", json.dumps("I cannot help with that.")
        elif kind == "filter":
            text, finish = "", "content_filter"
        elif kind == "length":
            text, finish = text[: len(text) // 2], "length"
        size = sum(len(str(m.get("content"))) for m in body["messages"]) // 4
        name = body.get("model", "") + "-2026-01-01" if self.reports is None else self.reports
        model = json.dumps(name or None)
        out = Out(
            (
                f'{{"id":"chatcmpl-{self.requests}","object":"chat.completion","created":1760000000,'
                f'"model":{model},"choices":[{{"index":0,"message":{{"role":"assistant",'
                f'"content":{json.dumps(text)},"refusal":{refusal}}},'
                f'"logprobs":{logprobs},"finish_reason":"{finish}"}}],"usage":{{"prompt_tokens":{size},'
                f'"completion_tokens":{len(text) // 4 + 1},"total_tokens":{size + len(text) // 4 + 1},'
                f'"prompt_tokens_details":{{"cached_tokens":{self.cached_tokens}}}}}}}'
            ).encode(),
            headers=b"x-request-id: req_%d\r\n" % self.requests,
        )
        return self._as_configured(out) if self.usage or self.streams else out

    def _as_configured(self, out: Out) -> Out:
        """The answer with the usage that the test wants, as one piece or as events."""
        body = json.loads(out.body)
        usage = {**body["usage"], **self.usage}
        body["usage"] = {name: value for name, value in usage.items() if value is not ...}
        if not self.streams:
            out.body = json.dumps(body).encode()
            return out
        choice = body["choices"][0]
        text, finish = choice["message"]["content"], choice["finish_reason"]
        head = {"id": body["id"], "model": body["model"]}
        events: list[dict[str, Any]] = [
            {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": text[:1]}}]},
            {
                **head,
                "choices": [{"index": 0, "delta": {"content": text[1:]}, "logprobs": choice["logprobs"]}],
            },
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {**head, "choices": [], "usage": body["usage"]},
        ]
        lines = [": waiting", *(f"data: {json.dumps(event)}" for event in events), "data: [DONE]"]
        return Out("\n\n".join(lines).encode(), headers=b"content-type: text/event-stream\r\n")

    def _refused(self, body: dict[str, Any], head: str) -> Out | None:
        """The error for a request that this server's settings do not allow."""
        if (
            self.key is not None
            and (sent := header(head, "authorization").removeprefix("Bearer ")) != self.key
        ):
            # Like the real ones, it repeats the key it was given.
            message = f"Incorrect API key provided: {sent}. You can find your API key at the vendor's site."
            return self.error(401, Fault("401", message=message, code="invalid_api_key"))
        if self.models and body.get("model") not in self.models:
            message = f"The model `{body.get('model')}` does not exist or you do not have access to it."
            return self.error(404, Fault("404", message=message, code="model_not_found"))
        for name in sorted(self.refuse):
            if name in body:
                instead = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
                message = f"Unsupported parameter: '{name}' is not supported with this model.{instead}"
                return self.error(
                    400, Fault("400", message=message, code="unsupported_parameter", param=name)
                )
        form = (body.get("response_format") or {}).get("type")
        if form and form not in self.formats:
            if self.vague_errors:
                return self.error(422, Fault("400", message="Unprocessable entity"))
            message = f"Invalid parameter: 'response_format' of type '{form}' is not supported."
            return self.error(400, Fault("400", message=message, param="response_format"))
        if body.get("logprobs") and self.logprobs in ("refused", "forbidden"):
            if self.vague_errors:
                return self.error(400, Fault("400", message="Bad request"))
            message = "You are not allowed to request logprobs from this model."
            return self.error(403 if self.logprobs == "forbidden" else 400, Fault("400", message=message))
        return None

    def _positions(self, text: str, offered: list[str], body: dict[str, Any]) -> list[dict[str, Any]]:
        """`logprobs.content`: 90 % on the answer, 8 % over the other codes, the rest on no code."""
        blank = " " if self.tokens == "space" else ""
        others = [c for c in offered if c != text]
        scale = 0.66 if self.tokens == "loose" else 1.0
        chances = {blank + text: 0.9 * scale, **{blank + c: 0.08 * scale / len(others) for c in others}}
        chances["The"] = 1.0 - sum(chances.values())
        top = sorted(chances.items(), key=lambda c: -c[1])[: body.get("top_logprobs", 0)]
        listed = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in top]
        answer = {
            "token": blank + text,
            "logprob": math.log(0.9 * scale),
            "bytes": None,
            "top_logprobs": listed,
        }
        if self.tokens != "blank":
            return [answer]
        return [
            {"token": "\n", "logprob": -0.01, "top_logprobs": [{"token": "\n", "logprob": -0.01}]},
            answer,
        ]


def main() -> None:
    """`python -m tests.loopback.openai_server --port 0 --delay 0.05`"""
    parser = arguments("OpenAI chat completions on 127.0.0.1")
    parser.add_argument("--formats", default="json_schema,json_object", help="accepted response formats")
    parser.add_argument("--logprobs", default="given", choices=["given", "none", "refused", "forbidden"])
    parser.add_argument("--key", help="the only accepted key")
    options = parser.parse_args()
    server = OpenAIServer(delay=options.delay, port=options.port, record=options.record)
    server.formats = set(filter(None, options.formats.split(",")))
    server.logprobs, server.key = options.logprobs, options.key
    serve(server, options.fault, options.capacity)


if __name__ == "__main__":
    main()
