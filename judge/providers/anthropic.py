"""`anthropic/MODEL`: Anthropic's messages API, or a server that speaks it (`--base-url`).

Wire format: https://docs.anthropic.com/en/api/messages. The API has no sampling parameters and gives no
log-probabilities, so `temperature` and `seed` of a request are not sent and label codes are not used.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from judge.errors import KeyProblem, ProviderError, ServerFault, UsageError
from judge.providers import http
from judge.providers.base import Settings
from judge.types import Json, Message, RateState, Reply, Request

OWN_URL = "https://api.anthropic.com"
KEY = "ANTHROPIC_API_KEY"
_STOPS = {"refusal": "refusal", "max_tokens": "length", "model_context_window_exceeded": "length"}
_RATE = [
    f"anthropic-ratelimit-{of}-{part}" for of in ("requests", "tokens") for part in ("remaining", "reset")
]
_FORMAT_WORDS = re.compile(r"output_config|output_format|json_schema|structured output")


class Provider:
    """One model behind the messages API.

    Settings: `base_url` without `/v1` (default: ANTHROPIC_BASE_URL, then Anthropic itself), `timeout` in
    seconds for one call. Raises UsageError for a base URL that cannot be used, and for any option.
    """

    label_codes: bool = False
    max_concurrency: int | None = None

    def __init__(self, name: str, settings: Settings) -> None:
        base_url = settings.base_url or os.environ.get("ANTHROPIC_BASE_URL") or OWN_URL
        self._at = http.server(base_url.strip().rstrip("/").removesuffix("/v1"))
        self._own = self._at.host == "anthropic.com" or self._at.host.endswith(".anthropic.com")
        if settings.options:
            raise UsageError(f"anthropic has no option '{next(iter(settings.options))}'")
        self._name, self.timeout = name, settings.timeout
        self._who = "Anthropic" if self._own else self._at.url
        self._head = f'{{"model": {json.dumps(name)}, '
        self._output = "json_schema"
        self._wire: http.Wire | None = None
        self._sdk = ""
        self._reports: str | None = None

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
            answer = await wire.post("/v1/messages", self._body(request, output))
            if answer.status == 200:
                return self._reply(wire, answer)
            said = wire.complaint(answer)
            formatted = request.schema is not None and output != "plain"
            if not (formatted and answer.status in (400, 422) and _FORMAT_WORDS.search(said.message)):
                raise self._error(answer, said)
            self._output = "plain"

    async def models(self) -> list[str]:
        """The model names that the server lists. Raises as `complete`."""
        wire = self._connect()
        answer = await wire.get("/v1/models?limit=1000")
        if answer.status != 200:
            raise self._error(answer, wire.complaint(answer))
        return http.model_names(answer, self._who)

    async def count_tokens(self, request: Request) -> int:
        """Input tokens of a request by Anthropic's own count, which costs nothing. Raises as `complete`.

        https://docs.anthropic.com/en/api/messages-count-tokens
        """
        wire = self._connect()
        body = json.loads(self._body(request, self._output))
        del body["max_tokens"]
        answer = await wire.post("/v1/messages/count_tokens", json.dumps(body).encode())
        if answer.status != 200:
            raise self._error(answer, wire.complaint(answer))
        return http.token_count(answer, self._who)

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    def describe(self) -> Mapping[str, Json]:
        """Base URL without credentials, and the output format in use."""
        return {
            "vendor": "anthropic",
            "model": self._name,
            "base_url": self._at.url,
            "format": self._output,
            "label_codes": self.label_codes,
            "left_out": ["temperature", "seed"],
            "own_server": self._own,
            "reports": self._reports,
            "timeout": self.timeout,
            "sdk": self._sdk,
        }

    def _connect(self) -> http.Wire:
        if self._wire is not None:
            return self._wire
        key = http.key_from(KEY)
        if not key and self._own:
            raise KeyProblem(f"{KEY} is not set: export it, or name another server with --base-url")
        import anthropic

        # Only asked for its headers: its own request path, which OpenTelemetry listens to, is not used.
        client = anthropic.AsyncAnthropic(api_key=key or http.NO_KEY, base_url=self._at.url, max_retries=0)
        headers = http.sent_headers(client.auth_headers, client.default_headers)
        self._sdk = f"anthropic {anthropic.__version__}"
        self._wire = http.Wire(self._at, headers, self.timeout, [key])
        return self._wire

    def _body(self, request: Request, output: str) -> bytes:
        """The request as JSON bytes: model, system and messages first, so that the prefix leads."""
        rest: dict[str, Any] = {"max_tokens": request.max_tokens}
        if request.schema is not None and output != "plain":
            rest["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        messages = request.messages
        system = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
        if request.prefix >= system:
            lead = request.prefix
            constant = _constant(messages[:lead])
        else:
            # A system message of the unit's own: nothing to cache, but it still goes first.
            lead = system
            constant = _leading(messages[:lead], cached=False)
        own = ", ".join(json.dumps(_turn(m)) for m in messages[lead:])
        comma = ", " if own and not constant.endswith("[") else ""
        return f"{self._head}{constant}{comma}{own}], {json.dumps(rest)[1:]}".encode()

    def _reply(self, wire: http.Wire, answer: http.Answer) -> Reply:
        body = http.decoded(answer.body)
        try:
            text = http.text_of([b for b in body["content"] if b.get("type") == "text"])
            used = body.get("usage") or {}
            read, written = used.get("cache_read_input_tokens"), used.get("cache_creation_input_tokens")
            # `input_tokens` counts only what neither came from the cache nor went into it.
            fresh = used.get("input_tokens")
            total = None if fresh is None else fresh + (read or 0) + (written or 0)
            usage = http.usage(total, used.get("output_tokens"), read, written)
            reason = body.get("stop_reason")
        except (KeyError, TypeError, AttributeError) as e:
            detail = "" if body is None else f": {wire.complaint(answer).message}"
            what = "is not JSON" if body is None else "has no content"
            raise ServerFault(f"{self._who}: the answer {what}{detail}") from e
        return Reply(
            text=text,
            stop=_STOPS.get(str(reason), "stop"),
            usage=usage,
            resolved_model=http.text_of(body.get("model")) or None,
            rate=_rate(answer.headers),
            request_id=answer.headers.get("request-id") or http.text_of(body.get("id")) or None,
        )

    def _error(self, answer: http.Answer, said: http.Complaint) -> ProviderError:
        broke = answer.status == 402 or (answer.status == 400 and "credit balance" in said.message.lower())
        if broke:
            return KeyProblem(f"{self._who}: the account of {KEY} has no credit left: {said.message}")
        return http.failure(answer, said, self._who, self._name, KEY)


def _leading(messages: tuple[Message, ...], cached: bool = True) -> str:
    """`"system": [...], "messages": [...` for the leading messages; the last block is marked for caching."""
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for i, message in enumerate(messages, 1):
        block: dict[str, Any] = {"type": "text", "text": message.content}
        if cached and i == len(messages):
            block["cache_control"] = {"type": "ephemeral"}
        if message.role == "system" and not turns:
            system.append(block)
        else:
            turns.append({**_turn(message), "content": [block]})
    opening = f'"system": {json.dumps(system)}, ' if system else ""
    return f'{opening}"messages": [{json.dumps(turns)[1:-1]}'


_constant = lru_cache(maxsize=8)(_leading)


def _turn(message: Message) -> dict[str, str]:
    """One turn; the API knows only user and assistant, and has system text in front of all turns."""
    role = "assistant" if message.role == "assistant" else "user"
    return {"role": role, "content": message.content}


def _until(text: str | None) -> float | None:
    """Seconds from now to an RFC 3339 time, 0 when it is past; None when it is none."""
    try:
        at = datetime.fromisoformat(text or "").timestamp()
    except ValueError:
        return None
    return max(0.0, at - time.time())


def _rate(headers: Mapping[str, str]) -> RateState | None:
    return http.rate_state(headers, _RATE, _until)
