"""Retrieval measures by pytrec_eval: precision, recall, F1 and NDCG at k, a value for each query, then the mean.

The one place that imports the library. Tables (see `judge.scores.tables`):
    queries    unit_id (the query), question_id
    rankings   item_id (the query), rank (from 1), passage_id: one row a retrieved passage
    relevance  item_id, passage_id, grade (0, 1, ...; None: not judged): one row a judged passage
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytrec_eval

from judge.errors import BadInput
from judge.scores.score import STATUSES, Score, Units, scored
from judge.scores.tables import column, units
from judge.stats.ratings import BoolArray, FloatArray

_NOT_JUDGED = np.int8(len(STATUSES) - 1)


def at(
    k: int,
    queries: pd.DataFrame,
    rankings: pd.DataFrame,
    relevance: pd.DataFrame,
    *,
    prefix: str = "",
    complete: bool = False,
) -> list[Score]:
    """Precision, recall, F1 and NDCG of the first k passages of each query.

    precision@k       relevant among the first k, over k (also when fewer were retrieved)
    recall@k          relevant among the first k, over all relevant ones
    f1@k              harmonic mean of the two for each query, then the mean (MIRAGE's repository)
    ndcg@k            DCG over that of the best order of all judged passages, gain = grade, log2(rank + 1)
    ndcg_retrieved@k  DCG over that of the retrieved list in its best order (MIRAGE's repository): a relevant
                      passage that was not retrieved costs nothing. 0 when nothing relevant was retrieved

    A query without a ranking has no value; one without a relevant passage has no recall, F1 and
    NDCG (trec_eval and MIRAGE's repository say 0). An unjudged passage is taken as not relevant, as
    trec_eval does, and counted in a note, unless the relevance is `complete`: what it lacks is not relevant.
    Raises BadInput for k < 1, ranks that are no whole numbers from 1, a passage or a rank twice in a
    query, two grades of one passage, and rankings of unknown queries.
    """
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    who = units(queries, "queries")
    rankings = checked(rankings, who)
    run = _nested(rankings["item_id"], rankings["passage_id"], -rankings["rank"].astype(np.float64))
    judged = relevance[column(relevance, "grade", "relevance").notna()]
    again = judged.duplicated(["item_id", "passage_id"])
    if again.any():
        row = judged[again].iloc[0]
        raise BadInput(f"query '{row['item_id']}' has two grades for passage '{row['passage_id']}'")
    qrels = _nested(judged["item_id"], judged["passage_id"], judged["grade"].astype(np.int64))
    n_first, n_unjudged = 0, 0
    for query, retrieved in run.items():
        inside = [name for name, score in retrieved.items() if -score <= k]
        known = qrels.get(query, {})
        n_first += len(inside)
        n_unjudged += sum(name not in known for name in inside)
    told = f"{n_unjudged} of {n_first} retrieved passages are unjudged: taken as not relevant"
    notes = (told,) if n_unjudged and not complete else ()

    ids = [str(name) for name in who.ids]
    ranked = np.array([name in run for name in ids], dtype=bool)
    has_relevant = np.array([any(g > 0 for g in qrels.get(name, {}).values()) for name in ids], dtype=bool)
    status = np.where(ranked, 0, _NOT_JUDGED).astype(np.int8)
    found = _evaluate(qrels, run, k)
    # The ideal of the retrieved list: nothing outside it is known to be relevant.
    kept = {
        query: {name: grade for name, grade in qrels.get(query, {}).items() if name in retrieved}
        for query, retrieved in run.items()
    }
    own = _evaluate(kept, run, k)

    def column_of(source: dict[str, dict[str, float]], name: str, defined: BoolArray) -> FloatArray:
        values = np.array([source.get(query, {}).get(name, 0.0) for query in ids], dtype=np.float64)
        return np.where(defined, values, np.nan)

    precision = column_of(found, f"P_{k}", ranked)
    recall = column_of(found, f"recall_{k}", ranked & has_relevant)
    total = precision + recall
    f1 = np.where(total > 0, 2 * precision * recall / np.where(total > 0, total, 1), total)
    ndcg = column_of(found, f"ndcg_cut_{k}", ranked & has_relevant)
    ndcg_retrieved = column_of(own, f"ndcg_cut_{k}", ranked)
    return [
        scored(f"{prefix}{name}@{k}", who, values, status, why="no relevant passage", notes=notes)
        for name, values in (
            ("precision", precision),
            ("recall", recall),
            ("f1", f1),
            ("ndcg", ndcg),
            ("ndcg_retrieved", ndcg_retrieved),
        )
    ]


def checked(rankings: pd.DataFrame, who: Units) -> pd.DataFrame:
    """Rankings that can be used: known queries, whole ranks from 1, each rank and passage once a query."""
    query, rank = column(rankings, "item_id", "rankings"), column(rankings, "rank", "rankings")
    column(rankings, "passage_id", "rankings")
    unknown = ~query.isin(who.ids)
    if unknown.any():
        raise BadInput(f"a ranking speaks of '{query[unknown].iloc[0]}', which is not in the queries")
    number = pd.to_numeric(rank, errors="coerce")
    bad = ~(number >= 1) | (number % 1 != 0)
    if bad.any():
        raise BadInput(f"query '{query[bad].iloc[0]}': rank {rank[bad].iloc[0]} is no whole number from 1")
    for other, what in (("passage_id", "passage"), ("rank", "rank")):
        twice = rankings.duplicated(["item_id", other])
        if twice.any():
            row = rankings[twice].iloc[0]
            raise BadInput(f"query '{row['item_id']}' has {what} '{row[other]}' twice")
    return rankings


def _nested(query: pd.Series, passage: pd.Series, value: pd.Series) -> dict[str, dict[str, Any]]:
    """{query: {passage: value}}, with ids as strings: what the library takes."""
    found: dict[str, dict[str, Any]] = {}
    columns = (column.to_numpy(dtype=object).tolist() for column in (query, passage))
    for one, other, number in zip(*columns, value.tolist(), strict=True):
        found.setdefault(str(one), {})[str(other)] = number
    return found


def _evaluate(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]], k: int
) -> dict[str, dict[str, float]]:
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {f"P.{k}", f"recall.{k}", f"ndcg_cut.{k}"})
    found: dict[str, dict[str, float]] = evaluator.evaluate(run)
    return found
