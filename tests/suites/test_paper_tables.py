"""`judge score PAPER --table paper`: the paper's layout, several data sets, settings and systems. Values by hand."""

import csv
import io
import math
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import checked
from tests.formats import mirage, raguard
from tests.suites.helpers import Judge, answers, items, outputs, ranking


def values(document: dict[str, Any], **where: Any) -> list[float | None]:
    """The values of the entries with these fields."""
    return [
        entry["value"]
        for entry in document["entries"]
        if all(entry[name] == value for name, value in where.items())
    ]


def table(judge: Judge, *words: str) -> dict[str, Any]:
    return dict(checked(judge("score", *words, "--table", "paper", "--json").out, "paper_table"))


def test_raguards_table_has_drops_and_the_published_columns(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "raguard", *raguard(tmp_path))
    # Claims 1 true, 2 and 3 false: a is right on all without documents, and on claim 1 alone with one document.
    for name in "ab":
        answers(
            judge,
            tmp_path,
            [(n, name, "zero-context", v) for n, v in zip("123", ("true", "false", "false"), strict=True)],
        )
        answers(judge, tmp_path, [(n, name, "top-1", "true") for n in "123"])
        ranking(judge, tmp_path, name, {"1": ["1"], "2": ["4"], "3": ["6"]})
    words = ("raguard", "--system", "a", "--system", "b", "--k", "1")
    result = table(judge, *words)
    assert values(result, measure="accuracy_rag_1", system="a") == [pytest.approx(1 / 3)]
    [drop] = [e["drop"] for e in result["entries"] if (e["measure"], e["system"]) == ("accuracy_rag_1", "b")]
    assert drop == pytest.approx(-2 / 3)
    # Table 4 of the paper, GPT-4o mini: 64.80 - 67.33.
    [published] = [e for e in result["entries"] if (e["name"], e["system"]) == ("RAG-1", "GPT-4o mini")]
    assert published["published"] and published["drop"] == pytest.approx(-0.0253)
    out = judge("score", *words, "--table", "paper").out
    row = next(line for line in out.splitlines() if line.startswith("RAG-1"))
    assert "33.3 (-66.7)" in row and "64.8 (-2.5)" in row
    assert "GPT-4o mini †" in out and "another judge" in out
    judge(
        "score",
        *words,
        "--table",
        "paper",
        "-o",
        tmp_path / "t.csv",
        "-o",
        tmp_path / "t.svg",
        "-o",
        tmp_path / "t.tex",
    )
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text("utf-8"))))
    assert len(rows) == len(result["entries"])
    assert (tmp_path / "t.svg").read_text("utf-8").startswith("<?xml")
    assert "67.33" not in (tmp_path / "t.tex").read_text("utf-8") and "67.3" in (
        tmp_path / "t.tex"
    ).read_text("utf-8")


def choices(judge: Judge, folder: Path, dataset: str, right: float) -> None:
    """Ten questions with options A and B (A is right), and a system whose p(A) is `right` on all of them."""
    rows = [
        {
            "id": f"{dataset}{n}",
            "question": f"Which of them, {dataset}{n}?",
            "options": {"A": "one", "B": "two"},
            "correct": "A",
            "split": "calibration" if n < 5 else "test",
            "passages": [{"text": f"About {n}."}],
        }
        for n in range(10)
    ]
    items(judge, folder, dataset, rows)
    given = [
        {
            "id": f"{dataset}:{row['id']}",
            "system": "own",
            "condition": "plain",
            "probabilities": {"A": right, "B": 1 - right},
        }
        for row in rows
    ]
    outputs(judge, folder, given)


def test_urags_table_has_methods_by_data_sets(judge: Judge, tmp_path: Path) -> None:
    """Finding 4: two data sets in one command. Without a table, they are an error and not silently the last."""
    choices(judge, tmp_path, "u", 0.9)
    choices(judge, tmp_path, "v", 0.3)
    words = (
        "urag",
        "--system",
        "own",
        "--dataset",
        "u",
        "--dataset",
        "v",
        "--alpha",
        "0.5",
        "--part",
        "sets",
    )
    result = table(judge, *words)
    assert values(result, measure="accuracy", dataset="u") == [1.0]
    assert values(result, measure="accuracy", dataset="v") == [0.0]
    # All questions of a data set have the same scores, so that each LAC set contains the right option. In v, where
    # p(A) = .3, the threshold .7 also admits B.
    assert values(result, measure="coverage", dataset="v") == [1.0]
    line = next(
        text for text in judge("score", *words, "--table", "paper").out.splitlines() if "u: Acc" in text
    )
    assert "v: Acc" in line and "v: SS" in line
    assert "--dataset was given 2 times" in judge("score", *words, code=2).err


def test_urags_table_has_the_change_under_irrelevant_context(judge: Judge, tmp_path: Path) -> None:
    choices(judge, tmp_path, "u", 0.9)
    # With irrelevant passages, the system prefers B on all questions.
    given = [
        {"id": f"u{n}", "system": "own", "condition": "irrelevant", "probabilities": {"A": 0.2, "B": 0.8}}
        for n in range(10)
    ]
    outputs(judge, tmp_path, given)
    words = ("urag", "--system", "own", "--context", "all,all+noise:10", "--part", "sets", "--alpha", "0.5")
    result = table(judge, *words)
    by_context = {
        e["reading"]: (e["value"], e["drop"]) for e in result["entries"] if e["measure"] == "accuracy"
    }
    assert by_context == {"all": (1.0, None), "all+noise:10": (0.0, -1.0)}
    assert "0.0 (-100.0)" in judge("score", *words, "--table", "paper").out


def test_mirages_table_has_a_row_for_each_k(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "mirage", *mirage(tmp_path))
    rows = [(f"m{n}", "own", c, f"m{n}") for n in range(3) for c in ("base", "oracle", "retrieved-1")]
    # With three passages, one of three is wrong.
    rows += [(f"m{n}", "own", "retrieved-3", f"m{n}" if n else "no") for n in range(3)]
    answers(judge, tmp_path, rows)
    with sqlite3.connect("study.db") as conn:
        first = dict(conn.execute("SELECT item_id, min(passage_id) FROM passages GROUP BY 1").fetchall())
    ranking(judge, tmp_path, "own", {item.partition(":")[2]: [passage] for item, passage in first.items()})
    result = table(judge, "mirage", "--system", "own", "--mixed", "retrieved:1,retrieved:3")
    by_k = {
        e["reading"]: e["value"]
        for e in result["entries"]
        if e["measure"] == "noise_vulnerability" and not e["published"]
    }
    assert by_k == {"retrieved:1": 0.0, "retrieved:3": pytest.approx(1 / 3)}
    assert values(result, measure="accuracy_base", system="own") == [1.0, 1.0]
    assert not math.isnan(sum(by_k.values()))


def test_a_paper_without_tables_has_no_such_option(judge: Judge) -> None:
    assert "No such option" in judge("score", "faithfulness", "--table", "paper", code=2).err
