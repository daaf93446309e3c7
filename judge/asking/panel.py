"""Panels of judges: pool stored runs, or run the members of a recipe one after the other and pool their labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from judge.asking.run import Asking, Ran, make_plan, provider_of, refuse_beside_recipe
from judge.errors import UsageError
from judge.run_options import RunOptions, list_decided
from judge.store import Store

if TYPE_CHECKING:
    from judge.derive import RunTable
    from judge.derive.pool import Pooled
    from judge.improve.panel import PanelRecipe


@dataclass(frozen=True, slots=True)
class PanelOutcome:
    """A panel that is stored as the run `run_id`. `known` is True if the study already had this run."""

    table: RunTable
    field: str
    method: str
    pooled: Pooled
    run_id: str
    known: bool


def pool_runs(store: Store, runs: Sequence[str], field: str, method: str, task_id: str) -> PanelOutcome:
    """Pool stored runs of a task and store the panel. Raises the same errors as `derive.read_runs` and `pool`."""
    from judge import derive
    from judge.derive.pool import pool

    table = derive.read_runs(store, runs, field)
    strangers = [run["run_id"] for run in table.runs if run["task"].rpartition(".v")[0] != task_id]
    if strangers:
        raise UsageError(f"run {strangers[0]} does not belong to {task_id}")
    pooled_labels = pool(table, field, method)
    run_id, known = derive.keep(
        store,
        table,
        "pooled",
        method,
        {field: pooled_labels.made},
        parameters=pooled_labels.parameters,
        only=pooled_labels.only,
    )
    return PanelOutcome(table, field, method, pooled_labels, run_id, known)


def members(store: Store, task_name: str, panel: PanelRecipe, options: RunOptions) -> list[Asking]:
    """Prepare the run of each member.

    Raises UsageError if an option is also set by the recipe, or if the recipe is for another task.
    """
    # A common option would overwrite what makes the members different judges.
    given = [
        *list_decided(options),
        *(["--base-url"] if options.base_url else []),
        *(["--as"] if options.asked_as else []),
    ]
    refuse_beside_recipe([*given, *(["--option"] if options.settings else [])])
    askings = []
    for member in panel.members:
        member_options = replace(
            options,
            recipe=None,
            base_url=(member.base_url,) if member.base_url else (),
            asked_as=member.asked_as,
            settings=member.settings,
        )
        plan = make_plan(task_name, member.model, member_options, store)
        panel.check(plan.task)
        if member.recipe is not None:
            plan = member.recipe.apply_to(plan)
        # The recipe names the server, so the user must have allowed it.
        askings.append(Asking(plan, provider_of(member.model, member_options, options.recipe), member.recipe))
    return askings


def run(
    store: Store, panel: PanelRecipe, askings: Sequence[Asking], ask: Callable[[Asking], Ran]
) -> tuple[list[Ran], PanelOutcome | None]:
    """Run the members one after the other with a shared budget, and pool their labels. `ask` executes each run.

    Return the result of each run, and the panel. If a run stops early, the panel is None, and the same call resumes the
    run. If a member fails on a unit, the member has no label for this unit, and the run continues.
    """
    done: list[Ran] = []
    for asking in askings:
        done.append(ask(replace(asking, plan=asking.plan.subtract_reports([ran.report for ran in done]))))
        report = done[-1].report
        # A panel over an unfinished run would pool other judges on some units than on others.
        if (
            report.interrupted
            or report.stopped
            or report.pending
            or not report.units
            or report.ending is not None
        ):
            return done, None
    runs = [ran.calibrated or ran.report.run_id for ran in done]
    return done, pool_runs(store, runs, panel.field, panel.method, askings[0].plan.task.task_id)
