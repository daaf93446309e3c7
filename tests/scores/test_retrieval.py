"""Retrieval measures, and RAGuard's recall of misleading documents."""

from math import log2
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import BadInput, UsageError
from judge.papers import raguard
from judge.scores import retrieval
from tests.scores.helpers import numbers, points, table

QUERIES = table("unit_id", ("q1",), ("q2",))
RANKINGS = table(
    "item_id rank passage_id",
    ("q1", 2, "b"),
    ("q1", 1, "a"),
    ("q1", 3, "c"),
    ("q2", 1, "d"),
)
RELEVANCE = table(
    "item_id passage_id grade",
    ("q1", "a", 0),
    ("q1", "b", 1),
    ("q1", "c", 0),
    ("q1", "z", 1),
    ("q2", "d", 1),
)


def test_at_two() -> None:
    # q1: b among a, b: P 1/2, R 1/2 (z is missed), F1 1/2. q2: d, and nothing at rank 2: P 1/2, R 1, F1 2/3.
    # q1 DCG 1/log2(3); best order of all judged: two relevant, 1 + 1/log2(3); of the retrieved: 1.
    gain = 1 / log2(3)
    assert numbers(retrieval.score_at(2, QUERIES, RANKINGS, RELEVANCE)) == {
        "precision@2": 0.5,
        "recall@2": 0.75,
        "f1@2": pytest.approx((1 / 2 + 2 / 3) / 2),
        "ndcg@2": pytest.approx((gain / (1 + gain) + 1) / 2),
        "ndcg_retrieved@2": pytest.approx((gain + 1) / 2),
    }


def test_measures_by_the_names_of_ir_measures() -> None:
    # q1 ranks a, b, c; relevant are b and z, so AP is (1/2) / 2 and RR 1/2. q2 ranks d, which is relevant: 1 in both.
    # AP@1 and RR@1: 0 for q1. R@1000: 1 of 2, and 1. nDCG without a depth: q1 has 1/log2(3) of 1 + 1/log2(3).
    gain = 1 / log2(3)
    names = ["AP", "AP@1", "RR", "RR@1", "R@1000", "P@2", "nDCG", "nDCG@1"]
    assert numbers(retrieval.score_by_name(names, QUERIES, RANKINGS, RELEVANCE)) == pytest.approx(
        {
            "AP": (1 / 4 + 1) / 2,
            "AP@1": 1 / 2,
            "RR": 3 / 4,
            "RR@1": 1 / 2,
            "R@1000": 3 / 4,
            "P@2": 1 / 2,
            "nDCG": (gain / (1 + gain) + 1) / 2,
            "nDCG@1": 1 / 2,
        }
    )
    # A query without grades is in no measure, and one whose grades are all 0 in precision alone.
    nothing = pd.concat(
        [RELEVANCE[RELEVANCE["item_id"] == "q2"], table("item_id passage_id grade", ("q1", "a", 0))]
    )
    result = {
        s.measure: s.measure_score(interval=None)
        for s in retrieval.score_by_name(["AP", "P@1"], QUERIES, RANKINGS, nothing)
    }
    assert (result["AP"].value, result["AP"].n_units, result["P@1"].value) == (1.0, 1, 0.5)
    alone = RELEVANCE[RELEVANCE["item_id"] == "q2"]
    [found_alone] = retrieval.score_by_name(["P@1"], QUERIES, RANKINGS, alone)
    assert found_alone.measure_score(interval=None).n_units == 1


@pytest.mark.parametrize("name", ["ndcg@10", "P", "R", "nDCG@0", "nDCG@", "AP@1.5", "Success@5", ""])
def test_an_unknown_measure_lists_the_available_measures(name: str) -> None:
    with pytest.raises(UsageError, match="available: nDCG@10, P@10"):
        retrieval.score_by_name([name], QUERIES, RANKINGS, RELEVANCE)


def test_k_beyond_what_was_retrieved() -> None:
    result = numbers(retrieval.score_at(5, QUERIES, RANKINGS, RELEVANCE))
    # Precision divides by k all the same: (1/5 + 1/5) / 2.
    assert (result["precision@5"], result["recall@5"]) == (pytest.approx(0.2), 0.75)


def test_the_retrieved_ideal_sees_below_k() -> None:
    # b, the only relevant passage retrieved, is at rank 2: at k = 1 the best order would have had it first.
    ranking = RANKINGS[RANKINGS["item_id"] == "q1"]
    result = numbers(retrieval.score_at(1, QUERIES[:1], ranking, RELEVANCE))
    assert result["ndcg_retrieved@1"] == 0.0
    # With the two swapped the retrieved list is in its best order, although z is still missed.
    swapped = ranking.assign(rank=ranking["rank"].map({1: 2, 2: 1, 3: 3}))
    assert numbers(retrieval.score_at(3, QUERIES[:1], swapped, RELEVANCE))[
        "ndcg_retrieved@3"
    ] == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["nDCG(rel=2)@10", "nDCG(rel=1)", "nDCG(rel=3)@5"])
def test_ndcg_has_no_threshold_of_relevance(name: str) -> None:
    with pytest.raises(UsageError, match="nDCG") as error:
        retrieval.score_by_name(["AP", name], QUERIES, RANKINGS, RELEVANCE)
    assert name in str(error.value) and "rel" in str(error.value) and "gain" in str(error.value)


def test_graded_relevance() -> None:
    queries, ranked = table("unit_id", ("q",)), table("item_id rank passage_id", ("q", 1, "x"), ("q", 2, "y"))
    grades = table("item_id passage_id grade", ("q", "x", 1), ("q", "y", 2))
    # (1 + 2/log2(3)) / (2 + 1/log2(3)).
    result = numbers(retrieval.score_at(2, queries, ranked, grades))
    assert result["ndcg@2"] == pytest.approx((1 + 2 / log2(3)) / (2 + 1 / log2(3)))
    # A gain is a grade, whatever is relevant: without y nothing is, and x stands first.
    none = numbers(retrieval.score_by_name(["nDCG@2", "R(rel=2)@2"], queries, ranked, grades[:1]))
    assert none == {"nDCG@2": 1.0, "R(rel=2)@2": None}


def test_nothing_relevant_and_nothing_retrieved() -> None:
    queries = table("unit_id", ("q1",), ("q2",), ("q3",))
    relevance = RELEVANCE[RELEVANCE["item_id"] == "q1"]
    result = points(retrieval.score_at(2, queries, RANKINGS, relevance))
    # q2 has no judged passage and q3 no ranking: no value at all, precision included.
    assert (result["precision@2"].value, result["precision@2"].n_units) == (0.5, 1)
    assert (result["recall@2"].value, result["recall@2"].n_units) == (0.5, 1)
    assert result["recall@2"].notes[-1] == "2 of 3 units have no value: 2 not judged"


def test_a_missing_ranking_does_not_raise_a_mean() -> None:
    # q2 is not in the run: ir_measures and trec_eval -c say 0 there, so the mean is half of that of q1.
    only = RANKINGS[RANKINGS["item_id"] == "q1"]
    for result in (
        retrieval.score_by_name(["P@2"], QUERIES, only, RELEVANCE),
        retrieval.score_at(2, QUERIES, only, RELEVANCE, as_trec=True)[:1],
    ):
        (precision,) = points(result).values()
        assert (precision.value, precision.n_units) == (0.25, 2)
        assert "1 of 2 queries with grades have no ranking and count as 0" in precision.notes


def test_unjudged_passages_are_counted() -> None:
    relevance = RELEVANCE.assign(grade=[0, 1, None, 1, 1])
    result = points(retrieval.score_at(3, QUERIES, RANKINGS, relevance))["precision@3"]
    assert result.notes[0] == "1 of 4 retrieved passages are unjudged and count as not relevant"
    # It stands third.
    assert points(retrieval.score_at(2, QUERIES, RANKINGS, relevance))["precision@2"].notes == ()


@pytest.mark.parametrize(
    ("rankings", "message"),
    [
        (RANKINGS.assign(item_id="q9"), "'q9'"),
        (RANKINGS.assign(rank=[2, 0, 3, 1]), "'q1': rank 0 is not a whole number"),
        (RANKINGS.assign(rank=[2, 1.5, 3, 1]), "rank 1.5"),
        (RANKINGS.assign(rank=[1, 1, 3, 1]), "has rank '1' twice"),
        (RANKINGS.assign(passage_id=["a", "a", "c", "d"]), "has passage 'a' twice"),
    ],
)
def test_bad_rankings(rankings: pd.DataFrame, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        retrieval.score_at(2, QUERIES, rankings, RELEVANCE)


def test_two_grades_of_one_passage_are_an_error() -> None:
    with pytest.raises(BadInput, match="'q1' has two grades for passage 'a'"):
        retrieval.score_at(2, QUERIES, RANKINGS, pd.concat([RELEVANCE, RELEVANCE]))


def test_k_must_be_positive() -> None:
    with pytest.raises(BadInput, match="at least 1"):
        retrieval.score_at(0, QUERIES, RANKINGS, RELEVANCE)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), st.integers(1, 7), st.integers(0, 2))
def test_against_the_formulas(grades: list[int], k: int, missed: int) -> None:
    queries = table("unit_id", ("q",))
    ranked = table("item_id rank passage_id", *(("q", i + 1, f"p{i}") for i in range(len(grades))))
    judged = [("q", f"p{i}", g) for i, g in enumerate(grades)] + [("q", f"m{i}", 1) for i in range(missed)]
    result = numbers(retrieval.score_at(k, queries, ranked, table("item_id passage_id grade", *judged)))

    def dcg(values: list[int]) -> float:
        return sum(g / log2(i + 2) for i, g in enumerate(values[:k]))

    hits, relevant = sum(g > 0 for g in grades[:k]), sum(g > 0 for g in grades) + missed
    assert result[f"precision@{k}"] == pytest.approx(hits / k)
    assert result[f"recall@{k}"] == (pytest.approx(hits / relevant) if relevant else None)
    best = dcg(sorted([*grades, *[1] * missed], reverse=True))
    assert result[f"ndcg@{k}"] == (pytest.approx(dcg(grades) / best, abs=1e-6) if best else None)
    ideal = dcg(sorted(grades, reverse=True))
    assert result[f"ndcg_retrieved@{k}"] == pytest.approx(dcg(grades) / ideal if ideal else 0.0, abs=1e-6)


CLAIMS = table("item_id question_id", ("c1", "c1"), ("c2", "c2"), ("c3", "c3"))
DOCUMENTS = table(
    "document_id item_id role",
    ("m1", "c1", "misleading"),
    ("s1", "c1", "supporting"),
    ("m2", "c2", "misleading"),
    ("u2", "c2", "unrelated"),
    ("s3", "c3", "supporting"),
)
LISTS = table(
    "item_id rank passage_id",
    ("c1", 1, "m1"),
    ("c1", 2, "s1"),
    ("c2", 1, "u2"),
    ("c2", 2, "m1"),
    ("c3", 1, "s3"),
    ("c3", 2, "m2"),
)


def test_misleading_recall_in_its_four_readings() -> None:
    # Owning: c1, c2. Own: only c1 retrieves its own misleading document. Any: all three do, at rank 2 or before.
    result = numbers(raguard.misleading(2, CLAIMS, DOCUMENTS, LISTS))
    assert result == {
        "misleading_retrieval_recall@2[own/owning]": 0.5,
        "misleading_retrieval_recall@2[any/owning]": 1.0,
        "misleading_retrieval_recall@2[own/all]": pytest.approx(1 / 3),
        "misleading_retrieval_recall@2[any/all]": 1.0,
        # c1 one of two, c2 none of its own (one of any), c3 none (one).
        "misleading_exposure@2[own]": pytest.approx(1 / 6),
        "misleading_exposure@2[any]": 0.5,
    }
    assert next(iter(result)) == "misleading_retrieval_recall@2[own/owning]"


def test_only_the_first_reading_gives_the_oracle_its_100_percent() -> None:
    """Task 3 shows each claim all of its own documents; the paper prints 100 % for it."""
    lists = DOCUMENTS.assign(
        passage_id=DOCUMENTS["document_id"], rank=DOCUMENTS.groupby("item_id").cumcount() + 1
    )
    result = numbers(raguard.misleading(99, CLAIMS, DOCUMENTS, lists))
    assert result["misleading_retrieval_recall@99[own/owning]"] == 1.0
    assert result["misleading_retrieval_recall@99[own/all]"] == pytest.approx(2 / 3)


def test_a_claim_without_a_ranking_has_no_misleading_document() -> None:
    """Finding 2: nothing was retrieved for claim c1, which owns a misleading document. It counts as 0."""
    some = LISTS[LISTS["item_id"] != "c1"]
    result = points(raguard.misleading(1, CLAIMS, DOCUMENTS, some))[
        "misleading_retrieval_recall@1[own/owning]"
    ]
    assert (result.value, result.n_units, result.coverage) == (0.0, 2, 1.0)
    none = points(raguard.misleading(1, CLAIMS, DOCUMENTS.assign(role="supporting"), LISTS))
    assert none["misleading_retrieval_recall@1[own/owning]"].reason == "there are no units"


def test_associated_and_supporting_documents() -> None:
    wide = numbers(raguard.relevance(1, CLAIMS, DOCUMENTS, LISTS))
    # Every first document is its claim's own.
    assert wide["associated_precision@1"] == 1.0
    narrow = points(raguard.relevance(1, CLAIMS, DOCUMENTS, LISTS, relevant="supporting"))
    # First documents m1, u2, s3: one supports. c2 owns no supporting document: recall over c1 (0) and c3 (1).
    assert narrow["supporting_precision@1"].value == pytest.approx(1 / 3)
    assert (narrow["supporting_recall@1"].value, narrow["supporting_recall@1"].n_units) == (0.5, 2)


def test_unknown_documents_and_rules() -> None:
    with pytest.raises(BadInput, match="'x', which is not in the documents"):
        raguard.misleading(2, CLAIMS, DOCUMENTS, LISTS.assign(passage_id=list("xbcdef")))
    rule: Any = "noisy"
    with pytest.raises(BadInput, match="unknown relevant documents"):
        raguard.relevance(2, CLAIMS, DOCUMENTS, LISTS, relevant=rule)
