"""Vectors of texts from `/embeddings`: OpenAI's, and any server that speaks it (`--base-url`).

Wire format: https://platform.openai.com/docs/api-reference/embeddings. One call takes several texts;
like every provider it never retries, waits or counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge.errors import KeyProblem, ProviderError, ServerFault, UsageError
from judge.providers import http, options
from judge.providers.base import Settings
from judge.providers.vendor import Vendor
from judge.types import Json

OWN_URL = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embedded:
    """One call's vectors, `[texts, numbers]` in the order of the texts, and what it used."""

    vectors: Vectors
    tokens: int | None = None
    resolved_model: str | None = None


class Embedder(Vendor):
    """One embedding model, named `openai/NAME` as everywhere.

    Settings: `base_url` (default: OPENAI_BASE_URL, then OpenAI itself), `timeout` in seconds for one
    call, option `dimensions`. Raises UsageError for another vendor, base URL or option.
    """

    vendor, title, host, key = "openai (embeddings)", "OpenAI", "openai.com", KEY
    known, taken = ("dimensions",), ("model", "input")

    def __init__(self, model: str, settings: Settings) -> None:
        vendor, slash, name = model.partition("/")
        if vendor != "openai" or not slash or not name:
            raise UsageError(
                f"model '{model}': embeddings come from openai/NAME, OpenAI's or, with --base-url, those of any "
                "server that has /embeddings, and from embedded/minilm in this process"
            )
        super().__init__(name, settings)
        own = self._options.own
        if "dimensions" in own and not (own["dimensions"].isdecimal() and int(own["dimensions"])):
            raise UsageError(f"--option dimensions={own['dimensions']}: not a whole number above 0")
        self._numbers = {k: int(v) for k, v in own.items()}

    def _address(self, settings: Settings) -> str:
        return settings.base_url or os.environ.get("OPENAI_BASE_URL") or OWN_URL

    @property
    def who(self) -> str:
        """The server, as errors name it."""
        return self._who

    @property
    def is_vendors(self) -> bool:
        """Whether the server is the vendor's own, whose list prices hold."""
        return self._own

    def describe(self) -> Mapping[str, Json]:
        """What a vector depends on beside its text: model, base URL without credentials, options."""
        return {
            "model": self._name,
            "base_url": self._at.url,
            "options": {**self._options.identity(), **self._numbers},
        }

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """One call. Raises KeyProblem, RateLimited, ServerFault, Unreachable or Rejected.

        An answer that has not one vector of finite numbers, not all zero, for each text, all of the
        same length, is a ServerFault.
        """
        body = {"model": self._name, "input": list(texts), "encoding_format": "float", **self._numbers}
        body = options.merged(body, self._options.body)
        answer = await self._asked_of("/embeddings", json.dumps(body).encode())
        return self._read(http.decoded(answer.body), len(texts))

    def _wired(self) -> http.Door:
        key, asked = self._looked_up()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return http.Wire(self._at, headers, self.timeout, [key], asked)

    def _error(self, answer: http.HttpAnswer, said: http.Complaint) -> ProviderError:
        if answer.status == 429 and said.code == "insufficient_quota":
            return KeyProblem(f"{self._who}: the account of {self._key} has no quota left: {said.message}")
        return super()._error(answer, said)

    def _read(self, body: Json, n: int) -> Embedded:
        try:
            rows = sorted(body["data"], key=lambda row: int(row["index"]))
            if [int(row["index"]) for row in rows] != list(range(n)):
                raise ServerFault(f"{self._who}: {len(rows)} vectors came for {n} texts")
            lists = [row["embedding"] for row in rows]
            used, resolved = body.get("usage") or {}, body.get("model")
            tokens = http.usage(used.get("prompt_tokens")).input_tokens
            with np.errstate(over="ignore"):  # what overflows is infinite, and refused below
                vectors = np.asarray(lists, dtype=np.float32)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
            raise ServerFault(f"{self._who}: the answer is no list of embeddings, or of unequal ones") from e
        if vectors.ndim != 2 or not vectors.shape[1]:
            raise ServerFault(f"{self._who}: the answer is no list of embeddings, or of unequal ones")
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise ServerFault(f"{self._who}: a vector has numbers that are not finite, or only zeros")
        return Embedded(vectors, tokens, http.text_of(resolved) or None)
