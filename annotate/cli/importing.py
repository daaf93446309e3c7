"""annotate import: labels made elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from judge.console import db_option, emit_json, json_option, note
from judge.errors import Exit, UsageError


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--batch", help="Accept only units and labels of this batch.")
@click.option("--task", "task_name", help="Accept only labels of this task.")
@click.option("--unit", default="unit", show_default=True, help="Column with the unit's id.")
@click.option("--label", default="label", show_default=True, help="Column with the label.")
@click.option("--annotator-column", default="annotator", show_default=True, help="Column with who labelled.")
@click.option("--field-column", default="field", show_default=True, help="Column with the question.")
@click.option("--as", "person", help="Who labelled, for all rows.")
@click.option("--field", help="The question, for all rows.")
@db_option
@json_option
def import_(
    path: Path,
    batch: str | None,
    task_name: str | None,
    unit: str,
    label: str,
    annotator_column: str,
    field_column: str,
    person: str | None,
    field: str | None,
    db: Path,
    as_json: bool,
) -> int:
    """Import a table of people's labels (CSV, TSV, JSONL): one row a unit, question and annotator.

    \b
    annotate import labels.csv --batch pilot
    annotate import ours.csv --unit id --label verdict --field stance --as alice

    A file is one transaction; importing it again changes nothing.
    """
    from annotate.importing import Columns, import_labels
    from annotate.store import open_study
    from judge.prompts import load_task

    if batch and task_name:
        raise UsageError("--batch says the task already: leave --task out")
    columns = Columns(unit, label, None if person else annotator_column, None if field else field_column)
    task = load_task(task_name) if task_name else None
    with open_study(db) as store:
        done = import_labels(
            store, path, columns, annotator=person or "", field_name=field or "", task=task, batch=batch
        )
    if as_json:
        emit_json(
            "labels-import", {"new": dict(done.new), "unchanged": done.unchanged, "units": len(done.units)}
        )
    else:
        told = ", ".join(f"{who} {n}" for who, n in done.new.items()) or "none"
        note(f"{path}: new labels: {told}; {done.unchanged} were there already")
    return Exit.DONE
