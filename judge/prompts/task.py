"""A task as loaded from its file and as used in a run: its fields, labels and inputs."""

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
"""The line in a template between the constant half and the unit's half."""


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
    """The file's own front matter, if a run uses another rationale or other examples."""
    tells_guidelines: bool = False
    """Whether the prompt contains the guidelines for people."""
    instructions: str | None = None
    """Plain text that replaces the constant half, if a run's instructions differ from the file's."""
    nearest: int | None = None
    """The number of examples to show for each label, chosen as nearest to the unit by BM25. None means that
    all examples are always shown.
    """

    @property
    def overrides(self) -> dict[str, Json]:
        """A run's settings that differ from the file. They are part of the run's identity."""
        changes: dict[str, Json] = {"guidelines": "shown"} if self.tells_guidelines else {}
        if self.instructions is not None:
            changes["instructions"] = self.instructions
        if self.declared is None:
            return changes
        if self.spec.rationale != self.declared.rationale:
            changes["rationale"] = self.spec.rationale
        if self.spec.examples != self.declared.examples:
            changes["examples"] = ",".join(str(example.item_id) for example in self.spec.examples)
        if self.nearest is not None:
            changes["nearest_examples"] = self.nearest
        return changes

    def thinking(self, rationale: str | None) -> Task:
        """Return the task with free text `before` or `after` its labels, a `quote` before them, or `none`.
        None keeps the file's setting.

        Raises UsageError if the task's examples have no rationale to show, or if it has no passages to quote.
        """
        if rationale is None or rationale == self.spec.rationale:
            return self
        if rationale == "quote":
            try:
                self.spec.check_quotable()
            except ValueError as e:
                raise UsageError(f"{self.name}: {e}") from e
        # An example without a rationale would show the model that it may leave it out.
        if rationale != "none" and not all(e.rationale.strip() for e in self.spec.examples):
            raise UsageError(
                f"{self.name}: its examples have no rationale to show; pass --rationale none, or use a version with a rationale in each example"
            )
        return self._changed(rationale=rationale)

    def showing(self, examples: Sequence[Example], nearest: int | None = None) -> Task:
        """Return the task with these few-shot examples instead of its own. `nearest` limits how many examples
        of each label are shown for a unit.

        Raises UsageError if nearest examples are requested for a task with several questions.
        """
        # "Nearest of each label" has one meaning only if the task has one field with labels.
        if nearest is not None and not self._one_label:
            raise UsageError(
                f"{self.name}: choosing the nearest examples of each label requires a task with one question with labels"
            )
        return replace(self._changed(examples=list(examples)), nearest=nearest)

    def with_guidelines(self) -> Task:
        """Return the task with its guidelines in the prompt. Raises UsageError if it has none."""
        if not self.spec.guidelines.strip():
            raise UsageError(f"{self.name} has no guidelines to show")
        return replace(self, tells_guidelines=True)

    def with_instructions(self, text: str) -> Task:
        """Return the task with different instructions, which are plain text, never a template."""
        return replace(self, instructions=text)

    def _changed(self, **keys: Any) -> Task:
        return replace(self, spec=self.spec.model_copy(update=keys), declared=self.declared or self.spec)

    @property
    def name(self) -> str:
        """The name with its version, as stored: `stance.v2`."""
        return f"{self.task_id}.v{self.version}"

    @cached_property
    def sha256(self) -> str:
        """The hash of the file's text. A study refuses different text under a version that it has used."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def fields(self) -> list[str]:
        """The fields of the questions, then the derived ones."""
        return [q.field for q in self.spec.questions] + list(self.spec.derive)

    def question(self, field: str) -> Question:
        """Return the question for `field`. Raises KeyError if there is none."""
        return next(q for q in self.spec.questions if q.field == field)

    def domain(self, field: str) -> list[str]:
        """Return the declared labels of a field, derived or not, in order. It is empty for interval and text
        fields.
        """
        if field in self.spec.derive:
            return self.spec.derive[field].domain()
        return [label.value for label in self.question(field).labels]

    def level(self, field: str) -> str:
        """Return the measurement level of a field."""
        return self.spec.derive[field].level if field in self.spec.derive else self.question(field).level

    @property
    def required_inputs(self) -> list[str]:
        """The inputs that a unit needs in order to be judged."""
        return [*self.spec.inputs, *self.gold_inputs]

    @property
    def input_names(self) -> list[str]:
        """All inputs, with the optional ones last."""
        return [*self.required_inputs, *self.spec.optional_inputs]

    @property
    def gold_inputs(self) -> dict[str, str]:
        """Maps inputs that are gold labels to their gold field. Only a task for people has such inputs."""
        return {gold_input(field): field for field in self.spec.shows_gold}

    @property
    def people_only(self) -> bool:
        """Whether the task shows gold labels. People may use it, knowing that it is not blind, but no model may."""
        return bool(self.spec.shows_gold)

    @property
    def one_choice(self) -> bool:
        """Whether a single character can answer the task: one question with labels and no rationale."""
        return self._one_label and self.spec.rationale == "none"

    @property
    def reasons_first(self) -> bool:
        """Whether two calls can answer the task, first text and then one character: it has one question with
        labels, after a rationale or quote.
        """
        return self._one_label and self.spec.rationale in ("before", "quote")

    @property
    def _one_label(self) -> bool:
        return len(self.spec.questions) == 1 and bool(self.spec.questions[0].labels)
