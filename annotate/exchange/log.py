"""Store imported responses as events of a batch's log."""

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ulid import ULID

from annotate.drawing.places import Place
from annotate.drawing.seats import add_places
from annotate.exchange import result
from annotate.exchange.responses import Response
from annotate.sitting import exposure
from annotate.sitting.desk import BatchInfo
from annotate.sitting.events import (
    ASSISTED,
    BLIND,
    FIRST_LAYER,
    UNDECLARED,
    WAS_CORRECTED,
    Event,
    Kind,
    State,
    fold,
)
from annotate.sitting.standing import append, make_session, source_of, write_state
from judge.errors import BadInput
from judge.store import Store, label_sources
from judge.store.row_counts import REJECTED, Outcome, RowOutcome
from judge.store.study import dumps, get_time

SKIPPED = "(skipped)"
REVISIONS = (Kind.KEEP, Kind.REVISE)
"""The events after the judge's label was shown."""


@dataclass(slots=True)
class _Place:
    """A unit in a person's queue: its position, its events, and the state that is computed from them."""

    position: int
    role: str
    unit: tuple[str, int]
    events: list[Event]
    at: dict[str, str]
    """The time of the last event on each subject. A subject is the name of a field, or `span`, `note`, `flag`
    or `skip`.
    """
    state: State
    imported_ms: int
    changed: bool = False


class BatchLog:
    """Stores a batch's responses as events. The queues of their annotators are locked until `locks` is closed."""

    def __init__(
        self,
        store: Store,
        conn: sqlite3.Connection,
        info: BatchInfo,
        how: result.ImportOptions,
        done: result.ImportResult,
        locks: ExitStack,
    ) -> None:
        self._store, self._conn, self._info, self._how, self._done = store, conn, info, how, done
        self._locks = locks
        self._places: dict[str, dict[tuple[str, int], _Place | tuple[int, str]]] = {}
        self._sessions: dict[str, str] = {}
        query = "SELECT unit_id, role FROM batch_units WHERE batch = ?"
        self._roles = dict(conn.execute(query, [info.batch]).fetchall())

    @property
    def sessions(self) -> list[str]:
        """The sessions that were created for the annotators."""
        return list(self._sessions.values())

    def store(self, response: Response) -> Outcome:
        """Convert a response to events, and store the new ones. Return the outcome and its reason. If BadInput is
        raised, no event of the response is stored.
        """
        place = self._place(response)
        kinds = {name: result.kind_of(response, name, self._how) for name in response.answers}
        kinds = self._correct_blindness(response, place, kinds)
        new, outcomes = self._new_events(response, place, kinds)
        withdrawn = self._withdraw(response, place)
        self._done.retracted += withdrawn
        outcomes += [(RowOutcome.STORED, "")] * bool(withdrawn)
        # Other tools give the total time on a unit, and the log stores the time between events.
        ms = max(0, round((response.seconds or 0) * 1000) - place.imported_ms)
        for kind, name, value, event_id in new:
            reason = kinds.get(name or "") if kind == Kind.LABEL else None
            known = reason is not None and place.state.answers.get(name or "") == value
            self._append(response, place, Event(event_id, kind, name, value, reason, None, ms))
            place.imported_ms, ms = place.imported_ms + ms, 0
            if reason:
                self._done.blind[reason] += 1
                if known:
                    self._done.declared += 1
                else:
                    self._done.new[response.annotator] += 1
            if name is not None:
                contradicts = reason is not None and self._contradicts(response, name, value)
                self._done.conflicts += contradicts
                outcomes.append((RowOutcome.CONFLICT if contradicts else RowOutcome.STORED, ""))
            elif kind != Kind.SHOWN:
                outcomes.append((RowOutcome.STORED, ""))
        self._done.units.add(response.unit)
        how = "pull" if response.source else "import"
        assisted = bool(response.revised) or any(kinds.get(name or "") == ASSISTED for _, name, _, _ in new)
        for content in ("text", "judge") if assisted else ("text",):
            exposure.note_unit(
                self._conn, response.annotator, response.unit, content, self._info.batch, how, response.at
            )
        return result.combine(outcomes)

    def _contradicts(self, response: Response, name: str, value: str | None) -> bool:
        """Return whether another source has a different label by the same person."""
        who, batch = response.annotator, self._info.batch
        known = label_sources.read_labels(self._conn, response.unit, name, who, response.repeat)
        return any(s.value != value and s.source != source_of(batch, who) for s in known)

    def _correct_blindness(self, response: Response, place: _Place, kinds: dict[str, str]) -> dict[str, str]:
        """Return "blind", "assisted" or "undeclared" for each answer.

        A new answer is assisted if the person had already seen the solution of the unit. For all other
        answers, the values in `kinds` are returned.
        """
        # An answer after its solution was shown is not blind, whatever was declared.
        fresh = [name for name, value in response.answers.items() if place.state.answers.get(name) != value]
        key = (self._info.task, response.annotator, response.unit, response.at)
        if fresh and exposure.is_exposed(self._conn, *key):
            return kinds | dict.fromkeys(fresh, ASSISTED)
        return kinds

    def retract(self, withdrawn: result.Retracted) -> int:
        """Undo the events of a withdrawn record. The log keeps these events, and records that they were
        undone. Return the number of removed labels.
        """
        response = Response(withdrawn.unit, withdrawn.annotator, repeat=withdrawn.repeat)
        place = self._place(response)
        return self._undo(response, place, self._events_from(place, withdrawn.source))

    def _withdraw(self, response: Response, place: _Place) -> int:
        """Undo the answers, note and skip that were in an earlier version of a record but are not in the
        current version.
        """
        if not response.source:
            return 0
        present: set[tuple[str, str | None]] = {(Kind.LABEL, name) for name in response.answers}
        present |= {(Kind.NOTE, None)} if response.note else set()
        # A skipped record contains no answers. Answers from before the skip are kept, and apply again if the
        # skip is removed.
        kinds = (Kind.NOTE,) if response.skipped else (Kind.LABEL, Kind.NOTE, Kind.SKIP)
        events = self._events_from(place, response.source)
        cleared = [e for e in events if e.kind in kinds and (e.kind, e.field) not in present]
        return self._undo(response, place, cleared)

    def _events_from(self, place: _Place, source: str) -> list[Event]:
        """Return those events of a unit that came from a record and were not undone."""
        query = "SELECT event_id FROM event_sources WHERE source = ?"
        from_source = {e for (e,) in self._conn.execute(query, [source])}
        undone = {e.undoes for e in place.events}
        return [e for e in place.events if e.event_id in from_source - undone]

    def _undo(self, response: Response, place: _Place, events: Sequence[Event]) -> int:
        """Undo events, except the first answers to a unit whose solution was shown. Return the number of
        removed labels.
        """
        labels = 0
        unsourced = replace(response, source="")
        for event in events:
            # The first label is the person's opinion before the judge was shown, and can no longer be given
            # blind.
            if event.kind in FIRST_LAYER and place.state.locked:
                continue
            # The id is computed from the event, so that a second pull does not undo it again.
            undo = hashlib.sha256(f"retracted {event.event_id}".encode()).hexdigest()[:32]
            self._append(unsourced, place, Event(undo, Kind.UNDO, None, None, "retracted", event.event_id))
            labels += event.kind == Kind.LABEL
        return labels

    def _new_events(
        self, response: Response, place: _Place, kinds: Mapping[str, str]
    ) -> tuple[list[tuple[Kind, str | None, str | None, str]], list[Outcome]]:
        """Return (kind, field, value, event id) for each part of the response that is not in the log yet, and the
        outcomes of all other parts.

        Raises BadInput for a response that contradicts the log, before anything is stored.
        """
        state = place.state
        new: list[tuple[Kind, str | None, str | None, str]] = []
        outcomes: list[Outcome] = []
        if response.revised and not state.locked:
            new.append(
                (Kind.SHOWN, None, "judge", _event_id(self._info.batch, response, "shown", "judge", ""))
            )
        for kind, name, value, stored in _parts(response, state):
            key = f"{kind} {name}" if kind in REVISIONS else name or str(kind)
            event_id = _event_id(self._info.batch, response, key, value, kinds.get(key, ""))
            if value == stored:
                if kind == Kind.LABEL and _declares(place, key, kinds[key]):
                    new.append((kind, name, value, event_id))
                else:
                    self._done.unchanged += kind == Kind.LABEL
                    outcomes.append((RowOutcome.ALREADY_THERE, ""))
                continue
            unit = (response.unit, key, response.annotator, response.repeat)
            if kind == Kind.LABEL and label_sources.is_rejected(self._conn, *unit, value, response.at):
                outcomes.append(REJECTED)
                continue
            if kind in REVISIONS and name not in {**response.answers, **state.answers}:
                raise BadInput(
                    f"{response.annotator} has no first label for '{response.unit}' to revise",
                    field=name or "",
                )
            if any(e.event_id == event_id for e in place.events):
                # This event is in the log, but was replaced later. If it was undone at the terminal, a file
                # with the same answer restores it. A server's record does not: pulling again must not reverse
                # the undo.
                if stored is not None or response.source:
                    self._done.older += 1
                    outcomes.append(result.OLDER)
                    continue
                event_id = str(ULID())
            if stored is not None:
                if not self._how.latest:
                    raise result.conflict(response, key, stored, value)
                if response.at and place.at.get(key, "") > response.at:
                    self._done.older += 1
                    outcomes.append(result.OLDER)
                    continue
                self._done.replaced += kind == Kind.LABEL
            if kind in (Kind.LABEL, Kind.SKIP) and state.locked:
                raise BadInput(
                    f"{response.annotator} has already seen the judge's answer to this unit, so the first label is final",
                    field=key,
                )
            new.append((kind, name, None if kind == Kind.SKIP else value, event_id))
        for kind, *_ in new:
            if counter := result.COUNTED.get(kind):
                setattr(self._done, counter, getattr(self._done, counter) + 1)
        if revised := sum(kind in REVISIONS for kind, *_ in new):
            self._done.new[response.annotator] += revised
        return new, outcomes

    def _append(self, response: Response, place: _Place, event: Event) -> None:
        at = response.at or get_time()
        session = self._session(response.annotator)
        append(self._conn, self._info.batch, response.annotator, place.position, event, session, at)
        if response.source:
            self._conn.execute("INSERT INTO event_sources VALUES (?, ?)", [event.event_id, response.source])
        place.events.append(event)
        place.at[event.field or str(event.kind)] = at
        place.state, place.changed = fold(place.events), True

    def _place(self, response: Response) -> _Place:
        who, key = response.annotator, (response.unit, response.repeat)
        places = self._places_of(who)
        place_or_seat = places.get(key)
        if isinstance(place_or_seat, _Place):
            return place_or_seat
        if place_or_seat is None:
            place_or_seat = self._join(response)
        position, role = place_or_seat
        query = (
            "SELECT e.event_id, e.kind, e.field, e.value, e.reason, e.undoes, e.active_ms, e.idle_ms, "
            f"{WAS_CORRECTED.format('e')}, e.at, "
            "s.version LIKE '% import %' FROM events AS e JOIN sessions AS s USING (session_id) "
            "WHERE e.batch = ? AND e.annotator_id = ? AND e.position = ? ORDER BY e.seq"
        )
        rows = self._conn.execute(query, [self._info.batch, who, position]).fetchall()
        events = [Event(*row[:-2]) for row in rows]
        at = {row[2] or row[1]: row[-2] for row in rows}
        ms = sum(row[6] for row in rows if row[-1])
        place = _Place(position, role, key, events, at, fold(events), ms)
        places[key] = place
        return place

    def _places_of(self, who: str) -> dict[tuple[str, int], _Place | tuple[int, str]]:
        if who not in self._places:
            # The lock of a labelling session: an import while this person labels would move the queue below the screen.
            self._locks.enter_context(self._store.run_lock(f"annotate {self._info.batch} {who}"))
            query = (
                "SELECT unit_id, repeat, position, role FROM assignments WHERE batch = ? AND annotator_id = ?"
            )
            rows = self._conn.execute(query, [self._info.batch, who])
            self._places[who] = {(unit, repeat): (position, role) for unit, repeat, position, role in rows}
        return self._places[who]

    def _join(self, response: Response) -> tuple[int, str]:
        """Assign a unit of the batch to a person who labelled it without an assignment, or to the lead."""
        role = self._roles.get(response.unit)
        if role is None:
            raise BadInput(f"unit '{response.unit}' is not in batch '{self._info.batch}'", field="unit")
        if response.repeat:
            raise BadInput(
                f"{response.annotator} was not assigned '{response.unit}' a second time", field="repeat"
            )
        result.ensure_annotator(self._conn, response)
        if response.role == "adjudication":
            role = response.role
        else:
            self._done.joined[response.annotator] += 1
        place = Place(response.unit, role)
        [position] = add_places(self._conn, self._info.batch, response.annotator, [place])
        return position, role

    def _session(self, who: str) -> str:
        if who not in self._sessions:
            opened_by = f"import {self._how.format}"
            self._sessions[who] = make_session(self._conn, self._info.batch, who, who, opened_by)
        return self._sessions[who]

    def finish(self) -> None:
        """Update the labels from the new events."""
        for who, places in self._places.items():
            for place in places.values():
                if isinstance(place, _Place) and place.changed:
                    seat = (self._info.batch, who, place.position)
                    write_state(self._conn, self._info.task, seat, place.role, place.unit, place.state)


def _parts(response: Response, state: State) -> list[tuple[Kind, str | None, str, str | None]]:
    """Return (kind, field, value in the response, value in the study or None) for each part of the response."""
    parts: list[tuple[Kind, str | None, str, str | None]] = []
    for name, value in response.answers.items():
        # A skip hides earlier answers, so an answer to a skipped unit is new.
        parts.append((Kind.LABEL, name, value, None if state.skipped else state.answers.get(name)))
    for name, value in response.revised.items():
        kind = Kind.KEEP if value == {**state.answers, **response.answers}.get(name) else Kind.REVISE
        parts.append((kind, name, value, state.revised[name].value if name in state.revised else None))
    if response.skipped:
        stored = SKIPPED if state.skipped else ", ".join(state.answers.values()) or None
        parts.append((Kind.SKIP, None, SKIPPED, stored))
    if response.spans is not None and (response.spans or state.spans):
        # Sorted, because the order in which words were marked has no meaning.
        stored = dumps([list(s) for s in sorted(state.spans)]) if state.spans else None
        parts.append((Kind.SPAN, None, dumps([list(s) for s in sorted(response.spans)]), stored))
    if response.note:
        parts.append((Kind.NOTE, None, response.note, state.note))
    if response.flag:
        parts.append((Kind.FLAG, None, response.flag, state.flag))
    return parts


def _declares(place: _Place, name: str, kind: str) -> bool:
    """Return whether a response changes what is known about the blindness of a stored label.

    This is the case if the label was undeclared and no longer is, or was declared blind and is now assisted.
    """
    layer = place.state.layers.get(name)
    if layer == UNDECLARED:
        return kind != UNDECLARED
    given = [e.reason for e in place.events if e.kind == Kind.LABEL and e.field == name]
    return layer is None and kind == ASSISTED and given[-1] == BLIND


def _event_id(batch: str, response: Response, part: str, value: str, kind: str) -> str:
    """Return the id of an imported event. The same answer by the same person always has the same id, so a
    second import adds nothing.
    """
    # Without a time or a record, an answer cannot be distinguished from its repetition. Its id is then random, and an
    # answer that is already valid is not stored again.
    if not response.at and not response.source:
        return str(ULID())
    parts = [batch, response.annotator, response.unit, response.repeat, part, value, response.at or "", kind]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
