"""URAG's probabilities, sets and their summaries."""

from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import BadInput
from judge.papers import urag
from judge.scores.score import Units
from tests.scores.helpers import numbers, points, table

NAN = float("nan")


def choices(
    probabilities: list[list[float]], correct: str, prefix: str, available: Any = None
) -> urag.Choices:
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(probabilities))
    who = Units.build([f"{prefix}{i}" for i in range(len(probabilities))])
    return urag.Choices.build(who, "ABC"[: logs.shape[1]], logs, list(correct), available)


def test_softmax_over_the_available_options() -> None:
    who = Units.build(["q1", "q2", "q3"])
    logs = [[log(2), log(6), -50.0], [log(1), log(3), 9.0], [0.0, NAN, 0.0]]
    result = urag.Choices.build(
        who, "ABC", logs, ["A", "B", "A"], [[True] * 3, [True, True, False], [True] * 3]
    )
    # q1: 2 : 6 : nothing. q2: the third is not an option, whatever its value. q3: one option is not known.
    assert result.probabilities[0] == pytest.approx([0.25, 0.75, 0])
    assert result.probabilities[1].tolist() == [0.25, 0.75, 0]
    assert np.isnan(result.probabilities[2]).all()
    assert result.known.tolist() == [True, True, False]


# Nine calibration questions whose true option has .9, .8, ... .1: LAC scores .1 ... .9.
CALIBRATION = choices([[p, 1 - p] for p in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)], "A" * 9, "c")


def test_thresholds_of_both_conventions() -> None:
    test = choices([[0.5, 0.5]], "A", "t")
    # k = ceil(10 * .8) = 8: the 8th smallest LAC score is .8. APS: 1 - or p alone: .9 .8 .7 .6 then 1.0 five times
    # (at .5 / .5 both options are equally likely: .5 + .5), so the 8th is 1.0.
    exact = urag.sets(CALIBRATION, test, alpha=0.2)
    assert (exact.limits_lac.max(), exact.limits_aps.max()) == (pytest.approx(0.8), pytest.approx(1.0))
    # The repository: quantile(8/9, higher) of nine is at position 8/9 * 8 = 7.11, so the 9th: .9.
    assert urag.sets(CALIBRATION, test, alpha=0.2, convention="urag_repo").limits_lac.max() == pytest.approx(
        0.9
    )


def test_scores_by_hand() -> None:
    # alpha = .5: k = ceil(10 * .5) = 5, LAC threshold .5, APS threshold: 5th of .6 .7 .8 .9 1 1 1 1 1 = 1.
    test = choices([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]], "AAA", "t")
    result = points(urag.scores(CALIBRATION, test, alpha=0.5))
    # LAC keeps options with p >= .5: {A}, {B}, {A, B}. APS keeps all.
    assert {name: m.value for name, m in result.items()} == pytest.approx(
        {
            "accuracy": 2 / 3,  # the tie of the third goes to A
            "coverage_lac": 2 / 3,
            "coverage_aps": 1,
            "coverage": 5 / 6,
            "set_size_lac": 4 / 3,
            "set_size_aps": 2,
            "set_size": 5 / 3,
            "empty_sets_lac": 0,
            "empty_sets_aps": 0,
        }
    )
    assert result["set_size"].notes[0] == "alpha 0.5, exact quantile, calibrated on 9 questions"


def test_too_few_to_calibrate_on_gives_full_sets() -> None:
    # n = 9 < 1 / .05 - 1: k = 10 > 9. The third option is not there, so a full set has two.
    calibration = choices([[0.9, 0.1, 0]] * 9, "A" * 9, "c", [[True, True, False]] * 9)
    test = choices([[0.99, 0.01, 0]], "A", "t", [[True, True, False]])
    result = points(urag.scores(calibration, test, alpha=0.05))
    assert result["set_size_lac"].value == result["set_size_aps"].value == 2.0
    assert "too few for alpha 0.05" in result["set_size"].notes[1]


def test_lac_sets_may_be_empty_and_the_repositorys_aps_sets_never() -> None:
    calibration = choices([[0.9, 0.1]] * 9, "A" * 9, "c")
    test = choices([[0.95, 0.05], [0.6, 0.4]], "AA", "t")
    # Threshold LAC .1, APS .9: the options of the second question score .4 and .6 (LAC), .6 and 1 (APS).
    exact = points(urag.scores(calibration, test, alpha=0.2))
    assert exact["empty_sets_lac"].value == 0.5
    # APS exact: the first question's top option alone has .95 > .9: nothing is left.
    assert exact["set_size_aps"].value == 0.5
    repository = points(urag.scores(calibration, test, alpha=0.2, convention="urag_repo"))
    assert repository["set_size_aps"].value == 1.0
    assert repository["empty_sets_aps"].value == 0.0
    assert repository["coverage_aps"].value == 1.0


def test_the_crossing_option_is_left_out() -> None:
    # APS threshold .7; cumulative masses of the test question .5, .8, 1: the second crosses .7 and stays out.
    calibration = choices([[0.7, 0.2, 0.1]] * 9, "A" * 9, "c")
    test = choices([[0.5, 0.3, 0.2]], "B", "t")
    for convention in ("exact", "urag_repo"):
        how: Any = convention
        assert points(urag.scores(calibration, test, alpha=0.2, convention=how))["set_size_aps"].value == 1.0


def test_questions_without_a_distribution_are_counted() -> None:
    test = choices([[0.7, 0.3], [NAN, 0.5]], "AA", "t")
    calibration = choices([[0.9, 0.1]] * 9 + [[NAN, 1]], "A" * 10, "c")
    result = points(urag.scores(calibration, test))["coverage"]
    assert (result.n_units, result.coverage) == (1, 0.5)
    assert result.notes[1] == f"1 calibration questions left out: {urag.NO_DISTRIBUTION}"
    assert result.notes[-1] == f"1 of 2 units have no value: 1 {urag.NO_DISTRIBUTION}"


def test_per_class_and_split_by_the_model_alone() -> None:
    test = choices([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], "ABB", "t")
    result = urag.scores(CALIBRATION, test, alpha=0.5)
    by_class = {letter: numbers(s)["set_size_lac"] for letter, s in urag.per_class(result, test).items()}
    assert by_class == {"A": 1.0, "B": 1.0}
    alone = urag.scores(CALIBRATION, choices([[0.1, 0.9], [0.2, 0.8]], "AB", "t"), alpha=0.5)[0]
    split = urag.split_by_alone(result, alone)
    # Alone: t0 wrong, t1 right, t2 not asked.
    assert {name: len(s[0].units) for name, s in split.items()} == {
        "alone_right": 1,
        "alone_wrong": 1,
        "alone_unknown": 1,
    }
    assert numbers(split["alone_wrong"])["accuracy"] == 1.0


def test_ratio_to_the_model_alone() -> None:
    result = urag.scores(CALIBRATION, choices([[0.9, 0.1], [0.9, 0.1]], "AA", "t"), alpha=0.5)
    alone = urag.scores(CALIBRATION, choices([[0.5, 0.5], [0.9, 0.1]], "AA", "t"), alpha=0.5)
    # LAC sizes 1, 1 against 2, 1.
    assert numbers(urag.ratios(result, alone))["set_size_lac_ratio"] == pytest.approx(2 / 3)


def test_halves_split_questions() -> None:
    questions = [f"q{i // 3}" for i in range(30)]
    mask = urag.random_half(questions)
    assert mask.sum() == 15
    assert all(len(set(mask[i : i + 3].tolist())) == 1 for i in range(0, 30, 3))
    assert (urag.random_half(questions) == mask).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: urag.sets(CALIBRATION, CALIBRATION), "is in both halves"),
        (lambda: choices([[0.5, 0.5]], "C", "t"), "unknown label 'C' for the correct option"),
        (lambda: choices([[0.5, 0.4, 0.1]], "C", "t", [[True, True, False]]), "has no option 'C'"),
        (lambda: choices([[0.0, 0.0]], "A", "t"), "no option with a probability above 0"),
        (
            lambda: urag.sets(choices([[NAN, 1.0]], "A", "c"), choices([[0.5, 0.5]], "A", "t")),
            "no calibration question",
        ),
        (lambda: urag.sets(CALIBRATION, choices([[0.5, 0.3, 0.2]], "A", "t")), "same option letters"),
        (lambda: urag.Choices.build(Units.build(["a"]), "AB", [[0.0]], ["A"]), "the shape is"),
    ],
)
def test_bad_choices(make: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        make()


def test_distractors_by_iteration() -> None:
    rows = table(
        "question_id iteration valid",
        ("q1", 1, True),
        ("q2", 1, False),
        ("q3", 1, False),
        ("q4", 1, False),
        ("q2", 2, True),
        ("q3", 2, None),
        ("q4", 2, False),
        ("q4", 3, True),
    )
    result = points(urag.distractors(rows))
    # Tried: 4, 3, 1. After 2 iterations q1 and q2 are valid, q4 is not, q3 was not checked.
    assert {name: m.value for name, m in result.items()} == {
        "valid_share@1": 0.25,
        "valid_after@1": 0.25,
        "valid_share@2": 0.5,
        "valid_after@2": pytest.approx(2 / 3),
        "valid_share@3": 1.0,
        "valid_after@3": 1.0,
    }
    assert (result["valid_after@2"].n_units, result["valid_after@2"].coverage) == (3, 0.75)


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.floats(-30, 0), min_size=3, max_size=3), min_size=12, max_size=30), st.integers(0, 9)
)
def test_coverage_is_kept_on_the_calibration_questions_themselves(rows: list[list[float]], seed: int) -> None:
    """At least ceil((n + 1)(1 - alpha)) of the n scores lie at or below the threshold: exact sets cover that many."""
    letters = np.random.default_rng(seed).choice(list("ABC"), len(rows)).tolist()
    half = urag.Choices.build(Units.build([f"c{i}" for i in range(len(rows))]), "ABC", rows, letters)
    again = urag.Choices.build(Units.build([f"t{i}" for i in range(len(rows))]), "ABC", rows, letters)
    result = points(urag.scores(half, again, alpha=0.2))
    least = min(int(np.ceil((len(rows) + 1) * 0.8)), len(rows)) / len(rows)
    for name in ("coverage_lac", "coverage_aps"):
        value = result[name].value
        assert value is not None and value >= least - 1e-9


def test_thresholds_label_by_label() -> None:
    # A is common and sure (0.9), B is rare and not (0.3 where B is true). LAC of the true option: 0.1 nine times, 0.7.
    rows = [[0.9, 0.1]] * 9 + [[0.7, 0.3]]
    units = Units.build([f"c{n}" for n in range(10)], [f"c{n}" for n in range(10)])
    cal = urag.Choices.build(units, ("A", "B"), np.log(rows), ["A"] * 9 + ["B"])
    test = urag.Choices.build(Units.build(["t"], ["t"]), ("A", "B"), np.log([[0.6, 0.4]]), ["B"])
    # For all: the 6th of 10 (ceil(11 * 0.5)) is 0.1, and neither 0.4 nor 0.6 is below. A: the 5th of 9, 0.1; B: the 1st of
    # 1, 0.7, so that B (0.6) is in the set.
    assert urag.sets(cal, test, alpha=0.5).lac.tolist() == [[False, False]]
    apart = urag.sets(cal, test, alpha=0.5, by_class=True)
    assert apart.lac.tolist() == [[False, True]]
    assert apart.limits_lac.tolist() == [pytest.approx(0.1), pytest.approx(0.7)]


def test_notes_distinguish_units_and_questions() -> None:
    # Ten units of five questions calibrate, one of them without a distribution: nine units of five questions are left.
    def two_each(rows: list[list[float]], prefix: str) -> urag.Choices:
        with np.errstate(divide="ignore"):
            logs = np.log(np.array(rows))
        names = [f"{prefix}{i}" for i in range(len(rows))]
        who = Units.build(names, [f"{prefix}q{i // 2}" for i in range(len(rows))])
        return urag.Choices.build(who, "AB", logs, ["A"] * len(rows))

    calibration = two_each([[0.9, 0.1]] * 9 + [[NAN, 1]], "c")
    result = points(urag.scores(calibration, two_each([[0.7, 0.3]] * 4, "t"), alpha=0.5))["coverage"]
    assert result.notes[:2] == (
        "alpha 0.5, exact quantile, calibrated on 9 units of 5 questions",
        f"1 calibration units left out: {urag.NO_DISTRIBUTION}",
    )
