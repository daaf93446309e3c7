"""Selective labelling with a promise: the numbers of the exact test, the bet on questions, the path, and the promise itself."""

import numpy as np
import pytest

from benchmarks.route import World, rates
from judge.stats.selective import (
    disagreement_p,
    find_accepting_step,
    first_share,
    first_units,
    follow,
    path_of,
)


@pytest.mark.parametrize(("wrong", "least"), [(0, 29), (1, 46), (2, 61)])
def test_single_units_are_the_exact_binomial(wrong: int, least: int) -> None:
    # 90 % at 95 %: .9^29 = .0471 and .9^28 = .0523; with one error 46 units, with two 61 (shared/statistics.md).
    def p(n: int) -> float:
        return disagreement_p(np.arange(n) < wrong, np.arange(n), 0.1)

    assert p(least) <= 0.05 < p(least - 1)
    if not wrong:
        assert p(29) == pytest.approx(0.9**29)


def test_the_bet_on_questions_of_right_units_by_hand() -> None:
    # 40 questions of 5 right units: S = -.5, the largest S possible 4.5, so bet f multiplies by 1 + f / 9 a question.
    bets = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05]
    stakes = [0.24, 0.12, 0.12, 0.1, 0.1, 0.08, 0.08, 0.06, 0.05, 0.03, 0.02]
    assert sum(stakes) == pytest.approx(1)
    capital = sum(stake * (1 + f / 9) ** 40 for f, stake in zip(bets, stakes, strict=True))
    clusters = np.repeat(np.arange(40), 5)
    assert disagreement_p(np.zeros(200, dtype=bool), clusters, 0.1) == pytest.approx(1 / capital)
    shuffled = np.random.default_rng(0).permutation(200)
    wrong = np.arange(200) < 7
    first = disagreement_p(wrong, clusters, 0.1)
    assert disagreement_p(wrong[shuffled], clusters[shuffled], 0.1) == pytest.approx(first), (
        "no order decides"
    )


def test_one_wrong_question_does_not_ruin_the_bet() -> None:
    clusters = np.repeat(np.arange(100), 5)
    p = disagreement_p(clusters == 3, clusters, 0.1)
    assert 0 < p < 0.05 and np.isfinite(p)
    assert disagreement_p(np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64), 0.1) == 1.0
    assert disagreement_p(np.ones(500, dtype=bool), clusters, 0.1) == 1.0


def test_the_path_begins_where_two_errors_are_allowed_and_ends_with_all() -> None:
    assert [first_units(agree, 0.05) for agree in (0.9, 0.8)] == [61, 30]
    sure, alone = np.linspace(0.3, 0.999, 1000), np.arange(1000)
    # 60 of 300 single units: a share of .2, and a standard deviation of sqrt(.16 (1 / 300 + 1 / 1000)) = .0263 more.
    share = first_share(60, sure, alone, 300)
    assert share == pytest.approx(0.2263, abs=1e-4)
    path = path_of(sure, share)
    assert path == sorted(path, reverse=True) and path[-1] == -np.inf and len(path) == 24
    assert (sure >= path[0]).mean() == pytest.approx(share, abs=0.002)
    # Questions of five alike units: of 200 the first 40 stand for 60 of 300, the same share of .2.
    assert first_share(60, sure, alone // 5, 300) == pytest.approx(
        0.2 + (0.16 * (1 / 300 + 1 / 200)) ** 0.5, abs=1e-4
    )
    # Five units a question, sure of one each: 200 sure units stand for 300 x 200 / 200 questions; 40 suffice, as before
    # a share of .04 of the units.
    spread = np.tile(np.array([0.9, 0.5, 0.4, 0.4, 0.4]), 200) + np.linspace(0, 0.01, 1000)
    assert first_share(60, spread, alone // 5, 300) == pytest.approx(
        0.04 + (0.0384 * (1 / 300 + 1 / 200)) ** 0.5, abs=1e-4
    )
    assert first_share(60, sure, alone, 50) == 1 and first_share(60, np.zeros(0), alone[:0], 50) == 1
    assert path_of(sure, 1.0) == [-np.inf] and path_of(np.zeros(0), 0.2) == [-np.inf]
    assert path_of(np.ones(50), 0.2) == [-np.inf], "equal confidences: everything or nothing"


def test_a_unit_is_accepted_by_the_first_threshold_that_it_reaches() -> None:
    reached = find_accepting_step(np.array([0.95, 0.9, 0.6, 0.1, np.nan]), [0.9, 0.5, -np.inf])
    assert reached.tolist() == [0, 0, 1, 2, 3]


def test_steps_after_a_failure_never_hold() -> None:
    # 60 right units, then 60 wrong ones, then 2,000 right ones: the last step alone would pass.
    reached = np.repeat([0, 1, 2], [60, 60, 2000])
    wrong = reached == 1
    steps = follow(wrong, reached, np.arange(len(wrong)), 3, 0.9, 0.05)
    assert [s.holds for s in steps] == [True, False, False] and steps[2].p <= 0.05
    assert [s.accepted for s in steps] == [60, 120, 2120] and steps[1].agreement == 0.5


@pytest.mark.parametrize("layout", ["one", "five", "mixed", "two"])
def test_the_guarantee_is_violated_in_at_most_five_percent_of_studies(layout: str) -> None:
    # The hardest world: whatever is accepted breaks the promise. 120 studies; 5 % + 3 standard errors is 11 %.
    _, none, _ = rates(World("edge", layout, 0.8, 120), 120, 1, 100)
    assert 1 - none <= 0.11


def test_a_judge_that_is_good_enough_labels_alone() -> None:
    broken, none, covered = rates(World("sure", "five", 0.8, 150), 30, 1, 4000)
    assert none <= 0.25 and covered >= 0.6 and broken <= 0.1  # the benchmark: .08, .79 and 0
