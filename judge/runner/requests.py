"""Build requests with the hashes that identify them, and parse the replies into labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from json.encoder import encode_basestring as json_string

from judge.accept import Distribution, accept
from judge.errors import UsageError
from judge.free_text import parse_free_text
from judge.parse import Parsed, parse_choice, parse_json
from judge.prompts.load import Task
from judge.prompts.pair import PairRenderer
from judge.prompts.quotes import find_shown_passages, is_quoted
from judge.prompts.raw import RawRenderer
from judge.prompts.render import Mode, Renderer
from judge.providers.base import PairReader, Provider
from judge.providers.tokens import label_distribution, word_distribution
from judge.runner.modes import check_pair, label_orders, mode_of, several_orders
from judge.store.judgements import RequestRecord
from judge.store.runs import REQUEST_VERSION
from judge.store.study import canonical
from judge.types import Answered, Json, LabelDistribution, Message, Reply, Request, Status, Unit, attributes

CHARACTERS_PER_TOKEN = 4
"""Number of characters per token: a rough average for English text. It is used for estimates before a server
reports token counts.
"""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling settings. All of them except `max_output_tokens` are part of a run's identity."""

    temperature: float | None = 0.0
    seed: int | None = None
    max_output_tokens: int = 512
    answers: str = "auto"
    label_order: str = "declared"
    orders: int = 1
    """Number of orders in which the labels are shown, with one call for each order. The distributions are
    averaged to reduce position bias.
    """

    def as_options(self) -> dict[str, Json]:
        """Return the options in the form that is stored with the run."""
        return {
            **({"orders": self.orders} if self.orders > 1 else {}),
            **attributes(self, "temperature", "seed", "max_output_tokens", "answers", "label_order"),
        }


class Asker:
    """Turns units into requests and replies into labels, for one task, one model and one set of sampling settings.

    With several label orders, each unit needs one request for each order: `request` makes the first request,
    `build_reordered` makes the others, and `average` combines their answers into one label.

    `mode` is the answer mode of a resumed run. If it is None, the mode is chosen for the task and the
    provider. `mask` is the method by which the server restricts answers to the labels. `options` contains the
    options to store with a new run.
    """

    def __init__(
        self,
        task: Task,
        model: str,
        provider: Provider,
        sampling: Sampling,
        mode: Mode | None = None,
        mask: str | None = None,
    ) -> None:
        if task.people_only:
            raise UsageError(
                f"{task.name} shows gold labels ({', '.join(task.spec.shows_gold)}), so only human annotators can use it"
            )
        self.task, self.model, self.sampling = task, model, sampling
        self.mode = mode or mode_of(task, provider, sampling)
        renderers = self._renderers()
        if isinstance(provider, PairReader):
            provider.prepare_labels(task.name, renderers[0].labels)
        self.renderer = renderers[0]
        facts = provider.describe()
        base_url = facts.get("base_url")
        self.base_url = base_url if isinstance(base_url, str) else None
        self.reasons_first = self.renderer.reasons_first
        self.options = {
            **sampling.as_options(),
            "base_url": self.base_url,
            "mode": str(self.mode),
            **task.overrides,
        }
        thinking = facts.get("thinking_tokens") or 0
        if thinking >= sampling.max_output_tokens:
            raise UsageError(
                f"--max-output-tokens {sampling.max_output_tokens} includes the reasoning: with thinking={thinking}, "
                f"it must be at least {thinking + 256}"
            )
        timeout = facts.get("timeout")
        self.timeout = timeout if isinstance(timeout, int | float) else None
        parameters: dict[str, Json] = {"seed": sampling.seed, "temperature": sampling.temperature}
        if sampling.orders > 1:
            # With several orders, the first request alone gives no label, so a run with one order must not reuse its answer.
            parameters["orders"] = sampling.orders
        for name in ("options", "content"):
            if facts.get(name):
                # The provider's own options (effort of reasoning, the content of a script) change the answers as much
                # as a temperature.
                self.options[name] = parameters[name] = facts[name]
        if mask is not None:
            # A mask changes the label probabilities, so answers with and without a mask are different.
            self.options["mask"] = parameters["mask"] = mask
        self._parameters = canonical(parameters)
        # With few labels there are few distinct replies, so most of them have been parsed before.
        self._read_json = lru_cache(maxsize=1024)(lambda text: parse_json(task, text))
        schema = self.renderer.schema
        self._schema = None if schema is None else canonical(schema)
        self._views = [self._view(renderer) for renderer in renderers]

    def _renderers(self) -> Sequence[Renderer | PairRenderer | RawRenderer]:
        """Return one renderer for each label order."""
        task, sampling = self.task, self.sampling
        if task.spec.raw and self.mode is not Mode.PAIR:
            if sampling.orders > 1 or sampling.label_order != "declared":
                raise UsageError(f"{task.name} is a raw task, which is sent unchanged; omit --label-order")
            return [RawRenderer(task, self.mode)]
        if self.mode is Mode.PAIR:
            check_pair(task, sampling)
            return [PairRenderer(task)]
        shown = label_orders(task, sampling.label_order)
        if sampling.orders == 1:
            return [Renderer(task, self.mode, shown)]
        if self.mode is Mode.JSON or task.reasons_first:
            reason = "the rationale comes first" if task.reasons_first else "answers are JSON"
            raise UsageError(
                f"--label-order {sampling.orders} averages label probabilities, but there are none if {reason}"
            )
        field = task.spec.questions[0].field
        return [
            Renderer(task, self.mode, {field: order})
            for order in several_orders(shown[field], sampling.orders)
        ]

    def _view(self, renderer: Renderer | PairRenderer | RawRenderer) -> _View:
        prefix = canonical([[m.role, m.content] for m in renderer.prefix])
        # Sorted keys around the messages, so that only the unit's own part is hashed per request.
        end = f',"version":{REQUEST_VERSION}'
        if renderer.words is not None:
            end += f',"words":{canonical(list(renderer.words))}'
        # The parts of the request's canonical JSON around the unit's own messages.
        hashing = _Hashing(
            _sha256(f'{{"codes":{canonical(renderer.codes)},"messages":{prefix[:-1]},'),
            f'],"model":{canonical(self.model)},"parameters":{self._parameters},"repeat":',
            f',"schema":{self._schema or "null"}{end}}}',
        )
        return _View(renderer, prefix, hashing)

    def _find_view(self, request: Request) -> _View:
        """Return the view for the label order that a request shows."""
        if len(self._views) == 1:
            return self._views[0]
        prefix = request.messages[: request.prefix]
        return next(view for view in self._views if view.renderer.prefix == prefix)

    def request(self, unit: Unit, repeat: int) -> tuple[Request, RequestRecord]:
        """Return the request for a unit. Raises TaskError if the template cannot render its inputs."""
        prompt = self.renderer.render(unit.inputs)
        request = Request(
            model=self.model,
            messages=prompt.messages,
            prefix=prompt.prefix,
            schema=prompt.schema,
            # If the model reasons first, this call asks for the reasoning, which is free text.
            codes=None if self.reasons_first else prompt.codes,
            words=None if self.reasons_first else prompt.words,
            labels=prompt.labels,
            max_tokens=self.sampling.max_output_tokens,
            temperature=self.sampling.temperature,
            seed=self.sampling.seed,
            repeat=repeat,
        )
        return request, self.record(request)

    def record(self, request: Request) -> RequestRecord:
        """Return the request in its stored form, with its hash."""
        unit_turns = _canonical_turns(request.messages[request.prefix :])
        view = self._find_view(request)
        return RequestRecord(
            request_sha=view.hash.hash_request(unit_turns, request.repeat),
            model=self.model,
            prefix=view.prefix,
            schema=self._schema,
            unit_sha=_sha256(unit_turns).hexdigest(),
            parameters=self._parameters,
            repeat=request.repeat,
        )

    @property
    def repairs(self) -> bool:
        """Whether an unreadable reply is repaired by a second call. A raw task is sent unchanged, so its
        replies are never repaired.
        """
        return not self.task.spec.raw

    def repair(self, request: Request, reply: Reply, reason: str) -> Request:
        """Return the request for a repair, which shows the model its own reply and what was wrong with it."""
        again = f"This could not be used: {reason}. Answer with {_EXPECTED[self.mode]} and nothing else."
        # Some APIs refuse an empty message.
        turns = (Message("assistant", reply.text or "(empty)"), Message("user", again))
        return replace(request, messages=(*request.messages, *turns))

    def conclude(self, request: Request, reply: Reply) -> Request:
        """Return the request that follows the reasoning: the same messages, the reasoning, and a request for
        the letter or the label.
        """
        turns = (Message("assistant", reply.text), Message("user", self.renderer.then_answer))
        codes, words = self.renderer.codes, self.renderer.words
        return replace(request, messages=(*request.messages, *turns), codes=codes, words=words)

    def build_reordered(self, request: Request) -> list[Request]:
        """Return the requests for the same unit with the labels in the other orders."""
        unit_turns = request.messages[request.prefix :]
        return [
            replace(
                request,
                messages=(*view.renderer.prefix, *unit_turns),
                codes=view.renderer.codes,
                words=view.renderer.words,
            )
            for view in self._views[1:]
        ]

    def for_one_order(self, parsed: Parsed, number: int) -> Parsed:
        """Return the result to store for one of several label orders.

        The result has no label, and its `reason` contains the probabilities. `number` is the number of the
        order, counting from 1. If a reply has no probabilities, the unit gets no label, because no average
        can be computed.
        """
        if parsed.status is not Status.OK:
            return parsed
        which_order = f"label order {number} of {len(self._views)}: "
        distribution = parsed.labels[0].distribution
        if distribution is None:
            return Parsed(Status.UNPARSED, reason=which_order + (parsed.reason or "no probabilities"))
        masses = {label: round(p, 6) for label, p in distribution.probabilities.items()}
        return Parsed(Status.OK, reason=which_order + json.dumps(masses, ensure_ascii=False))

    def average(self, answers: Sequence[Parsed]) -> Parsed:
        """Return the label of the mean distribution over all orders."""
        # Every order has a distribution here: a unit that lacks one gets no average (`for_one_order`).
        distributions = [d for parsed in answers for label in parsed.labels if (d := label.distribution)]
        n = len(distributions)
        mean = LabelDistribution(
            {
                name: sum(d.probabilities[name] for d in distributions) / n
                for name in distributions[0].probabilities
            },
            sum(d.unassigned for d in distributions) / n,
            sum(outside) / len(outside)
            if (outside := [d.outside for d in distributions if d.outside is not None])
            else None,
        )
        return Parsed(Status.OK, (Answered(answers[0].labels[0].field, mean.argmax(), mean),))

    def accept(self, reply: Reply, request: Request | None = None) -> Parsed:
        """Return the labels in a reply, or the reason why there are none.

        If the model reasons first, `request` determines which of the two calls the reply answers. For the
        first call (the reasoning), the result has the status `ok` and no labels.
        """
        try:
            return self._accept(reply, request)
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as e:
            # A model can write anything. An unreadable reply must fail its unit only, and not the run.
            return Parsed(Status.UNPARSED, reason=f"the reply cannot be read: {type(e).__name__}: {e}"[:300])

    def _accept(self, reply: Reply, request: Request | None) -> Parsed:
        task = self.task
        if self.mode is Mode.JSON:
            parsed = accept(reply, self._read_json)
            quote = parsed.labels[0].rationale if parsed.labels else None
            return self._check_quote(parsed, quote, request)
        view = self._views[0] if request is None else self._find_view(request)
        if self.mode is Mode.TEXT:
            labels = view.renderer.labels if request is None or request.labels is None else request.labels
            return accept(reply, lambda text: parse_free_text(task, text, labels))
        if task.spec.raw and request is not None and (letters := request.codes):
            parsed = self._accept_choice(reply, view, letters)
            if parsed.status is not Status.UNPARSED:
                return parsed
            # A reply that is more than the letter has no probabilities. It is read as in the mode `text`.
            return accept(reply, lambda text: parse_free_text(task, text, letters))
        if not self.reasons_first or request is None:
            return self._accept_choice(reply, view)
        if not request.choices:
            return self._check_quote(accept(reply, _read_reasoning), reply.text, request)
        parsed = self._accept_choice(reply, view)
        # After the constant prefix come the unit's message, the reasoning, and the request for the answer.
        reason = request.messages[request.prefix + 1].content
        return replace(parsed, labels=tuple(replace(label, rationale=reason) for label in parsed.labels))

    def _check_quote(self, parsed: Parsed, quote: str | None, request: Request | None) -> Parsed:
        """Return the result, without its label if the required quote is not in the unit's passages.

        An invented quote shows that the label is not based on the passages. If the task requires no quote,
        the result is returned unchanged.
        """
        if self.task.spec.rationale != "quote" or parsed.status is not Status.OK or request is None:
            return parsed
        if is_quoted(quote or "", find_shown_passages(request.messages[request.prefix :])):
            return parsed
        return Parsed(Status.UNPARSED, reason=f"the quote is not in the passages: {quote!r:.200}")

    def _accept_choice(self, reply: Reply, view: _View, letters: str | None = None) -> Parsed:
        """Return the label in a reply to a single-choice question, with its probabilities if the reply has them.

        If the labels are the letters of answer options, `letters` contains the letters of this unit's options.
        """
        codes, labels = view.renderer.codes or "", view.renderer.labels
        if letters is not None:
            codes, labels = letters, list(letters)
        return accept(
            reply,
            lambda text: parse_choice(self.task, text, labels, codes),
            lambda label: self._distribution(reply, codes, labels, label),
        )

    def _distribution(self, reply: Reply, codes: str, labels: Sequence[str], label: str) -> Distribution:
        """Return the probabilities of the labels, for a reply whose text is this label."""
        if reply.tokens is None:
            return None, "no token probabilities came with the reply"
        if self.mode is Mode.WORDS:
            distribution, why_none = word_distribution(reply.tokens, labels, reply.masked, label)
        else:
            # A classifier that reads pairs gives a probability for each label and has no codes.
            choices = labels if self.mode is Mode.PAIR else codes
            distribution, why_none = label_distribution(reply.tokens, choices, labels, reply.masked, label)
        if distribution is None:
            return None, why_none
        # Stored distributions always have the task's label order, so that they are comparable.
        domain = self.task.domain(self.task.spec.questions[0].field)
        masses = {name: distribution.probabilities.get(name, 0.0) for name in domain}
        return replace(distribution, probabilities=masses), None


_EXPECTED = {
    Mode.CODES: "exactly one of the letters",
    Mode.WORDS: "exactly one of the labels",
    Mode.JSON: "the one JSON object asked for",
    Mode.PAIR: "one of the labels",
    Mode.TEXT: "one of the labels",
}


@dataclass(frozen=True, slots=True)
class _View:
    """One label order: its renderer, the constant part of its prompts as JSON, and the function that hashes its
    requests.
    """

    renderer: Renderer | PairRenderer | RawRenderer
    prefix: str
    hash: _Hashing


@dataclass(frozen=True, slots=True)
class _Hashing:
    head: hashlib._Hash
    tail: str
    end: str

    def hash_request(self, unit_text: str, repeat: int) -> str:
        whole = self.head.copy()
        whole.update(_bytes(f"{unit_text[1:-1]}{self.tail}{repeat}{self.end}"))
        return whole.hexdigest()


def _read_reasoning(text: str) -> Parsed:
    if not text.strip():
        return Parsed(Status.UNPARSED, reason="the reasoning is empty")
    return Parsed(Status.OK, reason=REASONING)


REASONING = "reasoning; the answer is the next attempt"
"""The reason stored with an attempt that has status `ok` but no label."""


def estimate_tokens(request: Request) -> int:
    """Estimate the tokens of a request and its answer, before the server reports its counts."""
    return sum(len(m.content) for m in request.messages) // CHARACTERS_PER_TOKEN + 16


def _canonical_turns(messages: Sequence[Message]) -> str:
    """Return the canonical JSON of `[[role, content], ...]`, without creating a new encoder for each unit."""
    return f"[{','.join(f'[{json_string(m.role)},{json_string(m.content)}]' for m in messages)}]"


def _sha256(text: str) -> hashlib._Hash:
    return hashlib.sha256(_bytes(text))


def _bytes(text: str) -> bytes:
    # A text from JSON may contain a lone surrogate, which strict UTF-8 refuses.
    return text.encode("utf-8", "surrogatepass")
