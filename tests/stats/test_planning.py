"""Planning: what it promises is what simulation gives."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from judge.errors import BadInput
from judge.stats import MISSING, Ratings, measures
from judge.stats.bootstrap import FEWEST_CLUSTERS
from judge.stats.planning import (
    Design,
    expected_kappa,
    expected_rate,
    intraclass,
    pilot,
    plan_decision,
    plan_width,
)
from tests.stats.published import COHEN, two_annotators


def agreeing(values: Any, clusters: Any = None) -> Design:
    """The design of the mean of 0 and 1: two annotators agree where it is 1; nan where one has no label."""
    row = np.asarray(values)
    second = np.where(np.isnan(row), MISSING, 1 - np.nan_to_num(row)).astype(int)
    codes = np.column_stack([np.zeros(len(row), dtype=int), second])
    return pilot(Ratings.from_codes(codes, ["a", "b"], ["x", "y"], clusters=clusters), "percent")


def test_a_rate_by_hand() -> None:
    # 1.96^2 * .25 / .05^2 = 384.1 units for .5 +- .05
    (alone,) = plan_width(expected_rate(0.5), 0.1, per_cluster=[1])
    assert (alone.n_clusters, alone.n_units, alone.design_effect) == (385, 385, 1.0)
    # Ten passages a question with icc .2: design effect 2.8, 1,075.6 passages on 108 questions.
    (ten,) = plan_width(expected_rate(0.5, icc=0.2), 0.1, per_cluster=[10])
    assert (ten.n_clusters, ten.n_units) == (108, 1080)
    assert ten.design_effect == pytest.approx(2.8)


def test_a_decision_by_hand() -> None:
    # (1.96 sqrt(.4 * .6) + .8416 sqrt(.5 * .5))^2 / .1^2 = 190.7
    (plan,) = plan_decision(expected_rate(0.5), 0.4, per_cluster=[1])
    assert plan.n_units == 191
    # A pilot knows its own spread only: (1.96 + .8416)^2 * .25 / .1^2 = 196.2
    (plan,) = plan_decision(Design(0.5, 0.5, 0.0), 0.4, per_cluster=[1])
    assert plan.n_units == 197


def test_kappa_variance_equals_that_of_the_delta_method() -> None:
    # For two labels, share p, Fleiss, Cohen & Everitt's variance at kappa 0 is 1 / n: sd 1 whatever p.
    for share in (0.5, 0.2, 0.05):
        assert expected_kappa(0.0, [share, 1 - share]).sd == pytest.approx(1.0)
    # Garner 1991: at p = .5 the standard error is sqrt((1 - kappa^2) / n).
    assert expected_kappa(0.6, [0.5, 0.5]).sd == pytest.approx(0.8)
    assert expected_kappa(0.6, [0.5, 0.3, 0.2], weights="linear").value == pytest.approx(0.6)


@pytest.mark.parametrize("weights", [None, "quadratic"])
def test_a_planned_kappa_has_the_width(weights: str | None) -> None:
    shares = np.array([0.6, 0.3, 0.1])
    design = expected_kappa(0.7, shares.tolist(), weights=weights)
    (plan,) = plan_width(design, 0.12, per_cluster=[1])
    cells = 0.7 * np.diag(shares) + 0.3 * np.outer(shares, shares)
    rng = np.random.default_rng(0)
    widths = []
    name = "cohen_kappa" + (f":{weights}" if weights else "")
    for _ in range(20):
        drawn = rng.multinomial(plan.n_units, cells.ravel()).reshape(3, 3)
        (result,) = measures(two_annotators(tuple(map(tuple, drawn.tolist()))), [name], replicates=1000)
        widths.append(result.high - result.low)
    assert np.mean(widths) == pytest.approx(0.12, rel=0.08)


def test_a_plan_subtracts_the_existing_labels() -> None:
    design = Design(value=0.5, sd=0.5, icc=0.0, n_units=100, n_clusters=50)
    (plan,) = plan_width(design, 0.1, per_cluster=[2])
    assert (plan.n_clusters, plan.more_clusters, plan.more_units) == (193, 143, 286)
    (done,) = plan_width(design, 0.4, per_cluster=[2])
    assert (done.more_clusters, done.more_units) == (0, 0)


def test_a_pilot_of_all_annotators_or_of_means() -> None:
    table = two_annotators(COHEN, 2)
    design = pilot(table, "krippendorff_alpha")
    (result,) = measures(table, ["krippendorff_alpha"])
    (plan,) = plan_width(design, result.high - result.low, per_cluster=[1])
    assert plan.n_units == pytest.approx(200, rel=0.1)
    values = np.array([0.0, 1.0, 1.0, np.nan, 0.0])
    assert agreeing(values) == Design(
        0.5, pytest.approx(np.std([0, 1, 1, 0], ddof=1)), 0.0, 4, 4, effect=pytest.approx(1.0), least=0.0
    )


def test_intraclass_by_hand() -> None:
    # Questions (1 2 3), (4 5 6): MSB = 3 * (1.5^2 + 1.5^2) = 13.5, MSW = 1, m0 = 3: 12.5 / 15.5
    assert intraclass(np.arange(1.0, 7.0), np.array([0, 0, 0, 1, 1, 1])) == pytest.approx(12.5 / 15.5)
    assert intraclass(np.arange(3.0), np.arange(3)) == 0.0
    # Questions (1 2 3), (5): MSB = 36/3 + 25 - 11^2/4 = 6.75, MSW = 2 / 2 = 1, and unequal sizes make
    # m0 = (4 - (9 + 1) / 4) / 1 = 1.5, not the mean size of 2: 5.75 / (6.75 + .5 * 1)
    assert intraclass(np.array([1.0, 2, 3, 5]), np.array([0, 0, 0, 1])) == pytest.approx(5.75 / 7.25)
    # Alternating within questions: negative, cut to 0.
    assert intraclass(np.array([0.0, 1.0] * 5), np.arange(10) // 2) == 0.0


def uneven(sizes: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Codes and questions: errors as in `grouped`, questions of these sizes."""
    error = np.repeat(rng.beta(0.6, 2.4, len(sizes)), sizes)
    truth = rng.integers(0, 2, len(error))
    other = np.where(rng.random(len(error)) < error, 1 - truth, truth)
    return np.column_stack([truth, other]), np.repeat(np.arange(len(sizes)), sizes)


@pytest.mark.parametrize("per_cluster", [1, 5])
def test_a_pilot_of_uneven_questions_counts_with_its_actual_interval(per_cluster: int) -> None:
    # 100 questions of 1, 1, 2 and 15 units. The mean size of 4.75 would make them worth far more than they are:
    # sum m^2 / n = 12.2 units share a question with a unit, and an interval narrower than today's would be "there".
    widths, more = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        codes, clusters = uneven(np.tile([1, 1, 2, 15], 25), rng)
        table = Ratings.from_codes(codes, ["a", "b"], ["x", "y"], clusters=clusters)
        (result,) = measures(table, ["cohen_kappa"], replicates=1000)
        goal = 0.8 * (result.high - result.low)
        (plan,) = plan_width(pilot(table), goal, per_cluster=[per_cluster])
        more.append(plan.more_clusters)
        added, of = uneven(np.full(plan.more_clusters, per_cluster), rng)
        whole = Ratings.from_codes(
            np.vstack([codes, added]), ["a", "b"], ["x", "y"], clusters=np.concatenate([clusters, of + 100])
        )
        (after,) = measures(whole, ["cohen_kappa"], replicates=1000)
        widths.append((after.high - after.low) / goal)
    assert min(more) > 0
    # The width of one sample varies by some 6 %, so the mean of twelve by 2 %; the rest is that pilots differ.
    assert np.mean(widths) == pytest.approx(1.0, abs=0.1)


def test_a_pilot_counts_with_its_actual_variance() -> None:
    # Questions (0 0 0 0), (1), (1): mean 1/3, totals of deviations -4/3, 2/3, 2/3: their squares sum to 24/9, and
    # 3/2 of that over n sd^2 = 6 * (4/9 + 8/9) / 5 = 1.6 is an effect of 2.5: 6 units worth 2.4.
    design = agreeing([0.0, 0, 0, 0, 1, 1], clusters=[0, 0, 0, 0, 1, 2])
    assert design.effect == pytest.approx(2.5)
    # 100 units with effect 2 and new ones alone: (200 + x) / (100 + x)^2 = 1 / 80 at x^2 + 120 x - 6000 = 0,
    # x = 37.98, though 80 independent units are 30 more than the 50 that the pilot is worth: its variance stays.
    width = 2 * 1.959964 * 0.5 / np.sqrt(80)
    (plan,) = plan_width(Design(0.5, 0.5, 0.0, 100, 50, effect=2.0), width, per_cluster=[1])
    assert (plan.n_units, plan.more_units) == (80, 38)
    # One question, however large, says nothing of others: it is worth one unit.
    assert agreeing([0.0, 1, 1, 0], clusters=[0, 0, 0, 0]).effect == 4.0


def test_few_questions_use_students_t() -> None:
    # sd .5, width .5: 1.96 gives (2 * 1.96 * .5 / .5)^2 = 15.4. With 17 questions t(16) = 2.120 asks for 17.98,
    # with 18 t(17) = 2.110 for 17.8.
    (plan,) = plan_width(Design(0.5, 0.5, 0.0), 0.5, per_cluster=[1])
    assert plan.n_clusters == 18
    assert any("fewer than 30 questions" in note for note in plan.notes)
    (many,) = plan_width(Design(0.5, 0.5, 0.0), 0.3, per_cluster=[1])
    assert (many.n_clusters, many.notes) == (43, ())  # (2 * 1.96 * .5 / .3)^2 = 42.7


def test_a_decision_needs_as_many_questions_as_a_verdict() -> None:
    assert FEWEST_CLUSTERS == 10  # nine decide nothing: test_a_perfect_judge_on_few_units_is_not_trusted
    (plan,) = plan_decision(expected_rate(0.95), 0.3, per_cluster=[10])
    assert (plan.n_clusters, plan.n_units) == (10, 100)
    # Four questions that are wide enough apart still lack six.
    (plan,) = plan_decision(Design(0.9, 0.2, 0.0, 40, 4), 0.3, per_cluster=[10])
    assert (plan.more_clusters, plan.more_units) == (6, 60)
    assert any("only 4 questions in the pilot" in note for note in plan.notes)


@pytest.mark.parametrize("true_kappa", [0.8, 0.5])
def test_a_planned_decision_has_its_power(true_kappa: float) -> None:
    shares = [0.5, 0.5]
    (plan,) = plan_decision(expected_kappa(true_kappa, shares), 0.667, per_cluster=[1], power=0.8)
    cells = true_kappa * np.diag(shares) + (1 - true_kappa) * np.outer(shares, shares)
    rng = np.random.default_rng(1)
    decided = 0
    for _ in range(150):
        drawn = rng.multinomial(plan.n_units, cells.ravel()).reshape(2, 2)
        (result,) = measures(
            two_annotators(tuple(map(tuple, drawn.tolist()))), ["cohen_kappa"], replicates=400
        )
        decided += result.low > 0.667 or result.high < 0.667
    # Binomial(150, .8): standard error .033
    assert decided / 150 == pytest.approx(0.8, abs=0.1)


HALF = expected_rate(0.5)


@pytest.mark.parametrize(
    ("message", "function", "given"),
    [
        ("the rate to plan for", expected_rate, (1.0,)),
        ("shares must", expected_kappa, (0.5, [0.5, 0.6])),
        ("shares must", expected_kappa, (0.5, [np.nan, 0.5])),
        ("the kappa to plan for", expected_kappa, (1.0, [0.5, 0.5])),
        ("intraclass", partial(expected_rate, icc=2), (0.5,)),
        *(("the width must be above 0", plan_width, (HALF, width)) for width in (0, np.inf, np.nan)),
        ("no interval is as wide as 3", plan_width, (HALF, 3)),
        ("more than 1,000,000,000,000 units", plan_width, (HALF, 1e-100)),
        ("at least one unit", partial(plan_width, per_cluster=[0]), (HALF, 0.1)),
        *(
            ("threshold must be between 0 and 1", plan_decision, (HALF, threshold))
            for threshold in (5, -0.1, np.nan)
        ),
        ("threshold must be between -1 and 1", plan_decision, (expected_kappa(0.5, [0.5, 0.5]), -1.5)),
        ("equals the threshold 0.5", plan_decision, (HALF, 0.5)),
        ("two annotators, not 3", pilot, (Ratings.from_codes([[0, 0, 0]] * 3, ["a", "b"], list("xyz")),)),
        ("nothing to plan from", pilot, (two_annotators(((5, 0), (0, 0))),)),
    ],
)
def test_bad_calls_are_refused(message: str, function: Any, given: tuple[Any, ...]) -> None:
    with pytest.raises(BadInput, match=message):
        function(*given)
