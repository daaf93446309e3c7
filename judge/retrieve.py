"""Rank the study's passages for each item: the first stage of a retrieval pipeline, by BM25 or by embeddings.

bm25s (MIT) is an optional package: pip install 'adjudge[retrieve]'. BM25 after Robertson and Zaragoza
(2009) in the variant that Lucene uses, which is the library's default. Embeddings are compared by their
cosine, all with all and not by an approximate index: what is measured is the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge.errors import BadInput, MissingExtra, UsageError
from judge.store.rankings import Ranked
from judge.store.study import Store
from judge.types import Json, Where

BATCH = 1000
MOST_SCORES = 20_000_000
"""Cosines in memory at once (4 bytes each)."""


@dataclass(frozen=True, slots=True)
class Bm25:
    """How to rank. `query` says which field of an item is searched for (auto: its claim, else its question)."""

    k: int = 100
    k1: float = 1.5
    b: float = 0.75
    stopwords: str = "en"
    query: str = "auto"

    def as_json(self) -> Mapping[str, Json]:
        """As stored with the ranking."""
        import bm25s

        words = {"k": self.k, "k1": self.k1, "b": self.b, "stopwords": self.stopwords, "query": self.query}
        return {"retriever": "bm25", **words, "library": f"bm25s {bm25s.__version__}"}


@dataclass(frozen=True, slots=True)
class Dense:
    """How to rank by embeddings. Some models want a word before what is searched for, and before what is found."""

    k: int = 100
    query: str = "auto"
    query_prefix: str = ""
    passage_prefix: str = ""

    def as_json(self) -> Mapping[str, Json]:
        """As stored with the ranking; the embedder's description is added to it."""
        prefixes = {"query_prefix": self.query_prefix, "passage_prefix": self.passage_prefix}
        return {"retriever": "embeddings", "k": self.k, "query": self.query, **prefixes}


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for (item, text as sent), and in what; `texts` (as sent) have `copies` (item -> passage)."""

    queries: Sequence[tuple[str, str]]
    texts: Sequence[str]
    copies: Sequence[Mapping[str, str]]

    def all_texts(self) -> dict[str, str]:
        """Every text once -> what to call it in an error."""
        found = {
            text: f"passage '{next(iter(copies.values()))}'"
            for text, copies in zip(self.texts, self.copies, strict=True)
        }
        for item, text in self.queries:
            found.setdefault(text, f"item '{item}'")
        return found


def dense_search(store: Store, options: Dense, dataset: str | None = None) -> Search:
    """The texts to embed. Raises as `bm25`."""
    copies, texts = _corpus(store, dataset)
    queries = _queries(store, dataset, options.query)
    return Search(
        [(item, options.query_prefix + text) for item, text in queries],
        [options.passage_prefix + text for text in texts],
        copies,
    )


def dense(
    search: Search,
    queries: NDArray[np.float32],
    passages: NDArray[np.float32],
    k: int,
    name: str,
    where: Where,
) -> Iterator[Ranked]:
    """The k passages of greatest cosine for each query; rows of the matrices are in the order of `search`.

    An item gets its own copy of a passage that several items have. Equal cosines are in the order of import.
    """
    q, p = _unit(queries), _unit(passages)
    k = min(k, len(p))
    step = max(1, MOST_SCORES // len(p))
    for start in range(0, len(q), step):
        for row, (item, _) in zip(
            q[start : start + step] @ p.T, search.queries[start : start + step], strict=True
        ):
            # Rounded before they are compared, so that the last bit of a sum does not order equal texts.
            cosines = np.round(row.astype(np.float64), 6)
            least = np.partition(cosines, len(p) - k)[len(p) - k]
            candidates = np.flatnonzero(cosines >= least)
            best = candidates[np.argsort(-cosines[candidates], kind="stable")][:k].tolist()
            ranked = [(_copy(search.copies[d], item), float(cosines[d])) for d in best]
            yield Ranked(name, "retrieve", item, ranked, where)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


def _copy(copies: Mapping[str, str], item: str) -> str:
    """The item's own copy of a passage, else the first there is."""
    return copies.get(item) or next(iter(copies.values()))


def require_bm25() -> None:
    """Raises MissingExtra when the library is not installed."""
    try:
        import bm25s  # noqa: F401
    except ImportError as e:
        raise MissingExtra(
            "judge retrieve --retriever bm25 needs bm25s: pip install 'adjudge[retrieve]'"
        ) from e


def bm25(store: Store, options: Bm25, name: str, stage: str, dataset: str | None = None) -> Iterator[Ranked]:
    """The best passages of the data set (None: of the whole study) for each of its items.

    Passages are searched with their titles; a text that several items have is one document, and an
    item gets its own copy of it. Passages that share no word with the query are not listed. Equal
    scores are in the order of import. Raises UsageError for an unknown data set, BadInput when there
    is nothing to search or to search for.
    """
    import bm25s

    copies, texts = _corpus(store, dataset)
    queries = _queries(store, dataset, options.query)
    stop = options.stopwords if options.stopwords != "none" else None
    index = bm25s.BM25(k1=options.k1, b=options.b)
    index.index(bm25s.tokenize(texts, stopwords=stop, show_progress=False), show_progress=False)
    where = Where(str(store.path), 0)
    for start in range(0, len(queries), BATCH):
        some = queries[start : start + BATCH]
        tokens = bm25s.tokenize([q for _, q in some], stopwords=stop, show_progress=False, return_ids=False)
        # One more than asked for would not make the choice among equal scores at the cut any better.
        k = min(options.k, len(texts))
        documents, scores = index.retrieve(tokens, k=k, show_progress=False)
        for (item, _), row, values in zip(some, documents.tolist(), scores.tolist(), strict=True):
            best = sorted(
                (-score, document) for document, score in zip(row, values, strict=True) if score > 0
            )
            ranked = [(_copy(copies[d], item), round(-s, 6)) for s, d in best]
            yield Ranked(name, stage, item, ranked, where)


def _corpus(store: Store, dataset: str | None) -> tuple[list[dict[str, str]], list[str]]:
    """Of each distinct passage: its copies (item -> passage id) and the text that is searched."""
    there = [str(r[0]) for r in store.conn.execute("SELECT DISTINCT dataset FROM items ORDER BY 1")]
    if dataset is not None and dataset not in there:
        raise UsageError(f"no data set '{dataset}'; there are: {', '.join(there) or 'none'}")
    query = (
        "SELECT p.content_sha, p.passage_id, p.item_id, p.title, p.text FROM passages AS p "
        "JOIN items AS i USING (item_id) WHERE ?1 IS NULL OR i.dataset = ?1 ORDER BY p.rowid"
    )
    place: dict[str, int] = {}
    copies: list[dict[str, str]] = []
    texts: list[str] = []
    for sha, passage, item, title, text in store.conn.execute(query, [dataset]):
        if sha not in place:
            place[sha] = len(texts)
            texts.append(f"{title}\n{text}" if title else text)
            copies.append({})
        copies[place[sha]].setdefault(item, passage)
    if not texts:
        raise BadInput(f"{store.path}: no passages to search; judge items import brings some")
    return copies, texts


def _queries(store: Store, dataset: str | None, field: str) -> list[tuple[str, str]]:
    column = {"auto": "coalesce(claim, question)"}.get(field, field)
    query = (
        f"SELECT item_id, {column} FROM items WHERE (?1 IS NULL OR dataset = ?1) AND {column} IS NOT NULL "
        "ORDER BY rowid"
    )
    found = [(str(item), str(text)) for item, text in store.conn.execute(query, [dataset])]
    if not found:
        raise BadInput(
            f"{store.path}: no item has a {'claim or question' if field == 'auto' else field} to search for"
        )
    return found
