"""Interval alpha of numbers that lie far from each other, and the disagreement that chance would bring."""

import krippendorff
import numpy as np
import pytest

from judge.stats import METRICS, Ratings, measures, scores_alpha
from judge.stats.alpha import Alpha
from tests.stats.published import krippendorff_2011


def two_raters(n: int = 60) -> np.ndarray:
    """0 and 1 by two people: of ten units 0 0, 1 1 four times each, and the two ways to differ."""
    return np.array(([[0, 0], [1, 1]] * 4 + [[0, 1], [1, 0]]) * (n // 10))


def as_table(values: np.ndarray) -> Ratings:
    domain = sorted({float(v) for v in values[~np.isnan(values)]})
    place = {v: i for i, v in enumerate(domain)}
    codes = np.array([[-1 if np.isnan(v) else place[float(v)] for v in row] for row in values])
    return Ratings.from_codes(codes, [repr(v) for v in domain], [f"r{i}" for i in range(values.shape[1])])


@pytest.mark.parametrize("outlier", [1e7, 1e9, 1e200])
def test_a_number_on_an_unpaired_unit_changes_nothing(outlier: float) -> None:
    pairs = two_raters().astype(float)
    # 12 of 60 units differ and 120 values are half 0, half 1: Do = 12 / 60, De = 2 * 60 * 60 / (120 * 119),
    # alpha = 1 - .2 / .504202 = .603333.
    (plain,) = measures(as_table(pairs), ["krippendorff_alpha"], level="interval")
    assert plain.value == pytest.approx(1 - 0.2 * 120 * 119 / 7200, abs=1e-12)
    table = as_table(np.vstack([pairs, [outlier, np.nan]]))
    (result,) = measures(table, ["krippendorff_alpha"], level="interval")
    assert result.value == pytest.approx(plain.value, abs=1e-12)
    assert (result.low, result.high) == pytest.approx((plain.low, plain.high), abs=1e-12)
    scored = scores_alpha(np.vstack([pairs, [outlier, np.nan]]))
    assert scored.value == pytest.approx(plain.value, abs=1e-12)


@pytest.mark.parametrize("labels", [2, 80])
def test_an_outlier_leaves_every_resample_defined(labels: int) -> None:
    # Few labels go by counts, more than 32 by moments: both must tell 0 from 1 in resamples without the far one.
    pairs = two_raters().astype(float)
    if labels > 2:
        rng = np.random.default_rng(0)
        pairs = np.vstack([pairs + rng.integers(0, labels // 2, (60, 1)) for _ in range(4)])
    values = np.vstack([pairs, [1e8, 1e8]])
    table = as_table(values)
    (result,) = measures(table, ["krippendorff_alpha"], level="interval")
    expected = krippendorff.alpha(reliability_data=values.T, level_of_measurement="interval")
    assert result.value == pytest.approx(expected, abs=1e-12)
    assert not any("undefined" in note for note in result.notes)
    # Without the far unit a resample has the alpha of the near ones: .6 with 0 and 1, .9993 with 0 to 40.
    assert result.low is not None and result.low < 0.9999
    scored = scores_alpha(values)
    assert scored.value == pytest.approx(expected, abs=1e-12)
    assert scored.low == pytest.approx(result.low, abs=0.1)


def test_numbers_near_the_largest_float_do_not_overflow() -> None:
    values = np.array([[0.0, 1.5e308], [1.5e308, 1.5e308], [0.0, 0.0], [-1.5e308, -1.5e308]])
    # The same in units of 1.5e308: within 2 (1 + 0) - ... one unit differs by 1, Do = (1 / 8) * 2 = .25.
    # Values 0 0 0 1 1 1 -1 -1: n Q - S^2 = 8 * 5 - 1 = 39, De = 2 * 39 / 56; alpha = 1 - .25 * 56 / 78 = .820513.
    (result,) = measures(as_table(values), ["krippendorff_alpha"], level="interval", interval=None)
    assert result.value == pytest.approx(1 - 0.25 * 56 / 78)
    assert scores_alpha(values, interval=None).value == pytest.approx(1 - 0.25 * 56 / 78)


def chance(ratings: Ratings, level: str) -> float:
    """`Alpha.chance` of a whole table."""
    coefficient = METRICS[f"krippendorff_alpha:{level}"]
    numbers = (
        ratings.numbers(level) if level in ("interval", "ratio") else np.arange(len(ratings.domain)) * 1.0
    )
    sums = coefficient.features(ratings.counts, numbers).sum(axis=0)
    return float(coefficient.chance(sums[None, :], numbers)[0])


def test_chance_is_on_the_scale_of_the_largest_disagreement() -> None:
    # Labels 1, 2, 4 on units (1 1), (2 4), (4 4), and 9 on a unit without a pair: n = 2, 1, 3 of 6 values.
    codes = np.array([[0, 0], [1, 2], [2, 2], [3, -1]])
    table = Ratings.from_codes(codes, ["1", "2", "4", "9"], ["x", "y"])
    # Nominal: (36 - 4 - 1 - 9) / 30 = 22 / 30 of the pairs differ, the largest disagreement is 1.
    assert chance(table, "nominal") == pytest.approx(22 / 30)
    # Interval: 2 (2*1*1 + 2*3*9 + 1*3*4) / 30 = 136 / 30, over (4 - 1)^2: 9 is not among the pairable values.
    assert chance(table, "interval") == pytest.approx(136 / 30 / 9)
    # Ratio: distances (1/3)^2, (3/5)^2, (2/6)^2: 2 (2/9 + 6 * 9/25 + 3/9) / 30, over the largest, 9/25.
    assert chance(table, "ratio") == pytest.approx(2 * (2 / 9 + 54 / 25 + 3 / 9) / 30 / (9 / 25))
    # Ordinal: mid-ranks 1, 2.5, 4.5 (of 2, 1, 3 values): distances 2.25, 12.25, 4 over 12.25. The unused 9 has
    # mid-rank 6, which is the largest that a label could still take.
    assert chance(table, "ordinal") == pytest.approx(2 * (2 * 2.25 + 6 * 12.25 + 3 * 4) / 30 / 25)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "ratio"])
def test_value_is_one_minus_the_share_over_chance(level: str) -> None:
    # What the exact bound rests on: 1 - alpha = observed / chance with both on the scale 0..1.
    table = krippendorff_2011()
    coefficient = Alpha(level)
    numbers = table.numbers("ratio")
    sums = coefficient.features(table.counts, numbers).sum(axis=0)[None, :]
    observed = (1 - coefficient.value(sums, numbers)) * coefficient.chance(sums, numbers)
    assert 0 < float(observed[0]) < 1
    # A table of nothing but the largest disagreement: observed is 1.
    far = Ratings.from_codes(np.array([[0, 4], [4, 0], [0, 4]]), table.domain, ["x", "y"])
    sums = coefficient.features(far.counts, numbers).sum(axis=0)[None, :]
    observed = (1 - coefficient.value(sums, numbers)) * coefficient.chance(sums, numbers)
    assert float(observed[0]) == pytest.approx(1.0)
