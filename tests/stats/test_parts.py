"""Splitting at random into parts, and what a test of so many questions can show."""

import numpy as np
import pytest

from judge.errors import BadInput
from judge.stats.paired import difference_spread, kappa_of, kappa_sums, paired_difference, pseudo_values
from judge.stats.parts import assumed_spread, detectable, spread_parts

SHARES = (0.2, 0.2, 0.6)


def test_every_stratum_is_split_in_the_requested_shares() -> None:
    strata = [(float(i % 4),) for i in range(400)]
    parts = spread_parts(strata, SHARES, 7)
    for stratum in range(4):
        counts = np.bincount(parts[stratum::4], minlength=3)
        # 100 questions: 20, 20, 60. The golden-ratio sequence strays from n p by less than 3 below n = 400.
        assert np.abs(counts - [20, 20, 60]).max() <= 3


def test_each_question_is_in_a_part_with_the_probability_of_its_share() -> None:
    draws = np.array([spread_parts([(0.0,)] * 12, SHARES, seed) for seed in range(2000)])
    for part, share in enumerate(SHARES):
        # 2,000 draws: 4 standard errors of a share of .6 are 4 sqrt(.24 / 2000) = .044.
        assert np.abs((draws == part).mean(axis=0) - share).max() < 0.044
    assert (spread_parts([(0.0,)] * 12, SHARES, 3) == spread_parts([(0.0,)] * 12, SHARES, 3)).all()


@pytest.mark.parametrize("shares", [(0.5, 0.6), (1.0, 0.0), (-0.2, 0.6, 0.6)])
def test_invalid_shares_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(BadInput, match="sum to 1"):
        spread_parts([(0.0,)] * 12, shares, 0)


def test_kappa_of_sums_is_cohens() -> None:
    # Cohen's table of shares .44 .07 .09 / .05 .20 .05 / .01 .03 .06, N = 200: kappa .491525 (shared reference values).
    table = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
    first, second = (np.repeat(side.ravel(), table.ravel()) for side in np.indices((3, 3)))
    sums = kappa_sums(first, second, np.arange(200) % 10, 3)
    assert sums.shape == (10, 8) and sums[:, -1].sum() == 200
    assert kappa_of(sums.sum(axis=0, keepdims=True))[0] == pytest.approx(0.491525, abs=1e-6)
    assert np.isnan(kappa_of(kappa_sums(first * 0, second * 0, first * 0, 3)))[0]


def test_400_units_show_a_difference_of_about_a_tenth() -> None:
    # Look 1 (.025 two-sided): t_.9875 with 399 df = 2.2503, z_.8 = .8416; spread sqrt(.25) / (1 - .34) = .7576.
    # (2.2503 + .8416) .7576 / 20 = .1171.
    spread = assumed_spread(400, 400, 0.34)
    assert spread == pytest.approx(0.757576, abs=1e-6)
    assert detectable(spread, 400, 0.025) == pytest.approx(0.1171, abs=2e-4)
    # 5 units a question, intraclass correlation .1: variance of a mean of five .25 (1 + 4 .1) / 5.
    assert assumed_spread(400, 80, 0.5) == pytest.approx((0.25 * 1.4 / 5) ** 0.5 / 0.5)


def test_the_detectable_difference_is_detected_in_80_percent_of_studies() -> None:
    # Two judges right on 70 and 70 + d % of balanced binary units, independently; kappa = 2 accuracy - 1.
    rng = np.random.default_rng(5)
    n, level, studies = 300, 0.025, 400
    truth = np.arange(n) % 2
    pilot = [np.where(rng.random(n) < 0.7, truth, 1 - truth) for _ in range(2)]
    spread = difference_spread(*(kappa_sums(codes, truth, np.arange(n), 2) for codes in pilot))
    assert spread is not None
    better = detectable(spread, n, level) / 2
    result = 0
    for _ in range(studies):
        sums = [
            kappa_sums(np.where(rng.random(n) < right, truth, 1 - truth), truth, np.arange(n), 2)
            for right in (0.7, 0.7 + better)
        ]
        p = paired_difference(*(pseudo_values(s, kappa_of) for s in sums)).p
        result += p is not None and p < level
    # 80 %; the pilot's own spread strays by a few percent, and 400 studies have a standard error of 2 %.
    assert 0.72 <= result / studies <= 0.88


def test_undefined_judges_and_single_questions_have_no_spread() -> None:
    sums = kappa_sums(np.array([0, 1]), np.array([0, 1]), np.array([0, 0]), 2)
    assert difference_spread(sums, sums) is None
    flat = kappa_sums(np.zeros(4, int), np.zeros(4, int), np.arange(4), 2)
    assert difference_spread(flat, flat) is None
