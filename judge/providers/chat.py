"""Convert requests to OpenAI's chat completions format and parse the responses. No connection is needed.

Wire format: https://platform.openai.com/docs/api-reference/chat. Servers accept different parameters. A
`Dialect` describes the parameters that one server accepts. Each time the server rejects a parameter, that
parameter is removed from the dialect or changed.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from json.encoder import encode_basestring_ascii as json_string
from typing import Any

from judge.accept import COMPLETE, CUT, REFUSED, classify_finish
from judge.providers import bill, http, masks, waits
from judge.providers.options import merge
from judge.providers.tokens import token_choices
from judge.types import Json, Message, RateState, Reply, Request, TokenChoice

PATH = "/chat/completions"
# Room for a leading blank or a quote before the one character; also the minimum that some models accept.
CODE_TOKENS = 16
FORMATS = {"json_schema": "json_object", "json_object": "plain"}
LIMITS = ("max_completion_tokens", "max_tokens")
_FILTERED = {"content_filter", "content_policy_violation", "invalid_prompt"}
_LIMITED = ("requests", "tokens")
_RATE = [f"x-ratelimit-{part}-{of}" for of in _LIMITED for part in ("remaining", "reset")]
_RATE += [f"x-ratelimit-limit-{of}" for of in _LIMITED]
_UNSUPPORTED = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|extra (?:input|field)|not permitted|not allowed"
    r"|unexpected|invalid (?:parameter|argument)|instead"
)
_THINKS = re.compile(r"\s*<think>")
_FORMAT_WORDS = re.compile(r"response_format|json_schema|json_object|json schema|structured output|grammar")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The features that a server supports for one model. Features are only ever removed.

    `limit` is the server's name for the token limit. `masks` contains at most one mask: a method that
    restricts the answer to the choices (`judge.providers.masks`). `top_logprobs` is the number of alternative
    tokens to request at each position. With a mask, `masked_logprobs` is used instead. Its default is larger,
    because some servers return log-probabilities computed before the mask was applied.
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
        """Return a dialect from its stored form. Raises ValueError, TypeError or KeyError if the form is
        invalid.

        A study may come from an untrusted source, so the stored values can only select known fields of a
        request.
        """
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
        parsed = cls(**fields)
        counts = (parsed.top_logprobs, parsed.masked_logprobs)
        is_one = (
            parsed.limit in LIMITS
            and parsed.output in (*FORMATS, "plain")
            and isinstance(parsed.swapped, bool)
            and all(type(count) is int and count >= 0 for count in counts)
            and all(isinstance(name, str) for name in parsed.dropped)
            and all(mask in masks.MASKS for mask in parsed.masks)
        )
        if not is_one:
            raise ValueError("not a valid dialect")
        return parsed

    @property
    def alternatives(self) -> int:
        """The number of alternative tokens to request at each position (`top_logprobs`)."""
        return self.masked_logprobs if self.masks else self.top_logprobs


class ChatWriter:
    """Writes request bodies for one model.

    `options` contains fields that are omitted once the server has rejected them. `fields` contains fields
    that are added to every body unchanged.
    """

    def __init__(
        self, name: str, options: Mapping[str, Json] | None = None, fields: Mapping[str, Json] | None = None
    ) -> None:
        self._options, self._fields = dict(options or {}), dict(fields or {})
        self.ids: dict[str, int] = {}
        """Maps each choice to its token id. The mask `logit_bias` needs these ids."""
        self._head = f'{{"model": {json.dumps(name)}, "messages": ['
        self._rest: tuple[Any, str] = (None, "")

    def body(self, request: Request, dialect: Dialect) -> bytes:
        """Return the request as JSON bytes.

        The model and the messages come first, so that requests start with the same prefix.
        """
        constant = _constant(request.messages[: request.prefix])
        unit_turns = _turns(request.messages[request.prefix :])
        comma = ", " if constant and unit_turns else ""
        # Encoded only once, because the parameters are the same for all requests of a run.
        parameters = (
            dialect,
            request.schema,
            request.choices,
            request.max_tokens,
            request.temperature,
            request.seed,
        )
        if parameters != self._rest[0]:
            rest = merge(self._parameters(request, dialect), self._fields)
            self._rest = (parameters, json.dumps(rest)[1:])
        return f"{self._head}{constant}{comma}{unit_turns}], {self._rest[1]}".encode()

    def _parameters(self, request: Request, dialect: Dialect) -> dict[str, Any]:
        """Return everything in a request body except the model and the messages."""
        optional: dict[str, Any] = {"temperature": request.temperature, "seed": request.seed, **self._options}
        out = {k: v for k, v in optional.items() if v is not None and k not in dialect.dropped}
        out[dialect.limit] = request.max_tokens
        # Reasoning models refuse log-probabilities, so they are dropped for the whole run once refused.
        if request.choices and dialect.top_logprobs:
            out |= {"logprobs": True, "top_logprobs": dialect.alternatives}
            out[dialect.limit] = min(request.max_tokens, CODE_TOKENS)
            for mask in dialect.masks:
                out |= masks.fields(mask, request.choices, self.ids)
                out[dialect.limit] = min(request.max_tokens, masks.longest(mask))
        if request.schema is not None and dialect.output == "json_schema":
            form = {"name": "answer", "schema": request.schema, "strict": True}
            out["response_format"] = {"type": "json_schema", "json_schema": form}
        elif request.schema is not None and dialect.output == "json_object":
            out["response_format"] = {"type": "json_object"}
        return out

    def step_down(self, dialect: Dialect, request: Request, complaint: http.Complaint) -> Dialect | None:
        """Return the dialect without the rejected parameter.

        Return None if the error does not name an optional parameter.
        """
        text = f"{complaint.param} {complaint.message}".lower()
        if complaint.status not in (400, 403, 422):
            return None
        logprobs = request.choices and dialect.top_logprobs and "logprob" in text
        if complaint.code == "context_length_exceeded" or "context length" in text:
            return None
        # This error is about the size of the prompt, so changing a parameter would not help.
        if "too large" in text and not logprobs:
            return None
        if logprobs and dialect.alternatives > 20:
            # 20 is the maximum of OpenAI's API.
            return replace(dialect, masked_logprobs=20)
        if logprobs:
            fewer = 5 if "top_logprobs" in text and dialect.top_logprobs > 5 else 0
            return replace(dialect, top_logprobs=fewer, masked_logprobs=fewer)
        # Some gateways refuse log-probabilities with 403; any other 403 is about the key.
        if complaint.status == 403:
            return None
        if request.schema is not None and dialect.output in FORMATS and _FORMAT_WORDS.search(text):
            return replace(dialect, output=FORMATS[dialect.output])
        if not _UNSUPPORTED.search(f"{complaint.code} {text}".lower()):
            return None
        if dialect.limit in text and not dialect.swapped:
            other = "max_tokens" if dialect.limit == "max_completion_tokens" else "max_completion_tokens"
            return replace(dialect, limit=other, swapped=True)
        sent = {"temperature": request.temperature, "seed": request.seed, **self._options}
        for name, value in sent.items():
            if name in text and value is not None and name not in dialect.dropped:
                return replace(dialect, dropped=(*dialect.dropped, name))
        return None


def reply(body: Json, request: Request, headers: Mapping[str, str], mask: str | None = None) -> Reply:
    """Parse a successful response from its JSON body (None if the body is not JSON) and its HTTP headers.

    `mask` is the requested mask. The reply's `masked` is true if the response shows that the mask was
    applied. Raises a ValueError that says what is missing if the response is incomplete.
    """
    if body is None:
        raise ValueError("is not JSON")
    choices = body.get("choices") if isinstance(body, dict) else None
    if isinstance(choices, list) and len(choices) > 1:
        # One was requested, and nothing shows which of them is the answer.
        raise ValueError(f"has {len(choices)} choices")
    try:
        choice = body["choices"][0]
        message = choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
        finish = choice.get("finish_reason")
        # OpenRouter reports a failure of the model in a response with status 200.
        if finish == "error" or choice.get("error") or body.get("error"):
            raise KeyError("an error instead of an answer")
        # If the model reasons first, the first tokens belong to the reasoning and not to the answer.
        reasons = message.get("reasoning_content") or message.get("reasoning") or _THINKS.match(str(content))
        tokens = _tokens(choice.get("logprobs")) if request.choices and not reasons else None
        used = body.get("usage")
        details = used.get("prompt_tokens_details") if isinstance(used, dict) else None
        usage = bill.read_usage(used, details.get("cached_tokens") if isinstance(details, dict) else None)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as e:
        raise ValueError("has no choices") from e
    text = http.text_of(refusal or content)
    masked = masks.find_choice(mask, text, tokens, request.choices) if mask and tokens else None
    stop = classify_finish(finish)
    if mask and masked is not None and masks.longest(mask) == 1 and stop == CUT:
        # The mask allows exactly one token, so the limit of one token cut nothing off.
        stop = COMPLETE
    if masked is not None:
        text, position = masked
        tokens = [position]
    return Reply(
        text=text,
        stop=REFUSED if refusal else stop,
        usage=usage,
        resolved_model=http.name_of(body.get("model")),
        tokens=tokens,
        rate=rate(headers),
        masked=masked is not None,
        system_fingerprint=http.name_of(body.get("system_fingerprint")),
    )


def reply_from_error(complaint: http.Complaint, headers: Mapping[str, str]) -> Reply | None:
    """Return a reply if the server reports a refusal or a truncated answer as an error.

    Return None for all other errors.
    """
    if complaint.status == 400 and complaint.code in _FILTERED:
        return Reply(complaint.message, REFUSED, rate=rate(headers))
    # OpenAI returns this error if a reasoning model reaches the token limit before its answer begins.
    if complaint.status == 400 and "output limit was reached" in complaint.message:
        return Reply("", CUT, rate=rate(headers))
    return None


def _turns(messages: tuple[Message, ...]) -> str:
    """Return the messages as a JSON array without its brackets."""
    # Only strings are encoded, because json.dumps sets up an encoder for every object.
    return ", ".join(
        f'{{"role": {json_string(m.role)}, "content": {json_string(m.content)}}}' for m in messages
    )


_constant = lru_cache(maxsize=8)(_turns)


def _tokens(logprobs: Json) -> list[TokenChoice] | None:
    """Return the reply's tokens with their alternatives, or None if the log-probabilities are malformed.

    Malformed log-probabilities raise no error, because the reply has been paid for and its text can still be used.
    """
    try:
        return token_choices(logprobs)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        return None


def rate(headers: Mapping[str, str]) -> RateState | None:
    """Parse OpenAI's rate-limit headers."""
    return waits.rate_state(headers, _RATE, waits.duration)
