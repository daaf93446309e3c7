"""Rank the study's passages for each item with BM25. It is a baseline for other rankings.

This is BM25 by Robertson and Zaragoza (2009) in Lucene's variant. It is computed by bm25s (MIT), an optional
package: pip install 'adjudge[retrieve]'.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from judge.commands import command
from judge.errors import BadInput, MissingExtra, UsageError
from judge.files import stop
from judge.store.imports import ImportInfo, ImportReport
from judge.store.listing import dataset_names
from judge.store.rankings import Ranked, add_rankings
from judge.store.study import Store
from judge.types import Json, Where

NAME, STAGE, LONGEST = "bm25", "retrieve", 100
# The usual parameters, which are also the defaults of bm25s, so that the baseline is comparable with
# others.
K1, B, STOPWORDS = 1.5, 0.75, "en"

_BATCH = 1000
"""Number of queries in one call of bm25s."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The result of storing a ranking. `empty` is the number of items whose query shares no word with any passage."""

    report: ImportReport
    empty: int
    options: Mapping[str, Json]


def rank_by_bm25(
    store: Store, name: str = NAME, *, k: int = LONGEST, dataset: str | None = None
) -> Retrieved:
    """Store a ranking under this name: for each item, the k best passages of the data set.

    If `dataset` is None, the whole study is ranked. The query is the item's claim or, if it has none, its
    question. The passages of all items are searched, including their titles. Identical passages of several
    items count as one, and a ranking contains the item's own copy if there is one. Passages that share no
    word with the query are left out, and an item without any remaining passage has no ranking. Passages with
    equal scores keep the order of import.

    Raises MissingExtra if bm25s is not installed, and UsageError if the name is invalid or the data set is
    unknown. Raises BadInput if there is no passage or no query, or if a different ranking with this name is
    already stored.
    """
    try:
        import bm25s
    except ImportError as e:
        raise MissingExtra("judge retrieve needs bm25s: pip install 'adjudge[retrieve]'") from e

    if not name.strip() or any(c.isspace() or c in "@#" for c in name):
        raise UsageError(f"--name '{name}': must not contain spaces, '@' or '#'")
    copies, texts = _passages(store, dataset)
    queries = _queries(store, dataset)
    index = bm25s.BM25(k1=K1, b=B)
    index.index(bm25s.tokenize(texts, stopwords=STOPWORDS, show_progress=False), show_progress=False)
    empty = 0

    def lists() -> Iterator[Ranked]:
        nonlocal empty
        for start in range(0, len(queries), _BATCH):
            some = queries[start : start + _BATCH]
            words = bm25s.tokenize(
                [query for _, query in some], stopwords=STOPWORDS, show_progress=False, return_ids=False
            )
            listed, scores = index.retrieve(words, k=min(k, len(texts)), show_progress=False)
            for (item, _), row, values in zip(some, listed.tolist(), scores.tolist(), strict=True):
                # Sorted by score and position, so that equal scores keep the order of import whatever order
                # bm25s returns.
                best = sorted((-score, place) for place, score in zip(row, values, strict=True) if score > 0)
                ranked = [
                    (copies[place].get(item) or next(iter(copies[place].values())), round(-negative, 6))
                    for negative, place in best
                ]
                # Counted while the rows are read, so the number is complete only after the import.
                empty += not ranked
                if ranked:
                    yield Ranked(name, STAGE, item, ranked, Where(str(store.path), 0))

    how = {"k": k, "k1": K1, "b": B, "stopwords": STOPWORDS, "query": "auto"}
    options = {"retriever": "bm25", **how, "library": f"bm25s {bm25s.__version__}"}
    info = ImportInfo("retrieve bm25", {}, dataset, {key: str(value) for key, value in options.items()})
    report = add_rankings(store, lists(), info, [], stop)
    return Retrieved(report, empty, options)


def _passages(store: Store, dataset: str | None) -> tuple[list[dict[str, str]], list[str]]:
    """Return the copies and the texts of all distinct passages, as two parallel lists.

    The copies of a passage are a mapping from each item that has the passage to the id of its copy.
    """
    dataset_names(store, dataset)
    query = (
        "SELECT p.content_sha, p.passage_id, p.item_id, p.title, p.text FROM passages AS p "
        "JOIN items AS i USING (item_id) WHERE ?1 IS NULL OR i.dataset = ?1 ORDER BY p.rowid"
    )
    place: dict[str, int] = {}
    copies: list[dict[str, str]] = []
    texts: list[str] = []
    for sha, passage, item, title, text in store.conn.execute(query, [dataset]):
        # A text that many items share must not fill their rankings with its copies.
        if sha not in place:
            place[sha] = len(texts)
            texts.append(f"{title}\n{text}" if title else text)
            copies.append({})
        copies[place[sha]].setdefault(item, passage)
    if not texts:
        raise BadInput(
            f"{store.path}: no passages to search; import some: {command('judge items import FORMAT FILE')}"
        )
    return copies, texts


def _queries(store: Store, dataset: str | None) -> list[tuple[str, str]]:
    """Return each item with its query, in the order of import."""
    query = (
        "SELECT item_id, coalesce(claim, question) FROM items WHERE (?1 IS NULL OR dataset = ?1) "
        "AND coalesce(claim, question) IS NOT NULL ORDER BY rowid"
    )
    queries = [(str(item), str(text)) for item, text in store.conn.execute(query, [dataset])]
    if not queries:
        raise BadInput(f"{store.path}: no item has a claim or question to search for")
    return queries
