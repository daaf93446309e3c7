"""Render a task and a unit as chat messages. The constant part comes first, and the unit's own text last.

Input values are marked as untrusted, and reach the prompt only through `_Fenced`, which fences them. A
template cannot show a value without its fence, because `judge.prompts.check` rejects loops over inputs and
parts of inputs. A fence's code is derived from the fenced text. A repeated request therefore has the same
code, and the author of the text cannot write the code into the text.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import Any

from judge.prompts.fence import DATA_NOTICE, Untrusted, fence, fence_code, mark_untrusted
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.nearest import Nearest
from judge.prompts.spec import Example
from judge.prompts.task import Task
from judge.types import Json, Message

CODES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CUE = "answer_cue"
"""The variable that reminds the model of the answer format."""
CONSTANT_NAMES = ("title", "questions")
"""The variables of the constant half of a template."""

_FIRST = {
    "before": "one or two sentences",
    "quote": "the words of the passages that decide, copied exactly, or none",
}
"""What a model is asked to write before its labels, for each kind of rationale that comes before the labels.
"""
_CUES = {"before": "Reasoning:", "quote": "Quote:"}
THEN_ANSWER = "Now the answer: exactly one of the letters and nothing else.\nAnswer:"
"""The turn after the reasoning, if the answer is a letter that is requested in a second call."""
THEN_WORD = "Now the answer: exactly one of the labels and nothing else.\nAnswer:"
"""The turn after the reasoning, if the answer is the label itself."""


class Mode(StrEnum):
    """The form of an answer.

    - `codes`: one character for each label, with probabilities
    - `words`: the label itself, with probabilities
    - `json`: a JSON object
    - `pair`: a label with probabilities, from a classifier that reads two texts and no question
      (`judge.prompts.pair`)
    - `text`: free text, for raw tasks
    """

    CODES = "codes"
    WORDS = "words"
    JSON = "json"
    PAIR = "pair"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages for one unit. The first `prefix` messages do not depend on the unit."""

    messages: tuple[Message, ...]
    prefix: int
    schema: Mapping[str, Json] | None
    codes: str | None
    words: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None
    """The labels that are possible for this unit if the reply is free text, otherwise None."""


class _Fenced:
    """Fences every untrusted value that a template outputs.

    The code in the fence depends only on the task and the fenced text. A question therefore has the same fence whichever
    passage it is shown with, and prompts with the same question begin with the same text. Providers can then
    reuse their cache.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        # Fenced blocks are cached, because sentences of an answer and answers of several systems share passages.
        self._kept = lru_cache(maxsize=512)(self._block)

    def __call__(self, value: Any) -> str:
        if isinstance(value, Passages):
            return "\n".join(self._kept(passage.name, str(passage)) for passage in value)
        return self._kept(value.name, str(value)) if isinstance(value, Untrusted) else str(value)

    def _block(self, name: str, text: str) -> str:
        fenced_text = f"{self._key}\0{name}\0{text}".encode("utf-8", "surrogatepass")
        return fence(name, text, fence_code(hashlib.sha256(fenced_text).digest()))


def instructions(task: Task) -> str:
    """Return a task's instructions: the half of its template that is the same for every unit.

    Both models and people read the instructions before the questions.
    """
    # Rewritten instructions come from a model, so they are text and never a template.
    if task.instructions is not None:
        return task.instructions.strip()
    constant, _ = task.templates()
    questions = [question.model_dump(mode="json") for question in task.spec.questions]
    return constant.render({"title": task.spec.title, "questions": questions}, str).strip()


class Renderer:
    """Renders one task in one mode.

    `orders` maps a field to the order in which its labels are shown (default: the declared order). The n-th
    label shown has the n-th code. A renderer is not thread-safe, so use a separate one in each event loop.
    """

    def __init__(self, task: Task, mode: Mode, orders: Mapping[str, Sequence[str]] | None = None) -> None:
        self.task, self.mode = task, mode
        self.reasons_first = mode is not Mode.JSON and task.reasons_first
        self.then_answer = THEN_WORD if mode is Mode.WORDS else THEN_ANSWER
        self._cue = (
            _CUES[task.spec.rationale]
            if self.reasons_first
            else "Answer (JSON):"
            if mode is Mode.JSON
            else "Answer:"
        )
        shown = orders or {}
        self.orders = {q.field: list(shown.get(q.field) or task.domain(q.field)) for q in task.spec.questions}
        _, self._unit = task.templates()
        self._show = _Fenced(task.sha256)
        guidelines = f"\n\nGuidelines:\n{task.spec.guidelines.strip()}" if task.tells_guidelines else ""
        system = f"{instructions(task)}{guidelines}\n\n{DATA_NOTICE}\n\n{self._answer_format()}"
        first = task.spec.questions[0].field
        turns = [self._example(example) for example in task.spec.examples]
        self._chosen: Nearest | None = None
        if task.nearest is not None:
            labels = [example.answers[first] for example in task.spec.examples]
            self._chosen = Nearest([_words(e.inputs) for e in task.spec.examples], labels, task.nearest)
        self._turns = turns
        self.prefix = (Message("system", system), *([] if self._chosen else chain.from_iterable(turns)))
        self.codes = CODES[: len(self.orders[first])] if mode is Mode.CODES else None
        self.words = tuple(self.orders[first]) if mode is Mode.WORDS else None
        self.schema = answer_schema(task, dict(self.orders)) if mode is Mode.JSON else None

    @property
    def labels(self) -> list[str]:
        """The labels in the order in which they are shown, which is also the order of the codes."""
        return self.orders[self.task.spec.questions[0].field]

    def render(self, inputs: Mapping[str, Json]) -> Prompt:
        """Return the prompt for one unit. Raises TaskError if the template cannot show these inputs."""
        shown: list[Message] = []
        if self._chosen is not None:
            unit_inputs = {name: inputs.get(name) for name in self.task.input_names}
            shown = [turn for at in self._chosen(_words(unit_inputs)) for turn in self._turns[at]]
        messages = (*self.prefix, *shown, Message("user", self._user(inputs)))
        return Prompt(messages, len(self.prefix), self.schema, self.codes, self.words)

    def _user(self, inputs: Mapping[str, Json]) -> str:
        shown = {name: _prepare_input(name, inputs.get(name)) for name in self.task.input_names}
        return self._unit.render({**shown, CUE: self._cue}, self._show).strip()

    def _example(self, example: Example) -> list[Message]:
        turns = [Message("user", self._user(example.inputs))]
        if self.reasons_first:
            # Examples imitate the two calls of a real answer: the reasoning first, then the letter.
            turns += [Message("assistant", example.rationale), Message("user", self.then_answer)]
        return [*turns, Message("assistant", self.answer(example.answers, example.rationale))]

    def answer(self, values: Mapping[str, str], rationale: str = "") -> str:
        """Return the reply that a model would give for these labels in this mode."""
        if self.mode is not Mode.JSON:
            label = values[self.task.spec.questions[0].field]
            return label if self.mode is Mode.WORDS else CODES[self.labels.index(label)]
        out: dict[str, Json] = {
            q.field: json.loads(values[q.field]) if q.level == "interval" or q.many else values[q.field]
            for q in self.task.spec.questions
        }
        if self.task.spec.rationale in _FIRST:
            # The keys have the order of the schema, because the labels depend on the text before them.
            out = {"rationale": rationale, **out}
        elif self.task.spec.rationale == "after":
            out["rationale"] = rationale
        return json.dumps(out, ensure_ascii=False)

    def _answer_format(self) -> str:
        lines = []
        for question in self.task.spec.questions:
            meanings = {label.value: label.meaning for label in question.labels}
            lines.append(question.ask or f"What is the {question.field}?")
            for code, value in zip(CODES, self.orders[question.field], strict=False):
                shown = value if self.mode is Mode.WORDS else json.dumps(value, ensure_ascii=False)
                head = f"{code} = {value}" if self.mode is Mode.CODES else f"- {shown}"
                lines.append(f"{head}: {meanings[value]}" if meanings[value] else head)
        if self.reasons_first:
            noun = "label" if self.mode is Mode.WORDS else "letter"
            first = "write one or two sentences of reasoning"
            if self.task.spec.rationale == "quote":
                first = f"write {_FIRST['quote']}"
            lines.append(
                f"First {first}, without the {noun}. When you are then asked for the "
                f"answer, give exactly one of these {noun}s and nothing else."
            )
        elif self.mode is Mode.WORDS:
            lines.append(
                f"Answer with exactly one of these labels and nothing else: {', '.join(self.labels)}."
            )
        elif self.mode is Mode.CODES:
            lines.append("Answer with exactly one of these letters and nothing else.")
        else:
            lines.append(f"Answer with one JSON object and nothing else: {self._json_shape()}")
        return "\n".join(lines)

    def _json_shape(self) -> str:
        parts = []
        if self.task.spec.rationale in _FIRST:
            parts.append(f'"rationale": "{_FIRST[self.task.spec.rationale]}"')
        for question in self.task.spec.questions:
            values = " | ".join(json.dumps(v, ensure_ascii=False) for v in self.orders[question.field])
            free = "number" if question.level == "interval" else "text"
            if question.many:
                free = '["text", ...]'
            parts.append(f'"{question.field}": {values or free}')
        if self.task.spec.rationale == "after":
            parts.append('"rationale": "one or two sentences"')
        return "{" + ", ".join(parts) + "}"


class Passages(tuple[Untrusted, ...]):
    """Several passages. A template can show each passage only inside that passage's own fence."""

    __slots__ = ()


def _prepare_input(name: str, value: Json) -> Untrusted | Passages | None:
    if name not in LIST_INPUTS:
        text = as_text(value)
        return None if text is None else mark_untrusted(name, text)
    entries = [value] if isinstance(value, str) else list(value or ())
    blocks = [_passage(name, entry, number) for number, entry in enumerate(entries, 1)]
    return Passages(blocks) if blocks else None


def _passage(name: str, entry: Json, number: int) -> Untrusted:
    """Return the text of one passage of a list, preceded by its title and date if it has them."""
    if isinstance(entry, str):
        return mark_untrusted(f"{name}:{number}", entry)
    head = [f"{word}: {entry[key]}" for key, word in (("title", "Title"), ("date", "Date")) if entry.get(key)]
    return mark_untrusted(f"{name}:{entry['marker']}", "\n".join([*head, entry["text"]]))


def _words(inputs: Mapping[str, Json]) -> str:
    """Join the inputs into one text, so that examples can be compared with a unit."""
    return "\n".join(as_text(value) or "" for _, value in sorted(inputs.items()))


def as_text(value: Json) -> str | None:
    """Return an input as text. A list has one entry per line, and answer options are lines such as `A. text`."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(f"{k}. {v}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(f"- {v}" for v in value)
    return str(value)


def answer_schema(task: Task, domains: dict[str, Sequence[str]] | None = None) -> dict[str, Json]:
    """Return the strict JSON Schema for one answer: every field is required, and labels are an enum."""
    properties: dict[str, Json] = {}
    if task.spec.rationale in _FIRST:
        # First, because models write the keys in the order of the schema.
        properties["rationale"] = {"type": "string"}
    for question in task.spec.questions:
        # If the provider enforces the schema, an enum excludes all other labels.
        if question.labels:
            values = (domains or {}).get(question.field) or [label.value for label in question.labels]
            properties[question.field] = {"type": "string", "enum": list(values)}
        elif question.many:
            properties[question.field] = {"type": "array", "items": {"type": "string"}}
        else:
            properties[question.field] = {"type": "number" if question.level == "interval" else "string"}
    if task.spec.rationale == "after":
        properties["rationale"] = {"type": "string"}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
