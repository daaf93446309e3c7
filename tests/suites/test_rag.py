"""judge score rag: a study of two systems worked out by hand, step by step and with people's corrections."""

import json
from pathlib import Path

import pytest

from tests.suites.helpers import Judge, commands, give, items, outputs, people, score

E, N, C = "entailment", "neutral", "contradiction"
A = "d:bridge@s@default"


@pytest.fixture(autouse=True)
def study(judge: Judge, tmp_path: Path) -> None:
    questions = [
        {
            "id": "bridge",
            "question": "Who built the bridge, and when?",
            "reference_answers": ["Ann Lee built it in 1900."],
            "passages": [
                {"id": "p1", "text": "Ann Lee built it."},
                {"id": "p2", "text": "Bob Ray likes tea."},
            ],
        },
        {
            "id": "tower",
            "question": "How high is the tower?",
            "reference_answers": ["It is 90 m high."],
            "passages": [{"id": "p1", "text": "It is 90 m high."}],
        },
        {"id": "open", "question": "Why?", "passages": [{"id": "p1", "text": "Because."}]},
    ]
    items(judge, tmp_path, "d", questions)
    rows = [
        {"id": "bridge", "system": "s", "text": "Ann built it. Bob likes tea.", "context": ["p2", "p1"]},
        {"id": "tower", "system": "s", "text": " ", "context": ["p1"]},
        {"id": "open", "system": "s", "text": "Because.", "context": []},
    ]
    outputs(judge, tmp_path, rows)
    nuggets = tmp_path / "n.csv"
    nuggets.write_text(
        "id,nugget,importance\nbridge,Ann Lee built it,vital\nbridge,It was built in 1900,okay\ntower,90 m,vital\n"
    )
    judge("nuggets", "import", nuggets)


def decomposed(judge: Judge) -> None:
    lists = {
        A: json.dumps(["Ann built the bridge", "Bob likes tea"]),
        "d:open@s@default": json.dumps(["Because"]),
    }
    judge("answers", "claims", give("claim_decomposition", lists))


def labelled(judge: Judge) -> None:
    decomposed(judge)
    first, second = f"{A}#c0", f"{A}#c1"
    give("claim_support", {first: E, second: E})
    give("claim_correct", {first: E, second: N})
    give("claim_source", {first: "relevant", second: "irrelevant"})
    give("nugget_assignment", {f"{A}#n0": "support", f"{A}#n1": "not_support"})
    give("nugget_support", {f"{A}#n0": E, f"{A}#n1": N})
    give(
        "mirage_support",
        {"d:bridge/p1": "supported", "d:bridge/p2": "not_supported", "d:tower/p1": "supported"},
    )


def test_step_by_step(judge: Judge) -> None:
    steps = commands(judge, "ragas", "-m", "m/m")
    assert [line.split()[2] for line in steps] == [
        "claim_decomposition",
        "nugget_assignment",
        "nugget_support",
        "mirage_support",
    ]
    decomposed(judge)
    [support, correct] = commands(
        judge, "rag", "--part", "faithfulness", "--part", "correctness", "-m", "m/m"
    )[:2]
    assert (support.split()[2], correct.split()[2]) == ("claim_support", "claim_correct")
    judge("suite", "ragchecker", "-m", "scripted/hash")
    assert score(judge, "rag", "-m", "scripted/hash").value("faithfulness") is not None


def test_a_system_is_found_whatever_its_name(judge: Judge, tmp_path: Path) -> None:
    # Its name is text, although it looks like a part of the query for the passages that it was given.
    row = {"id": "tower", "system": "s AND answer_condition", "text": "90 m.", "context": ["p1"]}
    outputs(judge, tmp_path, [row])
    steps = commands(judge, "rag", "--part", "retrieval", "--system", row["system"], "-m", "m/m")
    assert any("mirage_support" in line for line in steps)


def test_by_hand(judge: Judge) -> None:
    labelled(judge)
    result = score(judge, "rag")
    values = {name: (result.value(name), result[name]["n_units"]) for name in result.names}
    # bridge has two claims; tower's answer is empty: 0 where more is better; open has no passage, reference or nugget.
    assert values == {
        "faithfulness": ((2 / 2 + 0) / 2, 2),
        "context_precision": ((1 / 2 + 0) / 2, 2),
        "context_precision_ranked": ((1 / 2 + 0) / 2, 2),  # the relevant passage came second
        "context_recall": ((1 / 2 + 0) / 2, 2),
        "claim_precision": ((1 / 2 + 0) / 2, 2),
        "claim_recall": ((1 / 2 + 0) / 2, 2),
        "claim_f1": ((1 / 2 + 0) / 2, 2),
        "context_utilisation": ((1 / 1 + 0) / 2, 2),
        "noise_sensitivity_relevant": (0.0, 1),
        "noise_sensitivity_irrelevant": (1 / 2, 1),
        "hallucination": (0.0, 1),
        "self_knowledge": (0.0, 1),
        "answer_relevancy": (None, 0),
    }
    recall = result["context_recall"]
    assert recall["known_as"] == "RAGAS context recall; RAGChecker claim recall"
    assert "Context Recall" in recall["source"] and "2408.08067" in recall["source"]
    assert recall["missing"] == {"no reference claim or no passage": 1}
    assert "embedding model" in result["answer_relevancy"]["reason"]
    out = judge("score", "ragchecker", "--interval", "none").out
    assert "known as" in out and "RAGChecker F1" in out
    # The faithfulness of this score and that of `judge score faithfulness` are one number.
    claims = score(judge, "faithfulness", "--part", "claims", "--partial")
    assert claims.value("ragas_faithfulness") == result.value("faithfulness")


def test_boards_name_the_measures_of_others_and_why_one_is_missing(judge: Judge, tmp_path: Path) -> None:
    labelled(judge)
    outputs(judge, tmp_path, [{"id": "bridge", "system": "t", "text": " ", "context": ["p1"]}])
    words = ("score", "rag", "--system", "s", "--system", "t", "--partial", "--interval", "none")
    texts = [judge(*words).out]
    for name in ("b.md", "b.tex", "b.html"):
        judge(*words, "-o", name)
        texts.append((tmp_path / name).read_text("utf-8"))
    for text in texts:
        assert "RAGChecker claim recall" in text and "2408.08067" in text
        if "tabular" not in text:
            assert "embedding model" in text


def test_a_missing_answer_is_a_failure(judge: Judge, tmp_path: Path) -> None:
    labelled(judge)
    rows = [{"id": "bridge", "system": "t", "text": "Ann.", "context": ["p1"], "claims": ["Ann built it"]}]
    outputs(judge, tmp_path, rows)
    unit = "d:bridge@t@default"
    give("claim_support", {f"{unit}#c0": E})
    give("claim_correct", {f"{unit}#c0": E})
    give("claim_source", {f"{unit}#c0": "relevant"})
    give("nugget_assignment", {f"{unit}#n0": "support", f"{unit}#n1": "support"})
    give("nugget_support", {f"{unit}#n0": E, f"{unit}#n1": N})
    result = score(judge, "rag", "--system", "t")
    # Three items, one answer. `open` has no reference: no system has a claim precision or a recall there.
    assert result.value("faithfulness") == pytest.approx(1 / 3)
    assert (result.value("claim_precision"), result.value("claim_recall")) == (1 / 2, 1 / 2)
    assert result.value("context_precision") == 1 / 2


def test_corrected_by_people(judge: Judge) -> None:
    labelled(judge)
    people("claim_support", {"ann": {f"{A}#c0": E, f"{A}#c1": N}})
    people("nugget_support", {"ann": {f"{A}#n0": E, f"{A}#n1": E}})
    parts = ("--part", "faithfulness", "--part", "retrieval")
    result = score(judge, "rag", *parts, "--reference", "ann")
    rows = result.corrected
    # One answer is labelled: ann entails one of its two claims, and finds both reference claims in the passages.
    assert rows["faithfulness"]["human_only"]["value"] == (1 / 2 + 0) / 2
    assert rows["context_recall"]["human_only"]["value"] == (2 / 2 + 0) / 2


def test_passages_of_other_questions_have_no_label(judge: Judge, tmp_path: Path) -> None:
    labelled(judge)
    rows = [{"id": "tower", "system": "t", "text": "90 m.", "context": ["p1", "d:bridge/p1"]}]
    outputs(judge, tmp_path, rows)
    result = score(judge, "rag", "--system", "t", "--part", "retrieval", "--partial")
    assert result["context_precision"]["missing"]["not judged"] == 1


def test_an_empty_list_of_claims_says_that_the_answer_makes_none(judge: Judge, tmp_path: Path) -> None:
    rows = [
        {"id": "bridge", "system": "t", "text": "Ann.", "context": ["p1"], "claims": ["Ann built it"]},
        {"id": "tower", "system": "t", "text": "I do not know.", "context": ["p1"], "claims": []},
    ]
    outputs(judge, tmp_path, rows)
    words = ("--system", "t", "--part", "faithfulness", "-m", "m/m")
    [step] = commands(judge, "rag", *words)
    assert step.split()[2] == "claim_support"
    give("claim_support", {"d:bridge@t@default#c0": E}, model="m/m")
    result = score(judge, "rag", *words)
    # `open` has no answer, and that is a failure. The answer to `tower` makes no claim.
    assert result["faithfulness"]["missing"] == {"no claim or no passage": 1}
    assert result.value("faithfulness") == 1 / 2
    # An answer without the key is still to be decomposed.
    outputs(judge, tmp_path, [{"id": "bridge", "system": "u", "text": "Ann.", "context": ["p1"]}])
    [step] = commands(judge, "rag", "--system", "u", "--part", "faithfulness", "-m", "m/m")
    assert step.split()[2] == "claim_decomposition"


def test_an_empty_list_of_reference_answers_is_no_reference(judge: Judge, tmp_path: Path) -> None:
    items(judge, tmp_path, "e", [{"id": "q", "question": "?", "reference_answers": [], "passages": ["So."]}])
    outputs(judge, tmp_path, [{"id": "e:q", "system": "s", "text": "So.", "claims": ["So."]}])
    # Nothing decides whether the claim is correct, so no judge is asked.
    result = score(judge, "rag", "--dataset", "e", "--part", "correctness", "-m", "m/m")
    assert result["claim_precision"]["missing"] == {"no claim or no reference answer": 1}
