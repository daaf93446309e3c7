"""Measures of rankings against what ranx gave, and the order of systems against scipy and by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from judge.scores import retrieval, system_order
from tests.retrieval.planted import RANX, SYSTEMS, qrels, runs
from tests.scores.helpers import numbers

QUERIES = pd.DataFrame({"unit_id": list(qrels()), "question_id": list(qrels())})
RELEVANCE = pd.DataFrame(
    [(q, d, g) for q, grades in qrels().items() for d, g in grades.items()],
    columns=["item_id", "passage_id", "grade"],
)


def ranking(name: str) -> pd.DataFrame:
    rows = [
        (query, rank, document)
        for query, scores in runs()[name].items()
        for rank, document in enumerate(sorted(scores, key=scores.__getitem__, reverse=True), 1)
    ]
    return pd.DataFrame(rows, columns=["item_id", "rank", "passage_id"])


@pytest.mark.parametrize("system", SYSTEMS)
def test_measures_equal_those_of_ranx(system: str) -> None:
    tables = (QUERIES, ranking(system), RELEVANCE)
    of_ranx = RANX[system]
    at_five = numbers(retrieval.score_at(5, *tables, as_trec=True))
    assert at_five == pytest.approx({name: of_ranx[name] for name in at_five}, abs=1e-12)
    names = {
        "nDCG@10": "ndcg@10", "nDCG@5": "ndcg@5", "P@5": "precision@5", "R@5": "recall@5",
        "RR@5": "mrr@5", "P(rel=2)@10": "precision@10-l2", "RR(rel=2)@5": "mrr@5-l2",
    }  # fmt: skip
    by_name = numbers(retrieval.score_by_name(list(names), *tables))
    assert by_name == pytest.approx({ours: of_ranx[theirs] for ours, theirs in names.items()}, abs=1e-12)


def test_tau_b_equals_that_of_scipy_with_ties() -> None:
    drawn = np.random.default_rng(3)
    first = drawn.integers(0, 4, (200, 6)).astype(float)
    second = drawn.integers(0, 4, (200, 6)).astype(float)
    first[0] = 1.0
    result = system_order.tau_b(first, second)
    expected = [kendalltau(a, b).statistic for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(result, expected, atol=1e-12)
    assert np.isnan(result[0])


# p = 0.9, two systems. Same order: A_1 = A_2 = 1, .81 + (.1/.9)(.9 + .81) = .81 + .1 + .09 = 1.
# The other way round: A_1 = 0, A_2 = 1: .81 + (.1/.9)(.81) = .81 + .09 = .9.
# Both tied in one (rank 1 for both), apart in the other: A_1 = 2·1/(2+1) = 2/3, A_2 = 1:
# .81 + (.1/.9)(.9·2/3 + .81) = .81 + .0667 + .09 = .9667.
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [([2, 1], [5, 3], 1.0), ([2, 1], [3, 5], 0.9), ([1, 1], [3, 5], 0.81 + 0.1 * 2 / 3 + 0.09)],
)
def test_rank_biased_overlap_by_hand(first: list[float], second: list[float], expected: float) -> None:
    result = system_order.rank_biased_overlap(np.array([first], float), np.array([second], float))
    assert result[0] == pytest.approx(expected, abs=1e-12)


def test_identical_orders_overlap_completely() -> None:
    drawn = np.random.default_rng(5)
    first, second = drawn.random((50, 7)), drawn.random((50, 7))
    order = drawn.permutation(7)
    np.testing.assert_allclose(system_order.rank_biased_overlap(first, first * 3), 1.0, atol=1e-12)
    for measure in (system_order.rank_biased_overlap, system_order.tau_b):
        np.testing.assert_allclose(measure(first, second), measure(first[:, order], second[:, order]))
        np.testing.assert_allclose(measure(first, second), measure(second, first))


def test_orders_use_the_same_queries_and_need_three_systems() -> None:
    # Six queries, five systems with means .1 to .5 in both; the last query lacks a system: it is in no mean.
    first = np.tile([0.1, 0.2, 0.3, 0.4, 0.5], (6, 1))
    second = first.copy()
    second[5] = [9.0, 0.0, 0.0, 0.0, 0.0]
    first[5, 2] = np.nan
    queries = pd.DataFrame({"unit_id": range(6)})
    tau, rbo = system_order.agreement("ndcg@10", queries, first.T, second.T)
    measured = tau.measure_score(interval=None)
    assert (measured.value, measured.n_units) == (1.0, 5)
    assert rbo.measure_score(interval=None).value == pytest.approx(1.0)
    few, _ = system_order.agreement("ndcg@10", queries, first.T[:2], second.T[:2])
    assert few.measure_score().value is None
    assert "at least 3" in str(few.measure_score().reason)
    # Three systems have 3! = 6 orders, and 0 to 3 of their 3 pairs are in the same order: four values.
    first, second = np.tile([0.1, 0.2, 0.3], (6, 1)), np.tile([0.1, 0.3, 0.2], (6, 1))
    three, _ = system_order.agreement("ndcg@10", queries, first.T, second.T)
    measured = three.measure_score(interval=None)
    assert measured.value == pytest.approx(1 / 3)
    [note] = [note for note in measured.notes if "orders" in str(note)]
    assert "3 systems" in str(note) and "6 orders" in str(note) and "4 values" in str(note)


def test_many_systems_have_no_note_on_few_values() -> None:
    queries = pd.DataFrame({"unit_id": range(6)})
    values = np.tile(np.linspace(0, 1, 8), (6, 1)).T
    tau, _ = system_order.agreement("ndcg@10", queries, values, values)
    assert not any("orders" in str(note) for note in tau.measure_score(interval=None).notes)
