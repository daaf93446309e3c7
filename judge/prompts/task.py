"""A task as loaded from its file, together with the changes that a run makes to it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from judge.errors import UsageError
from judge.prompts.inputs import gold_input
from judge.prompts.spec import Example, Question, TaskSpec
from judge.prompts.template import PromptTemplate, parse_template
from judge.types import Json

UNIT_MARK = "<!-- unit -->"
"""The line that separates the two halves of a template: the constant half, and the half for each unit."""


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
    """The front matter in the file, if a run changes the rationale or the examples."""
    tells_guidelines: bool = False
    """Whether the prompt contains the guidelines for people."""
    instructions: str | None = None
    """Plain text that replaces the constant half, if a run changes the instructions."""
    nearest: int | None = None
    """The number of examples to show for each label. None means that all examples are shown.

    The examples shown are those nearest to the unit according to BM25.
    """

    @property
    def overrides(self) -> dict[str, Json]:
        """The settings with which a run overrides the task file. They are part of the run's identity."""
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
        """Return the task with a different rationale, or unchanged if `rationale` is None.

        The rationale is free text `before` or `after` the labels, a `quote` before the labels, or `none`.
        Raises UsageError if an example has no rationale to show, or if there are no passages to quote.
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
                f"{self.name}: an example has no rationale to show; pass --rationale none, or use a version in which every example has one"
            )
        return self._change(rationale=rationale)

    def showing(self, examples: Sequence[Example], nearest: int | None = None) -> Task:
        """Return the task with these few-shot examples instead of its own.

        If `nearest` is set, each prompt shows only the examples that are most similar to its unit, with at
        most that many examples for each label. Raises UsageError if `nearest` is set but the task does not
        have exactly one question with labels.
        """
        # "Nearest of each label" is only well defined if the task has exactly one field with labels.
        if nearest is not None and not self._one_label:
            raise UsageError(
                f"{self.name}: nearest examples can only be chosen for a task that has exactly one question with labels"
            )
        return replace(self._change(examples=list(examples)), nearest=nearest)

    def with_guidelines(self) -> Task:
        """Return the task with its guidelines in the prompt. Raises UsageError if the task has no guidelines."""
        if not self.spec.guidelines.strip():
            raise UsageError(f"{self.name} has no guidelines to show")
        return replace(self, tells_guidelines=True)

    def with_instructions(self, text: str) -> Task:
        """Return the task with different instructions.

        The instructions are plain text, and are never rendered as a template.
        """
        return replace(self, instructions=text)

    def _change(self, **keys: Any) -> Task:
        return replace(self, spec=self.spec.model_copy(update=keys), declared=self.declared or self.spec)

    @property
    def name(self) -> str:
        """The task's name with its version, such as `stance.v2`."""
        return f"{self.task_id}.v{self.version}"

    @cached_property
    def sha256(self) -> str:
        """The hash of the file's text. A study accepts only one text for each version of a task."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def templates(self, where: str = "") -> tuple[PromptTemplate, PromptTemplate]:
        """Return the parsed halves of the template: the constant half, and the half for each unit.

        Errors name `where`, or the task's file. Raises TaskError if a half has a construct that is not
        permitted.
        """
        where = where or self.path or f"{self.name}.md"
        body = self.text.index("\n---\n", 3) + len("\n---\n")
        mark = self.text.index(UNIT_MARK, body)
        starts = (body, mark + len(UNIT_MARK))
        # Lines are counted in the whole file, because that is what an editor shows.
        lines = [
            self.text[: self.text.index(half, start)].count("\n") + 1
            for half, start in zip((self.constant, self.unit), starts, strict=True)
        ]
        return parse_template(self.constant, where, lines[0]), parse_template(self.unit, where, lines[1])

    @property
    def fields(self) -> list[str]:
        """The fields of the questions, followed by the derived fields."""
        return [q.field for q in self.spec.questions] + list(self.spec.derive)

    def question(self, field: str) -> Question:
        """Return the question for `field`. Raises KeyError if there is no such question."""
        return next(q for q in self.spec.questions if q.field == field)

    def domain(self, field: str) -> list[str]:
        """Return the labels that a question or derived field can have, in order.

        The list is empty for interval and text fields.
        """
        if field in self.spec.derive:
            return self.spec.derive[field].domain()
        return [label.value for label in self.question(field).labels]

    def level(self, field: str) -> str:
        """Return the measurement level of a field."""
        return self.spec.derive[field].level if field in self.spec.derive else self.question(field).level

    @property
    def required_inputs(self) -> list[str]:
        """The inputs that every unit must have."""
        return [*self.spec.inputs, *self.gold_inputs]

    @property
    def input_names(self) -> list[str]:
        """All inputs, with the optional ones last."""
        return [*self.required_inputs, *self.spec.optional_inputs]

    @property
    def gold_inputs(self) -> dict[str, str]:
        """Maps each input that shows a gold label to the name of the gold field.

        Only tasks for people have such inputs.
        """
        return {gold_input(field): field for field in self.spec.shows_gold}

    @property
    def people_only(self) -> bool:
        """Whether the task shows gold labels. Such a task is not blind, and only people may use it."""
        return bool(self.spec.shows_gold)

    @property
    def one_choice(self) -> bool:
        """Whether the task can be answered with a single character.

        This requires one question with labels and no rationale.
        """
        return self._one_label and self.spec.rationale == "none"

    @property
    def reasons_first(self) -> bool:
        """Whether the task can be answered in two calls.

        The first call returns a rationale or quote, and the second call returns a single character. This
        requires one question with labels.
        """
        return self._one_label and self.spec.rationale in ("before", "quote")

    @property
    def _one_label(self) -> bool:
        return len(self.spec.questions) == 1 and bool(self.spec.questions[0].labels)
