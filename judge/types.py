"""Types shared by every layer: items, requests, replies, judgements, labels, measures.

The types are plain data. Nothing in this module opens a file, a socket or a database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

Json = Any
Correct = Literal["show", "apply"]
"""What an import does with values that differ from the stored ones: show what would change, or replace them."""
GOLD = "gold"
PARTS_OF_ANSWERS = ("sentence", "citation", "claim", "nugget")
"""Kinds of units that are parts of an answer."""
DEFAULT_CONDITION = "default"
"""The condition of an answer that was imported without one."""


class Status(StrEnum):
    """The outcome of one attempt on one unit. Only `ok` comes with labels."""

    # For a judge, every status except `ok` means missing data. It is never a failure of the system under
    # test.
    OK = "ok"
    UNPARSED = "unparsed"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    FAILED = "failed"


class AnnotatorKind(StrEnum):
    """The kind of annotator who gave a label."""

    HUMAN = "human"
    JUDGE = "judge"
    GOLD = "gold"
    ADJUDICATED = "adjudicated"


@dataclass(frozen=True, slots=True)
class Vote:
    """One label from one annotator for an imported unit. `annotator` is "gold" for gold labels."""

    field: str
    value: str
    annotator: str = GOLD
    kind: AnnotatorKind = AnnotatorKind.GOLD
    rationale: str | None = None


@dataclass(frozen=True, slots=True)
class ToolScore:
    """A score from another tool. `tool` becomes the model of a run, and `value` becomes a label for `field`."""

    tool: str
    field: str
    value: str | int | float
    rationale: str | None = None


# Not frozen, like answers and items, because importers fill them in several steps.
@dataclass(slots=True)
class Passage:
    """One passage of an item. If `source_id` is empty, the id is derived from the hash of the text."""

    text: str
    source_id: str = ""
    title: str | None = None
    date: str | None = None
    source: str | None = None
    meta: dict[str, Json] = field(default_factory=dict)
    votes: list[Vote] = field(default_factory=list)
    scores: list[ToolScore] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim in an answer."""

    text: str
    votes: tuple[Vote, ...] = ()


@dataclass(slots=True)
class Answer:
    """The answer from one system under one condition.

    `item` is an id. `cited` lists the ids of the cited passages; if it is None, the markers in the text are
    the citations. `context` lists the ids of the passages that the system was given (None: unknown). `prose`
    is False for a bare label (a letter, true or false), which has no sentences. `document` is set if the
    output is about a single passage (RAGuard's oracle).
    """

    item: str
    system: str
    condition: str
    text: str
    cited: list[str] | None = None
    context: list[str] | None = None
    prose: bool = True
    claims: list[Claim] = field(default_factory=list)
    meta: dict[str, Json] = field(default_factory=dict)
    votes: list[Vote] = field(default_factory=list)
    document: str | None = None
    scores: list[ToolScore] = field(default_factory=list)


@dataclass(slots=True)
class Item:
    """One question or claim with its passages and answers, as an importer passes it to the store."""

    source_id: str
    dataset: str
    question_id: str | None = None
    question: str | None = None
    question_date: str | None = None
    claim: str | None = None
    reference_answers: list[str] | None = None
    options: dict[str, str] | None = None
    correct: str | None = None
    pair_id: str | None = None
    polarity: str | None = None
    meta: dict[str, Json] = field(default_factory=dict)
    votes: list[Vote] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    scores: list[ToolScore] = field(default_factory=list)

    @property
    def item_id(self) -> str:
        """The item's id in a study: `dataset:source_id`."""
        return f"{self.dataset}:{self.source_id}"


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a row in a user's file. Lines count from 1."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Row:
    """One item and its place in the file."""

    item: Item
    where: Where


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer and its place in the file."""

    answer: Answer
    where: Where


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing to label: an item, one of its passages or answers, or a part of an answer.

    `inputs` is everything that a prompt can show. `gold` contains gold labels. No prompt shows them, but a
    task may need them to derive a field from other fields.
    """

    unit_id: str
    inputs: Mapping[str, Json]
    # Separate from the inputs, so that no template can show it.
    gold: Mapping[str, str]
    attempts: int = 0
    """The number of attempts that the run has already made on the unit."""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat turn. `role` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One complete model call: it contains everything that affects the reply.

    `prefix` is the number of leading messages that are the same for all units of the run; providers cache
    these messages. A request with a `schema` asks for JSON, one with `codes` asks for one character of this
    string, and one with `words` asks for one of these words.
    """

    model: str
    messages: tuple[Message, ...]
    prefix: int
    schema: Mapping[str, Json] | None = None
    codes: str | None = None
    max_tokens: int = 256
    temperature: float | None = 0.0
    seed: int | None = None
    repeat: int = 0
    words: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None
    """The labels that a free-text reply can contain. They are not sent to the provider."""

    @property
    def choices(self) -> Sequence[str]:
        """The codes or words from which the answer is chosen and for which probabilities are requested.

        It is empty for a free-text answer.
        """
        return self.codes or self.words or ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one call, or None if the provider does not report them.

    Input tokens include cached tokens.

    Output tokens are the billed tokens, including reasoning. `cost` is the cost that the server reports, in
    US dollars.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class LabelDistribution:
    """Probabilities over a task's labels.

    `probabilities` contains every label of the task. `unassigned` is the probability of tokens that are not
    labels. Together, these probabilities add up to 1.

    If the server restricts the answer to the labels with a mask, `unassigned` is 0, and `outside` is the
    probability of all other tokens before the mask. Without a mask, `outside` is None.
    """

    probabilities: Mapping[str, float]
    unassigned: float
    outside: float | None = None

    def argmax(self) -> str:
        """Return the most probable label. Ties go to the first label in the task's order."""
        # The probabilities are in the order of the task, and `max` returns the first of several equal
        # values.
        return max(self.probabilities, key=lambda k: self.probabilities[k])


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """One position in a reply: the chosen token, and the alternatives with natural log-probabilities."""

    token: str
    alternatives: Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class RateState:
    """Rate-limit headers: the remaining quota, the seconds until the full quota is available again, and the
    full quota.
    """

    remaining_requests: int | None = None
    reset_requests: float | None = None
    remaining_tokens: int | None = None
    reset_tokens: float | None = None
    limit_requests: int | None = None
    limit_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a call.

    `stop` is stop, length or refusal. `masked` is True if the server allowed only the choices as answers.
    `system_fingerprint` is the server's identifier for its configuration, which can change while the model's
    name stays the same.
    """

    text: str
    stop: str = "stop"
    usage: Usage = Usage()
    resolved_model: str | None = None
    tokens: Sequence[TokenChoice] | None = None
    rate: RateState | None = None
    masked: bool = False
    system_fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """One value of one field of one unit, parsed from a reply or derived from another field."""

    field: str
    value: str
    distribution: LabelDistribution | None = None
    rationale: str | None = None
    derived_from: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """One attempt on one unit, with everything that the study stores about it.

    `latency` and `timeout` are in seconds. `cost` is in US dollars: either the price-list amount or the
    amount that the server reported (`usage.cost`), whichever is larger. None means that there was no call, or
    that the value is unknown.
    """

    run_id: str
    unit_id: str
    repeat: int
    attempt: int
    status: Status
    # Imported and derived labels have no call, and so neither usage nor latency.
    reply: str | None = None
    reason: str | None = None
    labels: tuple[Answered, ...] = ()
    usage: Usage = Usage()
    latency: float | None = None
    request_sha: str | None = None
    resolved_model: str | None = None
    # Stored for each attempt, because a resumed run may use another server and other limits.
    base_url: str | None = None
    max_output_tokens: int | None = None
    timeout: float | None = None
    cost: float | None = None
    system_fingerprint: str | None = None


def attributes(thing: Any, *names: str) -> dict[str, Any]:
    """Return the named attributes for a JSON document.

    Without names, return all fields of a dataclass with slots.
    """
    # Slots are in the order of the fields, so the keys of a document are always in the same order.
    return {name: getattr(thing, name) for name in names or thing.__slots__}


CONFIDENCE = 0.95
"""The confidence level of intervals, unless another one is requested."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measured number, with its interval and the sample that it is based on.

    `value` is None if and only if `reason` is set. `low` and `high` bound the interval at `confidence`.
    `coverage` is the share of judged units on which the value is based.
    """

    measure: str
    # Never 0 or NaN for missing data: 0 would look like a bad result.
    value: float | None
    n_units: int
    coverage: float | None = None
    n_clusters: int | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    field: str | None = None
    level: str | None = None
    weights: str | None = None
    annotators: tuple[str, ...] | None = None
    confidence: float = CONFIDENCE
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name of the measure with its weights, as shown in tables."""
        return self.measure + (f" ({self.weights})" if self.weights else "")

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON form: every key is present, with None if it does not apply."""
        return {
            "measure": self.measure,
            "annotators": list(self.annotators) if self.annotators else None,
            **attributes(
                self,
                "field",
                "level",
                "weights",
                "value",
                "low",
                "high",
                "confidence",
                "n_units",
                "n_clusters",
                "coverage",
                "reason",
            ),
            "notes": list(self.notes),
        }
