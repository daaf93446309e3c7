"""A batch in flight: people join and leave, units are added, and what a lead does is kept in `batch_changes`.

Nothing here changes a label that somebody gave. Units are handed over when nothing was done on them; a sample grows
by drawing on with the seed, strata and frame of the first draw, so that its weights hold for old and new units.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from annotate._blind_sql import PARTS
from annotate.batch import Plan, check_exposed, eligible, redraw, strata_of
from annotate.desk import BatchInfo, batch_info
from annotate.events import Event, fold
from annotate.sample import Drawn, Place, assign, sequence, shuffled
from annotate.standing import is_stopped, settle
from annotate.store import ensure_human
from judge.errors import StudyError, UsageError
from judge.store import Store
from judge.store.study import dumps, now
from judge.types import Json


@dataclass(slots=True)
class Changed:
    """What a change gave to whom: person -> units that were added to that queue."""

    batch: str
    units: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    strata: dict[str, dict[str, Json]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def close_batch(store: Store, name: str) -> BatchInfo:
    """Close a batch: no event is taken any more. Raises UsageError when it is closed already."""
    info = batch_info(store, name)
    if info.closed:
        raise UsageError(f"batch '{name}' was closed on {info.closed[:10]}")
    with store.transaction() as conn:
        conn.execute("UPDATE batches SET closed = ? WHERE batch = ?", [now(), name])
        log(conn, name, "close")
    return info


def reopen_batch(store: Store, name: str, note: str | None = None) -> None:
    """Open a closed batch again. Raises UsageError when it is open."""
    info = batch_info(store, name)
    if not info.closed:
        raise UsageError(f"batch '{name}' is open")
    with store.transaction() as conn:
        conn.execute("UPDATE batches SET closed = NULL WHERE batch = ?", [name])
        log(conn, name, "reopen", detail={"closed": info.closed}, note=note)


def log(
    conn: sqlite3.Connection,
    batch: str,
    what: str,
    person: str | None = None,
    detail: Mapping[str, Any] | None = None,
    note: str | None = None,
) -> None:
    """Keep what a lead did."""
    conn.execute(
        "INSERT INTO batch_changes (batch, what, annotator_id, detail, note, at) VALUES (?, ?, ?, ?, ?, ?)",
        [batch, what, person, dumps(detail or {}), note, now()],
    )


def people_of(conn: sqlite3.Connection, batch: str) -> list[str]:
    """The annotators of a batch, in the order of their names; those who gave all their units away are none."""
    query = (
        "SELECT DISTINCT annotator_id FROM assignments WHERE batch = ? AND role <> 'adjudication' ORDER BY 1"
    )
    return [who for (who,) in conn.execute(query, [batch])]


def _open_batch(store: Store, name: str) -> BatchInfo:
    info = batch_info(store, name)
    if info.packed_for:
        raise UsageError(f"batch '{name}' is a packed one: change it in the study it was packed from")
    if info.closed:
        raise UsageError(f"batch '{name}' was closed on {info.closed[:10]}: annotate batches reopen {name}")
    return info


def add_people(
    store: Store, name: str, people: Sequence[str], *, n: int | None = None, allow_exposed: bool = False
) -> Changed:
    """Give new people units of the sample: those with the fewest people first, all of them without `n`.

    They begin with the batch's training units and get its attention units. Raises UsageError for somebody who is
    in the batch already, was stopped in it, or knows the answers from elsewhere.
    """
    info = _open_batch(store, name)
    people = list(dict.fromkeys(people))
    if not people:
        raise UsageError("--annotators: name at least one, as in --annotators dave,erin")
    done = Changed(name)
    with store.transaction() as conn:
        _newcomers(conn, name, people)
        blocks = _blocks(conn, info, _sample(conn, name))
        if n is not None and n > sum(map(len, blocks)):
            raise UsageError(f"-n {n}: batch '{name}' has {sum(map(len, blocks))} units")
        given: dict[str, list[str]] = {}
        load = _load(conn, name)
        for person in people:
            mine: list[list[str]] = []
            ranked = shuffled([b[0] for b in blocks], _seed(info), f"add:{person}")
            by_name = {b[0]: b for b in blocks}
            for head in sorted(ranked, key=lambda head: load.get(head, 0)):
                if n is None or sum(map(len, mine)) < n:
                    mine.append(by_name[head])
            for unit in (u for block in mine for u in block):
                load[unit] = load.get(unit, 0) + 1
            given[person] = _seat(conn, info, person, mine, checks=True)
            log(conn, name, "add", person, {"units": sum(map(len, mine))})
        _finish(store, info, given, done, allow_exposed)
    done.units = len({u for units in given.values() for u in units})
    return done


def hand_over(
    store: Store,
    name: str,
    person: str,
    to: Sequence[str],
    *,
    note: str | None = None,
    allow_exposed: bool = False,
) -> Changed:
    """Give the units on which `person` has done nothing yet to others, who may be new to the batch.

    Units stay together as they were drawn; each goes to whom has the least to do among those who do not have it.
    What nobody of them can take stays. Hidden repeats and checks of the person fall away. Raises StudyError while
    the person is at work, UsageError as `add_people`.
    """
    info = _open_batch(store, name)
    to = list(dict.fromkeys(to))
    known = people_of(store.conn, name)
    if person not in known:
        raise UsageError(f"batch '{name}' is not for '{person}'; its annotators are: {', '.join(known)}")
    if person in to or not to:
        raise UsageError(f"--to: name others than {person}")
    done = Changed(name)
    try:
        with store.run_lock(f"annotate {name} {person}"), store.transaction() as conn:
            _newcomers(conn, name, [p for p in to if p not in known])
            for other in to:
                _not_stopped(conn, name, other)
            _move(conn, store, info, person, to, done, note, allow_exposed)
    except StudyError as e:
        if "another process" not in str(e):
            raise
        raise StudyError(f"batch '{name}': {person} is at work at this moment; hand over after that") from e
    return done


def _move(
    conn: sqlite3.Connection,
    store: Store,
    info: BatchInfo,
    person: str,
    to: Sequence[str],
    done: Changed,
    note: str | None,
    allow_exposed: bool,
) -> None:
    name, known = info.batch, people_of(conn, info.batch)
    rows = conn.execute(_UNTOUCHED, [name, person]).fetchall()
    units = [unit for _, unit, role, _ in rows if role == "sample"]
    if not units:
        raise UsageError(f"batch '{name}': {person} has no unit left on which nothing was done")
    holds = {p: _units_of(conn, name, p) for p in to}
    todo = {p: _open_count(conn, name, p) for p in to}
    mine: dict[str, list[list[str]]] = {p: [] for p in to}
    moved: dict[str, str] = {}
    for block in _blocks(conn, info, units):
        free = [p for p in to if not holds[p] & set(block)]
        if not free:
            continue
        other = min(free, key=lambda p: (todo[p], to.index(p)))
        mine[other].append(block)
        todo[other] += len(block)
        moved |= dict.fromkeys(block, other)
    if not moved:
        raise UsageError(f"batch '{name}': {', '.join(to)} have all units of {person} already")
    all_gone = len(moved) == len(units)
    stamp = now()
    for position, unit, role, repeat in rows:
        # Checks and repeats go with the rest: they mean nothing to somebody who does not go on.
        if unit in moved or (role != "sample" and all_gone):
            conn.execute(
                "INSERT OR REPLACE INTO handed_over VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    name,
                    person,
                    position,
                    unit,
                    role,
                    repeat,
                    moved.get(unit) if role == "sample" else None,
                    stamp,
                ],
            )
            conn.execute(
                "DELETE FROM assignments WHERE batch = ? AND annotator_id = ? AND position = ?",
                [name, person, position],
            )
    given = {}
    for other, blocks in mine.items():
        if blocks:
            given[other] = _seat(conn, info, other, blocks, checks=other not in known)
    log(conn, name, "hand over", person, {"to": {p: len(u) for p, u in given.items()}}, note)
    if left := len(units) - len(moved):
        done.notes.append(f"{left} units stay with {person}: {', '.join(to)} have them already")
    done.units = len(moved)
    _finish(store, info, given, done, allow_exposed)


_UNTOUCHED = """
    SELECT a.position, a.unit_id, a.role, a.repeat FROM assignments AS a
    WHERE a.batch = ? AND a.annotator_id = ? AND a.role <> 'adjudication' AND a.status = 'open' AND NOT EXISTS
        (SELECT 1 FROM events AS e WHERE e.batch = a.batch AND e.annotator_id = a.annotator_id AND e.position = a.position)
    ORDER BY a.position
"""


def extend_batch(
    store: Store,
    name: str,
    *,
    n: int | None = None,
    questions: int | None = None,
    people: Sequence[str] | None = None,
    allow_exposed: bool = False,
) -> Changed:
    """Draw `n` more units (or whole questions), of the frame and with the seed of the first draw.

    The larger sample is the one that would have been drawn at once, so its weights are right for old and new units;
    all are written again. Raises UsageError when the frame has changed since, or another batch took those units.
    """
    info = _open_batch(store, name)
    plan = _plan(info)
    larger = _larger(plan, n, questions)
    done = Changed(name)
    with store.transaction() as conn:
        if people is None:
            people = [p for p in people_of(conn, name) if not is_stopped(conn, name, p)]
        others = [p for p in people if p not in people_of(conn, name)]
        if others:
            raise UsageError(
                f"{others[0]} is not in batch '{name}': annotate batches add {name} --annotators {others[0]}"
            )
        for person in people:
            _not_stopped(conn, name, person)
        overlap = int(info.options.get("overlap") or len(people))
        if not people or overlap > len(people):
            raise UsageError(f"each unit of batch '{name}' needs {overlap} people: there are {len(people)}")
        checks = "SELECT unit_id FROM batch_units WHERE batch = ? AND role <> 'sample'"
        apart = {u for (u,) in conn.execute(checks, [name])}
        frame = [c for c in eligible(store, info.task, plan, plan.run, name) if c.unit_id not in apart]
        before = set(_sample(conn, name))
        try:
            again = {d.unit_id for d in redraw(frame, plan)}
        except UsageError:
            again = set()
        if again != before:
            raise UsageError(
                f"batch '{name}': the units it was drawn from have changed since (imports, or labels of its run): "
                "its weights would not hold; draw a new batch"
            )
        drawn = redraw(frame, larger)
        if not before <= {d.unit_id for d in drawn}:
            raise UsageError(
                f"batch '{name}' cannot grow by so many in proportion to its strata: take another number"
            )
        new = [d for d in drawn if d.unit_id not in before]
        _untaken(store, info, {d.unit_id for d in new})
        _weigh(conn, name, drawn, before)
        options = info.options | {"n": larger.n, "by_question": larger.by_question}
        conn.execute("UPDATE batches SET options = ? WHERE batch = ?", [dumps(options), name])
        shares = assign(new, people, overlap, _seed(info), together=plan.by_question is not None)
        given = {p: _seat(conn, info, p, blocks, checks=False) for p, blocks in shares.items() if blocks}
        log(conn, name, "extend", None, {"units": len(new), "sample": len(drawn)})
        _finish(store, info, given, done, allow_exposed)
    done.units, done.strata = len(new), strata_of(drawn, frame)
    return done


def stop_person(store: Store, name: str, person: str, why: str) -> int:
    """Stop somebody in a batch: no event of theirs is taken any more, and their labels are of the layer `stopped`.

    The log keeps everything, and `resume_person` brings the labels back. Returns how many units this concerns.
    """
    info = _open_batch(store, name)
    if person not in people_of(store.conn, name):
        known = ", ".join(people_of(store.conn, name))
        raise UsageError(f"batch '{name}' is not for '{person}'; its annotators are: {known}")
    if not why.strip():
        raise UsageError("--why: say why; the report tells it")
    with store.transaction() as conn:
        if told := is_stopped(conn, name, person):
            raise UsageError(f"batch '{name}': {person} is stopped already ({told})")
        conn.execute("INSERT INTO stopped VALUES (?, ?, ?, ?)", [name, person, why.strip(), now()])
        log(conn, name, "stop", person, {}, why.strip())
        return _settle_all(conn, info, person)


def resume_person(store: Store, name: str, person: str, note: str | None = None) -> int:
    """Take a stop back: the labels are again what they were. Returns how many units this concerns."""
    info = _open_batch(store, name)
    with store.transaction() as conn:
        if not is_stopped(conn, name, person):
            raise UsageError(f"batch '{name}': {person} is not stopped")
        conn.execute("DELETE FROM stopped WHERE batch = ? AND annotator_id = ?", [name, person])
        log(conn, name, "resume", person, {}, note)
        return _settle_all(conn, info, person)


def _settle_all(conn: sqlite3.Connection, info: BatchInfo, person: str) -> int:
    query = (
        "SELECT position, event_id, kind, field, value, reason, undoes, active_ms, idle_ms FROM events "
        "WHERE batch = ? AND annotator_id = ? ORDER BY seq"
    )
    of: dict[int, list[Event]] = {}
    for position, *event in conn.execute(query, [info.batch, person]):
        of.setdefault(position, []).append(Event(*event))
    seats = "SELECT position, unit_id, repeat, role FROM assignments WHERE batch = ? AND annotator_id = ?"
    for position, unit, repeat, role in conn.execute(seats, [info.batch, person]).fetchall():
        if position in of:
            settle(conn, info.task, (info.batch, person, position), role, (unit, repeat), fold(of[position]))
    return len(of)


def _finish(
    store: Store, info: BatchInfo, given: Mapping[str, Sequence[str]], done: Changed, allow: bool
) -> None:
    done.positions = {person: len(units) for person, units in given.items()}
    done.notes += check_exposed(store, info.task, info.batch, given, allow=allow)


def _newcomers(conn: sqlite3.Connection, name: str, people: Iterable[str]) -> None:
    for person in people:
        _not_stopped(conn, name, person)
        if person in people_of(conn, name):
            raise UsageError(f"{person} is in batch '{name}' already: annotate batches extend, or hand-over")
        ensure_human(conn, [person])


def _not_stopped(conn: sqlite3.Connection, name: str, person: str) -> None:
    if why := is_stopped(conn, name, person):
        raise UsageError(
            f"batch '{name}': {person} was stopped ({why}): annotate batches stop {name} --annotator {person} --undo"
        )


def _seed(info: BatchInfo) -> int:
    return int(info.options.get("seed", 0))


def _plan(info: BatchInfo) -> Plan:
    known = {f.name for f in fields(Plan)}
    options = {k: v for k, v in info.options.items() if k in known}
    if not {"name", "annotators"} <= set(options):
        raise UsageError(f"batch '{info.batch}' does not say how it was drawn: draw a new batch")
    return Plan(**options)


def _larger(plan: Plan, n: int | None, questions: int | None) -> Plan:
    if plan.by_question:
        if questions is None or n is not None:
            raise UsageError("this batch holds whole questions: say how many more with --by-question N")
        more = plan.by_question + questions
        return replace(
            plan, by_question=more, n=None if plan.n is None else plan.n // plan.by_question * more
        )
    if n is None or questions is not None:
        raise UsageError("say how many units more: -n N")
    return replace(plan, n=(plan.n or 0) + n)


def _sample(conn: sqlite3.Connection, name: str) -> list[str]:
    query = "SELECT unit_id FROM batch_units WHERE batch = ? AND role = 'sample' ORDER BY unit_id"
    return [u for (u,) in conn.execute(query, [name])]


def _units_of(conn: sqlite3.Connection, name: str, person: str) -> set[str]:
    query = "SELECT unit_id FROM assignments WHERE batch = ? AND annotator_id = ? AND role <> 'adjudication'"
    return {u for (u,) in conn.execute(query, [name, person])}


def _open_count(conn: sqlite3.Connection, name: str, person: str) -> int:
    query = "SELECT count(*) FROM assignments WHERE batch = ? AND annotator_id = ? AND status = 'open'"
    return int(conn.execute(query, [name, person]).fetchone()[0])


def _load(conn: sqlite3.Connection, name: str) -> dict[str, int]:
    """Unit -> how many people have it who were not stopped."""
    query = """
        SELECT a.unit_id, count(*) FROM assignments AS a WHERE a.batch = ? AND a.role = 'sample' AND NOT EXISTS
        (SELECT 1 FROM stopped AS s WHERE s.batch = a.batch AND s.annotator_id = a.annotator_id) GROUP BY a.unit_id
    """
    return dict(conn.execute(query, [name]).fetchall())


def _untaken(store: Store, info: BatchInfo, units: set[str]) -> None:
    """Raises UsageError when a later batch on the same questions holds any of the units."""
    query = (
        "SELECT b.batch, count(*) FROM batch_units AS b WHERE b.unit_id IN (SELECT value FROM json_each(?)) AND b.batch <> ? "
        "AND EXISTS (SELECT 1 FROM batches AS o WHERE o.batch = b.batch AND o.task = ?) GROUP BY b.batch"
    )
    found = store.conn.execute(query, [dumps(sorted(units)), info.batch, info.task.name]).fetchone()
    if found:
        raise UsageError(
            f"batch '{info.batch}': {found[1]} of the next units are in batch '{found[0]}', drawn since: draw a new batch"
        )


def _weigh(conn: sqlite3.Connection, name: str, drawn: Sequence[Drawn], before: set[str]) -> None:
    for d in drawn:
        if d.unit_id in before:
            conn.execute(
                "UPDATE batch_units SET probability = ?, weight = ? WHERE batch = ? AND unit_id = ?",
                [d.probability, d.weight, name, d.unit_id],
            )
        else:
            conn.execute(
                "INSERT INTO batch_units VALUES (?, ?, 'sample', ?, ?, ?)",
                [name, d.unit_id, d.stratum, d.probability, d.weight],
            )


def _blocks(conn: sqlite3.Connection, info: BatchInfo, units: Sequence[str]) -> list[list[str]]:
    """Units that stay together, as `sample.assign` keeps them, in study order."""
    query = "SELECT unit_id, question_id, answer_id FROM units WHERE unit_id IN (SELECT value FROM json_each(?)) ORDER BY rowid"
    found: dict[str, list[str]] = {}
    for unit, question, answer in conn.execute(query, [dumps(sorted(units))]):
        part_of = answer if info.task.spec.unit in PARTS else None
        key = question if info.options.get("by_question") else part_of or unit
        found.setdefault(key, []).append(unit)
    return list(found.values())


def _seat(
    conn: sqlite3.Connection, info: BatchInfo, person: str, blocks: Sequence[Sequence[str]], *, checks: bool
) -> list[str]:
    """Put blocks behind what the person has; with the batch's checks for somebody new. Returns the units to label."""
    name = info.batch
    query = "SELECT unit_id FROM batch_units WHERE batch = ? AND role = ? ORDER BY unit_id"
    roles = {
        role: [u for (u,) in conn.execute(query, [name, role])] if checks else []
        for role in ("training", "attention")
    }
    answers = "SELECT unit_id, answer_id FROM units WHERE kind IN (SELECT value FROM json_each(?)) AND answer_id IS NOT NULL"
    mine = {u for block in blocks for u in block}
    answer_of = {u: a for u, a in conn.execute(answers, [dumps(list(PARTS))]) if u in mine}
    places = sequence(
        blocks,
        person,
        _seed(info),
        training=roles["training"],
        attention=roles["attention"],
        repeats=float(info.options.get("repeats") or 0),
        answer_of=answer_of,
    )
    _append(conn, name, person, places)
    return [p.unit_id for p in places if p.role in ("sample", "attention")]


def _append(conn: sqlite3.Connection, name: str, person: str, places: Sequence[Place]) -> None:
    # A position that was handed over is never another unit's: a pack may still come back with it.
    last = max(
        conn.execute(f"SELECT coalesce(max(position), 0) FROM {t} WHERE batch = ? AND annotator_id = ?", [name, person]).fetchone()[0]
        for t in ("assignments", "handed_over", "events")
    )  # fmt: skip
    conn.executemany(
        "INSERT INTO assignments (batch, annotator_id, position, unit_id, role, repeat) VALUES (?, ?, ?, ?, ?, ?)",
        [(name, person, last + i, p.unit_id, p.role, p.repeat) for i, p in enumerate(places, 1)],
    )
