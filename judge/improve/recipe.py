"""A recipe: how a task is presented to a judge, with examples and a calibration. It is stored as a small YAML file."""

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
from judge.prompts.strict_yaml import load_yaml
from judge.runner.plan import Plan
from judge.runner.requests import Sampling
from judge.store.study import canonical
from judge.types import attributes

VERSION = 1
Shape = TypeVar("Shape", bound=BaseModel)
# The longest part of a file is the list of questions that a calibration was fitted on.
MOST_BYTES = 16_000_000
MOST_EXAMPLES = 100
MOST_INSTRUCTIONS = 8_000
"""Maximum length of rewritten instructions, in characters."""


class RecipePart(BaseModel):
    """The base class for parts of a recipe file. Unknown keys and values of the wrong type are rejected."""

    # Strict, so that "no" is not converted to false, and 1.7 or true is not converted to a whole number.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ShownExamples(RecipePart):
    """Few-shot examples, and the `rule` by which they were chosen.

    If `nearest` is set, it is the number of examples shown per label. For each unit, the nearest examples by BM25 are
    shown.
    """

    rule: str
    nearest: int | None = Field(default=None, ge=1)
    shown: list[Example] = Field(min_length=1, max_length=MOST_EXAMPLES)


class CalibrationFit(RecipePart):
    """A description of the labels that a calibration was fitted on."""

    reference: str
    units: int = Field(ge=0)
    sha256: str
    questions: list[str]


class RecipeCalibration(RecipePart):
    """The parameters of a calibration, and the labels that they were fitted on."""

    method: Literal["bias", "temperature", "batch"]
    temperature: float = Field(gt=0)
    bias: dict[str, float]
    fitted: CalibrationFit


class Recipe(RecipePart):
    """The settings with which a judge runs a task, in addition to the task file.

    `instructions` replaces the instructions of the task. `temperature` and `seed` control sampling. `made` contains the
    evidence from a search.
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
        """This recipe without its calibration."""
        return self.model_copy(update={"calibration": None})

    @property
    def words(self) -> str:
        """A description of the differences from the unchanged task."""
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

    def apply_to(self, plan: Plan) -> Plan:
        """Return the plan with the changes of this recipe.

        Raises UsageError if the recipe is for a different task or task text, or if it does not fit the plan.
        """
        task = plan.task
        # The evidence for a recipe holds only for the task text that it was made with.
        if task.name != self.task or task.sha256 != self.task_sha256:
            raise UsageError(
                f"this recipe was made for {self.task}, but the text of {task.name} is different; use the task file that the recipe was made for"
            )
        self._check(task)
        extra = dict(plan.extra)
        if self.guidelines:
            task = task.with_guidelines()
        if self.instructions is not None:
            task = task.with_instructions(self.instructions)
        if self.examples:
            task = task.showing(self.examples.shown, self.examples.nearest)
            # The items do not identify the passages that were shown, so the identity of the run includes a hash of the examples.
            text = canonical([example.model_dump(mode="json") for example in self.examples.shown])
            extra["recipe_examples"] = hashlib.sha256(text.encode()).hexdigest()[:16]
        settings = attributes(self, "answers", "label_order", "orders", "temperature", "seed")
        sampling = replace(plan.sampling, **settings)
        return replace(plan, task=task, sampling=sampling, extra=extra)

    def _check(self, task: Task) -> None:
        """Raise UsageError if the task lacks the field, the labels or the examples of the recipe."""
        if self.field not in task.fields:
            raise UsageError(
                f"the recipe is for the field '{self.field}', but {task.name} has the fields {', '.join(task.fields)}"
            )
        if self.calibration is not None and set(self.calibration.bias) != set(task.domain(self.field)):
            calibrated_labels = ", ".join(self.calibration.bias)
            raise UsageError(
                f"the recipe calibrates the labels {calibrated_labels}, but the labels of '{self.field}' are {', '.join(task.domain(self.field))}"
            )
        for number, example in enumerate(self.examples.shown if self.examples else (), 1):
            try:
                task.spec.check_example(number, example)
            except ValueError as e:
                raise UsageError(f"the recipe's {e}") from e

    def document(self) -> dict[str, Any]:
        """Return the recipe as an object that can be written as YAML."""
        return self.model_dump(mode="json", exclude={"instructions"} if self.instructions is None else None)

    @field_serializer("examples")
    def _dump_examples(self, examples: ShownExamples | None) -> dict[str, Any] | None:
        # Default values of examples are omitted, because they would be most of the file.
        return None if examples is None else examples.model_dump(mode="json", exclude_defaults=True)

    def text(self) -> str:
        """Return the recipe file's text (YAML)."""
        return as_yaml(self.document())


def as_yaml(document: Mapping[str, Any]) -> str:
    """Return a recipe as YAML."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


def today(task: Task, field: str, sampling: Sampling) -> Recipe:
    """Return a recipe that does not change the task."""
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
    """Read the recipe of a single judge from an untrusted file.

    Raises BadInput, which names the invalid field, if the file does not contain such a recipe.
    """
    document = document_of(path)
    if "panel" in document:
        raise BadInput(
            "this is the recipe of a panel; pass the recipe of a single judge, or run the panel: "
            + command("judge run TASK --recipe", path),
            path=str(path),
        )
    return validate(Recipe, document, path)


def document_of(path: Path) -> dict[str, Any]:
    """Return the content of a recipe file. Only its first key is checked. Raises BadInput."""
    try:
        # A recipe is untrusted. A huge YAML file takes long to parse, and a panel's recipe could name a device without
        # an end, whose size is 0.
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise BadInput(f"not a recipe: the file is longer than {MOST_BYTES:,} bytes", path=str(path))
        document = load_yaml(content.decode("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError) as e:
        raise BadInput(f"not a recipe: {' '.join(str(e).split())[:200]}", path=str(path)) from e
    if not isinstance(document, dict) or document.get("recipe") != VERSION:
        raise BadInput(
            f"not a recipe: it must begin with 'recipe: {VERSION}' (judge improve writes such a file)",
            path=str(path),
        )
    return document


def validate(kind: type[Shape], document: Mapping[str, Any], path: Path) -> Shape:
    """Validate a document with a pydantic model. Raises BadInput, which names the first invalid field."""
    try:
        return kind.model_validate(document)
    except ValidationError as e:
        # The message does not contain the input, because it is untrusted.
        problems = e.errors(include_input=False, include_url=False, include_context=False)
        # Unknown keys are reported first, because a mistyped key also causes a missing field.
        first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
        where = ".".join(map(str, first["loc"]))[:100]
        raise BadInput(_describe_problem(first["type"], first["msg"]), path=str(path), field=where) from e


def _describe_problem(kind: str, message: str) -> str:
    if kind == "missing":
        return "this key is missing"
    return "unknown key in a recipe" if kind == "extra_forbidden" else " ".join(message.split())[:200]
