"""A panel's recipe: several judges, how each is asked, and the rule that pools them. A small YAML or JSON file.

    recipe: 1
    task: stance.v1
    task_sha256: ...
    field: stance
    panel:
      method: majority
      members:
      - {model: openai/gpt-5-mini, recipe: stance.recipe.yaml}
      - {model: openai/qwen3, base_url: "http://127.0.0.1:8000/v1"}

A member's `recipe` is another recipe's file, beside this one, or such a file's content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as default
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from judge.derive import RunTable
from judge.errors import BadInput, UsageError
from judge.improve.recipe import VERSION, Recipe, RecipePart, as_yaml, document_of, read, recipe_of, validated
from judge.prompts.load import Task
from judge.store import derived
from judge.types import Json, attributes

MOST_MEMBERS = 100
TELLING = {
    "rationale",
    "examples",
    "relevant",
    "context",
    "system",
    "shown",
    "recipe_examples",
    "rewritten",
    "instructions",
}
"""Options of a run that a recipe made from it would not repeat."""


@dataclass(frozen=True)
class Member:
    """A judge of the panel: its model, how it is reached and called, and how it is asked (None: as the task is by itself)."""

    model: str
    recipe: Recipe | None = None
    base_url: str | None = None
    asked_as: str | None = None
    settings: Mapping[str, str] = default(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """What stands in the file."""
        return {
            "model": self.model,
            **({} if self.asked_as is None else {"as": self.asked_as}),
            **({} if self.base_url is None else {"base_url": self.base_url}),
            **({"option": dict(self.settings)} if self.settings else {}),
            **({} if self.recipe is None else {"recipe": self.recipe.document()}),
        }


@dataclass(frozen=True)
class PanelRecipe:
    """Several judges of one task that decide a field together, by majority, mean or dawid-skene."""

    task: str
    task_sha256: str
    field: str
    method: str
    members: tuple[Member, ...]

    def check(self, task: Task) -> None:
        """Raises UsageError for another task, another text of it, and a field that it does not have."""
        if task.name != self.task or task.sha256 != self.task_sha256:
            raise UsageError(f"the recipe is for {self.task} with another text than {task.name} has here")
        if self.field not in task.fields:
            raise UsageError(
                f"the recipe is about the field '{self.field}'; {task.name} has {', '.join(task.fields)}"
            )

    def text(self) -> str:
        """The file."""
        panel = {"method": self.method, "members": [member.document() for member in self.members]}
        told = {"recipe": VERSION, **attributes(self, "task", "task_sha256", "field")}
        return as_yaml({**told, "panel": panel})


def find(path: Path) -> PanelRecipe | None:
    """The panel of a recipe's file; None for one judge's recipe. Raises BadInput, with the field, for anything else."""
    found = document_of(path)
    if "panel" not in found:
        return None
    given = validated(_PanelFile, found, path)
    members = tuple(_member(own, path, n) for n, own in enumerate(given.panel.members))
    for n, own in enumerate(members):
        if any(replace(own, base_url=None) == replace(other, base_url=None) for other in members[:n]):
            raise BadInput(
                "the same judge twice: tell them apart by recipe, or name one with 'as'",
                path=str(path),
                field=f"panel.members.{n}",
            )
    return PanelRecipe(given.task, given.task_sha256, given.field, given.panel.method, members)


def _member(own: _MemberPart, path: Path, n: int) -> Member:
    recipe = None
    if isinstance(own.recipe, str):
        recipe = read(path.parent / own.recipe)
    elif own.recipe is not None:
        try:
            recipe = recipe_of(own.recipe, path)
        except BadInput as e:
            raise BadInput(e.reason, path=str(path), field=f"panel.members.{n}.recipe.{e.field}") from e
    settings = {name: str(value) for name, value in own.option.items()}
    return Member(own.model, recipe, own.base_url, own.asked_as, settings)


def of_runs(table: RunTable, field: str, method: str) -> PanelRecipe:
    """The panel that asks as these runs were asked. Raises UsageError for a run that cannot be asked again so."""
    members = tuple(_again(table, run, field) for run in table.runs)
    return PanelRecipe(table.task.name, table.task.sha256, field, method, members)


def _again(table: RunTable, run: Mapping[str, Json], field: str) -> Member:
    conn, name = table.store.conn, str(run["run_id"])
    made = derived.stored(conn, name)
    if made is not None:
        if made["kind"] != "calibrated" or "bias" not in made["parameters"]:
            raise UsageError(
                f"run {name} is {made['kind']} by {made['method']}: a panel's recipe asks, and calibrates"
            )
        cursor = conn.execute("SELECT * FROM runs WHERE run_id = ?", [made["parents"][0]["run"]])
        parent = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
        asked = _again(table, parent, field)
        fitted = made["fitted"] or {"reference": "", "units": 0, "sha256": ""}
        calibration = {
            "method": made["method"],
            "temperature": float(made["parameters"].get("temperature", 1.0)),
            "bias": {label: float(bias) for label, bias in made["parameters"]["bias"].items()},
            "fitted": {
                **{key: fitted[key] for key in ("reference", "units", "sha256")},
                "questions": sorted(derived.folds(conn, name)),
            },
        }
        assert asked.recipe is not None
        return replace(asked, recipe=replace(asked.recipe, calibration=calibration))
    options = json.loads(str(run["options"]))
    lacking = sorted(TELLING & options.keys())
    if lacking or "answers" not in options or run["task"] != table.task.name:
        why = (
            f"has {', '.join(lacking)}"
            if lacking
            else "was not asked of this version of the task by judge run"
        )
        raise UsageError(f"run {name} {why}: write its member by hand (docs: Trust)")
    recipe = Recipe(
        table.task.name,
        table.task.sha256,
        field,
        answers=options["answers"],
        label_order=options["label_order"],
        orders=options.get("orders", 1),
        guidelines=options.get("guidelines") == "shown",
        temperature=options["temperature"],
        seed=options["seed"],
    )
    url = options.get("base_url")
    named = options.get("asked_as")
    # An address may carry a password, which stands in no file of ours.
    return Member(
        str(named or run["model"]),
        recipe,
        None if url is None or "@" in url else url,
        str(run["model"]) if named else None,
    )


class _MemberPart(RecipePart):
    model: str = Field(pattern=r"^[^/\s]+/\S+$")
    asked_as: str | None = Field(None, alias="as", min_length=1)
    base_url: str | None = None
    option: dict[str, str | int | float] = Field(default_factory=dict)
    recipe: str | dict[str, Any] | None = None


class _PanelPart(RecipePart):
    method: Literal["majority", "mean", "dawid-skene"]
    members: list[_MemberPart] = Field(min_length=2, max_length=MOST_MEMBERS)


class _PanelFile(RecipePart):
    recipe: int
    task: str
    task_sha256: str
    field: str
    panel: _PanelPart
