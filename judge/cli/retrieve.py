"""judge retrieve: rank the study's passages for each item with BM25."""

from pathlib import Path

import click

from judge.console import db_option, emit_json, json_option, note
from judge.document.terminal import emit_rows
from judge.errors import Exit
from judge.store import Store

COUNTS = ["lists", "entries", "unchanged", "empty"]


@click.command()
@click.option("--name", default="bm25", help="Name of the ranking.")
@click.option("--dataset", help="Use only the items and passages of this data set.")
@click.option("-k", default=100, type=click.IntRange(1, 10_000), help="Maximum number of passages per item.")
@db_option
@json_option
def retrieve(name: str, dataset: str | None, k: int, db: Path, as_json: bool) -> int:
    """Rank the study's passages for each item with BM25.

    \b
    judge retrieve
    judge retrieve --dataset scifact -k 20 --name bm25-scifact

    The query is the item's claim or question. The search covers the passages of all items. The ranking is
    stored with the stage retrieve.

    BM25 is a baseline and needs the package bm25s. To import rankings of other retrievers, use judge systems
    import.
    """
    # Imported here, because bm25s is an optional package.
    from judge.retrieve import STAGE, rank_by_bm25

    with Store.open(db, create=False) as store:
        ranking = rank_by_bm25(store, name, k=k, dataset=dataset)
    row = {"name": name, "stage": STAGE, **ranking.report.counts, "empty": ranking.empty}
    if ranking.empty:
        note(f"note: {ranking.empty} items share no word with any passage and have no ranking")
    if as_json:
        emit_json("retrieve", {"study": str(db), **row, "options": ranking.options})
    else:
        emit_rows("retrieve", [row], ["name", "stage", *COUNTS])
    return Exit.DONE
