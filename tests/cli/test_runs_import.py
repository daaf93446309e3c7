"""judge runs import: another program's labels as a run like any other."""

import csv
import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.annotate.agreement_helpers import annotate
from tests.answers.helpers import column
from tests.cli.helpers import Judge, checked, write_rows

HEAD = ("unit", "label", "probabilities", "rationale", "status")
MASSES = '{"support": 0.7, "refute": 0.2, "neutral": 0.1}'
STUDY = "study.db"
ITEM = {"id": "1", "claim": "One.", "gold": {"stance": "support"}, "passages": [{"id": "p", "text": "one"}]}


@pytest.fixture(autouse=True)
def study(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "jsonl", write_rows(tmp_path / "pairs.jsonl"))


def units() -> list[str]:
    return column("SELECT unit_id FROM units WHERE kind = 'passage' ORDER BY rowid")


def table(path: Path, rows: Sequence[Sequence[str]], head: Sequence[str] = HEAD) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def rows() -> list[list[str]]:
    """A label with all that there may be, one with another spelling, one refused, one empty."""
    first, second, third, fourth = units()
    return [
        [first, "support", MASSES, "it says so", ""],
        [second.partition(":")[2], " Neutral", "", "", "ok"],
        [third, "refused", "", "", ""],
        [fourth, "", "", "", "truncated"],
    ]


def test_a_run_like_any_other_with_its_origin(judge: Judge, tmp_path: Path) -> None:
    path = table(tmp_path / "l.csv", rows())
    words = ("runs", "import", path, "--model", "gpt-x (May)", "--task", "stance")
    done = checked(judge(*words, "--json").out, "run_import")
    assert not done["known"]
    assert done["statuses"] == {"ok": 2, "unparsed": 0, "refused": 1, "truncated": 1, "failed": 0}
    shown = checked(judge("runs", "show", "--json").out, "run_show")
    assert (shown["model"], shown["units"], shown["ok"]) == ("gpt-x (May)", 4, 2)
    assert shown["provider"]["file"] == str(path) and shown["finished"]
    # Gold of the four is support, neutral, refute, neutral: both labels agree, on half of what was asked.
    percent = next(m for m in shown["fields"][0]["measures"] if m["measure"] == "percent")
    assert (percent["value"], percent["n_units"], percent["coverage"]) == (1.0, 2, 0.5)
    assert f"origin: imported from {path} (sha256 " in judge("runs", "show").out
    assert column("SELECT kind FROM annotators WHERE kind = 'judge'") == ["judge"]
    assert column("SELECT value FROM labels AS l JOIN runs AS r ON r.run_id = l.annotator_id ORDER BY 1") == [
        "neutral",
        "support",
    ]
    (masses,) = column("SELECT distribution FROM labels WHERE distribution IS NOT NULL")
    assert json.loads(masses) == pytest.approx(
        {"support": 0.7, "refute": 0.2, "neutral": 0.1, "unassigned": 0}
    )
    again = checked(judge(*words, "--json").out, "run_import")
    assert again["known"] and again["run_id"] == done["run_id"]
    assert "nothing was added" in judge(*words).err
    assert column("SELECT count(*) FROM judgements") == [4]


def test_agreement_and_report_say_where_it_is_from(judge: Judge, tmp_path: Path) -> None:
    judge("runs", "import", table(tmp_path / "l.csv", rows()), "--model", "m", "--task", "stance")
    assert "imported from" in annotate("agreement").stdout
    document = json.loads(annotate("report", "--json").stdout)
    assert "imported from" in json.dumps(document["sections"])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_what_a_run_exports_comes_back_the_same(judge: Judge, tmp_path: Path, kind: str) -> None:
    judge("run", "stance", "-m", "scripted/hash", "--option", "logprobs=1")
    with closing(sqlite3.connect("study.db")) as conn, conn:
        # A judge that was fitted on the labels of one question.
        conn.execute(
            "INSERT INTO fitted_on SELECT run_id, question_id, NULL FROM runs, (SELECT question_id FROM units LIMIT 1)"
        )
    judge("runs", "export", "-o", tmp_path / f"out.{kind}")
    judge("runs", "import", tmp_path / f"out.{kind}", "--model", "copy")
    assert len(column("SELECT question_id FROM fitted_on")) == 2
    query = (
        "SELECT l.unit_id || l.field || l.value || l.distribution FROM labels AS l JOIN runs AS r "
        "ON r.run_id = l.annotator_id WHERE model {} ORDER BY 1"
    )
    assert column(query.format("= 'copy'")) == column(query.format("<> 'copy'")) != []


def test_columns_and_labels_by_other_names(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    path.write_text(
        "\n".join(json.dumps({"claim": u, "verdict": "SUPPORTS", "p": {"SUPPORTS": 1}}) for u in units())
    )
    named = ("--map", "unit=claim", "--map", "label=verdict", "--map", "probabilities=p")
    renamed = ("--map-label", "stance:SUPPORTS=support")
    judge("runs", "import", path, "--model", "m", "--task", "stance", *named, *renamed)
    values = column("SELECT value FROM labels AS l JOIN runs AS r ON r.run_id = l.annotator_id")
    assert values == ["support"] * 4


BAD = [
    ((0, 0, "nobody"), r"l.csv:2: field 'unit': 'nobody' is not the id of any passage in the study"),
    ((0, 0, ""), r"l.csv:2: field 'unit': is empty"),
    (
        (0, 1, "maybe"),
        r"l.csv:2: field 'label': .*not one of the labels: 'maybe'; available: support, refute, neutral",
    ),
    ((0, 2, '{"support": 0.7}'), r"l.csv:2: field 'probabilities': the probabilities sum to 0.7, not to 1"),
    (
        (0, 2, '{"maybe": 1}'),
        r"l.csv:2: field 'probabilities': 'maybe' has a probability, but is not a label",
    ),
    (
        (0, 2, '{"support": -1, "refute": 2}'),
        r"l.csv:2: field 'probabilities': -1 for 'support' is not a probability",
    ),
    ((0, 2, "0.7"), r"l.csv:2: field 'probabilities': must be an object"),
    ((0, 2, "{"), r"l.csv:2: field 'probabilities': not JSON"),
    ((0, 4, "lost"), r"l.csv:2: field 'status': 'lost' must be one of ok"),
    ((0, 4, "refused"), r"l.csv:2: field 'label': there is a label, but the status is refused"),
    ((3, 4, "ok"), r"l.csv:5: field 'label': the status is ok, but there is no label"),
]


@pytest.mark.parametrize(("change", "complaint"), BAD, ids=[c for _, c in BAD])
def test_a_bad_row_keeps_nothing(
    judge: Judge, tmp_path: Path, change: tuple[int, int, str], complaint: str
) -> None:
    found = rows()
    row, cell, text = change
    found[row][cell] = text
    path = table(tmp_path / "l.csv", found)
    error = judge("runs", "import", path, "--model", "m", "--task", "stance", code=1).err
    assert re.search(complaint, error) and error.count("\n") == 1
    assert column("SELECT count(*) FROM runs") == [0] and column("SELECT count(*) FROM tasks") == [0]


def test_a_second_label_and_missing_columns(judge: Judge, tmp_path: Path) -> None:
    def told(rows_: Sequence[Sequence[str]], head: Sequence[str] = HEAD, *more: str) -> str:
        path = table(tmp_path / "l.csv", rows_, head)
        return judge("runs", "import", path, "--model", "m", *more, code=None).err

    found = rows()
    assert "l.csv:6: field 'unit': " in told([*found, found[0]], HEAD, "--task", "stance")
    assert "l.csv:1: no column 'label'; available: unit, x" in told([], ("unit", "x"), "--task", "stance")
    assert "no rows" in told([], HEAD, "--task", "stance")
    assert "specify the task of the labels with --task" in told(found)
    assert "--field role: stance.v2 has no such field; its fields are: stance" in told(
        found, HEAD, "--task", "stance", "--field", "role"
    )
    assert "--map colour=..." in told(found, HEAD, "--task", "stance", "--map", "colour=x")


def test_a_judge_that_shares_no_unit_with_anybody_is_undecided(judge: Judge, tmp_path: Path) -> None:
    # Gold of an item, and labels of its passage.
    judge("items", "import", "jsonl", write_rows(tmp_path / "i.jsonl", [ITEM]), "--dataset", "far")
    path = table(tmp_path / "l.csv", [["far:1/p", "support", "", "", ""]])
    judge("runs", "import", path, "--model", "m", "--task", "stance")
    with closing(sqlite3.connect(STUDY)) as conn, conn:
        conn.execute("DELETE FROM labels WHERE unit_id LIKE 'pairs:%'")
    (ruling,) = json.loads(annotate("report", "--json").stdout)["verdicts"]
    assert ruling["decision"] == "undecided"
