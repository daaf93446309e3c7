"""What imported systems, partial deliveries and pilots do to a paper's numbers. Expected values are derived by hand."""

import sqlite3
from pathlib import Path

import pytest

from tests.formats import mirage, raguard, write_jsonl
from tests.suites.helpers import Judge, answers, board, cells, give, outputs, ranking, score

GOLD = ("true", "false", "false")
"""The verdicts of RAGuard's claims 1, 2 and 3."""
ROLES = ("1/1", "1/2", "1/3", "2/4", "2/5", "3/6")


@pytest.fixture
def claims(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "raguard", *raguard(tmp_path))


@pytest.mark.usefixtures("claims")
@pytest.mark.parametrize("form", ["{}", "{}.", "**{}**", "The claim is {}.", "Answer: {}", "Verdict: {}"])
def test_an_imported_answer_is_read_like_a_reply_of_a_run(judge: Judge, tmp_path: Path, form: str) -> None:
    """Finding 1: all answers equal the gold verdict, in another spelling."""
    answers(
        judge,
        tmp_path,
        [(n, "own", "zero-context", form.format(v.capitalize())) for n, v in zip("123", GOLD, strict=True)],
    )
    documents = [
        {
            "id": unit.partition("/")[0],
            "system": "own",
            "condition": "oracle",
            "document": unit.partition("/")[2],
            "text": form.format(GOLD[int(unit[0]) - 1]),
        }
        for unit in ROLES
    ]
    outputs(judge, tmp_path, documents)
    result = score(judge, "raguard", "--system", "own", "--part", "zero", "--part", "oracle")
    assert result.value("accuracy_zero") == result.value("accuracy_oracle") == 1.0


@pytest.mark.usefixtures("claims")
def test_boards_state_how_many_answers_are_outside_the_options(judge: Judge, tmp_path: Path) -> None:
    hedged = ("I think it is true", "not true", "false")
    answers(judge, tmp_path, [(n, "a", "zero-context", v) for n, v in zip("123", hedged, strict=True)])
    answers(judge, tmp_path, [(n, "b", "zero-context", v) for n, v in zip("123", GOLD, strict=True)])
    words = ("raguard", "--system", "a", "--system", "b", "--part", "zero")
    result = board(judge, *words)
    values = {name: cell["shared"]["value"] for name, cell in cells(result, "accuracy_zero").items()}
    assert values == {"a": pytest.approx(1 / 3), "b": 1.0}
    assert "a: 2 of 3 answers are outside the options and count as wrong: 2 in zero" in result["notes"]
    assert "2 of 3 answers are outside the options" in " ".join(judge("score", *words).out.split())


@pytest.mark.usefixtures("claims")
def test_a_retriever_that_returns_nothing_is_not_excused(judge: Judge, tmp_path: Path) -> None:
    """Finding 2: results for claim 1 alone, all right. The other two claims count as 0."""
    ranking(judge, tmp_path, "own", {"1": ["1"]})
    answers(judge, tmp_path, [(n, "own", "top-1", "true") for n in "1"])
    result = score(judge, "raguard", "--system", "own", "--k", "1", "--part", "retrieval", "--part", "rag")
    # Claim 1 has three documents: precision 1, recall 1/3, and the best order of one result gives NDCG 1.
    assert result.value("associated_precision@1") == pytest.approx(1 / 3)
    assert result.value("associated_recall@1") == pytest.approx(1 / 9)
    assert result.value("associated_ndcg@1") == pytest.approx(1 / 3)
    # Claims 1 and 3 own a misleading document; neither was retrieved.
    recall = result["misleading_retrieval_recall@1[own/owning]"]
    assert (recall["value"], recall["n_units"]) == (0.0, 2)
    # The system could have answered claims 2 and 3 without documents, so their missing answers are wrong.
    assert result.value("accuracy_rag_1") == pytest.approx(1 / 3)
    assert any("has no passage for 2 of 3 items" in text for text in result.document["notes"])


@pytest.mark.usefixtures("claims")
def test_a_pilot_of_the_exam_does_not_stop_the_scores_of_imported_systems(
    judge: Judge, tmp_path: Path
) -> None:
    """Finding 5."""
    for name in "ab":
        answers(judge, tmp_path, [(n, name, "zero-context", v) for n, v in zip("123", GOLD, strict=True)])
    give("raguard_exam", {"raguard:1/1": "true"}, model="the/judge")
    result = board(judge, "raguard", "--system", "all")
    assert {cell["shared"]["value"] for cell in cells(result, "accuracy_zero").values()} == {1.0}
    assert not any(row["measure"].startswith("exam_") for row in result["rows"])
    assert any("the part exam is left out" in text for text in result["notes"])
    # If the exam is requested, the missing labels are an error.
    assert "is incomplete" in judge("score", "raguard", "--system", "a", "--part", "exam", code=1).err


def test_the_example_claims_of_an_imported_system_are_scored(judge: Judge, tmp_path: Path) -> None:
    """Finding 8: with 20 claims, a run shows two of them as examples; nobody showed them to an imported system."""
    many = [(f"c{n:02}", "true" if n % 2 else "false") for n in range(24)]
    rows = [
        {
            "id": name,
            "claim": f"Claim {name} holds.",
            "gold": {"claim_verdict": v},
            "passages": [{"id": "p", "title": f"Title {name}", "text": f"On {name}."}],
        }
        for name, v in many
    ]
    judge("items", "import", "jsonl", write_jsonl(tmp_path / "c.jsonl", rows), "--dataset", "c")
    answers(judge, tmp_path, [(name, "own", "zero-context", v) for name, v in many])
    result = score(judge, "raguard", "--system", "own", "--part", "zero")
    assert result["accuracy_zero"]["n_units"] == 24
    assert not any("two-shot" in text for text in result.document["notes"])
    # An example shows the title of its document, as the test documents do.
    shown = judge(
        *("run", "verdict_document", "-m", "scripted/hash", "--examples", "c:c00,c:c01", "--estimate")
    ).out
    assert shown.count("Title c00\nOn c00.") == shown.count("Title c01\nOn c01.") == 1


@pytest.mark.usefixtures("claims")
def test_the_oracle_can_show_all_associated_documents_at_once(judge: Judge, tmp_path: Path) -> None:
    answers(judge, tmp_path, [(n, "own", "oracle-all", "true") for n in "123"])
    result = score(judge, "raguard", "--system", "own", "--part", "oracle")
    assert result.value("accuracy_oracle_all") == pytest.approx(1 / 3)


def test_base_accuracy_does_not_depend_on_a_retriever(judge: Judge, tmp_path: Path) -> None:
    """Finding 2, MIRAGE: results for question m0 alone; base is right on m0 and m1, oracle on all three."""
    judge("items", "import", "mirage", *mirage(tmp_path))
    base = {"m0": "m0", "m1": "m1", "m2": "no"}
    rows = [(i, "own", "base", text) for i, text in base.items()]
    rows += [(i, "own", "oracle", i) for i in base] + [("m0", "own", "retrieved-1", "m0")]
    answers(judge, tmp_path, rows)
    with sqlite3.connect("study.db") as conn:
        [first] = conn.execute(
            "SELECT passage_id FROM passages WHERE item_id = 'mirage:m0' LIMIT 1"
        ).fetchone()
    ranking(judge, tmp_path, "own", {"m0": [first]})
    result = score(judge, "mirage", "--system", "own", "--mixed", "retrieved-1")
    assert result.value("accuracy_base") == pytest.approx(2 / 3)
    # m1 and m2 have no mixed answer: wrong. Oracle is right on all, so NV = 2/3 and CA = 1/3.
    assert result.value("noise_vulnerability") == pytest.approx(2 / 3)
    assert result.value("context_acceptability") == pytest.approx(1 / 3)
    assert result["precision@1"]["n_units"] == 3


@pytest.mark.usefixtures("claims")
def test_outputs_that_an_older_version_could_not_read_are_read_again(judge: Judge, tmp_path: Path) -> None:
    """An earlier version stored "True." as an output without a label."""
    documents = [
        {
            "id": u[0],
            "system": "own",
            "condition": "oracle",
            "document": u[2:],
            "text": f"{GOLD[int(u[0]) - 1].title()}.",
        }
        for u in ROLES
    ]
    outputs(judge, tmp_path, documents)
    with sqlite3.connect("study.db") as conn:
        conn.execute("UPDATE judgements SET status = 'unparsed'")
        conn.execute("DELETE FROM labels WHERE annotator_id IN (SELECT run_id FROM runs)")
    assert score(judge, "raguard", "--system", "own", "--part", "oracle").value("accuracy_oracle") == 1.0


def test_boards_state_how_many_answers_name_no_option(judge: Judge, tmp_path: Path) -> None:
    """URAG: half of the questions calibrate. The answers of a are letters in words, and those of b say nothing."""
    rows = [
        {
            "id": f"q{n}",
            "question": f"Which, {n}?",
            "options": {"A": "x", "B": "y"},
            "correct": "A",
            "passages": ["P."],
        }
        for n in range(4)
    ]
    judge("items", "import", "jsonl", write_jsonl(tmp_path / "u.jsonl", rows), "--dataset", "u")
    given = [("a", "The answer is A."), ("b", "I do not know")]
    answers(judge, tmp_path, [(f"q{n}", s, "plain", text) for n in range(4) for s, text in given])
    result = board(judge, "urag", "--system", "a", "--system", "b", "--part", "accuracy")
    assert {n: c["shared"]["value"] for n, c in cells(result, "accuracy").items()} == {"a": 1.0, "b": 0.0}
    assert "b: 4 of 4 answers under 'all' name no option and count as wrong" in result["notes"]
