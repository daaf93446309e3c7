"""judge nuggets: import nuggets (the facts in good answers) and their assignments to answers."""

from pathlib import Path

import click

from judge.cli.items import skip_option
from judge.console import db_option, emit_json, json_option, notes
from judge.document.terminal import emit_rows
from judge.store import Store


@click.group()
def nuggets() -> None:
    """Import nuggets (TREC RAG), the facts that a good answer contains."""


@nuggets.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--judge", metavar="MODEL", help="Model whose assignments are in the file. They are stored as a run."
)
@click.option("--annotator", metavar="PERSON", help="Annotator whose assignments are in the file.")
@click.option("--condition", help="Condition of the answers, if a system has several conditions.")
@click.option("--dataset", help="Data set of the items, if several data sets have the same ids.")
@skip_option
@db_option
@json_option
def import_(
    paths: tuple[Path, ...],
    judge: str | None,
    annotator: str | None,
    condition: str | None,
    dataset: str | None,
    skip_bad: bool,
    db: Path,
    as_json: bool,
) -> None:
    """Import nuggets and their importance.

    The files are CSV, or JSON Lines as written by nuggetizer.

    \b
    judge nuggets import nuggets.jsonl
    judge nuggets import assignments.jsonl --judge gpt-4o
    judge nuggets import assessors.csv --annotator ann

    A CSV file needs the columns 'id', 'nugget' and 'importance' (vital or okay). If answers were assessed, it
    also needs 'system' and 'assignment' (support, partial_support or not_support).

    Each pair of a nugget and an answer becomes a unit of the task nugget_assignment. Either the whole file is
    imported, or nothing is. Importing it again changes nothing.
    """
    from judge.asking.nuggets import assigner, import_files

    # Before the study is opened, because the options alone may be wrong.
    whose = assigner(judge, annotator, condition)
    with Store.open(db, create=False) as store:
        done = import_files(store, paths, whose, dataset, skip_bad)
    notes(done.skipped, "skipped")
    if as_json:
        emit_json("nuggets_import", {"study": str(db), "rows": done.rows(), "skipped": done.skipped})
        return
    emit_rows("nuggets_import", done.rows(), ["file", "nuggets", "labels", "unchanged", "skipped"])
