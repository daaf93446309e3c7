"""judge runs: list runs, show a run and its agreement with gold labels, and export and import labels."""

from pathlib import Path
from typing import Any

import click

from judge import console
from judge.cli.run_import import import_
from judge.cli.run_result import MOST_OF_REPLY
from judge.cli.watch import watch
from judge.document import terminal
from judge.errors import UsageError
from judge.files import CSV, format_of
from judge.run_options import differences
from judge.store import Store


@click.group()
def runs() -> None:
    """List, show, watch, export and import runs."""


runs.add_command(import_)
runs.add_command(watch)


@runs.command("list")
@console.db_option
@console.json_option
def list_(db: Path, as_json: bool) -> None:
    """List the runs of the study."""
    from judge.store import export

    with Store.open(db, create=False) as store:
        rows = export.list_runs(store)
    # Runs of one task and model are told apart by their settings.
    alike: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        alike.setdefault((row["task"], row["model"]), []).append(row)
    for some in alike.values():
        settings = differences([(row["model"], row["options"]) for row in some])
        for row, words in zip(some, settings, strict=True):
            row["settings"] = words
    columns = [
        "run_id",
        "task",
        "model",
        "units",
        "ok",
        "unparsed",
        "refused",
        "truncated",
        "failed",
        "finished",
    ]
    if any(len(some) > 1 for some in alike.values()):
        # Shown only if they distinguish runs, because settings are long.
        columns.insert(3, "settings")
    terminal.emit_rows("runs", rows, columns, as_json)


@runs.command("show")
@click.argument("run_name", metavar="RUN", default="last")
@console.db_option
@console.json_option
def show(run_name: str, db: Path, as_json: bool) -> None:
    """Show the counts and labels of a run.

    If there are gold labels, the command also shows the agreement with them.

    \b
    judge runs show
    judge runs show 01K9ZX3M
    """
    from judge.labels.origin import describe_origin
    from judge.scores.gold import compare
    from judge.scores.gold_document import as_document
    from judge.store import export
    from judge.store.runs import PROBES, read_unparsed_sample

    with Store.open(db, create=False) as store:
        run = export.find_run(store, run_name)
        unparsed = read_unparsed_sample(store.conn, run["run_id"]) if run["unparsed"] else None
        task = export.read_stored_task(store, run["task"])
        results = compare(store, task, run["run_id"])
        origin_text = describe_origin(store, run["run_id"])
        # Gold labels that were renamed on import may explain a surprising agreement.
        maps = {f: words for f, words in export.label_maps(store).items() if f in task.fields}
    # A task whose gold labels are outside its domain is probably the wrong one.
    for result in results:
        if result.outside and not as_json:
            console.note(
                f"note: gold labels for '{result.field}' that the task does not declare were left out: {result.outside}"
            )
    shown = as_document(
        run,
        results,
        origin=origin_text,
        unparsed=None if unparsed is None else console.shorten(unparsed, MOST_OF_REPLY),
        probes=run["provider"].get(PROBES),
        maps=maps,
    )
    content = {**run, "label_maps": maps, "fields": [r.as_json() for r in results]}
    terminal.print_result("run_show", content, shown, as_json)


FORMATS = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet", ".qrels": "qrels"}
"""The format for each file extension. Any other extension means JSONL."""


@runs.command("export")
@click.argument("run_name", metavar="RUN", default="last")
@click.option(
    "--to",
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv", "parquet", "qrels", "spans"]),
    help="Output format (default: from the extension of -o, otherwise jsonl).",
)
@click.option("--field", help="With qrels: field with the grades (default: the first field).")
@click.option(
    "--grade",
    "grades",
    multiple=True,
    metavar="LABEL=N",
    help="With qrels: grade of a label. Not needed for numbers, relevant and not_relevant. Repeatable.",
)
@click.option("-o", "--output", type=console.TO_WRITE, help="File to write (default: stdout).")
@console.db_option
def export(
    run_name: str,
    form: str | None,
    field: str | None,
    grades: tuple[str, ...],
    output: Path | None,
    db: Path,
) -> None:
    """Write the labels of a run to a file.

    \b
    judge runs export last -o labels.csv
    judge runs export last -o labels.parquet
    judge runs export last --to qrels -o judged.qrels
    judge runs export last --to spans -o annotations.csv

    The 'qrels' format has lines "query 0 document grade" for TREC tools. The 'spans' format is a CSV file for
    tracing tools, with trace ids, span ids and human labels.

    To add the labels to the rows of your own file, use judge results --join.
    """
    from judge.cli.run_export import qrels, span_lines, text_lines, write_parquet
    from judge.files import write_lines
    from judge.store import export as reading
    from judge.store.span_labels import span_labels

    if (field or grades) and form != "qrels":
        raise UsageError("--field and --grade require --to qrels")
    if form == "spans" and output is not None and _is_file(output):
        format_of(output, CSV)
    elif output is not None and _is_file(output):
        # Without this check, a file called labels.xlsx had JSON Lines in it.
        form = format_of(output, FORMATS, form, "--to")
    form = form or "jsonl"
    if form == "parquet" and (output is None or (output.exists() and not output.is_file())):
        raise UsageError("--to parquet requires an output file: -o FILE.parquet")
    with Store.open(db, create=False) as store:
        run = reading.find_run(store, run_name)
        task = reading.read_stored_task(store, run["task"])
        if form == "qrels":
            lines = qrels(
                reading.read_judged(store, run, task), task, field, console.pairs(grades, "--grade")
            )
        elif form == "spans":
            lines = span_lines(span_labels(store, run["run_id"], task.fields))
        elif form == "parquet":
            assert output is not None
            count = write_parquet(output, store, run, task)
            console.note(f"{count} rows in {output}")
            return
        else:
            lines = text_lines(reading.read_judged(store, run, task), form, task.fields)
        count = write_lines(output, lines)
    # The line of column names is not a row.
    header = form in ("csv", "spans")
    console.note(f"{count - header} rows" + (f" in {output}" if output else ""))


def _is_file(path: Path) -> bool:
    """Return whether the path is a regular file. Devices and pipes accept any format."""
    return not path.exists() or path.is_file()
