"""`openai/MODEL`: OpenAI's chat completions, or any compatible server (`--base-url`).

Wire format: https://platform.openai.com/docs/api-reference/chat. Servers accept different parameters, so the
provider keeps one dialect per model. The first dialect uses all parameters. Each time the server rejects a
parameter, that parameter is permanently removed from the dialect or changed.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from time import monotonic

from judge.errors import KeyProblem, ProviderError, RateLimited, Rejected, ServerFault, UsageError
from judge.providers import chat, features, http, masks
from judge.providers.base import Needs, NoLimits, Purse, Settings
from judge.providers.vendor import Vendor
from judge.types import Json, Reply, Request

NEEDS = Needs(examples="openai/gpt-5-mini; with --base-url any compatible server", key="OPENAI_API_KEY")

OWN_URL = "https://api.openai.com/v1"
STRAGGLER_SECONDS, STRAGGLER_TIMES = 20.0, 4.0
"""A probe without a reply is cancelled and sent again after a while.

This happens after STRAGGLER_SECONDS, or after STRAGGLER_TIMES times the duration of the slowest other probe,
whichever is longer.
"""
KEY = "OPENAI_API_KEY"
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}


class Provider(Vendor):
    """A model that is called through chat completions.

    Settings:

    - `base_url`: by default OPENAI_BASE_URL or, if that is not set, OpenAI's own address
    - `timeout`, in seconds per call
    - `options`: `mask`, `reasoning_effort`, and the options of `judge.providers.options`

    Raises UsageError if the base URL or an option is invalid.
    """

    vendor, title, host = "openai", "OpenAI", "openai.com"
    library, own_client, key = "openai", "AsyncOpenAI", KEY
    known: Collection[str] = ("mask", "reasoning_effort")
    facts: Collection[str] = ("mask",)

    def __init__(self, name: str, settings: Settings) -> None:
        super().__init__(name, settings)
        self.chosen_mask = self._options.vendor_options.get("mask", "auto")
        if self.chosen_mask not in ("auto", "none", *masks.MASKS):
            raise UsageError(
                f"--option mask={self.chosen_mask}: must be one of auto, none, {', '.join(masks.MASKS)}"
            )
        self.mask: str | None = None
        self._is_held = False
        sampling = {k: v for k, v in self._options.vendor_options.items() if k == "reasoning_effort"}
        # The capabilities of OpenAI's models are documented, so they are not probed.
        self._is_openai = self._is_vendors_own
        # All models of OpenAI accept the newer name, but most other servers accept only the older one.
        self._dialect = chat.Dialect(limit="max_completion_tokens" if self._is_vendors_own else "max_tokens")
        self._writer = chat.ChatWriter(name, sampling, self._options.body)
        self.purse: Purse = NoLimits()
        self._questions: list[features.FeatureQuestion] = []
        self._answers: dict[str, Reply | None] = {}
        self._refusals = 1
        """The number of refusals after which a round of probes ends. It does not apply to the first round."""
        self.learnt_at = ""

    def _address(self, settings: Settings) -> str:
        """Return the base URL."""
        return settings.base_url or os.environ.get("OPENAI_BASE_URL") or OWN_URL

    def _make_connection(self) -> http.Connection:
        """Return a connection. The `openai` package is used only for OpenAI's own server.

        Other servers need only the key, and importing the package takes longer than a small run.
        """
        if self._is_vendors_own:
            return super()._make_connection()
        key, looked_up = self._look_up()
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {key}"} if key else {}
        return http.Wire(self._at, headers, self.timeout, [key], looked_up)

    async def open(self) -> None:
        """Connect, and send probes to find out which features the server supports
        (`judge.providers.features`).

        Raises KeyProblem if the key is missing or refused, Rejected if the model is unknown, UsageError if
        the server does not support the mask that the user chose, and the same errors as `complete`.
        """
        self._connect()
        if self.learnt_at:
            return
        if not self._questions:
            self._questions = features.questions(
                self._name, self._dialect, not self._is_openai, self._list_masks()
            )
            await self._ask_all()
        await self._ask_rest()
        self._conclude()
        self._questions, self._answers = [], {}
        self.learnt_at = datetime.now(UTC).isoformat()

    def list_probes(self) -> Sequence[Request]:
        """Return the requests that `open` may send as start-up probes."""
        with_formats = not self._is_openai
        return [
            question.request
            for question in features.questions(self._name, self._dialect, with_formats, self._list_masks())
        ]

    def learnt(self) -> Json:
        """Return the dialect and the other probe results, together with the options that they depend on."""
        return {
            "asked": self._get_probed_options(),
            "dialect": asdict(self._dialect),
            "label_codes": self.label_codes,
            "mask": self.mask,
            "reports": self._reports,
        }

    def recall(self, learnt: Json, at: str) -> None:
        """Reuse the results that `learnt` returned in another process, if the options are still the same."""
        if not isinstance(learnt, dict) or learnt.get("asked") != self._get_probed_options():
            return
        try:
            dialect = chat.Dialect.from_json(learnt["dialect"])
            label_codes, mask, reports = learnt["label_codes"], learnt["mask"], learnt["reports"]
        except (KeyError, TypeError, ValueError, AttributeError):
            # The results come from another version or another program.
            return
        is_reply = isinstance(label_codes, bool) and (reports is None or isinstance(reports, str))
        if not is_reply or mask not in (None, *masks.MASKS):
            return
        self._dialect, self.label_codes, self.mask, self._reports = dialect, label_codes, mask, reports
        self.learnt_at = at

    def _get_probed_options(self) -> dict[str, Json]:
        """Return the options that the probe results depend on."""
        return {"mask": self.chosen_mask, **self._options.identity()}

    def set_mask(self, mask: str | None, alternatives: int | None = None) -> None:
        """Use the mask with which the run started (None: no mask).

        With a mask, each request asks for the `alternatives` most probable tokens at each position.
        """
        most = alternatives or self._dialect.masked_logprobs
        self._dialect = replace(self._dialect, masks=(mask,) if mask else (), masked_logprobs=most)
        self._is_held = True

    async def learn(self, choices: Sequence[str]) -> None:
        """Look up the token ids of the choices if the mask is a logit bias.

        Request bodies can then be written without a connection.
        """
        if "logit_bias" in self._dialect.masks:
            await self._learn_tokens(self._connect(), choices)

    async def complete(self, request: Request) -> Reply:
        """Send one request.

        If the server rejects a parameter, this request is sent again without the parameter, and all later
        requests are also sent without it. Raises KeyProblem, RateLimited, ServerFault, Unreachable or
        Rejected.
        """
        wire = self._connect()
        biased = "logit_bias" in self._dialect.masks and request.choices
        if biased and not await self._learn_tokens(wire, request.choices):
            raise Rejected(
                f"{self._who}: /tokenize did not return a single token for each label, which --option mask=logit_bias requires",
                400,
            )
        reply = await self._exchange(wire, request)
        if reply.resolved_model and self._reports and reply.resolved_model != self._reports:
            # The reply is not from the model that was probed, so the next run must probe again.
            self.learnt_at = ""
        return reply

    def body(self, request: Request) -> bytes:
        """Return the request body in the current dialect. No connection is needed."""
        return self._writer.body(request, self._dialect)

    def parse_answer(self, body: Json, request: Request, headers: Mapping[str, str] | None = None) -> Reply:
        """Parse the JSON of a successful response from another source, such as a batch file.

        Raises ValueError if the response is incomplete.
        """
        return chat.reply(body, request, headers or {}, next(iter(self._dialect.masks), None))

    def refusal(self, complaint: http.Complaint) -> Reply | None:
        """Return a reply if the server reports a refusal or a truncated answer as an error, otherwise None."""
        return chat.reply_from_error(complaint, {})

    def describe(self) -> Mapping[str, Json]:
        """Return the facts to store with a run, such as the base URL without credentials and the current
        dialect.
        """
        return {
            **super().describe(),
            "format": self._dialect.output,
            "mask": next(iter(self._dialect.masks), None),
            "token_limit": self._dialect.limit,
            "left_out": list(self._dialect.dropped),
        }

    async def _exchange(self, wire: http.Connection, request: Request) -> Reply:
        """Send a request and return the reply.

        Each time the server rejects a parameter, the request is sent again without that parameter.
        """
        while True:
            known = self._dialect
            step = await self._send(wire, request, known)
            if isinstance(step, Reply):
                return step
            if isinstance(step, ProviderError):
                raise step
            # Concurrent calls get the same refusal; the first one to return changes the dialect.
            if self._dialect is known:
                self._dialect = step
                self.label_codes = self.label_codes and step.top_logprobs > 0

    async def _send(
        self, wire: http.Connection, request: Request, dialect: chat.Dialect
    ) -> Reply | chat.Dialect | ProviderError:
        """Send a request in a dialect.

        Return the reply, the error or, if the server rejects the dialect, the next dialect to try.
        """
        answer = await wire.post(chat.PATH, self._writer.body(request, dialect))
        if answer.status == 200:
            return self._parse_answer(wire, answer, request, dialect.masks)
        said = wire.complaint(answer)
        if (ended := chat.reply_from_error(said, answer.headers)) is not None:
            return ended
        return self._writer.step_down(dialect, request, said) or self._error(answer, said)

    def _parse_answer(
        self, wire: http.Connection, answer: http.HttpAnswer, request: Request, sent: tuple[str, ...]
    ) -> Reply:
        try:
            return chat.reply(http.decode_json(answer.body), request, answer.headers, next(iter(sent), None))
        except ValueError as e:
            raise self._fault_in(wire, answer, e) from e

    def _error(self, answer: http.HttpAnswer, complaint: http.Complaint) -> ProviderError:
        # This is not a rate limit: every further call would be refused, however long it waits.
        if answer.status == 402 or (answer.status == 429 and complaint.code in _NO_MONEY):
            lack = "credit" if answer.status == 402 else "quota"
            return KeyProblem(
                f"{self._who}: the account that {self._key} belongs to has no {lack} left: {complaint.message}"
            )
        # Gemini's compatible API rejects an invalid key with status 400.
        if answer.status == 400 and "api key" in complaint.message.lower():
            return KeyProblem(
                f"{self._who} refused the key (HTTP 400): {complaint.message}; check {self._key}"
            )
        error = super()._error(answer, complaint)
        if isinstance(error, RateLimited | ServerFault) and error.retry_after is None:
            # Without Retry-After, the rate headers may say when calls are possible again.
            state = chat.rate(answer.headers)
            if state is not None and state.remaining_requests == 0:
                error.retry_after = state.reset_requests
        return error

    def _list_masks(self) -> Sequence[str]:
        """Return the masks to probe. For OpenAI's own server, only a mask that the user chose is probed."""
        if self.chosen_mask == "none" or self._is_held:
            return ()
        if self.chosen_mask != "auto":
            return (self.chosen_mask,)
        return () if self._is_openai else masks.MASKS

    async def _ask_all(self) -> None:
        """Send all probes concurrently, and raise the first error.

        Probes that take much longer than the others are cancelled.
        """
        begun = slowest = monotonic()
        probes = [asyncio.create_task(self._ask(question)) for question in self._questions]
        pending = set(probes)
        try:
            while pending:
                left = None
                if any(self._answers.values()):
                    # The first unit waits for these replies, so a single hanging call must not delay it by a whole timeout.
                    longest = max(STRAGGLER_SECONDS, STRAGGLER_TIMES * (slowest - begun))
                    left = begun + longest - monotonic()
                    if left <= 0:
                        break
                n_answers = len(self._answers)
                _, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if len(self._answers) > n_answers:
                    slowest = monotonic()
        finally:
            for probe in pending:
                probe.cancel()
            ended = await asyncio.gather(*probes, return_exceptions=True)
        for error in ended:
            if error is not None and not isinstance(error, asyncio.CancelledError):
                raise error

    async def _ask_rest(self) -> None:
        """Send the probes that have no reply yet, one after another, and raise the last error.

        Sending stops at the first refusal, because a server that accepts only one call at a time would also
        refuse the other probes. If no probe was answered, the next call of this method tolerates twice as
        many refusals, because some servers refuse calls at random.
        """
        before, refusals = len(self._answers), 0
        error: ProviderError | None = None
        for question in self._questions:
            if question.name in self._answers:
                continue
            try:
                await self._ask(question)
            except (RateLimited, ServerFault) as refusal:
                error, refusals = refusal, refusals + 1
                if refusals == self._refusals:
                    break
        self._refusals = 1 if len(self._answers) > before else 2 * self._refusals
        if error is not None:
            raise error

    async def _ask(self, question: features.FeatureQuestion) -> None:
        """Send a probe if it is still needed, and store the reply. Raises the errors of `complete`."""
        self._answers[question.name] = await self.purse.pay(
            question.request,
            lambda: self._answer(question),
            lambda: features.is_needed(question, self._questions, self._answers),
        )

    async def _answer(self, question: features.FeatureQuestion) -> Reply | None:
        """Return the reply to a probe, or None if the server does not support the probed feature."""
        wire, request, sent = self._connect(), question.request, question.dialect
        if question.mask == "logit_bias" and not await self._learn_tokens(wire, request.choices):
            return None
        while True:
            step = await self._send(wire, request, sent)
            if isinstance(step, Reply):
                return step
            if isinstance(step, ProviderError):
                if isinstance(step, Rejected) and question.name != features.PLAIN:
                    return None
                raise step
            if (step.limit, step.dropped) != (sent.limit, sent.dropped):
                # Every request has these fields, so the change applies to all probes.
                dropped = tuple(dict.fromkeys((*self._dialect.dropped, *step.dropped)))
                self._dialect = replace(
                    self._dialect, limit=step.limit, swapped=step.swapped, dropped=dropped
                )
                if question.name in dropped:
                    return None
            elif (
                question.name == features.ALTERNATIVES or not step.top_logprobs or step.output != sent.output
            ):
                return None
            elif question.name == features.CODES:
                self._dialect = replace(self._dialect, top_logprobs=step.top_logprobs)
            sent = step

    def _conclude(self) -> None:
        """Set the dialect according to the replies to the probes.

        Raises UsageError if the mask that the user chose has no effect.
        """
        answers, codes = self._answers, self._answers[features.CODES]
        self._reports = next((r.resolved_model for r in answers.values() if r and r.resolved_model), None)
        refused = [name for name in features.SAMPLING if answers[name] is None]
        dropped = tuple(dict.fromkeys((*self._dialect.dropped, *refused)))
        mask = features.mask(self._questions, answers) if codes else None
        if mask is None and self.chosen_mask in masks.MASKS and not self._is_held:
            raise UsageError(
                f"--option mask={self.chosen_mask}: with this mask, {self._who} either does not restrict the "
                "answer to the codes or does not return probabilities; leave out the option, or pass --option mask=none"
            )
        few = self._dialect.top_logprobs if codes else 0
        many = self._dialect.masked_logprobs if answers.get(features.ALTERNATIVES) else few
        self._dialect = replace(self._dialect, dropped=dropped, top_logprobs=few, masked_logprobs=many)
        if not self._is_openai:
            self._dialect = replace(self._dialect, output=features.output(answers))
        if not self._is_held:
            self.mask = mask
            self._dialect = replace(self._dialect, masks=(mask,) if mask else ())
        # A model that reasons or chats first gives no answer within the few tokens of a code.
        says_code = bool(codes and codes.tokens and codes.text.strip(' ."\n') in ("A", "B"))
        self.label_codes = says_code or mask is not None

    async def _learn_tokens(self, wire: http.Connection, choices: Sequence[str]) -> bool:
        """Look up the token ids of the choices with `/tokenize`.

        Return False if one of the choices is not a single token.
        """
        path = "/../tokenize" if self._at.url.endswith("/v1") else "/tokenize"
        for choice in choices:
            if choice in self._writer.ids:
                continue
            # The text is in the field `content` for llama.cpp, and in `prompt` for vLLM.
            fields = {"model": self._name, "content": choice, "prompt": choice, "add_special_tokens": False}
            answer = await wire.post(path, json.dumps(fields).encode())
            body = http.decode_json(answer.body) if answer.status == 200 else None
            ids = body.get("tokens") if isinstance(body, dict) else None
            if not isinstance(ids, list) or len(ids) != 1 or not isinstance(ids[0], int):
                return False
            self._writer.ids[choice] = ids[0]
        return True
