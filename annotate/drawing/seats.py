"""The queues of a batch's annotators: append units to a queue, and log a lead's changes."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from annotate.drawing.adopt import adopt
from annotate.drawing.places import Place, sequence
from annotate.sitting import exposure
from annotate.sitting.desk import BatchInfo, batch_info
from annotate.sitting.standing import is_stopped
from annotate.sitting.unit import PARTS
from judge.commands import command
from judge.errors import UsageError
from judge.prompts.load import Task
from judge.store import Store
from judge.store.study import dumps, get_time
from judge.types import Json


@dataclass(slots=True)
class Changed:
    """The result of a change to a batch. `positions` is the number of units that were added to each annotator's
    queue.
    """

    batch: str
    units: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    strata: dict[str, dict[str, Json]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def log(
    conn: sqlite3.Connection,
    batch: str,
    change: str,
    person: str | None = None,
    detail: Mapping[str, Any] | None = None,
    note: str | None = None,
) -> None:
    """Record a change that a lead made to a batch."""
    conn.execute(
        "INSERT INTO batch_changes (batch, what, annotator_id, detail, note, at) VALUES (?, ?, ?, ?, ?, ?)",
        [batch, change, person, dumps(detail or {}), note, get_time()],
    )


def open_batch(store: Store, name: str) -> BatchInfo:
    """Return the batch with this name, which must be open. Raises UsageError for a packed batch and for a
    closed batch.
    """
    info = batch_info(store, name)
    if info.packed_for:
        raise UsageError(f"batch '{name}' is a packed batch; change it in the study from which it was packed")
    if info.closed:
        raise UsageError(
            f"batch '{name}' was closed on {info.closed[:10]}; to reopen it: {command('annotate batches close', name, '--undo')}"
        )
    return info


def require_active(conn: sqlite3.Connection, name: str, person: str) -> None:
    """Raise UsageError if a lead stopped the person in the batch."""
    if reason := is_stopped(conn, name, person):
        raise UsageError(
            f"batch '{name}': {person} was stopped ({reason}); to undo this: {command('annotate batches stop', name, '--annotator', person, '--undo')}"
        )


def sample_of(conn: sqlite3.Connection, name: str) -> list[str]:
    """Return the units of a batch's sample, without checks."""
    query = "SELECT unit_id FROM batch_units WHERE batch = ? AND role = 'sample' ORDER BY unit_id"
    return [u for (u,) in conn.execute(query, [name])]


def blocks_of(conn: sqlite3.Connection, info: BatchInfo, units: Sequence[str]) -> list[list[str]]:
    """Return the units in groups that stay together, in study order. `places.assign` forms the same groups."""
    query = "SELECT unit_id, question_id, answer_id FROM units WHERE unit_id IN (SELECT value FROM json_each(?)) ORDER BY rowid"
    blocks: dict[str, list[str]] = {}
    for unit, question, answer in conn.execute(query, [dumps(sorted(units))]):
        part_of = answer if info.task.spec.unit in PARTS else None
        key = question if info.plan.by_question else part_of or unit
        blocks.setdefault(key, []).append(unit)
    return list(blocks.values())


def seat(
    conn: sqlite3.Connection, info: BatchInfo, person: str, blocks: Sequence[Sequence[str]], *, checks: bool
) -> list[str]:
    """Append blocks to a person's queue, and return the appended units that the person must still label.

    With `checks`, the batch's training and attention units are appended too, but training units are not
    returned. The person's earlier labels on these units are adopted.
    """
    name = info.batch
    query = "SELECT unit_id FROM batch_units WHERE batch = ? AND role = ? ORDER BY unit_id"
    roles = {
        role: [u for (u,) in conn.execute(query, [name, role])] if checks else []
        for role in ("training", "attention")
    }
    answers = (
        "SELECT unit_id, answer_id FROM units WHERE unit_id IN (SELECT value FROM json_each(?)) "
        "AND kind IN (SELECT value FROM json_each(?)) AND answer_id IS NOT NULL"
    )
    units = [u for block in blocks for u in block]
    answer_of = dict(conn.execute(answers, [dumps(units), dumps(list(PARTS))]).fetchall())
    places = sequence(
        blocks,
        person,
        info.plan.seed,
        training=roles["training"],
        attention=roles["attention"],
        repeats=info.plan.repeats,
        answer_of=answer_of,
    )
    add_places(conn, name, person, places)
    adopted = adopt(conn, info.task, name, person, [p.unit_id for p in places])
    return [p.unit_id for p in places if p.role in ("sample", "attention") and p.unit_id not in adopted]


def _last_position(conn: sqlite3.Connection, name: str, person: str) -> int:
    """Return the last position that a person has or had in a batch, or 0 if the person never had one."""
    # The position of a unit that was handed over is not used again: a pack that was made before may still return it.
    return max(
        int(conn.execute(f"SELECT coalesce(max(position), 0) FROM {t} WHERE batch = ? AND annotator_id = ?", [name, person]).fetchone()[0])
        for t in ("assignments", "handed_over", "events")
    )  # fmt: skip


def add_places(conn: sqlite3.Connection, name: str, person: str, places: Sequence[Place]) -> list[int]:
    """Append units to a person's queue and return their positions."""
    last = _last_position(conn, name, person)
    rows = []
    for place in places:
        # A unit that was handed over from this person returns to its old position, which a pack made before names. At a
        # second position the person would label the unit twice, and one label would overwrite the other.
        position = _position_before(conn, name, person, place)
        if position is None:
            position = last = last + 1
        rows.append((name, person, position, place.unit_id, place.role, place.repeat))
    conn.executemany(
        "INSERT INTO assignments (batch, annotator_id, position, unit_id, role, repeat) VALUES (?, ?, ?, ?, ?, ?)",
        rows,
    )
    return [position for _, _, position, *_ in rows]


def _position_before(conn: sqlite3.Connection, name: str, person: str, place: Place) -> int | None:
    """Return the position that a unit had in a person's queue before it was reassigned.

    Return None if the unit was never reassigned.
    """
    query = (
        "SELECT position FROM handed_over WHERE batch = ? AND annotator_id = ? AND unit_id = ? AND role = ? "
        "AND repeat = ? ORDER BY at DESC LIMIT 1"
    )
    row = conn.execute(query, [name, person, place.unit_id, place.role, place.repeat]).fetchone()
    return None if row is None else int(row[0])


def finish(
    store: Store, info: BatchInfo, given: Mapping[str, Sequence[str]], done: Changed, allow: bool
) -> None:
    """Add counts and notes to `done`, the result of a change.

    The counts say how many units each person received. The notes are about units that people saw elsewhere.
    Raises the same errors as `check_exposed`.
    """
    done.positions = {person: len(units) for person, units in given.items()}
    done.notes += check_exposed(store, info.task, info.batch, given, allow=allow)


def check_exposed(
    store: Store, task: Task, batch: str, units: Mapping[str, Sequence[str]], *, allow: bool
) -> list[str]:
    """Return notes on annotators who saw some of their units outside this batch.

    `units` maps each annotator to the units in the annotator's queue. Raises UsageError if an annotator has
    been shown, or will be shown, an answer to a unit before labelling it. With `allow`, a note replaces this
    error.
    """
    exposed = [
        entry
        for person, unit_ids in units.items()
        for entry in exposure.against(store, task, person, unit_ids, batch)
    ]
    refused = exposure.refusal(exposed)
    if refused and not allow:
        raise UsageError(refused)
    notes = [refused] if refused else []
    notes += exposure.warnings(exposed)
    if unknown := exposure.unknown_batches(store.conn):
        notes.append(
            f"it is not known what people saw in {', '.join(unknown)}, because exposures were not yet recorded"
        )
    return notes
