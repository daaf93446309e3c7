"""A recipe: how a task is asked, with which examples, and how its probabilities are read. A small YAML file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as default
from pathlib import Path
from typing import Any

import yaml

from judge.errors import BadInput, UsageError
from judge.prompts.load import Task
from judge.prompts.spec import Example
from judge.runner.plan import Plan
from judge.store.study import canonical
from judge.types import Json

VERSION = 1
KEYS = {
    "recipe", "task", "task_sha256", "field", "answers", "label_order", "orders", "guidelines", "examples", "calibration",
    "made",
}  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """How a judge is asked beside its task's file. `calibration`: method, temperature, bias and what they were fitted
    on; `rule` says how `examples` were chosen.
    """

    task: str
    sha256: str
    field: str
    answers: str = "auto"
    label_order: str = "declared"
    orders: int = 1
    guidelines: bool = False
    rule: str = ""
    examples: tuple[Example, ...] = ()
    calibration: Mapping[str, Json] | None = None
    made: Mapping[str, Json] = default(default_factory=dict)

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
        if self.examples:
            told.append(f"{len(self.examples)} examples ({self.rule})")
        if self.calibration:
            told.append(f"calibrated by {self.calibration['method']}")
        return ", ".join(told) or "as it is today"

    def applied(self, plan: Plan) -> Plan:
        """The plan asked by this recipe. Raises UsageError for another task or another text of it."""
        task = plan.task
        if task.name != self.task or task.sha256 != self.sha256:
            raise UsageError(f"the recipe is for {self.task} with another text than {task.name} has here")
        extra = dict(plan.extra)
        if self.guidelines:
            task = task.with_guidelines()
        if self.examples:
            task = task.showing(list(self.examples))
            # The items alone do not say which of their passages were shown.
            text = canonical([example.model_dump(mode="json") for example in self.examples])
            extra["recipe_examples"] = hashlib.sha256(text.encode()).hexdigest()[:16]
        sampling = replace(
            plan.sampling, answers=self.answers, label_order=self.label_order, orders=self.orders
        )
        return replace(plan, task=task, sampling=sampling, extra=extra)

    def text(self) -> str:
        """The file."""
        document: dict[str, Any] = {
            "recipe": VERSION,
            "task": self.task,
            "task_sha256": self.sha256,
            "field": self.field,
            "answers": self.answers,
            "label_order": self.label_order,
            "orders": self.orders,
            "guidelines": self.guidelines,
            "examples": None
            if not self.examples
            else {
                "rule": self.rule,
                "shown": [e.model_dump(mode="json", exclude_defaults=True) for e in self.examples],
            },
            "calibration": None if self.calibration is None else dict(self.calibration),
            "made": dict(self.made),
        }
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


def today(task: Task, field: str) -> Recipe:
    """The task as it is asked today."""
    return Recipe(task.name, task.sha256, field)


def read(path: Path) -> Recipe:
    """A recipe off a file. Raises BadInput for anything else."""
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise BadInput(f"not a recipe: {' '.join(str(e).split())[:200]}", path=str(path)) from e
    if not isinstance(found, dict) or found.get("recipe") != VERSION:
        raise BadInput(
            f"not a recipe: it must begin with 'recipe: {VERSION}' (judge improve writes one)", path=str(path)
        )
    if unknown := sorted(set(map(str, found)) - KEYS):
        raise BadInput("no key of a recipe", path=str(path), field=unknown[0])
    try:
        shown = found.get("examples") or {"rule": "", "shown": []}
        made = Recipe(
            str(found["task"]),
            str(found["task_sha256"]),
            str(found["field"]),
            str(found["answers"]),
            str(found["label_order"]),
            int(found["orders"]),
            bool(found["guidelines"]),
            str(shown["rule"]),
            tuple(Example.model_validate(example) for example in shown["shown"]),
            _calibration(found.get("calibration")),
            dict(found.get("made") or {}),
        )
    except (KeyError, TypeError, ValueError) as e:
        told = f"'{e.args[0]}' is missing" if isinstance(e, KeyError) else " ".join(str(e).split())[:200]
        raise BadInput(f"not a recipe: {told}", path=str(path)) from e
    if made.answers not in ("auto", "codes", "words", "json"):
        raise BadInput(
            f"'{made.answers}' is none of auto, codes, words, json", path=str(path), field="answers"
        )
    return made


def _calibration(found: Any) -> Mapping[str, Json] | None:
    if found is None:
        return None
    fitted = found["fitted"]
    return {
        "method": str(found["method"]),
        "temperature": float(found["temperature"]),
        "bias": {str(label): float(b) for label, b in found["bias"].items()},
        "fitted": {
            "reference": str(fitted["reference"]),
            "units": int(fitted["units"]),
            "sha256": str(fitted["sha256"]),
            "questions": [str(q) for q in fitted["questions"]],
        },
    }
