"""Units drawn with unequal probabilities: a unit of weight 2 counts as two units that are alike."""

from __future__ import annotations

import numpy as np
import pytest

from judge.errors import BadInput
from judge.notes import code_of
from judge.stats import METRICS, Ratings, class_scores, compare, label_shares, measures, verdict
from judge.stats.ratings import effective_size


def table() -> tuple[Ratings, Ratings]:
    """120 units of three annotators with weights 1, 2 and 3, and the same units repeated as often."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 3, 120)
    codes = np.column_stack(
        [np.where(rng.random(120) < 0.7, truth, rng.integers(0, 3, 120)) for _ in range(3)]
    )
    weights = 1.0 + np.arange(120) % 3
    names, domain = ["x", "y", "judge"], ["1", "2", "3"]
    repeated = Ratings.from_codes(np.repeat(codes, weights.astype(int), axis=0), domain, names)
    return Ratings.from_codes(codes, domain, names).weighted(weights), repeated


@pytest.mark.parametrize("key", METRICS)
def test_a_weight_counts_as_so_many_units(key: str) -> None:
    weighted, repeated = table()
    level = key.partition(":")[2] if key.startswith("krippendorff") else "ordinal"
    for measure, other in zip(
        measures(weighted, [key], level=level),
        measures(repeated, [key], level=level, interval=None),
        strict=True,
    ):
        assert measure.value == pytest.approx(other.value, abs=1e-9)
        # 40 units each of 1, 2 and 3: (40 6)^2 / (40 14) = 102.86 units.
        assert (
            measure.low is None
            and code_of(measure.notes[-1]) == "weighted"
            and "effective sample size 103 (Kish)" in measure.notes[-1]
        )


def test_recall_precision_shares_and_comparisons_are_weighted() -> None:
    weighted, repeated = table()
    for measure, other in zip(
        class_scores(weighted, "judge", "x"), class_scores(repeated, "judge", "x", interval=None), strict=True
    ):
        assert measure.value == pytest.approx(other.value)
    for name, shares in label_shares(weighted).items():
        assert shares == pytest.approx(label_shares(repeated)[name])
    (measure,), (other,) = (compare(t, ["y", "judge"], "x") for t in (weighted, repeated))
    assert measure.difference.value == pytest.approx(other.difference.value)
    assert measure.difference.low is None and measure.p_value is None


def test_the_numbers_of_a_verdict_are_weighted() -> None:
    weighted, repeated = table()
    first, second = (verdict(t, "judge", ["x", "y"], power=None) for t in (weighted, repeated))
    for a, b in zip(first.measures, second.measures, strict=True):
        assert a.value == pytest.approx(b.value) and a.low is None
    assert first.of.n_units == 120 and first.of.n_effective == pytest.approx(57600 / 560)


def test_bad_weights_are_refused_and_weights_follow_their_units() -> None:
    weighted, _ = table()
    kept = weighted.subset(np.arange(120) < 3).select(["x"])
    assert kept.weights.tolist() == [1, 2, 3]
    assert effective_size(np.array([1.0, 1.0, 1.0])) == 3 and effective_size(np.array([])) == 0
    with pytest.raises(BadInput, match="one number above 0 for each of 120 units"):
        weighted.weighted(np.zeros(120))
