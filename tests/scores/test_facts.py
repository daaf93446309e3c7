"""Several judges on the same answers."""

import numpy as np
import pytest

from judge.errors import BadInput
from judge.scores import facts
from judge.scores.score import Score, Units, score_values
from tests.scores.helpers import numbers, points

NAN = float("nan")


def judge(eligible: list[float], grounded: list[float], ids: str = "abcd") -> tuple[Score, Score]:
    who = Units.build(list(ids[: len(eligible)]))
    return score_values("e", who, np.array(eligible)), score_values("f", who, np.array(grounded))


def test_the_mean_of_the_judges_means() -> None:
    # c is ineligible for both, so inaccurate; b only for one, so eligible.
    # First judge: a 1, b 0, c 0 (was grounded), d 1 = 2/4. Second: a 1, b 1, c 0, d 0 = 2/4. d is eligible.
    judges = {"one": judge([1, 0, 0, 1], [1, 0, 1, 1]), "two": judge([1, 1, 0, 1], [1, 1, 1, 0])}
    assert numbers(facts.several(judges)) == {
        "factuality": 0.5,
        "ineligible_by_all": 0.25,
        "factuality[one]": 0.5,
        "factuality[two]": 0.5,
    }


def test_an_ineligible_answer_is_never_dropped() -> None:
    judges = {"one": judge([0, 1], [NAN, 1]), "two": judge([0, 1], [NAN, 1])}
    # Nobody has grounding for the ineligible one, and it still counts as inaccurate.
    assert points(facts.several(judges))["factuality"].value == 0.5


def test_each_judge_has_its_own_denominator() -> None:
    judges = {"one": judge([1, 1], [1, NAN]), "two": judge([1, 1], [0, 0])}
    # (1/1 + 0/2) / 2, not 1/3 pooled.
    assert points(facts.several(judges))["factuality"].value == 0.5


def test_open_eligibility_leaves_the_answer_without_a_value() -> None:
    judges = {"one": judge([0, 1], [1, 1]), "two": judge([NAN, 1], [1, 1])}
    result = points(facts.several(judges))["factuality"]
    assert (result.value, result.n_units, result.coverage) == (1.0, 1, 0.5)


def test_a_judge_without_any_verdict() -> None:
    judges = {"one": judge([1, 1], [1, 0]), "two": judge([1, 1], [NAN, NAN])}
    result = points(facts.several(judges))["factuality"]
    assert (result.value, result.reason) == (None, "at least one judge has no verdict at all")


def test_answers_that_only_one_judge_saw() -> None:
    judges = {"one": judge([1], [1], "a"), "two": judge([1, 1], [1, 0], "ab")}
    # One: 1/1. Two: 1/2.
    result = points(facts.several(judges))["factuality"]
    assert (result.value, result.n_units) == (0.75, 2)


def test_no_judges() -> None:
    with pytest.raises(BadInput, match="no judges"):
        facts.several({})
