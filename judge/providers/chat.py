"""OpenAI's chat completions as bytes and back, without a connection: what a request's body is, what a reply's says.

Wire format: https://platform.openai.com/docs/api-reference/chat. Servers differ in what they accept: a `Dialect` is
what one takes of it, and each refusal that names a parameter moves it one step down.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from json.encoder import encode_basestring_ascii as json_string
from typing import Any

from judge.providers import bill, http, masks, waits
from judge.providers.options import merged
from judge.providers.tokens import token_choices
from judge.types import Json, Message, RateState, Reply, Request, TokenChoice

PATH = "/chat/completions"
# Room for a leading blank or a quote before the one character, and the least some models accept.
CODE_TOKENS = 16
FORMATS = {"json_schema": "json_object", "json_object": "plain"}
LIMITS = ("max_completion_tokens", "max_tokens")
_FILTERED = {"content_filter", "content_policy_violation", "invalid_prompt"}
_STOPS = {"content_filter": "refusal", "length": "length"}
_RATE = [f"x-ratelimit-{part}-{of}" for of in ("requests", "tokens") for part in ("remaining", "reset")]
_UNSUPPORTED = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|extra (?:input|field)|not permitted|not allowed"
    r"|unexpected|invalid (?:parameter|argument)|instead"
)
_THINKS = re.compile(r"\s*<think>")
_FORMAT_WORDS = re.compile(r"response_format|json_schema|json_object|json schema|structured output|grammar")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a model on a server accepts; it only ever steps down. `limit` is the token limit's name there.

    `masks` is how the answer is held to the choices (`judge.providers.masks`): one of them, or several to find out
    whether there is one. Log-probabilities may be from before the mask, so that more alternatives are asked for.
    """

    limit: str = "max_completion_tokens"
    swapped: bool = False
    output: str = "json_schema"
    top_logprobs: int = 20
    dropped: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    masked_logprobs: int = 100

    @classmethod
    def from_json(cls, stored: Mapping[str, Json]) -> "Dialect":
        """Return the dialect that a study has stored. Raises ValueError, TypeError or KeyError where that is none.

        The study may be somebody else's, so that no value may name a field of the request that is not one of these.
        """
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
        found = cls(**fields)
        counts = (found.top_logprobs, found.masked_logprobs)
        is_one = (
            found.limit in LIMITS
            and found.output in (*FORMATS, "plain")
            and isinstance(found.swapped, bool)
            and all(type(count) is int and count >= 0 for count in counts)
            and all(isinstance(name, str) for name in found.dropped)
            and all(mask in masks.MASKS for mask in found.masks)
        )
        if not is_one:
            raise ValueError("no dialect")
        return found

    @property
    def alternatives(self) -> int:
        """How many alternatives of a token are asked for."""
        return self.masked_logprobs if self.masks else self.top_logprobs


class ChatWriter:
    """Makes the bodies of a model's requests.

    `options` are fields that a server may refuse, and which are then left out; `fields` what the user wants in every
    body as it is.
    """

    def __init__(
        self, name: str, options: Mapping[str, Json] | None = None, fields: Mapping[str, Json] | None = None
    ) -> None:
        self._options, self._fields = dict(options or {}), dict(fields or {})
        self.ids: dict[str, int] = {}
        """The tokens of choices, for a server that is asked with a bias."""
        self._head = f'{{"model": {json.dumps(name)}, "messages": ['
        self._rest: tuple[Any, str] = (None, "")

    def body(self, request: Request, dialect: Dialect) -> bytes:
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
            rest = merged(_parameters(request, dialect, self._options, self.ids), self._fields)
            self._rest = (asked, json.dumps(rest)[1:])
        return f"{self._head}{constant}{comma}{own}], {self._rest[1]}".encode()

    def step_down(self, dialect: Dialect, request: Request, said: http.Complaint) -> Dialect | None:
        """The dialect without what the server complains of; None when nothing optional is named."""
        return _step_down(dialect, request, self._options, said)


def reply(body: Json, request: Request, headers: Mapping[str, str], mask: str | None = None) -> Reply:
    """The reply in the JSON of a good answer (None: it is no JSON), of which these are the HTTP headers.

    `mask` is the one that the request asked for; `held` says whether it shows in the answer. Raises ValueError, which says what the answer has not.
    """
    if body is None:
        raise ValueError("is not JSON")
    try:
        choice = body["choices"][0]
        message = choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
        finish = choice.get("finish_reason")
        if finish == "error" or (choice.get("error") and not content):
            raise KeyError("an error in the place of an answer")
        # Where reasoning comes first, the first tokens are the reasoning's.
        reasons = message.get("reasoning_content") or message.get("reasoning") or _THINKS.match(str(content))
        tokens = _tokens(choice.get("logprobs")) if request.choices and not reasons else None
        used = body.get("usage")
        details = used.get("prompt_tokens_details") if isinstance(used, dict) else None
        usage = bill.billed(used, details.get("cached_tokens") if isinstance(details, dict) else None)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as e:
        raise ValueError("has no choices") from e
    text = http.text_of(refusal or content)
    held = masks.held(mask, text, tokens, request.choices) if mask and tokens else None
    if held is not None:
        text, position = held
        tokens = [position]
    return Reply(
        text=text,
        stop="refusal" if refusal else _STOPS.get(str(finish), "stop"),
        usage=usage,
        resolved_model=http.text_of(body.get("model")) or None,
        tokens=tokens,
        rate=rate(headers),
        request_id=headers.get("x-request-id") or http.text_of(body.get("id")) or None,
        held=held is not None,
        system_fingerprint=http.text_of(body.get("system_fingerprint")) or None,
    )


def from_events(body: bytes) -> Json:
    """The answer in a stream of events, as one that was not streamed; None where the body is none.

    Some gateways stream whatever they are asked for. The usage is in the last event then, which has no choices.
    """
    lines = body.decode("utf-8", "replace").splitlines()
    events = [http.decoded(line.removeprefix("data:")) for line in lines if line.startswith("data:")]
    events = [event for event in events if isinstance(event, dict)]
    if not events:
        return None
    choices = [c for event in events for c in event.get("choices") or () if isinstance(c, dict)]
    deltas = [c["delta"] for c in choices if isinstance(c.get("delta"), dict)]
    logprobs = [c["logprobs"] for c in choices if isinstance(c.get("logprobs"), dict)]
    message = {
        name: "".join(str(delta[name]) for delta in deltas if delta.get(name)) or None
        for name in ("content", "refusal", "reasoning", "reasoning_content")
    }
    last = {
        "message": message,
        "finish_reason": next(
            (c["finish_reason"] for c in reversed(choices) if c.get("finish_reason")), None
        ),
        "logprobs": {"content": [token for part in logprobs for token in part.get("content") or ()]}
        if logprobs
        else None,
    }
    usage = next((event["usage"] for event in reversed(events) if event.get("usage")), None)
    return {**events[0], "choices": [last] if choices else [], "usage": usage}


def ended(said: http.Complaint, headers: Mapping[str, str]) -> Reply | None:
    """The reply that an error stands for: a filter's refusal, or an answer cut at its limit; None for real errors."""
    if said.status == 400 and said.code in _FILTERED:
        return Reply(said.message, "refusal", rate=rate(headers))
    if said.status == 400 and "output limit was reached" in said.message:
        return Reply("", "length", rate=rate(headers))
    return None


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


def _parameters(
    request: Request, dialect: Dialect, options: Mapping[str, Json], ids: Mapping[str, int]
) -> dict[str, Any]:
    """Everything in a request's body but the model and the messages."""
    optional: dict[str, Any] = {"temperature": request.temperature, "seed": request.seed, **options}
    out = {k: v for k, v in optional.items() if v is not None and k not in dialect.dropped}
    out[dialect.limit] = request.max_tokens
    if request.choices and dialect.top_logprobs:
        out |= {"logprobs": True, "top_logprobs": dialect.alternatives}
        out[dialect.limit] = min(request.max_tokens, CODE_TOKENS)
        for mask in dialect.masks:
            out |= masks.fields(mask, request.choices, ids)
            out[dialect.limit] = min(request.max_tokens, masks.longest(mask))
    if request.schema is not None and dialect.output == "json_schema":
        form = {"name": "answer", "schema": request.schema, "strict": True}
        out["response_format"] = {"type": "json_schema", "json_schema": form}
    elif request.schema is not None and dialect.output == "json_object":
        out["response_format"] = {"type": "json_object"}
    return out


def _step_down(
    dialect: Dialect, request: Request, options: Mapping[str, Json], said: http.Complaint
) -> Dialect | None:
    """The dialect without what the server complains of; None when nothing optional is named."""
    text = f"{said.param} {said.message}".lower()
    if said.status not in (400, 403, 422):
        return None
    logprobs = request.choices and dialect.top_logprobs and "logprob" in text
    if said.code == "context_length_exceeded" or "context length" in text:
        return None
    if "too large" in text and not logprobs:
        return None
    if logprobs and dialect.alternatives > 20:
        return replace(dialect, masked_logprobs=20)
    if logprobs:
        fewer = 5 if "top_logprobs" in text and dialect.top_logprobs > 5 else 0
        return replace(dialect, top_logprobs=fewer, masked_logprobs=fewer)
    if said.status == 403:
        return None
    if request.schema is not None and dialect.output in FORMATS and _FORMAT_WORDS.search(text):
        return replace(dialect, output=FORMATS[dialect.output])
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


def rate(headers: Mapping[str, str]) -> RateState | None:
    """What OpenAI's rate-limit headers say."""
    return waits.rate_state(headers, _RATE, waits.duration)
