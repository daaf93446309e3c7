"""RAGAS, FActScore, ALCE and TREC support."""

from math import exp
from typing import Any

import pytest

from judge.errors import BadInput
from judge.papers import faithfulness
from judge.scores import citation_support
from tests.scores.helpers import numbers, points, table

ANSWERS = table("unit_id question_id", ("a1", "q1"), ("a2", "q2"), ("a3", "q3"))


def claims(**labels: list[str | None]) -> Any:
    return table(
        "unit_id answer_id label",
        *((f"{a}#c{i}", a, label) for a, result in labels.items() for i, label in enumerate(result)),
    )


def test_ragas_is_the_mean_of_the_answers_shares() -> None:
    # 1/2 and 3/3; a3 has no claim.
    result = faithfulness.ragas(ANSWERS, claims(a1=["supported", "contradiction"], a2=["Entailment"] * 3))
    measure = result.measure_score(interval=None)
    assert (measure.value, measure.n_units) == (0.75, 2)
    assert result.missing == {"no claim": 1}


def test_claims_that_were_not_labelled_or_not_judged() -> None:
    answers = ANSWERS.assign(n_claims=[2, 2, 0])
    result = faithfulness.ragas(answers, claims(a1=["supported", None], a2=["supported"]))
    assert result.missing == {"no claim": 1, "not judged": 2}
    assert result.measure_score(interval=None).value is None


def test_factscore() -> None:
    answers = ANSWERS.assign(abstained=[False, False, True])
    result = numbers(
        faithfulness.factscore(
            answers, claims(a1=["supported"] * 10 + ["neutral"] * 10, a2=["supported"] * 5)
        )
    )
    # a1: N = 20 > 10, 1/2. a2: N = 5, 1 x exp(1 - 10/5). a3 abstains.
    assert result == {
        "factscore": pytest.approx((0.5 + exp(-1)) / 2),
        "factscore_unpenalised": 0.75,
        "respond_ratio": pytest.approx(2 / 3),
        "facts_per_answer": 12.5,
    }
    ten = claims(a1=["supported"] * 10)
    # N = 10 is not above 10, and exp(0) = 1 all the same.
    assert numbers(faithfulness.factscore(ANSWERS[:1], ten))["factscore"] == 1.0


def test_all_answers_abstain() -> None:
    result = points(faithfulness.factscore(ANSWERS.assign(abstained=True), claims()))
    assert result["factscore"].reason == "there are no units"
    assert result["respond_ratio"].value == 0.0


def test_unknown_claim_labels() -> None:
    with pytest.raises(BadInput, match="unknown label 'Perhaps' for claim support"):
        faithfulness.ragas(ANSWERS, claims(a1=["Perhaps"]))


SENTENCES = table(
    "unit_id answer_id entailed", ("s1", "a1", 1), ("s2", "a1", None), ("s3", "a1", 0), ("s4", "a2", 1)
)


def test_alce() -> None:
    citations = table(
        "unit_id sentence_id alone rest",
        ("c1", "s1", 1, 1),  # entails alone: precise
        ("c2", "s1", 0, 1),  # fails alone while the rest still entail: redundant
        ("c3", "s3", 1, None),  # its sentence is not recalled
        ("c4", "s4", None, None),  # the only one of a recalled sentence
    )
    # a1: s1 recalled, s2 cites nothing (its label is not read), s3 not: 1/3; precise 1 of 3. a2: 1, 1 of 1.
    # a3 has no sentence.
    result = numbers(citation_support.alce(ANSWERS, SENTENCES, citations))
    assert result["alce_citation_recall"] == result["alce_citation_precision"] == pytest.approx(2 / 3)
    assert result["alce_citation_f1"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("alone", "rest", "precise"),
    [
        (1, 1, 1.0),
        (1, 0, 1.0),
        (0, 0, 1.0),
        (0, 1, 0.0),
        (1, None, 1.0),
        (None, 0, 1.0),
        (None, 1, None),
        (0, None, None),
    ],
)
def test_redundancy(alone: int | None, rest: int | None, precise: float | None) -> None:
    sentences = table("unit_id answer_id entailed", ("s1", "a1", 1))
    citations = table("unit_id sentence_id alone rest", ("c1", "s1", alone, rest), ("c2", "s1", 1, 1))
    result = numbers(citation_support.alce(ANSWERS[:1], sentences, citations))["alce_citation_precision"]
    assert result == (None if precise is None else (precise + 1) / 2)


def test_citations_of_a_sentence_that_is_not_recalled_need_no_label() -> None:
    sentences = table("unit_id answer_id entailed", ("s1", "a1", 0))
    citations = table("unit_id sentence_id alone rest", ("c1", "s1", None, None), ("c2", "s1", None, None))
    result = numbers(citation_support.alce(ANSWERS[:1], sentences, citations))
    assert result["alce_citation_precision"] == result["alce_citation_recall"] == 0.0


def test_an_answer_without_citations() -> None:
    sentences = table("unit_id answer_id entailed", ("s1", "a1", None))
    none = table("unit_id sentence_id alone rest")
    result = points(citation_support.alce(ANSWERS[:1], sentences, none))
    assert result["alce_citation_recall"].value == 0.0
    assert result["alce_citation_precision"].value is None


def test_trec_support() -> None:
    citations = table(
        "unit_id sentence_id label position",
        ("c1", "s1", "none", 1),
        ("c2", "s1", "full", 2),
        ("c3", "s3", "partial", 1),
    )
    # a1 has s1 (best 1), s2 (0) and s3 (.5), a2 has s4 (0). Precision: a1 1.5/3, a2 has no citation. Recall: (.5 + 0)/2.
    best = numbers(citation_support.trec(ANSWERS, SENTENCES, citations))
    assert best == {"trec_support_precision": 0.5, "trec_support_recall": 0.25}
    # First citations only: none and partial, .5/2; recall: (.5/3 + 0)/2.
    first = numbers(citation_support.trec(ANSWERS, SENTENCES, citations, several="first"))
    assert first == {"trec_support_precision": 0.25, "trec_support_recall": pytest.approx(1 / 12)}
    rule: Any = "mean"
    with pytest.raises(BadInput, match="unknown rule"):
        citation_support.trec(ANSWERS, SENTENCES, citations, several=rule)


def test_trec_without_citations() -> None:
    result = points(citation_support.trec(ANSWERS, SENTENCES, table("unit_id sentence_id label")))
    assert (result["trec_support_precision"].value, result["trec_support_recall"].value) == (None, 0.0)
    assert result["trec_support_precision"].reason
