"""Nugget scores, worked out by hand; strict is at most not strict, and a missing answer never raises a mean."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from judge.papers import nuggets
from judge.scores.score import Score

V, O = "vital", "okay"  # noqa: E741
S, P, N = "support", "partial_support", "not_support"
MEASURES = [f"nugget_{name}{form}" for name in ("vital", "weighted", "all") for form in ("_strict", "")]
Topic = list[tuple[str, str | None]]


def tables(topics: list[Topic], missing: tuple[int, ...] = ()) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One answer a topic; of a missing one there are no assignments, as in a study."""
    answers = pd.DataFrame(
        {
            "unit_id": range(len(topics)),
            "question_id": [f"q{n}" for n in range(len(topics))],
            "answered": [n not in missing for n in range(len(topics))],
            "n_vital": [sum(i == V for i, _ in topic) for topic in topics],
            "n_okay": [sum(i == O for i, _ in topic) for topic in topics],
        }
    )
    rows = [
        {"unit_id": f"{n}#{place}", "answer_id": n, "importance": importance, "label": label}
        for n, topic in enumerate(topics)
        if n not in missing
        for place, (importance, label) in enumerate(topic)
    ]
    return answers, pd.DataFrame(rows, columns=["unit_id", "answer_id", "importance", "label"])


def scores(topics: list[Topic], missing: tuple[int, ...] = ()) -> dict[str, Score]:
    return {score.measure: score for score in nuggets.trec(*tables(topics, missing))}


def means(topics: list[Topic], missing: tuple[int, ...] = ()) -> dict[str, float | None]:
    return {name: score.measure_score(interval=None).value for name, score in scores(topics, missing).items()}


A: Topic = [(V, S), (V, P), (O, S), (O, N)]
B: Topic = [(O, P), (O, N)]
C: Topic = [(V, S), (O, S)]


def test_by_hand() -> None:
    # A: Vital (1 + .5)/2; Weighted (1.5 + .5 x 1)/(2 + .5 x 2); All 2.5/4. Strict: 1/2, (1 + .5)/3, 2/4.
    # B has no vital nugget: Weighted .5 x .5/(.5 x 2); All .5/2; strict 0. C is missing: 0.
    result = scores([A, B, C], missing=(2,))
    expected = {
        "nugget_vital_strict": [0.5, np.nan, 0],
        "nugget_vital": [0.75, np.nan, 0],
        "nugget_weighted_strict": [0.5, 0, 0],
        "nugget_weighted": [2 / 3, 0.25, 0],
        "nugget_all_strict": [0.5, 0, 0],
        "nugget_all": [0.625, 0.25, 0],
    }
    assert list(result) == list(expected) == MEASURES
    for name, values in expected.items():
        np.testing.assert_allclose(result[name].rows[:, 0], values, err_msg=name)
    # Means over topics, of Vital over the two that have vital nuggets.
    assert means([A, B, C], missing=(2,))["nugget_vital"] == pytest.approx(0.75 / 2)
    assert means([A, B, C], missing=(2,))["nugget_all"] == pytest.approx(0.875 / 3)
    assert result["nugget_vital"].missing == {"no vital nugget": 1}


def test_a_nugget_without_a_label_removes_the_measures_that_count_it() -> None:
    result = scores([[(V, S), (O, None)]])
    assert result["nugget_vital"].rows[0, 0] == 1.0
    assert result["nugget_all"].missing == result["nugget_weighted"].missing == {"not judged": 1}
    answers, assignments = tables([A])
    lost = nuggets.trec(answers, assignments.iloc[1:])
    # The first of A's vital nuggets has no row at all: no measure is a mean over the other one alone.
    assert all(np.isnan(score.rows[0, 0]) for score in lost)


def random_topics(seed: int) -> list[Topic]:
    rng = np.random.default_rng(seed)
    return [
        [(V if rng.random() < 0.4 else O, str(rng.choice([S, P, N]))) for _ in range(rng.integers(1, 6))]
        for _ in range(12)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_invariants(seed: int) -> None:
    topics = random_topics(seed)
    result = scores(topics)
    for strict, plain in zip(MEASURES[::2], MEASURES[1::2], strict=True):
        values, others = result[strict].rows[:, 0], result[plain].rows[:, 0]
        assert (np.isnan(values) == np.isnan(others)).all()
        known = ~np.isnan(values)
        assert (values[known] <= others[known]).all() and (values[known] < others[known]).any()
    # Each further answer that goes missing lowers a mean or leaves it: it never raises it. So the other way round, an
    # answer to a topic without one never lowers it. The topics that count stay the same ones.
    lost = [means(topics, missing=tuple(range(n))) for n in range(len(topics) + 1)]
    for before, after in pairwise(lost):
        for name in MEASURES:
            first, second = before[name], after[name]
            assert first is not None and second is not None and second <= first + 1e-12
    assert all(value == 0 for value in lost[-1].values())
    # Importance by name alone decides: in another order of topics and nuggets the means are the same.
    again = means([topic[::-1] for topic in topics[::-1]])
    assert again == pytest.approx(lost[0])
