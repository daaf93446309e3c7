"""judge results: every column of a score adds up to what judge score prints, and a row is found again in the user's file."""

import csv
import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adjudge import Study
from benchmarks import outputs
from judge.asking.scores import paper_of, readings_of, request_of
from judge.papers.engine.result import score
from judge.results.build import results_of
from judge.results.page import as_page, find_quotes, mark_quotes
from judge.results.table import Results, keep_where
from judge.store import Store
from tests.cli.helpers import Judge, checked, write_rows

STRICT = ("planted/strict",)


def garage(folder: Path) -> Path:
    return outputs.garage(folder)


def faithfulness(folder: Path) -> Path:
    outputs.garage(folder)
    return outputs.faithfulness(folder, folder)


CASES: list[tuple[str, Callable[[Path], Path], dict[str, Any], dict[str, str]]] = [
    ("garage", garage, {"system": "a", "runs": STRICT}, {}),
    ("garage", garage, {"system": "c", "runs": STRICT}, {}),
    ("faithfulness", faithfulness, {"system": "b", "runs": STRICT}, {}),
    ("raguard", outputs.raguard, {"system": "a"}, {"ranking": "own"}),
    ("mirage", outputs.mirage, {"system": "b"}, {}),
    ("urag", outputs.urag, {"system": "a"}, {}),
    ("confirmation", outputs.confirmation, {"system": "s", "condition": "rag", "runs": STRICT}, {}),
    ("retrieval", outputs.relevance, {"runs": STRICT}, {"task": "relevant"}),
]


@pytest.mark.parametrize(("paper_name", "build", "options", "readings"), CASES)
def test_the_columns_of_a_measure_give_what_the_score_prints(
    tmp_path: Path,
    paper_name: str,
    build: Callable[[Path], Path],
    options: dict[str, Any],
    readings: dict[str, str],
) -> None:
    """The mean of the column, or the ratio of the sums of two columns, over the rows that have a value."""
    paper = paper_of(paper_name)
    with Store.open(build(tmp_path), create=False) as store:
        given = {"runs": (), "partial": True, **readings_of(paper, readings), **options}
        printed = {
            line.measure.measure: line.measure
            for line in score(store, paper, request_of(store, paper, given), interval=None).lines
        }
        results, _ = results_of(store, paper_name, readings=readings, **{"runs": (), **options})
    assert len(results.measures) >= 10
    for column in results.measures:
        values = [row[column.name] for row in results.rows if row[column.name] is not None]
        expected = printed[column.measure].value
        if expected is None:
            assert column.under is not None or not values, column
            continue
        total = math.fsum(values)
        under = (
            len(values) if column.under is None else math.fsum(row[column.under] or 0 for row in results.rows)
        )
        assert total / under == pytest.approx(expected, abs=1e-12), column
        if column.under is None:
            # A row without a value says why.
            lacking = [row for row in results.rows if row[column.name] is None and row["unit_id"]]
            reasons = [row.get("unscored", {}).get(column.measure) for row in lacking]
            assert len(values) == printed[column.measure].n_units
            assert sum(reason is not None for reason in reasons) == sum(
                row.get("unscored", {}).get(column.measure) is not None for row in results.rows
            )


RAGAS = (
    "user_input,retrieved_contexts,response,reference,mine\n"
    "Q one?,\"['The first.', 'Other.']\",Answer one.,R,1\n"
    "Q two?,\"['The second.']\",,R,2\n"
    "Q three?,\"['The third.']\",Answer three.,R,3\n"
)


def test_a_table_without_ids_gets_its_answers_back(judge: Judge, tmp_path: Path) -> None:
    """Also in Windows-1252, and with the scores of the answer in its own row."""
    path = tmp_path / "mine.csv"
    path.write_bytes(RAGAS.replace("one", "né").encode("cp1252"))
    judge("items", "import", path)
    judge("run", "eligibility", "-m", "scripted/first")
    judge("results", "--join", path, "-o", "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text("utf-8").splitlines()))
    assert [row["mine"] for row in rows] == ["1", "2", "3"]
    assert [row["user_input"] for row in rows] == ["Q né?", "Q two?", "Q three?"]
    labels = [row["adjudge.eligibility"] for row in rows]
    assert labels[0] == labels[2] != "" and [row["adjudge.eligibility.status"] for row in rows][::2] == [
        "ok",
        "ok",
    ]


def test_scores_of_answers_come_back_in_a_file_of_answers(judge: Judge, tmp_path: Path) -> None:
    questions = [{"id": f"q{n}", "question": f"Q {n}?", "passages": ["p"]} for n in range(3)]
    judge("items", "import", write_rows(tmp_path / "d.jsonl", questions))
    given = [{"id": f"q{n}", "system": name, "text": f"{name} {n}."} for name in "xy" for n in range(3)]
    answers = write_rows(tmp_path / "answers.jsonl", given)
    judge("systems", "import", answers)
    judge("suite", "faithfulness", "-m", "scripted/hash", "--system", "x")
    judge("results", "faithfulness", "--system", "x", "--join", answers, "-o", "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    scored = [row.get("adjudge.ragas_faithfulness") is not None for row in rows]
    assert scored == [row["system"] == "x" for row in given]


def test_worst_first_filters_and_formats(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(RAGAS, encoding="utf-8")
    judge("items", "import", path)
    judge("suite", "faithfulness", "-m", "scripted/hash", "--part", "claims")
    written = ("-o", "r.csv", "-o", "r.jsonl", "-o", "r.parquet", "-o", "r.json")
    shown = judge("results", "faithfulness", *written).out
    rows = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text("utf-8").splitlines()]
    values = [row["ragas_faithfulness"] for row in rows]
    known = [value for value in values if value is not None]
    assert known == sorted(known) and values[len(known) :] == [None] * (len(values) - len(known))
    # The empty answer is a row of its own, and shown as such.
    assert {row["answer"] for row in rows} == {"Answer one.", "", "Answer three."}
    assert {str(row["mine"]) for row in rows} == {"1", "2", "3"}, "the user's own columns"
    assert "worst ragas_faithfulness first" in shown
    assert json.loads((tmp_path / "r.json").read_text("utf-8"))[0]["unit_id"] == rows[0]["unit_id"]
    few = checked(
        judge("results", "faithfulness", "--where", "mine>=2", "--where", "answer~THREE", "--json").out,
        "results",
    )
    assert [row["answer"] for row in few["rows"]] == ["Answer three."]
    assert "available columns" in judge("results", "faithfulness", "--where", "x=1", code=2).err
    assert "is not a number" in judge("results", "faithfulness", "--where", "mine<abc", code=2).err
    assert "--sort x" in judge("results", "faithfulness", "--sort", "x", code=2).err
    frame = Study("study.db").results("faithfulness").frame
    assert list(frame["unit_id"]) == [row["unit_id"] for row in rows]


def test_a_name_that_is_neither_paper_nor_task(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", write_rows(tmp_path / "d.jsonl", [{"id": "1", "claim": "c", "passages": ["p"]}]))
    judge("run", "stance", "-m", "scripted/first")
    assert "available: garage" in judge("results", "nothing", code=2).err
    assert "labelled units of the kind passage" in judge("results", "stance", "--per", "answer", code=2).err


def test_a_page_has_the_rows_worst_first_with_reasons_and_marked_quotes(tmp_path: Path) -> None:
    with Store.open(garage(tmp_path), create=False) as store:
        results, column = results_of(store, "garage", system="a", runs=STRICT)
        page = as_page(store, results, column)
    assert [row.row_id for row in page.rows] == [row["unit_id"] for row in results.rows]
    first = page.rows[0]
    titles = [text.title for text in first.texts]
    assert titles[:2] == ["question", "answer"] and "passage 1" in titles
    assert any(" of sentence " in label.question for label in first.labels)
    order = f"worst {column.measure} first" if column else ""
    worst = [row.numbers[order] for row in page.rows if order in row.numbers]
    assert worst and worst == sorted(worst)
    assert "eligibility" in first.filters


def test_an_empty_answer_is_shown_as_such_and_lists_of_claims_are_no_filter(
    judge: Judge, tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(RAGAS, encoding="utf-8")
    judge("items", "import", path)
    judge("suite", "faithfulness", "-m", "scripted/hash", "--part", "claims")
    with Store.open(tmp_path / "study.db", create=False) as store:
        results, column = results_of(store, "faithfulness", runs=())
        page = as_page(store, results, column)
    (empty,) = [row for row in page.rows if "Q two?" in row.texts[0].plain()]
    assert [text.plain() for text in empty.texts if text.title == "answer"] == ["(no answer)"]
    assert not any("claims" in row.filters for row in page.rows)


@pytest.mark.parametrize(
    ("text", "quotes", "marked"),
    [
        ("The sky is blue today.", ["sky is blue"], ["sky is blue"]),
        ("The sky is blue today.", ["sky is blue", "is blue today"], ["sky is blue", " today"]),
        ("The sky.", ["the moon"], []),
        ("", ["x"], []),
    ],
)
def test_quotes_are_marked_where_they_occur(text: str, quotes: list[str], marked: list[str]) -> None:
    pieces = mark_quotes(text, quotes)
    assert "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces) == text
    assert [piece[0] for piece in pieces if not isinstance(piece, str)] == marked


def test_quotations_are_found_in_a_reason() -> None:
    reason = 'It says "the sky is blue today", and «ab».'
    assert find_quotes(reason) == [reason, "the sky is blue today"]
    assert find_quotes("short") == []


def test_a_chat_log_with_all_turns_and_a_table_read_as_text_come_back(judge: Judge, tmp_path: Path) -> None:
    turns = [{"role": role, "content": f"{role} {n}"} for n in range(2) for role in ("user", "assistant")]
    log = write_rows(tmp_path / "log.jsonl", [{"id": "c", "messages": turns}])
    judge("items", "import", log, "--turns", "all")
    judge("run", "eligibility", "-m", "scripted/first")
    row = json.loads(judge("results", "--join", log).out)
    assert len(row["adjudge.rows"]) == 2
    table = tmp_path / "t.csv"
    table.write_text('question,answer,contexts\n"[1] what?","[a, b]",c\n', encoding="utf-8")
    judge("items", "import", table, "--as-text", "answer", "--as-text", "question", "-d", "t.db")
    judge("run", "eligibility", "-m", "scripted/first", "-d", "t.db")
    assert "adjudge.eligibility" in judge("results", "--join", table, "-d", "t.db").out


def test_conditions_name_columns_with_operators_and_texts_with_zeros() -> None:
    rows = [{"unit_id": str(n), "price = EUR": n, "zip": f"{n:05}", "my <note>": "x"} for n in range(4)]
    for condition, expected in (
        ("price = EUR=3", ["3"]),
        ("price = EUR>=2", ["2", "3"]),
        ("my <note>=x", ["0", "1", "2", "3"]),
        ("zip=3", []),
        ("zip=00003", ["3"]),
        ("zip!=00003", ["0", "1", "2"]),
    ):
        results = Results("answer", list(rows))
        keep_where(results, [condition])
        assert [row["unit_id"] for row in results.rows] == expected, condition


def test_all_systems_are_one_table_and_come_back_into_one_file(judge: Judge, tmp_path: Path) -> None:
    given = [
        {"question": f"Q {n}?", "contexts": ["p"], "answer": f"{name} {n}.", "system": name}
        for n in range(3)
        for name in "xy"
    ]
    path = write_rows(tmp_path / "two.jsonl", given)
    judge("items", "import", path)
    judge("suite", "faithfulness", "-m", "scripted/hash", "--system", "all")
    rows = checked(judge("results", "faithfulness", "--system", "all", "--json").out, "results")["rows"]
    assert sorted(row["answer"] for row in rows) == sorted(row["answer"] for row in given)
    values = [row["ragas_faithfulness"] for row in rows if row["ragas_faithfulness"] is not None]
    assert values == sorted(values)
    back = judge("results", "faithfulness", "--system", "all", "--join", path).out.splitlines()
    by_answer = {row["answer"]: row["ragas_faithfulness"] for row in rows}
    for mine, line in zip(given, back, strict=True):
        assert json.loads(line)["adjudge.ragas_faithfulness"] == by_answer[mine["answer"]]


def test_questions_and_a_packed_copy_get_the_answers_that_came_apart(judge: Judge, tmp_path: Path) -> None:
    questions = [{"id": f"q{n}", "question": f"Q {n}?", "passages": [f"p{n}"]} for n in range(2)]
    path = write_rows(tmp_path / "q.jsonl", questions)
    judge("items", "import", path)
    answers = write_rows(tmp_path / "a.jsonl", [{"id": f"q{n}", "text": f"Answer {n}."} for n in range(2)])
    judge("systems", "import", answers, "--system", "s", "--condition", "top5")
    judge("run", "eligibility", "-m", "scripted/first")
    for file in (path, answers):
        lines = judge("results", "--join", file).out.splitlines()
        assert all(json.loads(line)["adjudge.eligibility"] for line in lines) and len(lines) == 2
    table = tmp_path / "t.csv"
    table.write_text("Frage,Antwort,nr\nEins?,Ja.,1\n", encoding="utf-8")
    maps = [word for pair in ("id=nr", "question=Frage", "answer=Antwort") for word in ("--map", pair)]
    judge("items", "import", "csv", table, *maps, "--system", "mine", "-d", "t.db")
    judge("run", "eligibility", "-m", "scripted/first", "-d", "t.db")
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    # The copy is another file, so its system has to be named.
    assert "--system" in judge("results", "--join", packed, "-d", "t.db", code=2).err
    back = judge("results", "--join", packed, "--system", "mine", "-d", "t.db").out
    assert next(csv.DictReader(back.splitlines()))["adjudge.eligibility"]
