"""Calibration: bins, ECE, Brier, log loss, temperature."""

from typing import Any

import numpy as np
import pytest

from judge.errors import BadInput
from judge.stats import calibration, temperature
from judge.stats.reliability import scale


def test_by_hand() -> None:
    p = np.array([[0.9, 0.1], [0.8, 0.2], [0.35, 0.65], [0.45, 0.55]])
    result = calibration(p, np.array([0, 1, 1, 1]), bins=5)
    # (.8, 1]: .9 right; (.6, .8]: .8 wrong, .65 right; (.4, .6]: .55 right.
    assert [b.n for b in result.bins] == [0, 0, 1, 2, 1]
    assert result.bins[0].accuracy is None
    assert (result.bins[3].confidence, result.bins[3].accuracy) == (pytest.approx(0.725), 0.5)
    # |1 - .55| / 4 + |.5 - .725| 2 / 4 + |1 - .9| / 4 = .1125 + .1125 + .025
    assert result.ece.value == pytest.approx(0.25)
    # .02 + 1.28 + .245 + .405, a mean over 4
    assert result.brier.value == pytest.approx(1.95 / 4)
    assert result.log_loss.value == pytest.approx(-np.log([0.9, 0.2, 0.65, 0.55]).mean())


def test_edges_belong_to_the_bin_below() -> None:
    p = np.array([[x, 1 - x] for x in (0.6, 0.7, 0.8, 0.9, 1.0)])
    assert [b.n for b in calibration(p, np.zeros(5, dtype=int)).bins] == [0] * 5 + [1] * 5


def overconfident(n: int = 4000, true_temperature: float = 2.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(n, 3)) * 2
    honest = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (honest.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    sharp = np.exp(logits * true_temperature)
    return sharp / sharp.sum(axis=1, keepdims=True), codes


def test_temperature_undoes_overconfidence() -> None:
    p, codes = overconfident()
    result, reason = temperature(p, codes)
    assert reason is None
    assert result == pytest.approx(2.5, rel=0.06)
    before, after = calibration(p, codes), calibration(scale(p, result), codes)
    assert before.ece.value > 0.1
    assert after.ece.value < 0.03
    assert after.log_loss.value < before.log_loss.value
    # The log loss is flat at the optimum and higher on both sides.
    for other in (result * 1.1, result / 1.1):
        assert calibration(scale(p, other), codes).log_loss.value > after.log_loss.value


@pytest.mark.parametrize(
    ("codes", "reason"),
    [
        ([0, 0], "the best temperature is 0"),
        ([1, 1], "the best temperature is infinite"),
        ([-1, -1], "no unit has both"),
    ],
)
def test_a_temperature_that_does_not_exist_has_a_reason(codes: list[int], reason: str) -> None:
    result, why = temperature(np.array([[0.9, 0.1], [0.7, 0.3]]), np.array(codes))
    assert result is None
    assert reason in (why or "")


def test_units_without_truth_or_distribution_lower_the_coverage() -> None:
    p = np.array([[0.9, 0.1], [np.nan, np.nan], [0.6, 0.4], [0.2, 0.8]])
    result = calibration(p, np.array([0, 1, -1, 1]))
    assert (result.ece.n_units, result.ece.coverage) == (2, 0.5)
    assert (result.brier.n_units, result.brier.coverage) == (2, 0.5)


def test_an_impossible_true_label_has_no_log_loss() -> None:
    result = calibration(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 0]))
    assert result.log_loss.value is None
    assert (
        result.log_loss.reason == "the true label has probability 0 on 1 units, so the log loss is infinite"
    )
    assert result.brier.value == pytest.approx((2 + 0.5) / 2)


def test_intervals_widen_with_questions() -> None:
    p, codes = overconfident(400)
    p, codes = np.repeat(p, 5, axis=0), np.repeat(codes, 5)
    alone = calibration(p, codes).ece
    grouped = calibration(p, codes, clusters=np.arange(2000) // 5).ece
    assert grouped.n_clusters == 400
    assert grouped.high - grouped.low > 1.7 * (alone.high - alone.low)


@pytest.mark.parametrize(
    ("p", "codes", "message"),
    [
        ([[0.5, 0.6]], [0], "must sum to 1"),
        ([[1.5, -0.5]], [0], "must not be negative"),
        ([[0.5, 0.5]], [2], "codes must be in 0..1"),
        ([[0.5, 0.5]], [0.0], "codes must be 1 integers"),
        ([[0.5, 0.5]], [0, 1], "codes must be 1 integers"),
        ([["a", "b"]], [0], "probabilities must be numbers"),
    ],
)
def test_bad_arrays_are_refused(p: Any, codes: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        calibration(np.array(p), np.array(codes))


def test_settings_are_checked() -> None:
    with pytest.raises(BadInput, match="at least one bin"):
        calibration(np.array([[0.5, 0.5]]), np.array([0]), bins=0)
    with pytest.raises(BadInput, match="above 0"):
        scale(np.array([[0.5, 0.5]]), 0.0)


def test_a_unit_counts_as_often_as_its_design_weight() -> None:
    # The second unit stands for three, so that every estimate is that of the four units, and none has an interval.
    p = np.array([[0.9, 0.1], [0.6, 0.4]])
    codes = np.array([0, 1])
    weighted = calibration(p, codes, weights=np.array([1.0, 3.0]))
    whole = calibration(p[[0, 1, 1, 1]], codes[[0, 1, 1, 1]])
    for name in ("ece", "brier", "log_loss"):
        measure = getattr(weighted, name)
        assert measure.value == pytest.approx(getattr(whole, name).value) and measure.low is None
        # Kish: (1 + 3)^2 / (1 + 9) = 1.6
        assert [note.parameters["n_eff"] for note in measure.notes if note.code == "weighted"] == [1.6]
    assert [(b.n, b.accuracy) for b in weighted.bins if b.n] == [(1, 0.0), (1, 1.0)]
    assert temperature(p[[0, 1, 1, 0]], np.array([0, 1, 0, 1]), np.array([3.0, 1, 2, 1]))[0] == pytest.approx(
        temperature(p[[0, 0, 0, 1, 1, 1, 0]], np.array([0, 0, 0, 1, 0, 0, 1]))[0]
    )
