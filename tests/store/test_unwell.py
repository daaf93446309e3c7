"""Studies that are damaged, or lie where nothing can be written."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from judge.errors import StudyError
from judge.store import Store, study
from tests.cli.helpers import Done, write_rows


@pytest.fixture
def db(judge: Callable[..., Done], tmp_path: Path) -> Path:
    judge("items", "import", "jsonl", write_rows(tmp_path / "pairs.jsonl"))
    judge("run", "stance", "-m", "scripted/hash")
    return tmp_path / "study.db"


@pytest.mark.parametrize(
    "words",
    [("runs", "show"), ("items", "show"), ("runs", "export"), ("run", "stance", "-m", "scripted/first")],
)
def test_a_damaged_study_is_said_in_one_line(
    db: Path, judge: Callable[..., Done], words: tuple[str, ...]
) -> None:
    data = bytearray(db.read_bytes())
    for page in range(4096 * 2, len(data), 4096):
        data[page : page + 200] = b"\xff" * 200
    db.write_bytes(data)
    done = judge(*words, code=1)
    assert len(done.err.strip().splitlines()) == 1
    assert "malformed" in done.err and "go back to a copy" in done.err


def test_a_study_that_nobody_can_write_is_shown(
    db: Path, judge: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may write everywhere: what the system says of rights is what is replaced."""
    before = judge("runs", "show").out
    left = {p.name for p in db.parent.iterdir()}
    monkeypatch.setattr(study.os, "access", lambda path, mode: mode != os.W_OK)
    assert judge("runs", "show").out == before
    assert {p.name for p in db.parent.iterdir()} == left, "nothing is made beside it"
    assert "readonly" in judge("run", "stance", "-m", "scripted/first", code=1).err
    db.with_name("study.db-wal").write_bytes(b"x" * 100)
    with pytest.raises(StudyError, match="its last changes are in"):
        Store.open(db, create=False)
