"""OpenAI's /embeddings on 127.0.0.1: https://platform.openai.com/docs/api-reference/embeddings

A text's vector counts its words (each word is one of 64 places), or is what `vectors` says.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import LoopbackServer, Out, arguments, serve

SIZE = 64


class EmbeddingsServer(OpenAIServer):
    """`vectors`: text -> its vector. `most`: texts taken in one call. `longest`: characters of a text.

    `key` and `models` as in OpenAIServer. Vectors come in reverse order, as a server may send them.
    """

    path = "/v1/embeddings"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.vectors: dict[str, list[float]] = {}
        self.most = 2048
        self.longest = 100_000

    def question(self, body: dict[str, Any]) -> str:
        return str(body.get("input"))

    def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
        kind = fault.kind if fault else ""
        if kind == "quota":
            message = "You exceeded your current quota."
            return self.error(429, Fault("quota", message=message, code="insufficient_quota"))
        if refused := self._refused(body, head):
            return refused
        texts = body["input"]
        if len(texts) > self.most:
            return self.error(413, Fault("413", message=f"batch size {len(texts)} > {self.most}"))
        if any(len(text) > self.longest for text in texts):
            return self.error(400, Fault("400", message=f"input longer than {self.longest} characters"))
        vectors = [self.vectors.get(text) or words(text) for text in texts]
        if kind == "unequal":
            vectors[-1] = vectors[-1][:-1]
        elif kind == "dimension":
            vectors = [vector[:-1] for vector in vectors]
        elif kind == "fewer":
            vectors = vectors[:-1]
        elif kind == "zero":
            vectors[0] = [0.0] * len(vectors[0])
        elif kind == "infinite":
            vectors[0] = [1e60, *vectors[0][1:]]
        data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
        tokens = sum(len(text) for text in texts) // 4
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        reply = {"object": "list", "model": f"{body['model']}-2026", "data": data[::-1], "usage": usage}
        return Out(json.dumps(reply).encode())


def words(text: str) -> list[float]:
    """How often the text has a word that belongs to each place; a text without words has a one in the last."""
    vector = [0.0] * SIZE
    for word in re.findall(r"\w+", text.lower()):
        vector[hashlib.sha256(word.encode()).digest()[0] % (SIZE - 1)] += 1.0
    if not any(vector):
        vector[-1] = 1.0
    return vector


def main() -> None:
    """`python -m tests.loopback.embeddings_server --port 0 --fault 429:every=3`"""
    parser = arguments("OpenAI embeddings on 127.0.0.1")
    parser.add_argument("--most", type=int, default=2048, help="texts taken in one call")
    parser.add_argument("--longest", type=int, default=100_000, help="characters of a text")
    parser.add_argument("--vectors", default="{}", help="JSON: text -> vector")
    given = parser.parse_args()
    server: LoopbackServer = EmbeddingsServer(delay=given.delay, port=given.port, record=given.record)
    assert isinstance(server, EmbeddingsServer)
    server.most, server.longest, server.vectors = given.most, given.longest, json.loads(given.vectors)
    serve(server, given.fault)


if __name__ == "__main__":
    main()
