"""`openai/MODEL`: OpenAI's chat completions, and any server that speaks them (`--base-url`).

Wire format: https://platform.openai.com/docs/api-reference/chat. Servers differ in what they accept,
so the provider keeps one dialect per model: it starts from the most exact form, and each refusal that
names a parameter moves it one step down, for good.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from json.encoder import encode_basestring_ascii as json_string
from typing import Any

from judge.errors import KeyProblem, ProviderError, Rejected, ServerFault, UsageError
from judge.providers import http
from judge.providers.base import Settings
from judge.providers.tokens import token_choices
from judge.types import Json, Message, RateState, Reply, Request, TokenChoice

OWN_URL = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"
# Room for a leading blank or a quote before the one character, and the least some models accept.
CODE_TOKENS = 16
_ASK = "Which letter comes first in the alphabet?"
_LETTER = {"letter": {"type": "string", "enum": ["A", "B"]}}
_PROBE = {"type": "object", "properties": _LETTER, "required": ["letter"], "additionalProperties": False}
_STOPS = {"content_filter": "refusal", "length": "length"}
_FORMATS = {"json_schema": "json_object", "json_object": "plain"}
_OPTIONS = {"reasoning_effort"}
_RATE = [f"x-ratelimit-{part}-{of}" for of in ("requests", "tokens") for part in ("remaining", "reset")]
_UNSUPPORTED = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|extra (?:input|field)|not permitted|not allowed"
    r"|unexpected|invalid (?:parameter|argument)|instead"
)
_FORMAT_WORDS = re.compile(r"response_format|json_schema|json_object|json schema|structured output|grammar")
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_FILTERED = {"content_filter", "content_policy_violation", "invalid_prompt"}


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What this model on this server accepts; it only ever steps down."""

    limit: str
    swapped: bool = False
    output: str = "json_schema"
    top_logprobs: int = 20
    dropped: tuple[str, ...] = ()


class Provider:
    """One model behind chat completions.

    Settings: `base_url` (default: OPENAI_BASE_URL, then OpenAI itself), `timeout` in seconds for one
    call, option `reasoning_effort`. Raises UsageError for a base URL or option that cannot be used.
    """

    label_codes: bool = False
    max_concurrency: int | None = None

    def __init__(self, name: str, settings: Settings) -> None:
        self._at = http.server(settings.base_url or os.environ.get("OPENAI_BASE_URL") or OWN_URL)
        self._own = self._at.host == "openai.com" or self._at.host.endswith(".openai.com")
        self._options = dict(settings.options or {})
        if unknown := sorted(set(self._options) - _OPTIONS):
            raise UsageError(f"openai has no option '{unknown[0]}' (known: {', '.join(sorted(_OPTIONS))})")
        self._name, self.timeout = name, settings.timeout
        self._who = "OpenAI" if self._own else self._at.url
        # OpenAI's own models all take the newer name; most other servers know only the older one.
        self._dialect = _Dialect(limit="max_completion_tokens" if self._own else "max_tokens")
        self._head = f'{{"model": {json.dumps(name)}, "messages": ['
        self._rest: tuple[Any, str] = (None, "")
        self._wire: http.Wire | None = None
        self._sdk = ""
        self._reports: str | None = None
        self._has_codes_probe = False

    async def open(self) -> None:
        """Connect and probe: one short call for label codes, and up to two for JSON on other servers.

        Raises KeyProblem when the key is missing or refused, Rejected for an unknown model, and the
        errors of `complete`.
        """
        wire = self._connect()
        # Opened again after an error, it goes on: a server that takes one call at a time refuses the second
        # of two probes however often both are sent.
        if not self._has_codes_probe:
            await self._probe_codes(wire)
            self._has_codes_probe = True
        if not self._own:
            await self._probe_json(wire)
        self._has_codes_probe = False

    async def complete(self, request: Request) -> Reply:
        """Send one request; a refused parameter is left out from then on and the call sent again.

        Raises KeyProblem, RateLimited, ServerFault, Unreachable or Rejected.
        """
        reply = await self._exchange(self._connect(), request)
        assert reply is not None
        return reply

    async def models(self) -> list[str]:
        """The model names that the server lists. Raises as `complete`."""
        wire = self._connect()
        answer = await wire.get("/models")
        if answer.status != 200:
            raise self._error(answer, wire.complaint(answer))
        return http.model_names(answer, self._who)

    async def count_tokens(self, request: Request) -> int:
        """Input tokens of a request by OpenAI's own count, which costs nothing. Raises as `complete`.

        https://platform.openai.com/docs/api-reference/responses/input-tokens
        """
        wire = self._connect()
        body: dict[str, Any] = {
            "model": self._name,
            "input": [{"role": m.role, "content": m.content} for m in request.messages],
        }
        if request.schema is not None:
            form = {"type": "json_schema", "name": "answer", "schema": request.schema, "strict": True}
            body["text"] = {"format": form}
        answer = await wire.post("/responses/input_tokens", json.dumps(body).encode())
        if answer.status != 200:
            raise self._error(answer, wire.complaint(answer))
        return http.token_count(answer, self._who)

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    def describe(self) -> Mapping[str, Json]:
        """Base URL without credentials, and the dialect found so far."""
        return {
            "vendor": "openai",
            "model": self._name,
            "base_url": self._at.url,
            "format": self._dialect.output,
            "label_codes": self.label_codes,
            "token_limit": self._dialect.limit,
            "left_out": list(self._dialect.dropped),
            "options": dict(self._options),
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
        import openai

        client = openai.AsyncOpenAI(api_key=key or http.NO_KEY, base_url=self._at.url, max_retries=0)
        headers = http.sent_headers(client.auth_headers, client.default_headers)
        self._sdk = f"openai {openai.__version__}"
        self._wire = http.Wire(self._at, headers, self.timeout, [key])
        return self._wire

    async def _exchange(self, wire: http.Wire, request: Request, probe: bool = False) -> Reply | None:
        """The reply; None when a probe for label codes finds that there are no probabilities."""
        while True:
            sent = self._dialect
            answer = await wire.post("/chat/completions", self._body(request, sent))
            if answer.status == 200:
                return self._reply(wire, answer, request)
            said = wire.complaint(answer)
            if answer.status == 400 and said.code in _FILTERED:
                return Reply(said.message, "refusal", rate=_rate(answer.headers))
            if answer.status == 400 and "output limit was reached" in said.message:
                return Reply("", "length", rate=_rate(answer.headers))
            step = _step_down(sent, request, self._options, said)
            if step is None:
                raise self._error(answer, said)
            # Calls in flight together meet the same refusal; the first one to return decides.
            if self._dialect is sent:
                self._dialect = step
                self.label_codes = self.label_codes and step.top_logprobs > 0
            if probe and not self._dialect.top_logprobs:
                return None

    def _body(self, request: Request, dialect: _Dialect) -> bytes:
        """The request as JSON bytes: model and messages first, so that the constant prefix leads."""
        constant = _constant(request.messages[: request.prefix])
        own = _turns(request.messages[request.prefix :])
        comma = ", " if constant and own else ""
        # Written once too: a run asks every unit in the same way.
        asked = (
            dialect,
            request.schema,
            request.choices,
            request.max_tokens,
            request.temperature,
            request.seed,
        )
        if asked != self._rest[0]:
            self._rest = (asked, json.dumps(_parameters(request, dialect, self._options))[1:])
        return f"{self._head}{constant}{comma}{own}], {self._rest[1]}".encode()

    def _reply(self, wire: http.Wire, answer: http.Answer, request: Request) -> Reply:
        body = http.decoded(answer.body)
        try:
            choice = body["choices"][0]
            message = choice["message"]
            content, refusal = message.get("content"), message.get("refusal")
            finish = choice.get("finish_reason")
            tokens = _tokens(choice.get("logprobs")) if request.choices else None
            used = body.get("usage") or {}
            cached = (used.get("prompt_tokens_details") or {}).get("cached_tokens")
            usage = http.usage(used.get("prompt_tokens"), used.get("completion_tokens"), cached)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as e:
            detail = "" if body is None else f": {wire.complaint(answer).message}"
            what = "is not JSON" if body is None else "has no choices"
            raise ServerFault(f"{self._who}: the answer {what}{detail}") from e
        return Reply(
            text=http.text_of(refusal or content),
            stop="refusal" if refusal else _STOPS.get(str(finish), "stop"),
            usage=usage,
            resolved_model=http.text_of(body.get("model")) or None,
            tokens=tokens,
            rate=_rate(answer.headers),
            request_id=answer.headers.get("x-request-id") or http.text_of(body.get("id")) or None,
        )

    def _error(self, answer: http.Answer, said: http.Complaint) -> ProviderError:
        if answer.status == 429 and said.code in _NO_MONEY:
            return KeyProblem(f"{self._who}: the account of {KEY} has no quota left: {said.message}")
        return http.failure(answer, said, self._who, self._name, KEY)

    async def _probe_codes(self, wire: http.Wire) -> None:
        ask = Message("user", f"{_ASK}\nAnswer with exactly one letter and nothing else.\nAnswer (A, B):")
        request = Request(self._name, (ask,), 0, codes="AB", max_tokens=CODE_TOKENS)
        try:
            reply = await self._exchange(wire, request, probe=True)
        except Rejected as e:
            if e.status not in (400, 422):
                raise
            # Refused without a word about why: if it passes without them, it was the probabilities.
            self._dialect = replace(self._dialect, top_logprobs=0)
            reply = await self._exchange(wire, request)
        self._reports = reply.resolved_model if reply else None
        # A model that thinks aloud or chats first has no answer within the few tokens of a code.
        self.label_codes = bool(reply and reply.tokens and reply.text.strip()[:1] in ("A", "B"))

    async def _probe_json(self, wire: http.Wire) -> None:
        ask = f'{_ASK}\nAnswer with one JSON object and nothing else: {{"letter": "A" | "B"}}'
        request = Request(self._name, (Message("user", ask),), 0, schema=_PROBE, max_tokens=64)
        while self._dialect.output != "plain":
            before = self._dialect
            try:
                reply = await self._exchange(wire, request)
            except Rejected as e:
                if e.status not in (400, 422):
                    raise
                reply = None
            self._reports = (reply.resolved_model if reply else None) or self._reports
            # An answer that was cut says nothing against the format.
            if reply and (reply.stop == "length" or isinstance(http.decoded(reply.text), dict)):
                return
            if self._dialect.output == before.output:
                self._dialect = replace(self._dialect, output=_FORMATS[before.output])


def _turns(messages: tuple[Message, ...]) -> str:
    """The messages as JSON, without the brackets."""
    # Strings alone: json.dumps sets up an encoder for every object.
    return ", ".join(
        f'{{"role": {json_string(m.role)}, "content": {json_string(m.content)}}}' for m in messages
    )


_constant = lru_cache(maxsize=8)(_turns)


def _tokens(logprobs: Json) -> list[TokenChoice] | None:
    """Token positions; None for what is none: the text is an answer without them, and paid for."""
    try:
        return token_choices(logprobs)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        return None


def _parameters(request: Request, dialect: _Dialect, options: Mapping[str, str]) -> dict[str, Any]:
    """Everything in a request's body but the model and the messages."""
    optional: dict[str, Any] = {"temperature": request.temperature, "seed": request.seed, **options}
    out = {k: v for k, v in optional.items() if v is not None and k not in dialect.dropped}
    out[dialect.limit] = request.max_tokens
    if request.choices and dialect.top_logprobs:
        out |= {"logprobs": True, "top_logprobs": dialect.top_logprobs}
        out[dialect.limit] = min(request.max_tokens, CODE_TOKENS)
    if request.schema is not None and dialect.output == "json_schema":
        form = {"name": "answer", "schema": request.schema, "strict": True}
        out["response_format"] = {"type": "json_schema", "json_schema": form}
    elif request.schema is not None and dialect.output == "json_object":
        out["response_format"] = {"type": "json_object"}
    return out


def _step_down(
    dialect: _Dialect, request: Request, options: Mapping[str, str], said: http.Complaint
) -> _Dialect | None:
    """The dialect without what the server complains of; None when nothing optional is named."""
    text = f"{said.param} {said.message}".lower()
    if said.status not in (400, 403, 422):
        return None
    if said.code == "context_length_exceeded" or "context length" in text or "too large" in text:
        return None
    if request.choices and dialect.top_logprobs and "logprob" in text:
        fewer = 5 if "top_logprobs" in text and dialect.top_logprobs > 5 else 0
        return replace(dialect, top_logprobs=fewer)
    if said.status == 403:
        return None
    if request.schema is not None and dialect.output in _FORMATS and _FORMAT_WORDS.search(text):
        return replace(dialect, output=_FORMATS[dialect.output])
    if not _UNSUPPORTED.search(f"{said.code} {text}".lower()):
        return None
    if dialect.limit in text and not dialect.swapped:
        other = "max_tokens" if dialect.limit == "max_completion_tokens" else "max_completion_tokens"
        return replace(dialect, limit=other, swapped=True)
    sent = {"temperature": request.temperature, "seed": request.seed, **options}
    for name, value in sent.items():
        if name in text and value is not None and name not in dialect.dropped:
            return replace(dialect, dropped=(*dialect.dropped, name))
    return None


def _rate(headers: Mapping[str, str]) -> RateState | None:
    return http.rate_state(headers, _RATE, http.duration)
