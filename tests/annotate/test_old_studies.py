"""A study labelled with an earlier version opens, keeps its labels, and says what it does not know.

`tests/migrations/annotate/mNNN_*.sql` is a dump (`sqlite3 study.db .dump`) of a study whose last migration of
annotate was that one; none is touched again.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from annotate import migrations
from annotate.desk import Desk
from annotate.pace import paces
from annotate.store import open_study
from judge.store import Store
from tests.annotate.agreement_helpers import annotate
from tests.real import ROOT
from tests.store.test_migrations import build, content, schema
from tests.tui.studies import labels

DUMPS = sorted((ROOT / "tests" / "migrations" / "annotate").glob("m*.sql"))


def test_there_is_a_dump() -> None:
    assert [d.stem for d in DUMPS][:1] == ["m003_label_studio"]


@pytest.mark.parametrize("dump", DUMPS, ids=lambda d: d.stem)
def test_an_old_study_opens_and_keeps_its_rows(dump: Path, tmp_path: Path) -> None:
    path = build(dump, tmp_path / "old.db")
    before = content(sqlite3.connect(path))
    columns = {table: names for table, (names, _) in before.items() if table != "_sqlite_migrations"}
    Store.open(tmp_path / "new.db").close()
    with open_study(path) as store, open_study(tmp_path / "new.db") as new:
        after = content(store.conn, columns)
        for table, (_, rows) in after.items():
            assert rows[: len(before[table][1])] == before[table][1], table
        assert schema(store.conn) == schema(new.conn), "an old study ends like a new one"
        applied = "SELECT name FROM _sqlite_migrations WHERE migration_set = 'annotate' ORDER BY id"
        assert [name for (name,) in store.conn.execute(applied)] == list(migrations.NAMES)
        assert store.conn.execute("PRAGMA foreign_key_check").fetchall() == []


def test_of_labels_from_before_it_is_not_known_how_long_they_were_read_nor_what_else_was_seen(
    tmp_path: Path,
) -> None:
    """alice: support, neutral after an undo, a skip; bob: refute."""
    path = build(DUMPS[0], tmp_path / "old.db")
    with open_study(path) as store:
        assert store.conn.execute("SELECT DISTINCT shown_ms FROM events").fetchall() == [(None,)]
        assert paces(store) == {}, "nobody is named for a pace that was not measured"
        assert store.conn.execute("SELECT exposure FROM batches").fetchall() == [("unknown",)]
        with Desk.open(store, "pilot", "alice") as desk:
            assert (desk.load(1).state.note, desk.load(4).state.flag) == ("first", "odd")
            assert desk.next_open() == 4 and desk.load(1).state.spans == [("passage", 0, 7)]
            desk.label(4, "stance", "refute")
    assert sorted(labels(path).values()) == ["neutral", "refute", "support"]
    assert list(labels(path, "bob").values()) == ["refute"]
    told = annotate("report", "-d", path, "--format", "md").output
    assert "drawn before exposures were kept" in told
