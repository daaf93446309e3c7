"""The exact test of anchors: p values worked out by hand, its level, and its power by simulation."""

import numpy as np
import pytest

from judge.stats.drift import LEVEL, as_codes, drift_p, drift_power, noise_of


def test_p_values_by_hand() -> None:
    # One anchor, three equal replies and then another: it is today's reply in one of four deals.
    assert drift_p(np.array([[0, 0, 0]]), np.array([[1]])) == pytest.approx(1 / 4)
    # Two such anchors: 1/16. With one that was the odd one before (2 differing pairs of 3 at most, in no deal more than 3):
    assert drift_p(np.array([[0, 0, 0]] * 2), np.array([[1]] * 2)) == pytest.approx(1 / 16)
    # Three against three that are all different: of the 20 deals, aaa|bbb and bbb|aaa have nine differing pairs.
    assert drift_p(np.array([[0, 0, 0]]), np.array([[1, 1, 1]])) == pytest.approx(2 / 20)
    # Nothing differs at all: every deal is as much apart.
    assert drift_p(np.array([[0, 0, 0]]), np.array([[0, 0, 0]])) == 1.0
    # a a b | a a b: alike pairs are 2*2 + 1*1 = 5, so 4 differ. Deals of four a and two b: both b on one side
    # (2 * 4 of 20 deals: 6 differ), or one on each (12 of 20: 4 differ). At least 4: all.
    assert drift_p(np.array([[0, 0, 1]]), np.array([[0, 0, 1]])) == 1.0
    assert drift_p(np.array([[0, 0, 0]]), np.array([[0, 1, 1]])) == pytest.approx(8 / 20)


def test_names_and_order_do_not_matter() -> None:
    random = np.random.default_rng(1)
    first, now = random.integers(3, size=(30, 3)), random.integers(3, size=(30, 3))
    p = drift_p(first, now)
    assert drift_p(2 - first, 2 - now) == pytest.approx(p)
    assert drift_p(first[::-1, ::-1], now[::-1]) == pytest.approx(p)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.1, 0.3])
def test_the_level_holds_at_any_noise(noise: float) -> None:
    """At a level of .05, 2,000 checks have at most .05 + 4 * sqrt(.05 * .95 / 2000) = .070 false alarms."""
    random = np.random.default_rng(3)
    alarms = 0
    for _ in range(2000):
        replies = np.where(random.random((20, 6)) < noise, random.integers(1, 3, size=(20, 6)), 0)
        alarms += drift_p(replies[:, :3], replies[:, 3:]) <= 0.05
    assert alarms / 2000 <= 0.070


def test_a_change_in_a_fifth_of_the_anchors_is_detected() -> None:
    assert pytest.approx(0.05) == 52 * LEVEL
    for noise in (0.0, 0.05, 0.1):
        assert drift_power(100, noise, studies=50) >= 0.8
    # Ten anchors, two of them changed, cannot be told from noise: the power says so.
    assert drift_power(10, 0.1, studies=50) < 0.8


def test_noise_is_estimated_from_pairs() -> None:
    # Of 4 anchors one has one reply of three that differs: 2 of its 3 pairs, so 2/12 = 2 p (1 - p), p = .0918.
    rows = as_codes([["a", "a", "b"], ["a", "a", "a"], ["b", "b", "b"], ["c", "c", "c"]])
    assert noise_of(rows) == pytest.approx((1 - (2 / 3) ** 0.5) / 2)
    assert noise_of(as_codes([["a", "b", "c"]])) == 0.5
