"""Continuous scores and means."""

from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import BadInput
from judge.stats import mean, scores_alpha

SCORES = st.one_of(st.just(float("nan")), st.floats(-1e3, 1e3).map(lambda x: round(x, 2)))


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.lists(SCORES, min_size=3, max_size=3), min_size=1, max_size=12),
    shift=st.sampled_from([0, 1e4]),
)
def test_interval_alpha_is_krippendorffs(rows: list[list[float]], shift: float) -> None:
    table = np.array(rows)
    result = scores_alpha(table + shift, interval=None)
    paired = table[(~np.isnan(table)).sum(axis=1) >= 2]
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        assert result.value is None
        assert result.reason
        return
    expected = krippendorff.alpha(reliability_data=table.T, level_of_measurement="interval")
    # 1 - alpha can be large when agreement is worse than chance; the error is relative to it.
    assert result.value == pytest.approx(expected, abs=1e-9 if shift else 1e-12, rel=1e-9)
    assert result.n_units == len(paired)


def test_alpha_of_scores_has_its_units_clusters_and_coverage() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 1)) + rng.normal(scale=0.5, size=(60, 3))
    scores[:6] = np.nan
    result = scores_alpha(scores, clusters=np.arange(60) // 4, annotators=("a", "b", "c"), field="quality")
    assert (result.n_units, result.n_clusters, result.coverage) == (54, 14, 0.9)
    assert (result.measure, result.level, result.field) == ("krippendorff_alpha", "interval", "quality")
    # Variances 1 between and .25 within: .8
    assert result.low < 0.8 < result.high
    assert any("only 14 questions" in note for note in result.notes)


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ([[1.0, np.nan], [np.nan, 2.0]], "no unit is scored by two annotators"),
        ([[3.3, 3.3], [3.3, 3.3]], "all scores are equal, so agreement cannot be distinguished from chance"),
    ],
)
def test_an_undefined_alpha_has_a_reason(scores: Any, reason: str) -> None:
    result = scores_alpha(scores)
    assert (result.value, result.low, result.reason) == (None, None, reason)


@pytest.mark.parametrize("scores", [[["1", "2"]], [[1.0, None]], [[1.0, np.inf]], [1.0, 2.0]])
def test_anything_but_numbers_is_refused(scores: Any) -> None:
    with pytest.raises(BadInput, match="scores must"):
        scores_alpha(scores)


def test_mean_of_a_rate() -> None:
    values = np.array([1.0] * 30 + [0.0] * 10 + [np.nan] * 10)
    result = mean(values, measure="accuracy", field="answer")
    assert (result.value, result.n_units, result.coverage) == (0.75, 40, 0.8)
    # Wilson: .598 to .858
    assert result.low == pytest.approx(0.598, abs=0.03)
    assert result.high == pytest.approx(0.858, abs=0.03)


def test_questions_without_a_value_are_not_counted() -> None:
    result = mean([1.0, 0, float("nan")], clusters=["q1", "q1", "q2"], interval=None)
    assert (result.n_units, result.n_clusters, result.coverage) == (2, 1, pytest.approx(2 / 3))


def test_mean_without_values_or_variation() -> None:
    assert mean(np.full(5, np.nan)).reason == "no unit has a value"
    assert mean(np.empty(0)).reason == "no unit has a value"
    # 20 of 20 right: 1 - .025^(1/20) may be wrong.
    result = mean(np.ones(20))
    assert (result.value, result.high) == (1.0, 1.0)
    assert result.low == pytest.approx(0.025 ** (1 / 20))
    assert mean(np.zeros(20)).high == pytest.approx(1 - 0.025 ** (1 / 20))
    constant = mean(np.full(20, 3.7))
    assert (constant.low, constant.high) == (pytest.approx(3.7), pytest.approx(3.7))
    assert "the interval has no width: every resample gives this value" in constant.notes


def test_clusters_must_fit() -> None:
    with pytest.raises(BadInput, match="one value for each of 3 units"):
        mean(np.ones(3), clusters=[1, 2])
