"""GaRAGe's factuality, deflection, rates and strata."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import BadInput
from judge.papers import garage
from tests.scores.helpers import numbers, points, table

ANSWERS = table(
    "unit_id question_id answerable eligibility deflection n_sentences",
    ("a1", "q1", True, "No Issues", "attempted", 2),
    ("a2", "q2", True, "Minor Issue(s)", "attempted", 2),
    ("a3", "q3", True, "Major Issue(s)", "attempted", 1),
    ("a4", "q4", True, "No Issues", "missing", 1),
    ("a5", "q5", False, None, "missing", 1),
    ("a6", "q6", False, None, "attempted", 1),
)
FULL = table(
    "unit_id answer_id label",
    ("a1#s0", "a1", "supported"),
    ("a1#s1", "a1", "no_rad"),
    ("a2#s0", "a2", "supported"),
    ("a2#s1", "a2", "unsupported"),
    ("a3#s0", "a3", "supported"),
    ("a4#s0", "a4", "no_rad"),
    ("a5#s0", "a5", "contradictory"),
    ("a6#s0", "a6", "supported"),
)


def relabelled(sentences: pd.DataFrame, **labels: str | None) -> pd.DataFrame:
    result = sentences.copy()
    for unit, label in labels.items():
        result.loc[result["unit_id"] == unit.replace("_", "#"), "label"] = label
    return result


def test_the_four_measures() -> None:
    # Answerable rows a1..a4. Eligible: all but a3 = 3/4. F: a1 yes, a2 no (one unsupported), a3 yes, a4 yes = 3/4.
    # Both: a1 and a4 = 2/4. Against the relevant passages a1's first sentence falls too: R = 2/4, both = 1/4.
    relevant = relabelled(FULL, a1_s0="unsupported")
    assert numbers(garage.factuality(ANSWERS, FULL, relevant)) == {
        "eligibility": 0.75,
        "unadjusted_factuality": 0.75,
        "factuality": 0.5,
        "unadjusted_raf": 0.5,
        "raf": 0.25,
        # 2/4 - 1/4.
        "over_summarisation_gap": 0.25,
        "contradictory_labels": 0.0,
    }


def test_deflection_over_insufficient_rows_and_over_the_rest() -> None:
    # Insufficient: a5 declines, a6 answers. The rest: only a4 of four declines.
    assert numbers(garage.deflection(ANSWERS)) == {
        "deflection_true_positive_rate": 0.5,
        "deflection_false_positive_rate": 0.25,
    }


def test_all_deflected_and_no_insufficient_row() -> None:
    answers = ANSWERS[ANSWERS["answerable"].astype(bool)].assign(deflection="missing")
    result = points(garage.deflection(answers))
    assert result["deflection_false_positive_rate"].value == 1.0
    none = result["deflection_true_positive_rate"]
    assert (none.value, none.n_units, none.reason) == (None, 0, "there are no units")


def test_a_sentence_without_a_label_leaves_its_answer_without_a_value() -> None:
    # a2 has an unsupported sentence, but its other one is unknown; counting only such zeros would bias the mean.
    sentences = relabelled(FULL, a2_s0=None).assign(status=["ok", "ok", "unparsed", *["ok"] * 5])
    result = points(garage.factuality(ANSWERS, sentences))["unadjusted_factuality"]
    # a1, a3, a4 remain: 3/3.
    assert (result.value, result.n_units, result.coverage) == (1.0, 3, 0.75)
    assert result.notes == ("1 of 4 units have no value: 1 unparsed",)


def test_the_rule_of_facts_for_replies_without_a_verdict() -> None:
    sentences = relabelled(FULL, a1_s0=None).assign(status=["unparsed", *["ok"] * 7])
    answers = ANSWERS.copy()
    answers.loc[2, "eligibility"] = None
    answers["eligibility_status"] = ["ok", "ok", "refused", "ok", None, None]
    result = points(garage.factuality(answers, sentences, unparsed="facts"))
    # a1 is not grounded, a3 eligible: E = 4/4, F = a3, a4 = 2/4, both = 2/4.
    assert [result[m].value for m in ("eligibility", "unadjusted_factuality", "factuality")] == [
        1.0,
        0.5,
        0.5,
    ]
    assert "FACTS" in result["factuality"].notes[0]


def test_a_failed_call_is_not_a_reply() -> None:
    sentences = relabelled(FULL, a1_s0=None).assign(status=["failed", *["ok"] * 7])
    result = points(garage.factuality(ANSWERS, sentences, unparsed="facts"))["unadjusted_factuality"]
    assert (result.n_units, result.coverage) == (3, 0.75)


def test_an_empty_answer_is_a_failure() -> None:
    # a4 is empty, although the judge called it eligible. E: 1, 1, 0, 0 = 2/4; F: 1, 0, 1, 0 = 2/4; both: a1 = 1/4.
    answers = ANSWERS.assign(n_sentences=[2, 2, 1, 0, 1, 1], answered=[True, True, True, False, True, True])
    result = points(garage.factuality(answers, FULL[FULL["answer_id"] != "a4"]))
    values = [result[m].value for m in ("eligibility", "unadjusted_factuality", "factuality")]
    assert values == [0.5, 0.5, 0.25]
    assert [result[m].n_units for m in result] == [4, 4, 4]
    assert "1 empty or missing answers count as failures" in result["factuality"].notes
    # It is no deflection either: of the answerable rows nobody declines now, a4 included.
    assert numbers(garage.deflection(answers))["deflection_false_positive_rate"] == 0.0


def test_sentences_that_were_not_judged_are_missed() -> None:
    answers = ANSWERS.assign(n_sentences=[3, 2, 1, 1, 1, 1])
    result = garage.factuality(answers, FULL)[1]
    assert result.missing == {"not judged": 1}
    # Without n_sentences an answer that has no row at all is not judged, and not empty.
    rest = FULL[FULL["answer_id"] != "a1"]
    assert garage.factuality(ANSWERS.drop(columns="n_sentences"), rest)[1].missing == {"not judged": 1}


def test_n_sentences_below_the_number_of_rows_is_ignored() -> None:
    answers = ANSWERS.assign(n_sentences=[None, 1, 1, 1, 1, 1])
    result = garage.factuality(answers, FULL)[1]
    assert (result.missing, result.measure_score(interval=None).value) == ({}, 0.75)


def test_sentence_rates() -> None:
    # Six sentences of answerable rows: 3 supported, 2 no_rad, 1 unsupported.
    assert numbers(garage.sentence_rates(ANSWERS, FULL)) == {
        "sentence_supported": 0.5,
        "sentence_unsupported": pytest.approx(1 / 6),
        "sentence_contradictory": 0.0,
        "sentence_no_rad": pytest.approx(1 / 3),
        "sentence_grounded": pytest.approx(5 / 6),
    }


def test_sentences_are_clustered_by_question() -> None:
    result = points(garage.sentence_rates(ANSWERS, FULL))["sentence_supported"]
    assert (result.n_units, result.n_clusters) == (6, 4)


PASSAGES = table(
    "unit_id item_id label relevant",
    ("p1", "q1", "ANSWER-THE-QUESTION", True),
    ("p2", "q1", "RELATED-INFORMATION", True),
    ("p3", "q1", "IRRELEVANT", False),
    ("p4", "q2", "OUTDATED", True),
    ("p5", "q2", None, None),
    ("p6", "q3", None, None),
    ("p7", "q4", "ANSWER-THE-QUESTION", True),
)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("answer", [1, 0, 0, 0, None, None, 1]),
        ("answer+related", [1, 1, 0, 0, None, None, 1]),
        ("marked", [1, 1, 0, 1, None, None, 1]),
    ],
)
def test_relevant_sets(rule: Any, expected: list[float | None]) -> None:
    result = [None if np.isnan(v) else v for v in garage.relevant_passages(PASSAGES, rule)]
    assert result == expected


def test_density_at_its_cut_offs() -> None:
    # q1: 1 of 3 labelled = 1/3, which is not below 1/3. q2: 0 of 1. q3: no label. q4: 1 of 1.
    assert garage.density(PASSAGES).to_dict() == {"q1": "medium", "q2": "low", "q3": None, "q4": "high"}
    # q1 has 2 of 3 with the wider set: 2/3 is not below 2/3.
    assert garage.density(PASSAGES, "answer+related")["q1"] == "high"


@pytest.mark.parametrize(
    ("answers", "sentences", "message"),
    [
        (ANSWERS.assign(eligibility="Fine"), FULL, "unknown label 'Fine' for eligibility"),
        (ANSWERS.assign(unit_id="a1"), FULL, "two rows for unit_id 'a1'"),
        (ANSWERS, FULL.assign(answer_id="a9"), "'a9'"),
        (ANSWERS.drop(columns="eligibility"), FULL, "no column 'eligibility'"),
        (ANSWERS.assign(answerable=None), FULL, "every answer needs a value"),
        (ANSWERS, FULL.assign(status="lost"), "unknown label 'lost' for status"),
    ],
)
def test_bad_tables_are_named(answers: pd.DataFrame, sentences: pd.DataFrame, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        garage.factuality(answers, sentences)


LABELS = st.sampled_from([*garage.GROUNDING, None])


@settings(max_examples=25)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from([*garage.ELIGIBLE, None]),
            st.lists(st.tuples(LABELS, LABELS), max_size=4),
            st.sampled_from([0, 1, None]),
            st.booleans(),
        ),
        min_size=1,
        max_size=8,
    ),
    unparsed=st.sampled_from(["unscored", "facts"]),
)
def test_raf_exceeds_factuality_only_by_contradictory_labels(rows: list[Any], unparsed: Any) -> None:
    """Whatever the judge says about the relevant passages, missing labels and rows without any included."""
    answers = table(
        "unit_id answerable eligibility n_sentences n_relevant answered",
        *(
            (f"a{i}", True, eligible, len(labels), n_relevant, answered)
            for i, (eligible, labels, n_relevant, answered) in enumerate(rows)
        ),
    )
    sides = [
        table(
            "unit_id answer_id label",
            *(
                (f"a{i}#s{j}", f"a{i}", both[side])
                for i, (_, labels, _, _) in enumerate(rows)
                for j, both in enumerate(labels)
            ),
        )
        for side in (0, 1)
    ]
    result = points(garage.factuality(answers, *sides, unparsed=unparsed))
    for prefix in ("", "unadjusted_"):
        factuality, raf = result[f"{prefix}factuality"], result[f"{prefix}raf"]
        assert factuality.n_units == raf.n_units
        if raf.value is not None:
            assert factuality.value is not None
            more = result["contradictory_labels"].value or 0.0
            assert (
                raf.value
                <= factuality.value + more * result["contradictory_labels"].n_units / raf.n_units + 1e-12
            )
    if result["raf"].value is not None and result["factuality"].value is not None:
        gap = result["factuality"].value - result["raf"].value
        assert result["over_summarisation_gap"].value == pytest.approx(gap)
