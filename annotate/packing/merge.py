"""Merge a returned pack into the study. Units that contradict the study go to the quarantine for a lead."""

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotate.exchange import quarantine
from annotate.exchange.gate import DECIDED
from annotate.exchange.proof import text_sha
from annotate.exchange.result import ImportResult
from annotate.exchange.units import ExchangeUnits
from annotate.packing.checks import LogRow, check_rows, check_time, rows_of
from annotate.packing.conflicts import conflict, give_back
from annotate.packing.pack import copy_events
from annotate.sitting.desk import BatchInfo, Desk, batch_info
from annotate.sitting.events import ASSISTED, Kind
from annotate.sitting.exposure import is_exposed
from annotate.sitting.standing import replay_log
from annotate.store import open_study
from judge.commands import command
from judge.errors import BadInput
from judge.store import Store
from judge.store.label_sources import is_rejected
from judge.store.row_counts import RowOutcome
from judge.store.study import dumps, get_time

SETTLED = ("accepted", "dropped")


@dataclass(slots=True)
class MergedLabels:
    """The result of a merge.

    `conflicts` describes the units that were quarantined: their text differs between the study and the pack,
    or both sides changed them in different ways.
    """

    batch: str
    annotator: str
    events: int = 0
    units: int = 0
    back: int = 0
    """The number of units that had been handed over to others but were also labelled in the pack. Each of these
    units has one more label than planned.
    """
    assisted: int = 0
    """The number of labels that were given in the pack after the person saw the unit's known answer or the
    judge's label in this study.
    """
    conflicts: list[str] = field(default_factory=list)
    counts: ImportResult = field(default_factory=ImportResult)
    """The five counts of an import. A row is a unit that has events in the pack."""


def merge(store: Store, path: Path) -> MergedLabels:
    """Add the labels of a pack to the study. A second merge changes nothing.

    Raises BadInput if the file is not a pack, belongs to another batch or task, or has a row that an
    annotator cannot have produced. The error names the row, and nothing is stored.
    """
    with open_study(path) as packed:
        _check_text(packed.conn, path)
        batches = packed.conn.execute("SELECT batch, packed_for FROM batches").fetchall()
        if len(batches) != 1 or not batches[0][1]:
            raise BadInput(
                f"contains no packed batch; to write one: {command('annotate export NAME --for PERSON -o PERSON.db')}",
                path=str(path),
            )
        batch, person = batches[0]
        with _blame(path):
            theirs = batch_info(packed, batch)
        ours = batch_info(store, batch)
        # With different wording, the task is a different question, and its labels have a different meaning.
        if theirs.task.sha256 != ours.task.sha256:
            raise BadInput(f"was packed with a different version of task {theirs.task.name}", path=str(path))
        back = _check_positions(packed.conn, store.conn, batch, person, path)
        packed_rows, study_rows = rows_of(packed.conn, batch, person), rows_of(store.conn, batch, person)
        known = "SELECT session_id FROM sessions WHERE batch = ? AND annotator_id = ?"
        sessions = {session for (session,) in store.conn.execute(known, [batch, person])}
        check_rows(packed.conn, ours.task, batch, person, packed_rows, study_rows, sessions, path)
        done = MergedLabels(batch, person)
        if {row.event.event_id for row in packed_rows} <= {row.event.event_id for row in study_rows}:
            # Nothing is new, so it does not matter whether the person's units were handed over or the batch closed.
            done.counts.count(RowOutcome.ALREADY_THERE, rows=len({row.position for row in packed_rows}))
            done.units = _count_done(store, batch, person)
            return done
        # The desk locks the queue: the person cannot label here while the pack is merged.
        with Desk.open(store, batch, person, returning=True):
            with store.transaction() as conn:
                done.back = give_back(conn, batch, person, back)
            with _blame(path):
                edited = _find_edited(packed, theirs, store, ours, person)
            with store.transaction() as conn:
                refused = _quarantine(
                    conn, packed.conn, (batch, person, path), packed_rows, study_rows, edited, done
                )
                # A unit that is not merged stays with the person to whom it was handed over, until a lead
                # accepts the record.
                done.back -= _take_away(conn, batch, person, set(back) & set(refused))
                units = _units_of(conn, batch, person)

                def blindness(position: int, at: str) -> str | None:
                    return ASSISTED if is_exposed(conn, ours.task, person, units[position], at) else None

                done.events, done.assisted = copy_events(
                    packed.conn, conn, batch, person, blindness, without=refused
                )
                came = {row.position for row in packed_rows} - set(refused)
                replay_log(conn, ours.task, batch, person, came)
    done.units = _count_done(store, batch, person)
    return done


def _check_text(packed: sqlite3.Connection, path: Path) -> None:
    """Raise BadInput if the pack has a text that is not UTF-8, which SQLite stores but Python cannot read."""
    tables = packed.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        try:
            quoted = table.replace('"', '""')
            for _ in packed.execute(f'SELECT * FROM "{quoted}"'):
                pass
        except sqlite3.Error as e:
            raise BadInput(f"the table '{table}' cannot be read: {e}", path=str(path)) from e


@contextmanager
def _blame(path: Path) -> Iterator[None]:
    """Raise BadInput, which names the pack, if a value in it has another type than annotate writes."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as e:
        raise BadInput(f"has a value that annotate does not write: {e}", path=str(path)) from e


def _count_done(store: Store, batch: str, person: str) -> int:
    query = "SELECT count(*) FROM assignments WHERE batch = ? AND annotator_id = ? AND status = 'done'"
    return int(store.conn.execute(query, [batch, person]).fetchone()[0])


def _units_of(conn: sqlite3.Connection, batch: str, person: str) -> dict[int, str]:
    query = "SELECT position, unit_id FROM assignments WHERE batch = ? AND annotator_id = ?"
    return dict(conn.execute(query, [batch, person]).fetchall())


def _check_positions(
    packed: sqlite3.Connection, ours: sqlite3.Connection, batch: str, person: str, path: Path
) -> list[int]:
    """Check that every unit in the pack was assigned to the person. Raise BadInput if one was not.

    Return the positions that are labelled in the pack but were handed over after packing.
    """
    query = "SELECT position, unit_id FROM assignments WHERE batch = ? AND annotator_id = ? AND role <> 'adjudication'"
    theirs = set(packed.execute(query, [batch, person]))
    assigned = set(ours.execute(query, [batch, person]))
    placed = {p for (p,) in packed.execute("SELECT DISTINCT position FROM events WHERE batch = ?", [batch])}
    gone = set(ours.execute(_GONE, [batch, person]))
    # Since the pack was made, an import may have assigned more units to the person, and a lead may have handed
    # over some.
    if not theirs or not theirs <= assigned | gone or not placed <= {p for p, _ in theirs}:
        raise BadInput(
            f"was packed from a different batch named '{batch}', which has other units", path=str(path)
        )
    return sorted(placed & {position for position, _ in gone - assigned})


_GONE = "SELECT position, unit_id FROM handed_over WHERE batch = ? AND annotator_id = ?"


def _take_away(conn: sqlite3.Connection, batch: str, person: str, positions: Collection[int]) -> int:
    """Remove the assignments that `give_back` made at these positions. Return the number of positions."""
    query = "DELETE FROM assignments WHERE batch = ? AND annotator_id = ? AND position = ?"
    conn.executemany(query, [(batch, person, position) for position in positions])
    return len(positions)


def _find_edited(packed: Store, theirs: BatchInfo, store: Store, ours: BatchInfo, person: str) -> set[str]:
    """Return the units whose text in the file differs from their text in the study."""
    # A unit that was handed over and not labelled in the pack is not one of this person's units here.
    ids = set(ExchangeUnits(packed, theirs, person).ids) & set(ExchangeUnits(store, ours, person).ids)
    sides = []
    for side, info in ((packed, theirs), (store, ours)):
        with ExchangeUnits(side, info, person).reader() as inputs:
            sides.append({unit: text_sha(inputs(unit)) for unit in sorted(ids)})
    return {unit for unit, sha in sides[0].items() if sides[1][unit] != sha}


def _quarantine(
    conn: sqlite3.Connection,
    packed: sqlite3.Connection,
    of: tuple[str, str, Path],
    packed_rows: Sequence[LogRow],
    study_rows: Sequence[LogRow],
    edited: set[str],
    done: MergedLabels,
) -> list[int]:
    """Quarantine the positions that cannot be merged, and return them. Each position gets its own record."""
    batch, person, path = of
    units = _units_of(packed, batch, person)
    query = "SELECT position, unit_id, repeat FROM assignments WHERE batch = ? AND annotator_id = ?"
    seats = {position: (unit, repeat) for position, unit, repeat in conn.execute(query, [batch, person])}
    packed_at = _read_pack_time(conn, batch, person)
    refused = []
    for position in sorted({row.position for row in packed_rows}):
        events = [r.event for r in packed_rows if r.position == position]
        mine = [r.event for r in study_rows if r.position == position]
        new = {e.event_id for e in events} - {e.event_id for e in mine}
        if not new:
            done.counts.count(RowOutcome.ALREADY_THERE)
            continue
        code, problem = "conflict", conflict(position, events, mine)
        came = [r for r in packed_rows if r.position == position and r.event.event_id in new]
        problem = problem or _find_rejected(conn, person, seats[position], came)
        dates = [check_time(r, packed_at) for r in packed_rows if r.event.event_id in new]
        if wrong := next(filter(None, dates), None):
            code, problem = "time", f"unit {position}: {wrong}: a clock was wrong, or the file was changed"
        if units[position] in edited:
            code, problem = "text", f"unit {position}: its text in the file differs from that in the study"
        status, earlier = _earlier_record(conn, batch, person, position, new)
        problem = problem or earlier
        if problem is None:
            done.counts.count(RowOutcome.STORED)
            continue
        refused.append(position)
        if status in SETTLED:
            done.counts.count(*DECIDED[status])
            continue
        done.counts.count(RowOutcome.QUARANTINED, code)
        done.conflicts.append(problem)
        if status is not None:
            continue
        payload = _payload(packed, batch, person, position, new) | {"believed": code != "time"}
        record = hashlib.sha256(dumps([batch, person, position, sorted(new)]).encode()).hexdigest()[:32]
        about = (path.name, person, units[position])
        quarantine.add_row(conn, record, batch, "pack", about, code, problem, dumps(payload))
    return refused


def _find_rejected(
    conn: sqlite3.Connection, person: str, seat: tuple[str, int], rows: Sequence[LogRow]
) -> str | None:
    """Describe the first of these new labels that a lead has rejected since it was given, or return None."""
    unit, repeat = seat
    for row in rows:
        name, value = row.event.field or "", row.event.value or ""
        if row.event.kind == Kind.LABEL and is_rejected(conn, unit, name, person, repeat, value, row.at):
            return f"unit {row.position}: a lead rejected the label '{value}' after it was given"
    return None


def _earlier_record(
    conn: sqlite3.Connection, batch: str, person: str, position: int, new: set[str]
) -> tuple[str | None, str | None]:
    """Return the (status, reason) of an earlier quarantined record that has these new events of a unit.

    If one record contains all of the events, return its status and reason. If a dropped record contains some
    of them, return None and its reason. Otherwise, return (None, None).

    Open records that contain only some of the events are closed: either a new record will contain all of the
    events, or the events no longer contradict the study.
    """
    # A lead decides on all events of a unit at once, so that the result does not depend on the order of the files.
    query = (
        "SELECT quarantine_id, status, reason, response FROM quarantine WHERE format = 'pack' AND batch = ? "
        "AND annotator = ? AND status <> 'settled' ORDER BY quarantine_id"
    )
    dropped_for, part = None, []
    for number, status, reason, response in conn.execute(query, [batch, person]).fetchall():
        payload = json.loads(response)
        quarantined = {event[0] for event in payload["events"]} if payload["position"] == position else set()
        if new <= quarantined:
            return status, reason
        if new & quarantined and status == "dropped":
            dropped_for = reason
        elif new & quarantined and status == "open":
            part.append(number)
    conn.executemany(
        "UPDATE quarantine SET status = 'settled', decided_at = ?, note = 'replaced by a later file' "
        "WHERE quarantine_id = ?",
        [(get_time(), number) for number in part],
    )
    return None, dropped_for


def _read_pack_time(conn: sqlite3.Connection, batch: str, person: str) -> str:
    """Return the time at which the batch was first packed for the person. If this time is not recorded, return
    the time of the draw.
    """
    # The time is taken from the exposures of this study, because the time in the file could have been edited.
    ledger = "SELECT min(at) FROM exposures WHERE batch = ? AND person = ? AND how = 'pack'"
    packed_at = conn.execute(ledger, [batch, person]).fetchone()[0]
    return str(
        packed_at or conn.execute("SELECT created FROM batches WHERE batch = ?", [batch]).fetchone()[0]
    )


def _payload(
    packed: sqlite3.Connection, batch: str, person: str, position: int, new: set[str]
) -> dict[str, Any]:
    columns = "event_id, kind, field, value, reason, undoes, active_ms, idle_ms, shown_ms, session_id, at"
    query = f"SELECT {columns} FROM events WHERE batch = ? AND annotator_id = ? AND position = ? ORDER BY seq"
    events = [list(row) for row in packed.execute(query, [batch, person, position])]
    sessions = packed.execute("SELECT * FROM sessions WHERE batch = ? AND annotator_id = ?", [batch, person])
    return {
        "batch": batch,
        "annotator": person,
        "position": position,
        "events": [e for e in events if e[0] in new],
        "known": [e[0] for e in events if e[0] not in new],
        "sessions": [list(row) for row in sessions],
    }
