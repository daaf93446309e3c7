"""A study labelled with an earlier version opens, keeps its labels, and says what it does not know.

`tests/migrations/annotate/mNNN_*.sql` is a dump (`sqlite3 study.db .dump`) of a study whose last migration of
annotate was that one; none is touched again.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from annotate import migrations
from annotate.exchange.label_studio import link as links
from annotate.leading.haste import paces
from annotate.leading.lead import resume_person
from annotate.leading.progress import changes
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.errors import StudyError
from judge.store import Store
from tests.annotate.agreement_helpers import annotate
from tests.real import ROOT
from tests.store.test_migrations import build, content, schema
from tests.tui.studies import labels

DUMPS = sorted((ROOT / "tests" / "migrations" / "annotate").glob("m*.sql"))


def test_there_are_dumps() -> None:
    assert [d.stem for d in DUMPS][:3] == ["m003_label_studio", "m005_intake", "m006_leads"]


@pytest.mark.parametrize("dump", DUMPS, ids=lambda d: d.stem)
def test_an_old_study_opens_and_keeps_its_rows(dump: Path, tmp_path: Path) -> None:
    path = build(dump, tmp_path / "old.db")
    with closing(sqlite3.connect(path)) as old:
        before = content(old)
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


def test_what_a_quarantine_and_a_server_held_is_still_theirs(tmp_path: Path) -> None:
    """From m005 on: mallory's record waits, project 3 holds six tasks, alice's annotation 5 is of its unit."""
    for number, dump in enumerate(DUMPS[1:]):
        path = build(dump, tmp_path / f"old{number}.db")
        with open_study(path) as store:
            (link,) = links.all_stored(store, "pilot", "http://127.0.0.1:8080").values()
            assert (link.project, link.person, link.assisted) == (3, "", False)
            tasks = links.tasks_of(store, "pilot", link)
            assert sorted(tasks) == [11, 12, 13, 14, 15, 16] and {t.repeat for t in tasks.values()} == {0}
            assert [bool(tasks[t].pulled) for t in sorted(tasks)] == [True, True, False, False, False, False]
            rows = store.conn.execute(
                "SELECT annotation, task, unit_id, repeat, annotator_id FROM label_studio_annotations"
            )
            assert rows.fetchall() == [(5, 11, tasks[11].unit, 0, "alice")]
        annotate("quarantine", "accept", "1", "--as", "alice", "--blind", "-d", path)
        assert labels(path)[("d:3/p1", "stance", "first", 0)] == "support"


def test_who_was_stopped_and_who_gave_units_away_stays_so(tmp_path: Path) -> None:
    """m006: bob was stopped after his three open units went to dave; carol joined."""
    path = build(next(d for d in DUMPS if d.stem == "m006_leads"), tmp_path / "old.db")
    with open_study(path) as store:
        with pytest.raises(StudyError, match="failed training"):
            Desk.open(store, "pilot", "bob")
        assert {layer for _, _, layer, _ in labels(path, "bob")} == {"stopped"}
        resume_person(store, "pilot", "bob")
        assert {layer for _, _, layer, _ in labels(path, "bob")} == {"first"}
        with Desk.open(store, "pilot", "dave") as desk:
            assert desk.total == 3
        assert [c["what"] for c in changes(store, "pilot")] == [
            "add",
            "hand over",
            "policy",
            "stop",
            "resume",
        ]
