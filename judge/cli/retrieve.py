"""judge retrieve: rank the study's passages for each of its items, by words or by embeddings."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from judge.cli.models import provider_options
from judge.console import db_option, emit_json, emit_rows, json_option, note, pairs
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.retrieve import Search
    from judge.runner.embed import Progress
    from judge.store import Store
    from judge.store.imports import ImportReport
    from judge.store.rankings import Ranked
    from judge.types import Json

COUNTS = ["lists", "entries", "unchanged", "empty"]
_OF = {
    "bm25": ("k1", "b", "stopwords"),
    "embeddings": (
        "model", "base_url", "timeout", "settings", "batch", "concurrency", "query_prefix", "passage_prefix",
    ),
}  # fmt: skip


@click.command()
@click.option("--retriever", required=True, type=click.Choice(["bm25", "embeddings"]), help="How to search.")
@click.option("--name", help="Name of the ranking (default: the retriever's, or the embedding model's).")
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
    help="BM25: words that are not searched for.",
)
@click.option("-m", "--model", help="Embeddings: openai/NAME, also of other servers (--base-url).")
@click.option(
    "--batch",
    default=32,
    show_default=True,
    type=click.IntRange(1, 2048),
    help="Embeddings: texts in a call.",
)
@click.option(
    "--concurrency", default=8, show_default=True, type=click.IntRange(1), help="Embeddings: calls at once."
)
@click.option("--query-prefix", default="", help="Embeddings: put before each query, as in 'query: '.")
@click.option("--passage-prefix", default="", help="Embeddings: put before each passage.")
@provider_options
@db_option
@json_option
def retrieve(
    retriever: str,
    name: str | None,
    dataset: str | None,
    db: Path,
    as_json: bool,
    **options: Any,
) -> int:
    """Rank the study's passages for each of its items; the ranking is stored (stage retrieve).

    \b
    judge retrieve --retriever bm25
    judge retrieve --retriever bm25 --dataset scifact -k 20 --name bm25-scifact
    judge retrieve --retriever embeddings -m openai/text-embedding-3-small
    judge retrieve --retriever embeddings -m openai/e5 --base-url http://127.0.0.1:8080/v1

    Passages of all items are searched, so an item may get those of others. bm25 needs bm25s.
    Embeddings are kept in the study and asked for once; cosines are exact.
    """
    from judge.store import Store

    _check_options(click.get_current_context(), retriever, options)
    name = name or (retriever if retriever == "bm25" else str(options["model"]).partition("/")[2])
    if not name.strip() or any(c.isspace() or c in "@#" for c in name):
        raise UsageError(f"--name '{name}': a name without spaces, '@' and '#'")
    with Store.open(db, create=False) as store:
        if retriever == "bm25":
            report, empty, how = _bm25(store, name, dataset, options)
        else:
            report, empty, how = _dense(store, name, dataset, options)
    row = {"name": name, "stage": "retrieve", **report.counts, "empty": empty}
    if empty:
        note(f"note: {empty} items share no word with any passage and have no list")
    if as_json:
        emit_json("retrieve", {"study": str(db), **row, "options": how})
    else:
        emit_rows("retrieve", [row], ["name", "stage", *COUNTS], False, False)
    return Exit.DONE


def _check_options(context: click.Context, retriever: str, options: dict[str, Any]) -> None:
    """Raises UsageError for an option of the other retriever, which would be ignored, and for no model."""
    flags = {p.name: p.opts[-1] for p in context.command.params}
    for other, names in _OF.items():
        for option in names:
            given = context.get_parameter_source(option) is not ParameterSource.DEFAULT
            if other != retriever and given:
                raise UsageError(f"{flags[option]} goes with --retriever {other}")
    if retriever == "embeddings" and not options["model"]:
        raise UsageError("--retriever embeddings needs -m openai/NAME (with --base-url for another server)")


def _bm25(
    store: Store, name: str, dataset: str | None, options: dict[str, Any]
) -> tuple[ImportReport, int, dict[str, Json]]:
    from judge.retrieve import Bm25, bm25, require_bm25

    require_bm25()
    how = Bm25(**{key: options[key] for key in ("k", "query", *_OF["bm25"])})
    stored = dict(how.as_json())
    return *_store(store, bm25(store, how, name, "retrieve", dataset), dataset, stored), stored


def _dense(
    store: Store, name: str, dataset: str | None, options: dict[str, Any]
) -> tuple[ImportReport, int, dict[str, Json]]:
    from judge.providers.base import Settings
    from judge.providers.embeddings import Embedder
    from judge.retrieve import Dense, dense, dense_search
    from judge.store import embeddings
    from judge.types import Where

    how = Dense(**{key: options[key] for key in ("k", "query", "query_prefix", "passage_prefix")})
    settings = Settings(options["base_url"], options["timeout"], pairs(options["settings"], "--option"))
    embedder = Embedder(str(options["model"]), settings)
    with store.run_lock(f"embeddings {options['model']}"):
        search = dense_search(store, how, dataset)
        progress = asyncio.run(_embed(store, embedder, search, options))
        sha = embeddings.embedder_sha(embedder.describe())

        def load(texts: list[str]) -> Any:
            return embeddings.load(store.conn, sha, [embeddings.text_sha(text) for text in texts])

        queries, passages = load([text for _, text in search.queries]), load(list(search.texts))
        stored = {**how.as_json(), **embedder.describe(), "size": int(passages.shape[1])}
        rows = dense(search, queries, passages, how.k, name, Where(str(store.path), 0))
        report, empty = _store(store, rows, dataset, stored)
    note(
        f"note: {progress.done} texts embedded in {progress.calls} calls, {progress.tokens:,} tokens; "
        f"{progress.known} were there"
    )
    return report, empty, stored


async def _embed(store: Store, embedder: Any, search: Search, options: dict[str, Any]) -> Progress:
    from judge.runner.embed import Pace, embed_all

    pace = Pace(options["batch"], concurrency=options["concurrency"])
    shown = sys.stderr.isatty()

    def watch(progress: Progress) -> None:
        if shown:
            told = f"\r\x1b[K{progress.known + progress.done:,}/{progress.texts:,} texts"
            print(told, end="", file=sys.stderr, flush=True)

    try:
        return await embed_all(store, embedder, str(options["model"]), search.all_texts(), pace, watch)
    finally:
        if shown:
            print(file=sys.stderr)


def _store(
    store: Store, rows: Iterator[Ranked], dataset: str | None, how: dict[str, Json]
) -> tuple[ImportReport, int]:
    """Keep the lists that hold something; also how many do not."""
    from judge.store.imports import ImportInfo
    from judge.store.rankings import add_rankings

    info = ImportInfo(f"retrieve {how['retriever']}", {}, dataset, {k: str(v) for k, v in how.items()})
    empty = 0

    def refuse(error: Exception) -> None:
        raise error

    def listed() -> Iterator[Ranked]:
        nonlocal empty
        for row in rows:
            empty += not row.passages
            if row.passages:
                yield row

    report = add_rankings(store, listed(), info, [], refuse)
    return report, empty
