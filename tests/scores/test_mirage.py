"""MIRAGE's exact match and its four cells."""

import numpy as np
import pytest

from judge.errors import BadInput
from judge.papers import mirage
from tests.scores.helpers import points, table


@pytest.mark.parametrize(
    ("prediction", "answers", "right"),
    [
        ("He is a Journalist.", ["journalist"], 1),
        ("JOURNALIST", ["journalist", "journo"], 1),
        ("I know", ["No"], 1),  # "no" is part of "know"
        ("", ["no"], 0),
        ("anything", ["", "x"], 0),  # an empty alias is in every text
        ("C++ and C", ["c++"], 1),
        ("Straße", ["STRASSE"], 0),  # lower case, not case folding
    ],
)
def test_exact_match(prediction: str, answers: list[str], right: int) -> None:
    assert mirage.exact_match([prediction], [answers])[0] == right


def test_no_prediction_and_no_alias_have_no_value() -> None:
    assert np.isnan(mirage.exact_match([None, "x", "x"], [["x"], [], None])).all()
    with pytest.raises(BadInput, match="'x'"):
        mirage.exact_match(["x"], ["x"])


# All eight combinations of base, oracle, mixed once, and one question that was not judged in one condition.
EIGHT = table(
    "unit_id base oracle mixed",
    *((f"q{i}", i >> 2 & 1, i >> 1 & 1, i & 1) for i in range(8)),
    ("q8", 1, 1, None),
)


def test_the_cells() -> None:
    result = points(mirage.adaptability(EIGHT))
    # o = 1 in four of eight: two with m = 0, two with m = 1. o = 0 in four: two with b = 0, two with b = 1.
    assert {name: m.value for name, m in result.items()} == {
        "noise_vulnerability": 0.25,
        "context_acceptability": 0.25,
        "context_insensitivity": 0.25,
        "context_misinterpretation": 0.25,
        "total": -0.5,
    }
    assert (result["total"].n_units, result["total"].coverage) == (8, pytest.approx(8 / 9))
    assert result["total"].notes == (
        "mixed context: fixed5",
        "1 of 9 units have no value: 1 not judged",
    )


def test_conditions_are_aligned_by_id() -> None:
    base = table("unit_id question_id correct", ("a", "qa", 1), ("b", "qb", 0))
    oracle = table("unit_id question_id correct status", ("b", "qb", 1, "ok"), ("a", "qa", None, "refused"))
    mixed = table("unit_id question_id correct", ("c", "qc", 1), ("b", "qb", 1))
    result = mirage.align_conditions(base, oracle, mixed).set_index("unit_id")
    assert result.loc["b", ["base", "oracle", "mixed"]].tolist() == [0, 1, 1]
    assert result.loc["a", "oracle_status"] == "refused"
    assert result.loc["c", ["question_id", "base_status"]].tolist() == ["qc", "not judged"]
    scores = mirage.adaptability(result.reset_index(), "retrieved:5")
    assert scores[1].measure_score(interval=None).value == 1.0
    # a: refused in one condition and absent from another, of which the worse is named; c: absent from two.
    assert scores[1].missing == {"not judged": 2}


def test_the_mixed_context_is_one_of_two() -> None:
    assert "mixed context: retrieved:5" in mirage.adaptability(EIGHT, "retrieved:5")[0].notes
    for bad in ("top5", "retrieved:0", "retrieved:"):
        with pytest.raises(BadInput, match="fixed5 or retrieved:K"):
            mirage.adaptability(EIGHT, bad)
