"""One person's work in one batch: loading a unit, committing an event, undoing an event, and finding the next unit.

desk = Desk.open(store, "pilot", "alice")     one per batch and annotator on this machine
desk.load(position)                           returns the content of a screen
desk.label(position, "stance", "support")     has committed the label when it returns
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Any

from ulid import ULID

from annotate.guidelines import keep_guidelines
from annotate.sitting import exposure
from annotate.sitting.blind import BUSY_MS, Blind, Seat, explain_to_person
from annotate.sitting.events import ASSISTED, FIRST_LAYER, UNDOABLE, Event, Kind, State, explain_refusal, fold
from annotate.sitting.queue import BatchInfo, Queue, batch_info
from annotate.sitting.standing import (
    add_session,
    append,
    events_at,
    is_stopped,
    people_of,
    refuse_person,
    write_state,
)
from annotate.sitting.unit import Sheet, TimeSpent
from annotate.store import ADJUDICATED, ensure_human
from judge.errors import StudyError, UsageError
from judge.store import Store
from judge.store.study import dumps, get_time

__all__ = ["BatchInfo", "Desk", "Sheet", "TimeSpent", "batch_info", "end_session"]
NO_TIME = TimeSpent()
_HERE = "a.batch = :batch AND a.annotator_id = :annotator AND a.position = :position"
_SHOWN_LABELS = f"SELECT a.unit_id, 'labels' AS what, '' AS field FROM assignments AS a WHERE {_HERE}"
"""The exposure of a lead to the labels of a unit, as a query for `exposure.note_rows`."""


class Desk(Queue):
    """One annotator's queue in a batch. Every method that changes something commits the change before it returns.

    Screens read through the blind connection, which cannot write. Commits use a second connection, and only
    append events that are possible after the unit's earlier events. All other tables are computed from the
    events.
    """

    def __init__(
        self, info: BatchInfo, seat: Seat, blind: Blind, study: Store, busy_ms: int, lock: Any
    ) -> None:
        super().__init__(info, blind)
        self.seat, self._study, self._busy_ms, self._lock = seat, study, busy_ms, lock
        self._seen: set[int] = set()
        self._drafts: dict[tuple[int, str], str] = {}
        """Text that was typed in this session but not committed as an answer, by (position, kind). The text is
        empty if it was committed.
        """
        self._unnoted: list[int] = []
        """Positions that were shown but are not in the table of exposures yet."""

    @classmethod
    def open(
        cls,
        store: Store,
        batch: str,
        person: str,
        *,
        adjudicate: bool = False,
        allow_own: bool = False,
        busy_ms: int = BUSY_MS,
        returning: bool = False,
    ) -> Desk:
        """Begin a session.

        `busy_ms` is the time in milliseconds that a commit waits for another program before it raises Busy.
        If `returning` is true, the session can begin even if all of the person's units were reassigned to others. This
        is needed to merge the person's pack.

        Raises UsageError if the batch or person is unknown, and StudyError if the batch is closed or the
        person is working in another terminal.
        """
        info = _open_batch(store, batch)
        annotator = ADJUDICATED if adjudicate else person
        if adjudicate:
            with store.transaction() as conn:
                ensure_human(conn, [person])
        else:
            _check_assigned(store, batch, person, returning)
        doing = "adjudicating" if adjudicate else f"labelling as {person}"
        lock = store.run_lock(_lock_name(batch, annotator), _describe_taken(batch, doing))
        lock.__enter__()
        try:
            session = str(ULID())
            with store.transaction() as conn:
                # The screen shows this text until the session ends, even if a lead changes it meanwhile.
                shown = keep_guidelines(conn, info.task.spec.guidelines)
                program, at = version("adjudge"), get_time()
                add_session(conn, [session, batch, annotator, person, program, at, None, shown])
            seat = Seat(batch, annotator, person, session, show_own=not adjudicate or allow_own)
            desk = cls(info, seat, Blind(store, seat, info.task, busy_ms), store.clone(), busy_ms, lock)
        except BaseException:
            # This is also needed after Ctrl+C. Otherwise, nobody could open the queue until this process ends.
            lock.__exit__(None, None, None)
            raise
        return desk

    def load(self, position: int) -> Sheet:
        """Load a unit to show it, and record the exposure."""
        # If another program is writing, the exposure is recorded with the next commit, because a screen must not wait.
        sheet = super().load(position)
        if position not in self._seen:
            self._seen.add(position)
            self._unnoted.append(position)
            with suppress(StudyError):
                self._note_seen()
        return sheet

    def _note_seen(self) -> None:
        # Each transaction writes the pending exposures.
        with self._transaction(wait_ms=0):
            pass

    def _write_seen(self, conn: Connection) -> None:
        for position in self._unnoted:
            self._note(conn, position, exposure.rows_shown(self.task, _HERE))
            if self.seat.is_deciding:
                # A lead's screen shows the labels of the annotators from the beginning.
                self._note(conn, position, _SHOWN_LABELS)

    def _note(self, conn: Connection, position: int, rows: str) -> None:
        seat = self.seat
        exposure.note_rows(
            conn, seat.person, rows, seat.batch, "sitting", annotator=seat.annotator, position=position
        )

    def close(self) -> None:
        """End the session."""
        if self._unnoted:
            with suppress(StudyError):
                self._note_seen()
        self._blind.close()
        self._study.close()
        if self._lock is not None:
            self._lock.__exit__(None, None, None)
            self._lock = None

    def __enter__(self) -> Desk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def label(self, position: int, field: str, value: str, spent: TimeSpent = NO_TIME) -> State:
        """Store the answer to one question. Raises StudyError if the unit's first labels are locked."""
        return self._commit(position, spent, Kind.LABEL, field, value)

    def skip(self, position: int, spent: TimeSpent = NO_TIME) -> State:
        """Skip a unit."""
        return self._commit(position, spent, Kind.SKIP)

    def flag(self, position: int, reason: str | None, spent: TimeSpent = NO_TIME) -> State:
        """Flag a unit with a reason, or remove its flag."""
        return self._commit(position, spent, Kind.FLAG, value=reason or None)

    def note(self, position: int, text: str | None, spent: TimeSpent = NO_TIME) -> State:
        """Store a note on a unit, or remove it."""
        return self._commit(position, spent, Kind.NOTE, value=text or None)

    def spans(
        self, position: int, spans: Sequence[tuple[str, int, int]], spent: TimeSpent = NO_TIME
    ) -> State:
        """Store the evidence for a unit as (input, start, end), in code points."""
        return self._commit(position, spent, Kind.SPAN, value=dumps([list(s) for s in spans]))

    def draft(self, position: int, kind: str) -> str | None:
        """Return the text that was typed for a unit but not committed, in this or an earlier session. Return
        None if there is no such text.
        """
        if (text := self._drafts.get((position, kind))) is not None:
            return text or None
        query = "SELECT text FROM drafts WHERE batch = ? AND annotator_id = ? AND position = ? AND what = ?"
        row = self._study.conn.execute(
            query, [self.seat.batch, self.seat.annotator, position, kind]
        ).fetchone()
        return None if row is None else str(row[0])

    def keep_draft(self, position: int, kind: str, text: str | None) -> None:
        """Store unfinished text as a draft, or remove the draft. A closed batch is not changed."""
        # If the study is locked, the draft stays in memory, because storing it must not delay typing.
        if (self.draft(position, kind) or "") == (text or ""):
            return
        self._drafts[position, kind] = text or ""
        place = (self.seat.batch, self.seat.annotator, position, kind)
        with suppress(StudyError), self._transaction(wait_ms=0) as conn:
            closed = "SELECT closed FROM batches WHERE batch = ?"
            if conn.execute(closed, [self.seat.batch]).fetchone()[0] is not None:
                return
            conn.execute(
                "DELETE FROM drafts WHERE batch = ? AND annotator_id = ? AND position = ? AND what = ?", place
            )
            if text:
                values = [*place, text, get_time()]
                conn.execute(
                    "INSERT INTO drafts (batch, annotator_id, position, what, text, at) VALUES (?, ?, ?, ?, ?, ?)",
                    values,
                )

    def lock(self, position: int, shown: str) -> State:
        """Lock the first labels of a finished unit, and return the unit's state.

        After this, `judge` returns the judge's labels, or `key` returns the right answers.
        """
        state = self.state(position)
        return state if state.locked else self._commit(position, NO_TIME, Kind.SHOWN, value=shown)

    def revise(
        self, position: int, field: str, value: str, reason: str | None, spent: TimeSpent = NO_TIME
    ) -> State:
        """Keep or revise a label after the judge's label was shown. If `value` is the first label, the label
        is kept; otherwise it is revised.
        """
        first = self.state(position).answers.get(field)
        kind = Kind.KEEP if value == first else Kind.REVISE
        return self._commit(position, spent, kind, field, value, reason or None)

    def undo(self) -> int | None:
        """Undo the latest event that can be undone. Return the position of its unit, or None if there is no
        such event.
        """
        # A first label is final once the judge or the key was shown. Undo skips it, and undoes the event before it.
        kinds = ",".join(f"'{k}'" for k in UNDOABLE)
        first = ",".join(f"'{k}'" for k in FIRST_LAYER)
        query = (
            f"SELECT e.event_id, e.position FROM my_events AS e WHERE e.kind IN ({kinds}) "
            "AND NOT EXISTS (SELECT 1 FROM my_events AS x WHERE x.undoes = e.event_id) "
            f"AND NOT (e.kind IN ({first}) AND EXISTS "
            "(SELECT 1 FROM my_units AS u WHERE u.position = e.position AND u.locked = 1)) "
            # What was done before the text was corrected is not the latest work on the unit.
            "AND NOT e.outdated "
            "ORDER BY e.seq DESC LIMIT 1"
        )
        rows = self._blind.rows(query)
        if not rows:
            return None
        event_id, position = rows[0]
        self._commit(position, NO_TIME, Kind.UNDO, undoes=event_id)
        return int(position)

    def _commit(
        self,
        position: int,
        spent: TimeSpent,
        kind: Kind,
        field: str | None = None,
        value: str | None = None,
        reason: str | None = None,
        undoes: str | None = None,
    ) -> State:
        """Append one event, and update the unit's assignment and labels. Raises StudyError if the event is not
        possible after the unit's earlier events.
        """
        if kind in (Kind.LABEL, Kind.KEEP, Kind.REVISE):
            self._check(field, value)
        seat, place = self.seat, (self.seat.batch, self.seat.annotator, position)
        event = Event(str(ULID()), kind, field, value, reason, undoes, spent.active_ms, spent.idle_ms)
        with self._transaction() as conn:
            query = (
                "SELECT unit_id, repeat, role, status, active_ms FROM assignments "
                "WHERE batch = ? AND annotator_id = ? AND position = ?"
            )
            row = conn.execute(query, place).fetchone()
            if row is None:
                raise StudyError("there is no such unit")
            unit, repeat, role, *before = row
            events = events_at(conn, *place)
            if why := explain_refusal(events, event, self.fields):
                raise StudyError(why)
            if kind == Kind.LABEL:
                # Exposures decide whether an answer is blind. A lead's decision is a reference: a lead who has seen the
                # judge's label, or the key, cannot decide blind, and the judge must not be measured against it.
                seen = exposure.is_exposed(conn, self.task, seat.person, unit, deciding=seat.is_deciding)
                event = event._replace(reason=ASSISTED if seen else None)
            # This time measures how fast people label, to which a note or a flag does not contribute.
            on_screen = spent.shown_ms if kind in (Kind.LABEL, Kind.KEEP, Kind.REVISE) else None
            append(conn, *place, event, seat.session, shown_ms=on_screen)
            if kind == Kind.SHOWN:
                self._note(conn, position, exposure.rows_after(self.task, _HERE))
            state = fold([*events, event])
            write_state(conn, self.task, place, role, (unit, repeat), state)
            self._count((before[0], before[1]), state)
        return state

    def _check(self, field: str | None, value: str | None) -> None:
        if field not in self.fields:
            raise UsageError(f"task {self.task.name} has no question '{field}'")
        if self.task.level(field) == "interval":
            # The import loads numpy, which few tasks need.
            from judge.labels.values import number

            number(value or "")
        domain = self.task.domain(field)
        if domain and value not in domain:
            raise UsageError(f"'{value}' is not a label of '{field}'; its labels are: {', '.join(domain)}")

    @contextmanager
    def _transaction(self, wait_ms: int | None = None) -> Iterator[Connection]:
        """Yield a connection for one transaction. If an error occurs, all of its changes are rolled back.

        `wait_ms` is how long to wait for another program that is writing. By default, it is the `busy_ms` that
        was passed to `open`. Raises Busy, WriteFailed or StudyError.
        """
        tally, conn = self._tally.copy(), self._study.conn
        try:
            with explain_to_person(self._study.path):
                conn.execute(f"PRAGMA busy_timeout = {self._busy_ms if wait_ms is None else wait_ms}")
                # A deferred transaction takes the lock only after it has read the log. If another program has written in
                # between, SQLite then fails immediately, without waiting.
                conn.execute("BEGIN IMMEDIATE")
                yield conn
                self._write_seen(conn)
                conn.execute("COMMIT")
            self._unnoted.clear()
        except BaseException:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            # Each commit updates the counts of units, so a rollback must restore them.
            self._tally = tally
            raise


def check_available(store: Store, batch: str, person: str) -> None:
    """Raise the error that `Desk.open` would raise for this person now. This function does not begin a session."""
    _open_batch(store, batch)
    _check_assigned(store, batch, person, returning=False)
    if store.is_running(_lock_name(batch, person)):
        raise StudyError(_describe_taken(batch, f"labelling as {person}"))


def _open_batch(store: Store, batch: str) -> BatchInfo:
    info = batch_info(store, batch)
    if info.closed:
        raise StudyError(
            f"batch '{batch}' was closed on {info.closed[:10]}: its labels can no longer be changed"
        )
    return info


def _lock_name(batch: str, annotator: str) -> str:
    return f"annotate {batch} {annotator}"


def _describe_taken(batch: str, doing: str) -> str:
    return f"batch '{batch}': another terminal or browser tab is {doing} at this moment; continue there, or close it first"


def _check_assigned(store: Store, batch: str, person: str, returning: bool) -> None:
    names = people_of(store.conn, batch)
    gone = "SELECT count(*) FROM handed_over WHERE batch = ? AND annotator_id = ?"
    if person not in names and (n := store.conn.execute(gone, [batch, person]).fetchone()[0]):
        if not returning:
            raise UsageError(f"batch '{batch}': all {n} units of {person} were handed over to others")
    elif person not in names:
        raise refuse_person(batch, person, names)
    if reason := is_stopped(store.conn, batch, person):
        raise StudyError(f"batch '{batch}': {person} was stopped ({reason}); earlier work is kept")


def end_session(path: Path, session: str) -> None:
    """Store the end time of a session. A session whose process was killed has no end time."""
    from annotate.store import open_study

    with suppress(StudyError), open_study(path) as store, store.transaction() as conn:
        conn.execute("UPDATE sessions SET ended = ? WHERE session_id = ?", [get_time(), session])
