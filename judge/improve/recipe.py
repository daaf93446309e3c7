"""A recipe: how a task is asked, with which examples, and how its probabilities are read. A small YAML file."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as default
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge.errors import BadInput, UsageError
from judge.prompts.load import Task
from judge.prompts.spec import Example
from judge.runner.plan import Plan
from judge.runner.requests import Sampling
from judge.store.study import canonical
from judge.types import Json, attributes

VERSION = 1
Shape = TypeVar("Shape", bound=BaseModel)
MOST_BYTES = 16_000_000
"""Of a file; the questions that a calibration was fitted on are the longest part of one."""
MOST_EXAMPLES = 100
MOST_INSTRUCTIONS = 8_000
"""Characters of rewritten instructions."""


@dataclass(frozen=True)
class Recipe:
    """How a judge is asked beside its task's file. `calibration`: method, temperature, bias and what they were fitted
    on; `rule` says how `examples` were chosen, and with `nearest` only so many of each label are shown, the nearest to a
    unit by BM25; `instructions` stand in place of the task's own. `temperature` and `seed` are those of sampling.
    """

    task: str
    task_sha256: str
    field: str
    answers: str = "auto"
    label_order: str = "declared"
    orders: int = 1
    guidelines: bool = False
    rule: str = ""
    examples: tuple[Example, ...] = ()
    nearest: int | None = None
    instructions: str | None = None
    calibration: Mapping[str, Json] | None = None
    made: Mapping[str, Json] = default(default_factory=dict)
    temperature: float | None = 0.0
    seed: int | None = None

    @property
    def words(self) -> str:
        """What it changes of the task as it is, in words."""
        told = []
        if self.answers != "auto":
            told.append(f"answers as {self.answers}")
        if self.label_order != "declared":
            told.append(f"labels {self.label_order}")
        if self.orders > 1:
            told.append(f"{self.orders} label orders averaged")
        if self.guidelines:
            told.append("guidelines shown")
        if self.instructions is not None:
            told.append("instructions rewritten")
        if self.examples:
            told.append(f"{len(self.examples)} examples ({self.rule})" if self.nearest is None else self.rule)
        if self.calibration:
            told.append(f"calibrated by {self.calibration['method']}")
        return ", ".join(told) or "as it is today"

    def applied(self, plan: Plan) -> Plan:
        """The plan asked by this recipe. Raises UsageError for another task, another text of it, and what does not fit it."""
        task = plan.task
        if task.name != self.task or task.sha256 != self.task_sha256:
            raise UsageError(f"the recipe is for {self.task} with another text than {task.name} has here")
        self._check(task)
        extra = dict(plan.extra)
        if self.guidelines:
            task = task.with_guidelines()
        if self.instructions is not None:
            task = task.with_instructions(self.instructions)
        if self.examples:
            task = task.showing(list(self.examples), self.nearest)
            # The items alone do not say which of their passages were shown.
            text = canonical([example.model_dump(mode="json") for example in self.examples])
            extra["recipe_examples"] = hashlib.sha256(text.encode()).hexdigest()[:16]
        sampling = replace(
            plan.sampling,
            answers=self.answers,
            label_order=self.label_order,
            orders=self.orders,
            temperature=self.temperature,
            seed=self.seed,
        )
        return replace(plan, task=task, sampling=sampling, extra=extra)

    def _check(self, task: Task) -> None:
        """Raises UsageError for a field, labels or examples that are not the task's."""
        if self.field not in task.fields:
            raise UsageError(
                f"the recipe is about the field '{self.field}'; {task.name} has {', '.join(task.fields)}"
            )
        if self.calibration is not None and set(self.calibration["bias"]) != set(task.domain(self.field)):
            told = ", ".join(self.calibration["bias"])
            raise UsageError(
                f"the recipe calibrates the labels {told}, not {', '.join(task.domain(self.field))}"
            )
        for number, example in enumerate(self.examples, 1):
            try:
                task.spec.check_example(number, example)
            except ValueError as e:
                raise UsageError(f"the recipe's {e}") from e

    def document(self) -> dict[str, Any]:
        """What stands in the file."""
        return {
            "recipe": VERSION,
            **attributes(
                self, "task", "task_sha256", "field", "answers", "label_order", "orders", "guidelines"
            ),
            **({} if self.instructions is None else {"instructions": self.instructions}),
            **attributes(self, "temperature", "seed"),
            "examples": None
            if not self.examples
            else {
                "rule": self.rule,
                **({} if self.nearest is None else {"nearest": self.nearest}),
                "shown": [e.model_dump(mode="json", exclude_defaults=True) for e in self.examples],
            },
            "calibration": None if self.calibration is None else dict(self.calibration),
            "made": dict(self.made),
        }

    def text(self) -> str:
        """The file."""
        return as_yaml(self.document())


def as_yaml(document: Mapping[str, Any]) -> str:
    """A recipe's file."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


def today(task: Task, field: str, sampling: Sampling) -> Recipe:
    """The task as it is asked today."""
    return Recipe(task.name, task.sha256, field, temperature=sampling.temperature, seed=sampling.seed)


def read(path: Path) -> Recipe:
    """A judge's recipe off a file, which anybody may have written. Raises BadInput, with the field, for anything else."""
    found = document_of(path)
    if "panel" in found:
        raise BadInput(
            "a panel's recipe, which judge run --recipe takes; here it is one judge's", path=str(path)
        )
    return recipe_of(found, path)


def document_of(path: Path) -> dict[str, Any]:
    """What stands in a recipe's file, unchecked but for its beginning. Raises BadInput."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(f"not a recipe: longer than {MOST_BYTES:,} bytes", path=str(path))
        found = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError) as e:
        raise BadInput(f"not a recipe: {' '.join(str(e).split())[:200]}", path=str(path)) from e
    except RecursionError as e:
        raise BadInput("not a recipe: nested too deep", path=str(path)) from e
    if not isinstance(found, dict) or found.get("recipe") != VERSION:
        raise BadInput(
            f"not a recipe: it must begin with 'recipe: {VERSION}' (judge improve writes one)", path=str(path)
        )
    return found


def validated(kind: type[Shape], found: Mapping[str, Any], path: Path) -> Shape:
    """A document as what it must be. Raises BadInput with the first field that is wrong."""
    try:
        return kind.model_validate(found)
    except ValidationError as e:
        # The input itself stays out of the message: it may be anything.
        every = e.errors(include_input=False, include_url=False, include_context=False)
        first = next((own for own in every if own["type"] == "extra_forbidden"), every[0])
        where = ".".join(map(str, first["loc"]))[:100]
        raise BadInput(_told(first["type"], first["msg"]), path=str(path), field=where) from e


def recipe_of(found: Mapping[str, Any], path: Path) -> Recipe:
    """A document as a recipe. Raises BadInput."""
    given = validated(_File, found, path)
    recipe = Recipe(**given.model_dump(exclude={"recipe", "examples"}))
    if (shown := given.examples) is None:
        return recipe
    return replace(recipe, rule=shown.rule, examples=tuple(shown.shown), nearest=shown.nearest)


def _told(kind: str, message: str) -> str:
    if kind == "missing":
        return "is missing"
    return "no key of a recipe" if kind == "extra_forbidden" else " ".join(message.split())[:200]


class RecipePart(BaseModel):
    """A part of a recipe's file: no key beside those named, each of its own type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class _Shown(RecipePart):
    rule: str
    nearest: int | None = Field(None, ge=1)
    shown: list[Example] = Field(min_length=1, max_length=MOST_EXAMPLES)


class _FittedOn(RecipePart):
    reference: str
    units: int = Field(ge=0)
    sha256: str
    questions: list[str]


class _Calibration(RecipePart):
    method: Literal["bias", "temperature", "batch"]
    temperature: float = Field(gt=0)
    bias: dict[str, float]
    fitted: _FittedOn


class _File(RecipePart):
    """What stands in the file, each key of its own type: "no" is no false, and 1.7 orders are none."""

    recipe: int
    task: str
    task_sha256: str
    field: str
    answers: Literal["auto", "codes", "words", "json"]
    label_order: str = Field(pattern=r"^(declared|reversed|shuffled:[0-9]{1,18})$")
    orders: int = Field(ge=1)
    guidelines: bool
    instructions: str | None = Field(None, min_length=1, max_length=MOST_INSTRUCTIONS)
    temperature: float | None = Field(0.0, ge=0)
    seed: int | None = None
    examples: _Shown | None = None
    calibration: _Calibration | None = None
    made: dict[str, str | int | float | bool | None] = {}
