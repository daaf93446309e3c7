"""`anthropic/MODEL`: Anthropic's messages API, or a server that speaks it (`--base-url`).

Wire format: https://docs.anthropic.com/en/api/messages. The API has no sampling parameters and gives no
log-probabilities, so `temperature` and `seed` of a request are not sent and label codes are not used.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from urllib.parse import quote

from judge.errors import KeyProblem, ProviderError, ServerFault
from judge.providers import http, messages
from judge.providers.base import Needs, Settings
from judge.providers.vendor import Vendor
from judge.types import Json, Reply, Request

NEEDS = Needs(examples="anthropic/claude-sonnet-5", key="ANTHROPIC_API_KEY")

OWN_URL = "https://api.anthropic.com"
KEY = "ANTHROPIC_API_KEY"
_FORMAT_WORDS = re.compile(r"output_config|output_format|json_schema|structured output")


class Provider(Vendor):
    """One model behind the messages API.

    Settings: `base_url` without `/v1` (default: ANTHROPIC_BASE_URL, then Anthropic itself), `timeout` in
    seconds for one call; options `thinking` (tokens, adaptive or off), `effort` and those of `judge.providers.options`.
    Raises UsageError for a base URL or option that cannot be used.
    """

    vendor, title, host = "anthropic", "Anthropic", "anthropic.com"
    library, own_client, key = "anthropic", "AsyncAnthropic", KEY
    key_headers = ("authorization", "x-api-key")
    known: Collection[str] = ("effort", "thinking")
    # The API's own temperature is not sent by the runner, so that a field of the body is the way to set it.
    taken = ("model", "max_tokens")

    def __init__(self, name: str, settings: Settings) -> None:
        super().__init__(name, settings)
        self._writer = messages.MessagesWriter(name, self._options.own, self._options.body)
        self._output = "json_schema"

    def _address(self, settings: Settings) -> str:
        """The base URL, without `/v1`."""
        base_url = settings.base_url or os.environ.get("ANTHROPIC_BASE_URL") or OWN_URL
        return base_url.strip().rstrip("/").removesuffix("/v1")

    async def open(self) -> None:
        """Connect, and ask for the model by name, which costs no tokens.

        Raises KeyProblem when the key is missing or refused, Rejected when Anthropic does not know the
        model, and the errors of `complete`.
        """
        wire = self._connect()
        answer = await wire.get(f"/v1/models/{quote(self._name, safe='')}")
        # Other servers often have no list of models; whether they know this one shows in the first call.
        if answer.status in (401, 403) or (self._own and answer.status != 200):
            raise self._error(answer, wire.complaint(answer))
        body = http.decoded(answer.body) if answer.status == 200 else None
        self._reports = http.text_of(body.get("id")) or None if isinstance(body, dict) else None

    async def complete(self, request: Request) -> Reply:
        """Send one request. A refused output format is left out from then on and the call sent again.

        Raises KeyProblem, RateLimited, ServerFault, Unreachable or Rejected.
        """
        wire = self._connect()
        while True:
            output = self._output
            answer = await wire.post(messages.PATH, self._writer.body(request, output))
            if answer.status == 200:
                return self._read(wire, answer)
            said = wire.complaint(answer)
            formatted = request.schema is not None and output != "plain"
            if not (formatted and answer.status in (400, 422) and _FORMAT_WORDS.search(said.message)):
                raise self._error(answer, said)
            self._output = "plain"

    def body(self, request: Request) -> bytes:
        """The request's body in the format found so far, as `complete` sends it; needs no connection."""
        return self._writer.body(request, self._output)

    def read(self, body: Json, request: Request, headers: Mapping[str, str] | None = None) -> Reply:
        """The reply in the JSON of a good answer that came another way. Raises ValueError as `messages.reply`."""
        return messages.reply(body, headers or {})

    def refusal(self, said: http.Complaint) -> Reply | None:
        """The reply that an error stands for: none does here."""
        return None

    async def models(self) -> list[str]:
        """The model names that the server lists. Raises as `complete`."""
        return http.model_names(await self._asked_of("/v1/models?limit=1000"), self._who)

    async def count_tokens(self, request: Request) -> int:
        """Input tokens of a request by Anthropic's own count, which costs nothing. Raises as `complete`.

        https://docs.anthropic.com/en/api/messages-count-tokens
        """
        body = json.loads(self._writer.body(request, self._output))
        del body["max_tokens"]
        answer = await self._asked_of("/v1/messages/count_tokens", json.dumps(body).encode())
        return http.token_count(answer, self._who)

    def describe(self) -> Mapping[str, Json]:
        """Base URL without credentials, and the output format in use."""
        return {
            "vendor": self.vendor,
            "model": self._name,
            "base_url": self._at.url,
            "format": self._output,
            "label_codes": self.label_codes,
            "options": {k: v for k, v in self._options.identity().items() if k not in self.facts},
            "thinking_tokens": messages.thinking_tokens(self._options.own),
            "left_out": ["temperature", "seed"],
            "own_server": self._own,
            "reports": self._reports,
            "timeout": self.timeout,
            "sdk": self._sdk,
        }

    def _read(self, wire: http.Door, answer: http.HttpAnswer) -> Reply:
        body = http.decoded(answer.body)
        try:
            return messages.reply(body, answer.headers)
        except ValueError as e:
            detail = "" if body is None else f": {wire.complaint(answer).message}"
            raise ServerFault(f"{self._who}: the answer {e}{detail}") from e

    def _error(self, answer: http.HttpAnswer, said: http.Complaint) -> ProviderError:
        broke = answer.status == 402 or (answer.status == 400 and "credit balance" in said.message.lower())
        if broke:
            return KeyProblem(f"{self._who}: the account of {self._key} has no credit left: {said.message}")
        return super()._error(answer, said)
