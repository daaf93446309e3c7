"""RAGAS's and RAGChecker's measures, worked out by hand."""

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.papers import rag
from tests.scores.helpers import numbers, points, table

E, N, C = "entailment", "neutral", "contradiction"


def answers(*ids: str, **columns: list[Any]) -> pd.DataFrame:
    """Answers that have a reference and two passages each, unless said otherwise."""
    result = table("unit_id question_id", *((a, f"q-{a}") for a in ids))
    return result.assign(
        **{"answered": True, "has_reference": True, "n_contexts": 2, "n_references": 0, **columns}
    )


def claims(*rows: tuple[Any, ...]) -> pd.DataFrame:
    result = table("answer_id supported correct source", *rows)
    return result.assign(unit_id=range(len(result)))


def references(*rows: tuple[Any, ...]) -> pd.DataFrame:
    result = table("answer_id stated retrieved", *rows)
    return result.assign(unit_id=range(len(result)))


def contexts(*rows: tuple[Any, ...]) -> pd.DataFrame:
    result = table("answer_id relevant", *rows)
    return result.assign(unit_id=range(len(result)))


CHECKED = claims(
    ("a1", E, E, "relevant"),  # correct, from a relevant passage
    ("a1", E, N, "relevant"),  # wrong, from a relevant passage
    ("a1", E, C, "irrelevant"),  # wrong, from an irrelevant one alone
    ("a1", N, C, "none"),  # hallucination
    ("a1", N, E, "none"),  # self-knowledge
    ("a2", E, E, "relevant"),
)


def test_claims_of_answers() -> None:
    result = numbers(rag.score_claims(answers("a1", "a2"), CHECKED))
    # a1 has five claims, a2 one, which is correct and from a relevant passage.
    assert result == pytest.approx(
        {
            "faithfulness": (3 / 5 + 1) / 2,
            "claim_precision": (2 / 5 + 1) / 2,
            "noise_sensitivity_relevant": (1 / 5 + 0) / 2,
            "noise_sensitivity_irrelevant": (1 / 5 + 0) / 2,
            "hallucination": (1 / 5 + 0) / 2,
            "self_knowledge": (1 / 5 + 0) / 2,
        }
    )


def test_a_claim_that_no_single_passage_entails_is_not_noise() -> None:
    # Both passages together entail the wrong claim, and neither does alone: no irrelevant passage entails it.
    table_ = claims(("a1", E, N, "none"), ("a1", E, N, "irrelevant"))
    result = numbers(rag.score_claims(answers("a1"), table_))
    assert (result["noise_sensitivity_irrelevant"], result["noise_sensitivity_relevant"]) == (1 / 2, 0)
    assert result["hallucination"] == 0


def test_a_measure_needs_only_its_own_labels() -> None:
    table_ = CHECKED.copy()
    table_.loc[0, "source"] = None
    table_.loc[5, "correct"] = None
    result = points(rag.score_claims(answers("a1", "a2"), table_))
    assert result["faithfulness"].value == pytest.approx(0.8)
    assert (result["claim_precision"].value, result["claim_precision"].n_units) == (0.4, 1)
    # a1 lacks a source, a2 whether its claim is correct.
    assert result["noise_sensitivity_relevant"].value is None
    assert str(result["noise_sensitivity_relevant"].reason).endswith("2 not judged")


def test_answers_without_claims_passages_or_a_reference() -> None:
    who = answers(
        "none", "bare", "open", n_claims=[0, 1, 1], n_contexts=[2, 0, 2], has_reference=[True, True, False]
    )
    table_ = claims(("bare", None, E, None), ("open", E, None, None))
    scores = {score.measure: score for score in rag.score_claims(who, table_)}
    assert scores["faithfulness"].missing == {"no claim or no passage": 2}
    assert scores["faithfulness"].measure_score(interval=None).value == 1.0
    assert scores["claim_precision"].missing == {"no claim or no reference answer": 2}
    assert scores["claim_precision"].measure_score(interval=None).value == 1.0
    assert scores["hallucination"].missing == {"no claim, no passage or no reference answer": 3}


def test_missing_and_empty_answers_never_help() -> None:
    who = answers(
        "a1", "a2", "gone", answered=[True, True, False], n_contexts=[2, 2, None], n_references=[1, 1, 1]
    )
    stated = references(("a1", "support", E), ("a2", "support", E))
    listed = contexts(("a1", "supported"), ("a2", "supported"))
    every = [
        *rag.score_claims(who, CHECKED),
        *rag.score_references(who, stated),
        *rag.score_contexts(who.assign(n_contexts=[1, 1, None]), listed),
    ]
    result = points(every)
    before = numbers(rag.score_claims(answers("a1", "a2"), CHECKED))
    # Where more is better it counts 0, elsewhere not at all: (.8 x 2 + 0) / 3, and 1/10 as without it.
    assert result["faithfulness"].value == pytest.approx(1.6 / 3)
    assert result["claim_precision"].value == pytest.approx(1.4 / 3)
    for name in before.keys() - {"faithfulness", "claim_precision"}:
        assert (result[name].value, result[name].n_units) == (before[name], 2)
    for name in result.keys() - before.keys():
        assert result[name].value == pytest.approx(2 / 3)


def test_reference_claims() -> None:
    who = answers("a1", "a2", "a3", n_references=[4, 1, 0])
    table_ = references(
        ("a1", "support", E),
        ("a1", "not_support", E),
        ("a1", "support", N),
        ("a1", "partial_support", C),  # a part of a claim does not entail it
        ("a2", "support", N),
    )
    result = points(rag.score_references(who, table_))
    assert result["claim_recall"].value == (2 / 4 + 1) / 2
    assert result["context_recall"].value == (2 / 4 + 0) / 2
    # Of a1's two retrieved claims one is in the answer; nothing is retrieved for a2.
    assert (result["context_utilisation"].value, result["context_utilisation"].n_units) == (1 / 2, 1)
    without = points(rag.score_references(who[2:], table_[:0]))
    assert str(without["claim_recall"].reason).endswith("1 no reference claim")
    no_passage = points(rag.score_references(answers("a2", n_references=[1], n_contexts=[0]), table_[4:]))
    assert no_passage["claim_recall"].value == 1
    assert no_passage["context_recall"].value is None


def test_one_label_of_a_reference_claim_is_missing() -> None:
    table_ = references(("a1", "support", E), ("a1", None, E))
    result = numbers(rag.score_references(answers("a1", n_references=[2]), table_))
    assert result == {"claim_recall": None, "context_recall": 1.0, "context_utilisation": None}


def test_f1() -> None:
    who = answers("a1", "a2", n_references=[1, 1])
    precision = rag.score_claims(who, CHECKED)[1]
    recall = rag.score_references(who, references(("a1", "support", E), ("a2", "not_support", E)))[0]
    # a1: 2 x .4 x 1 / 1.4; a2: precision 1, recall 0.
    assert numbers([rag.claim_f1(precision, recall)])["claim_f1"] == pytest.approx((0.8 / 1.4 + 0) / 2)


def test_contexts() -> None:
    who = answers("a1", "a2", "a3", n_contexts=[4, 2, 0])
    R, I = "supported", "not_supported"  # noqa: E741
    table_ = contexts(("a1", I), ("a1", R), ("a1", I), ("a1", R), ("a2", I), ("a2", I))
    result = points(rag.score_contexts(who, table_))
    # a1: two of four; precisions at the ranks of the relevant ones: 1/2 and 2/4. a2: none is relevant. a3: no passage.
    assert result["context_precision"].value == (2 / 4 + 0) / 2
    assert result["context_precision_ranked"].value == ((1 / 2 + 2 / 4) / 2 + 0) / 2
    assert result["context_precision"].n_units == 2
    unknown = points(rag.score_contexts(who[:1].assign(n_contexts=2), contexts(("a1", R), ("a1", None))))
    assert unknown["context_precision_ranked"].value is None


def test_answer_relevancy_has_no_value_and_a_reason() -> None:
    result = rag.answer_relevancy(answers("a1")).measure_score(interval=None)
    assert result.value is None and "embedding model" in str(result.reason)


LABEL = st.tuples(
    st.integers(0, 2),
    st.sampled_from([E, N, C]),
    st.sampled_from([E, N, C]),
    st.sampled_from(list(rag.SOURCES["relevant"])),
)


@settings(max_examples=25)
@given(st.lists(LABEL, min_size=1, max_size=12))
def test_parts_add_up(rows: list[tuple[int, str, str, str]]) -> None:
    who = answers("a0", "a1", "a2")
    result: Any = numbers(rag.score_claims(who, claims(*((f"a{a}", *rest) for a, *rest in rows))))
    assert result["faithfulness"] + result["hallucination"] + result["self_knowledge"] == pytest.approx(1)
    wrong = (
        result["noise_sensitivity_relevant"]
        + result["noise_sensitivity_irrelevant"]
        + result["hallucination"]
    )
    # The rest are wrong claims that the passages entail together, and none of them alone.
    together = [
        sum(
            a == n and supported == E and correct != E and source == "none"
            for n, supported, correct, source in rows
        )
        / sum(a == n for n, *_ in rows)
        for a in {n for n, *_ in rows}
    ]
    rest = sum(together) / len(together)
    assert result["claim_precision"] + wrong + rest == pytest.approx(1)
