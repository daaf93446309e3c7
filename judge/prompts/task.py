"""A task as it is loaded from its file, and as a run asks it: its fields, labels and inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from judge.errors import UsageError
from judge.prompts.inputs import gold_input
from judge.prompts.spec import Example, Question, TaskSpec
from judge.types import Json

UNIT_MARK = "<!-- unit -->"
"""The line of a template between the constant half and the unit's own."""


@dataclass(frozen=True)
class Task:
    """A loaded task file. `constant` and `unit` are the two halves of its template."""

    task_id: str
    version: int
    spec: TaskSpec
    constant: str
    unit: str
    text: str
    path: str
    declared: TaskSpec | None = None
    """The file's own front matter, where a run asks for another rationale or other examples."""
    tells_guidelines: bool = False
    """Whether the model is told the guidelines that people are given."""
    instructions: str | None = None
    """Plain text in place of the constant half, where a run asks with other instructions than the file's."""
    nearest: int | None = None
    """Of the examples of each label only so many are shown, those nearest to the unit by BM25; None: all, always."""

    @property
    def asked(self) -> dict[str, Json]:
        """What a run asks for otherwise than the file: part of the run's identity."""
        found: dict[str, Json] = {"guidelines": "shown"} if self.tells_guidelines else {}
        if self.instructions is not None:
            found["instructions"] = self.instructions
        if self.declared is None:
            return found
        if self.spec.rationale != self.declared.rationale:
            found["rationale"] = self.spec.rationale
        if self.spec.examples != self.declared.examples:
            found["examples"] = ",".join(str(example.item_id) for example in self.spec.examples)
        if self.nearest is not None:
            found["nearest_examples"] = self.nearest
        return found

    def thinking(self, rationale: str | None) -> Task:
        """The task with free text `before` or `after` its labels, a `quote` before them, or `none`; None: as its file
        says.

        Raises UsageError for a task whose examples have no rationale to show, or that has no passages to quote.
        """
        if rationale is None or rationale == self.spec.rationale:
            return self
        if rationale == "quote":
            try:
                self.spec.check_quotable()
            except ValueError as e:
                raise UsageError(f"{self.name}: {e}") from e
        if rationale != "none" and not all(e.rationale.strip() for e in self.spec.examples):
            raise UsageError(
                f"{self.name}: its examples have no rationale to show: --rationale none, or a version with one in each"
            )
        return self._changed(rationale=rationale)

    def showing(self, examples: Sequence[Example], nearest: int | None = None) -> Task:
        """The task with these few-shot examples in place of its own; `nearest`: only so many of each label for a unit.

        Raises UsageError where the nearest of several questions' labels are asked for.
        """
        if nearest is not None and not self._one_label:
            raise UsageError(
                f"{self.name}: the nearest examples of each label are for one question with labels"
            )
        return replace(self._changed(examples=list(examples)), nearest=nearest)

    def with_guidelines(self) -> Task:
        """The task whose model is told the guidelines for people, too. Raises UsageError where there are none."""
        if not self.spec.guidelines.strip():
            raise UsageError(f"{self.name} has no guidelines to show")
        return replace(self, tells_guidelines=True)

    def with_instructions(self, text: str) -> Task:
        """The task asked with other instructions: plain text, whatever it holds, and no template."""
        return replace(self, instructions=text)

    def _changed(self, **keys: Any) -> Task:
        return replace(self, spec=self.spec.model_copy(update=keys), declared=self.declared or self.spec)

    @property
    def name(self) -> str:
        """The name with its version, as stored: `stance.v2`."""
        return f"{self.task_id}.v{self.version}"

    @cached_property
    def sha256(self) -> str:
        """Hash of the file's text; a study refuses another text under a version it has used."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def fields(self) -> list[str]:
        """Asked fields, then derived ones."""
        return [q.field for q in self.spec.questions] + list(self.spec.derive)

    def question(self, field: str) -> Question:
        """The question that asks for `field`. Raises KeyError."""
        return next(q for q in self.spec.questions if q.field == field)

    def domain(self, field: str) -> list[str]:
        """The declared labels of an asked or derived field, in order; empty for interval and text."""
        if field in self.spec.derive:
            return self.spec.derive[field].domain()
        return [label.value for label in self.question(field).labels]

    def level(self, field: str) -> str:
        """The measurement level of a field."""
        return self.spec.derive[field].level if field in self.spec.derive else self.question(field).level

    @property
    def required_inputs(self) -> list[str]:
        """Inputs a unit must have to be asked about."""
        return [*self.spec.inputs, *self.gold_inputs]

    @property
    def input_names(self) -> list[str]:
        """All inputs, the optional ones last."""
        return [*self.required_inputs, *self.spec.optional_inputs]

    @property
    def gold_inputs(self) -> dict[str, str]:
        """Inputs that are gold -> their gold field; only a task for people has any."""
        return {gold_input(field): field for field in self.spec.shows_gold}

    @property
    def people_only(self) -> bool:
        """The task shows gold: people may do it, knowing that it is not blind; no model is asked."""
        return bool(self.spec.shows_gold)

    @property
    def one_choice(self) -> bool:
        """One question with labels and no rationale: a single character can answer it."""
        return self._one_label and self.spec.rationale == "none"

    @property
    def reasons_first(self) -> bool:
        """One question with labels after a rationale or a quote: two calls can answer it, the text and then one character."""
        return self._one_label and self.spec.rationale in ("before", "quote")

    @property
    def _one_label(self) -> bool:
        return len(self.spec.questions) == 1 and bool(self.spec.questions[0].labels)
