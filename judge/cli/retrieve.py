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
from judge.cli.run import of_run
from judge.console import db_option, emit_json, emit_rows, json_option, note, pairs
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.providers.embeddings import Embedder
    from judge.retrieve import Search
    from judge.runner.budget import Budget
    from judge.runner.embed import EmbedProgress
    from judge.store import Store
    from judge.store.imports import ImportReport
    from judge.store.rankings import Ranked
    from judge.types import Json

COUNTS = ["lists", "entries", "unchanged", "empty"]
_OF = {
    "bm25": ("k1", "b", "stopwords"),
    "embeddings": (
        "model", "base_url", "timeout", "settings", "batch", "concurrency", "query_prefix", "passage_prefix",
        "max_tokens", "max_cost", "max_time", "prices",
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
    help="What of an item is searched for; auto: its claim, else its question.",
)
@click.option("-k", default=100, type=click.IntRange(1, 10_000), help="Longest list.")
@click.option("--k1", default=1.5, type=click.FloatRange(0), help="BM25's k1.")
@click.option("--b", "b", default=0.75, type=click.FloatRange(0, 1), help="BM25's b.")
@click.option(
    "--stopwords",
    type=click.Choice(["en", "none"]),
    default="en",
    help="BM25: words that are not searched for.",
)
@click.option(
    "-m", "--model", help="Embeddings: openai/NAME, also of other servers (--base-url), or embedded/minilm."
)
@click.option("--batch", default=32, type=click.IntRange(1, 2048), help="Embeddings: texts in a call.")
@click.option("--concurrency", default=8, type=click.IntRange(1), help="Embeddings: calls at once.")
@click.option(
    "--query-prefix",
    default="",
    show_default=False,
    help="Embeddings: put before each query, as in 'query: '.",
)
@click.option("--passage-prefix", default="", show_default=False, help="Embeddings: put before each passage.")
@provider_options
@db_option
@json_option
@of_run("max_tokens", "max_cost", "max_time", "prices")
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
    judge retrieve --retriever embeddings -m embedded/minilm

    Passages of all items are searched, so an item may get those of others. bm25 needs bm25s.
    Embeddings are kept in the study and asked for once; cosines are exact. Where a limit (--max-cost) ends the calls,
    there is no ranking yet, and the same command goes on.
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
            found = _dense(store, name, dataset, options)
            if found is None:
                return Exit.INCOMPLETE
            report, empty, how = found
    row = {"name": name, "stage": "retrieve", **report.counts, "empty": empty}
    if empty:
        note(f"note: {empty} items share no word with any passage and have no list")
    if as_json:
        emit_json("retrieve", {"study": str(db), **row, "options": how})
    else:
        emit_rows("retrieve", [row], ["name", "stage", *COUNTS])
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
        raise UsageError(
            "--retriever embeddings needs -m openai/NAME (with --base-url for another server), or embedded/minilm"
        )


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
) -> tuple[ImportReport, int, dict[str, Json]] | None:
    """The ranking as stored, None when a limit ended the embedding."""
    from judge.providers.base import Settings
    from judge.providers.embeddings import Embedder
    from judge.retrieve import Dense, dense, dense_search
    from judge.store import embeddings
    from judge.types import Where

    how = Dense(**{key: options[key] for key in ("k", "query", "query_prefix", "passage_prefix")})
    settings = Settings(options["base_url"], options["timeout"], pairs(options["settings"], "--option"))
    if options["model"] == "embedded/minilm":
        from judge.providers.embedded import LocalEmbedder as Minilm

        embedder: Any = Minilm(settings)
    else:
        embedder = Embedder(str(options["model"]), settings)
    budget = _budget(embedder, options)
    with store.run_lock(f"embeddings {options['model']}"):
        search = dense_search(store, how, dataset)
        progress = asyncio.run(_embed(store, embedder, search, options, budget))
        _tell(progress, budget)
        if progress.left:
            return None
        sha = embeddings.embedder_sha(embedder.describe())

        def load(texts: list[str]) -> Any:
            return embeddings.load(store.conn, sha, [embeddings.text_sha(text) for text in texts])

        queries, passages = load([text for _, text in search.queries]), load(list(search.texts))
        stored = {**how.as_json(), **embedder.describe(), "size": int(passages.shape[1])}
        rows = dense(search, queries, passages, how.k, name, Where(str(store.path), 0))
        return *_store(store, rows, dataset, stored), stored


def _budget(embedder: Embedder, options: dict[str, Any]) -> Budget:
    """The limits of this command. Raises UsageError where one of money has no price."""
    from collections import Counter

    from judge.runner.budget import Budget, Spent
    from judge.runner.prices import find, read_prices, wanted

    model, most = str(options["model"]), options["max_cost"]
    file = read_prices(options["prices"]) if options["prices"] else None
    price = find(model, {"own_server": embedder.is_vendors}, file)
    if most is not None:
        price = wanted(model, price)
    return Budget(options["max_tokens"], most, price, Counter(), Spent())


def _tell(progress: EmbedProgress, budget: Budget) -> None:
    """What was embedded, what it cost, and why it is not all."""
    spent, price = budget.spent, budget.price
    lost = f", {spent.lost} lost calls at their most" if spent.lost else ""
    cost = f", ${spent.cost:.4f}{lost} (prices: {price.source})" if price is not None else ""
    note(
        f"note: {progress.done} texts embedded in {progress.calls} calls, {progress.tokens:,} tokens{cost}; "
        f"{progress.known} were there"
    )
    if progress.stopped is not None:
        left = f"{progress.left} texts to go, and no ranking yet; the same command goes on"
        note(f"stopped: {progress.stopped}; {left if progress.left else 'every text has its vector'}")


async def _embed(
    store: Store, embedder: Embedder, search: Search, options: dict[str, Any], budget: Budget
) -> EmbedProgress:
    from judge.runner.embed import Chunking, embed_all

    pace = Chunking(options["batch"], concurrency=options["concurrency"])
    shown = sys.stderr.isatty()

    def watch(progress: EmbedProgress) -> None:
        if shown:
            told = f"\r\x1b[K{progress.known + progress.done:,}/{progress.texts:,} texts"
            print(told, end="", file=sys.stderr, flush=True)

    texts, limit = search.all_texts(), options["max_time"]
    try:
        return await embed_all(store, embedder, str(options["model"]), texts, pace, watch, budget, limit)
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
