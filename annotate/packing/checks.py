"""Check the rows of a returned pack.

If the pack has a row that an annotator cannot have produced, the whole file is rejected.
"""

import json
import re
import sqlite3
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from annotate.exchange.checks import check_label
from annotate.sitting.events import UNDOABLE, Event, Kind
from judge.errors import BadInput
from judge.prompts.load import Task

COLUMNS = "seq, position, event_id, kind, field, value, reason, undoes, active_ms, idle_ms, session_id, at"
CLOCKS = timedelta(minutes=10)
"""The largest difference between the clocks of two machines that is accepted."""
_VERSION = re.compile(r"\d[0-9A-Za-z.+!-]{0,63}")
MOST_MS = 7 * 24 * 3_600_000
HERE = (Kind.LABEL, Kind.SKIP, Kind.FLAG, Kind.NOTE, Kind.SPAN, Kind.SHOWN, Kind.UNDO)
"""The kinds of event that are possible in a pack. A pack has no judge's labels, so no label can be kept or
revised.
"""


class LogRow(NamedTuple):
    """An event from the log, with the position of its unit in the person's queue."""

    seq: int
    position: int
    event: Event
    session: str
    at: str


def rows_of(conn: sqlite3.Connection, batch: str, person: str) -> list[LogRow]:
    """Return one person's events in order."""
    query = f"SELECT {COLUMNS} FROM events WHERE batch = ? AND annotator_id = ? ORDER BY seq"
    return [
        LogRow(seq, position, Event(*rest[:8]), rest[8], rest[9])
        for seq, position, *rest in conn.execute(query, [batch, person])
    ]


def check_rows(
    packed: sqlite3.Connection,
    task: Task,
    batch: str,
    person: str,
    packed_rows: Sequence[LogRow],
    study_rows: Sequence[LogRow],
    sessions_here: Collection[str],
    path: Path,
) -> None:
    """Raise BadInput for the first impossible row of `events` or `sessions` in a pack."""
    # The file was on another machine, where anything in it can be edited with SQLite.
    strange = packed.execute(
        "SELECT seq, annotator_id, batch FROM events WHERE annotator_id <> ? OR batch <> ? LIMIT 1",
        [person, batch],
    ).fetchone()
    if strange:
        raise BadInput(
            f"event {strange[0]} belongs to {strange[1]} in batch '{strange[2]}', but this pack was made for a different person or batch",
            path=str(path),
        )
    sessions = {}
    for session, *about, program, started, ended in packed.execute(
        "SELECT session_id, batch, annotator_id, person, version, started, ended FROM sessions"
    ):
        if about != [batch, person, person]:
            raise BadInput(
                f"session {session} belongs to a different person or batch than the pack", path=str(path)
            )
        if session not in sessions_here:
            # A word after the version is the kind of a session of the program, such as an import, whose times count
            # differently.
            if not isinstance(program, str) or not _VERSION.fullmatch(program):
                raise BadInput(f"session {session}: {program!r} is not a version of annotate", path=str(path))
            if _moment(started) is None or (ended is not None and _moment(ended) is None):
                raise BadInput(
                    f"session {session}: {started!r} to {ended!r} is not a valid period", path=str(path)
                )
        sessions[session] = about
    # SQLite stores any type in any column, so the type is checked for each value.
    odd = packed.execute(
        "SELECT seq, position, shown_ms FROM events WHERE shown_ms IS NOT NULL AND (typeof(shown_ms) <> 'integer' "
        "OR shown_ms NOT BETWEEN 0 AND ?) ORDER BY seq LIMIT 1",
        [MOST_MS],
    ).fetchone()
    if odd:
        raise BadInput(
            f"event {odd[0]}, unit {odd[1]}: {odd[2]!r} is not a valid number of milliseconds on the screen",
            path=str(path),
        )
    known = {row.event.event_id: row for row in study_rows}
    before: dict[str, LogRow] = {}
    for row in packed_rows:
        where = f"event {row.seq}, unit {row.position}"
        original = known.get(row.event.event_id)
        try:
            # The study checked its own events when they were made.
            if original is None:
                _check(task, row, before)
        # json.loads raises RecursionError for evidence that is nested too deeply.
        except (BadInput, TypeError, ValueError, RecursionError) as e:
            field = e.field if isinstance(e, BadInput) else ""
            reason = e.reason if isinstance(e, BadInput) else "cannot be read"
            raise BadInput(f"{where}: {reason}", path=str(path), field=field) from e
        if row.session not in sessions:
            raise BadInput(f"{where}: does not belong to a session", path=str(path))
        if original is not None and _unchangeable(original) != _unchangeable(row):
            raise BadInput(f"{where}: was changed after it was packed", path=str(path))
        before[row.event.event_id] = row


def check_time(row: LogRow, packed_at: str) -> str | None:
    """Describe what is wrong with the time of an event in a pack. Return None if the time is possible.

    A time is wrong if it is in the future, or before the pack was made.
    """
    at, earliest = _moment(row.at), _moment(packed_at)
    if at is not None and earliest is not None and at < earliest - CLOCKS:
        return f"its time {row.at} is before the pack was made ({packed_at})"
    if at is not None and at > datetime.now(UTC) + CLOCKS:
        return f"its time {row.at} is in the future"
    return None


def _moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return None if moment.utcoffset() is None else moment


def _unchangeable(row: LogRow) -> tuple[object, ...]:
    """Return the parts of a log entry that must not change after packing."""
    # The blindness of a label is decided in the study, so it may differ.
    event = row.event._replace(reason=None) if row.event.kind == Kind.LABEL else row.event
    return event, row.position, row.at


def _check(task: Task, row: LogRow, before: dict[str, LogRow]) -> None:
    event = row.event
    if not isinstance(event.event_id, str) or not event.event_id or event.event_id in before:
        raise BadInput("needs a unique id")
    if event.kind not in HERE:
        raise BadInput(f"a pack cannot contain an event of the kind '{event.kind}'")
    for ms in (event.active_ms, event.idle_ms):
        if not isinstance(ms, int) or not 0 <= ms <= MOST_MS:
            raise BadInput(f"{ms!r} is not a valid number of milliseconds spent on a unit")
    if _moment(row.at) is None:
        raise BadInput(f"{row.at!r} is not a time")
    if event.kind == Kind.LABEL:
        _check_label(task, event)
    elif event.kind == Kind.SPAN:
        _check_spans(event)
    elif event.kind == Kind.UNDO:
        target = before.get(event.undoes or "")
        if target is None or target.position != row.position or target.event.kind not in UNDOABLE:
            raise BadInput("does not undo an earlier event on this unit")
    if event.kind != Kind.UNDO and event.undoes is not None:
        raise BadInput(f"an event of the kind '{event.kind}' cannot undo another event")
    if event.kind in (Kind.FLAG, Kind.NOTE) and not isinstance(event.value, str | None):
        raise BadInput("must be text")
    # The study decides on blindness, never the file.
    if event.kind == Kind.LABEL and event.reason is not None:
        raise BadInput(
            "a label in a pack cannot declare whether it is blind; the study decides this",
            field=str(event.field),
        )


def _check_label(task: Task, event: Event) -> None:
    name = event.field or ""
    if not isinstance(event.value, str):
        raise BadInput(f"'{event.value}' is not a label", field=name)
    # The desk stores a label in this form, so any other form was not given at a desk.
    if check_label(task, name, event.value) != event.value:
        raise BadInput(f"'{event.value}' is not a label in the form in which it is stored", field=name)


def _check_spans(event: Event) -> None:
    spans: Any = json.loads(event.value or "[]")
    fine = isinstance(spans, list) and all(
        isinstance(s, list) and len(s) == 3 and isinstance(s[0], str)
        and all(isinstance(n, int) and not isinstance(n, bool) for n in s[1:]) and 0 <= s[1] < s[2]
        for s in spans
    )  # fmt: skip
    if not fine:
        raise BadInput("evidence must be a list of [input, start, end]")
