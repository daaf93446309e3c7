"""`anthropic/MODEL`: Anthropic's Messages API, or a compatible server (`--base-url`).

Wire format: https://docs.anthropic.com/en/api/messages. The API has no sampling parameters, so a request's
`temperature` and `seed` are not sent. It does not return log-probabilities, so label codes are not used.
"""

import json
import os
import re
import time
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from judge.accept import classify_finish
from judge.errors import KeyProblem, ProviderError, UsageError
from judge.providers import bill, http, waits
from judge.providers.base import Needs, Settings
from judge.providers.options import merge
from judge.providers.vendor import Vendor
from judge.types import Json, Message, RateState, Reply, Request

NEEDS = Needs(examples="anthropic/claude-sonnet-5", key="ANTHROPIC_API_KEY")

OWN_URL = "https://api.anthropic.com"
KEY = "ANTHROPIC_API_KEY"
# Only a complaint about the output format may change the format; any other 400 is about the request itself.
_FORMAT_WORDS = re.compile(r"output_config|output_format|json_schema|structured output")


class Provider(Vendor):
    """A model that is called through the Messages API.

    Settings:

    - `base_url`, without `/v1`: by default ANTHROPIC_BASE_URL or, if that is not set, Anthropic's own address
    - `timeout`, in seconds per call
    - `options`: `thinking` (`adaptive`, `off` or a number of tokens), `effort`, and the options of
      `judge.providers.options`

    Raises UsageError if the base URL or an option is invalid.
    """

    vendor, title, host = "anthropic", "Anthropic", "anthropic.com"
    library, own_client, key = "anthropic", "AsyncAnthropic", KEY
    key_headers = ("authorization", "x-api-key")
    known: Collection[str] = ("effort", "thinking")
    # The runner never sends `temperature` to this API, so a body field is the only way to set it.
    taken = ("model", "max_tokens")

    def __init__(self, name: str, settings: Settings) -> None:
        super().__init__(name, settings)
        self._fields = merge(_thinking(self._options.vendor_options), self._options.body)
        self._head = f'{{"model": {json.dumps(name)}, '
        self._output = "json_schema"

    def _address(self, settings: Settings) -> str:
        """Return the base URL, without `/v1`."""
        base_url = settings.base_url or os.environ.get("ANTHROPIC_BASE_URL") or OWN_URL
        # Many users write the address with `/v1`, which every path here already contains.
        return base_url.strip().rstrip("/").removesuffix("/v1")

    async def open(self) -> None:
        """Connect, and look up the model by its name. The look-up uses no tokens.

        Raises KeyProblem if the key is missing or refused, Rejected if the model does not exist, and the same
        errors as `complete`.
        """
        wire = self._connect()
        answer = await wire.get(f"/v1/models/{quote(self._name, safe='')}")
        # Other servers often have no list of models, so a missing model is only noticed at the first call.
        if answer.status in (401, 403) or (self._is_vendors_own and answer.status != 200):
            raise self._error(answer, wire.complaint(answer))
        body = http.decode_json(answer.body) if answer.status == 200 else None
        self._reports = http.name_of(body.get("id")) if isinstance(body, dict) else None

    async def complete(self, request: Request) -> Reply:
        """Send one request.

        If the server rejects the output format, this request is sent again without the format, and all later
        requests are also sent without it. Raises KeyProblem, RateLimited, ServerFault, Unreachable or
        Rejected.
        """
        wire = self._connect()
        while True:
            output = self._output
            answer = await wire.post(PATH, self.body(request))
            if answer.status == 200:
                return self._parse_answer(wire, answer)
            complaint = wire.complaint(answer)
            formatted = request.schema is not None and output != "plain"
            if not (formatted and answer.status in (400, 422) and _FORMAT_WORDS.search(complaint.message)):
                raise self._error(answer, complaint)
            self._output = "plain"

    def body(self, request: Request) -> bytes:
        """Return the request as JSON bytes, in an output format that the server is known to accept.

        The model, the system text and the messages come first, so that requests start with the same prefix.
        """
        rest: dict[str, Any] = {"max_tokens": request.max_tokens}
        if request.schema is not None and self._output != "plain":
            rest["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        # System blocks come first in a body, so the constant prefix always contains all system text.
        constant = _constant(request.messages[: request.prefix])
        unit_text = ", ".join(json.dumps(_turn(m)) for m in request.messages[request.prefix :])
        comma = ", " if unit_text and not constant.endswith("[") else ""
        return (
            f"{self._head}{constant}{comma}{unit_text}], {json.dumps(merge(rest, self._fields))[1:]}".encode()
        )

    def parse_answer(self, body: Json, request: Request, headers: Mapping[str, str] | None = None) -> Reply:
        """Parse the JSON of a successful response from another source, such as a batch file.

        Raises ValueError if the response is incomplete.
        """
        return reply(body, headers or {})

    def refusal(self, complaint: http.Complaint) -> Reply | None:
        """Return None, because this API never reports a model's refusal as an error."""
        return None

    def describe(self) -> Mapping[str, Json]:
        """Return the facts to store with a run, such as the base URL without credentials and the output
        format.
        """
        return {
            **super().describe(),
            "format": self._output,
            "thinking_tokens": thinking_tokens(self._options.vendor_options),
            "left_out": ["temperature", "seed"],
        }

    def _parse_answer(self, wire: http.Connection, answer: http.HttpAnswer) -> Reply:
        try:
            return reply(http.decode_json(answer.body), answer.headers)
        except ValueError as e:
            raise self._fault_in(wire, answer, e) from e

    def _error(self, answer: http.HttpAnswer, complaint: http.Complaint) -> ProviderError:
        # Missing credit is a problem with the account, not with this request, so the run must stop instead of failing
        # unit by unit.
        broke = answer.status == 402 or (
            answer.status == 400 and "credit balance" in complaint.message.lower()
        )
        if broke:
            return KeyProblem(
                f"{self._who}: the account that {self._key} belongs to has no credit left: {complaint.message}"
            )
        return super()._error(answer, complaint)


# Conversions that need no connection: from a request to the bytes of its body, and from a response to a reply.


PATH = "/v1/messages"
LEAST_THINKING = 1024
_LIMITED = ("requests", "tokens")
_RATE = [f"anthropic-ratelimit-{of}-{part}" for of in _LIMITED for part in ("remaining", "reset")]
_RATE += [f"anthropic-ratelimit-{of}-limit" for of in _LIMITED]


def thinking_tokens(options: Mapping[str, str]) -> int:
    """Return the number of reasoning tokens that `thinking=N` allows, or 0 for `off` and `adaptive`.

    Reasoning tokens count towards a reply's token limit. Raises UsageError if the value is invalid.
    """
    text = options.get("thinking", "off")
    if text in ("off", "adaptive"):
        return 0
    if not (text.isdecimal() and text.isascii() and int(text) >= LEAST_THINKING):
        raise UsageError(
            f"--option thinking={text}: must be adaptive, off, or a number of tokens (at least {LEAST_THINKING})"
        )
    return int(text)


def _thinking(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the request body that set how much the model thinks.

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
    """Parse a successful response from its JSON body (None if the body is not JSON) and its HTTP headers.

    Raises a ValueError that says what is missing if the response is incomplete.
    """
    if body is None:
        raise ValueError("is not JSON")
    try:
        text = http.text_of([b for b in body["content"] if b.get("type") == "text"])
        used = body.get("usage")
        used = used if isinstance(used, dict) else {}
        from_cache, written = used.get("cache_read_input_tokens"), used.get("cache_creation_input_tokens")
        # Anthropic's `input_tokens` excludes tokens that were read from the cache or written to it.
        parts = [bill.read_count(n) for n in (used.get("input_tokens"), from_cache or 0, written or 0)]
        total = None if None in parts else sum(n or 0 for n in parts)
        usage = bill.usage(total, used.get("output_tokens"), from_cache, written)
        reason = body.get("stop_reason")
    except (KeyError, TypeError, AttributeError) as e:
        raise ValueError("has no content") from e
    return Reply(
        text=text,
        stop=classify_finish(reason),
        usage=usage,
        resolved_model=http.name_of(body.get("model")),
        rate=rate(headers),
    )


@lru_cache(maxsize=8)
def _constant(messages: tuple[Message, ...]) -> str:
    """Return the beginning of a request body: the messages that are the same for every unit.

    The last of these messages is marked for the server's prompt cache.
    """
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for i, message in enumerate(messages, 1):
        block: dict[str, Any] = {"type": "text", "text": message.content}
        if i == len(messages):
            block["cache_control"] = {"type": "ephemeral"}
        if message.role == "system" and not turns:
            system.append(block)
        else:
            turns.append({**_turn(message), "content": [block]})
    opening = f'"system": {json.dumps(system)}, ' if system else ""
    return f'{opening}"messages": [{json.dumps(turns)[1:-1]}'


def _turn(message: Message) -> dict[str, str]:
    """Convert a message to the API's format.

    The API has only the roles `user` and `assistant`, so any other role becomes `user`.
    """
    role = "assistant" if message.role == "assistant" else "user"
    return {"role": role, "content": message.content}


def _until(text: str | None) -> float | None:
    """Return the number of seconds until an RFC 3339 time.

    The result is 0 if the time has passed, and None if the text is not a valid time.
    """
    try:
        at = datetime.fromisoformat(text or "").timestamp()
    except ValueError:
        return None
    return max(0.0, at - time.time())


def rate(headers: Mapping[str, str]) -> RateState | None:
    """Parse Anthropic's rate-limit headers."""
    return waits.rate_state(headers, _RATE, _until)
