"""judge panel: several judges as one, kept as a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judge.asking.judges import field_of
from judge.cli.chosen import field_option, reference_option, whole_runs
from judge.cli.scoring import how, interval_options
from judge.console import db_option, emit_json, json_option, note, table, visible
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.types import Measure


@click.command()
@click.argument("task_name", metavar="TASK")
@click.option("--run", "runs", multiple=True, required=True, metavar="RUN", help="A member; twice or more.")
@click.option(
    "--method",
    type=click.Choice(["majority", "mean", "dawid-skene"]),
    default="majority",
    show_default=True,
    help="mean: of the label probabilities, best of calibrated members.",
)
@field_option
@reference_option
@interval_options
@db_option
@json_option
@whole_runs
def panel(task_name: str, **options: Any) -> int:
    """Let several judges decide together; the panel is a judge of its own, made without a call.

    \b
    judge panel stance --run 01K9ZX3M --run 01K9ZY7Q --run 01K9ZZ2A
    judge panel stance --method mean --run 01K9ZX3M --run 01K9ZY7Q

    Members are runs of the task, calibrated ones too. A tie has no label, and a member without a label on a unit has no
    say there. judge score --judges majority votes in the same way; judge score --run PANEL and score compare read the
    panel itself. A panel's members cost what they cost together: judge compare shows it.
    """
    from judge import derive
    from judge.derive.pool import agreement, pool
    from judge.labels.scope import shown_names
    from judge.store import Store, export

    with Store.open(options["db"], create=False) as store:
        task = export.known_task(store, task_name)
        field = field_of(task, options["field"])
        found = derive.read(store, options["runs"], field)
        strangers = [run["run_id"] for run in found.runs if run["task"].rpartition(".v")[0] != task.task_id]
        if strangers:
            raise UsageError(f"run {strangers[0]} is not one of {task.task_id}")
        method = options["method"]
        pooled = pool(found, field, method)
        run_id, known = derive.keep(
            store,
            found,
            "pooled",
            method,
            {field: pooled.made},
            parameters=pooled.parameters,
            only=pooled.only,
        )
        kept = (run_id, derive.name_of(found, method), found.task.name)
        names = [*shown_names([*((r["run_id"], r["model"], r["task"]) for r in found.runs), kept]).values()]
        word, rows, told = agreement(found, field, pooled, run_id, options["reference"], **how(options))
    if options["as_json"]:
        document = {
            "run_id": run_id, "known": known, "task": found.task.name, "field": field, "method": method,
            "members": list(found.run_ids), "reference": word, "units": int(pooled.only.sum()), "tied": pooled.n_tied,
            "labelled_by_all": pooled.n_full, "unanimous": pooled.unanimous,
            "agreement": [m.as_json() for m in rows], "notes": [*pooled.notes, *told],
        }  # fmt: skip
        emit_json("panel", document)
        return Exit.DONE
    n = int(pooled.only.sum())
    print(visible(f"{method} of {len(names) - 1} judges on {n:,} units of {found.task.name}, field {field}"))
    print(
        f"all agree on {pooled.unanimous:,} of the {pooled.n_full:,} units that every member labelled"
        + (f"; {pooled.n_tied:,} units are tied and have no label" if method == "majority" else "")
    )
    if rows:
        head = ["judge", f"{_name(rows[0])} with {word}", "interval", "units", "questions", "coverage"]
        print("\n" + table(head, [_row(name, m) for name, m in zip(names, rows, strict=True)]) + "\n")
    for text in (*pooled.notes, *told):
        note(f"note: {text}")
    there = "the study has it already, as" if known else "kept as"
    print(f"{there} run {run_id}; next: judge runs show {run_id} -d {options['db']}")
    return Exit.DONE


def _name(m: Measure) -> str:
    return m.measure + (f" ({m.weights})" if m.weights else "")


def _row(name: str, m: Measure) -> list[Any]:
    interval = "" if m.low is None else f"{m.low:.3f} … {m.high:.3f}"
    value = "undefined" if m.value is None else f"{m.value:.3f}"
    return [name, value, interval, m.n_units, m.n_clusters, m.coverage]
