"""judge runs: what was judged, how it agrees with gold, and the labels as files."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click

from judge.console import db_option, emit_json, emit_rows, json_option, note, output_options, table, visible
from judge.errors import Exit


@click.group()
def runs() -> None:
    """List, show and export runs."""


@runs.command("list")
@db_option
@output_options
def list_(db: Path, as_json: bool, as_csv: bool) -> int:
    """List the runs of the study."""
    from judge.store import Store, export

    with Store.open(db, create=False) as store:
        rows = export.list_runs(store)
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
    emit_rows("runs", rows, columns, as_json, as_csv)
    return Exit.DONE


@runs.command("show")
@click.argument("run_name", metavar="RUN", default="last")
@db_option
@json_option
def show(run_name: str, db: Path, as_json: bool) -> int:
    """Show one run (default: the last): counts, labels, and agreement with gold where there is gold."""
    from judge.scores.gold import compare
    from judge.store import Store, export

    with Store.open(db, create=False) as store:
        run = export.find_run(store, run_name)
        task = export.stored_task(store, run["task"])
        results = compare(store, task, run["run_id"])
        maps = export.label_maps(store)
    if as_json:
        emit_json("run_show", {**run, "label_maps": maps, "fields": [r.as_json() for r in results]})
        return Exit.DONE
    for name in ("run_id", "task", "model", "resolved_model", "options", "provider", "started", "finished"):
        print(visible(f"{name}: {run[name]}"))
    counts = " · ".join(f"{run[s]} {s}" for s in ("ok", "unparsed", "refused", "truncated", "failed"))
    print(
        f"units: {run['units']} ({counts}); {run['input_tokens']:,} tokens in, {run['output_tokens']:,} out\n"
    )
    for field, words in maps.items():
        print(visible(f"labels of '{field}' were mapped on import: {words}"))
    print_results(results)
    return Exit.DONE


def print_results(results: list[Any]) -> None:
    """Label counts and agreement of each field, with the reasons for what is not there."""
    for result in results:
        shares = ", ".join(f"{value} {n}" for value, n in result.labels.items())
        print(visible(f"{result.field} ({result.level}): {shares or 'no labels'}"))
        if result.outside:
            note(
                f"note: gold labels of '{result.field}' outside the task's labels, left out: {result.outside}"
            )
        if result.why_none:
            print(f"  no agreement: {result.why_none}\n")
            continue
        print(measure_table(result.measures) + "\n")


def measure_table(measures: list[Any]) -> str:
    """Measures with interval, n and coverage; the reason for an undefined one; below, notes once."""
    rows = []
    for m in measures:
        name = m.measure + (f" ({m.weights})" if m.weights else "")
        interval = "" if m.low is None else f"{m.low:.3f} … {m.high:.3f}"
        value = "undefined" if m.value is None else f"{m.value:.3f}"
        rows.append([name, value, interval, m.n_units, m.n_clusters, m.coverage])
    head = ["measure", "value", "95 % interval", "units", "questions", "coverage"]
    undefined = [f"{m.measure} is undefined: {m.reason}" for m in measures if m.reason]
    notes = list(dict.fromkeys(note for m in measures for note in m.notes))
    return "\n".join([table(head, rows), *(f"- {n}" for n in undefined + notes)])


@runs.command("export")
@click.argument("run_name", metavar="RUN", default="last")
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "csv"]), help="Default: by the name of -o, else jsonl."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File; default: stdout."
)
@click.option(
    "--join",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Your own file (JSONL or CSV): its rows come back with label columns.",
)
@click.option(
    "--id", "id_field", help="The id column of the --join file; default: as mapped on import, else id."
)
@click.option("--dataset", help="The data set of the --join file, when the study has several.")
@db_option
def export(
    run_name: str,
    form: str | None,
    output: Path | None,
    join: Path | None,
    id_field: str | None,
    dataset: str | None,
    db: Path,
) -> int:
    """Write the labels of a run (default: the last) as JSONL or CSV.

    \b
    judge runs export last -o labels.csv
    judge runs export last --join mine.jsonl -o mine_labelled.jsonl
    """
    from judge.cli import join as joining
    from judge.store import Store
    from judge.store import export as reading

    suffix = (output or join or Path("x.jsonl")).suffix
    form = form or ("csv" if suffix == ".csv" else "jsonl")
    with Store.open(db, create=False) as store:
        run = reading.find_run(store, run_name)
        task = reading.stored_task(store, run["task"])
        if join is None:
            rows: Iterator[dict[str, Any]] = reading.judged(store, run, task)
            if form == "csv":
                rows = (_flat(r, task.fields) for r in rows)
        else:
            rows = joining.join_file(store, run, task, join, id_field, dataset)
        if output is None:
            count = _write(sys.stdout, rows, form)
        else:
            partial = output.with_name(output.name + ".part")
            with partial.open("w", encoding="utf-8", newline="") as file:
                count = _write(file, rows, form)
            partial.replace(output)
    note(f"{count} rows" + (f" in {output}" if output else ""))
    return Exit.DONE


def _flat(row: dict[str, Any], fields: list[str]) -> dict[str, Any]:
    flat = {k: v for k, v in row.items() if k not in ("labels", "distributions")}
    for field in fields:
        flat[field] = row["labels"][field]
        flat[f"{field}.distribution"] = json.dumps(row["distributions"].get(field), ensure_ascii=False)
    return flat


def _write(file: IO[str], rows: Iterator[dict[str, Any]], form: str) -> int:
    written = 0
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        written += 1
        if form == "jsonl":
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            continue
        if writer is None:
            writer = csv.DictWriter(file, list(row), lineterminator="\n", extrasaction="ignore")
            writer.writeheader()
        writer.writerow({k: _cell(v) for k, v in row.items()})
    return written


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
