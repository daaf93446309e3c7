"""Paired comparisons by jackknife: against scipy's paired t-test, by hand, and where nothing can be tested."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from judge.errors import BadInput
from judge.stats.coefficients import ratio
from judge.stats.jackknife import paired_difference, pseudo_values


def sums(values: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """One unit a question."""
    column = np.asarray(values, dtype=np.float64)
    return np.column_stack([column, np.ones(len(column))])


def mean(
    rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return ratio(rows[:, 0], rows[:, -1])


def test_of_means_it_is_the_paired_t_test() -> None:
    drawn = np.random.default_rng(2)
    first, second = drawn.random(40), drawn.random(40) + 0.1
    found = paired_difference(pseudo_values(sums(first), mean), pseudo_values(sums(second), mean))
    expected = ttest_rel(second, first)
    low, high = expected.confidence_interval(0.95)
    assert found.difference == pytest.approx((second - first).mean(), abs=1e-12)
    assert (found.p, found.low, found.high) == pytest.approx((expected.pvalue, low, high), abs=1e-12)
    assert found.n_clusters == 40


def test_pseudo_values_of_a_mean_are_the_values() -> None:
    whole, values = pseudo_values(sums([1, 0, 3]), mean)
    assert whole == pytest.approx(4 / 3)
    np.testing.assert_allclose(values, [1, 0, 3], atol=1e-12)


def test_pseudo_values_of_a_quotient_by_hand() -> None:
    # hits 1, 2, 0 of 2, 2, 1: 3/5. Without each: 2/3, 1/3, 3/4; three times .6 minus twice these.
    rows = np.array([[1, 2, 1], [2, 2, 1], [0, 1, 1]], dtype=np.float64)
    whole, values = pseudo_values(rows, lambda s: ratio(s[:, 0], s[:, 1]))
    assert whole == pytest.approx(0.6)
    np.testing.assert_allclose(values, [1.8 - 4 / 3, 1.8 - 2 / 3, 1.8 - 1.5])


@pytest.mark.parametrize(("shift", "p"), [(0.0, 1.0), (0.5, 2.0**-4)])
def test_a_difference_without_spread_has_the_sign_tests_p(shift: float, p: float) -> None:
    values = np.array([0.1, 0.2, 0.3, 0.4, 0.4])
    found = paired_difference(pseudo_values(sums(values), mean), pseudo_values(sums(values + shift), mean))
    assert (found.difference, found.low, found.p) == (pytest.approx(shift), None, p)


def test_what_cannot_be_tested_says_why() -> None:
    one = pseudo_values(sums([1.0]), mean)
    assert "1 shared questions" in str(paired_difference(one, one).reason)
    # Without the only question that has a denominator the quotient is undefined.
    rows = np.array([[1, 1, 1], [0, 0, 1]], dtype=np.float64)
    thin = pseudo_values(rows, lambda s: ratio(s[:, 0], s[:, 1]))
    found = paired_difference(thin, thin)
    assert (found.p, found.difference) == (None, None)
    assert "undefined" in str(found.reason)
    with pytest.raises(BadInput, match="same questions"):
        paired_difference(one, thin)


def test_under_no_difference_five_percent_are_found_and_intervals_say_the_same() -> None:
    drawn = np.random.default_rng(8)
    rejected = 0
    for _ in range(400):
        both = drawn.random((30, 2)) + drawn.random((30, 1))
        found = paired_difference(*(pseudo_values(sums(c), mean) for c in both.T))
        assert found.p is not None and found.low is not None and found.high is not None
        assert (found.p <= 0.05) == (not found.low <= 0 <= found.high)
        rejected += found.p <= 0.05
    # Binomial(400, .05): 9 to 33 with probability .999.
    assert 9 <= rejected <= 33
