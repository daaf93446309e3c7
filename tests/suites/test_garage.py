"""judge score garage: labels of a real study to the paper's numbers, derived by hand beside them."""

import shlex
import sqlite3
from pathlib import Path

import pytest

from tests.suites.helpers import Judge, answers, commands, give, import_garage, items, score

A1, A2, A3 = ("garage:g1@m@full", "garage:g2@m@full", "garage:g3@m@full")


def label(**changed: dict[str, str]) -> None:
    """Every run that the score needs; `changed` replaces labels of a task."""
    runs: dict[str, dict[str, str]] = {
        "eligibility": {A1: "Minor Issue(s)", A2: "Major Issue(s)"},
        "grounding": {f"{A1}#s0": "supported", f"{A1}#s1": "no_rad", f"{A2}#s0": "supported"},
        "grounding_relevant": {f"{A1}#s0": "supported", f"{A1}#s1": "unsupported", f"{A2}#s0": "supported"},
        "deflection": {A1: "attempted", A2: "missing", A3: "missing"},
        "citation_each": {f"{A1}#s0/cite_1": "full", f"{A1}#s1/cite_2": "none", f"{A2}#s0/cite_2": "partial"},
    }
    for task, labels in (runs | changed).items():
        give(task, labels)


@pytest.fixture(autouse=True)
def study(judge: Judge, tmp_path: Path) -> None:
    import_garage(judge, tmp_path)


def test_every_measure_by_hand(judge: Judge) -> None:
    label()
    result = score(judge, "garage")
    assert (result.document["system"], result.document["condition"]) == ("m", "full")
    # Answerable are g1 and g2: g1 has a minor issue (eligible), g2 a major one.
    assert result.value("eligibility") == 0.5
    # All sentences of both are supported or need no support.
    assert result.value("unadjusted_factuality") == 1.0
    # Eligible and grounded: g1 only.
    assert result.value("factuality") == 0.5
    # Against relevant passages g1's second sentence is unsupported; g2 holds but is not eligible.
    assert result.value("unadjusted_raf") == 0.5
    assert result.value("raf") == 0.0
    # g3 is insufficient and declined; of g1 and g2 one declined.
    assert result.value("deflection_true_positive_rate") == 1.0
    assert result.value("deflection_false_positive_rate") == 0.5
    # Cited 1, 2 (g1) and 2 (g2), people cited 1 and 1: one hit of three citations, of two references.
    assert result.value("attribution_precision_micro") == pytest.approx(1 / 3)
    assert result.value("attribution_recall_micro") == pytest.approx(1 / 2)
    # Macro: precision (1/2 + 0) / 2, recall (1 + 0) / 2, F1 = 2 * .25 * .5 / .75.
    assert result.value("attribution_precision_macro") == pytest.approx(0.25)
    assert result.value("attribution_recall_macro") == pytest.approx(0.5)
    assert result.value("attribution_f1_macro") == pytest.approx(1 / 3)
    # Judged: g1's second sentence is no_rad and out, so full (1) and partial (0): 1 of 2 citations and sentences.
    assert result.value("judged_attribution_precision_micro") == 0.5
    assert result.value("judged_attribution_recall_micro") == 0.5
    message = "judged attribution leaves out 1 citations in sentences that need no citation (no_rad)"
    assert any(message in text for text in result.document["notes"])
    # All three citations of the answerable rows by label.
    assert [result.value(f"citation_{name}") for name in ("full", "partial", "none")] == [
        pytest.approx(1 / 3)
    ] * 3
    # Three sentences: two supported, one no_rad.
    assert result.value("sentence_supported") == pytest.approx(2 / 3)
    assert result.value("sentence_grounded") == 1.0
    assert (result["sentence_grounded"]["n_units"], result["sentence_grounded"]["n_clusters"]) == (3, 2)
    # The paper's GPT-4o numbers stand beside, as another judge's.
    printed = {(p["system"], p["measure"]): p for p in result.document["published"]}
    assert printed["GPT-4o", "factuality"]["value"] == 0.593
    assert printed["GPT-4o", "factuality"]["by"] == "judge GPT-4o"


def test_an_unparsed_reply_is_counted_and_facts_has_a_rule_for_it(judge: Judge) -> None:
    label(grounding={f"{A1}#s0": "supported", f"{A1}#s1": "unparsed", f"{A2}#s0": "supported"})
    result = score(judge, "garage")
    # g1 has a sentence without a verdict: no value; g2 is grounded and not eligible.
    assert result["factuality"]["missing"] == {"unparsed": 1}
    assert (result.value("factuality"), result["factuality"]["coverage"]) == (0.0, 0.5)
    assert result.value("unadjusted_factuality") == 1.0
    facts = score(judge, "garage", "--unparsed", "facts")
    # FACTS: without a verdict not grounded, so g1 is wrong and g2 grounded.
    assert (facts.value("unadjusted_factuality"), facts["factuality"]["coverage"]) == (0.5, 1.0)
    assert facts.document["readings"]["unparsed"] == "facts"


def test_related_passages_are_another_task(judge: Judge) -> None:
    label()
    [line] = commands(judge, "garage", "--relevant-set", "answer+related")
    assert line.startswith("judge run grounding_related -m m --where ")
    give("grounding_related", {f"{A1}#s0": "supported", f"{A1}#s1": "supported", f"{A2}#s0": "supported"})
    result = score(judge, "garage", "--relevant-set", "answer+related")
    # Both hold now; g1 is eligible.
    assert (result.value("unadjusted_raf"), result.value("raf")) == (1.0, 0.5)
    assert "relevant passages: answer+related" in result["raf"]["notes"]


def test_citations_against_the_passages_that_people_marked(judge: Judge) -> None:
    label()
    with sqlite3.connect("study.db") as conn:
        conn.execute("DELETE FROM answers WHERE system = 'human'")
    result = score(judge, "garage", "--part", "attribution")
    # evidence_cited is YES for the ANSWER passages, cite_1 of g1 and g2: the same as the human answers cite.
    assert result.value("attribution_recall_micro") == 0.5
    assert "attribution: citations are compared with those of evidence_cited" in result.document["notes"]
    assert result.names == [
        *(f"attribution_{m}_{a}" for a in ("micro", "macro") for m in ("precision", "recall", "f1")),
        "attribution_invented_share",
    ]


def test_strata_by_tag_and_by_relevance_density(judge: Judge) -> None:
    label()
    result = score(judge, "garage", "--by", "question_type", "--part", "eligibility")
    assert (result.value("eligibility", "fast"), result.value("eligibility", "slow")) == (1.0, 0.0)
    dense = score(judge, "garage", "--by", "density", "--part", "eligibility")
    # g1: one of three labelled passages answers (1/3: medium from 1/3 on); g2: one of one: high.
    assert (dense.value("eligibility", "medium"), dense.value("eligibility", "high")) == (1.0, 0.0)
    wrong = judge("score", "garage", "--by", "nothing", "--part", "eligibility", code=2)
    assert "available: density, insufficient" in wrong.err


def test_data_without_relevance_labels_have_no_raf(judge: Judge, tmp_path: Path) -> None:
    items(judge, tmp_path, "own", [{"id": "q", "question": "Why?", "passages": ["So."]}])
    answers(judge, tmp_path, [("own:q", "m", "full", "So it is.")])
    unit = "own:q@m@full"
    give("eligibility", {unit: "No Issues"})
    give("grounding", {f"{unit}#s0": "supported"})
    give("deflection", {unit: "attempted"})
    result = score(judge, "garage", "--dataset", "own")
    notes = result.document["notes"]
    assert "raf" not in result.names
    assert "no passage has a gold label 'relevance', so RAF is left out" in notes
    assert "there is no gold label 'insufficient', so all questions are treated as answerable" in notes
    assert result["deflection_true_positive_rate"]["reason"] == "there are no units"
    refused = judge("score", "garage", "--dataset", "own", "--part", "raf", code=1)
    assert "no passage in 'own' has a gold label 'relevance'" in refused.err


def test_relevant_by_the_marks_of_the_data_set(judge: Judge) -> None:
    label()
    # RAF is measured on the rows of factuality, so it needs the labels against all passages too.
    full, line = commands(
        judge, "garage", "--part", "relevant", "--relevant-set", "marked", "-m", "scripted/first"
    )
    assert full.startswith("judge run grounding -m") and "--relevant marked" in line
    judge(*shlex.split(full)[1:])
    judge(*shlex.split(line)[1:])
    result = score(judge, "garage", "--part", "relevant", "--relevant-set", "marked", "-m", "scripted/first")
    # The first label is `supported`: all three sentences of the answerable rows.
    assert (result.value("unadjusted_raf"), result["unadjusted_raf"]["n_units"]) == (1.0, 2)
    assert "relevant passages: marked" in result["unadjusted_raf"]["notes"]
    # The run with gold's passages is another one.
    assert score(judge, "garage", "--part", "relevant", "-m", "m").value("unadjusted_raf") == 0.5
    dense = score(
        judge, "garage", "--part", "eligibility", "--by", "density", "--relevant-set", "marked", "-m", "m"
    )
    # evidence_relevant: YES, YES, NO (2/3: high) and YES, YES (high).
    assert dense["eligibility"]["value"] == dense.value("eligibility", "high")


def test_relevant_by_a_judges_run(judge: Judge) -> None:
    label()
    rest = ("garage", "--part", "relevant", "--relevance", "judge", "-m", "scripted/first")
    full, first = commands(judge, *rest)
    judge(*shlex.split(full)[1:])
    assert first.startswith("judge run garage_relevance ")
    judge(*shlex.split(first)[1:])
    [second] = commands(judge, *rest)
    run = second.split("--relevant ")[1].split(":answer")[0]
    done = judge(*shlex.split(second)[1:], "--estimate")
    # The judge calls every passage ANSWER-THE-QUESTION, so g1's sentences are shown all three.
    assert all(f"Passage {n} of g1." in done.out for n in (1, 2, 3))
    judge(*shlex.split(second)[1:])
    assert score(judge, *rest).value("unadjusted_raf") == 1.0
    document = score(judge, *rest).document
    assert {r["task"][:-3] for r in document["runs"]} == {
        "grounding",
        "garage_relevance",
        "grounding_relevant",
    }
    assert run in {r["run"] for r in document["runs"]}


def test_what_relevant_cannot_be(judge: Judge) -> None:
    for task, text, message in (
        ("grounding", "marked", "grounding.v2 does not show relevant passages"),
        ("grounding_relevant", "all", "--relevant 'all'"),
        ("grounding_relevant", "zzz:answer", "no run is called 'zzz'"),
    ):
        assert message in judge("run", task, "-m", "scripted/first", "--relevant", text, code=2).err
