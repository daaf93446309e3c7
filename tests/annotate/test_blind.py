"""A blind session cannot be talked into showing judgements, gold, meta or other people's labels."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from annotate.sitting.blind import Blind
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.errors import AdjudgeError, StudyError
from judge.store import Store
from tests.annotate.test_blind_fuzz import TABLES, VIEWS
from tests.tui.studies import CANARY, batch, build, drawn, judge_all, labels


@cache
def _study() -> bytes:
    with TemporaryDirectory() as folder:
        path = build(Path(folder) / "s.db", items=8)
        judge_all(path)
        batch(path, annotators=["alice", "bob"], reveal=True, training=2, n=10)
        with open_study(path) as store, Desk.open(store, "pilot", "bob") as desk:
            desk.label(3, "stance", "refute")
        return path.read_bytes()


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Made once; each test has a copy of its own."""
    path = tmp_path / "s.db"
    path.write_bytes(_study())
    return path


READS = [
    *(f"SELECT * FROM {table}" for table in TABLES),
    "SELECT value FROM main.labels WHERE annotator_id = 'gold'",
    "SELECT count(*) FROM labels",
    "SELECT 1 FROM labels WHERE value = 'support'",
    "SELECT reply FROM latest_judgements",
    "SELECT count(*) FROM judgements",
    "SELECT meta FROM items",
    "SELECT reference_answers FROM my_texts",
    "SELECT meta FROM passages",
    "SELECT sql FROM sqlite_master",
    "SELECT sql FROM sqlite_schema",
    "SELECT sql FROM sqlite_temp_master",
    "SELECT sql FROM temp.sqlite_temp_schema",
    "SELECT * FROM pragma_table_info('labels')",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM sqlite_dbpage",
    "SELECT position FROM my_units UNION SELECT value FROM labels",
    "SELECT (SELECT value FROM labels LIMIT 1) FROM my_units",
    "SELECT * FROM my_units AS u JOIN labels AS l ON l.unit_id = u.unit_id",
    "SELECT * FROM my_units WHERE unit_id IN (SELECT unit_id FROM labels WHERE value = 'support')",
    "SELECT * FROM my_units ORDER BY (SELECT value FROM labels LIMIT 1)",
    "SELECT * FROM (SELECT * FROM labels) AS my_units",
    "WITH my_units AS (SELECT * FROM main.labels) SELECT * FROM my_units",
    "SELECT * FROM (WITH my_units AS (SELECT * FROM main.labels) SELECT * FROM my_units)",
    "SELECT * FROM (WITH my_judge AS (SELECT * FROM main.labels) SELECT * FROM my_judge)",
    "SELECT * FROM (WITH unit_texts AS (SELECT value FROM main.labels) SELECT * FROM unit_texts)",
    "SELECT * FROM (WITH events_closed AS (SELECT value FROM main.labels) SELECT * FROM events_closed)",
    "SELECT (WITH my_key AS (SELECT value FROM main.labels) SELECT value FROM my_key)",
    "SELECT * FROM (WITH my_parts AS (SELECT value FROM main.labels) SELECT * FROM my_parts)",
    "SELECT * FROM my_passages AS p JOIN labels AS l ON l.unit_id = p.passage_id",
    "SELECT * FROM my_passages AS p WHERE EXISTS (SELECT 1 FROM labels WHERE unit_id = p.passage_id)",
    "EXPLAIN SELECT * FROM my_judge",
    "EXPLAIN QUERY PLAN SELECT * FROM my_judge ORDER BY value",
    "/**/ EXPLAIN QUERY PLAN SELECT * FROM my_judge",
    "PRAGMA table_info(labels)",
    "PRAGMA writable_schema = 1",
    "PRAGMA database_list",
    "ATTACH 'x.db' AS x",
    "DETACH main",
    "VACUUM INTO 'copy.db'",
    "SELECT load_extension('x')",
    "SELECT writefile('x', 'y')",
    "SELECT edit('x')",
    "SELECT 1; SELECT * FROM labels",
]
WRITES = [
    "CREATE TEMP VIEW v AS SELECT * FROM labels",
    "CREATE TABLE t AS SELECT * FROM labels",
    "CREATE TEMP TABLE t AS SELECT * FROM labels",
    "CREATE TEMP TRIGGER t INSTEAD OF INSERT ON my_events BEGIN SELECT * FROM labels; END",
    "DROP VIEW my_units",
    "DROP TRIGGER events_closed",
    "ALTER TABLE labels RENAME TO x",
    "INSERT INTO labels VALUES ('d:0/p0', 'stance', 'bob', 'first', 0, 'support', NULL, NULL, NULL)",
    "INSERT OR IGNORE INTO labels SELECT * FROM labels",
    "UPDATE labels SET value = 'support' RETURNING value",
    "DELETE FROM labels WHERE annotator_id = 'gold' AND value = 'support'",
    "INSERT INTO my_labels (position, field, layer, value) SELECT 3, 'stance', 'first', value FROM labels",
    "INSERT INTO my_events (position, kind, value) SELECT 3, 'note', reply FROM judgements",
    "INSERT INTO my_events (position, kind, value) VALUES (3, 'note', (SELECT meta FROM items LIMIT 1))",
    "UPDATE my_units SET note = (SELECT value FROM labels LIMIT 1) WHERE position = 3",
    "UPDATE my_units SET note = l.value FROM labels AS l WHERE my_units.position = 3",
    "DELETE FROM events",
    "UPDATE events SET value = 'x'",
    "UPDATE batches SET closed = 'x'",
    "DELETE FROM my_units",
    "COMMIT",
]


def blind_of(desk: Desk) -> Blind:
    result = desk._blind
    assert isinstance(result, Blind)
    return result


@pytest.mark.parametrize("gate", [True, False], ids=["as it is", "the authorizer alone"])
@pytest.mark.parametrize("sql", [*READS, *WRITES])
def test_no_statement_reads_what_is_hidden_or_writes(
    study: Path, sql: str, gate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with the check of the first word gone, nothing hidden comes out (EXPLAIN shows plans, not rows)."""
    if not gate:
        monkeypatch.setattr("annotate.sitting.blind._check_sql", lambda sql: sql)
    before = dump(study)
    error, rows = "", []
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        try:
            rows = blind_of(desk).rows(sql)
        except Exception as e:
            error = str(e)
    assert dump(study) == before and CANARY not in error and "support" not in error
    assert error if gate else not rows or "EXPLAIN" in sql, rows


def dump(path: Path) -> list[tuple[object, ...]]:
    with Store.open(path) as store:
        tables = ("labels", "judgements", "events", "assignments", "batches", "items")
        return [row for t in tables for row in store.conn.execute(f"SELECT * FROM {t} ORDER BY 1, 2, 3, 4")]


def test_everything_a_session_can_read_holds_no_canary(study: Path) -> None:
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        seen = [row for view in VIEWS for row in blind_of(desk).rows(f"SELECT * FROM {view}")]
        assert seen and CANARY not in repr(seen)
        with pytest.raises(AdjudgeError, match="not allowed in a blind session"):
            blind_of(desk).rows("SELECT * FROM labels")
        assert not blind_of(desk).rows("SELECT * FROM my_judge")
        assert not blind_of(desk).rows("SELECT * FROM my_key")
        assert not blind_of(desk).rows("SELECT * FROM my_events"), "bob's event"
        assert {r[0] for r in blind_of(desk).rows("SELECT status FROM my_units")} == {"open"}
        roles = {r[0] for r in blind_of(desk).rows("SELECT role FROM my_units")}
        assert roles == {"unit", "training"}


def test_the_judge_and_the_key_come_after_the_commit_of_that_unit(study: Path) -> None:
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        trained, unit = 1, 3
        with pytest.raises(StudyError, match="answer every question first"):
            desk.lock(unit, "judge")
        desk.label(unit, "stance", "refute")
        assert desk.judge(unit) == {}
        desk.lock(unit, "judge")
        assert desk.judge(unit)["stance"]["value"] == "support"
        assert [r[0] for r in blind_of(desk).rows("SELECT DISTINCT position FROM my_judge")] == [unit]
        desk.label(trained, "stance", "refute")
        assert desk.key(trained) == {}
        desk.lock(trained, "key")
        assert set(desk.key(trained)) == {"stance"} and desk.key(2) == {}
        with pytest.raises(StudyError, match="first label"):
            desk.label(unit, "stance", "support")


def test_what_a_person_does_reaches_only_the_own_rows(study: Path) -> None:
    others = "SELECT * FROM {} WHERE annotator_id <> 'alice' ORDER BY 1, 2, 3, 4"
    tables = ("labels", "events", "assignments")
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        before = [store.conn.execute(others.format(t)).fetchall() for t in tables]
        for position in range(1, desk.total + 1):
            desk.label(position, "stance", "support")
            desk.note(position, "mine")
        assert [store.conn.execute(others.format(t)).fetchall() for t in tables] == before
        noted = store.conn.execute("SELECT DISTINCT annotator_id FROM assignments WHERE note = 'mine'")
        assert noted.fetchall() == [("alice",)]
    assert labels(study, "bob") and labels(study, "gold")


def test_training_and_attention_answers_are_no_labels_of_the_study(study: Path) -> None:
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(1, "stance", "support")
    assert labels(study) == {}


def test_a_role_that_needs_gold_is_derived_without_showing_it(tmp_path: Path) -> None:
    path = drawn(tmp_path, "raguard_exam", n=4)
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(1, desk.fields[0], desk.task.domain(desk.fields[0])[0])
    got = {field: value for (_, field, _, _), value in labels(path).items()}
    assert got["raguard.role"] in ("supporting", "misleading")
