"""A study keeps the version of a task that it has used; a newer one that ships is used when it is typed."""

from pathlib import Path

import pytest

from judge.prompts import load_task
from tests.annotate.agreement_helpers import annotate
from tests.answers.helpers import column
from tests.formats import write_jsonl
from tests.suites.helpers import Judge

NOTE = "note: stance.v1 is used, because the study already has labels or runs for it; to use the newer stance.v2, type its full name"


@pytest.fixture
def used(judge: Judge, tmp_path: Path) -> Path:
    """A study whose stance.v1 is no longer among the shipped files, nor anywhere else."""
    row = {"id": "a", "claim": "Claim a.", "passages": [{"id": "p", "text": "Text a."}]}
    judge("items", "import", "jsonl", write_jsonl(tmp_path / "r.jsonl", [row]), "--dataset", "d")
    old = tmp_path / "stance.v1.md"
    text = load_task("stance").text.replace(
        "You are given a claim", "You judge evidence. You are given a claim"
    )
    old.write_text(text, "utf-8")
    judge("run", old, "-m", "scripted/first")
    old.unlink()
    return Path("study.db")


def test_a_run_keeps_the_version_of_the_study(judge: Judge, used: Path) -> None:
    done = judge("run", "stance", "-m", "scripted/hash")
    assert NOTE in done.err
    assert column("SELECT task FROM runs ORDER BY started, rowid") == ["stance.v1", "stance.v1"]
    assert "You judge evidence." in judge("tasks", "render", "stance").out


def test_a_typed_version_is_used_and_from_then_on_is_the_newest(judge: Judge, used: Path) -> None:
    assert "note:" not in judge("run", "stance.v2", "-m", "scripted/hash").err
    assert "note:" not in judge("run", "stance", "-m", "scripted/hash", "--label-order", "reversed").err
    assert column("SELECT task FROM runs ORDER BY started, rowid") == ["stance.v1", "stance.v2", "stance.v2"]
    judge("run", "stance.v1", "-m", "scripted/hash")
    assert column("SELECT count(*) FROM runs WHERE task = 'stance.v1'") == [2]


def test_people_keep_the_version_of_the_study(used: Path) -> None:
    annotate("batches", "new", "b", "stance", "-n", "1", "--annotators", "alice")
    assert "You judge evidence." in annotate("batches", "show", "b", "--guidelines").stdout
    assert column("SELECT task FROM batches") == ["stance.v1"]


def test_a_file_that_is_named_is_read(judge: Judge, used: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "stance.v3.md").write_text(load_task("stance").text + "\n", "utf-8")
    judge("run", folder / "stance.v3.md", "-m", "scripted/hash")
    assert column("SELECT task FROM runs ORDER BY started, rowid") == ["stance.v1", "stance.v3"]


def test_a_study_that_has_used_none_takes_the_newest(judge: Judge, tmp_path: Path) -> None:
    row = {"id": "a", "claim": "Claim a.", "passages": [{"id": "p", "text": "Text a."}]}
    judge("items", "import", "jsonl", write_jsonl(tmp_path / "r.jsonl", [row]), "--dataset", "d")
    assert "note:" not in judge("run", "stance", "-m", "scripted/hash").err
    assert column("SELECT task FROM runs") == ["stance.v2"]
