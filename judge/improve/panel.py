"""The recipe of a panel: several judges, their settings, and the rule that pools their labels, in a small YAML or JSON file.

    recipe: 1
    task: stance.v2
    task_sha256: ...
    field: stance
    panel:
      method: majority
      members:
      - {model: openai/gpt-5-mini, recipe: stance.recipe.yaml}
      - {model: openai/qwen3, base_url: "http://127.0.0.1:8000/v1"}

The `recipe` of a member is either the path of a recipe file, relative to this file, or the content of such a file.
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
from judge.improve import recipe as recipes
from judge.improve.recipe import Recipe, RecipePart
from judge.prompts.load import Task
from judge.store import derived
from judge.store.listing import dicts
from judge.types import Json, attributes

MOST_MEMBERS = 100
# Options of a run that a recipe cannot contain. Without them, the member would be a different judge.
NOT_IN_RECIPES = {
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


@dataclass(frozen=True)
class Member:
    """A judge in the panel: its model, server, call settings and recipe. Without a recipe, it uses the unchanged task."""

    model: str
    recipe: Recipe | None = None
    base_url: str | None = None
    asked_as: str | None = None
    settings: Mapping[str, str] = default(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the member's entry in the recipe file."""
        return {
            "model": self.model,
            **({} if self.asked_as is None else {"as": self.asked_as}),
            **({} if self.base_url is None else {"base_url": self.base_url}),
            **({"option": dict(self.settings)} if self.settings else {}),
            **({} if self.recipe is None else {"recipe": self.recipe.document()}),
        }


@dataclass(frozen=True)
class PanelRecipe:
    """Several judges of a task, whose labels for a field are pooled by majority, mean or dawid-skene."""

    task: str
    task_sha256: str
    field: str
    method: str
    members: tuple[Member, ...]

    def check(self, task: Task) -> None:
        """Raise UsageError if the recipe is for a different task or task text, or if the task lacks the field."""
        if task.name != self.task or task.sha256 != self.task_sha256:
            raise UsageError(
                f"this recipe was made for {self.task}, but the text of {task.name} in this study is different"
            )
        if self.field not in task.fields:
            raise UsageError(
                f"the recipe is for the field '{self.field}', but {task.name} has the fields {', '.join(task.fields)}"
            )

    def text(self) -> str:
        """Return the panel's recipe as YAML."""
        panel = {"method": self.method, "members": [member.document() for member in self.members]}
        head = {"recipe": recipes.VERSION, **attributes(self, "task", "task_sha256", "field")}
        return recipes.as_yaml({**head, "panel": panel})


def find(path: Path) -> PanelRecipe | None:
    """Return the panel in a recipe file, or None if the file is a recipe for a single judge.

    Raises BadInput, which names the invalid field, if the file is not a recipe.
    """
    document = recipes.document_of(path)
    if "panel" not in document:
        return None
    panel_file = recipes.validate(_PanelFile, document, path)
    members = tuple(_member(member_part, path, n) for n, member_part in enumerate(panel_file.panel.members))
    for n, member_part in enumerate(members):
        # The same judge on two servers makes the same errors, which would count twice in the vote.
        if any(replace(member_part, base_url=None) == replace(other, base_url=None) for other in members[:n]):
            raise BadInput(
                "the same judge occurs twice; use different recipes, or give one of them another name with 'as'",
                path=str(path),
                field=f"panel.members.{n}",
            )
    return PanelRecipe(
        panel_file.task, panel_file.task_sha256, panel_file.field, panel_file.panel.method, members
    )


def _member(part: _MemberPart, path: Path, n: int) -> Member:
    recipe = None
    if isinstance(part.recipe, str):
        recipe = recipes.read_recipe(path.parent / part.recipe)
    elif part.recipe is not None:
        try:
            recipe = recipes.validate(Recipe, part.recipe, path)
        except BadInput as e:
            raise BadInput(e.reason, path=str(path), field=f"panel.members.{n}.recipe.{e.field}") from e
    settings = {name: str(value) for name, value in part.option.items()}
    return Member(part.model, recipe, part.base_url, part.asked_as, settings)


def from_runs(table: RunTable, field: str, method: str) -> PanelRecipe:
    """Return the recipe of a panel whose members have the settings of these runs.

    Raises UsageError if a run cannot be reproduced from a recipe.
    """
    members = tuple(_repeat_member(table, run, field) for run in table.runs)
    return PanelRecipe(table.task.name, table.task.sha256, field, method, members)


def _repeat_member(table: RunTable, run: Mapping[str, Json], field: str) -> Member:
    conn, name = table.store.conn, str(run["run_id"])
    made = derived.read_derivation(conn, name)
    if made is not None:
        if made["kind"] != "calibrated" or "bias" not in made["parameters"]:
            raise UsageError(
                f"run {name} is {made['kind']} by {made['method']}, but the recipe of a panel can only contain judged and "
                "calibrated runs"
            )
        [parent] = dicts(conn, "SELECT * FROM runs WHERE run_id = ?", [made["parents"][0]["run"]])
        of_parent = _repeat_member(table, parent, field)
        fitted = made["fitted"] or {"reference": "", "units": 0, "sha256": ""}
        facts = {key: fitted[key] for key in ("reference", "units", "sha256")}
        calibration = recipes.RecipeCalibration(
            method=made["method"],
            temperature=float(made["parameters"].get("temperature", 1.0)),
            bias={label: float(bias) for label, bias in made["parameters"]["bias"].items()},
            fitted=recipes.CalibrationFit(**facts, questions=sorted(derived.folds(conn, name))),
        )
        assert of_parent.recipe is not None
        return replace(of_parent, recipe=of_parent.recipe.model_copy(update={"calibration": calibration}))
    options = json.loads(str(run["options"]))
    unsupported = sorted(NOT_IN_RECIPES & options.keys())
    # An imported run has no answer mode, and its calls cannot be repeated.
    if unsupported or "answers" not in options or run["task"] != table.task.name:
        reason = (
            f"has {', '.join(unsupported)}"
            if unsupported
            else "is not a judge run of this version of the task"
        )
        raise UsageError(
            f"run {name} {reason}, so it cannot be written to a recipe: write this member by hand (see the Trust page in the docs)"
        )
    recipe = Recipe(
        task=table.task.name,
        task_sha256=table.task.sha256,
        field=field,
        answers=options["answers"],
        label_order=options["label_order"],
        orders=options.get("orders", 1),
        guidelines=options.get("guidelines") == "shown",
        temperature=options["temperature"],
        seed=options["seed"],
    )
    url = options.get("base_url")
    named = options.get("asked_as")
    # An address may contain a password, which must not be written to a file.
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
