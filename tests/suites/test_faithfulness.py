"""judge score faithfulness: claims and citations of real answers, derived by hand."""

import json
import math
from pathlib import Path

import pytest

from tests.suites.helpers import Judge, answers, commands, give, import_garage, score

A1, A2, A3 = ("garage:g1@m@full", "garage:g2@m@full", "garage:g3@m@full")


@pytest.fixture(autouse=True)
def study(judge: Judge, tmp_path: Path) -> None:
    import_garage(judge, tmp_path)


def test_claims_step_by_step(judge: Judge) -> None:
    part = ("faithfulness", "--part", "claims")
    [first] = commands(judge, *part, "-m", "m/m")
    assert first.startswith("judge run claim_decomposition -m m/m ")
    lists = {A1: json.dumps(["one", "two"]), A2: "[]", A3: "unparsed"}
    run = give("claim_decomposition", lists)
    assert commands(judge, *part) == [f"judge answers claims {run}"]
    judge("answers", "claims", run)
    [second] = commands(judge, *part)
    assert second.startswith("judge run claim_support -m m ")
    give("claim_support", {f"{A1}#c0": "entailment", f"{A1}#c1": "neutral"})
    result = score(judge, *part)
    # One of two claims of g1 is entailed; g2 makes none; g3's could not be listed.
    ragas = result["ragas_faithfulness"]
    assert (ragas["value"], ragas["n_units"]) == (0.5, 1)
    assert sum(ragas["missing"].values()) == 2
    # FActScore is of answers that do not decline, and nothing says which do.
    for name in ("factscore", "factscore_unpenalised", "respond_ratio", "facts_per_answer"):
        assert result.value(name) is None
        assert "abstention not judged" in result[name]["reason"]
    give("deflection", {A1: "attempted", A2: "attempted", A3: "unparsed"})
    result = score(judge, *part, "--part", "abstention")
    # g1 has 2 facts, fewer than 10: penalty exp(1 - 10 / 2). g2 responds without any; nothing is known of g3.
    assert result.value("factscore") == pytest.approx(0.5 * math.exp(-4))
    assert (result.value("respond_ratio"), result["respond_ratio"]["n_units"]) == (1.0, 2)
    # (2 + 0) / 2
    assert result.value("facts_per_answer") == 1.0
    assert result.value("factscore_unpenalised") == 0.5


def test_abstentions_are_no_part_of_factscore(judge: Judge) -> None:
    run = give("claim_decomposition", {a: json.dumps(["one"]) for a in (A1, A2, A3)})
    judge("answers", "claims", run)
    give("claim_support", {f"{A1}#c0": "entailment", f"{A2}#c0": "contradiction", f"{A3}#c0": "neutral"})
    give("deflection", {A1: "attempted", A2: "attempted", A3: "missing"})
    result = score(judge, "faithfulness", "--part", "claims", "--part", "abstention")
    # g1 and g2 respond: one of their two claims is entailed. RAGAS takes all three.
    assert (result.value("respond_ratio"), result.value("factscore_unpenalised")) == pytest.approx(
        (2 / 3, 0.5)
    )
    assert result.value("ragas_faithfulness") == pytest.approx(1 / 3)


def test_citations_by_hand(judge: Judge) -> None:
    # g1: two sentences with one citation each; g2: one; g3: a sentence without any.
    give("citation_support", {f"{A1}#s0": "full", f"{A1}#s1": "partial", f"{A2}#s0": "full"})
    each = {f"{A1}#s0/cite_1": "full", f"{A1}#s1/cite_2": "partial", f"{A2}#s0/cite_2": "full"}
    give("citation_each", each)
    result = score(judge, "faithfulness", "--part", "alce", "--part", "trec")
    # Recall: g1 1/2, g2 1, g3 0 (nothing cited). Precision: g1 1/2, g2 1, g3 has no citation.
    assert result.value("alce_citation_recall") == pytest.approx(0.5)
    assert (result.value("alce_citation_precision"), result["alce_citation_precision"]["n_units"]) == (
        0.75,
        2,
    )
    # TREC, by answer: g1 (1 + 0.5) / 2, g2 1, g3 has no citation; recall (0.75 + 1 + 0) / 3.
    assert result.value("trec_support_precision") == pytest.approx(1.75 / 2)
    assert result.value("trec_support_recall") == pytest.approx(1.75 / 3)


def test_a_redundant_citation_is_not_precise(judge: Judge, tmp_path: Path) -> None:
    answers(judge, tmp_path, [("g1", "n", "full", "Alpha holds [cite_1][cite_2].")])
    unit = "garage:g1@n@full#s0"
    give("citation_support", {unit: "full"})
    give("citation_each", {f"{unit}/cite_1": "full", f"{unit}/cite_2": "none"})
    give("citation_rest", {f"{unit}/cite_1": "none", f"{unit}/cite_2": "full"})
    result = score(judge, "faithfulness", "--system", "n", "--part", "alce")
    # cite_1 is needed; cite_2 fails alone while the rest still entails: redundant.
    assert result.value("alce_citation_precision") == 0.5
    # n has no answer to g2 and g3: nothing of theirs is recalled, 1 of 3.
    assert result.value("alce_citation_recall") == pytest.approx(1 / 3)
