"""RAGuard: accuracy by setting, drops, roles."""

import pandas as pd
import pytest

from judge.errors import BadInput
from judge.papers import raguard
from tests.scores.helpers import numbers, points, table

COLUMNS = "unit_id item_id condition label gold role status"
ANSWERS = table(
    COLUMNS,
    ("z1", "c1", "none", "true", "true", None, "ok"),
    ("z2", "c2", "none", "false", "false", None, "ok"),
    ("z3", "c3", "none", "true", "false", None, "ok"),
    ("z4", "c4", "none", "false", "false", None, "ok"),
    ("t1", "c1", "top:1", "true", "true", None, "ok"),
    ("t2", "c2", "top:1", "maybe", "false", None, "ok"),
    ("t3", "c3", "top:1", "true", "false", None, "ok"),
    ("t4", "c4", "top:1", None, "false", None, "unparsed"),
    ("o1", "c1", "oracle", "false", "true", "misleading", "ok"),
    ("o2", "c1", "oracle", "true", "true", "supporting", "ok"),
    ("o3", "c1", "oracle", "true", "true", "unrelated", "ok"),
    ("o4", "c3", "oracle", "true", "false", "misleading", "ok"),
)


def test_accuracies() -> None:
    result = {name: s.accuracy.measure_score(interval=None) for name, s in raguard.settings(ANSWERS).items()}
    # zero 3/4. top 1: only c1 of four: "maybe" and the unreadable reply are wrong. oracle 2/4.
    # Misleading only: o1 and o4, both wrong.
    assert {name: m.value for name, m in result.items()} == {
        "zero": 0.75,
        "rag_1": 0.25,
        "oracle": 0.5,
        "misleading": 0.0,
    }
    assert result["rag_1"].notes == ("2 answers that are outside the options or unreadable count as wrong",)
    assert (result["oracle"].n_units, result["oracle"].n_clusters) == (4, 2)


def test_a_failed_call_is_not_an_answer() -> None:
    answers = ANSWERS.assign(status=ANSWERS["status"].replace("unparsed", "failed"))
    result = raguard.settings(answers)["rag_1"].accuracy.measure_score(interval=None)
    assert (result.value, result.n_units, result.coverage) == (pytest.approx(1 / 3), 3, 0.75)


def test_drops() -> None:
    result = numbers(raguard.drops(raguard.settings(ANSWERS)))
    # Against zero's 3/4 over all claims; relative to it.
    assert result["drop_rag_1"] == -0.5
    assert result["drop_relative_rag_1"] == pytest.approx(-2 / 3)
    assert result["drop_misleading"] == -0.75
    assert result["drop_relative_misleading"] == -1.0
    # The oracle's claims are c1 (right without context) and c3 (wrong): each once 1/2, as often as they are
    # answered (c1 three times) 3/4.
    assert result["drop_same_claims_oracle"] == 0.0
    assert result["drop_relative_same_claims_oracle"] == 0.0
    assert result["drop_same_answers_oracle"] == -0.25
    assert result["drop_same_claims_misleading"] == -0.5
    assert result["drop_same_answers_misleading"] == -0.5


def test_a_relative_drop_from_zero_accuracy_is_undefined() -> None:
    answers = ANSWERS[ANSWERS["unit_id"].isin(["z3", "o4"])]
    result = points(raguard.drops(raguard.settings(answers)))
    assert result["drop_relative_oracle"].value is None
    assert result["drop_relative_oracle"].reason == "accuracy_oracle or accuracy_zero is undefined"
    assert result["drop_oracle"].value == 0.0


def test_without_zero_there_are_no_drops() -> None:
    assert [s.measure for s in raguard.scores(ANSWERS[ANSWERS["condition"] == "oracle"])] == [
        "accuracy_oracle",
        "accuracy_misleading",
    ]


def test_two_answers_without_context_are_an_error() -> None:
    twice = pd.concat([ANSWERS, ANSWERS.iloc[[0]].assign(unit_id="again")])
    with pytest.raises(BadInput, match="claim 'c1' has two answers"):
        raguard.scores(twice)


def test_a_condition_of_its_own_for_misleading_documents() -> None:
    more = table(COLUMNS, ("m1", "c1", "misleading", "true", "true", None, "ok"))
    result = raguard.settings(pd.concat([ANSWERS, more]))
    assert list(result) == ["zero", "rag_1", "oracle", "misleading"]
    assert len(result["misleading"].accuracy.units) == 1


def test_roles_from_the_exam() -> None:
    exam = pd.Series(["true", "false", "false", "does not contribute", "unrelated", None, "true"])
    gold = pd.Series(["true", "false", "true", "true", "false", "true", None])
    # For a false claim the document that says false is the supporting one.
    assert list(raguard.roles(exam, gold)) == [
        "supporting", "supporting", "misleading", "irrelevant", "irrelevant", None, None,
    ]  # fmt: skip


def test_words() -> None:
    with pytest.raises(BadInput, match="unknown role 'noise'"):
        raguard.role_words(pd.Series(["noise"]))
