"""judge panel: combine several judges into one, which is stored as a run.

This module also implements `judge run --recipe FILE` for the recipe of a panel.
"""

import sys
from collections.abc import Sequence
from typing import Any

import click

from judge.asking import panel as panels
from judge.asking import run as asking
from judge.asking.judges import field_of
from judge.cli.estimate import estimate
from judge.cli.progress import Progress
from judge.cli.run_result import exit_code, finish
from judge.cli.score_options import get_interval_settings, interval_options
from judge.cli.task_options import field_option, reference_option, whole_runs
from judge.commands import command
from judge.console import TO_WRITE, db_option, emit_json, json_option, note, notes, print_lines
from judge.document.cells import format_dollars
from judge.document.terminal import show
from judge.errors import UsageError
from judge.files import RECIPE, format_of
from judge.run_options import RunOptions
from judge.store import Store
from judge.types import Measure


@click.command()
@click.argument("task_name", metavar="TASK")
@click.option(
    "--run",
    "runs",
    multiple=True,
    required=True,
    metavar="RUN",
    help="Combine this run with the others. Use this option at least twice.",
)
@click.option(
    "--method",
    type=click.Choice(["majority", "mean", "dawid-skene"]),
    default="majority",
    help="Rule for combining labels. 'mean' averages the (calibrated) probabilities.",
)
@click.option(
    "--recipe",
    type=TO_WRITE,
    help="Also write the panel as a recipe for judge run --recipe FILE.",
)
@field_option
@reference_option
@interval_options
@db_option
@json_option
@whole_runs
def panel(task_name: str, **options: Any) -> None:
    """Combine several judges into one, without calling a model.

    \b
    judge panel stance --run 01K9ZX3M --run 01K9ZY7Q --run 01K9ZZ2A
    judge panel stance --method mean --run 01K9ZX3M --run 01K9ZY7Q --recipe panel.yaml

    The members are runs of the task, including calibrated runs. If the votes are tied, the unit has no label.
    A member does not vote on units that it has not labelled.

    The panel is stored as a run. To score it, name it in judge score --run or judge score compare. Its cost,
    which judge compare shows, is the sum of its members' costs.
    """
    from judge.derive import name_of
    from judge.derive.pool import agreement
    from judge.derive.pool_document import as_document
    from judge.improve.panel import from_runs
    from judge.labels.annotators import make_short_names
    from judge.store import export

    target = options["recipe"]
    if target is not None:
        format_of(target, RECIPE)
    # Checked before the panel is stored, because the command would otherwise be half done.
    if target is not None and not target.resolve().parent.is_dir():
        raise UsageError(f"{target}: its folder does not exist")
    with Store.open(options["db"], create=False) as store:
        task = export.find_task(store, task_name)
        field, method = field_of(task, options["field"]), options["method"]
        made = panels.pool_runs(store, options["runs"], field, method, task.task_id)
        pool_table, pooled, run_id = made.table, made.pooled, made.run_id
        recipe = None if target is None else from_runs(pool_table, field, method)
        kept = (run_id, name_of(pool_table, method), pool_table.task.name)
        # Two runs of the same model need more than its name.
        names = [
            *make_short_names(
                [*((r["run_id"], r["model"], r["task"]) for r in pool_table.runs), kept]
            ).values()
        ]
        word, rows, remarks = agreement(
            pool_table, field, pooled, run_id, options["reference"], **get_interval_settings(options)
        )
    if recipe is not None:
        target.write_text(recipe.text(), encoding="utf-8")
        remarks.append(
            f"recipe: {target}; add the members' provider options (--option) yourself, under 'option'"
        )
    if options["as_json"]:
        emit_json("panel", document(made, word, rows, remarks))
        return
    show(as_document(pooled, pool_table.task.name, field, method, names, word, rows))
    notes([*pooled.notes, *remarks])
    outcome = "already in the study as" if made.known else "stored as"
    print(f"{outcome} run {run_id}; next: {command('judge runs show', run_id)}")


def document(
    made: panels.PanelOutcome, word: str | None, rows: Sequence[Measure], remarks: Sequence[str]
) -> dict[str, Any]:
    """Return the panel as a JSON document."""
    pooled = made.pooled
    return {
        "run_id": made.run_id, "known": made.known, "task": made.table.task.name, "field": made.field, "method": made.method,
        "members": list(made.table.run_ids), "reference": word, "units": int(pooled.only.sum()), "tied": pooled.n_tied,
        "labelled_by_all": pooled.n_full, "unanimous": pooled.unanimous,
        "agreement": [m.as_json() for m in rows], "notes": [*pooled.notes, *remarks],
    }  # fmt: skip


def run_panel(task_name: str, model: str | None, given: RunOptions, options: dict[str, Any]) -> int | None:
    """Run the members of a panel's recipe. Returns None if the recipe is for a single judge."""
    from judge.improve.panel import find

    assert given.recipe is not None
    recipe = find(given.recipe)
    if recipe is None:
        return None
    # Each member has its own model, and a batch is for one model.
    extra = [
        flag
        for flag, there in (("-m", model), ("--batch", options["batch"]), ("--offline", options["offline"]))
        if there
    ]
    if extra:
        raise UsageError(
            f"{', '.join(extra)}: cannot be used with a panel's recipe, which names its models and makes single calls"
        )
    with Store.open(options["db"], create=False) as store:
        members = panels.members(store, task_name, recipe, given)
        every = [asking.complete_asking(store, member, given) for member in members]
        if options["is_estimate"]:
            return max(estimate(store, member, options["as_json"]) for member in every)

        def ask(member: asking.Asking) -> asking.Ran:
            ran = asking.run(store, member, Progress(sys.stderr))
            if not options["as_json"]:
                note(f"member {member.plan.model}: run {ran.calibrated or ran.report.run_id}")
            return ran

        done, made = panels.run(store, recipe, every, ask)
        last = done[-1]
        then = asking.suggest_command(store, last)
    if made is None:
        return finish(last.plan, last.report, options, then)
    if options["as_json"]:
        emit_json("panel", document(made, None, [], []))
    else:
        n, pooled = int(made.pooled.only.sum()), made.pooled
        print_lines(
            f"run {made.run_id}: {recipe.method} of {len(done)} judges on {n:,} units of {recipe.task}"
        )
        print(f"all agree on {pooled.unanimous:,} of the {pooled.n_full:,} units that every member labelled")
        if any(ran.report.price is not None for ran in done):
            print(f"cost: {format_dollars(sum(ran.report.spent.cost for ran in done))}")
        print(f"next: {command('judge runs show', made.run_id)}")
        print(f"then: {then}")
    # The members often have the same remarks.
    for said in dict.fromkeys(
        [*(text for ran in done for text in ran.report.remarks(ran.plan)), *made.pooled.notes]
    ):
        note(f"note: {said}")
    return max(exit_code(ran.report) for ran in done)
