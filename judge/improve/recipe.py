"""A recipe: the presentation of a task to a judge, with examples and calibration. It is stored as a small YAML file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.prompts.load import Task
from judge.prompts.spec import Example
from judge.runner.plan import Plan
from judge.runner.requests import Sampling
from judge.store.study import canonical
from judge.types import attributes

VERSION = 1
Shape = TypeVar("Shape", bound=BaseModel)
# The questions of a calibration's fit are the longest part of a file.
MOST_BYTES = 16_000_000
MOST_EXAMPLES = 100
MOST_INSTRUCTIONS = 8_000
"""Maximum length of rewritten instructions, in characters."""


class RecipePart(BaseModel):
    """A part of a recipe file: unknown keys are refused, and each key has its type."""

    # Strict, so that "no" does not become false, nor 1.7 or true a number of orders.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ShownExamples(RecipePart):
    """Few-shot examples, and the `rule` by which they were chosen.

    With `nearest`, only that many examples of each label are shown: those nearest to the unit by BM25.
    """

    rule: str
    nearest: int | None = Field(default=None, ge=1)
    shown: list[Example] = Field(min_length=1, max_length=MOST_EXAMPLES)


class CalibrationFit(RecipePart):
    """The labels that a calibration was fitted on."""

    reference: str
    units: int = Field(ge=0)
    sha256: str
    questions: list[str]


class RecipeCalibration(RecipePart):
    """The numbers of a calibration, and their fit."""

    method: Literal["bias", "temperature", "batch"]
    temperature: float = Field(gt=0)
    bias: dict[str, float]
    fitted: CalibrationFit


class Recipe(RecipePart):
    """The settings with which a judge runs a task, in addition to the task's file.

    `instructions` replace the task's. `temperature` and `seed` control sampling. `made` has the evidence from a search.
    """

    recipe: int = VERSION
    task: str
    task_sha256: str
    field: str
    answers: Literal["auto", "codes", "words", "json"]
    label_order: str = Field(pattern=r"^(declared|reversed|shuffled:[0-9]{1,18})$")
    orders: int = Field(ge=1)
    guidelines: bool
    instructions: str | None = Field(default=None, min_length=1, max_length=MOST_INSTRUCTIONS)
    temperature: float | None = Field(default=0.0, ge=0)
    seed: int | None = None
    examples: ShownExamples | None = None
    calibration: RecipeCalibration | None = None
    made: dict[str, str | int | float | bool | None] = {}

    @property
    def uncalibrated(self) -> Recipe:
        """The recipe without its calibration."""
        return self.model_copy(update={"calibration": None})

    @property
    def words(self) -> str:
        """The differences from the unchanged task, in words."""
        changes = []
        if self.answers != "auto":
            changes.append(f"answers as {self.answers}")
        if self.label_order != "declared":
            changes.append(f"labels {self.label_order}")
        if self.orders > 1:
            changes.append(f"{self.orders} label orders averaged")
        if self.guidelines:
            changes.append("guidelines shown")
        if self.instructions is not None:
            changes.append("instructions rewritten")
        if self.examples:
            n, rule = len(self.examples.shown), self.examples.rule
            changes.append(f"{n} examples ({rule})" if self.examples.nearest is None else rule)
        if self.calibration:
            changes.append(f"calibrated by {self.calibration.method}")
        return ", ".join(changes) or "as it is today"

    def applied(self, plan: Plan) -> Plan:
        """Return the plan changed by this recipe.

        Raises UsageError if the task is a different one or has different text, or if the recipe does not fit the plan.
        """
        task = plan.task
        # A recipe was proved with one text of the task. With another text its examples and calibration prove nothing.
        if task.name != self.task or task.sha256 != self.task_sha256:
            raise UsageError(
                f"the recipe is for {self.task}, whose text differs from that of {task.name} here; use the task file that the recipe was made for"
            )
        self._check(task)
        extra = dict(plan.extra)
        if self.guidelines:
            task = task.with_guidelines()
        if self.instructions is not None:
            task = task.with_instructions(self.instructions)
        if self.examples:
            task = task.showing(self.examples.shown, self.examples.nearest)
            # The items alone do not identify the passages that were shown, so the examples are hashed into
            # the run's identity.
            text = canonical([example.model_dump(mode="json") for example in self.examples.shown])
            extra["recipe_examples"] = hashlib.sha256(text.encode()).hexdigest()[:16]
        settings = attributes(self, "answers", "label_order", "orders", "temperature", "seed")
        sampling = replace(plan.sampling, **settings)
        return replace(plan, task=task, sampling=sampling, extra=extra)

    def _check(self, task: Task) -> None:
        """Raise UsageError if the task lacks the field, the labels or the examples of the recipe."""
        if self.field not in task.fields:
            raise UsageError(
                f"the recipe is for the field '{self.field}'; the fields of {task.name} are {', '.join(task.fields)}"
            )
        if self.calibration is not None and set(self.calibration.bias) != set(task.domain(self.field)):
            calibrated_labels = ", ".join(self.calibration.bias)
            raise UsageError(
                f"the recipe calibrates the labels {calibrated_labels}, not {', '.join(task.domain(self.field))}"
            )
        for number, example in enumerate(self.examples.shown if self.examples else (), 1):
            try:
                task.spec.check_example(number, example)
            except ValueError as e:
                raise UsageError(f"the recipe's {e}") from e

    def document(self) -> dict[str, Any]:
        """Return the recipe as it is written to the file."""
        return self.model_dump(mode="json", exclude={"instructions"} if self.instructions is None else None)

    @field_serializer("examples")
    def _written(self, examples: ShownExamples | None) -> dict[str, Any] | None:
        # Without the defaults of each example, which would be most of the file.
        return None if examples is None else examples.model_dump(mode="json", exclude_defaults=True)

    def text(self) -> str:
        """Return the content of the file."""
        return as_yaml(self.document())


def as_yaml(document: Mapping[str, Any]) -> str:
    """Return a recipe as YAML."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


def today(task: Task, field: str, sampling: Sampling) -> Recipe:
    """Return the recipe that leaves the current task unchanged."""
    return Recipe(
        task=task.name,
        task_sha256=task.sha256,
        field=field,
        answers="auto",
        label_order="declared",
        orders=1,
        guidelines=False,
        **attributes(sampling, "temperature", "seed"),
    )


def read_recipe(path: Path) -> Recipe:
    """Read one judge's recipe from a file, which is untrusted.

    Raises BadInput, which names the wrong field, if the file is anything else.
    """
    document = document_of(path)
    if "panel" in document:
        raise BadInput(
            "this is a panel's recipe; pass the recipe of one judge, or run the panel: "
            + command("judge run TASK --recipe", path),
            path=str(path),
        )
    return validated(Recipe, document, path)


def document_of(path: Path) -> dict[str, Any]:
    """Return the content of a recipe file; only its first key is checked. Raises BadInput."""
    try:
        # Before parsing: a recipe may come from anybody, and a huge YAML file takes long to load.
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(f"not a recipe: the file is longer than {MOST_BYTES:,} bytes", path=str(path))
        # The safe loader: a tag in YAML could otherwise call any function.
        document = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError) as e:
        raise BadInput(f"not a recipe: {' '.join(str(e).split())[:200]}", path=str(path)) from e
    except RecursionError as e:
        raise BadInput("not a recipe: nested too deeply", path=str(path)) from e
    if not isinstance(document, dict) or document.get("recipe") != VERSION:
        raise BadInput(
            f"not a recipe: it must begin with 'recipe: {VERSION}' (judge improve writes one)", path=str(path)
        )
    return document


def validated(kind: type[Shape], document: Mapping[str, Any], path: Path) -> Shape:
    """Validate a document against a model. Raises BadInput, which names the first wrong field."""
    try:
        return kind.model_validate(document)
    except ValidationError as e:
        # The input is left out of the message, because it may contain anything.
        problems = e.errors(include_input=False, include_url=False, include_context=False)
        # A mistyped key comes first: what is then missing is only its consequence.
        first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
        where = ".".join(map(str, first["loc"]))[:100]
        raise BadInput(_describe_problem(first["type"], first["msg"]), path=str(path), field=where) from e


def _describe_problem(kind: str, message: str) -> str:
    if kind == "missing":
        return "this key is missing"
    return "this is not a key of a recipe" if kind == "extra_forbidden" else " ".join(message.split())[:200]
