"""A server whose model changes behind its name, or repeats itself badly."""

import json
import random
from typing import Any

from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import Out


class ChangingServer(OpenAIServer):
    """`constant`: every answer is this label; `noise`: the share of answers that are random labels instead of the usual one;
    `unreadable`: no answer has a label; `fingerprint`: what it says of itself.

    It gives no probabilities, so that answers are JSON.
    """

    def __init__(self) -> None:
        super().__init__()
        self.logprobs, self.reports = "none", "model-1"
        self.constant: str | None = None
        self.noise = 0.0
        self.unreadable = False
        self.fingerprint = "fp_1"
        self.random = random.Random(1)

    def question(self, body: dict[str, Any]) -> str:
        # An answer depends on the question alone, so that noise is a random beginning of it.
        salt = str(self.random.random()) if self.random.random() < self.noise else ""
        return salt + super().question(body)

    def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
        document = json.loads(super().answer(body, head, fault).body)
        message = document["choices"][0]["message"]
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
        for name, kind in schema.get("properties", {}).items():
            if self.constant in (kind.get("enum") or ()):
                message["content"] = json.dumps({**json.loads(message["content"]), name: self.constant})
        if self.unreadable:
            message["content"] = "I would rather not say."
        return Out(json.dumps({**document, "system_fingerprint": self.fingerprint}).encode())
