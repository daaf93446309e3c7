"""The front matter of a task file, as a pydantic model.

The reference page on task files is generated from the descriptions of the model's fields.
"""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from judge.prompts.inputs import INPUTS, NEVER_INPUTS, SOURCES, gold_input

RESERVED_FIELDS = (
    "rationale", "run", "task", "model", "unit", "units", "unit_id", "item_id", "question_id", "passage_id",
    "repeat", "attempt", "status", "reason", "reply", "input_tokens", "output_tokens", "latency",
    "resolved_model", "request_sha", "judged_at", "cost_usd", "fitted_on",
)  # fmt: skip
"""Names of the export columns that do not contain labels. A field in a task may not have any of these names.
"""


def _text(value: Any) -> Any:
    # YAML 1.1 reads yes, no, on and off as booleans, and labels must be strings.
    if isinstance(value, bool):
        raise ValueError("YAML reads yes/no/true/false/on/off as booleans; put the value in quotes")
    if isinstance(value, int | float):
        raise ValueError(f"YAML reads {value} as a number; put it in quotes")
    if isinstance(value, date):
        raise ValueError(f"YAML reads {value} as a date; put it in quotes")
    if value is None:
        raise ValueError("YAML reads null, ~ and an empty value as null; put the value in quotes")
    return value


def _input_type(value: Any) -> Any:
    """Check an example's input. It is a string, a list of strings, or an object of answer options keyed by
    letter.
    """
    if isinstance(value, list):
        return [_text(v) for v in value]
    if isinstance(value, dict):
        return {_text(k): _text(v) for k, v in value.items()}
    return _text(value)


Text = Annotated[str, BeforeValidator(_text), Field(min_length=1)]
Words = Annotated[str, BeforeValidator(_text)]
FieldName = Annotated[str, BeforeValidator(_text), Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$")]
Shown = Annotated[str | list[str] | dict[str, str], BeforeValidator(_input_type)]


WORDS, ALONE = "words", "alone"
"""Values of `answer`: the label is somewhere in the reply, or the reply is the label (`judge.free_text.read_alone`)."""
LABEL, TEXT = "{label}", "{text}"
"""The placeholders in the pattern `answer`: one for a label, and one for free text."""


class _Strict(BaseModel):
    # An unknown key is a typing error; ignoring it would silently drop a setting.
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Label(_Strict):
    """A possible answer to a question."""

    value: Text = Field(description="the label as it is stored and compared; a string")
    key: Text | None = Field(None, description="the key that people press: one character, unique in the task")
    meaning: Words = Field("", description="one sentence that explains the label to the judge and to people")

    @field_validator("value")
    @classmethod
    def _require_one_line(cls, value: str) -> str:
        # Answers are compared without surrounding space, and listings show a label in one line.
        if value != value.strip() or not value.isprintable():
            raise ValueError(
                f"a label must be one line of visible text without leading or trailing spaces, not {value!r}"
            )
        return value

    @field_validator("key")
    @classmethod
    def _require_one_character(cls, key: str | None) -> str | None:
        if key is not None and (len(key) != 1 or not key.isprintable() or key.isspace()):
            raise ValueError(f"a key must be one visible character, not {key!r}")
        return key


class Question(_Strict):
    """A question that is asked about every unit."""

    field: FieldName = Field(description="name of the label (lower-case letters, digits, `_` and `.`)")
    ask: Words = Field("", description="the wording of the question, shown with the labels")
    labels: list[Label] = Field(default_factory=list, description="the possible labels, in order")
    level: Literal["nominal", "ordinal", "interval", "text"] = Field(
        "nominal",
        description="the order of an `ordinal` question is that of `labels`; `interval` and `text` have no labels",
    )
    many: bool = Field(
        False,
        description="whether a text question asks for a list, which is stored as a JSON array of strings",
    )

    @model_validator(mode="after")
    def _domain(self) -> Question:
        values = [label.value for label in self.labels]
        # Replies are compared without case, so labels that differ only in case would be one.
        folded = [v.casefold() for v in values]
        if self.level in ("nominal", "ordinal") and len(values) < 2:
            raise ValueError(f"field '{self.field}' is {self.level} and needs at least two labels")
        if self.level in ("interval", "text") and values:
            raise ValueError(f"field '{self.field}' is {self.level} and cannot have labels")
        if self.many and self.level != "text":
            raise ValueError(f"field '{self.field}' is {self.level}; only a text question can have 'many'")
        if len(set(folded)) < len(folded):
            raise ValueError(f"field '{self.field}' has the same label twice (case is ignored)")
        if self.field in RESERVED_FIELDS:
            # An export has one column for each field, in addition to its own columns.
            raise ValueError(f"field '{self.field}' has a reserved name; use another name")
        return self


class Derive(_Strict):
    """A derived label, which is looked up in a table by an answer.

    The table may also use a gold label that the judge does not see.
    """

    # An alias, because `from` is a keyword of Python.
    source: Text = Field(alias="from", description="the field of this task whose answer is looked up")
    gold: Text | None = Field(
        None, description="gold field of the unit or its item; without it, only the answer is looked up"
    )
    table: dict[Text, Text] = Field(
        min_length=1,
        description="maps an answer, or an answer and a gold label joined by a vertical bar, to the derived label; "
        "combinations that are not listed have no label",
    )
    level: Literal["nominal", "ordinal"] = Field("nominal", description="level of the derived field")
    order: list[Text] | None = Field(None, description="derived labels in order (default: as in the table)")

    def domain(self) -> list[str]:
        """Return the derived labels in order."""
        return list(self.order) if self.order else list(dict.fromkeys(self.table.values()))


class Example(_Strict):
    """A few-shot example. The item that the example was taken from is excluded from scoring."""

    inputs: dict[str, Shown] = Field(description="a value for every input that is not optional")
    answers: dict[str, Text] = Field(description="an answer for every field")
    rationale: Words = Field("", description="the rationale, shown if the task asks for one")
    item_id: Text | None = Field(
        None, description="the item that the example was taken from, if it can be part of a study"
    )


class Citation(_Strict):
    """The publication that defines the labels."""

    paper: Text = Field(description="title or short name of the publication")
    year: int = Field(description="year of publication")
    url: Words = Field("", description="URL of the publication")
    where: Words = Field("", description="section or table that defines the labels")


class Relevant(_Strict):
    """The definition of relevant passages: those with one of the given gold labels.

    The prompt does not show these labels.
    """

    field: FieldName = Field(description="gold field of the item's passages")
    values: list[Text] = Field(min_length=1, description="labels that make a passage relevant")


class TaskSpec(_Strict):
    """The front matter of `prompts/NAME.vN.md`."""

    title: Text = Field(description="one line that is shown in listings")
    unit: Literal["passage", "item", "answer", "sentence", "citation", "claim", "nugget", "pair"] = Field(
        description="the kind of unit that is labelled"
    )
    inputs: list[Text] = Field(
        min_length=1,
        description="inputs for templates, screens and exports; units that lack one of them are left out",
    )
    optional_inputs: list[Text] = Field(
        default_factory=list,
        description="inputs that a unit may lack; the template must test for them with `{% if %}`",
    )
    relevant: Relevant | None = Field(None, description="the passages in the input `relevant_passages`")
    shows_gold: list[FieldName] = Field(
        default_factory=list,
        description="gold fields that people see as inputs; such a task is only for people, and is not blind",
    )
    questions: list[Question] = Field(min_length=1, description="one or more questions about each unit")
    derive: dict[FieldName, Derive] = Field(default_factory=dict, description="maps derived fields to rules")
    examples: list[Example] = Field(default_factory=list, description="few-shot examples, in order")
    rationale: Literal["none", "before", "after", "quote"] = Field(
        "none",
        description="free text in addition to the labels: written `before` the labels or `after` them, or a `quote` from the "
        "passages that is written before the labels and checked against the passages",
    )
    raw: bool = Field(
        False,
        description="whether the file is sent exactly as written after its fields are filled in, without a notice, fences or "
        "an answer format",
    )
    answer: Words = Field(
        "",
        description="for raw tasks, how the label is found in the reply: `alone` (the reply is the label), `words` (the label anywhere in the reply), or a line "
        "with `{label}` in place of the label, such as `Answer: {label}`; for free text, a line with `{text}` "
        "(default: the whole reply)",
    )
    citation: Citation | None = Field(None, description="the publication that defines the labels")
    guidelines: Words = Field("", description="Markdown text for human annotators")

    @field_validator("inputs", "optional_inputs")
    @classmethod
    def _inputs_known(cls, inputs: list[str]) -> list[str]:
        known = list(dict.fromkeys(name for names in INPUTS.values() for name in names))
        for name in inputs:
            if name in NEVER_INPUTS:
                raise ValueError(f"'{name}' cannot be an input: judges must not see gold labels or metadata")
            if name not in known:
                raise ValueError(f"unknown input '{name}'; available: {', '.join(known)}")
        return inputs

    @model_validator(mode="after")
    def _fits_together(self) -> TaskSpec:
        names = self.inputs + self.optional_inputs
        if len(set(names)) < len(names):
            raise ValueError("the same input is listed twice")
        fields = [q.field for q in self.questions]
        if len(set(fields)) < len(fields):
            raise ValueError("two questions have the same field")
        keys: dict[str, str] = {}
        for question in self.questions:
            for label in question.labels:
                if label.key is None:
                    continue
                here = f"{question.field}={label.value}"
                if label.key in keys:
                    raise ValueError(f"the key '{label.key}' is used for both {keys[label.key]} and {here}")
                keys[label.key] = here
        if self.rationale == "quote":
            self.check_quotable()
        self._check_raw()
        self._check_inputs(names, fields)
        for name, rule in self.derive.items():
            self._check_rule(name, rule, fields)
        for number, example in enumerate(self.examples, 1):
            self.check_example(number, example)
        return self

    def _check_inputs(self, names: list[str], fields: list[str]) -> None:
        for name in names:
            if name not in INPUTS[self.unit]:
                raise ValueError(f"'{name}' cannot be an input of a task on the unit '{self.unit}'")
        if ("relevant_passages" in names) != (self.relevant is not None):
            raise ValueError("'relevant_passages' and 'relevant' (field, values) must be used together")
        for gold in self.shows_gold:
            # Showing the gold label of the same field would reveal the answer.
            if gold in fields:
                raise ValueError(f"shows_gold: '{gold}' is a field of this task, so it cannot be shown")
            if gold_input(gold) in (*names, *NEVER_INPUTS):
                raise ValueError(f"shows_gold: '{gold_input(gold)}' is already the name of an input")

    def _check_rule(self, name: str, rule: Derive, fields: list[str]) -> None:
        if name in fields or name in RESERVED_FIELDS:
            raise ValueError(f"derive '{name}': the name is reserved or used by a question; use another name")
        if rule.source not in fields:
            raise ValueError(f"derive '{name}': 'from' must be a field of this task, not '{rule.source}'")
        if rule.gold in fields:
            raise ValueError(
                f"derive '{name}': gold field '{rule.gold}' is the label that this task asks for, so it cannot be shown"
            )
        # A table row for a label that is not a possible answer is a typing error.
        domain = {label.value for q in self.questions if q.field == rule.source for label in q.labels}
        for key in rule.table:
            answer, bar, _ = key.partition("|")
            if answer not in domain:
                raise ValueError(
                    f"derive '{name}': '{answer}' in the table is not a label of '{rule.source}'"
                )
            if bool(bar) != bool(rule.gold):
                raise ValueError(
                    f"derive '{name}': table key '{key}' must be "
                    + ("'answer|gold'" if rule.gold else "an answer alone, because the rule has no 'gold'")
                )
        if rule.order and sorted(rule.order) != sorted(set(rule.table.values())):
            raise ValueError(f"derive '{name}': 'order' must list exactly the values of the table")

    @property
    def letters(self) -> bool:
        """Whether the task has one question whose labels are single letters, as in a multiple-choice
        question.
        """
        labels = [label.value for question in self.questions for label in question.labels]
        return len(self.questions) == 1 and bool(labels) and all(len(v) == 1 and v.isalpha() for v in labels)

    def _check_raw(self) -> None:
        if not self.raw:
            if self.answer:
                raise ValueError("answer: this key is only allowed in a raw task; add 'raw: true'")
            return
        question = self.questions[0]
        if (
            len(self.questions) > 1
            or self.rationale != "none"
            or question.many
            or question.level == "interval"
        ):
            raise ValueError(
                "raw: the task must have exactly one question, with labels or free text, and no rationale"
            )
        place = LABEL if question.labels else TEXT
        if question.labels and not self.answer:
            raise ValueError(
                f"raw: 'answer' must say how to find the label in the reply: 'alone', 'words', or a line that contains {place}"
            )
        if self.answer and not (question.labels and self.answer in (WORDS, ALONE)):
            words = self.answer.replace(place, "", 1).strip()
            if self.answer.count(place) != 1 or not words or "\n" in self.answer:
                raise ValueError(
                    f"answer: must be one line that contains {place} once and other words, such as 'Answer: {place}'"
                )

    def check_quotable(self) -> None:
        """Raise ValueError if no input is a passage that can be quoted."""
        if not {*self.inputs, *self.optional_inputs} & set(SOURCES):
            raise ValueError(
                f"rationale: a quote must come from passages, but none of the inputs is one of {', '.join(SOURCES)}"
            )

    def check_example(self, number: int, example: Example) -> None:
        """Raise ValueError if an example does not answer this task, or shows inputs that the task does not have."""
        if extra := set(example.inputs) - {*self.inputs, *self.optional_inputs}:
            raise ValueError(f"example {number}: '{min(extra)}' is not an input of this task")
        if missing := set(self.inputs) - set(example.inputs):
            raise ValueError(f"example {number}: input '{min(missing)}' is missing")
        for question in self.questions:
            value = example.answers.get(question.field)
            if value is None:
                raise ValueError(f"example {number}: no answer for '{question.field}'")
            if question.labels and value not in {label.value for label in question.labels}:
                raise ValueError(f"example {number}: '{value}' is not a label of '{question.field}'")
            if question.level == "interval" and not _is_number(value):
                raise ValueError(f"example {number}: '{value}' is not a number for '{question.field}'")
            if question.many and not _is_list(value):
                raise ValueError(f"example {number}: '{question.field}' must be a JSON array of strings")
        if extra := set(example.answers) - {q.field for q in self.questions}:
            raise ValueError(f"example {number}: '{min(extra)}' is not a field of this task")
        if self.rationale != "none" and not example.rationale.strip():
            raise ValueError(f"example {number}: the rationale is missing, but the task asks for one")


def _is_number(text: str) -> bool:
    value = _decoded(text)
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_list(text: str) -> bool:
    value = _decoded(text)
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
