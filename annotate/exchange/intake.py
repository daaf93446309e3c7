"""Responses into a study: checked one by one, stored in one transaction, the second time nothing.

With a batch they become events of its log, as if the person had sat down at the terminal; without one
they are rows of `labels` and nothing else (no times, notes, evidence or skips).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from ulid import ULID

from annotate.desk import BatchInfo, batch_info
from annotate.events import ASSISTED, BLIND, UNDECLARED, Event, Kind, State, fold
from annotate.exchange.checks import Checks
from annotate.exchange.responses import Response
from annotate.standing import settle
from annotate.store import ensure_human
from judge.errors import BadInput, StudyError, UsageError
from judge.prompts.load import Task
from judge.store import Store
from judge.store.study import dumps, now
from judge.types import Json

Blindness = Literal["blind", "assisted"]
SKIPPED = "(skipped)"
_COUNTED = {Kind.SKIP: "skips", Kind.SPAN: "spans", Kind.NOTE: "notes", Kind.FLAG: "flags"}


@dataclass(frozen=True)
class Intake:
    """How to take responses.

    `blind` says what the file cannot: whether annotators saw suggestions, a judge's or anybody's. In a
    batch only labels known to be blind, by row or by this, count in headline numbers. With `latest` a later
    answer of the same person replaces the one before (the log keeps both); otherwise they are a conflict.
    """

    format: str
    files: Sequence[Path] = ()
    blind: Blindness | None = None
    latest: bool = False
    people: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def short_list(counts: Counter[str], most: int = 10) -> str:
    """Names with their counts, the first of them."""
    told = ", ".join(f"{who} {n}" for who, n in list(counts.items())[:most])
    more = len(counts) - most
    return f"{told} and {more} more people ({counts.total()} in all)" if more > 0 else told or "none"


@dataclass(slots=True)
class Taken:
    """What came in.

    `new` counts labels by annotator, `declared` known ones of which it is now known whether they are blind,
    `replaced` those of them that took the place of another one, `older`
    answers that a later one had replaced already. `left_out` counts what only a batch can keep.
    """

    new: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    declared: int = 0
    replaced: int = 0
    older: int = 0
    units: set[str] = field(default_factory=set)
    skips: int = 0
    spans: int = 0
    notes: int = 0
    flags: int = 0
    joined: Counter[str] = field(default_factory=Counter)
    """Units given to people who were not asked for them: annotator -> how many."""
    left_out: Counter[str] = field(default_factory=Counter)
    blind: Counter[str] = field(default_factory=Counter)
    """New and newly declared labels by blindness: blind, assisted, undeclared."""
    remarks: Counter[str] = field(default_factory=Counter)
    """What the reader passed over although nothing is wrong with it."""

    @property
    def changed(self) -> bool:
        """Whether anything was stored."""
        return bool(self.new or self.declared or self.skips or self.spans or self.notes or self.flags)

    def as_json(self) -> dict[str, Json]:
        """The documented shape, with the units counted."""
        counts = {name: getattr(self, name) for name in self.__slots__}
        return {k: dict(v) if isinstance(v, Counter) else v for k, v in counts.items()} | {
            "units": len(self.units)
        }

    def notes_for_people(self, batch: str | None) -> list[str]:
        """What else to say about it, a line each."""
        lines = []
        kept = [f"{n} {what}" for what in _COUNTED.values() if (n := getattr(self, what))]
        if kept:
            lines.append(f"also new: {', '.join(kept)}")
        if self.replaced or self.older:
            lines.append(
                f"{self.replaced} took the place of an earlier answer, {self.older} were older than what stands"
            )
        lines += [f"{n} {what}: nothing to import" for what, n in self.remarks.items()]
        if self.joined:
            lines.append(f"units given to people who were not asked for them: {short_list(self.joined)}")
        if self.left_out:
            told = ", ".join(f"{n} {what}" for what, n in self.left_out.items())
            lines.append(f"{told} left out: only a batch keeps them (--batch)")
        if self.declared:
            lines.append(f"{self.declared} labels that were there are now declared")
        if batch and self.blind[UNDECLARED]:
            lines.append(
                f"{self.blind[UNDECLARED]} labels are not known to be blind: layer 'undeclared', in no headline number; "
                "import again with --blind (nobody saw a suggestion while labelling) or --assisted"
            )
        if self.blind[ASSISTED]:
            lines.append(
                f"{self.blind[ASSISTED]} labels are not blind: layer 'assisted', in no headline number"
            )
        return lines


def take(
    store: Store,
    responses: Iterable[Response],
    how: Intake,
    bad: Callable[[BadInput], None],
    *,
    batch: str | None = None,
    task: Task | None = None,
) -> Taken:
    """Store the responses, all or nothing; `bad` gets what cannot be used and raises, or lets it be left out.

    Raises StudyError for a closed batch or one that somebody has open as one of these annotators.
    """
    done = Taken()
    info = batch_info(store, batch) if batch else None
    if info and info.closed:
        raise StudyError(f"batch '{batch}' was closed on {info.closed[:10]}: its labels stand as they are")
    if info and info.packed_for:
        raise UsageError(f"batch '{batch}' is a packed one: import into the study it was packed from")
    checks = Checks(store, info.task if info else task, how.labels, derived=info is None)
    with ExitStack() as locks, store.transaction() as conn:
        inside: _Batch | _Labels = (
            _Batch(store, conn, info, how, done, locks) if info else _Labels(conn, how, done)
        )
        for response in responses:
            named = replace(response, annotator=how.people.get(response.annotator, response.annotator))
            try:
                inside.take(checks.checked(named))
            except BadInput as e:
                where = response.where
                bad(e if e.path else BadInput(e.reason, path=where.path, line=where.line, field=e.field))
        inside.finish()
        if done.changed:
            _remember(conn, how, batch, done, inside.sessions)
    return done


def _person(conn: sqlite3.Connection, response: Response) -> None:
    try:
        ensure_human(conn, [response.annotator])
    except UsageError as e:
        raise BadInput(str(e), field="annotator") from e


def _remember(
    conn: sqlite3.Connection, how: Intake, batch: str | None, done: Taken, sessions: list[str]
) -> None:
    files = []
    for path in how.files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        files.append({"path": str(path), "sha256": digest})
    kinds = list(done.blind)
    blind = how.blind or (kinds[0] if len(kinds) == 1 else "mixed" if kinds else UNDECLARED)
    counts = {
        "labels": sum(done.new.values()),
        **{k: getattr(done, k) for k in ("replaced", "skips", "spans", "notes", "flags")},
    }
    counts |= {"blindness": dict(done.blind), "units": len(done.units)}
    conn.execute(
        "INSERT INTO label_imports VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [str(ULID()), how.format, batch, blind, dumps(files), dumps(sessions), dumps(counts), now()],
    )


class _Labels:
    """Labels of a study without a batch."""

    def __init__(self, conn: sqlite3.Connection, how: Intake, done: Taken) -> None:
        self._conn, self._how, self._done = conn, how, done
        self.sessions: list[str] = []

    def take(self, response: Response) -> None:
        done = self._done
        for what, there in (("skips", response.skipped), ("spans", response.spans), ("notes", response.note),
                            ("flags", response.flag)):  # fmt: skip
            if there:
                done.left_out[what] += 1
        rows = []
        kinds: Counter[str] = Counter()
        for name, value in response.answers.items():
            key = [response.unit, name, response.annotator]
            known = dict(
                self._conn.execute(
                    "SELECT layer, value FROM labels WHERE unit_id = ? AND field = ? AND annotator_id = ? AND repeat = ? "
                    "AND layer <> 'revised'",
                    [*key, response.repeat],
                ).fetchall()
            )
            if value in known.values():
                done.unchanged += 1
            elif known:
                raise _conflict(response, name, next(iter(known.values())), value)
            else:
                kind = _kind(response, name, self._how)
                kinds[kind] += 1
                rows.append([*key, ASSISTED if kind == "assisted" else "first", response.repeat, value])
        if rows:
            _person(self._conn, response)
        self._conn.executemany(
            "INSERT INTO labels (unit_id, field, annotator_id, layer, repeat, value) VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )
        if rows:
            done.new[response.annotator] += len(rows)
            done.blind += kinds
        if response.answers:
            done.units.add(response.unit)

    def finish(self) -> None:
        """Nothing is left to do."""


def _kind(response: Response, name: str, how: Intake) -> str:
    """blind, assisted or undeclared: what the file knows, else what was declared. Assisted wins."""
    known = response.is_blind(name)
    if known is False or how.blind == ASSISTED:
        return ASSISTED
    return BLIND if known or how.blind else UNDECLARED


def _conflict(response: Response, name: str, there: str, here: str) -> BadInput:
    told = (
        f"{response.annotator} has labelled '{response.unit}' '{there}' in the study, and '{here}' here; "
        "correct one of the two, or take the later one with --latest"
    )
    return BadInput(told, field=name)


@dataclass(slots=True)
class _Place:
    """One unit of one person: where it stands in the queue, its events, and what they add up to."""

    position: int
    role: str
    unit: tuple[str, int]
    events: list[Event]
    at: dict[str, str]
    """What (a field, or span, note, flag, skip) -> when it was said last."""
    state: State
    imported_ms: int
    changed: bool = False


class _Batch:
    """The queues of a batch, as far as the responses touch them."""

    def __init__(
        self,
        store: Store,
        conn: sqlite3.Connection,
        info: BatchInfo,
        how: Intake,
        done: Taken,
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
        """The session made for each annotator."""
        return list(self._sessions.values())

    def take(self, response: Response) -> None:
        """Turn a response into the events that are new. Raises BadInput before any of them is stored."""
        place = self._place(response)
        kinds = {name: _kind(response, name, self._how) for name in response.answers}
        new = self._news(response, place, kinds)
        ms = max(0, round((response.seconds or 0) * 1000) - place.imported_ms)
        for kind, name, value, event_id in new:
            reason = kinds.get(name or "")
            known = reason is not None and place.state.answers.get(name or "") == value
            self._append(response, place, Event(event_id, kind, name, value, reason, None, ms))
            place.imported_ms, ms = place.imported_ms + ms, 0
            if reason:
                self._done.blind[reason] += 1
                if known:
                    self._done.declared += 1
                else:
                    self._done.new[response.annotator] += 1
        self._done.units.add(response.unit)

    def _news(
        self, response: Response, place: _Place, kinds: Mapping[str, str]
    ) -> list[tuple[Kind, str | None, str | None, str]]:
        """What is not in the log yet, after every comparison that could refuse the response."""
        state = place.state
        new: list[tuple[Kind, str | None, str | None, str]] = []
        for kind, name, value, there in _said(response, state):
            key = name or str(kind)
            event_id = _event_id(self._info.batch, response, key, value, kinds.get(key, ""))
            if value == there:
                if kind == Kind.LABEL and _declares(place, key, kinds[key]):
                    new.append((kind, name, value, event_id))
                else:
                    self._done.unchanged += kind == Kind.LABEL
                continue
            if any(e.event_id == event_id for e in place.events):
                self._done.older += 1
                continue
            if there is not None:
                if not self._how.latest:
                    raise _conflict(response, key, there, value)
                if response.at and place.at.get(key, "") > response.at:
                    self._done.older += 1
                    continue
                self._done.replaced += 1
            if kind in (Kind.LABEL, Kind.SKIP) and state.locked:
                raise BadInput(
                    f"{response.annotator} has seen the judge's answer here: the first label stands",
                    field=key,
                )
            new.append((kind, name, None if kind == Kind.SKIP else value, event_id))
        for kind, *_ in new:
            if kind != Kind.LABEL:
                setattr(self._done, _COUNTED[kind], getattr(self._done, _COUNTED[kind]) + 1)
        return new

    def _append(self, response: Response, place: _Place, event: Event) -> None:
        at = response.at or now()
        self._conn.execute(
            "INSERT INTO events (event_id, batch, annotator_id, position, kind, field, value, reason, active_ms, session_id, at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [event.event_id, self._info.batch, response.annotator, place.position, str(event.kind), event.field,
             event.value, event.reason, event.active_ms, self._session(response.annotator), at],
        )  # fmt: skip
        place.events.append(event)
        place.at[event.field or str(event.kind)] = at
        place.state, place.changed = fold(place.events), True

    def _place(self, response: Response) -> _Place:
        who, key = response.annotator, (response.unit, response.repeat)
        places = self._places_of(who)
        found = places.get(key)
        if isinstance(found, _Place):
            return found
        if found is None:
            found = self._join(response)
        position, role = found
        query = (
            "SELECT e.event_id, e.kind, e.field, e.value, e.reason, e.undoes, e.active_ms, e.idle_ms, e.at, "
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
            self._locks.enter_context(self._store.run_lock(f"annotate {self._info.batch} {who}"))
            query = (
                "SELECT unit_id, repeat, position, role FROM assignments WHERE batch = ? AND annotator_id = ?"
            )
            rows = self._conn.execute(query, [self._info.batch, who])
            self._places[who] = {(unit, repeat): (position, role) for unit, repeat, position, role in rows}
        return self._places[who]

    def _join(self, response: Response) -> tuple[int, str]:
        """Give a unit of the batch to a person who labelled it without being asked to."""
        role = self._roles.get(response.unit)
        if role is None:
            raise BadInput(f"unit '{response.unit}' is not in batch '{self._info.batch}'", field="unit")
        if response.repeat:
            raise BadInput(
                f"{response.annotator} was not asked to label '{response.unit}' twice", field="repeat"
            )
        _person(self._conn, response)
        places = self._places_of(response.annotator)
        position = 1 + max(
            (p.position if isinstance(p, _Place) else p[0] for p in places.values()), default=0
        )
        self._conn.execute(
            "INSERT INTO assignments (batch, annotator_id, position, unit_id, role) VALUES (?, ?, ?, ?, ?)",
            [self._info.batch, response.annotator, position, response.unit, role],
        )
        self._done.joined[response.annotator] += 1
        return position, role

    def _session(self, who: str) -> str:
        if who not in self._sessions:
            self._sessions[who] = str(ULID())
            told = f"{version('adjudge')} import {self._how.format}"
            self._conn.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)",
                [self._sessions[who], self._info.batch, who, who, told, now(), now()],
            )
        return self._sessions[who]

    def finish(self) -> None:
        """Write what follows from the new events."""
        for who, places in self._places.items():
            for place in places.values():
                if isinstance(place, _Place) and place.changed:
                    seat = (self._info.batch, who, place.position)
                    settle(self._conn, self._info.task, seat, place.role, place.unit, place.state)


def _said(response: Response, state: State) -> list[tuple[Kind, str | None, str, str | None]]:
    """(kind, field, what the response says, what stands in the study or None) for all that it says."""
    said: list[tuple[Kind, str | None, str, str | None]] = []
    for name, value in response.answers.items():
        said.append((Kind.LABEL, name, value, None if state.skipped else state.answers.get(name)))
    if response.skipped:
        there = SKIPPED if state.skipped else ", ".join(state.answers.values()) or None
        said.append((Kind.SKIP, None, SKIPPED, there))
    if response.spans is not None and (response.spans or state.spans):
        there = dumps([list(s) for s in sorted(state.spans)]) if state.spans else None
        said.append((Kind.SPAN, None, dumps([list(s) for s in sorted(response.spans)]), there))
    if response.note:
        said.append((Kind.NOTE, None, response.note, state.note))
    if response.flag:
        said.append((Kind.FLAG, None, response.flag, state.flag))
    return said


def _declares(place: _Place, name: str, kind: str) -> bool:
    """Whether a known label is now said to be blind or assisted, where that was open, or said wrongly before."""
    layer = place.state.layers.get(name)
    if layer == UNDECLARED:
        return kind != UNDECLARED
    given = [e.reason for e in place.events if e.kind == Kind.LABEL and e.field == name]
    return layer is None and kind == ASSISTED and given[-1] == BLIND


def _event_id(batch: str, response: Response, what: str, value: str, kind: str) -> str:
    """The same for the same word of the same person, so that a file imported twice adds nothing."""
    parts = [batch, response.annotator, response.unit, response.repeat, what, value, response.at or "", kind]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
