"""Judges against one reference: kappas, paired tests, who errs where."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel
from sklearn.metrics import cohen_kappa_score

from judge.notes import code_of
from judge.stats import Ratings
from judge.stats.contest import Duel, contest
from judge.stats.paired import compare, kappa_of, kappa_sums


def planted(n: int = 300, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Truth of three labels, and judges right on 85, 60 and 33 %."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    return truth, np.column_stack(
        [np.where(rng.random(n) < right, truth, rng.integers(0, 3, n)) for right in (0.8, 0.5, 0.0)]
    )


def table(codes: np.ndarray, truth: np.ndarray, clusters: np.ndarray | None = None) -> Ratings:
    names = ["gold", *(f"judge {i}" for i in range(codes.shape[1]))]
    return Ratings.from_codes(np.column_stack([truth, codes]), ["a", "b", "c"], names, clusters=clusters)


def duels_of(codes: np.ndarray, truth: np.ndarray, clusters: np.ndarray | None = None) -> list[Duel]:
    return contest(table(codes, truth, clusters), "gold")


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_differences_are_those_of_scikit_learn_and_do_not_depend_on_questions(weights: str | None) -> None:
    truth, codes = planted()
    wanted = [cohen_kappa_score(truth, own, labels=[0, 1, 2], weights=weights) for own in codes.T]
    name = "cohen_kappa" if weights is None else f"cohen_kappa:{weights}"
    for clusters in (None, np.arange(300) // 10):
        for d in contest(table(codes, truth, clusters), "gold", name):
            assert d.kappa.difference.value == pytest.approx(wanted[d.second] - wanted[d.first])


def test_agreement_of_single_units_is_the_paired_t_test() -> None:
    truth, codes = planted()
    right = codes == truth[:, None]
    for d in duels_of(codes, truth):
        known = ttest_rel(right[:, d.second].astype(float), right[:, d.first].astype(float))
        assert d.agreement.p_value == pytest.approx(known.pvalue, rel=1e-9)
        low, high = known.confidence_interval(0.95)
        m = d.agreement.difference
        assert (m.low, m.high) == (pytest.approx(low), pytest.approx(high))


def test_a_better_judge_is_found_and_the_order_of_rows_does_not_matter() -> None:
    truth, codes = planted()
    duels = duels_of(codes, truth)
    assert [(d.first, d.second) for d in duels] == [(0, 1), (0, 2), (1, 2)]
    assert all(d.kappa.difference.high is not None and d.kappa.difference.high < 0 for d in duels)
    assert all(d.kappa.adjusted is not None and d.kappa.adjusted < 0.001 for d in duels)
    shuffled = np.random.default_rng(0).permutation(300)
    again = duels_of(codes[shuffled], truth[shuffled])
    for d, other in zip(duels, again, strict=True):
        assert other.kappa.difference.value == pytest.approx(d.kappa.difference.value)
        assert other.kappa.p_value == pytest.approx(d.kappa.p_value) and other.only_first == d.only_first


def test_equal_judges_are_said_to_differ_in_five_percent_of_studies() -> None:
    # 60 questions of 5 units, two judges of the same accuracy whose errors cluster; 400 studies: 5 % + 3 s.e. is 8.3 %.
    rng = np.random.default_rng(11)
    n, shown = 300, 0
    questions = np.arange(n) // 5
    for _ in range(400):
        truth = rng.integers(0, 2, n)
        codes = np.empty((n, 2), dtype=np.int64)
        for j in range(2):
            hard = rng.beta(3, 1, 60)[questions]
            codes[:, j] = np.where(rng.random(n) < hard, truth, 1 - truth)
        [found] = compare(table(codes, truth, questions), ["judge 0", "judge 1"], "gold")
        shown += found.adjusted is not None and found.adjusted <= 0.05
    assert 0.02 <= shown / 400 <= 0.083


def test_who_errs_where_is_counted_label_by_label() -> None:
    truth = np.array([0, 0, 0, 1, 1, 2])
    codes = np.array([[0, 0], [0, 1], [0, 1], [0, 1], [0, 0], [2, 2]])
    [duel] = duels_of(codes, truth)
    assert duel.both == (1, 0, 1) and duel.only_first == (2, 0, 0)
    assert duel.only_second == (0, 1, 0) and duel.neither == (0, 1, 0)


def test_a_judge_of_one_label_counts_as_no_skill() -> None:
    truth, codes = planted()
    codes[:, 2] = 1
    first = cohen_kappa_score(truth, codes[:, 0])
    assert duels_of(codes, truth)[1].kappa.difference.value == pytest.approx(-first)
    flat = kappa_sums(np.zeros(4, int), np.zeros(4, int), np.arange(4), 3)
    assert np.isnan(kappa_of(flat.sum(axis=0, keepdims=True)))[0], "chance alone agrees: undefined"


def test_equal_labels_have_no_difference_and_no_interval() -> None:
    truth, codes = planted()
    [duel] = duels_of(codes[:, [0, 0]], truth)
    found = duel.kappa.difference
    assert found.value == 0 and found.low is None and duel.kappa.adjusted == 1
    assert [code_of(note) for note in found.notes] == ["same_everywhere"]
