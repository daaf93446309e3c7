"""Append events to the log, and update what is computed from the log: a unit's row in `assignments`, and the
unit's labels.

Desks, imports, merges and leads all append events through this module.
"""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import version

from ulid import ULID

from annotate.sitting.events import (
    STOPPED,
    WAS_CORRECTED,
    Event,
    NewLabel,
    State,
    fold,
    label_rows,
    standing,
)
from annotate.store import ADJUDICATED
from judge.errors import UsageError
from judge.prompts.load import Task
from judge.store.label_rows import FIRST
from judge.store.label_sources import add, clear
from judge.store.study import get_time
from judge.types import GOLD, Json

_EVENT = f"event_id, kind, field, value, reason, undoes, active_ms, idle_ms, {WAS_CORRECTED.format('e')}"
WHOLE = "event_id, batch, annotator_id, position, kind, field, value, reason, undoes, active_ms, idle_ms, shown_ms, session_id, at"
"""The columns of an event, except its number."""
INSERT = f"INSERT INTO events ({WHOLE}) VALUES ({', '.join('?' * 14)})"
KEPT = ("sample", "repeat", "adjudication")
"""The roles whose answers become labels in the study. Training and attention units are only checks."""


def write_state(
    conn: sqlite3.Connection,
    task: Task,
    seat: tuple[str, str, int],
    role: str,
    unit: tuple[str, int],
    state: State,
) -> None:
    """Write the state of a unit: its assignment and its labels.

    `seat` is (batch, annotator, position), and `unit` is (id, repeat).
    """
    values, rows = follow(conn, task, seat, role, unit, state)
    values["updated"] = get_time()
    # A lock is never released, because what was shown cannot be hidden again.
    columns = ", ".join(f"{c} = {'max(locked, ?)' if c == 'locked' else '?'}" for c in values)
    conn.execute(
        f"UPDATE assignments SET {columns} WHERE batch = ? AND annotator_id = ? AND position = ?",
        [*values.values(), *seat],
    )
    if role in KEPT:
        # All labels of the unit are written again, because an undo can remove any of them.
        clear(conn, seat[1], *unit, source_of(seat[0], seat[1]), task.fields)
        add(conn, rows)


def follow(
    conn: sqlite3.Connection,
    task: Task,
    seat: tuple[str, str, int],
    role: str,
    unit: tuple[str, int],
    state: State,
) -> tuple[dict[str, Json], list[Sequence[Json]]]:
    """Return the data computed from the state of a unit: the columns of its assignment, and rows for `label_sources`."""
    stopped = is_stopped(conn, seat[0], seat[1])
    if stopped:
        for side in state.texts():
            side.layers = side.layers | dict.fromkeys(side.answers, STOPPED)
    fields = [q.field for q in task.spec.questions]
    values = standing(state, fields)
    if role not in KEPT:
        return values, []
    # A lead gives the reason for a decision in the note on the unit.
    reason = state.note if seat[1] == ADJUDICATED else None
    labels = [
        r._replace(rationale=r.rationale or reason)
        for r in label_rows(state, task)
        # Reports count the layer `revised`, and no number may use labels by a stopped person.
        if not (stopped and r.layer == "revised")
    ]
    labels += _from_gold(conn, task, unit[0], labels)
    source, given = source_of(seat[0], seat[1]), _read_times(conn, seat)
    rows: list[Sequence[Json]] = []
    for r in labels:
        # A derived label has the time of the label that it is derived from.
        at = given[r.derived_from or r.field, r.layer == "revised"]
        label = (unit[0], r.field, seat[1], r.layer, unit[1], r.value, r.rationale, r.derived_from)
        rows.append((*label, source, at, at))
    return values, rows


def source_of(batch: str, annotator: str) -> str:
    """Return the value of `source` in `label_sources` for labels from the log of a batch."""
    return f"{'adjudication' if annotator == ADJUDICATED else 'batch'}:{batch}"


def _read_times(conn: sqlite3.Connection, seat: tuple[str, str, int]) -> dict[tuple[str, bool], str]:
    """Return a map from (field, is_revised) to the time of the latest label that was not undone."""
    query = (
        "SELECT e.field, e.kind <> 'label', e.at FROM events AS e WHERE e.batch = ? AND e.annotator_id = ? "
        "AND e.position = ? AND e.kind IN ('label', 'keep', 'revise') "
        "AND NOT EXISTS (SELECT 1 FROM events AS x WHERE x.undoes = e.event_id) ORDER BY e.seq"
    )
    return {(field, bool(revised)): at for field, revised, at in conn.execute(query, seat)}


def events_of(conn: sqlite3.Connection, batch: str, person: str) -> dict[int, list[Event]]:
    """Return a map from each position in one person's queue to its events in order."""
    query = f"SELECT position, {_EVENT} FROM events AS e WHERE batch = ? AND annotator_id = ? ORDER BY seq"
    events: dict[int, list[Event]] = {}
    for position, *event in conn.execute(query, [batch, person]):
        events.setdefault(position, []).append(Event(*event))
    return events


def events_at(conn: sqlite3.Connection, batch: str, person: str, position: int) -> list[Event]:
    """Return the events at one position in a queue, in order."""
    query = (
        f"SELECT {_EVENT} FROM events AS e WHERE batch = ? AND annotator_id = ? AND position = ? ORDER BY seq"
    )
    return [Event(*row) for row in conn.execute(query, [batch, person, position])]


def replay_log(
    conn: sqlite3.Connection, task: Task, batch: str, person: str, only: Collection[int] | None = None
) -> int:
    """Update one person's units from the log: the units at the positions `only`, or all units. Return the
    number of updated units.
    """
    events = events_of(conn, batch, person)
    seats = "SELECT position, unit_id, repeat, role FROM assignments WHERE batch = ? AND annotator_id = ?"
    for position, unit, repeat, role in conn.execute(seats, [batch, person]).fetchall():
        if position in events and (only is None or position in only):
            write_state(conn, task, (batch, person, position), role, (unit, repeat), fold(events[position]))
    return len(events)


def append(
    conn: sqlite3.Connection,
    batch: str,
    person: str,
    position: int,
    e: Event,
    session: str,
    at: str | None = None,
    shown_ms: int | None = None,
) -> None:
    """Append one event to the log. `at` is the time of the event (default: now). `TimeSpent` describes `shown_ms`."""
    conn.execute(
        INSERT,
        [e.event_id, batch, person, position, str(e.kind), *e[2:8], shown_ms, session, at or get_time()],
    )


def add_session(conn: sqlite3.Connection, row: Sequence[Json]) -> None:
    """Store a session, unless it is already stored.

    The row has the columns of `sessions`. Its last value, the hash of the guidelines, may be missing. It is
    stored only if the study has guidelines with this hash, because the row may come from a pack.
    """
    guidelines = row[7] if len(row) > 7 else None
    conn.execute(
        "INSERT OR IGNORE INTO sessions (session_id, batch, annotator_id, person, version, started, ended, guidelines) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, (SELECT sha256 FROM prompts WHERE sha256 = ?8))",
        [*row[:7], guidelines],
    )


def make_session(conn: sqlite3.Connection, batch: str, seat: str, person: str, opened_by: str) -> str:
    """Create a session in which the program writes on a person's behalf, such as an import, a merge or a
    policy. Return its id.
    """
    session, at = str(ULID()), get_time()
    program = f"{version('adjudge')} {opened_by}"
    add_session(conn, [session, batch, seat, person, program, at, at])
    return session


def people_of(conn: sqlite3.Connection, batch: str) -> list[str]:
    """Return the sorted names of a batch's annotators. People whose units were all reassigned to others are left out."""
    # A lead's decisions are also a queue in `assignments`.
    query = (
        "SELECT DISTINCT annotator_id FROM assignments WHERE batch = ? AND role <> 'adjudication' ORDER BY 1"
    )
    return [who for (who,) in conn.execute(query, [batch])]


def refuse_person(batch: str, person: str, people: Iterable[str]) -> UsageError:
    """Return the error for a person who is not an annotator of a batch."""
    return UsageError(f"batch '{batch}' has no annotator '{person}'; its annotators are: {', '.join(people)}")


def is_stopped(conn: sqlite3.Connection, batch: str, person: str) -> str | None:
    """Return the reason why a lead stopped the person in this batch, or None if the person was not stopped."""
    query = "SELECT why FROM stopped WHERE batch = ? AND annotator_id = ?"
    row = conn.execute(query, [batch, person]).fetchone()
    return None if row is None else str(row[0])


def _from_gold(conn: sqlite3.Connection, task: Task, unit: str, rows: Iterable[NewLabel]) -> list[NewLabel]:
    """Return the labels that are computed from an answer and a gold label.

    A unit's own gold label has priority over the gold label of its item. The result is empty if neither the
    unit nor the item has a gold label.
    """
    derived: list[NewLabel] = []
    for name, rule in task.spec.derive.items():
        if not rule.gold:
            continue
        # The gold label of the unit itself has priority over that of its item.
        query = (
            f"SELECT value FROM {FIRST} WHERE annotator_id = ? AND field = ? "
            "AND unit_id IN (?, (SELECT item_id FROM units WHERE unit_id = ?)) ORDER BY unit_id <> ? LIMIT 1"
        )
        gold = conn.execute(query, [GOLD, rule.gold, unit, unit, unit]).fetchone()
        for row in rows:
            value = rule.table.get(f"{row.value}|{gold[0]}") if gold else None
            if row.field == rule.source and row.derived_from is None and value is not None:
                derived.append(NewLabel(name, row.layer, value, None, rule.source))
    return derived
