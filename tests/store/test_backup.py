"""A backup is one file with everything that was committed, whatever happens to the study."""

import os
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from judge.errors import StudyError, UsageError, WriteFailed
from judge.store import backup
from judge.store.backup import back_up
from judge.store.study import Store
from tests.forks import FORKS, together

ROWS = 200


def _count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as conn:
        return int(conn.execute("SELECT count(*) FROM annotators").fetchone()[0])


def _insert(store: Store, first: int, n: int) -> None:
    with store.transaction() as conn:
        conn.executemany(
            "INSERT INTO annotators (annotator_id, kind, profile) VALUES (?, 'human', '{}')",
            [(f"person {first + k}",) for k in range(n)],
        )


def _insert_and_die(study: Path) -> None:
    _insert(Store.open(study), ROWS, ROWS)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.db"
    with Store.open(path) as store:
        _insert(store, 0, ROWS)
    return path


@together
def test_rows_in_the_log_of_a_killed_process_are_in_the_copy(study: Path, tmp_path: Path) -> None:
    process = FORKS.Process(target=_insert_and_die, args=(study,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert study.with_name("study.db-wal").stat().st_size > 0
    # A copy of the file alone is what users tried first. It shows why the command exists.
    (tmp_path / "plain.db").write_bytes(study.read_bytes())
    assert _count(tmp_path / "plain.db") == ROWS
    back_up(study, tmp_path / "copy.db")
    assert _count(tmp_path / "copy.db") == 2 * ROWS
    assert sorted(p.name for p in tmp_path.glob("copy*")) == ["copy.db"]


def test_a_copy_taken_while_another_command_writes_has_whole_transactions(
    study: Path, tmp_path: Path
) -> None:
    stop = threading.Event()

    def write() -> None:
        with Store.open(study) as store:
            for k in range(1, 10_000):
                if stop.is_set():
                    return
                _insert(store, k * ROWS, ROWS)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for k in range(5):
            back_up(study, tmp_path / f"copy{k}.db")
    finally:
        stop.set()
        writer.join()
    counts = [_count(tmp_path / f"copy{k}.db") for k in range(5)]
    assert [n % ROWS for n in counts] == [0] * 5 and counts == sorted(counts)


def test_what_is_no_study_or_exists_is_refused(study: Path, tmp_path: Path) -> None:
    (tmp_path / "there.db").write_text("mine")
    with pytest.raises(UsageError, match=r"there\.db"):
        back_up(study, tmp_path / "there.db")
    assert (tmp_path / "there.db").read_text() == "mine"
    with pytest.raises(UsageError, match="folder"):
        back_up(study, tmp_path / "no" / "copy.db")
    with pytest.raises(StudyError, match=r"none\.db"):
        back_up(tmp_path / "none.db", tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE t (x)")
    with pytest.raises(StudyError, match="not a study"):
        back_up(tmp_path / "other.db", tmp_path / "copy.db")
    (tmp_path / "text.db").write_text("no database" * 100)
    with pytest.raises(StudyError, match=r"text\.db"):
        back_up(tmp_path / "text.db", tmp_path / "copy.db")
    assert not list(tmp_path.glob("copy*"))


def test_a_failed_copy_leaves_nothing(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: sqlite3.Connection, partial: Path) -> None:
        partial.write_text("half")
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(backup, "_copy", fail)
    with pytest.raises(WriteFailed, match=r"copy\.db: .*full"):
        back_up(study, tmp_path / "copy.db")
    assert not list(tmp_path.glob("copy*"))
