"""Ways round a sealed test: the same words under another id, the same field under another task, a score's correction."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from judge.labels import split
from judge.prompts import load_task
from judge.store import Store, splits
from tests.annotate.agreement_helpers import annotate, checked, judge
from tests.split.worlds import looks, part, planted


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = planted(tmp_path, 40, 2)
    judge("run", "stance", "-m", "scripted/hash", "-d", path)
    judge("split", "stance", "-d", path)
    return path


def test_a_later_question_with_the_words_of_a_sealed_one_is_sealed(db: Path, tmp_path: Path) -> None:
    before = part(db, "test")
    one = sorted(before)[0].partition(":")[2]
    learn, mixed = sorted(part(db, "learn"))[:2]
    rows = [
        # The claim of a sealed question under another id, in capitals and with more space; of one of learn; a new one.
        {"id": "copy", "claim": f"  CLAIM   {int(one)}. "},
        {"id": "taught", "claim": f"Claim {int(learn.partition(':')[2])}."},
        {"id": "new", "claim": "Nobody said this before."},
        # A question of learn that gets an item with the claim of a sealed one, of which the task shows nothing else.
        {"id": "late", "question": "Is it so?", "claim": f"Claim {int(one)}."},
    ]
    for row in rows:
        row |= {"dataset": "study", "question_id": mixed.partition(":")[2]} if row["id"] == "late" else {}
        row["passages"] = [{"id": "p", "text": "Another passage.", "gold": {"stance": "support"}}]  # type: ignore[assignment]
    data = tmp_path / "more.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge("items", "import", "jsonl", data, "-d", db)
    assert part(db, "test") == before | {"more:copy", mixed}
    with Store.open(db) as store:
        result = split.require_split(store, load_task("stance"))
        assert result.parts["more:taught"] == "learn" and "more:new" not in result.parts
    judge("run", "stance", "-m", "scripted/first", "-d", db)
    agreed = checked(annotate("agreement", "-d", db, "--judge", "last", "--json").stdout)
    # Of 80 units 48 are sealed, and so are the copy and the question with it: 30 open ones and two new ones.
    assert len(before) == 24
    assert agreed["measures"][0]["n_units"] == 32


def test_a_task_of_ones_own_is_split_before_it_is_run(tmp_path: Path) -> None:
    db, own = planted(tmp_path, 20), tmp_path / "own.v1.md"
    own.write_text(load_task("stance").text)
    judge("split", own, "-d", db, "--dry-run")
    judge("split", own, "-d", db)
    own.unlink()
    # The study knows it now, wherever its file is.
    assert "been looked at" in judge("split", "own", "-d", db).stdout
    judge("run", "stance", "-m", "scripted/hash", "-d", db)
    assert checked(judge("split", "stance", "-d", db, "--json").stdout)["task"] == "own"


def test_another_task_with_the_same_field_and_labels_opens_nothing(db: Path, tmp_path: Path) -> None:
    text = load_task("stance").text
    (tmp_path / "other_name.v1.md").write_text(text)
    (tmp_path / "fewer.v1.md").write_text(re.sub(r"      - \{value: refute,.*\n", "", text))
    for name in ("other_name", "fewer"):
        judge("run", tmp_path / f"{name}.v1.md", "-m", "scripted/hash", "-d", db)
    with Store.open(db) as store:
        assert splits.home(store, load_task(str(tmp_path / "other_name.v1.md"))) == "stance"
        # Other labels are another question.
        assert splits.home(store, load_task(str(tmp_path / "fewer.v1.md"))) == "fewer"
        run = store.conn.execute("SELECT run_id FROM runs WHERE task = 'other_name.v1'").fetchone()[0]
    agreed = checked(annotate("agreement", "-d", db, "--task", "other_name", "--judge", run, "--json").stdout)
    assert agreed["measures"][0]["n_units"] == 32
    # It is split already, with the other task's looks.
    shown = checked(judge("split", "other_name", "-d", db, "--json").stdout)
    assert shown["looks"] == [] and sum(row["questions"] for row in shown["parts"]) == 40
    judge("compare", "other_name", "--part", "test", "-d", db)
    assert len(looks(db)) == 1


def test_the_report_tests_an_opened_test_at_the_level_of_its_look(db: Path, tmp_path: Path) -> None:
    judge("run", "stance", "-m", "scripted/first", "-d", db)

    def verdicts() -> list[tuple[float, str]]:
        annotate("report", "-d", db, "-o", tmp_path / "r.json")
        result = json.loads((tmp_path / "r.json").read_text())
        level = [
            {m["confidence"] for m in outside if own["judge"] in (m["annotators"] or ())}
            for outside in [
                [m for m in result["measures"] if m["section"] != "verdict" and m["low"] is not None]
            ]
            for own in result["verdicts"]
        ]
        return [(c, " ".join(own["warnings"])) for c, own in zip(level, result["verdicts"], strict=True)]

    assert all(level == {0.95} and "opened" not in told for level, told in verdicts())
    judge("compare", "stance", "--part", "test", "-d", db)
    assert all(level == {0.975} and "look 1" in told and "0.025" in told for level, told in verdicts())
    judge("compare", "stance", "--part", "all", "-d", db)
    assert all(level == {0.9875} and "look 2" in told for level, told in verdicts())
    # No head of a table and no drawing says another level than its numbers have.
    annotate("report", "-d", db, "-o", tmp_path / "r.html")
    told = re.findall(r"\(([^()<]* % interval)\)", (tmp_path / "r.html").read_text())
    # The verdicts have the part of the level that two judges share: 1 - .05 * 2^-1.75 = .9851.
    assert len(told) >= 4 and set(told) == {"98.75 % interval", "98.51 % interval"}
    annotate("report", "-d", db, "--short", "-o", tmp_path / "short.md")
    assert (
        "Intervals: 95 %, 98.75 % of scripted/hash, 98.75 % of scripted/first, 98.51 % in the verdict on"
        in (tmp_path / "short.md").read_text()
    )


def test_the_report_says_that_a_parent_went_on(db: Path, tmp_path: Path) -> None:
    judge("run", "stance", "-m", "scripted/hash", "--seed", "3", "--as", "other", "-d", db)
    with closing(sqlite3.connect(db)) as conn:
        runs = [r for (r,) in conn.execute("SELECT run_id FROM runs ORDER BY run_id")]
    judge("panel", "stance", "--run", runs[0], "--run", runs[1], "-d", db)
    annotate("report", "-d", db, "-o", tmp_path / "r.html")
    assert "got new judgements after this run was derived" not in (tmp_path / "r.html").read_text()
    data = tmp_path / "late.jsonl"
    passages = [{"id": "p", "text": "Late.", "gold": {"stance": "support"}}]
    data.write_text(json.dumps({"id": "late", "claim": "A late claim.", "passages": passages}) + "\n")
    judge("items", "import", "jsonl", data, "-d", db)
    judge("run", "stance", "-m", "scripted/hash", "-d", db)
    annotate("report", "-d", db, "-o", tmp_path / "r.html")
    assert "got new judgements after this run was derived" in (tmp_path / "r.html").read_text()
