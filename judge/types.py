"""The nouns that every layer shares: items, requests, replies, judgements, labels, measures.

Plain data only; nothing here opens a file, a socket or a database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = Any
GOLD = "gold"
DEFAULT_CONDITION = "default"
"""The condition of an answer that names none."""


class Status(StrEnum):
    """How one attempt on one unit ended; only `ok` has labels."""

    OK = "ok"
    UNPARSED = "unparsed"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    FAILED = "failed"


class AnnotatorKind(StrEnum):
    """Who a label comes from."""

    HUMAN = "human"
    JUDGE = "judge"
    GOLD = "gold"
    ADJUDICATED = "adjudicated"


@dataclass(frozen=True, slots=True)
class Vote:
    """One label by one annotator on an imported unit; `annotator` is "gold" for gold labels."""

    field: str
    value: str
    annotator: str = GOLD
    kind: AnnotatorKind = AnnotatorKind.GOLD
    rationale: str | None = None


@dataclass(frozen=True, slots=True)
class ToolScore:
    """What another tool said of a unit before the import: `tool` becomes the model of a run, `value` a label of `field`."""

    tool: str
    field: str
    value: str | int | float
    rationale: str | None = None


@dataclass(slots=True)
class Passage:
    """One passage of an item. `source_id` may be empty: the id then comes from the text's hash."""

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
    """One claim that an answer makes."""

    text: str
    votes: tuple[Vote, ...] = ()


@dataclass(slots=True)
class Answer:
    """What one system answered under one condition; `item`, `cited` and `context` are ids.

    Without `cited` the markers in the text say what is cited; `context` is what the system was given
    (None: not known). A mere label (a letter, true or false) is no `prose`: it has no sentences. `document`: the one
    passage that the output is about (RAGuard's oracle).
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
    """One question or claim with its passages, as an importer hands it to the store; answers that came with them too."""

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
        return f"{self.dataset}:{self.source_id}"


@dataclass(frozen=True, slots=True)
class Where:
    """Where in a user's file a row stands; line counts from 1."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Row:
    """One item and where it was read."""

    item: Item
    where: Where


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer and where it was read."""

    answer: Answer
    where: Where


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing to label: an item, a passage of it, an answer to it, or a part of that.

    `inputs` is all a prompt can show. `gold` serves the task's derive tables and is never rendered.
    """

    unit_id: str
    inputs: Mapping[str, Json]
    gold: Mapping[str, str]
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """One chat turn; role is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call, complete: nothing outside it changes what is asked.

    `prefix` counts the leading messages that are the same for every unit of the run (providers
    cache them). `schema` asks for JSON, `codes` for one character out of the string, `words` for one of them.
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

    @property
    def choices(self) -> Sequence[str]:
        """The codes or words of which one is the answer, with probabilities; empty where the answer is free."""
        return self.codes or self.words or ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; None where the provider does not say. Input holds those of the cache and into it.

    Output tokens are those that are billed, reasoning included. `cost` is what the server itself says that the call
    cost, in US dollars.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class LabelDistribution:
    """Probabilities over a task's labels.

    `probabilities` holds every label of the domain and sums to 1 together with `unassigned`, the
    mass of tokens that stand for no label.

    Where the server held the answer to the labels (a mask), they share the whole mass, `unassigned` is 0, and `outside`
    is what the model would have put on tokens of no label; None = nothing was shared out.
    """

    probabilities: Mapping[str, float]
    unassigned: float
    outside: float | None = None

    def argmax(self) -> str:
        """The most probable label; ties go to the first in the task's order."""
        return max(self.probabilities, key=lambda k: self.probabilities[k])


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """One position of a reply: the chosen token and the alternatives with natural log-probabilities."""

    token: str
    alternatives: Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class RateState:
    """What rate-limit headers said: how much is left and in how many seconds it is full again."""

    remaining_requests: int | None = None
    reset_requests: float | None = None
    remaining_tokens: int | None = None
    reset_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `stop` is one of stop, length, refusal; `held`: the server let only the choices be answered.

    `system_fingerprint` is what the server says of its configuration; it can change while the model's name stays.
    """

    text: str
    stop: str = "stop"
    usage: Usage = Usage()
    resolved_model: str | None = None
    tokens: Sequence[TokenChoice] | None = None
    rate: RateState | None = None
    request_id: str | None = None
    held: bool = False
    system_fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """One value for one field of one unit, as parsed from a reply or derived from another field."""

    field: str
    value: str
    distribution: LabelDistribution | None = None
    rationale: str | None = None
    derived_from: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """One attempt on one unit, with everything the study keeps of it.

    `latency` and `timeout` are in seconds, `cost` in US dollars; None = not asked, or not known. `cost` is the larger of
    what the prices and what the server say (`usage.cost`).
    """

    run_id: str
    unit_id: str
    repeat: int
    attempt: int
    status: Status
    reply: str | None
    reason: str | None
    labels: tuple[Answered, ...]
    usage: Usage
    latency: float | None
    request_sha: str | None
    resolved_model: str | None = None
    base_url: str | None = None
    max_output_tokens: int | None = None
    timeout: float | None = None
    cost: float | None = None
    system_fingerprint: str | None = None


def attributes(thing: Any, *names: str) -> dict[str, Any]:
    """Return attributes by name, for a JSON document: these, or without names every one of a dataclass with slots."""
    return {name: getattr(thing, name) for name in names or thing.__slots__}


@dataclass(frozen=True, slots=True)
class Measure:
    """One number with what it rests on.

    `value` is None exactly when `reason` is set; `low` and `high` bound the interval at
    `confidence`. `coverage` is the share of the units asked about that the value rests on.
    """

    measure: str
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
    confidence: float = 0.95
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The measure with its weights, as tables name it."""
        return self.measure + (f" ({self.weights})" if self.weights else "")

    @property
    def shown(self) -> str:
        """The value as tables show it."""
        return "undefined" if self.value is None else f"{self.value:.3f}"

    @property
    def interval(self) -> str:
        """The interval as tables show it, empty where there is none."""
        return "" if self.low is None or self.high is None else f"{self.low:.3f} … {self.high:.3f}"

    @property
    def with_interval(self) -> str:
        """Both: `0.812 (0.790 … 0.833)`."""
        return self.shown + (f" ({self.interval})" if self.interval and self.value is not None else "")

    def as_json(self) -> dict[str, Json]:
        """The documented shape: every key present, None where it does not apply."""
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
