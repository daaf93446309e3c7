"""A batch for another machine: a small study with one person's blind units; `annotate.packing.merge` brings it back.

The packed file holds what the task's screen shows and nothing else: no judgement, no gold (but what a
task shows as its input), no `meta`, nobody else's label, no hint which units are repeats or have a known
answer. So training gives no feedback there; it is scored when the file is merged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from annotate.packing.emptied import copy_units
from annotate.sitting import exposure
from annotate.sitting.desk import BatchInfo, Desk, batch_info
from annotate.sitting.events import Kind
from annotate.sitting.standing import INSERT, WHOLE, is_stopped
from annotate.store import open_study
from judge.errors import UsageError
from judge.store import Store
from judge.store.runs import keep_task
from judge.store.study import dumps, now


def pack(store: Store, batch: str, person: str, path: Path) -> int:
    """Write the study for one person; returns how many units it holds. Raises UsageError for a file that exists."""
    info = batch_info(store, batch)
    if info.packed_for:
        raise UsageError(f"batch '{batch}' is a packed one already")
    if info.closed:
        raise UsageError(
            f"batch '{batch}' was closed on {info.closed[:10]}: nothing labelled in a pack could come back"
        )
    rows = store.conn.execute(
        "SELECT position, unit_id, CASE role WHEN 'training' THEN role ELSE 'sample' END, 0 FROM assignments "
        "WHERE batch = ? AND annotator_id = ? AND role <> 'adjudication' ORDER BY position",
        [batch, person],
    ).fetchall()
    if not rows:
        raise UsageError(f"batch '{batch}' has no units for '{person}'")
    if why := is_stopped(store.conn, batch, person):
        raise UsageError(
            f"batch '{batch}': {person} was stopped ({why}); nothing labelled in a pack could come back"
        )
    if path.exists():
        raise UsageError(f"{path}: exists already; take another name")
    # A file that is only half there would be taken for a packed study, so it gets its name at the end.
    part = path.with_name(f".{path.name}.part")
    _remove(part)
    try:
        _write(store, info, person, part, rows)
        with store.transaction() as conn:
            exposure.note_batch(conn, info.task, batch, [person], "pack")
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
            options = dumps({"pass_mark": info.plan.pass_mark})
            conn.execute(
                "INSERT INTO batches VALUES (?, ?, 'validation', 0, ?, NULL, ?, ?, NULL, 'kept')",
                [batch, info.task.name, options, person, now()],
            )
            conn.executemany(
                "INSERT INTO assignments (batch, annotator_id, position, unit_id, role, repeat) VALUES (?, ?, ?, ?, ?, ?)",
                [(batch, person, *row) for row in rows],
            )
            copy_events(store.conn, conn, batch, person)
        _settle(packed, batch, person)
        packed.conn.execute("PRAGMA journal_mode = DELETE")
        packed.conn.execute("VACUUM")


def copy_events(
    source: sqlite3.Connection,
    target: sqlite3.Connection,
    batch: str,
    person: str,
    blindness: Callable[[int, str], str | None] = lambda position, at: None,
    without: Collection[int] = (),
) -> tuple[int, int]:
    """Sessions and events of one person that the target does not have; how many events were new, and how many of their
    labels are not blind.

    `blindness` gives the layer of a new label from its position and time, None for a blind one; units at positions
    `without` are left out.
    """
    for row in source.execute("SELECT * FROM sessions WHERE batch = ? AND annotator_id = ?", [batch, person]):
        target.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    query = f"SELECT {WHOLE} FROM events WHERE batch = ? AND annotator_id = ? ORDER BY seq"
    known = {r[0] for r in target.execute("SELECT event_id FROM events WHERE batch = ?", [batch])}
    there = source.execute(query, [batch, person])
    rows = [list(row) for row in there if row[0] not in known and row[3] not in without]
    seen = 0
    for row in rows:
        if row[4] == Kind.LABEL and row[7] is None:
            row[7] = blindness(row[3], row[13])
            seen += row[7] is not None
    target.executemany(INSERT, rows)
    return len(rows), seen


def _settle(store: Store, batch: str, person: str) -> None:
    with Desk.open(store, batch, person) as desk:
        desk.settle_all()
