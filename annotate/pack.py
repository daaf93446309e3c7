"""A batch for another machine: a small study with one person's blind units, and its labels brought back.

The packed file holds what the task's screen shows and nothing else: no judgement, no gold (but what a
task shows as its input), no `meta`, nobody else's label, no hint which units are repeats or have a known
answer. So training gives no feedback there; it is scored when the file is merged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from annotate._pack_units import copy_units
from annotate.desk import BatchInfo, Desk, batch_info
from annotate.events import Event, Kind, fold
from annotate.standing import settle
from annotate.store import open_study
from judge.errors import BadInput, UsageError
from judge.prompts.load import Task
from judge.store import Store
from judge.store.runs import keep_task
from judge.store.study import dumps, now


def pack(store: Store, batch: str, person: str, path: Path) -> int:
    """Write the study for one person; returns how many units it holds. Raises UsageError for a file that exists."""
    info = batch_info(store, batch)
    if info.packed_for:
        raise UsageError(f"batch '{batch}' is a packed one already")
    rows = store.conn.execute(
        "SELECT position, unit_id, CASE role WHEN 'training' THEN role ELSE 'sample' END, repeat FROM assignments "
        "WHERE batch = ? AND annotator_id = ? AND role <> 'adjudication' ORDER BY position",
        [batch, person],
    ).fetchall()
    if not rows:
        raise UsageError(f"batch '{batch}' has no units for '{person}'")
    if path.exists():
        raise UsageError(f"{path}: exists already; take another name")
    # A file that is only half there would be taken for a packed study, so it gets its name at the end.
    part = path.with_name(f".{path.name}.part")
    _remove(part)
    try:
        _write(store, info, person, part, rows)
        part.replace(path)
    finally:
        _remove(part)
    return len(rows)


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _write(
    store: Store, info: BatchInfo, person: str, path: Path, rows: Sequence[tuple[int, str, str, int]]
) -> None:
    batch = info.batch
    Store.open(path).close()
    with open_study(path) as packed:
        with packed.transaction() as conn:
            keep_task(conn, info.task)
            conn.execute(
                "INSERT INTO imports VALUES ('pack', 'pack', NULL, '{}', '{}', '{}', '{}', '[]', ?)", [now()]
            )
            conn.execute("INSERT INTO annotators VALUES (?, 'human', '{}')", [person])
            copy_units(store.conn, conn, info.task, {unit for _, unit, _, _ in rows})
            options = dumps({"pass_mark": info.options.get("pass_mark", 0.8)})
            conn.execute(
                "INSERT INTO batches VALUES (?, ?, 'validation', 0, ?, NULL, ?, ?, NULL)",
                [batch, info.task.name, options, person, now()],
            )
            conn.executemany(
                "INSERT INTO assignments (batch, annotator_id, position, unit_id, role, repeat) VALUES (?, ?, ?, ?, ?, ?)",
                [(batch, person, *row) for row in rows],
            )
            _copy_events(store.conn, conn, batch, person)
        _settle(packed, batch, person)
        packed.conn.execute("PRAGMA journal_mode = DELETE")
        packed.conn.execute("VACUUM")


def _copy_events(source: sqlite3.Connection, target: sqlite3.Connection, batch: str, person: str) -> int:
    """Sessions and events of one person that the target does not have; returns how many events were new."""
    for row in source.execute("SELECT * FROM sessions WHERE batch = ? AND annotator_id = ?", [batch, person]):
        target.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    columns = "event_id, batch, annotator_id, position, kind, field, value, reason, undoes, active_ms, idle_ms, shown_ms, session_id, at"
    query = f"SELECT {columns} FROM events WHERE batch = ? AND annotator_id = ? ORDER BY seq"
    known = {r[0] for r in target.execute("SELECT event_id FROM events WHERE batch = ?", [batch])}
    rows = [row for row in source.execute(query, [batch, person]) if row[0] not in known]
    target.executemany(f"INSERT INTO events ({columns}) VALUES ({', '.join('?' * 14)})", rows)
    return len(rows)


def _settle(store: Store, batch: str, person: str) -> None:
    with Desk.open(store, batch, person) as desk:
        desk.settle_all()


@dataclass(slots=True)
class Merged:
    """What a merge did. `conflicts` name units answered differently in both places; nothing of them came in."""

    batch: str
    annotator: str
    events: int = 0
    units: int = 0
    conflicts: list[str] = field(default_factory=list)


def merge(store: Store, path: Path) -> Merged:
    """Bring the labels of a packed study back; doing it again changes nothing.

    Raises BadInput when the file is no packed study, or of another batch or task.
    """
    with open_study(path) as packed:
        found = packed.conn.execute("SELECT batch, packed_for FROM batches").fetchall()
        if len(found) != 1 or not found[0][1]:
            raise BadInput("no packed batch (annotate batches pack writes one)", path=str(path))
        batch, person = found[0]
        theirs, ours = batch_info(packed, batch), batch_info(store, batch)
        if theirs.task.sha256 != ours.task.sha256:
            raise BadInput(f"packed with another text of task {theirs.task.name}", path=str(path))
        _check_positions(packed.conn, store.conn, batch, person, path)
        done = Merged(batch, person)
        with Desk.open(store, batch, person):
            refused = _conflicts(packed.conn, store.conn, batch, person, done)
            with store.transaction() as conn:
                packed.conn.execute("CREATE TEMP TABLE refused (position INTEGER PRIMARY KEY)")
                packed.conn.executemany("INSERT INTO refused VALUES (?)", [(p,) for p in refused])
                done.events = _copy_new(packed.conn, conn, batch, person)
                _settle_here(conn, ours.task, batch, person, path)
    query = "SELECT count(*) FROM assignments WHERE batch = ? AND annotator_id = ? AND status = 'done'"
    done.units = store.conn.execute(query, [batch, person]).fetchone()[0]
    return done


def _copy_new(packed: sqlite3.Connection, conn: sqlite3.Connection, batch: str, person: str) -> int:
    packed.execute(
        "CREATE TEMP VIEW events AS SELECT * FROM main.events WHERE position NOT IN (SELECT position FROM refused)"
    )
    return _copy_events(packed, conn, batch, person)


def _settle_here(conn: sqlite3.Connection, task: Task, batch: str, person: str, path: Path) -> None:
    """Write what follows from all events of a person. Raises BadInput for an answer that the task does not know."""
    query = "SELECT position, unit_id, repeat, role FROM assignments WHERE batch = ? AND annotator_id = ?"
    places = {p: (unit, repeat, role) for p, unit, repeat, role in conn.execute(query, [batch, person])}
    for position, events in _events(conn, batch, person).items():
        for event in events:
            if event.kind in (Kind.LABEL, Kind.KEEP, Kind.REVISE):
                _check_answer(task, event, position, path)
        unit, repeat, role = places[position]
        settle(conn, task, (batch, person, position), role, (unit, repeat), fold(events))


def _check_answer(task: Task, event: Event, position: int, path: Path) -> None:
    name, value = event.field or "", event.value or ""
    if name not in [q.field for q in task.spec.questions]:
        raise BadInput(f"unit {position}: task {task.name} has no question '{name}'", path=str(path))
    if task.domain(name) and value not in task.domain(name):
        raise BadInput(f"unit {position}: '{value}' is no label", path=str(path), field=name)


def _check_positions(
    packed: sqlite3.Connection, ours: sqlite3.Connection, batch: str, person: str, path: Path
) -> None:
    query = "SELECT position, unit_id FROM assignments WHERE batch = ? AND annotator_id = ? AND role <> 'adjudication'"
    theirs, here = set(packed.execute(query, [batch, person])), set(ours.execute(query, [batch, person]))
    placed = {p for (p,) in packed.execute("SELECT DISTINCT position FROM events WHERE batch = ?", [batch])}
    # An import may have given the person more units since.
    if not theirs or not theirs <= here or not placed <= {p for p, _ in theirs}:
        raise BadInput(f"packed from another batch called '{batch}': its units differ", path=str(path))


def _conflicts(
    packed: sqlite3.Connection, ours: sqlite3.Connection, batch: str, person: str, done: Merged
) -> list[int]:
    """Positions that both sides went on with after packing, and answered differently."""
    there, here = _events(packed, batch, person), _events(ours, batch, person)
    refused = []
    for position, events in there.items():
        mine = here.get(position, [])
        new = {e.event_id for e in events} - {e.event_id for e in mine}
        own = {e.event_id for e in mine} - {e.event_id for e in events}
        if not new or not own:
            continue
        said, stands = fold(events), fold(mine)
        clash = {e.undoes for e in events if e.undoes and e.event_id in new} & {
            e.undoes for e in mine if e.undoes
        }
        if said.answers != stands.answers or said.skipped != stands.skipped or clash:
            refused.append(position)
            done.conflicts.append(
                f"unit {position}: here {_said(stands.answers)}, in the file {_said(said.answers)}"
            )
    return refused


def _said(answers: dict[str, str]) -> str:
    return ", ".join(answers.values()) or "open"


def _events(conn: sqlite3.Connection, batch: str, person: str) -> dict[int, list[Event]]:
    out: dict[int, list[Event]] = {}
    query = (
        "SELECT position, event_id, kind, field, value, reason, undoes, active_ms, idle_ms FROM events "
        "WHERE batch = ? AND annotator_id = ? ORDER BY seq"
    )
    for position, *event in conn.execute(query, [batch, person]):
        out.setdefault(position, []).append(Event(*event))
    return out
