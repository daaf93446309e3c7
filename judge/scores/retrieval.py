"""Retrieval measures by pytrec_eval: precision, recall, F1 and NDCG at k, a value for each query, then the mean.

The one place that imports the library. Tables (see `judge.scores.columns`):
    queries    unit_id (the query), question_id
    rankings   item_id (the query), rank (from 1), passage_id: one row a retrieved passage
    relevance  item_id, passage_id, grade (0, 1, ...; None: not judged): one row a judged passage
"""

from typing import Any

import numpy as np
import pandas as pd
import pytrec_eval

from judge.errors import BadInput
from judge.scores.columns import column, positions, units
from judge.scores.score import STATUSES, Score, Units, scored
from judge.stats.ratings import BoolArray, FloatArray, IntArray

Numbers = IntArray | FloatArray

_NOT_JUDGED = np.int8(len(STATUSES) - 1)


def at(
    k: int,
    queries: pd.DataFrame,
    rankings: pd.DataFrame,
    relevance: pd.DataFrame,
    *,
    prefix: str = "",
    suffix: str = "",
    complete: bool = False,
    relevant_from: int = 1,
    reciprocal: bool = False,
) -> list[Score]:
    """Precision, recall, F1 and NDCG of the first k passages of each query.

    precision@k       relevant among the first k, over k (also when fewer were retrieved)
    recall@k          relevant among the first k, over all relevant ones
    f1@k              harmonic mean of the two for each query, then the mean (MIRAGE's repository)
    ndcg@k            DCG over that of the best order of all judged passages, gain = grade, log2(rank + 1)
    ndcg_retrieved@k  DCG over that of the retrieved list in its best order (MIRAGE's repository): a relevant
                      passage that was not retrieved costs nothing. 0 when nothing relevant was retrieved
    mrr@k             with `reciprocal`: 1 over the rank of the first relevant one, 0 where none is among the first k

    Relevant is a grade of `relevant_from` or more; the gain of NDCG is the grade itself whatever it says.
    A query without a ranking, or without a judged passage, has no value; one without a relevant passage has no recall, F1 and
    NDCG (trec_eval and MIRAGE's repository say 0). An unjudged passage is taken as not relevant, as
    trec_eval does, and counted in a note, unless the relevance is `complete`: what it lacks is not relevant.
    Raises BadInput for k < 1, ranks that are no whole numbers from 1, a passage or a rank twice in a
    query, two grades of one passage, and rankings of unknown queries.
    """
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    who = units(queries, "queries")
    where = checked(rankings, who)
    rank = rankings["rank"].to_numpy(dtype=np.float64)
    run = _nested(who, where, rankings["passage_id"], -rank)
    judged = relevance[column(relevance, "grade", "relevance").notna()]
    again = judged.duplicated(["item_id", "passage_id"])
    if again.any():
        row = judged[again].iloc[0]
        raise BadInput(f"query '{row['item_id']}' has two grades for passage '{row['passage_id']}'")
    of = who.ids.get_indexer(pd.Index(judged["item_id"].to_numpy())).astype(np.int64)
    grades = judged["grade"].to_numpy(dtype=np.int64)
    qrels = _nested(who, of, column(judged, "passage_id", "relevance"), grades)
    n_first = int((rank <= k).sum())
    nothing: dict[str, int] = {}
    n_unjudged = sum(
        name not in known
        for query, retrieved in run.items()
        if len(known := qrels.get(query, nothing)) < len(retrieved) or not retrieved.keys() <= known.keys()
        for name, score in retrieved.items()
        if -score <= k
    )
    told = f"{n_unjudged} of {n_first} retrieved passages are unjudged: taken as not relevant"
    notes = (told,) if n_unjudged and not complete else ()

    ids = [str(name) for name in who.ids]
    # A query without any judged passage says nothing about a ranking: it is left out of every measure.
    has_qrels = np.array([complete or name in qrels for name in ids], dtype=bool)
    ranked = np.array([name in run for name in ids], dtype=bool) & has_qrels
    has_relevant = np.array(
        [any(g >= relevant_from for g in qrels.get(name, {}).values()) for name in ids], dtype=bool
    )
    has_gain = np.array([any(g > 0 for g in qrels.get(name, {}).values()) for name in ids], dtype=bool)
    status = np.where(ranked, 0, _NOT_JUDGED).astype(np.int8)
    found = _evaluate(qrels, run, k, relevant_from)
    # The ideal of the retrieved list: nothing outside it is known to be relevant.
    kept = {
        query: {name: grade for name, grade in qrels.get(query, {}).items() if name in retrieved}
        for query, retrieved in run.items()
    }
    own = _evaluate(kept, run, k, relevant_from)

    def column_of(source: dict[str, dict[str, float]], name: str, defined: BoolArray) -> FloatArray:
        values = np.array([source.get(query, {}).get(name, 0.0) for query in ids], dtype=np.float64)
        return np.where(defined, values, np.nan)

    precision = column_of(found, f"P_{k}", ranked)
    recall = column_of(found, f"recall_{k}", ranked & has_relevant)
    total = precision + recall
    f1 = np.where(total > 0, 2 * precision * recall / np.where(total > 0, total, 1), total)
    ndcg = column_of(found, f"ndcg_cut_{k}", ranked & has_gain)
    ndcg_retrieved = column_of(own, f"ndcg_cut_{k}", ranked)
    named = {
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "ndcg": ndcg,
        "ndcg_retrieved": ndcg_retrieved,
    }
    if reciprocal:
        first = {q: {name: s for name, s in kept.items() if -s <= k} for q, kept in run.items()}
        named["mrr"] = column_of(
            _evaluate(qrels, first, k, relevant_from), "recip_rank", ranked & has_relevant
        )
    return [
        scored(f"{prefix}{name}@{k}{suffix}", who, values, status, why="no relevant passage", notes=notes)
        for name, values in named.items()
    ]


def checked(rankings: pd.DataFrame, who: Units) -> IntArray:
    """The position of each row's query, once the rankings are found usable.

    Known queries, whole ranks from 1, each rank and each passage once a query; else BadInput.
    """
    query, rank = column(rankings, "item_id", "rankings"), column(rankings, "rank", "rankings")
    where = positions(query, who, "rankings", "queries")
    number = pd.to_numeric(rank, errors="coerce")
    bad = (~(number >= 1) | (number % 1 != 0)).to_numpy()
    if bad.any():
        raise BadInput(f"query '{query[bad].iloc[0]}': rank {rank[bad].iloc[0]} is no whole number from 1")
    for name, what in (("passage_id", "passage"), ("rank", "rank")):
        codes, distinct = pd.factorize(column(rankings, name, "rankings"))
        twice = pd.Series(where * (len(distinct) + 1) + codes).duplicated().to_numpy()
        if twice.any():
            row = rankings[twice].iloc[0]
            raise BadInput(f"query '{row['item_id']}' has {what} '{row[name]}' twice")
    return where


def _nested(who: Units, where: IntArray, passage: pd.Series, value: Numbers) -> dict[str, dict[str, Any]]:
    """{query: {passage: value}}, with ids as strings: what the library takes. Other queries are left out."""
    order = np.argsort(where, kind="stable")
    names = list(map(str, passage.to_numpy(dtype=object)[order].tolist()))
    values = value[order].tolist()
    ends = np.searchsorted(where[order], np.arange(len(who) + 1)).tolist()
    return {
        str(query): dict(zip(names[a:b], values[a:b], strict=True))
        for query, a, b in zip(who.ids, ends[:-1], ends[1:], strict=True)
        if b > a
    }


def _evaluate(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]], k: int, relevant_from: int
) -> dict[str, dict[str, float]]:
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, {f"P.{k}", f"recall.{k}", f"ndcg_cut.{k}", "recip_rank"}, relevance_level=relevant_from
    )
    found: dict[str, dict[str, float]] = evaluator.evaluate(run)
    return found
