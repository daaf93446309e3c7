"""Weighted units: confusion shares, estimated classes, the alt-test's shares, many pairs, and which have an interval.

A weight of 2 says that a unit stands for two, so that each value is that of the table in which the unit is there twice.
"""

from __future__ import annotations

import numpy as np
import pytest

from annotate.agreement.every_pair import all_pairs
from judge.stats import Ratings, alt_test, confusion, dawid_skene, measures
from judge.stats.estimate import LEAST_EFFECTIVE

NAMES = ("a", "b", "c", "judge")


def tables(n: int = 120) -> tuple[Ratings, Ratings]:
    """The same labels weighted, and with every heavy unit written down twice."""
    rng = np.random.default_rng(4)
    truth = rng.random(n) < 0.4
    codes = np.stack([np.where(rng.random(n) < 0.8, truth, ~truth) for _ in NAMES], axis=1).astype(np.int64)
    heavy = np.arange(n) % 3 == 0
    weighted = Ratings.from_codes(codes, ["x", "y"], NAMES).weighted(np.where(heavy, 2.0, 1.0))
    return weighted, Ratings.from_codes(np.concatenate([codes, codes[heavy]]), ["x", "y"], NAMES)


def test_a_confusion_matrix_has_counts_of_the_sample_and_shares_of_all_units() -> None:
    weighted, twice = tables()
    result, whole = confusion(weighted, "judge", "a"), confusion(twice, "judge", "a")
    assert result.n_units == 120 and result.matrix.sum() == 120 and whole.shares is None
    assert result.shares == pytest.approx(whole.matrix / 160)


def test_estimated_classes_are_those_of_all_units() -> None:
    weighted, twice = tables()
    result, whole = dawid_skene(weighted), dawid_skene(twice)
    assert result.prevalence == pytest.approx(whole.prevalence, abs=1e-6)
    assert result.accuracies == pytest.approx(whole.accuracies, abs=1e-6)


def test_the_alt_test_has_weighted_shares_and_no_test() -> None:
    weighted, twice = tables()
    result, whole = (alt_test(table, "judge", NAMES[:3]) for table in (weighted, twice))
    for row, other in zip(result.compared, whole.compared, strict=True):
        assert (row.judge_wins, row.annotator_wins) == pytest.approx((other.judge_wins, other.annotator_wins))
        assert (row.n_units, row.p_value, row.adjusted, row.won) == (120, None, None, False)
    assert result.advantage == pytest.approx(whole.advantage)
    assert (result.winning_rate, result.passed) == (None, None) and "unequal probabilities" in str(
        result.reason
    )


def test_many_pairs_are_weighted_and_count_units_once() -> None:
    weighted, twice = tables()
    result, whole = (
        all_pairs(table, ["percent", "cohen_kappa"], level="nominal", first=NAMES[:3], second=NAMES[:3])
        for table in (weighted, twice)
    )
    for key in result.values:
        assert result.values[key] == pytest.approx(whole.values[key])
    assert result.n_units.tolist() == [120] * 3


def test_weighted_units_have_an_interval_where_they_tell_enough() -> None:
    # Kish: (n / 3 * 2 + 2 n / 3)^2 / (n / 3 * 4 + 2 n / 3) = (16 / 9 n^2) / 2 n = 8 n / 9, of which 250 takes 282 units.
    (few,) = measures(tables(279)[0].select(["a", "judge"]), ["percent"])
    (enough,) = measures(tables(285)[0].select(["a", "judge"]), ["percent"])
    assert 8 * 279 / 9 < LEAST_EFFECTIVE < 8 * 285 / 9
    assert few.low is None and "no interval" in str(few.notes[-1])
    assert enough.low is not None and enough.low < enough.value < enough.high
    # A share p has the standard error sqrt(sum w^2 (x - p)^2) / sum w; t with 252 degrees of freedom is 1.97.
    codes = tables(285)[0].select(["a", "judge"]).codes
    agree = codes[:, 0] == codes[:, 1]
    w = np.where(np.arange(285) % 3 == 0, 2.0, 1.0)
    p = float(np.average(agree, weights=w))
    error = float(np.sqrt((w**2 * (agree - p) ** 2).sum()) / w.sum())
    assert enough.value == pytest.approx(p)
    assert enough.high - enough.value == pytest.approx(1.97 * error, rel=0.02)
