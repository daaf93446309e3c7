"""judge runs import: import the labels of a model that another program called, as a run of the study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge.cli.items import map_options, read_label_maps
from judge.cli.tasks import prompts_option
from judge.commands import command
from judge.console import TO_READ, db_option, emit_json, json_option, note, pairs, print_lines
from judge.errors import UsageError
from judge.store import Store

if TYPE_CHECKING:
    from judge.prompts.load import Task


@click.command("import")
@click.argument("table", type=TO_READ)
@click.option(
    "--model", required=True, metavar="NAME", help="Name of the judge, e.g. 'gpt-4o (May, zero-shot)'."
)
@click.option("--task", "task_name", help="Task of the labels (default: the only task in the study).")
@click.option("--field", help="Field of the labels, if the table has only some of the task's fields.")
@click.option("--dataset", help="Data set of the units, if several data sets have the same ids.")
@map_options(
    "NAME=COLUMN",
    "Read unit, label, probabilities, rationale, status or repeat from this column. Repeatable.",
    "Rename a label. Repeatable.",
)
@prompts_option
@db_option
@json_option
def import_(
    table: Path,
    model: str,
    task_name: str | None,
    field: str | None,
    dataset: str | None,
    maps: tuple[str, ...],
    label_maps: tuple[str, ...],
    prompts: Path | None,
    db: Path,
    as_json: bool,
) -> None:
    """Import the labels of another program as a run.

    TABLE is CSV, TSV, JSON, JSONL or Parquet, also compressed (.gz).

    \b
    judge runs import labels.csv --model gpt-4o --task stance
    judge runs import labels.csv --model gpt-4o --map unit=claim_id --map label=verdict --map-label stance:SUPPORTS=support

    Each row describes one unit. The 'unit' column contains the unit's id in the study or in the source data.
    The 'label' column, or a column with the field's name, contains the label. Optional columns are
    'probabilities' (JSON: {"yes": 0.8, "no": 0.2}), 'rationale', 'status' and 'repeat'.

    An empty label, 'refused', 'unparsed', 'truncated' and 'failed' are stored as missing labels. Either the
    whole table is imported, or nothing is. Importing it again adds nothing.
    """
    from judge.importers.judged import Given, import_run

    # Scores and reports name a judge by its model.
    if not model.strip():
        raise UsageError("--model must not be empty")
    with Store.open(db, create=False) as store:
        task = _task(store, task_name, prompts)
        given = Given(table, model, field, dataset, pairs(maps, "--map"), read_label_maps(label_maps))
        kept = import_run(store, task, given)
    counts = {str(status): n for status, n in kept.statuses.items()}
    if as_json:
        emit_json(
            "run_import",
            {
                "run_id": kept.run_id,
                "task": task.name,
                "model": model,
                "known": kept.known,
                "statuses": counts,
            },
        )
        return
    # The content of the table identifies the run, so a second import adds nothing.
    if kept.known:
        note(f"the study already has this table as run {kept.run_id}; nothing was added")
        return
    by_status = ", ".join(f"{n:,} {status}" for status, n in counts.items() if n)
    print_lines(f"run {kept.run_id}: {task.name}, {model}: {by_status}")


def _task(store: Store, name: str | None, prompts: Path | None) -> Task:
    from judge.store.export import find_task

    known = [row[0] for row in store.conn.execute("SELECT task FROM tasks ORDER BY task_id, version DESC")]
    if name is None and len(known) != 1:
        available = (
            f"the study has {', '.join(known)}"
            if known
            else f"to list the tasks: {command('judge tasks show')}"
        )
        raise UsageError(f"specify the task of the labels with --task; {available}")
    return find_task(store, name or known[0], prompts)
