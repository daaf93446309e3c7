"""judge results: one row for each answer, passage, sentence or claim, with its labels and scores, worst first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from judge import console, gates
from judge.cli.options import Sectioned
from judge.cli.score_options import (
    condition_option,
    dataset_option,
    part_option,
    readings_option,
    runs_option,
)
from judge.console import db_option, emit_json, json_option, note, notes, pairs
from judge.errors import UsageError
from judge.results import KINDS
from judge.results.write import ENDINGS
from judge.store import Store


@click.command(
    cls=Sectioned,
    sections={
        "Rows": ["name", "system", "condition", "dataset", "per", "parts", "readings", "runs"],
        "Order": ["sort", "where", "limit"],
        "Output": ["join", "output", "as_json", "db"],
    },
)
@click.argument("name", metavar="[PAPER|TASK]", required=False)
@click.option("--system", metavar="NAME", help="Show the answers of this system, or of all systems (all).")
@condition_option
@dataset_option
@click.option("--per", type=click.Choice(KINDS), help="Kind of row (default: answer, if there are any).")
@part_option
@runs_option
@readings_option
@click.option("--sort", metavar="MEASURE", help="Sort by this measure, worst first, or by this column.")
@click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="Keep rows like COLUMN=VALUE; also !=, <, <=, >, >= and ~ (contains). Repeatable.",
)
@click.option("-n", "limit", type=click.IntRange(1), help="Keep this many rows (the terminal shows 20).")
@click.option(
    "--join",
    type=console.TO_READ,
    metavar="FILE",
    help="Return this file, row by row, with the results as added columns.",
)
@gates.output_option(
    *ENDINGS, gates=False, help="Write all columns to FILE; the extension selects the format. Repeatable."
)
@json_option
@db_option
def results(
    name: str | None,
    per: str | None,
    sort: str | None,
    readings: tuple[str, ...],
    where: tuple[str, ...],
    limit: int | None,
    join: Path | None,
    output: gates.Files,
    as_json: bool,
    db: Path,
    **options: Any,
) -> None:
    """List answers with their labels and scores, worst first.

    PAPER or TASK selects the scores: those of a paper (as judge score), or the labels of the newest run of a task. By
    default, the newest run is shown.

    \b
    judge results faithfulness --system mine
    judge results garage --system mine --where eligibility=ineligible -o worst.csv
    judge results relevant --where relevant=not_relevant -o passages.jsonl
    judge results faithfulness --join ragas.csv -o ragas_scored.csv

    A row has your own columns and ids, the text, every label with its status and reason, people's labels of closed
    batches, and each score that exists for a single row. A score of parts, such as sentences, has a numerator and a
    denominator.
    """
    from judge.results.build import results_of
    from judge.results.join import Joined
    from judge.results.write import as_document, write, write_joined
    from judge.results.write import as_json as as_json_document
    from judge.store.answers import ALL

    with Store.open(db, create=False) as store:
        table, sorted_by = results_of(
            store,
            name,
            per=per,
            sort=sort,
            where=where,
            readings=pairs(readings, "--paper-option"),
            **options,
        )
        if limit is not None and join is None:
            table.rows = table.rows[:limit]
        if join is not None:
            if as_json or len(output.pages) > 1:
                raise UsageError("--join writes one file: give -o once, and omit --json")
            system = options["system"]
            joined = Joined(join, options["dataset"], None if system == ALL else system)
            write_joined(store, table, joined, output.pages[0] if output.pages else None)
            if line := joined.describe():
                note(line)
            return
        notes(table.notes)
        if as_json:
            emit_json("results", as_json_document(table))
        else:
            from judge.document.terminal import show

            show(as_document(table, sorted_by))
        for path in output.pages:
            write(store, table, path, sorted_by)
