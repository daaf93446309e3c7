"""Anthropic's messages as bytes and back, without a connection: what a request's body is, what a reply's says.

Wire format: https://docs.anthropic.com/en/api/messages. The API has no sampling parameters and gives no
log-probabilities, so `temperature` and `seed` of a request are not written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from judge.errors import UsageError
from judge.providers import http
from judge.providers.options import merged
from judge.types import Json, Message, RateState, Reply, Request

PATH = "/v1/messages"
LEAST_THINKING = 1024
_STOPS = {"refusal": "refusal", "max_tokens": "length", "model_context_window_exceeded": "length"}
_RATE = [
    f"anthropic-ratelimit-{of}-{part}" for of in ("requests", "tokens") for part in ("remaining", "reset")
]


class MessagesWriter:
    """Makes the bodies of a model's requests.

    `options` are Anthropic's own (`thinking`, `effort`), `fields` what the user wants in every body as it is. Raises
    UsageError for an option that cannot be read.
    """

    def __init__(
        self, name: str, options: Mapping[str, str] | None = None, fields: Mapping[str, Json] | None = None
    ) -> None:
        self._fields = merged(_thinking(options or {}), fields or {})
        self._head = f'{{"model": {json.dumps(name)}, '

    def body(self, request: Request, output: str = "json_schema") -> bytes:
        """The request as JSON bytes: model, system and messages first, so that the prefix leads.

        `output` is json_schema, or plain where the server takes no schema.
        """
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
        return f"{self._head}{constant}{comma}{own}], {json.dumps(merged(rest, self._fields))[1:]}".encode()


def thinking_tokens(options: Mapping[str, str]) -> int:
    """The tokens that `thinking=N` gives the reasoning; they are part of a reply's longest. Raises UsageError."""
    text = options.get("thinking", "off")
    if text in ("off", "adaptive"):
        return 0
    if not (text.isdecimal() and text.isascii() and int(text) >= LEAST_THINKING):
        raise UsageError(
            f"--option thinking={text}: a number of tokens of at least {LEAST_THINKING}, adaptive or off"
        )
    return int(text)


def _thinking(options: Mapping[str, str]) -> dict[str, Any]:
    """The fields of the body for how hard to think.

    https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking
    """
    out: dict[str, Any] = {}
    if budget := thinking_tokens(options):
        out["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif "thinking" in options:
        out["thinking"] = {"type": {"off": "disabled"}.get(options["thinking"], options["thinking"])}
    if "effort" in options:
        out["output_config"] = {"effort": options["effort"]}
    return out


def reply(body: Json, headers: Mapping[str, str]) -> Reply:
    """The reply in the JSON of a good answer (None: it is no JSON), of which these are the HTTP headers.

    Raises ValueError, which says what the answer has not.
    """
    if body is None:
        raise ValueError("is not JSON")
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
        raise ValueError("has no content") from e
    return Reply(
        text=text,
        stop=_STOPS.get(str(reason), "stop"),
        usage=usage,
        resolved_model=http.text_of(body.get("model")) or None,
        rate=rate(headers),
        request_id=headers.get("request-id") or http.text_of(body.get("id")) or None,
    )


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


def rate(headers: Mapping[str, str]) -> RateState | None:
    """What Anthropic's rate-limit headers say."""
    return http.rate_state(headers, _RATE, _until)
