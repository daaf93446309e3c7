"""`openai/MODEL`: OpenAI's chat completions, and any compatible server (`--base-url`).

Wire format: https://platform.openai.com/docs/api-reference/chat. Servers differ in what they accept, so the
provider has
one dialect per model: it starts from the most exact form, and each refusal that names a parameter moves it
one step
down, for good.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from judge.errors import KeyProblem, ProviderError, RateLimited, Rejected, ServerFault, UsageError
from judge.providers import chat, http, masks
from judge.providers.base import Needs, NoLimits, Purse, Settings
from judge.providers.vendor import Vendor
from judge.types import Json, Message, Reply, Request

NEEDS = Needs(examples="openai/gpt-5-mini; with --base-url any compatible server", key="OPENAI_API_KEY")

OWN_URL = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"
_ASK = "Which letter comes first in the alphabet?"
_LETTER = {"letter": {"type": "string", "enum": ["A", "B"]}}
_PROBE = {"type": "object", "properties": _LETTER, "required": ["letter"], "additionalProperties": False}
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}


class Provider(Vendor):
    """One model behind chat completions.

    Settings: `base_url` (default: OPENAI_BASE_URL, then OpenAI itself), `timeout` in seconds for one
    call, option `reasoning_effort` and those of `judge.providers.options`. Raises UsageError for a base URL or option that cannot be used.
    """

    vendor, title, host = "openai", "OpenAI", "openai.com"
    library, own_client, key = "openai", "AsyncOpenAI", KEY
    known: Collection[str] = ("mask", "reasoning_effort")
    facts: Collection[str] = ("mask",)

    def __init__(self, name: str, settings: Settings) -> None:
        super().__init__(name, settings)
        self.chosen_mask = _chosen(self._options.own.get("mask", "auto"))
        self.mask: str | None = None
        self._is_held = False
        own = {k: v for k, v in self._options.own.items() if k == "reasoning_effort"}
        # The capabilities of OpenAI's models are documented, so they are not probed.
        self._is_openai = self._own
        # All models of OpenAI take the newer name; most other servers know only the older one.
        self._dialect = chat.Dialect(limit="max_completion_tokens" if self._own else "max_tokens")
        self._writer = chat.ChatWriter(name, own, self._options.body)
        self.purse: Purse = NoLimits()
        self._probed: set[str] = set()
        self._tried: dict[tuple[str, ...], bool | None] = {}
        self._has_tokens = False
        self.learnt_at = ""

    def _address(self, settings: Settings) -> str:
        """Return the base URL."""
        return settings.base_url or os.environ.get("OPENAI_BASE_URL") or OWN_URL

    def _wired(self) -> http.Door:
        """Return a connection; for any server but OpenAI's, without the vendor's package.

        Such a server gets the key and nothing else of the package, and importing it takes longer than a small
        run.
        """
        if self._own:
            return super()._wired()
        key, asked = self._looked_up()
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {key}"} if key else {}
        return http.Wire(self._at, headers, self.timeout, [key], asked)

    async def open(self) -> None:
        """Connect and probe: one short call for label codes; on other servers up to two for JSON, and some

        for a mask.

        Raises KeyProblem if the key is missing or refused, Rejected for an unknown model, and the errors of
        `complete`.
        """
        wire = self._connect()
        if self.learnt_at:
            return
        # Probed concurrently, because each probe is a round trip. After an error, only unanswered probes are
        # repeated: a server with one call at a time would refuse the second again and again.
        asked = {"codes": self._probe_codes} | ({} if self._is_openai else {"json": self._probe_json})
        left = [name for name in asked if name not in self._probed]
        ended = await asyncio.gather(*(asked[name](wire) for name in left), return_exceptions=True)
        self._probed |= {name for name, error in zip(left, ended, strict=True) if error is None}
        for error in ended:
            if error is not None:
                raise error
        if not self._is_held:
            await self._probe_masks(wire)
        self._probed.clear()
        self._tried.clear()
        self.learnt_at = datetime.now(UTC).isoformat()

    def learnt(self) -> Json:
        """Return the results of probes and refusals, and the options with which they were made."""
        return {
            "asked": self._asked_with(),
            "dialect": asdict(self._dialect),
            "label_codes": self.label_codes,
            "mask": self.mask,
            "reports": self._reports,
        }

    def recall(self, learnt: Json, at: str) -> None:
        """Reuse the results of another process, if its options were the same."""
        if not isinstance(learnt, dict) or learnt.get("asked") != self._asked_with():
            return
        try:
            dialect = chat.Dialect.from_json(learnt["dialect"])
            label_codes, mask, reports = learnt["label_codes"], learnt["mask"], learnt["reports"]
        except (KeyError, TypeError, ValueError, AttributeError):
            return  # written by another version or another program
        is_reply = isinstance(label_codes, bool) and (reports is None or isinstance(reports, str))
        if not is_reply or mask not in (None, *masks.MASKS):
            return
        self._dialect, self.label_codes, self.mask, self._reports = dialect, label_codes, mask, reports
        self.learnt_at = at

    def _asked_with(self) -> dict[str, Json]:
        """Return the options on which the results of probes depend."""
        return {"mask": self.chosen_mask, **self._options.identity()}

    def hold(self, mask: str | None, alternatives: int | None = None) -> None:
        """Use this mask from now on, or none: the mask with which the run began."""
        most = alternatives or self._dialect.masked_logprobs
        self._dialect = replace(self._dialect, masks=(mask,) if mask else (), masked_logprobs=most)
        self._is_held = True

    async def learn(self, choices: Sequence[str]) -> None:
        """Look up what a mask needs to write bodies without a connection: the choices' tokens, for a bias."""
        if "logit_bias" in self._dialect.masks:
            await self._learn_tokens(self._connect(), choices)

    async def complete(self, request: Request) -> Reply:
        """Send one request; a refused parameter is left out from then on and the call is sent again.

        Raises KeyProblem, RateLimited, ServerFault, Unreachable or Rejected.
        """
        wire = self._connect()
        biased = "logit_bias" in self._dialect.masks and request.choices
        if biased and not await self._learn_tokens(wire, request.choices):
            raise Rejected(
                f"{self._who}: /tokenize does not give each label's token, which mask=logit_bias needs", 400
            )
        reply = await self._exchange(wire, request)
        assert reply is not None
        if reply.resolved_model and self._reports and reply.resolved_model != self._reports:
            # Another model answers than the one that was probed, so the next run must probe again.
            self.learnt_at = ""
        return reply

    def body(self, request: Request) -> bytes:
        """Return the request's body in the dialect found so far; needs no connection."""
        return self._writer.body(request, self._dialect)

    def read(self, body: Json, request: Request, headers: Mapping[str, str] | None = None) -> Reply:
        """Parse the JSON of a successful answer that came another way. Raises ValueError as `chat.reply`."""
        return chat.reply(body, request, headers or {}, next(iter(self._dialect.masks), None))

    def refusal(self, complaint: http.Complaint) -> Reply | None:
        """Return the reply that an error means, as `chat.ended`."""
        return chat.ended(complaint, {})

    async def models(self) -> list[str]:
        """Return the model names that the server lists. Raises as `complete`."""
        return http.model_names(await self._asked_of("/models"), self._who)

    async def count_tokens(self, request: Request) -> int:
        """Return the input tokens of a request, counted by OpenAI free of charge. Raises as `complete`.

        https://platform.openai.com/docs/api-reference/responses/input-tokens
        """
        body: dict[str, Any] = {
            "model": self._name,
            "input": [{"role": m.role, "content": m.content} for m in request.messages],
        }
        if request.schema is not None:
            form = {"type": "json_schema", "name": "answer", "schema": request.schema, "strict": True}
            body["text"] = {"format": form}
        answer = await self._asked_of("/responses/input_tokens", json.dumps(body).encode())
        return http.token_count(answer, self._who)

    def describe(self) -> Mapping[str, Json]:
        """Return the base URL without credentials, and the dialect found so far."""
        return {
            "vendor": self.vendor,
            "model": self._name,
            "base_url": self._at.url,
            "format": self._dialect.output,
            "label_codes": self.label_codes,
            "mask": next(iter(self._dialect.masks), None),
            "token_limit": self._dialect.limit,
            "left_out": list(self._dialect.dropped),
            "options": {k: v for k, v in self._options.identity().items() if k not in self.facts},
            "own_server": self._own,
            "reports": self._reports,
            "timeout": self.timeout,
            "sdk": self._sdk,
        }

    async def _exchange(
        self, wire: http.Door, request: Request, probe: bool = False, tried: tuple[str, ...] = ()
    ) -> Reply | None:
        """Return the reply; None if a probe for label codes or masks (`tried`) shows that there are no
        probabilities.
        """
        while True:
            known = self._dialect
            sent = replace(known, masks=tried) if tried else known
            answer = await wire.post(chat.PATH, self._writer.body(request, sent))
            if answer.status == 200:
                return self._read(wire, answer, request, sent.masks)
            said = wire.complaint(answer)
            if (ended := chat.ended(said, answer.headers)) is not None:
                return ended
            step = self._writer.step_down(sent, request, said)
            if step is None:
                raise self._error(answer, said)
            if tried and not step.top_logprobs:
                return None
            # Concurrent calls meet the same refusal; only the first one to return steps down.
            if self._dialect is known:
                self._dialect = replace(step, masks=known.masks)
                self.label_codes = self.label_codes and step.top_logprobs > 0
            if probe and not self._dialect.top_logprobs:
                return None

    def _read(
        self, wire: http.Door, answer: http.HttpAnswer, request: Request, sent: tuple[str, ...]
    ) -> Reply:
        body = http.decoded(answer.body)
        if body is None:
            body = chat.from_events(answer.body)
        try:
            return chat.reply(body, request, answer.headers, next(iter(sent), None))
        except ValueError as e:
            said = wire.complaint(answer)
            if said.code.isdigit() and 400 <= int(said.code) < 600:
                # Some gateways pass an error on with status 200.
                told = int(said.code)
                raise self._error(replace(answer, status=told), replace(said, status=told)) from e
            detail = "" if body is None else f": {said.message}"
            raise ServerFault(f"{self._who}: the answer {e}{detail}") from e

    def _error(self, answer: http.HttpAnswer, complaint: http.Complaint) -> ProviderError:
        if answer.status == 429 and complaint.code in _NO_MONEY:
            return KeyProblem(
                f"{self._who}: the account of {self._key} has no quota left: {complaint.message}"
            )
        if answer.status == 402:
            return KeyProblem(
                f"{self._who}: the account of {self._key} has no credit left: {complaint.message}"
            )
        if answer.status == 400 and "api key" in complaint.message.lower():
            return KeyProblem(
                f"{self._who} refused the key (HTTP 400): {complaint.message}; check {self._key}"
            )
        error = super()._error(answer, complaint)
        if isinstance(error, RateLimited | ServerFault) and error.retry_after is None:
            # A refusal may have rate headers without Retry-After: calls are possible again at their reset.
            state = chat.rate(answer.headers)
            if state is not None and state.remaining_requests == 0:
                error.retry_after = state.reset_requests
        return error

    async def _asked(
        self, wire: http.Door, request: Request, probe: bool = False, tried: tuple[str, ...] = ()
    ) -> Reply | None:
        """Make an `_exchange` for a probe."""
        return await self.purse.pay(request, lambda: self._exchange(wire, request, probe, tried))

    async def _probe_codes(self, wire: http.Door) -> None:
        ask = Message("user", f"{_ASK}\nAnswer with exactly one letter and nothing else.\nAnswer (A, B):")
        request = Request(self._name, (ask,), 0, codes="AB", max_tokens=chat.CODE_TOKENS)
        try:
            reply = await self._asked(wire, request, probe=True)
        except Rejected as e:
            if e.status not in (400, 422):
                raise
            # Refused without a reason: if the call succeeds without probabilities, they were the reason.
            self._dialect = replace(self._dialect, top_logprobs=0)
            reply = await self._asked(wire, request)
        self._reports = reply.resolved_model if reply else None
        self._has_tokens = bool(reply and reply.tokens)
        # A model that reasons or chats first does not answer within the few tokens of a code.
        self.label_codes = bool(reply and reply.tokens and reply.text.strip()[:1] in ("A", "B"))

    async def _probe_masks(self, wire: http.Door) -> None:
        """Find a mask that restricts the answer to the codes; for OpenAI itself only if the user named one."""
        if self.chosen_mask == "none" or (
            self.chosen_mask == "auto" and (self._is_openai or not self._has_tokens)
        ):
            return
        found = None
        if self.chosen_mask != "auto":
            found = self.chosen_mask if await self._holds(wire, (self.chosen_mask,)) else None
            if found is None:
                raise UsageError(
                    f"--option mask={self.chosen_mask}: {self._who} does not hold the answer to the codes so, with "
                    "probabilities; leave it out, or mask=none"
                )
        else:
            # A server that knows none of them ignores them all, so one call tests three.
            together = await self._holds(wire, masks.TOGETHER) is not False
            for mask in masks.MASKS:
                if (together or mask not in masks.TOGETHER) and await self._holds(wire, (mask,)):
                    found = mask
                    break
        self.mask = found
        self._dialect = replace(self._dialect, masks=(found,) if found else ())
        self.label_codes = self.label_codes or found is not None

    async def _holds(self, wire: http.Door, tried: tuple[str, ...]) -> bool | None:
        """Return whether the model answers a greeting with a code and probabilities; None if the server
        refuses the field.
        """
        if tried not in self._tried:
            asked, codes = (Message("user", masks.QUESTION),), "".join(masks.CHOICES)
            request = Request(self._name, asked, 0, codes=codes, max_tokens=masks.MOST_TOKENS)
            try:
                known = "logit_bias" not in tried or await self._learn_tokens(wire, masks.CHOICES)
                reply = await self._asked(wire, request, tried=tried) if known else None
                self._tried[tried] = bool(reply and reply.held)
            except Rejected:
                self._tried[tried] = None
        return self._tried[tried]

    async def _learn_tokens(self, wire: http.Door, choices: Sequence[str]) -> bool:
        """Request the choices' ids from `/tokenize` of llama.cpp or vLLM; False unless each is a single
        token.
        """
        path = "/../tokenize" if self._at.url.endswith("/v1") else "/tokenize"
        for choice in choices:
            if choice in self._writer.ids:
                continue
            # llama.cpp calls the text content, vLLM prompt.
            asked = {"model": self._name, "content": choice, "prompt": choice, "add_special_tokens": False}
            answer = await wire.post(path, json.dumps(asked).encode())
            body = http.decoded(answer.body) if answer.status == 200 else None
            ids = body.get("tokens") if isinstance(body, dict) else None
            if not isinstance(ids, list) or len(ids) != 1 or not isinstance(ids[0], int):
                return False
            self._writer.ids[choice] = ids[0]
        return True

    async def _probe_json(self, wire: http.Door) -> None:
        ask = f'{_ASK}\nAnswer with one JSON object and nothing else: {{"letter": "A" | "B"}}'
        request = Request(self._name, (Message("user", ask),), 0, schema=_PROBE, max_tokens=64)
        while self._dialect.output != "plain":
            before = self._dialect
            try:
                reply = await self._asked(wire, request)
            except Rejected as e:
                if e.status not in (400, 422):
                    raise
                reply = None
            self._reports = (reply.resolved_model if reply else None) or self._reports
            # A truncated answer does not disprove the format.
            if reply and (reply.stop == "length" or isinstance(http.decoded(reply.text), dict)):
                return
            if self._dialect.output == before.output:
                self._dialect = replace(self._dialect, output=chat.FORMATS[before.output])


def _chosen(mask: str) -> str:
    """Return the mask in `--option mask=`. Raises UsageError."""
    if mask not in ("auto", "none", *masks.MASKS):
        raise UsageError(f"--option mask={mask}: auto, none, {', '.join(masks.MASKS)}")
    return mask
