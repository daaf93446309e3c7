"""Attribution, in both readings."""

import pytest

from judge.errors import BadInput
from judge.scores import attribution
from tests.scores.helpers import numbers, points, table

COLUMNS = "unit_id question_id cited reference_cited"


def test_micro_and_macro() -> None:
    answers = table(
        COLUMNS,
        ("a1", "q1", ["1", "2"], ["2"]),
        ("a2", "q2", ["1", "2", "3", "4"], ["1", "2", "3", "5", "6"]),
    )
    # Hits 1 and 3; cited 2 and 4; wanted 1 and 5.
    # micro P = 4/6, R = 4/6, F1 = 2/3. macro P = (1/2 + 3/4)/2 = 5/8, R = (1 + 3/5)/2 = 4/5,
    # F1 = 2 * 5/8 * 4/5 / (5/8 + 4/5) = 1 / (57/40) = 40/57.
    assert numbers(attribution.score_citations(answers)) == {
        "attribution_precision_micro": pytest.approx(2 / 3),
        "attribution_recall_micro": pytest.approx(2 / 3),
        "attribution_f1_micro": pytest.approx(2 / 3),
        "attribution_precision_macro": pytest.approx(5 / 8),
        "attribution_recall_macro": pytest.approx(4 / 5),
        "attribution_f1_macro": pytest.approx(40 / 57),
        "attribution_invented_share": 0.0,
    }


def test_an_answer_that_cites_nothing() -> None:
    answers = table(COLUMNS, ("a1", "q1", [], ["1"]), ("a2", "q2", ["1"], ["1"]), ("a3", "q3", None, ["1"]))
    result = points(attribution.score_citations(answers))
    # a1 has no precision, and recall 0; a3's citations are not known: it is in no measure.
    assert result["attribution_precision_macro"].value == 1.0
    assert result["attribution_precision_macro"].n_units == 1
    assert result["attribution_recall_macro"].value == 0.5
    assert result["attribution_recall_micro"].value == 0.5
    assert result["attribution_recall_micro"].coverage == pytest.approx(2 / 3)


def test_nobody_cites_anything() -> None:
    result = points(
        attribution.score_citations(table(COLUMNS, ("a1", "q1", [], ["1"]), ("a2", "q2", [], ["2"])))
    )
    assert result["attribution_precision_micro"].reason == "no answer cites anything"
    assert result["attribution_recall_micro"].value == 0.0
    assert result["attribution_f1_micro"].value is None
    assert str(result["attribution_precision_macro"].reason).endswith("2 no citation")


def test_nothing_right_is_zero_and_defined() -> None:
    result = numbers(attribution.score_citations(table(COLUMNS, ("a1", "q1", ["1"], ["2"]))))
    assert result["attribution_f1_micro"] == result["attribution_f1_macro"] == 0.0


def test_insufficient_rows_are_left_out() -> None:
    answers = table(f"{COLUMNS} answerable", ("a1", "q1", ["1"], ["1"], True), ("a2", "q2", ["1"], [], False))
    assert numbers(attribution.score_citations(answers))["attribution_precision_micro"] == 1.0


def test_a_string_in_place_of_a_list_of_ids_is_an_error() -> None:
    with pytest.raises(BadInput, match="'1, 2'"):
        attribution.score_citations(table(COLUMNS, ("a1", "q1", "1, 2", ["1"])))


ANSWERS = table("unit_id question_id", ("a1", "q1"), ("a2", "q2"), ("a3", "q3"))
SENTENCES = table("unit_id answer_id", ("s1", "a1"), ("s2", "a1"), ("s3", "a2"), ("s4", "a3"))
CITATIONS = table(
    "unit_id sentence_id answer_id label",
    ("c1", "s1", "a1", "full"),
    ("c2", "s1", "a1", "none"),
    ("c3", "s3", "a2", "partial"),
)


def test_judged_citations() -> None:
    # Strict: 1 of 3 citations supports; of four sentences only s1 is supported (s2 and s4 cite nothing).
    # macro P over a1 (1/2) and a2 (0) = 1/4; macro R over a1 (1/2), a2 (0), a3 (0) = 1/6.
    result = numbers(attribution.score_judged_citations(ANSWERS, SENTENCES, CITATIONS))
    assert result == {
        "judged_attribution_precision_micro": pytest.approx(1 / 3),
        "judged_attribution_recall_micro": pytest.approx(1 / 4),
        "judged_attribution_f1_micro": pytest.approx(2 / 7),
        "judged_attribution_precision_macro": pytest.approx(1 / 4),
        "judged_attribution_recall_macro": pytest.approx(1 / 6),
        "judged_attribution_f1_macro": pytest.approx(1 / 5),
        "judged_attribution_invented_share": 0.0,
    }


def test_an_unlabelled_citation() -> None:
    # c2 unknown: s1 is supported all the same. c3 unknown: s3 may be or not.
    unknown = CITATIONS.assign(label=["full", None, None], status=["ok", "unparsed", "refused"])
    result = points(attribution.score_judged_citations(ANSWERS, SENTENCES, unknown))
    assert (
        result["judged_attribution_precision_micro"].value,
        result["judged_attribution_precision_micro"].n_units,
    ) == (1.0, 1)
    recall = result["judged_attribution_recall_micro"]
    # s1 yes, s2 and s4 no, s3 unknown.
    assert (recall.value, recall.n_units) == (pytest.approx(1 / 3), 3)
    assert recall.notes[-1] == "1 of 4 units have no value: 1 refused"


def test_support_rates() -> None:
    assert numbers(attribution.support_rates(ANSWERS, CITATIONS)) == pytest.approx(
        {"citation_full": 1 / 3, "citation_partial": 1 / 3, "citation_none": 1 / 3}
    )
