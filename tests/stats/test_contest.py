"""Judges against one reference: kappas, paired tests, who errs where."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel
from sklearn.metrics import cohen_kappa_score

from judge.stats.contest import contest, kappa_of, kappa_sums


def planted(n: int = 300, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Truth of three labels, and judges right on 85, 60 and 33 %."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    return truth, np.column_stack(
        [np.where(rng.random(n) < right, truth, rng.integers(0, 3, n)) for right in (0.8, 0.5, 0.0)]
    )


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_kappa_is_that_of_scikit_learn_and_does_not_depend_on_questions(weights: str | None) -> None:
    truth, codes = planted()
    alone, _ = contest(codes, truth, np.arange(300), 3, weights)
    by_ten, _ = contest(codes, truth, np.arange(300) // 10, 3, weights)
    for i in range(3):
        wanted = cohen_kappa_score(truth, codes[:, i], labels=[0, 1, 2], weights=weights)
        assert alone[i].kappa == pytest.approx(wanted) and by_ten[i].kappa == pytest.approx(wanted)


def test_agreement_of_single_units_is_the_paired_t_test() -> None:
    truth, codes = planted()
    right = codes == truth[:, None]
    _, duels = contest(codes, truth, np.arange(300), 3)
    for d in duels:
        known = ttest_rel(right[:, d.second].astype(float), right[:, d.first].astype(float))
        assert d.agreement.p == pytest.approx(known.pvalue, rel=1e-9)
        low, high = known.confidence_interval(0.95)
        assert (d.agreement.low, d.agreement.high) == (pytest.approx(low), pytest.approx(high))


def test_a_better_judge_is_found_and_the_order_of_rows_does_not_matter() -> None:
    truth, codes = planted()
    _, duels = contest(codes, truth, np.arange(300), 3)
    assert [(d.first, d.second) for d in duels] == [(0, 1), (0, 2), (1, 2)]
    assert all(d.kappa.difference is not None and d.kappa.difference < 0 for d in duels)
    assert all(d.p_holm is not None and d.p_holm < 0.001 for d in duels)
    shuffled = np.random.default_rng(0).permutation(300)
    _, again = contest(codes[shuffled], truth[shuffled], np.arange(300), 3)
    for d, other in zip(duels, again, strict=True):
        assert other.kappa.difference == pytest.approx(d.kappa.difference)
        assert other.kappa.p == pytest.approx(d.kappa.p) and other.only_first == d.only_first


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
        _, [duel] = contest(codes, truth, questions, 2)
        shown += duel.p_holm is not None and duel.p_holm <= 0.05
    assert 0.02 <= shown / 400 <= 0.083


def test_who_errs_where_is_counted_label_by_label() -> None:
    truth = np.array([0, 0, 0, 1, 1, 2])
    codes = np.array([[0, 0], [0, 1], [0, 1], [0, 1], [0, 0], [2, 2]])
    _, [duel] = contest(codes, truth, np.arange(6), 3)
    assert duel.both == (1, 0, 1) and duel.only_first == (2, 0, 0)
    assert duel.only_second == (0, 1, 0) and duel.neither == (0, 1, 0)


def test_a_judge_of_one_label_has_no_kappa_and_counts_as_no_skill() -> None:
    truth, codes = planted()
    codes[:, 2] = 1
    standings, duels = contest(codes, truth, np.arange(300), 3)
    assert standings[2].kappa is None and standings[2].n_labels == 1
    assert duels[1].kappa.difference == pytest.approx(-standings[0].kappa)  # type: ignore[operator]
    flat = kappa_sums(np.zeros(4, int), np.zeros(4, int), np.arange(4), 3)
    assert np.isnan(kappa_of(flat.sum(axis=0, keepdims=True)))[0], "chance alone agrees: undefined"


def test_equal_labels_have_no_difference_and_no_interval() -> None:
    truth, codes = planted()
    _, [duel] = contest(codes[:, [0, 0]], truth, np.arange(300), 3)
    assert duel.kappa.difference == 0 and duel.kappa.low is None and duel.p_holm == 1
