"""Generated statements on the connection of a blind session: whatever it is given, nothing hidden comes out,
and the judge of a unit answers only after its first label was committed."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from annotate.leading.lead import close_batch, stop_person
from annotate.sitting.blind import Blind
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.errors import StudyError
from tests.tui.studies import CANARY, batch, build, judge_all, labels

STATEMENTS = 250
TABLES = ["labels", "judgements", "items", "passages", "units", "answers", "annotators", "runs", "requests", "tasks", "imports",
          "prompts", "batches", "batch_units", "assignments", "events", "sessions", "exposures", "quarantine", "event_sources",
          "label_imports", "batch_changes", "handed_over", "stopped", "label_studio_projects", "label_studio_tasks",
          "label_studio_annotations", "latest_judgements", "batch_labels", "unit_texts", "sqlite_master", "sqlite_temp_master",
          "temp.sqlite_temp_schema", "pragma_table_list", "sqlite_sequence", "dbstat"]  # fmt: skip
VIEWS = ["my_units", "my_texts", "my_passages", "my_parts", "my_events", "my_labels", "my_clearing", "my_standing", "my_seen",
         "my_key", "my_judge"]  # fmt: skip
BORROWED = [*VIEWS, "unit_texts", "batch_labels", "latest_judgements", "x"]
COLUMNS = ["*", "count(*)", "value", "rationale", "reply", "meta", "unit_id", "note", "batch", "annotator_id", "text", "sql",
           "group_concat(value)", "max(rowid)", "answers", "claim"]  # fmt: skip


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A batch of alice with a reveal; a judge, gold, bob's labels, an answer and another batch, all with canaries."""
    path = build(tmp_path / "s.db", items=8, texts={"one": f"SECRET-{CANARY} of a unit of another batch."})
    judge_all(path)
    with open_study(path) as store, store.transaction() as conn:
        conn.execute(
            "INSERT INTO answers VALUES ('a', 'd:0', ?, 'c', ?, '[]', NULL, '{}', '', 'test')",
            [CANARY, f"answer {CANARY}"],
        )
    batch(path, annotators=["alice", f"bob {CANARY}"], reveal=True, training=2, n=6, where="t.position > 0")
    batch(path, "raguard_exam", annotators=[f"bob {CANARY}"], n=6, name=f"other {CANARY}", allow_exposed=True)
    with open_study(path) as store, Desk.open(store, "pilot", f"bob {CANARY}") as desk:
        desk.label(3, "stance", "refute")
        desk.note(3, f"note {CANARY}")
    return path


def select(rng: Random, depth: int = 0) -> str:
    """A SELECT over anything that is there, nested in every way that SQLite reads."""
    source = rng.choice(TABLES if rng.random() < 0.4 else VIEWS)
    if rng.random() < 0.3 and "." not in source:
        source = f"main.{source}"
    column, name = rng.choice(COLUMNS), rng.choice(BORROWED)
    plain = f"SELECT {column} FROM {source}"
    if depth > 2:
        return plain
    inner = select(rng, depth + 1)
    return rng.choice(
        [
            plain,
            f"{plain} AS {name}",
            f"SELECT * FROM ({inner}) AS {name}",
            f"WITH {name} AS ({inner}) SELECT * FROM {name}",
            f"SELECT * FROM (WITH {name} AS ({inner}) SELECT * FROM {name})",
            f"SELECT (WITH RECURSIVE {name} AS ({inner}) SELECT * FROM {name} LIMIT 1)",
            f"SELECT ({inner} LIMIT 1) FROM my_units",
            f"SELECT * FROM my_units WHERE EXISTS ({inner})",
            f"SELECT * FROM my_units AS u JOIN {source} AS {name}",
            f"SELECT position FROM my_units UNION ALL {inner}",
            f"SELECT * FROM my_units ORDER BY ({inner} LIMIT 1)",
            f"{plain} WHERE 1 = (SELECT 1 FROM my_judge LIMIT 1)",
        ]
    )


def write(rng: Random) -> str:
    """An INSERT into what a session may write, with values that the person may not decide."""
    position = rng.choice(["3", "4", "5", "1", "99"])
    kind = rng.choice(["shown", "skip", "undo", "keep", "revise", "note", "span"])
    field, value = rng.choice(["stance", "relevance", "claim_verdict"]), rng.choice(["support", "x", "judge"])
    undoes = rng.choice(["NULL", "'no-such'", "(SELECT event_id FROM my_events LIMIT 1)"])
    event = f"hex(randomblob(8)), {position}, '{kind}', '{field}', '{value}', 'blind', {undoes}, 0, 0, '2026-01-01'"
    standing = (
        f"{position}, 'done', '{{\"stance\":\"support\"}}', '{{}}', '{{}}', '[]', NULL, NULL, 1, 0, 0, NULL"
    )
    return rng.choice(
        [
            f"INSERT INTO my_standing VALUES ({standing})",
            f"INSERT OR REPLACE INTO my_standing SELECT {standing} FROM my_units",
            "INSERT INTO my_events (event_id, position, kind, field, value, reason, undoes, active_ms, idle_ms, at) "
            f"VALUES ({event})",
            f"INSERT INTO my_seen (position) VALUES ({position})",
            f"INSERT INTO my_clearing (position) VALUES ({position})",
            f"UPDATE my_units SET locked = 1, status = 'done' WHERE position = {position}",
            "UPDATE my_standing SET locked = 1",
            f"INSERT INTO my_units SELECT * FROM my_units WHERE position = {position}",
            f"INSERT INTO my_labels (position, field, layer, value) {select(rng)}",
            f"INSERT INTO main.events SELECT * FROM events WHERE position = {position}",
        ]
    )


@pytest.mark.parametrize("gate", [True, False], ids=["as it is", "the authorizer alone"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_generated_statement_shows_what_is_hidden(
    study: Path, monkeypatch: pytest.MonkeyPatch, seed: int, gate: bool
) -> None:
    if not gate:
        monkeypatch.setattr("annotate.sitting.blind._checked", lambda sql: sql)
    rng = Random(seed)
    got = 0
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        blind = desk._blind
        assert isinstance(blind, Blind)
        for _ in range(STATEMENTS):
            sql = write(rng) if rng.random() < 0.4 else select(rng)
            rows: list[tuple[object, ...]] = []
            with suppress(Exception), blind.transaction():
                if sql.startswith(("INSERT", "UPDATE")):
                    blind.write(sql)
                else:
                    rows = blind.rows(sql)
            got += bool(rows)
            assert CANARY not in repr(rows), sql
            assert blind.rows("SELECT * FROM my_judge") == [] == blind.rows("SELECT * FROM my_key"), sql
    assert got > 2, "some of them are allowed, or nothing was tried"
    assert not [k for k in labels(study) if k[2] != "first"] and len(labels(study, f"bob {CANARY}")) == 1
    with open_study(study) as store:
        kinds = {k for (k,) in store.conn.execute("SELECT kind FROM events WHERE annotator_id = 'alice'")}
        assert "shown" not in kinds and "keep" not in kinds


def held_of(path: Path) -> list[object]:
    """What the study holds of alice's work."""
    with open_study(path) as store:
        queries = (
            "SELECT event_id FROM events WHERE annotator_id = 'alice' ORDER BY seq",
            "SELECT * FROM labels WHERE annotator_id = 'alice' ORDER BY 1, 2, 3, 4",
            "SELECT position, status, answers, revised, spans, layers, locked FROM assignments WHERE annotator_id = 'alice'",
        )
        return [store.conn.execute(query).fetchall() for query in queries]


@pytest.mark.parametrize("how", ["stopped", "closed"])
def test_a_session_that_was_stopped_or_closed_meanwhile_changes_nothing(study: Path, how: str) -> None:
    """Before: a stopped person's session could write its labels back as blind, and clear them."""
    rng = Random(7)
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(3, "stance", "refute")
        desk.label(4, "stance", "support")
        with open_study(study) as other:
            if how == "stopped":
                stop_person(other, "pilot", "alice", f"why {CANARY}")
            else:
                close_batch(other, "pilot")
        before = held_of(study)
        again = [
            "INSERT INTO my_labels (position, field, layer, value) VALUES (3, 'stance', 'first', 'support')",
            "INSERT INTO my_labels (position, field, layer, value) VALUES (5, 'stance', 'first', 'support')",
            "INSERT INTO my_clearing (position) VALUES (4)",
            "INSERT INTO my_standing VALUES (3, 'done', '{\"stance\":\"support\"}', '{}', '{}', '[]', NULL, NULL, 0, 0, 0, NULL)",
        ]
        for sql in [*again, *(write(rng) for _ in range(STATEMENTS))]:
            with suppress(StudyError, sqlite3.Error), desk._blind.transaction():
                desk._blind.write(sql)
            assert held_of(study) == before, sql
        for _ in range(STATEMENTS):
            sql, rows = select(rng), []
            with suppress(StudyError, sqlite3.Error):
                rows = desk._blind.rows(sql)
            assert CANARY not in repr(rows), sql
        with pytest.raises(StudyError, match="stopped your work" if how == "stopped" else "closed"):
            desk.label(5, "stance", "support")
    layer = "stopped" if how == "stopped" else "first"
    assert {key[2] for key in labels(study)} == {layer}


def test_after_the_reveal_the_first_label_stands_whatever_is_inserted(study: Path) -> None:
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(3, "stance", "refute")
        desk.lock(3, "judge")
        assert desk.judge(3)["stance"]["value"] == "support"
        blind = desk._blind
        said = "'2026-01-01'"
        for sql in (
            "INSERT INTO my_standing SELECT position, 'done', '{\"stance\":\"support\"}', '{}', '{}', '[]', NULL, NULL, 0, 0, 0, "
            f"{said} FROM my_units WHERE position = 3",
            "INSERT INTO my_clearing (position) VALUES (3)",
            "INSERT INTO my_labels (position, field, layer, value) VALUES (3, 'stance', 'first', 'support')",
            "INSERT INTO my_labels (position, field, layer, value) VALUES (4, 'stance', 'revised', 'support')",
            "INSERT INTO my_labels (position, field, layer, value) VALUES (4, 'other', 'first', 'support')",
            "INSERT INTO my_events (event_id, position, kind, field, value, active_ms, idle_ms, at) "
            f"VALUES ('e1', 3, 'label', 'stance', 'support', 0, 0, {said})",
            "INSERT INTO my_events (event_id, position, kind, undoes, active_ms, idle_ms, at) "
            f"SELECT 'e2', 3, 'undo', event_id, 0, 0, {said} FROM my_events WHERE kind = 'label'",
            "INSERT INTO my_events (event_id, position, kind, field, value, active_ms, idle_ms, at) "
            f"VALUES ('e3', 4, 'label', 'stance', 'perhaps', 0, 0, {said})",
        ):
            with suppress(Exception), blind.transaction():
                blind.write(sql)
        state = desk.state(3)
        assert state.answers == {"stance": "refute"} and state.locked
    found = {(field, layer): value for (_, field, layer, _), value in labels(study).items()}
    assert found == {("stance", "first"): "refute"}


def test_a_label_cannot_call_itself_blind(study: Path) -> None:
    with open_study(study) as store:
        unit = store.conn.execute(
            "SELECT unit_id FROM assignments WHERE batch = 'pilot' AND annotator_id = 'alice' AND position = 4"
        ).fetchone()[0]
        with store.transaction() as conn:
            conn.execute(
                "INSERT INTO exposures (person, unit_id, what, how, at) VALUES ('alice', ?, 'judge', 'import', '2020-01-01')",
                [unit],
            )
        with Desk.open(store, "pilot", "alice") as desk, desk._blind.transaction():
            desk._blind.write(
                "INSERT INTO my_events (event_id, position, kind, field, value, reason, active_ms, idle_ms, at) "
                "VALUES ('e', 4, 'label', 'stance', 'support', 'blind', 0, 0, '2026-01-01')"
            )
            desk._blind.write(
                "INSERT INTO my_labels (position, field, layer, value) VALUES (4, 'stance', 'first', 'support')"
            )
    assert {layer for _, _, layer, _ in labels(study)} == {"assisted"}
