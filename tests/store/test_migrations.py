"""A study of adjudge 0.2.0 opens, keeps its rows and its report, and ends like a new one; an older one is refused.

`tests/migrations/v0_2_0.sql` is a dump (`sqlite3 study.db .dump`) of a study that the commands of 0.2.0 made: four runs
and a derived one, a split, a job, a ranking by embeddings, two batches and one on a Label Studio server. Beside it is what
0.2.0 measured in it: the measures of `annotate report --task stance --json`, one a line.
"""

import itertools
import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from annotate.exchange.label_studio import link as links
from annotate.leading.progress import changes
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge import migrations
from judge.errors import StudyError
from judge.migrations import MIGRATIONS_OF_0_2_0
from judge.store import Store, label_sources
from tests.annotate.agreement_helpers import annotate as annotate_command
from tests.cli.helpers import Done
from tests.real import ROOT

pytestmark = pytest.mark.migrates

DUMP = ROOT / "tests" / "migrations" / "v0_2_0.sql"
MEASURED = DUMP.with_suffix(".measures.jsonl")
SETS = ("judge", "annotate")
Schema = list[tuple[str, str, str]]


def build(path: Path) -> Path:
    """The study of 0.2.0."""
    with closing(sqlite3.connect(path)) as conn:
        # Foreign keys are off in a new connection, so that the order of the tables does not matter.
        conn.executescript(f"BEGIN; {DUMP.read_text('utf-8')} COMMIT;")
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return build(tmp_path / "study.db")


def schema(conn: sqlite3.Connection) -> Schema:
    """Type, name and statement of everything in the schema, whatever the white space.

    A column that was added later stands behind a comma of its own, and names may be quoted.
    """
    rows = conn.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")
    return [(kind, name, re.sub(r'[\s"]+', "", sql)) for kind, name, sql in rows]


def content(conn: sqlite3.Connection) -> dict[str, list[Any]]:
    """Every row of every table but those that the step to the baseline changes."""
    tables = [t for (t,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        table: conn.execute(f"SELECT * FROM {table}").fetchall()
        for table in tables
        if table not in ("_sqlite_migrations", "embeddings")
    }


def everything(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as conn:
        return list(conn.iterdump())


def test_a_study_of_0_2_0_keeps_its_rows_and_ends_like_a_new_one(old: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(old)) as before:
        rows = content(before)
        for of, (first, last) in MIGRATIONS_OF_0_2_0.items():
            migrated = migrations.list_applied(before, of)
            assert (migrated[0], migrated[-1]) == (first, last)
    empty = {table for table, migrated in rows.items() if not migrated}
    assert empty == {"handed_over", "split_looks"}, "every other table has rows to lose"
    Store.open(tmp_path / "new.db").close()
    with open_study(old) as store, open_study(tmp_path / "new.db") as new:
        migrated = content(store.conn)
        assert (
            migrated.pop("label_changes") == migrated.pop("label_resolutions") == migrated.pop("drafts") == []
        )
        assert migrated.pop("nuggets") == migrated.pop("label_rulings") == []
        later = ("corrections", "corrected_units", "given_for_corrected", "guideline_changes")
        assert [migrated.pop(table) for table in later] == [[], [], [], []]
        # The migration that copies earlier rulings begins their numbers.
        migrated["sqlite_sequence"].remove(("label_rulings", 0))
        assert {batch for batch, _ in migrated.pop("batch_judges")} == {"pilot", "second", "studio"}
        assert migrated.pop("imported_labels") == [], "a batch explains every label of this study"
        assert len(migrated.pop("label_sources")) == 13, "what people said, by source"
        # The last column of a label says where it came from, which 0.2.0 did not.
        assert {row[-1].split(":")[0] for row in migrated["labels"]} >= {'["run"]', '["items', '["batch'}
        # Columns that came since stand behind those of 0.2.0.
        for table, before in rows.items():
            migrated[table] = (
                sorted((row[: len(before[0])] for row in migrated[table]), key=repr) if before else []
            )
        assert migrated == {table: sorted(before, key=repr) for table, before in rows.items()}
        assert schema(store.conn) == schema(new.conn)
        assert migrations.list_applied(store.conn, "judge") == list(migrations.NAMES["judge"])
        assert migrations.list_applied(store.conn, "annotate") == list(migrations.NAMES["annotate"])
        assert store.conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert store.conn.execute("PRAGMA foreign_key_check").fetchall() == []
        assert store.conn.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_labels_that_were_lost_or_contradict_are_listed_by_whoever_opens_it_first(
    old: Path, caplog: pytest.LogCaptureFixture
) -> None:
    query = (
        "SELECT unit_id, annotator_id, value FROM labels WHERE annotator_id = 'alice' AND field = 'stance' "
        "AND layer = 'first' AND repeat = 0 ORDER BY 1"
    )
    with closing(sqlite3.connect(old)) as conn, conn:
        lost, contradicted, *_ = conn.execute(query).fetchall()
        # 0.2.0 cleared what a log still has, and kept two answers of one person in two layers.
        conn.execute("DELETE FROM labels WHERE unit_id = ? AND annotator_id = 'alice'", [lost[0]])
        other = "support" if contradicted[2] != "support" else "refute"
        insert = "INSERT INTO labels (unit_id, field, annotator_id, layer, value) VALUES (?, 'stance', 'alice', 'assisted', ?)"
        conn.execute(insert, [contradicted[0], other])
    with Store.open(old) as store:
        warnings = [record.getMessage() for record in caplog.records]
        counts = dict(
            store.conn.execute(
                "SELECT unit_id, value FROM labels WHERE annotator_id = 'alice' AND repeat = 0"
            )
        )
        assert counts[lost[0]] == lost[2] and contradicted[0] not in counts
        conflicts = [c.unit for c in label_sources.conflicts(store.conn)]
    assert conflicts == [contradicted[0]]
    assert (
        f"alice's label for 'stance' of '{lost[0]}' was unlabelled in 0.2.0 and is now {lost[2]}" in warnings
    )
    assert any(f"'{contradicted[0]}'" in line and line.endswith("is now unlabelled") for line in warnings)
    assert "2 labels have a different status" in warnings[-1] and len(warnings) == 3
    caplog.clear()
    open_study(old).close()
    assert not caplog.records


def test_its_report_has_the_same_numbers_to_the_last_digit(old: Path) -> None:
    report = json.loads(annotate_command("report", "--task", "stance", "--json", "-d", old).stdout)
    lines = [json.loads(line) for line in MEASURED.read_text("utf-8").splitlines()]
    # The rule of the verdict has changed since 0.2.0: gold alone decides nothing beside a batch. Its agreement with the
    # judge stands in the summary since then. All values that 0.2.0 measured elsewhere are the same. Intervals whose variance
    # few questions carry are wider since then.
    expected = [m for m in lines if m["section"] != "verdict"]
    assert len(expected) == 156
    measured = [_without_wording(m, expected[0]) for m in report["measures"]]
    bounds = ("low", "high")
    narrow = [{k: v for k, v in m.items() if k not in bounds} for m in measured]
    for m in expected:
        wanted = {k: v for k, v in _without_wording(m, m).items() if k not in bounds}
        same = [measured[i] for i, other in enumerate(narrow) if other == wanted]
        assert any(
            (m["low"] is None and new["low"] is None) or (new["low"] <= m["low"] and m["high"] <= new["high"])
            for new in same
        ), m


def _without_wording(measure: dict[str, object], names: Iterable[str]) -> dict[str, object]:
    """The fields `names` of a measure; of its reason only whether there is one."""
    return {name: measure.get(name) for name in names} | {"reason": measure.get("reason") is not None}


def test_its_runs_are_resumed_and_ask_for_nothing_again(old: Path, judge: Callable[..., Done]) -> None:
    words = [
        *["-m", "scripted/hash", "--answers", "codes", "--option", "logprobs=1", "--where"],
        "dataset = 'd'",
    ]
    with closing(sqlite3.connect(old)) as conn:
        before = conn.execute("SELECT run_id, count(*) FROM judgements GROUP BY 1").fetchall()
    judge("run", "stance", *words)
    with closing(sqlite3.connect(old)) as conn:
        assert conn.execute("SELECT run_id, count(*) FROM judgements GROUP BY 1").fetchall() == before
    judge("runs", "show", "last")
    judge("runs", "export", "last")


def test_its_batches_and_its_label_studio_project_go_on(old: Path) -> None:
    with open_study(old) as store:
        (link,) = links.read_links(store, "studio", "http://127.0.0.1:8080").values()
        assert (link.project, link.person, link.assisted) == (1, "", False)
        assert sorted(links.tasks_of(store, "studio", link)) == [1, 2]
        with pytest.raises(StudyError, match="failed training"):
            Desk.open(store, "second", "carol")
        assert [c["what"] for c in changes(store, "second")] == ["stop"]
        with Desk.open(store, "pilot", "bob") as desk:
            state = desk.load(desk.total).state
            assert (state.flag, state.skipped) == ("odd", True)
            desk.label(desk.total, "stance", "refute")
    # A record of mallory, who is none of the batch's people, waits in the quarantine until the lead says whose it is.
    annotate_command("quarantine", "drop", "1", "-d", old)
    with open_study(old) as store:
        assert store.conn.execute("SELECT annotator, status FROM quarantine").fetchall() == [
            ("mallory", "dropped")
        ]


@pytest.mark.parametrize("of", SETS)
def test_an_older_study_is_refused_and_nothing_is_written(old: Path, of: str) -> None:
    """One set of 0.2.0 and the other older: what came of a study that only one of the two commands had opened."""
    with closing(sqlite3.connect(old)) as conn, conn:
        conn.execute("DELETE FROM _sqlite_migrations WHERE name = ?", [MIGRATIONS_OF_0_2_0[of][1]])
    kept = everything(old)
    for opened in (Store.open, open_study):
        with pytest.raises(StudyError) as caught:
            opened(old)
        assert str(caught.value) == (
            f"{old}: created by a version of adjudge before 0.2.0; migrate it with adjudge 0.2.0 first: "
            f"annotate batches show -d {old}"
        )
    assert everything(old) == kept


class Stopped(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("opened", [Store.open, open_study])
def test_a_migration_that_is_killed_at_any_statement_leaves_the_study_of_0_2_0(
    old: Path, opened: Callable[[Path], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sets are one transaction: a study with one of them migrated is opened by no version before this one."""
    kept = everything(old)
    for n in itertools.count():
        left = n

        def execute(file: Path, db: Any) -> None:
            nonlocal left
            for statement in file.read_text("utf-8").split("\n\n"):
                if not left:
                    raise Stopped
                left -= 1
                db.execute(statement)

        with monkeypatch.context() as patched:
            patched.setattr(migrations, "execute", execute)
            try:
                opened(old).close()
            except Stopped:
                assert everything(old) == kept
            else:
                break
    # from_0_2_0 (3 and 2 statements), then m002 and later of both sets: the last is run when all others were.
    assert n > 30
    with closing(sqlite3.connect(old)) as conn:
        assert [migrations.list_applied(conn, s) for s in SETS] == [list(migrations.NAMES[s]) for s in SETS]


def test_a_migration_that_is_killed_after_its_last_statement_leaves_the_study_of_0_2_0(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = everything(old)
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "_changes", lambda conn: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            Store.open(old)
    assert everything(old) == kept


def test_a_study_without_batches_of_0_2_0_is_migrated_too(old: Path) -> None:
    with closing(sqlite3.connect(old)) as conn:
        tables = [
            name
            for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if f"CREATE TABLE {name} "
            in (migrations.SETS["annotate"] / "m001_baseline.sql").read_text("utf-8")
        ]
        conn.execute("DROP VIEW batch_labels")
        for table in tables:
            conn.execute(f"DROP TABLE {table}")
        conn.execute("DELETE FROM _sqlite_migrations WHERE migration_set = 'annotate'")
        conn.commit()
    assert "batches" in tables
    with Store.open(old) as store:
        assert [migrations.list_applied(store.conn, s) for s in SETS] == [
            list(migrations.NAMES[s]) for s in SETS
        ]
        assert store.conn.execute("SELECT count(*) FROM batches").fetchone() == (0,)


def test_a_later_migration_comes_after_the_step(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in migrations.FOLDER.glob("*.sql"):
        (tmp_path / file.name).write_text(file.read_text("utf-8"))
    (tmp_path / "m999_later.sql").write_text("ALTER TABLE items ADD COLUMN later TEXT;\n")
    monkeypatch.setitem(migrations.SETS, "judge", tmp_path)
    monkeypatch.setitem(migrations.NAMES, "judge", migrations.names(tmp_path))
    for path in (old, tmp_path / "new.db"):
        with Store.open(path) as store:
            assert migrations.list_applied(store.conn)[-1] == "m999_later"
            assert store.conn.execute("SELECT later FROM items LIMIT 1").fetchone() in (None, (None,))
