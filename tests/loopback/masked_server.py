"""A server that holds answers to choices, in the ways that llama.cpp, vLLM and others know.

Settings: `knows` are the masks that it heeds, others are ignored with 200 (`strict`: refused with 400). `after`: its
log-probabilities are from after the mask; else from before it, where the choices have 30 % of the mass.
"""

import json
import math
import re
from typing import Any

from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import Out

BEFORE = (0.18, 0.09, 0.03)
"""What a model puts on the first, second and third choice, whatever it is asked."""
OTHERS = {"Hello": 0.5, " A": 0.1, "The": 0.08}
FIELDS = {"grammar", "structured_outputs", "guided_choice", "logit_bias"}


class MaskedServer(OpenAIServer):
    """See the module."""

    def __init__(self, *knows: str, after: bool = False, strict: bool = False, **common: Any) -> None:
        super().__init__(**{"record": True, **common})
        self.knows, self.after, self.strict = knows, after, strict
        self.most = 100_000
        self.tokenized: list[str] = []

    def respond(self, method: str, path: str, head: str, payload: bytes) -> Out:
        if method == "POST" and path == "/tokenize" and "logit_bias" in self.knows:
            text = json.loads(payload)["prompt"]
            self.tokenized.append(text)
            return Out(json.dumps({"tokens": [ord(c) for c in text], "count": len(text)}).encode())
        return super().respond(method, path, head, payload)

    def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
        if self.strict and (unknown := sorted((FIELDS - set(self.knows)) & set(body))):
            return self.error(400, Fault("400", message=f"Unrecognized request argument: {unknown[0]}"))
        if body.get("top_logprobs", 0) > self.most:
            message = f"Requested sample logprobs of {body['top_logprobs']}, which is greater than max allowed: {self.most}"
            return self.error(400, Fault("400", message=message))
        mask = next((m for m in self.knows if self._choices(m, body)), None)
        if mask is not None:
            return self._masked(mask, self._choices(mask, body), body)
        if str(body["messages"][-1]["content"]).startswith("Say hello"):
            return self._said("Hello", [("Hello", 0.5, {})])
        return super().answer(body, head, fault)

    def _choices(self, mask: str, body: dict[str, Any]) -> list[str]:
        if mask == "grammar":
            return re.findall(r'"([^"]+)"', body.get("grammar", ""))
        if mask == "structured_outputs":
            return list(body.get("structured_outputs", {}).get("choice", []))
        if mask == "guided_choice":
            return list(body.get("guided_choice", []))
        if mask == "logit_bias":
            return [chr(int(i)) for i in body.get("logit_bias", {})]
        form = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
        choices = form.get("properties", {}).get("answer", {}).get("enum", [])
        return list(choices) if body.get("logprobs") else []

    def _masked(self, mask: str, choices: list[str], body: dict[str, Any]) -> Out:
        masses = dict(zip(choices, BEFORE, strict=False))
        whole = sum(masses.values())
        chances = {c: p / whole for c, p in masses.items()} if self.after else {**masses, **OTHERS}
        top = dict(sorted(chances.items(), key=lambda c: -c[1])[: body.get("top_logprobs", 0)])
        first = choices[0]
        answer = (first, chances[first], top)
        if mask == "json_schema":
            # The opening quote is in the token of the code, as tokenizers like it.
            quoted = ('"' + first, chances[first], {'"' + c: p for c, p in top.items()})
            return self._said(f'{{"answer":"{first}"}}', [('{"answer":', 1.0, {}), quoted, ('"}', 1.0, {})])
        return self._said(first, [answer])

    def _said(self, text: str, positions: list[tuple[str, float, dict[str, float]]]) -> Out:
        content = [
            {
                "token": token,
                "logprob": math.log(p),
                "top_logprobs": [
                    {"token": t, "logprob": math.log(q)} for t, q in (top or {token: p}).items()
                ],
            }
            for token, p, top in positions
        ]
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
            "logprobs": {"content": content},
        }
        return Out(json.dumps({"model": "masked", "choices": [choice], "usage": {}}).encode())
