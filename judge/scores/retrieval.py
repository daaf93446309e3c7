"""Retrieval measures based on pytrec_eval: precision, recall, F1 and NDCG at k, computed for each query and
then averaged.

This is the only module that imports the library. Tables (see `judge.scores.columns`):
    queries    unit_id (the query), question_id
    rankings   item_id (the query), rank (from 1), passage_id: one row per retrieved passage
    relevance  item_id, passage_id, grade (0, 1, ...; None: not judged): one row per judged passage
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytrec_eval

from judge.errors import BadInput, UsageError
from judge.scores.columns import column, positions, units
from judge.scores.score import NOT_JUDGED_CODE, Score, StatusArray, Units, harmonic, score_values
from judge.stats.ratings import BoolArray, FloatArray, IntArray

Numbers = IntArray | FloatArray

NONE_RELEVANT = "no relevant passage"
_NAME = re.compile(r"(?P<kind>nDCG|P|R|RR|AP)(\(rel=(?P<rel>[1-9][0-9]?)\))?(@(?P<depth>[1-9][0-9]{0,5}))?")
"""A measure in the notation of ir_measures. `rel` is the lowest grade of a relevant passage."""
_CUT = {"nDCG": "ndcg_cut", "P": "P", "R": "recall", "AP": "map_cut"}
_WHOLE = {"nDCG": "ndcg", "AP": "map"}
"""The names of the measures in pytrec_eval, with and without a depth."""


def score_at(
    k: int,
    queries: pd.DataFrame,
    rankings: pd.DataFrame,
    relevance: pd.DataFrame,
    *,
    complete: bool = False,
    as_trec: bool = False,
) -> list[Score]:
    """Return precision, recall, F1 and NDCG of the first k passages of each query.

    precision@k       relevant among the first k, over k (even if fewer were retrieved)
    recall@k          relevant among the first k, over all relevant ones
    f1@k              harmonic mean of the two for each query, then the mean (MIRAGE's repository)
    ndcg@k            DCG over the DCG of the best order of all judged passages, gain = grade, log2(rank + 1)
    ndcg_retrieved@k  DCG over the DCG of the retrieved list in its best order (MIRAGE's repository): a relevant
                      passage that was not retrieved costs nothing. 0 if nothing relevant was retrieved
    mrr@k             only with `as_trec`, in place of ndcg_retrieved@k: 1 over the rank of the first relevant
                      passage, or 0 if none is among the first k

    A query for which nothing was retrieved has the value 0 (as in ir_measures), because a retriever must not gain
    by returning nothing. A query without a judged passage has no value. A query without a relevant passage has no recall, F1 or NDCG
    (trec_eval and MIRAGE's repository report 0). As in trec_eval, an unjudged passage counts as not relevant.
    A note gives the number of unjudged passages. If `complete` is true, passages without a grade are known to
    be irrelevant, and the note is left out. Raises BadInput if k < 1, a rank is not a whole number from 1, a
    passage or a rank occurs twice in a query, a passage has two grades, or a ranking is for an unknown query.
    """
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    topics = _topics(queries, rankings, relevance, complete, 1)
    precision = topics.values(f"P_{k}")
    recall = topics.values(f"recall_{k}")
    named = {
        "precision": precision,
        "recall": recall,
        "f1": harmonic(precision, recall),
        "ndcg": topics.values(f"ndcg_cut_{k}"),
    }
    if as_trec:
        # The whole pool is judged there, so an ideal order of the retrieved list would add no information.
        named["mrr"] = topics.first(k).values("recip_rank")
    else:
        named["ndcg_retrieved"] = topics.with_retrieved_ideal().values(f"ndcg_cut_{k}")
    notes = topics.notes(k)
    return [
        score_values(f"{name}@{k}", topics.who, values, topics.status, reason=NONE_RELEVANT, notes=notes)
        for name, values in named.items()
    ]


def score_by_name(
    names: Sequence[str],
    queries: pd.DataFrame,
    rankings: pd.DataFrame,
    relevance: pd.DataFrame,
) -> list[Score]:
    """Return the measures with these names from ir_measures: nDCG, P, R, RR and AP. Only P and R require a
    depth (as in P@10).

    `P(rel=2)@10` counts passages with a grade of at least 2 as relevant; without `rel` the least relevant
    grade is 1. nDCG does not accept `rel`.

    Queries without rankings or grades are treated as in `score_at`. Raises the same errors as
    `score_at`, and UsageError for an unknown name or for nDCG with `rel`.
    """
    scores = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None or (match["kind"] in ("P", "R") and match["depth"] is None):
            raise UsageError(
                f"unknown measure '{name}'; available: nDCG@10, P@10, R@10, RR@10 and AP@10 (any depth); nDCG, RR, AP; "
                "P(rel=2)@10"
            )
        if match["kind"] == "nDCG" and match["rel"]:
            # The gain of nDCG is the grade itself. Accepting `rel` would print the value of nDCG under another name.
            raise UsageError(
                f"--measure {name}: nDCG does not accept rel, because its gain is the grade itself; write nDCG"
                + (f"@{match['depth']}" if match["depth"] else "")
            )
        relevant_from = int(match["rel"] or 1)
        topics = _topics(queries, rankings, relevance, False, relevant_from)
        kind, depth = match["kind"], match["depth"]
        if kind == "RR":
            # The library has no depth for the reciprocal rank, so the run is truncated.
            values = (topics.first(int(depth)) if depth else topics).values("recip_rank")
        else:
            values = topics.values(f"{_CUT[kind]}_{depth}" if depth else _WHOLE[kind])
        notes = topics.notes(int(depth) if depth else None)
        scores.append(
            score_values(name, topics.who, values, topics.status, reason=NONE_RELEVANT, notes=notes)
        )
    return scores


@dataclass(frozen=True, slots=True)
class _Topics:
    """Queries with their rankings and grades, in the format of pytrec_eval: {query: {passage: grade, or minus
    its rank}}.
    """

    who: Units
    run: dict[str, dict[str, float]]
    qrels: dict[str, dict[str, int]]
    relevant_from: int
    complete: bool
    has_qrels: BoolArray
    has_relevant: BoolArray
    has_gain: BoolArray

    @property
    def status(self) -> StatusArray:
        """The status of each query: ok (0) if the query has grades, else "not judged"."""
        return np.where(self.has_qrels, 0, NOT_JUDGED_CODE).astype(np.int8)

    def values(self, measure: str) -> FloatArray:
        """Return pytrec_eval's value of a measure for each query, or nan if it is undefined."""
        family, _, depth = measure.rpartition("_")
        measure_name = f"{family}.{depth}" if depth.isdecimal() else measure
        evaluator = pytrec_eval.RelevanceEvaluator(
            self.qrels, {measure_name}, relevance_level=self.relevant_from
        )
        # The library leaves out queries without a ranking or without judged passages; those get 0 here, or nan below.
        by_query: dict[str, dict[str, float]] = evaluator.evaluate(self.run)
        values = [by_query.get(str(query), {}).get(measure, 0.0) for query in self.who.ids]
        needs = self.has_gain if measure.startswith("ndcg") else self.has_relevant
        defined = self.has_qrels if measure.startswith("P_") else self.has_qrels & needs
        return np.where(defined, np.array(values, dtype=np.float64), np.nan)

    def first(self, k: int) -> _Topics:
        """Return the topics with the first k passages of each ranking."""
        cut = {query: {name: s for name, s in kept.items() if -s <= k} for query, kept in self.run.items()}
        return replace(self, run=cut)

    def with_retrieved_ideal(self) -> _Topics:
        """Return the topics with the grades of retrieved passages only. The ideal ranking is then the retrieved
        list in its best order.
        """
        nothing: dict[str, int] = {}
        kept = {
            query: {
                name: grade for name, grade in self.qrels.get(query, nothing).items() if name in retrieved
            }
            for query, retrieved in self.run.items()
        }
        # MIRAGE's repository returns 0 if nothing relevant was retrieved, so every query has a value.
        return replace(self, qrels=kept, has_gain=np.ones_like(self.has_gain))

    def notes(self, k: int | None) -> tuple[str, ...]:
        """Return notes on ungraded passages among the first k (None: all), and on queries that count although
        they have no ranking.
        """
        missing = sum(str(query) not in self.run for query in self.who.ids[self.has_qrels])
        note = f"{missing} of {int(self.has_qrels.sum())} queries with grades have no ranking and count as 0"
        absent = (note,) if missing else ()
        nothing: dict[str, int] = {}
        n_first = n_unjudged = 0
        for query, retrieved in self.run.items():
            known = self.qrels.get(query, nothing)
            for name, score in retrieved.items():
                if k is None or -score <= k:
                    n_first += 1
                    n_unjudged += name not in known
        if not n_unjudged or self.complete:
            return absent
        return (
            f"{n_unjudged} of {n_first} retrieved passages are unjudged and count as not relevant",
            *absent,
        )


def _topics(
    queries: pd.DataFrame,
    rankings: pd.DataFrame,
    relevance: pd.DataFrame,
    complete: bool,
    relevant_from: int,
) -> _Topics:
    who = units(queries, "queries")
    where = check_rankings(rankings, who)
    rank = rankings["rank"].to_numpy(dtype=np.float64)
    # The library sorts by score and breaks ties by name. Minus the rank keeps the order of the file.
    run = _nest(who, where, rankings["passage_id"], -rank)
    judged = relevance[column(relevance, "grade", "relevance").notna()]
    again = judged.duplicated(["item_id", "passage_id"])
    if again.any():
        row = judged[again].iloc[0]
        raise BadInput(f"query '{row['item_id']}' has two grades for passage '{row['passage_id']}'")
    of = who.ids.get_indexer(pd.Index(judged["item_id"].to_numpy())).astype(np.int64)
    grades = judged["grade"].to_numpy(dtype=np.int64)
    qrels = _nest(who, of, column(judged, "passage_id", "relevance"), grades)
    ids = [str(name) for name in who.ids]
    # A query without any judged passage says nothing about a ranking: it is left out of every measure.
    has_qrels = np.array([complete or name in qrels for name in ids], dtype=bool)
    best = [max(qrels.get(name, {}).values(), default=0) for name in ids]
    return _Topics(
        who,
        run,
        qrels,
        relevant_from,
        complete,
        has_qrels=has_qrels,
        has_relevant=np.array([grade >= relevant_from for grade in best], dtype=bool),
        has_gain=np.array([grade > 0 for grade in best], dtype=bool),
    )


def check_rankings(rankings: pd.DataFrame, who: Units) -> IntArray:
    """Check the rankings, and return the position of each row's query.

    Raises BadInput if a query is unknown, a rank is not a whole number from 1, or a rank or passage occurs twice in a query.
    """
    query, rank = column(rankings, "item_id", "rankings"), column(rankings, "rank", "rankings")
    # The library takes nested dicts, in which a passage that is listed twice would silently replace the first.
    where = positions(query, who, "rankings", "queries")
    number = pd.to_numeric(rank, errors="coerce")
    bad = (~(number >= 1) | (number % 1 != 0)).to_numpy()
    if bad.any():
        raise BadInput(
            f"query '{query[bad].iloc[0]}': rank {rank[bad].iloc[0]} is not a whole number of at least 1"
        )
    for name, label in (("passage_id", "passage"), ("rank", "rank")):
        codes, distinct = pd.factorize(column(rankings, name, "rankings"))
        twice = pd.Series(where * (len(distinct) + 1) + codes).duplicated().to_numpy()
        if twice.any():
            row = rankings[twice].iloc[0]
            raise BadInput(f"query '{row['item_id']}' has {label} '{row[name]}' twice")
    return where


def _nest(who: Units, where: IntArray, passage: pd.Series, value: Numbers) -> dict[str, dict[str, Any]]:
    """Return {query: {passage: value}} with ids as strings, which is the format of the library. Queries
    without rows are left out.
    """
    order = np.argsort(where, kind="stable")
    names = list(map(str, passage.to_numpy(dtype=object)[order].tolist()))
    values = value[order].tolist()
    ends = np.searchsorted(where[order], np.arange(len(who) + 1)).tolist()
    return {
        str(query): dict(zip(names[a:b], values[a:b], strict=True))
        for query, a, b in zip(who.ids, ends[:-1], ends[1:], strict=True)
        if b > a
    }
