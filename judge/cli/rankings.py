"""judge rankings and judge retrieve: which passages were found for an item, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.console import db_option, emit_json, emit_rows, json_option, note, output_options
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.store.rankings import Ranked

STAGES = ("retrieve", "rerank", "top-k")
COUNTS = ["lists", "entries", "unchanged", "skipped"]


@click.group()
def rankings() -> None:
    """Import and list rankings of passages."""


@rankings.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--stage", required=True, type=click.Choice(STAGES), help="Where in the pipeline these lists stand."
)
@click.option("--name", help="Name of the ranking (default: the file's sixth column).")
@click.option("--dataset", help="The data set of the items, when ids occur in several.")
@click.option(
    "--skip-bad", is_flag=True, help="Leave bad lines out and list them, instead of importing nothing."
)
@db_option
@json_option
def import_(
    paths: tuple[Path, ...],
    stage: str,
    name: str | None,
    dataset: str | None,
    skip_bad: bool,
    db: Path,
    as_json: bool,
) -> int:
    """Import rankings in the TREC run format: item Q0 passage rank score tag.

    \b
    judge rankings import --stage retrieve bm25.run
    judge rankings import --stage rerank reranked.run --name bm25

    Ids are the study's or the source's. A file is one transaction; importing it again changes nothing.
    """
    from judge.importers import _rankings
    from judge.importers._run import import_with
    from judge.store import Store
    from judge.store.imports import ImportInfo
    from judge.store.rankings import Ids, add_rankings

    info = ImportInfo("rankings", {}, dataset, {"stage": stage, **({"name": name} if name else {})})
    rows, problems = [], []
    with Store.open(db, create=False) as store:
        ids = Ids(store, dataset)
        for path in paths:
            report = import_with(
                store,
                path,
                info,
                skip_bad,
                partial(_rankings.read, path, stage, name, ids),
                add_rankings,
            )
            problems += [str(s) for s in report.skipped]
            rows.append({"file": str(path), **report.counts, "skipped": len(report.skipped)})
    for problem in problems:
        note(f"skipped: {problem}")
    if as_json:
        emit_json("rankings_import", {"study": str(db), "rows": rows, "skipped": problems})
    else:
        emit_rows("rankings_import", rows, ["file", *COUNTS], False, False)
    return Exit.DONE


@rankings.command("list")
@db_option
@output_options
def list_(db: Path, as_json: bool, as_csv: bool) -> int:
    """List the rankings of the study."""
    from judge.store import Store
    from judge.store.rankings import list_rankings

    with Store.open(db, create=False) as store:
        rows = list_rankings(store)
    emit_rows("rankings", rows, ["name", "stage", "items", "entries", "longest"], as_json, as_csv)
    return Exit.DONE


@click.command()
@click.option("--retriever", required=True, type=click.Choice(["bm25"]), help="How to search.")
@click.option("--name", help="Name of the ranking (default: the retriever's).")
@click.option("--dataset", help="Items and passages of this data set only.")
@click.option(
    "--query",
    type=click.Choice(["auto", "claim", "question"]),
    default="auto",
    show_default=True,
    help="What of an item is searched for; auto: its claim, else its question.",
)
@click.option("-k", default=100, show_default=True, type=click.IntRange(1, 10_000), help="Longest list.")
@click.option("--k1", default=1.5, show_default=True, type=click.FloatRange(0), help="BM25's k1.")
@click.option("--b", "b", default=0.75, show_default=True, type=click.FloatRange(0, 1), help="BM25's b.")
@click.option(
    "--stopwords",
    type=click.Choice(["en", "none"]),
    default="en",
    show_default=True,
    help="Words that are not searched for.",
)
@db_option
@json_option
def retrieve(
    retriever: str, name: str | None, dataset: str | None, db: Path, as_json: bool, **options: Any
) -> int:
    """Rank the study's passages for each of its items; the ranking is stored (stage retrieve).

    \b
    judge retrieve --retriever bm25
    judge retrieve --retriever bm25 --dataset scifact -k 20 --name bm25-scifact

    Passages of all items are searched, so an item may get those of others. Needs bm25s.
    """
    from judge.retrieve import Bm25, bm25, require_bm25
    from judge.store import Store
    from judge.store.imports import ImportInfo
    from judge.store.rankings import add_rankings

    require_bm25()
    name = name or retriever
    if not name.strip() or any(c.isspace() or c in "@#" for c in name):
        raise UsageError(f"--name '{name}': a name without spaces, '@' and '#'")
    how, empty = Bm25(**options), 0
    with Store.open(db, create=False) as store:
        info = ImportInfo(f"retrieve {retriever}", {}, dataset, {k: str(v) for k, v in how.as_json().items()})

        def refuse(error: Exception) -> None:
            raise error

        def listed() -> Iterator[Ranked]:
            nonlocal empty
            for row in bm25(store, how, name, "retrieve", dataset):
                empty += not row.passages
                if row.passages:
                    yield row

        report = add_rankings(store, listed(), info, [], refuse)
    row = {"name": name, "stage": "retrieve", **report.counts, "empty": empty}
    if empty:
        note(f"note: {empty} items share no word with any passage and have no list")
    if as_json:
        emit_json("retrieve", {"study": str(db), **row, "options": dict(how.as_json())})
    else:
        emit_rows(
            "retrieve", [row], ["name", "stage", "lists", "entries", "unchanged", "empty"], False, False
        )
    return Exit.DONE
