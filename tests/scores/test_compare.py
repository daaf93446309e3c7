"""Two scores at once."""

import numpy as np
import pytest

from judge.errors import BadInput
from judge.scores.compare import combine_scores, compare_all, divide_by
from judge.scores.score import Score, Units, quotient, score_values
from tests.scores.helpers import compare

NAN = float("nan")


def score(values: list[float], ids: list[str] | None = None, name: str = "m") -> Score:
    return score_values(name, Units.build(ids or [f"u{i}" for i in range(len(values))]), np.array(values))


def test_a_difference_is_on_the_units_that_both_have() -> None:
    first = score([1, 0, 1, 1], ["a", "b", "c", "d"])
    second = score([1, NAN, 0, 1], ["d", "c", "b", "e"])
    result = compare(first, second, interval=None)
    # Shared ids b, c, d; both values on b (0, 0) and d (1, 1): the means are 1/2 and 1/2.
    assert (result.first.value, result.second.value, result.difference.value) == (0.5, 0.5, 0.0)
    assert (result.difference.n_units, result.difference.coverage) == (2, pytest.approx(2 / 3))
    # a and e are in one run only.
    assert "2 units are in only one of the two scores" in result.difference.notes


def test_scores_of_the_same_units_are_compared_row_by_row() -> None:
    who = Units.build(["a", "b", "c"])
    result = compare(
        score_values("m", who, np.array([1.0, 0, NAN])),
        score_values("m", who, np.array([1.0, 1, 0])),
        interval=None,
    )
    # Both values on a and b: 1/2 and 1.
    assert (result.first.value, result.second.value) == (0.5, 1.0)


def test_the_interval_is_paired() -> None:
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 400).astype(float)
    second = first.copy()
    second[:20] = 1 - second[:20]
    result = compare(score(first.tolist()), score(second.tolist())).difference
    # 20 of 400 differ: the difference moves by at most .05 + a little; unpaired it would be +- .07.
    assert result.low is not None and result.high is not None
    assert result.high - result.low < 0.05
    assert result.value == pytest.approx((second - first).mean())


def test_a_difference_of_zero_on_all_units_has_an_interval() -> None:
    result = compare(score([1.0, 0, 1, 1] * 10), score([1.0, 0, 1, 1] * 10)).difference
    # 1 - .025 ** (1 / 40) = .08812, either way.
    assert result.value == 0.0
    assert (result.low, result.high) == (pytest.approx(-0.08810, abs=1e-4), pytest.approx(0.08810, abs=1e-4))


def test_micro_averages_are_compared_as_a_whole() -> None:
    who = Units.build(["a", "b"])
    first = Score("p", who, np.array([[1.0, 1], [1, 3]]), quotient(0, 1))
    second = Score("p", who, np.array([[1.0, 2], [3, 3]]), quotient(0, 1))
    # 2/4 and 4/5: not the mean of the two units' differences (-1/2 + 2/3) / 2.
    assert compare(first, second, interval=None).difference.value == pytest.approx(0.3)


def test_measures_of_one_run_only_are_named() -> None:
    one, two, three = score([1.0, 0], name="one"), score([1.0, 1], name="two"), score([0.0, 0], name="three")
    result = compare_all([one, two], [two, three], interval=None)
    assert [d.difference.measure for d in result] == ["one_difference", "two_difference", "three_difference"]
    assert [d.difference.value for d in result] == [None, 0.0, None]
    assert result[0].difference.reason == "only the first run has this measure"
    assert result[2].second.value == 0.0


def test_a_unit_twice_is_an_error() -> None:
    with pytest.raises(BadInput, match="occurs twice"):
        compare(score([1.0, 1], ["a", "a"]), score([1.0], ["a"]))


def test_ratio_to_a_baseline() -> None:
    result = divide_by("r", score([2.0, 4]), score([1.0, 1])).measure_score(interval=None)
    assert result.value == 3.0
    undefined = divide_by("r", score([2.0]), score([0.0])).measure_score(interval=None)
    assert (undefined.value, undefined.reason) == (None, "the baseline is zero or undefined")


def test_combined_parts_use_their_own_units() -> None:
    # Setting: two answers about q1, one about q2, mean 1/3. Zero: q1, q2, q3, mean 2/3.
    setting = score_values("a", Units.build(["x", "y", "z"], ["q1", "q1", "q2"]), np.array([1.0, 0, 0]))
    zero = score_values("b", Units.build(["1", "2", "3"], ["q1", "q2", "q3"]), np.array([1.0, 0, 1]))
    result = combine_scores("drop", [setting, zero], lambda a, b: a - b).measure_score(replicates=200)
    assert result.value == pytest.approx(1 / 3 - 2 / 3)
    assert (result.n_units, result.coverage, result.n_clusters) == (3, 1.0, 3)


def test_combined_names_the_undefined_parts() -> None:
    empty = score([NAN], name="b")
    result = combine_scores("d", [score([1.0], name="a"), empty], lambda a, b: a - b).measure_score(
        interval=None
    )
    assert (result.value, result.reason) == (None, "a or b is undefined")
