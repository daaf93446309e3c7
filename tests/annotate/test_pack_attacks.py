"""Packs that were tampered with, and packs merged in every order: no label on another unit than it was given to."""

import itertools
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from annotate.exchange.gate import accept
from annotate.leading.progress import show_batch
from annotate.packing.checks import _check_label
from annotate.packing.conflicts import settle_conflict
from annotate.packing.merge import merge
from annotate.packing.pack import pack
from annotate.sitting.desk import Desk
from annotate.sitting.events import Event, Kind
from annotate.store import open_study
from judge.errors import BadInput, StudyError
from judge.prompts.load import parse_task
from tests.annotate.test_lead import NUMBER
from tests.store.helpers import without_trigger
from tests.tui.studies import drawn, labels

SAID = ("support", "refute", "neutral", "support")


def packed(tmp_path: Path, person: str, path: Path) -> dict[str, str]:
    """A pack of the person's units, each labelled; unit -> label."""
    with open_study(path) as store:
        pack(store, "pilot", person, tmp_path / f"{person}.db")
    meant = {}
    with open_study(tmp_path / f"{person}.db") as store, Desk.open(store, "pilot", person) as desk:
        for position, value in enumerate(SAID, 1):
            meant[desk.load(position).unit_id] = value
            desk.label(position, "stance", value)
    return meant


NEXT = "(SELECT max(position) FROM events) + 1"
ODD = ("NULL", "''", "'refute'", "-1", "7e300", "x'00'", "'2020-01-01'", NEXT, "1")


@pytest.mark.parametrize(
    "column",
    ["event_id", "batch", "annotator_id", "position", "kind", "field", "value", "reason", "undoes", "active_ms",
     "idle_ms", "shown_ms", "session_id", "at"],
)  # fmt: skip
def test_a_pack_tampered_in_a_column_of_its_log(tmp_path: Path, column: str) -> None:
    """Whatever a cell is made to be: refused and nothing comes in, or every label is one that stands in the file."""
    path = drawn(tmp_path, items=2, n=4)
    packed(tmp_path, "alice", path)
    for number, odd in enumerate(ODD):
        study, file = tmp_path / f"s{number}.db", tmp_path / f"p{number}.db"
        shutil.copy(path, study)
        shutil.copy(tmp_path / "alice.db", file)
        with closing(sqlite3.connect(file)) as conn:
            try:
                with without_trigger(conn, "events_keep"):
                    conn.execute(f"UPDATE events SET {column} = {odd} WHERE seq = 2")
            except sqlite3.IntegrityError:
                continue  # the file itself refuses this one
            conn.commit()
            query = "SELECT a.unit_id, e.value FROM events AS e JOIN assignments AS a USING (position) WHERE e.field = 'stance' ORDER BY e.seq"
            told = dict(conn.execute(query).fetchall())
        with open_study(study) as store:
            try:
                merge(store, file)
            except (BadInput, StudyError) as e:
                assert len(str(e).splitlines()) == 1
                assert store.conn.execute("SELECT count(*) FROM events").fetchone() == (0,), odd
            else:
                assert {u: v for (u, *_), v in labels(study).items()} == told, odd
                show_batch(store, "pilot")  # and what came in can be counted


CHANGES = [
    ("UPDATE assignments SET unit_id = (SELECT unit_id FROM assignments WHERE position = 3) WHERE position = 2", "differ"),
    ("UPDATE assignments SET position = CASE position WHEN 1 THEN 102 WHEN 2 THEN 101 ELSE position END", "differ"),
    ("DELETE FROM assignments WHERE position = 2", "differ"),
    ("UPDATE batches SET packed_for = 'bob'", "differ"),
    ("UPDATE sessions SET person = 'bob'", "session"),
    ("UPDATE sessions SET version = '9 import csv'", "session"),
    ("UPDATE sessions SET version = x'00'", "session"),
    ("UPDATE sessions SET started = 'soon'", "session"),
    ("UPDATE sessions SET ended = 7", "session"),
]  # fmt: skip


def test_a_pack_whose_queue_or_sessions_were_changed_is_refused(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=2, n=4, annotators=["alice", "bob"])
    packed(tmp_path, "alice", path)
    for number, (change, told) in enumerate(CHANGES):
        file = tmp_path / f"p{number}.db"
        shutil.copy(tmp_path / "alice.db", file)
        with closing(sqlite3.connect(file)) as conn, conn:
            conn.execute(change)
        with open_study(path) as store, pytest.raises(BadInput, match=told):
            merge(store, file)
        assert labels(path) == labels(path, "bob") == {}, change


ODD_VALUES = [
    ("UPDATE sessions SET version = CAST(x'ff' AS TEXT)", "the table 'sessions' cannot be read"),
    ("UPDATE batches SET packed_for = CAST(x'ff' AS TEXT)", "the table 'batches' cannot be read"),
    ("UPDATE batches SET options = '[1]'", "does not write"),
    ("UPDATE batches SET options = '-1'", "does not write"),
    ("UPDATE tasks SET template = x'ff00'", "does not write"),
]


@pytest.mark.parametrize(("change", "told"), ODD_VALUES)
def test_a_pack_with_values_of_other_types_is_named(tmp_path: Path, change: str, told: str) -> None:
    """Before: an unexpected error, or the study was called damaged, although the pack was."""
    path = drawn(tmp_path, items=2, n=4)
    packed(tmp_path, "alice", path)
    file = tmp_path / "alice.db"
    with closing(sqlite3.connect(file)) as conn, conn:
        conn.execute(change)
    with open_study(path) as store, pytest.raises(BadInput, match=told) as refused:
        merge(store, file)
    assert refused.value.path == str(file)
    assert labels(path) == {}


def test_two_packs_in_both_orders_and_again(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=2, n=4, annotators=["alice", "bob"])
    meant = {person: packed(tmp_path, person, path) for person in ("alice", "bob")}
    for n, order in enumerate(itertools.permutations(meant)):
        study = tmp_path / f"o{n}.db"
        shutil.copy(path, study)
        with open_study(study) as store:
            for person in (*order, *order):
                merge(store, tmp_path / f"{person}.db")
        for person, said in meant.items():
            assert labels(study, person) == {(u, "stance", "first", 0): v for u, v in said.items()}


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ("2020-01-01T00:00:00.000Z", "before the pack was made"),
        ("2999-01-01T00:00:00.000Z", "2999-01-01"),
    ],
)
def test_a_label_with_an_impossible_date_waits_for_a_lead(tmp_path: Path, at: str, told: str) -> None:
    """Before: believed, so that a label after the judge was seen could be dated before it, and was blind."""
    path = drawn(tmp_path, items=2, n=4)
    meant = packed(tmp_path, "alice", path)
    conn = sqlite3.connect(tmp_path / "alice.db")
    with without_trigger(conn, "events_keep"):
        conn.execute("UPDATE events SET at = ? WHERE position = 2", [at])
    unit = conn.execute("SELECT unit_id FROM assignments WHERE position = 2").fetchone()[0]
    conn.commit()
    conn.close()
    with open_study(path) as store:
        with store.transaction() as own:
            own.execute(
                "INSERT INTO exposures (person, unit_id, what, how, at) VALUES ('alice', ?, 'judge', 'import', '2021-01-01')",
                [unit],
            )
        done = merge(store, tmp_path / "alice.db")
        assert len(done.conflicts) == 1 and told in done.conflicts[0] and "unit 2" in done.conflicts[0]
        rest = {u: v for u, v in meant.items() if u != unit}
        assert {u: v for (u, *_), v in labels(path).items()} == rest
        assert merge(store, tmp_path / "alice.db").events == 0
        rows = store.conn.execute("SELECT quarantine_id, code, status FROM quarantine").fetchall()
        assert rows == [(1, "time", "open")]
        accept(store, [1], note="her clock", merged=settle_conflict)
    assert labels(path)[unit, "stance", "assisted", 0] == meant[unit], (
        "what is not believed proves no blindness"
    )


@pytest.mark.parametrize("value", ["abc", "nan", "1e999", "07"])
def test_a_number_in_a_pack_has_the_form_in_which_a_desk_stores_it(value: str) -> None:
    task = parse_task(NUMBER, "number.v1.md")
    event = Event("e", Kind.LABEL, "score", value, "blind", None)
    with pytest.raises(BadInput) as refused:
        _check_label(task, event)
    assert refused.value.field == "score"
    _check_label(task, event._replace(value="3.5"))
