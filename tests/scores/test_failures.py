"""Failures count: empty, missing and refused answers, invented citations, rows without relevant passages, a judge's
refusals. Expected numbers follow shared definitions and are derived beside each assert."""

from collections.abc import Callable

import pandas as pd
import pytest

from judge.errors import BadInput
from judge.papers import confirmation, faithfulness, garage, mirage, nuggets, rag, raguard, urag
from judge.scores import attribution, citation_support
from judge.scores.score import Score, Units
from tests.scores.helpers import numbers, points, table


def test_raf_of_answers_that_rest_on_outdated_and_related_passages() -> None:
    # Three eligible answers, each of one supported sentence. a1 rests on an ANSWER passage; the questions of a2 (an
    # OUTDATED passage) and a3 (a RELATED one) have no relevant passage, so nothing is asked and uRAF = 0.
    answers = table(
        "unit_id answerable eligibility n_sentences n_relevant",
        ("a1", True, "No Issues", 1, 1),
        ("a2", True, "No Issues", 1, 0),
        ("a3", True, "No Issues", 1, 0),
    )
    full = table("unit_id answer_id label", *((f"a{i}#s0", f"a{i}", "supported") for i in (1, 2, 3)))
    relevant = table(
        "unit_id answer_id label status",
        ("a1#s0", "a1", "supported", "ok"),
        ("a2#s0", "a2", None, "not judged"),
        ("a3#s0", "a3", None, "not judged"),
    )
    result = points(garage.factuality(answers, full, relevant))
    # Factuality 3/3; RAF 1/3 on the same three rows; the gap 1 - 1/3.
    assert (result["factuality"].value, result["factuality"].n_units) == (1.0, 3)
    assert (result["raf"].value, result["raf"].n_units) == (pytest.approx(1 / 3), 3)
    assert result["over_summarisation_gap"].value == pytest.approx(2 / 3)
    # A sentence that needs no support needs no relevant passage: a3 holds now, 2/3.
    needless = full.assign(label=["supported", "supported", "no_rad"])
    assert points(garage.factuality(answers, needless, relevant))["raf"].value == pytest.approx(2 / 3)
    # Without a label in `full` nothing is known of a3: both leave it out.
    unknown = points(
        garage.factuality(answers, full.assign(label=["supported", "supported", None]), relevant)
    )
    assert (unknown["raf"].value, unknown["raf"].n_units, unknown["factuality"].n_units) == (0.5, 2, 2)


def test_factuality_and_raf_rest_on_the_same_rows() -> None:
    answers = table("unit_id answerable eligibility", *((f"a{i}", True, "No Issues") for i in (1, 2, 3)))
    full = table(
        "unit_id answer_id label",
        ("s1", "a1", "supported"),
        ("s2", "a2", "unsupported"),
        ("s3", "a3", "unsupported"),
    )
    relevant = table(
        "unit_id answer_id label status",
        ("s1", "a1", "supported", "ok"),
        ("s2", "a2", None, "refused"),
        ("s3", "a3", "supported", "ok"),
    )
    result = points(garage.factuality(answers, full, relevant))
    # The judge refused a2 against the relevant passages, so neither measure has it: a1 holds in both. The judge
    # contradicts itself on a3, which counts by its own labels in each measure.
    assert (result["factuality"].value, result["factuality"].n_units) == (0.5, 2)
    assert (result["raf"].value, result["raf"].n_units) == (1.0, 2)
    assert result["raf"].coverage == pytest.approx(2 / 3)
    assert (result["contradictory_labels"].value, result["contradictory_labels"].n_units) == (0.5, 2)
    # Labels that are not complete yet do not take factuality with them.
    partly = points(garage.factuality(answers, full, relevant, paired=False))
    assert (partly["factuality"].value, partly["factuality"].n_units) == (pytest.approx(1 / 3), 3)


WHO = table("unit_id question_id", ("a1", "q1"), ("a2", "q2"))
LINES = table(
    "unit_id answer_id entailed invented",
    ("s1", "a1", 1, 0),
    ("s2", "a1", 1, 1),
    ("s3", "a2", None, 2),
)
MARKS = table(
    "unit_id sentence_id answer_id label alone rest status",
    ("c1", "s1", "a1", "full", 1, None, "ok"),
    ("c2", "s2", "a1", "full", 1, None, "ok"),
)


def test_judged_citations_that_do_not_exist() -> None:
    result = points(attribution.score_judged_citations(WHO, LINES, MARKS))
    # Five citations, two support: 2/5. Sentences: s1 and s2 have a citation that supports them, s3 has none: 2/3.
    assert result["judged_attribution_precision_micro"].value == pytest.approx(2 / 5)
    assert result["judged_attribution_precision_micro"].n_units == 5
    assert result["judged_attribution_recall_micro"].value == pytest.approx(2 / 3)
    # a1 2 of 3, a2 0 of 2.
    assert result["judged_attribution_precision_macro"].value == pytest.approx(1 / 3)
    assert result["judged_attribution_invented_share"].value == pytest.approx(3 / 5)


def test_alce_and_trec_with_citations_that_do_not_exist() -> None:
    result = numbers(citation_support.alce(WHO, LINES, MARKS))
    # s2 and s3 have an invented citation, so they are not recalled: a1 1/2, a2 0/1; the mean 1/4.
    assert result["alce_citation_recall"] == pytest.approx(1 / 4)
    # Precise is c1 alone: a1 1 of 3 citations, a2 0 of 2; the mean 1/6. F1 = 2 * 1/4 * 1/6 / (5/12) = 1/5.
    assert result["alce_citation_precision"] == pytest.approx(1 / 6)
    assert result["alce_citation_f1"] == pytest.approx(1 / 5)
    assert result["citation_invented_share"] == pytest.approx(3 / 5)
    marks = MARKS.assign(position=[1, 1])
    # By answer. Precision: a1 two full of three, a2 none of two: (2/3 + 0)/2. Recall: a1 both sentences, a2 none: 1/2.
    # First citations alone: a1 2 of 2, a2 0 of 1: 1/2.
    assert numbers(citation_support.trec(WHO, LINES, marks)) == {
        "trec_support_precision": pytest.approx(1 / 3),
        "trec_support_recall": pytest.approx(1 / 2),
    }
    first = numbers(citation_support.trec(WHO, LINES, marks, several="first"))
    assert first["trec_support_precision"] == pytest.approx(1 / 2)


def test_trec_counts_answers_that_were_not_given() -> None:
    """Finding 7: a1 answers with one fully supported sentence, three others answer nothing: 1/4 in both, not 1."""
    who = table(
        "unit_id question_id answered", ("a1", "q1", True), *((f"a{n}", f"q{n}", False) for n in (2, 3, 4))
    )
    lines = table("unit_id answer_id", ("s1", "a1"))
    marks = table("unit_id sentence_id label", ("c1", "s1", "full"))
    assert numbers(citation_support.trec(who, lines, marks)) == {
        "trec_support_precision": 0.25,
        "trec_support_recall": 0.25,
    }


def test_an_empty_answer_recalls_and_states_nothing() -> None:
    who = WHO.assign(answered=[True, False])
    result = numbers(citation_support.alce(who, LINES.iloc[:1], MARKS.iloc[:1]))
    # a1 1/1, a2 is empty: 0.
    assert (result["alce_citation_recall"], result["alce_citation_precision"]) == (0.5, 1.0)
    claims = table("unit_id answer_id label", ("c", "a1", "supported"))
    # RAGAS: 1 and 0. FActScore: a2 does not respond, and is apart.
    assert numbers([faithfulness.ragas(who, claims)])["ragas_faithfulness"] == 0.5
    message = points(faithfulness.factscore(who, claims))
    alone = message["factscore_unpenalised"]
    assert (alone.value, alone.n_units, message["respond_ratio"].value) == (1.0, 1, 0.5)


def test_a_judges_refusal_does_not_make_an_answer_invalid() -> None:
    pairs = table("pair_id original counter", *((f"p{i}", f"o{i}", f"c{i}") for i in range(4)))
    answers = table(
        "claim_id label valid status",
        ("o0", "Yes", True, "ok"),
        ("c0", "Yes", True, "ok"),
        ("o1", "Yes", True, "ok"),
        ("c1", None, True, "refused"),
        ("o2", "Yes", True, "ok"),
        ("c2", None, False, "not judged"),
        ("o3", None, True, "refused"),
        ("c3", None, False, "not judged"),
    )
    result = points(confirmation.answer_bias(pairs, answers))
    # p0 is biased. The judge refused c1: nothing is known of p1. c2 and c3 are empty answers: p2 and p3 are not valid,
    # whatever the judge says of o3.
    assert (result["cbr"].value, result["cbr"].n_units) == (1.0, 1)
    valid = result["valid_pairs"]
    assert (valid.value, valid.n_units, valid.coverage) == (pytest.approx(1 / 3), 3, 0.75)
    assert result["cbr"].notes == (
        "3 of 4 units have no value: 2 one of the answers is not valid, 1 refused",
    )


def test_a_missing_answer_is_wrong() -> None:
    answers = table(
        "unit_id item_id condition label gold status",
        ("z1", "c1", "none", "true", "true", "ok"),
        ("z2", "c2", "none", None, "true", "no answer"),
        ("z3", "c3", "none", "", "true", "ok"),
    )
    result = points(raguard.scores(answers))["accuracy_zero"]
    # One right; one missing and one empty answer.
    assert (result.value, result.n_units) == (pytest.approx(1 / 3), 3)
    questions = table(
        "unit_id base oracle mixed mixed_status",
        ("q1", 1, 1, 1, "ok"),
        ("q2", 0, 1, None, "refused"),
        ("q3", 0, 1, None, "no answer"),
        ("q4", 0, 1, None, "failed"),
    )
    cells = points(mirage.adaptability(questions))
    # q2 and q3 are wrong with noise (vulnerable); a call that failed is no answer: q4 is in no cell.
    assert (cells["noise_vulnerability"].value, cells["noise_vulnerability"].n_units) == (
        pytest.approx(2 / 3),
        3,
    )
    assert cells["context_acceptability"].value == pytest.approx(1 / 3)


def test_token_f1() -> None:
    # "the red fox" and "a red fox jumps": overlap 2, so 2 * 2 / (3 + 4); the alias "fox" gives 2 * 1 / (4 + 1).
    result = mirage.token_f1(["A red  Fox jumps", "fox fox", "", None], [["the red fox", "fox"]] * 4)
    # "fox fox" with "fox": one token overlaps: 2 / 3. Nothing said: 0.
    assert result[:3] == pytest.approx([4 / 7, 2 / 3, 0.0])
    assert pd.isna(result[3])
    table_ = table("unit_id correct f1 status", ("q1", 1, 0.5, "ok"), ("q2", None, None, "refused"))
    # A refused answer overlaps with nothing.
    assert numbers([mirage.score_alone(table_, "base")["token_f1"]]) == {"token_f1_base": 0.25}


def test_a_choice_that_was_not_made_is_wrong() -> None:
    nan = float("nan")
    who = Units.build(["c1", "c2", "t1", "t2", "t3"])
    logits = [[0, -9], [0, -9], [0, -9], [nan, nan], [nan, nan]]
    status = raguard.statuses(
        table("status", ("ok",), ("ok",), ("ok",), ("refused",), ("failed",)),
        pd.Series([True, True, True, False, False]).to_numpy(),
    )
    every = urag.Choices.build(who, "AB", logits, ["A"] * 5, status=status)
    half = pd.Series([True, True, False, False, False]).to_numpy()
    result = points(urag.scores(every.restrict(half), every.restrict(~half), alpha=0.5))
    # t1 right, t2 refused: 1/2; t3's call failed. Sets need probabilities: t1 alone.
    assert (result["accuracy"].value, result["accuracy"].n_units) == (0.5, 2)
    assert result["coverage_lac"].n_units == 1


# Adding a failing answer never raises a measure.

ONE = {
    "answers": table(
        "unit_id question_id answerable eligibility deflection answered n_sentences n_relevant cited reference_cited",
        ("a1", "q1", True, "No Issues", "attempted", True, 1, 1, ["p"], ["p"]),
        ("a2", "q2", False, "No Issues", "missing", True, 1, 1, ["p"], ["p"]),
        ("a3", "q3", True, "Minor Issue(s)", "missing", True, 1, 0, ["p"], ["p", "r"]),
    ).assign(has_reference=True, n_references=1, n_contexts=1, n_vital=1, n_okay=0),
    "sentences": table(
        "unit_id answer_id label entailed",
        ("s1", "a1", "supported", 1),
        ("s2", "a2", "supported", 1),
        ("s3", "a3", "no_rad", 1),
    ),
    "citations": table(
        "unit_id sentence_id label alone rest",
        ("c1", "s1", "full", 1, None),
        ("c2", "s2", "full", 1, None),
        ("c3", "s3", "full", 1, None),
    ),
    "nuggets": table(
        "unit_id answer_id importance label",
        ("n1", "a1", "vital", "support"),
        ("n2", "a2", "vital", "partial_support"),
        ("n3", "a3", "vital", "not_support"),
    ),
    "claims": table(
        "unit_id answer_id supported correct source",
        ("c1", "a1", "entailment", "entailment", "relevant"),
        ("c2", "a2", "entailment", "neutral", "irrelevant"),
        ("c3", "a3", "neutral", "contradiction", "none"),
    ),
    "references": table(
        "unit_id answer_id stated retrieved",
        ("r1", "a1", "support", "entailment"),
        ("r2", "a2", "not_support", "entailment"),
        ("r3", "a3", "support", "neutral"),
    ),
    "contexts": table(
        "unit_id answer_id relevant",
        ("p1", "a1", "supported"),
        ("p2", "a2", "not_supported"),
        ("p3", "a3", "supported"),
    ),
}
SCORES: dict[str, Callable[[pd.DataFrame], list[Score]]] = {
    "garage": lambda a: garage.factuality(a, ONE["sentences"], ONE["sentences"])[:5],
    "deflection": lambda a: garage.deflection(a),
    "attribution": lambda a: attribution.score_citations(a)[:6],
    "judged": lambda a: attribution.score_judged_citations(a, ONE["sentences"], ONE["citations"])[:6],
    "alce": lambda a: citation_support.alce(a, ONE["sentences"], ONE["citations"])[:3],
    "ragas": lambda a: [faithfulness.ragas(a, ONE["sentences"].replace("no_rad", "neutral"))],
    "trec": lambda a: citation_support.trec(a, ONE["sentences"], ONE["citations"]),
    "nuggets": lambda a: nuggets.trec(a, ONE["nuggets"]),
    "rag claims": lambda a: rag.score_claims(a, ONE["claims"]),
    "rag references": lambda a: rag.score_references(a, ONE["references"]),
    "rag contexts": lambda a: rag.score_contexts(a, ONE["contexts"]),
}


@pytest.mark.parametrize("answerable", [True, False])
@pytest.mark.parametrize("suite", SCORES)
def test_a_failing_answer_raises_no_measure(suite: str, answerable: bool) -> None:
    # Whatever label a judge may have given it.
    failing = table(
        " ".join(ONE["answers"].columns),
        ("a9", "q9", answerable, "No Issues", "missing", False, 0, 1, [], ["p"], True, 1, None, 1, 0),
    )
    before = numbers(SCORES[suite](ONE["answers"]))
    after = numbers(SCORES[suite](pd.concat([ONE["answers"], failing], ignore_index=True)))
    for name, value in before.items():
        worse = after[name]
        assert value is not None and worse is not None and worse <= value, name


@pytest.mark.parametrize(
    ("suite", "parts"),
    [
        ("garage", "sentences"),
        ("alce", "citations"),
        ("ragas", "sentences"),
        ("nuggets", "nuggets"),
        ("rag claims", "claims"),
        ("rag references", "references"),
        ("rag contexts", "contexts"),
    ],
)
def test_duplicate_rows_are_refused(suite: str, parts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = ONE["answers"].iloc[[0]]
    with pytest.raises(BadInput, match="two rows for unit_id 'a1'"):
        SCORES[suite](pd.concat([ONE["answers"], twice], ignore_index=True))
    first = ONE[parts].iloc[[0]]
    monkeypatch.setitem(ONE, parts, pd.concat([ONE[parts], first], ignore_index=True))
    with pytest.raises(BadInput, match=f"two rows for unit_id '{first['unit_id'].item()}'"):
        SCORES[suite](ONE["answers"])
