"""judge answers: what systems answered, imported, and a look at it (`judge.cli.generate` makes some)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge.cli.items import map_options, print_labels, read_label_maps, skip_option
from judge.console import (
    db_option,
    emit_json,
    emit_rows,
    json_option,
    note,
    output_options,
    pairs,
    say,
    short,
)
from judge.errors import BadInput, UsageError
from judge.importers import base
from judge.importers.needs import lacking
from judge.store import Store, listing

if TYPE_CHECKING:
    from judge.store.imports import ImportReport

COUNTS = ["answers", "sentences", "citations", "claims", "labels", "unchanged", "skipped"]


@click.group()
def answers() -> None:
    """Import, generate, list and show the answers of systems under test."""


@answers.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--system", help="The system, for rows that name none.")
@click.option("--condition", help="The condition, for rows that name none (default: default).")
@click.option("--dataset", help="The data set of the items, when ids occur in several.")
@map_options(
    "KEY=PATH", "Our key from a (dotted) path, as in --map text=output.", "Rename a label while importing."
)
@skip_option
@db_option
@json_option
def import_(
    paths: tuple[Path, ...],
    system: str | None,
    condition: str | None,
    dataset: str | None,
    maps: tuple[str, ...],
    label_maps: tuple[str, ...],
    skip_bad: bool,
    db: Path,
    as_json: bool,
) -> None:
    """Import answers to items of the study from JSONL, a JSON array or CSV.

    \b
    judge answers import answers.jsonl
    judge answers import questions.jsonl --map answers=model_outputs --condition vanilla
    judge answers import garage.jsonl --map id=sample_id --map text=answer_generate --system human

    A row has id, text and, where the command does not say, system and condition; also cited,
    context, claims, gold, votes. Answers are split into sentences, which can be labelled one by one.
    """
    from judge.importers import answers as importer
    from judge.importers.importing import import_each
    from judge.store.answers import add_answers
    from judge.store.imports import ImportInfo

    options = base.Options(dataset, pairs(maps, "--map"), read_label_maps(label_maps), note)
    constants = {f"--{k}": v for k, v in (("system", system), ("condition", condition)) if v}
    info = ImportInfo("answers", {}, dataset, {**options.maps, **constants}, options.label_maps)
    with Store.open(db, create=False) as store:
        read = partial(importer.read, options=options, system=system, condition=condition)
        reports = list(
            import_each(store, paths, info, skip_bad, lambda path, bad: read(path, bad=bad), add_answers)
        )
        lacks = lacking(store, {name for _, report in reports for name in report.datasets})
    tell_imported("answers_import", db, reports, COUNTS, as_json, [f"note: {text}" for text in lacks])


def tell_imported(
    schema: str,
    db: Path,
    reports: Sequence[tuple[Path, ImportReport]],
    counts: Sequence[str],
    as_json: bool,
    notes: Sequence[str] = (),
) -> None:
    """What an import of several files has kept and skipped, a row a file."""
    problems = [str(error) for _, report in reports for error in report.skipped]
    rows = [{"file": str(path), **r.counts, "skipped": len(r.skipped)} for path, r in reports]
    for told in (*(f"skipped: {problem}" for problem in problems), *notes):
        note(told)
    if as_json:
        emit_json(schema, {"study": str(db), "rows": rows, "skipped": problems})
    else:
        emit_rows(schema, rows, ["file", *counts])


@answers.command("list")
@click.option("--system", help="Only this system.")
@click.option("--condition", help="Only this condition.")
@click.option("-n", "limit", default=20, type=click.IntRange(1), help="How many.")
@db_option
@output_options
def list_(
    system: str | None, condition: str | None, limit: int, db: Path, as_json: bool, as_csv: bool
) -> None:
    """List systems with their counts, and answers."""
    with Store.open(db, create=False) as store:
        rows = listing.list_answers(store, system, condition, limit)
        if as_json or as_csv:
            columns = ["answer_id", "item_id", "system", "condition", "text", "cited", "context", "origin"]
            emit_rows("answers", rows, columns, as_json, as_csv)
            return
        counts = listing.list_systems(store)
    emit_rows("systems", counts, ["system", "condition", "answers", "empty", "sentences", "citations"])
    print()
    shown = [{**row, "text": short(row["text"], 60)} for row in rows]
    emit_rows("answers", shown, ["answer_id", "text"])


@answers.command("show")
@click.argument("answer_id")
@db_option
@json_option
def show(answer_id: str, db: Path, as_json: bool) -> None:
    """Show one answer: its sentences with what they cite, its claims, and every label.

    \b
    judge answers show 'mine:q1@gpt-4@top5'
    """
    with Store.open(db, create=False) as store:
        found = listing.show_answer(store, answer_id)
    if found is None:
        raise BadInput(f"no answer '{answer_id}' in {db}; judge answers list shows the ids")
    if as_json:
        emit_json("answer", found)
        return
    for name in ("answer_id", "system", "condition", "cited", "context", "meta", "origin"):
        if found[name] not in (None, {}, []):
            say(f"{name}: {found[name]}")
    print_labels(found["labels"], answer_id)
    for part in (*found["sentences"], *found["claims"]):
        cites = f" -> {', '.join(part['cited'])}" if part.get("cited") else ""
        unknown = f" (stands for no passage: {', '.join(part['unknown'])})" if part.get("unknown") else ""
        say(f"\n{part['unit_id']}{cites}{unknown}\n{part['text']}")
        print_labels(found["labels"], part["unit_id"])


@answers.command("claims")
@click.argument("run_name", metavar="RUN", default="last")
@db_option
@json_option
def claims(run_name: str, db: Path, as_json: bool) -> None:
    """Make the claims that a run of claim_decomposition has listed into units of their own.

    \b
    judge run claim_decomposition -m openai/gpt-5-mini
    judge answers claims
    judge run claim_support -m openai/gpt-5-mini

    An answer that has claims already keeps them.
    """
    from judge.store import export
    from judge.store.answers import add_claims

    with Store.open(db, create=False) as store:
        found = export.find_run(store, run_name)
        task = export.stored_task(store, found["task"])
        lists = [q.field for q in task.spec.questions if q.many]
        if task.spec.unit != "answer" or not lists:
            raise UsageError(f"run {found['run_id']} is of {task.name}, which lists no claims of answers")
        counts = add_claims(store, found["run_id"], lists[0])
    row = {"run": found["run_id"], **counts}
    if as_json:
        emit_json("answers_claims", row)
    else:
        emit_rows("answers_claims", [row], ["run", "answers", "claims", "unchanged", "other"])
