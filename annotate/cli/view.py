"""annotate view: write units with their texts and labels as one page for a browser."""

from __future__ import annotations

from pathlib import Path

import click

from annotate.cli._named import with_study
from judge.commands import command
from judge.console import TO_WRITE, note
from judge.errors import UsageError
from judge.store import Store


@click.command()
@click.option("--task", "task_name", help="Task to show (default: the only task in the study).")
@click.option("--where", help="Show only units that match this SQL condition.")
@click.option("--batch", help="Show only the units of this batch.")
@click.option("-n", "limit", type=click.IntRange(1), help="Maximum number of units.")
@click.option(
    "--sample", type=click.IntRange(0), metavar="SEED", help="Draw the -n units at random with this seed."
)
@click.option(
    "--reveal",
    "readers",
    multiple=True,
    metavar="NAME",
    help="Show all labels to annotator NAME. Repeatable.",
)
@click.option("-o", "--output", type=TO_WRITE, required=True, help="HTML file to write.")
@with_study
def view(
    task_name: str | None,
    where: str | None,
    batch: str | None,
    limit: int | None,
    sample: int | None,
    readers: tuple[str, ...],
    output: Path,
    store: Store,
) -> None:
    """Write an HTML page with units, texts and labels.

    \b
    annotate view -o page.html
    annotate view --task stance --batch pilot -o pilot.html
    annotate view --where "dataset = 'faq'" -n 2000 --sample 1 -o page.html

    The page works offline. It has filters, a search field, keyboard navigation (j and k), and a link for each
    unit (#UNIT). It can contain at most 10,000 units.

    Labels are hidden for units that an annotator must still label blind. --reveal NAME shows all labels. If
    NAME labels these units later, the labels do not count as blind.
    """
    from annotate.view.units import view as units_of
    from judge.document.html import render_rows
    from judge.files import PAGE, format_of, whole_file
    from judge.store.export import read_stored_task
    from judge.store.label_rows import quote
    from judge.store.selection import Selection

    format_of(output, PAGE)
    if sample is not None and limit is None:
        raise UsageError("--sample requires -n, the number of units")
    task = read_stored_task(store, _task(store, task_name, batch))
    # A condition may end with a comment, which would swallow the bracket on the same line.
    conditions = [f"({where}\n)"] if where else []
    if batch is not None:
        conditions.append(f"unit_id IN (SELECT unit_id FROM batch_units WHERE batch = {quote(batch)})")
    # A selection is one text of SQL without parameters, so the name of the batch is quoted in it.
    selection = Selection(" AND ".join(conditions) or None, limit, sample)
    shown_units = units_of(store, task, selection, reveal_to=readers)
    with whole_file(output) as partial:
        partial.write_text(render_rows(shown_units.page), encoding="utf-8")
    note(f"wrote {output}: {len(shown_units.page.rows):,} units")
    if shown_units.withheld:
        note(
            f"labels of {shown_units.withheld:,} units are left out, because somebody must still label them blind "
            "(to show them to NAME and record this, use --reveal NAME)"
        )


def _task(store: Store, name: str | None, batch: str | None) -> str:
    """Return the name of the requested task, with its version. If the task is not found, a UsageError lists the
    tasks in the study.
    """
    known = [task for (task,) in store.conn.execute("SELECT task FROM tasks ORDER BY task_id, version DESC")]
    if batch is not None and name is None:
        row = store.conn.execute("SELECT task FROM batches WHERE batch = ?", [batch]).fetchone()
        if row is None:
            raise UsageError(f"no batch '{batch}'; to list the batches: {command('annotate batches show')}")
        return str(row[0])
    matches = [task for task in known if name is None or name in (task, task.rpartition(".")[0])]
    # The newest version comes first, for a name without a version. Without a name, there must be only one task.
    if not matches or (name is None and len(matches) > 1):
        listed = ", ".join(known) or f"none yet ({command('judge run TASK -m MODEL')})"
        raise UsageError(f"--task {name or 'NAME'} must be a task in the study; available: {listed}")
    return str(matches[0])
