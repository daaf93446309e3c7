"""judge rankings: which passages were found for an item, and in which order."""

import re
import shlex
from functools import partial
from pathlib import Path

import click

from judge.cli.answers import tell_imported
from judge.console import db_option, emit_json, emit_rows, json_option, output_options
from judge.errors import UsageError
from judge.store import Store

STAGES = ("retrieve", "rerank", "top-k")
COUNTS = ["lists", "entries", "unchanged", "skipped"]


@click.group()
def rankings() -> None:
    """Import and list rankings of passages."""


@rankings.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--stage",
    type=click.Choice(STAGES),
    help="Where in the pipeline these lists stand (needed): as retrieved, reranked, or the first few that were used.",
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
    stage: str | None,
    name: str | None,
    dataset: str | None,
    skip_bad: bool,
    db: Path,
    as_json: bool,
) -> None:
    """Import rankings in the TREC run format: item Q0 passage rank score tag.

    \b
    judge rankings import --stage retrieve bm25.run
    judge rankings import --stage rerank reranked.run --name bm25

    Ids are the study's or the source's. A file is one transaction; importing it again changes nothing.
    """
    from judge.importers import rankings as importer
    from judge.importers.importing import import_each
    from judge.store.imports import ImportInfo
    from judge.store.rankings import Ids, add_rankings

    if stage is None:
        told = shlex.join(["judge", "rankings", "import", "--stage", _likely(paths), *map(str, paths)])
        told += f" -d {shlex.quote(str(db))}" if str(db) != "study.db" else ""
        raise UsageError(
            f"where do these lists stand? --stage retrieve (as found), rerank (put in another order) or top-k (what was used); try: {told}"
        )
    info = ImportInfo("rankings", {}, dataset, {"stage": stage, **({"name": name} if name else {})})
    with Store.open(db, create=False) as store:
        read = partial(importer.read, stage=stage, name=name, ids=Ids(store, dataset))
        reports = list(
            import_each(store, paths, info, skip_bad, lambda path, bad: read(path, bad=bad), add_rankings)
        )
    tell_imported("rankings_import", db, reports, COUNTS, as_json)


def _likely(paths: tuple[Path, ...]) -> str:
    """The stage that the files' names tell of; without a word of it, lists are what a retriever found."""
    names = " ".join(path.name.lower() for path in paths)
    return "rerank" if "rerank" in names else "top-k" if re.search(r"top[-_]?(k|\d)", names) else "retrieve"


@rankings.command("list")
@db_option
@output_options
def list_(db: Path, as_json: bool, as_csv: bool) -> None:
    """List the rankings of the study."""
    from judge.store.rankings import list_rankings

    with Store.open(db, create=False) as store:
        rows = list_rankings(store)
    emit_rows("rankings", rows, ["name", "stage", "items", "entries", "longest"], as_json, as_csv)


@rankings.command("attach")
@click.option("--name", help="The ranking, when there are several.")
@click.option("--stage", type=click.Choice(STAGES), help="Its stage, when it has several.")
@click.option("-k", default=10, type=click.IntRange(1), help="The first K of each list.")
@click.option("--dataset", help="Items of this data set only.")
@db_option
@json_option
def attach(name: str | None, stage: str | None, k: int, dataset: str | None, db: Path, as_json: bool) -> None:
    """Give each item copies of the listed passages that are another item's, so that they can be labelled.

    \b
    judge rankings attach -k 10
    judge run stance -m openai/gpt-5-mini

    A unit is a passage with its own item. Gold labels are not copied; doing it again changes nothing.
    """
    from judge.store.rankings import attach as copy
    from judge.store.rankings import choose

    with Store.open(db, create=False) as store:
        ranking = choose(store, name, stage)
        report = copy(store, ranking, k, dataset)
    row = {"name": ranking[0], "stage": ranking[1], "k": k, "passages": report.counts["passages"]}
    if as_json:
        emit_json("rankings_attach", {"study": str(db), **row})
    else:
        emit_rows("rankings_attach", [row], ["name", "stage", "k", "passages"])
