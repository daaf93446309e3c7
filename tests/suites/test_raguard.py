"""judge score raguard: settings, drops and retrieval off a real study, derived by hand."""

import shlex
from pathlib import Path

import pytest

from tests.formats import raguard
from tests.suites.helpers import Judge, answers, commands, give, items, ranking, score

# Claims 1 true, 2 false, 3 false; documents 1 supporting, 2 misleading, 3 irrelevant (of claim 1), 4 irrelevant,
# 5 supporting (2), 6 misleading (3). Documents 4 has a title only; all are units.
DOCUMENTS = ("1/1", "1/2", "1/3", "2/4", "2/5", "3/6")
UNITS = tuple(f"raguard:{d}" for d in DOCUMENTS)
CLAIMS = ("raguard:1", "raguard:2", "raguard:3")
OWN = {"system": "m"}


@pytest.fixture(autouse=True)
def study(judge: Judge, tmp_path: Path) -> None:
    claims, documents = raguard(tmp_path)
    judge("items", "import", "raguard", claims, documents)
    ranking(judge, tmp_path, "own", {"1": "21", "2": "56", "3": "46"})


def verdicts(context: str, labels: tuple[str, ...], units: tuple[str, ...] = CLAIMS) -> str:
    return give("verdict", dict(zip(units, labels, strict=True)), options={"context": context, **OWN})


def test_settings_and_drops_by_hand(judge: Judge) -> None:
    verdicts("none", ("true", "false", "true"))
    verdicts("top:1:own:retrieve", ("false", "false", "unparsed"))
    verdicts("top:2:own:retrieve", ("true", "false", "false"))
    give(
        "verdict_document", dict(zip(UNITS, ("true", "false", "true", "false", "false", "true"), strict=True))
    )
    parts = ("--part", "zero", "--part", "rag", "--part", "oracle")
    result = score(judge, "raguard", "-m", "m", "--k", "1,2", *parts)
    # Right without documents: 1 and 2 of 3. With the first: 2 only (3 is not readable, so wrong).
    assert result.value("accuracy_zero") == pytest.approx(2 / 3)
    assert result.value("accuracy_rag_1") == pytest.approx(1 / 3)
    assert result.value("accuracy_rag_2") == 1.0
    # One document at a time: 1 right, 2 wrong, 3 right, 4 and 5 right, 6 wrong; the misleading ones are 2 and 6.
    assert result.value("accuracy_oracle") == pytest.approx(4 / 6)
    assert result.value("accuracy_misleading") == 0.0
    # Against all claims -2/3; against the claims that own a misleading document (1 right, 3 wrong) -1/2.
    assert result.value("drop_misleading") == pytest.approx(-2 / 3)
    assert result.value("drop_relative_misleading") == pytest.approx(-1.0)
    assert result.value("drop_same_claims_misleading") == pytest.approx(-1 / 2)
    assert result.value("drop_rag_1") == pytest.approx(-1 / 3)
    assert (
        "1 answers that are outside the options or unreadable count as wrong"
        in result["accuracy_rag_1"]["notes"]
    )
    printed = {(p["system"], p["measure"]): p["value"] for p in result.document["published"]}
    assert printed["Mistral-7B", "accuracy_misleading"] == 0.2822


def test_what_the_retriever_brings(judge: Judge) -> None:
    result = score(judge, "raguard", "--part", "retrieval", "--k", "1,2")
    # First ranks: 2 (misleading, own), 5, 4. Of the claims that own a misleading one, 1 and 3, one gets its own.
    assert result.value("misleading_retrieval_recall@1[own/owning]") == 0.5
    assert result.value("misleading_retrieval_recall@1[own/all]") == pytest.approx(1 / 3)
    # First two: claim 2 gets 6, another claim's misleading document; claim 3 its own.
    assert result.value("misleading_retrieval_recall@2[own/owning]") == 1.0
    assert result.value("misleading_retrieval_recall@2[any/all]") == 1.0
    assert result.value("misleading_retrieval_recall@2[own/all]") == pytest.approx(2 / 3)
    assert result.value("misleading_exposure@2[any]") == pytest.approx(0.5)
    # Associated among the first two: 2 of 2, 1 of 2, 1 of 2.
    assert result.value("associated_precision@2") == pytest.approx(2 / 3)
    fewer = score(judge, "raguard", "--part", "retrieval", "--k", "2", "--relevant", "supporting")
    # Supporting: document 1 at rank 2, document 5 at rank 1, none.
    assert fewer.value("supporting_precision@2") == pytest.approx(1 / 3)
    assert "ranking: own (retrieve)" in fewer["supporting_precision@2"]["notes"]


def test_the_exam_gives_roles_and_its_roles_can_be_used(judge: Judge) -> None:
    exam = ("true", "false", "does not contribute", "true", "false", "refused")
    give("raguard_exam", dict(zip(UNITS, exam, strict=True)))
    result = score(judge, "raguard", "--part", "exam")
    # Roles: supporting, misleading, irrelevant, misleading (gold: irrelevant), supporting; the sixth refused.
    assert result.value("exam_supporting") == pytest.approx(2 / 5)
    assert result.value("exam_misleading") == pytest.approx(2 / 5)
    assert result.value("exam_agreement_with_gold") == pytest.approx(4 / 5)
    assert result["exam_supporting"]["missing"] == {"refused": 1}
    by_judge = score(judge, "raguard", "--part", "retrieval", "--k", "1", "--roles", "judge")
    # By the judge 2 and 4 mislead: claim 1 gets its own, claim 3 gets 4 of claim 2.
    assert by_judge.value("misleading_retrieval_recall@1[any/all]") == pytest.approx(2 / 3)


def test_imported_answers_serve_too(judge: Judge, tmp_path: Path) -> None:
    answers(
        judge,
        tmp_path,
        [("1", "s", "none", "true"), ("2", "s", "none", "Unsure"), ("3", "s", "none", "FALSE")],
    )
    result = score(judge, "raguard", "--system", "s", "--part", "zero")
    # 1 and 3 are right, whatever the case; "Unsure" is not an option and wrong.
    assert result.value("accuracy_zero") == pytest.approx(2 / 3)


def test_the_commands_that_are_missing_can_be_typed(judge: Judge, tmp_path: Path) -> None:
    lines = commands(judge, "raguard", "-m", "scripted/hash", "--k", "1")
    assert lines == [
        "judge run raguard_exam -m scripted/hash --where \"dataset = 'raguard'\"",
        "judge answers generate verdict -m scripted/hash --context none --where \"dataset = 'raguard'\"",
        "judge answers generate verdict -m scripted/hash --context top:1 --ranking own --stage retrieve "
        "--where \"dataset = 'raguard'\"",
        'judge run verdict_document -m scripted/hash --where "unit_id IN (SELECT unit_id FROM labels WHERE '
        "annotator_id = 'gold' AND field = 'raguard.role') AND dataset = 'raguard'\"",
    ]

    for line in lines:
        judge(*shlex.split(line)[1:])
    result = score(judge, "raguard", "-m", "scripted/hash", "--k", "1")
    assert result["accuracy_oracle"]["n_units"] == 6


def test_without_gold_verdicts_there_is_no_score(judge: Judge, tmp_path: Path) -> None:
    items(judge, tmp_path, "own", [{"id": "q", "claim": "So.", "passages": ["So."]}])
    message = judge("score", "raguard", "--dataset", "own", code=1).err
    assert "no item in 'own' has a gold label 'claim_verdict'" in message


def test_examples_are_training_claims_without_documents_where_there_are_none(
    judge: Judge, tmp_path: Path
) -> None:
    parts = {"a": "train", "b": "train", "c": "test", "d": "test"}
    rows = [
        {
            "id": name,
            "claim": f"Claim {name}.",
            "split": part,
            "passages": [{"id": "p", "text": f"Text of {name}.", "gold": {"raguard.role": "supporting"}}],
            "gold": {"claim_verdict": "true" if name in "ac" else "false"},
        }
        for name, part in parts.items()
    ]
    items(judge, tmp_path, "t", rows)
    arguments = ("raguard", "--dataset", "t", "-m", "scripted/first", "--part", "zero", "--part", "oracle")
    lines = commands(judge, *arguments)
    assert all("--examples t:a,t:b" in line for line in lines) and len(lines) == 2
    shown = []
    for line in lines:
        words = shlex.split(line)[1:]
        shown.append(judge(*words, "--estimate").out)
        judge(*words)
    # Without context the examples have no document; with one at a time each has its own.
    assert "Claim a." in shown[0] and "Text of" not in shown[0] and "half true" not in shown[0]
    assert "Text of a." in shown[1] and "Text of b." in shown[1]
    result = score(judge, *arguments)
    # c (true) and d (false) are left; the model always says true.
    assert (result.value("accuracy_zero"), result["accuracy_zero"]["n_units"]) == (0.5, 2)
    assert (result.value("accuracy_oracle"), result["accuracy_oracle"]["n_units"]) == (0.5, 2)
    assert (
        "two-shot: t:a and t:b are shown with every question and are not scored" in result.document["notes"]
    )
    message = judge("run", "verdict_document", "-m", "scripted/first", "--examples", "t:z", code=2).err
    assert "'t:z'" in message
