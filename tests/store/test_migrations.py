"""A study of every earlier version opens, keeps its rows, and ends like a new one.

`tests/migrations/mNNN_*.sql` is a dump (`sqlite3 study.db .dump`) of a study as the version that ended
with that migration made it. When a migration ships, a dump goes in beside it and is never touched again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from judge import migrations
from judge.store import Store, export, listing
from tests.cli.helpers import Done
from tests.real import ROOT

pytestmark = pytest.mark.migrates

DUMPS = sorted((ROOT / "tests" / "migrations").glob("m*.sql"))
Schema = list[tuple[str, str, str]]


def build(dump: Path, path: Path) -> Path:
    conn = sqlite3.connect(path)
    conn.executescript(dump.read_text("utf-8"))
    conn.close()
    return path


def schema(conn: sqlite3.Connection) -> Schema:
    rows = conn.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")
    return [(kind, name, " ".join(sql.split())) for kind, name, sql in rows]


def content(conn: sqlite3.Connection, columns: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """Every row of every table, reduced to the columns given."""
    tables = [t for (t,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {}
    for table in tables if columns is None else columns:
        names = (
            [c[1] for c in conn.execute(f"PRAGMA table_info({table})")] if columns is None else columns[table]
        )
        found[table] = (names, conn.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall())
    return found


def test_there_is_a_dump_of_the_first_version() -> None:
    assert DUMPS
    assert DUMPS[0].stem == migrations.NAMES[0]


@pytest.mark.parametrize("dump", DUMPS, ids=lambda d: d.stem)
def test_a_migration_that_has_shipped_is_not_edited(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = build(dump, tmp_path / "old.db")
    with closing(sqlite3.connect(old)) as shipped, closing(sqlite3.connect(":memory:")) as today:
        applied = migrations.applied(shipped)
        assert applied[-1] == dump.stem
        assert list(migrations.NAMES[: len(applied)]) == applied, "migrations are only added at the end"
        monkeypatch.setattr(migrations, "NAMES", tuple(applied))
        today.isolation_level = None
        migrations.migrate(today)
        assert schema(today) == schema(shipped)


@pytest.mark.parametrize("dump", DUMPS, ids=lambda d: d.stem)
def test_an_old_study_opens_and_keeps_its_rows(dump: Path, tmp_path: Path) -> None:
    path = build(dump, tmp_path / "old.db")
    with closing(sqlite3.connect(path)) as old:
        before = content(old)
    columns = {table: names for table, (names, _) in before.items() if table != "_sqlite_migrations"}
    with Store.open(path) as store, Store.open(tmp_path / "new.db") as new:
        assert migrations.applied(store.conn) == list(migrations.NAMES)
        after = content(store.conn, columns)
        for table, (_, rows) in after.items():
            # A migration may add rows (units of a new kind, say); none is lost or changed, and none moves.
            assert rows[: len(before[table][1])] == before[table][1], table
        assert schema(store.conn) == schema(new.conn), "an old study ends like a new one"
        assert store.conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert store.conn.execute("PRAGMA foreign_key_check").fetchall() == []
        assert store.conn.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_the_commands_work_on_a_study_of_the_first_version(
    tmp_path: Path, judge: Callable[..., Done]
) -> None:
    build(DUMPS[0], tmp_path / "study.db")
    with Store.open(tmp_path / "study.db") as store:
        assert [(i["item_id"], i["passages"]) for i in listing.list_items(store, None, 10)] == [
            ("v1:moon", 2),
            ("v1:nile", 1),
            ("v1:nile-", 0),
        ]
        assert [(r["task"], r["model"], r["ok"], r["unparsed"]) for r in export.list_runs(store)] == [
            ("stance.v1", "scripted/hash", 3, 0),
            ("raguard_exam.v1", "scripted/hash", 2, 0),
            ("stance.v1", "scripted/garbage", 0, 1),
        ]
    assert "v1:moon/a" in judge("items", "show", "v1:moon").out
    assert "stance.v1" in judge("runs", "show", "last").out
    judge("runs", "export", "last")
    judge("run", "raguard_exam", "-m", "scripted/first")
