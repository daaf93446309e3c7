"""What every score shares: values, counts, reasons, intervals, strata."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import BadInput
from judge.scores.score import (
    STATUSES,
    Score,
    Units,
    harmonic,
    measure_all,
    quotient,
    score_values,
    share,
    split_by_stratum,
)
from judge.stats import mean

NAN = float("nan")


def test_counts_coverage_and_what_is_missing() -> None:
    status = np.array([0, STATUSES.index("unparsed"), STATUSES.index("refused"), 0, 0], dtype=np.int8)
    score = score_values(
        "m",
        Units.build(list("abcde"), list("xxyyz")),
        np.array([1, NAN, NAN, 0, NAN]),
        status,
        reason="no citation",
    )
    result = score.measure_score(interval=None)
    # Two of five have a value, 1 and 0; they stand in questions x and y.
    assert (result.value, result.n_units, result.n_clusters, result.coverage) == (0.5, 2, 2, 0.4)
    assert score.missing == {"unparsed": 1, "refused": 1, "no citation": 1}
    assert result.notes == ("3 of 5 units have no value: 1 no citation, 1 unparsed, 1 refused",)


@pytest.mark.parametrize(
    ("values", "rows", "reason"),
    [
        ([], None, "there are no units"),
        ([NAN, NAN], None, "none of the 2 units has a value: 2 undefined"),
        ([0.0, 0.0], quotient(0, 0), "the denominator is zero"),
    ],
)
def test_undefined_has_a_reason(values: list[float], rows: object, reason: str) -> None:
    score = score_values("m", Units.build(list(range(len(values)))), np.array(values, dtype=float))
    if rows is not None:
        score = Score("m", score.units, score.rows, quotient(0, 0))
    result = score.measure_score(replicates=100)
    assert (result.value, result.low, result.high) == (None, None, None)
    assert result.reason == reason


def test_a_mean_equals_that_of_the_statistics_package() -> None:
    rng = np.random.default_rng(5)
    values, questions = (rng.random(300) < 0.4).astype(float), rng.integers(0, 60, 300)
    values[rng.random(300) < 0.1] = NAN
    ours = score_values("mean", Units.build(np.arange(300), questions), values).measure_score(seed=3)
    theirs = mean(values, clusters=questions, seed=3)
    assert ours.value == theirs.value
    assert (ours.n_units, ours.n_clusters, ours.coverage) == (
        theirs.n_units,
        theirs.n_clusters,
        theirs.coverage,
    )
    # Other draws of the same law: the bounds agree to a fraction of the interval's width (.12).
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_questions_are_resampled_not_units() -> None:
    # Ten questions of 100 equal units each: the interval is that of ten coins, not of a thousand.
    questions = np.repeat(np.arange(10), 100)
    by_question = score_values(
        "m", Units.build(np.arange(1000), questions), (questions % 2).astype(float)
    ).measure_score()
    by_unit = score_values("m", Units.build(np.arange(1000)), (questions % 2).astype(float)).measure_score()
    assert by_question.low is not None and by_unit.low is not None
    # sd of the mean of ten fair coins .158, of a thousand .0158.
    assert by_question.low < 0.3 < 0.46 < by_unit.low


def test_all_zeros_have_the_exact_upper_bound() -> None:
    result = score_values("m", Units.build(np.arange(20)), np.zeros(20)).measure_score(replicates=100)
    # 1 - .025 ** (1 / 20) = .16843 is the exact 97.5 % bound for none in twenty.
    assert (result.low, result.high) == (0.0, pytest.approx(0.16843, abs=1e-5))


def test_a_unit_without_a_question_is_a_cluster() -> None:
    who = Units.build(["a", "b", "c"], ["q", None, None])
    assert len(set(who.clusters.tolist())) == 3


TABLES = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 0.25, NAN]), st.integers(0, 5)), min_size=1, max_size=40
)


@settings(max_examples=25)
@given(rows=TABLES, seed=st.integers(0, 99))
def test_order_and_names_change_nothing(rows: list[tuple[float, int]], seed: int) -> None:
    values, questions = np.array([v for v, _ in rows]), np.array([q for _, q in rows])
    order = np.random.default_rng(seed).permutation(len(rows))
    first = score_values("m", Units.build(np.arange(len(rows)), questions), values).measure_score(
        replicates=100
    )
    renamed = [f"question {9 - q}" for q in questions[order]]
    ids = [f"u{i}" for i in order]
    assert score_values("m", Units.build(ids, renamed), values[order]).measure_score(replicates=100) == first


def test_strata_add_up_and_keep_those_without_one() -> None:
    score = score_values("m", Units.build(list("abcd"), ["q1", "q1", "q2", "q3"]), np.array([1.0, 0, 1, 1]))
    result = split_by_stratum([score], {"q1": "low", "q2": "high", "q3": None})
    assert list(result) == ["high", "low", "(none)"]
    assert {name: (s.measure_score(interval=None).value, len(s.units)) for name, [s] in result.items()} == {
        "high": (1.0, 1),
        "low": (0.5, 2),
        "(none)": (1.0, 1),
    }


def test_harmonic_mean() -> None:
    # 2 * 1/2 * 1 / (3/2) = 2/3; nothing right is 0; undefined stays so.
    result = harmonic(np.array([0.5, 0.0, NAN]), np.array([1.0, 0.0, 1.0]))
    assert result[:2].tolist() == pytest.approx([2 / 3, 0.0])
    assert np.isnan(result[2])


def test_many_scores_are_measured_as_single_scores_are() -> None:
    rows = np.random.default_rng(2).integers(0, 2, (90, 2)).astype(float)
    rows[5] = NAN
    who = Units.build(np.arange(90), np.arange(90) // 3)
    scores = [
        Score("a", who, rows, share(0)),
        score_values("b", who, rows[:, 1]),
        Score("c", who, rows, quotient(0, 1)),
    ]
    assert measure_all(scores, seed=4) == [score.measure_score(seed=4) for score in scores]


def test_a_question_in_two_strata_is_an_error() -> None:
    score = score_values("m", Units.build(["a"]), np.array([1.0]))
    with pytest.raises(BadInput, match="'a' is in two strata"):
        split_by_stratum([score], pd.Series(["x", "y"], index=["a", "a"]))
