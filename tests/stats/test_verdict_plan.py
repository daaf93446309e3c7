"""What a verdict still needs: a chance over all truths that the pilot leaves open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from judge.stats import Ratings, verdict
from judge.stats.conditions import rule
from judge.stats.outlook import LookAhead, outlook
from judge.stats.ratings import FloatArray, IntArray
from judge.stats.verdict_inputs import UNDECIDED, Limits, case, sums
from judge.stats.verdict_plan import VerdictPlan, plan_of

from .test_decision import copied, noisy

PEOPLE = {"h1": 0.8185, "h2": 0.8185}


def planned(table: Ratings, *people: str, power: float = 0.8, **given: Any) -> VerdictPlan:
    return plan_of(verdict(table, "judge", people, power=power, **given), power)


def test_a_step_of_the_curve_is_not_interpolated() -> None:
    # Judge and gold alike on 30 units, nine of them b: only evidence is missing, one more b. 7 new units have one with a
    # chance of 1 - (1 - 9/30)^7 = .92, 4 of .76 and 5 of .83 (in truths drawn around 9/30 a little less).
    codes = np.repeat([[0, 0], [1, 1]], [21, 9], axis=0)
    plan = planned(Ratings.from_codes(codes, ["a", "b"], ["judge", "gold"]), reference="gold")
    assert plan.decision == "undecided" and "9 units with a label other" in plan.verdict.because
    assert plan.more_units in (4, 5, 6)


def test_a_plan_names_the_annotators_and_the_probability() -> None:
    table = copied(120, {**PEOPLE, "judge": 0.8185}, [0.5, 0.5], 1)
    plan = planned(table, "h1", "h2")
    assert (plan.decision, plan.labelled_by) == ("undecided", ("h1", "h2"))
    assert plan.half < plan.more_units
    assert [c.more_units for c in plan.curve] == sorted(c.more_units for c in plan.curve)
    assert plan.curve[-1].decided > plan.curve[0].decided
    for c in plan.curve:
        assert c.decided == pytest.approx(c.trusted + c.distrusted)
    assert any("Bayesian bootstrap" in line for line in plan.assumed)
    assert planned(table, "h1", "h2", power=0.6).more_units < plan.more_units


def test_near_the_limit_no_number_suffices() -> None:
    # 56 of 72 units alike, both labels as often: kappa (56/72 - .5) / .5 = .5556.
    codes = np.array([[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 0]] * 8 + [[0, 0], [1, 1]] * 12)
    table = Ratings.from_codes(codes, ["a", "b"], ["judge", "gold"])
    plan = planned(table, reference="gold", threshold=0.5556)
    assert plan.decision == "undecided"
    assert plan.more_units is None and plan.more_clusters is None
    assert "have a chance of" in plan.why


def test_no_sentence_names_zero_units() -> None:
    """A look to come can be at units that are drawn already: there are 0 more of them to draw."""
    codes = np.array([[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 0]] * 8 + [[0, 0], [1, 1]] * 12)
    table = Ratings.from_codes(codes, ["a", "b"], ["judge", "gold"])
    of = case(table, "judge", reference="gold")
    plan = outlook(of.sums, Limits(threshold=0.5556), looks=[LookAhead(0.1, 0, 0.9999)])
    assert plan.why.startswith("the units that are already drawn have a chance of only ")


def test_a_decided_verdict_needs_no_labels() -> None:
    plan = planned(noisy(300, {"judge": 0.5, "x": 0.1, "y": 0.1}), "x", "y")
    assert (plan.decision, plan.more_units, plan.curve) == ("do not trust", 0, ())


def test_too_few_questions_are_not_a_pilot() -> None:
    plan = planned(noisy(16, {"judge": 0.2, "gold": 0.0}, per_question=2), reference="gold")
    # 8 questions of two units: 22 more make thirty.
    assert (plan.more_clusters, plan.more_units) == (22, 44)
    assert plan.why == "there are too few questions for a plan: label 30 questions and plan again"


def kept_promises(rng: np.random.Generator, studies: int, pilot: int) -> tuple[FloatArray, IntArray]:
    """For studies whose judge has any skill: what the curve says at four times the pilot, and whether it came."""
    promised, came = np.zeros(studies), np.zeros(studies, dtype=np.int64)
    eye = np.eye(2)
    for i in range(studies):
        skill, n = rng.uniform(0.45, 1.0), 4 * pilot
        truth = rng.integers(0, 2, n)
        columns = [np.where(rng.random(n) < s, truth, rng.integers(0, 2, n)) for s in (0.85, 0.85, skill)]
        codes = np.column_stack(columns)[None]
        at_hand = sums(codes[:, :pilot, 2], codes[:, :pilot, :2], np.arange(pilot), eye, 1 - eye)
        ahead = outlook(at_hand, Limits(), draws=40, seed=i)
        (point,) = [c for c in ahead.curve if c.more_clusters == 3 * pilot]
        whole = rule(sums(codes[..., 2], codes[..., :2], np.arange(n), eye, 1 - eye), Limits())
        promised[i], came[i] = point.decided, whole.decision[0] != UNDECIDED
    return promised, came


def test_a_probability_is_a_share_of_studies() -> None:
    # Truths drawn from a flat prior, as the Bayesian bootstrap takes them: the mean chance is the share decided, within
    # 3 standard errors of 80 studies (.46 / sqrt(80) = .051). A plan at the pilot's own value promised .9 and more.
    promised, came = kept_promises(np.random.default_rng(5), 80, 80)
    assert abs(promised.mean() - came.mean()) < 3 * 0.051
    sure = promised > 0.7
    assert sure.sum() > 15
    assert abs(promised[sure].mean() - came[sure].mean()) < 3 * 0.4 / np.sqrt(sure.sum())
