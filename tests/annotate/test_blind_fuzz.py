"""Generated statements on the connection of a blind session: whatever it is given, nothing hidden comes out,
and the judge of a unit answers only after its first label was committed."""

import sqlite3
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from annotate.leading.lead import close_batch, stop_person
from annotate.sitting.blind import Blind
from annotate.sitting.desk import NO_TIME, Desk
from annotate.sitting.events import Kind
from annotate.store import open_study
from judge.errors import StudyError, UsageError
from tests.tui.studies import CANARY, batch, build, judge_all, labels

STATEMENTS = 250
TABLES = ["labels", "judgements", "items", "passages", "units", "answers", "annotators", "runs", "requests", "tasks", "imports",
          "prompts", "batches", "batch_units", "assignments", "events", "sessions", "exposures", "quarantine", "event_sources",
          "label_imports", "batch_changes", "handed_over", "stopped", "label_studio_projects", "label_studio_tasks",
          "label_studio_annotations", "latest_judgements", "batch_labels", "unit_texts", "sqlite_master", "sqlite_temp_master",
          "temp.sqlite_temp_schema", "pragma_table_list", "sqlite_sequence", "dbstat"]  # fmt: skip
VIEWS = ["my_units", "my_texts", "my_passages", "my_parts", "my_events", "my_key", "my_judge"]
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
    """A statement that would change what a person may not decide."""
    position = rng.choice(["3", "4", "5", "1", "99"])
    return rng.choice(
        [
            f"UPDATE my_units SET locked = 1, status = 'done' WHERE position = {position}",
            f"UPDATE main.assignments SET locked = 1, layers = '{{}}' WHERE position = {position}",
            f"INSERT INTO my_units SELECT * FROM my_units WHERE position = {position}",
            f"INSERT INTO my_judge {select(rng)}",
            f"INSERT OR REPLACE INTO main.labels {select(rng)}",
            f"INSERT INTO main.events SELECT * FROM events WHERE position = {position}",
            "INSERT INTO exposures (person, unit_id, what, how, at) SELECT 'eve', unit_id, 'gold', 'x', 'x' FROM my_units",
            "DELETE FROM main.stopped",
            "UPDATE main.batches SET closed = NULL",
        ]
    )


def whole(path: Path) -> list[object]:
    """Everything in the study that a session could change."""
    tables = ("labels", "judgements", "events", "assignments", "batches", "stopped", "items", "exposures")
    with open_study(path) as store:
        return [store.conn.execute(f"SELECT * FROM {t} ").fetchall() for t in tables]


@pytest.mark.parametrize("gate", [True, False], ids=["as it is", "the authorizer alone"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_generated_statement_shows_what_is_hidden(
    study: Path, monkeypatch: pytest.MonkeyPatch, seed: int, gate: bool
) -> None:
    if not gate:
        monkeypatch.setattr("annotate.sitting.blind._check_sql", lambda sql: sql)
    rng = Random(seed)
    got, before = 0, whole(study)
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        blind = desk._blind
        assert isinstance(blind, Blind)
        for _ in range(STATEMENTS):
            sql = write(rng) if rng.random() < 0.4 else select(rng)
            rows: list[tuple[object, ...]] = []
            with suppress(Exception):
                rows = blind.rows(sql)
            got += bool(rows)
            assert CANARY not in repr(rows), sql
            assert blind.rows("SELECT * FROM my_judge") == [] == blind.rows("SELECT * FROM my_key"), sql
    assert got > 2, "some of them are allowed, or nothing was tried"
    assert whole(study) == before, "a session writes nothing"


def act(rng: Random, desk: Desk) -> None:
    """Something that a person, or a screen that lies for them, may try to commit."""
    position, said = rng.choice([1, 3, 4, 5, 99]), rng.choice(["support", "refute", "perhaps"])
    events = [e.event_id for e in desk._events(3)]
    rng.choice(
        [
            lambda: desk.label(position, "stance", said),
            lambda: desk.label(position, "claim_verdict", said),
            lambda: desk.skip(position),
            lambda: desk.note(position, "mine"),
            lambda: desk.flag(position, None),
            lambda: desk.spans(position, [("passage", 0, 1)]),
            lambda: desk.lock(position, "judge"),
            lambda: desk.revise(position, "stance", said, None),
            desk.undo,
            lambda: desk._commit(
                position, NO_TIME, Kind.UNDO, None, None, None, rng.choice([*events, "none"])
            ),
            lambda: desk._commit(position, NO_TIME, Kind.SHOWN, None, "judge", None),
            lambda: desk._commit(position, NO_TIME, Kind.KEEP, "stance", said, None),
        ]
    )()


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
        for _ in range(STATEMENTS):
            with suppress(StudyError, UsageError):
                act(rng, desk)
        assert held_of(study) == before
        for _ in range(STATEMENTS):
            sql, rows = select(rng), []
            with suppress(StudyError, sqlite3.Error):
                rows = desk._blind.rows(sql)
            assert CANARY not in repr(rows), sql
        with pytest.raises(StudyError, match="stopped your work" if how == "stopped" else "closed"):
            desk.label(5, "stance", "support")
    layer = "stopped" if how == "stopped" else "first"
    assert {key[2] for key in labels(study)} == {layer}


@pytest.mark.parametrize("seed", [1, 2])
def test_after_the_reveal_the_first_label_stands_whatever_is_tried(study: Path, seed: int) -> None:
    rng = Random(seed)
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(3, "stance", "refute")
        desk.lock(3, "judge")
        assert desk.judge(3)["stance"]["value"] == "support"
        for _ in range(STATEMENTS):
            with suppress(StudyError, UsageError):
                act(rng, desk)
            state = desk.state(3)
            assert state.answers == {"stance": "refute"} and state.locked
        locked = {p for (p,) in store.conn.execute("SELECT position FROM events WHERE kind = 'shown'")}
        assert len(locked) > 1, "other units were shown, too"
        units = dict(
            store.conn.execute("SELECT unit_id, position FROM assignments WHERE annotator_id = 'alice'")
        )
    result = {(units[unit], field, layer): value for (unit, field, layer, _), value in labels(study).items()}
    assert result[3, "stance", "first"] == "refute" and {field for _, field, _ in result} == {"stance"}
    assert {p for p, _, layer in result if layer == "revised"} <= locked


@pytest.mark.parametrize(
    ("kind", "value", "undoes", "told"),
    [
        (Kind.LABEL, "support", None, "your first label for this unit is final"),
        (Kind.SKIP, None, None, "your first label for this unit is final"),
        (Kind.UNDO, None, "label", "your first label for this unit is final"),
        (Kind.UNDO, None, "shown", "no such event to undo"),
        (Kind.UNDO, None, "none", "no such event to undo"),
    ],
)
def test_the_log_refuses_what_would_change_a_first_label(
    study: Path, kind: Kind, value: str | None, undoes: str | None, told: str
) -> None:
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(3, "stance", "refute")
        desk.lock(3, "judge")
        before = held_of(study)
        of = {e.kind: e.event_id for e in desk._events(3)}
        with pytest.raises(StudyError, match=told):
            desk._commit(
                3, NO_TIME, kind, "stance" if value else None, value, None, of.get(undoes or "", undoes)
            )
        with pytest.raises(StudyError, match="nothing has been shown"):
            desk._commit(4, NO_TIME, Kind.KEEP, "stance", "support", None)
        with pytest.raises(StudyError, match="answer every question first"):
            desk._commit(4, NO_TIME, Kind.SHOWN, None, "judge", None)
        with pytest.raises(StudyError, match="there is no such unit"):
            desk._commit(99, NO_TIME, Kind.NOTE, None, "x", None)
        assert held_of(study) == before


def test_a_revision_is_a_label_of_the_task_too(study: Path) -> None:
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(3, "stance", "refute")
        desk.lock(3, "judge")
        before = held_of(study)
        with pytest.raises(UsageError, match="'maybe' is not a label of 'stance'"):
            desk.revise(3, "stance", "maybe", None)
        with pytest.raises(UsageError, match="has no question 'relevance'"):
            desk.revise(3, "relevance", "support", None)
        assert held_of(study) == before


def test_what_was_undone_is_not_undone_again(study: Path) -> None:
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(3, "stance", "refute")
        label = desk._events(3)[0].event_id
        desk.undo()
        with pytest.raises(StudyError, match="no such event to undo"):
            desk._commit(3, NO_TIME, Kind.UNDO, None, None, None, label)


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
        with Desk.open(store, "pilot", "alice") as desk:
            desk._commit(4, NO_TIME, Kind.LABEL, "stance", "support", "blind")
    assert {layer for _, _, layer, _ in labels(study)} == {"assisted"}
