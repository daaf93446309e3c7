"""Change a running batch: add, replace and stop annotators. Every change is recorded in `batch_changes`.

No function in this module changes an existing label. A unit is handed over to another person only if its
annotator has not worked on it.
"""

import sqlite3
from collections.abc import Iterable, Sequence

from annotate.drawing import seats
from annotate.drawing.sample import shuffle
from annotate.drawing.seats import Changed
from annotate.sitting.desk import BatchInfo, batch_info
from annotate.sitting.standing import is_stopped, people_of, refuse_person, replay_log
from annotate.store import ensure_human
from judge.commands import command
from judge.errors import UsageError
from judge.store import Store
from judge.store.study import get_time


def close_batch(store: Store, name: str, note: str | None = None) -> BatchInfo:
    """Close a batch, which then accepts no more events. Raises UsageError if the batch is already closed."""
    info = batch_info(store, name)
    if info.closed:
        raise UsageError(f"batch '{name}' was already closed on {info.closed[:10]}")
    with store.transaction() as conn:
        conn.execute("UPDATE batches SET closed = ? WHERE batch = ?", [get_time(), name])
        seats.log(conn, name, "close", note=note)
    return info


def reopen_batch(store: Store, name: str, note: str | None = None) -> None:
    """Reopen a closed batch. Raises UsageError if it is open."""
    info = batch_info(store, name)
    if not info.closed:
        raise UsageError(f"batch '{name}' is already open")
    with store.transaction() as conn:
        conn.execute("UPDATE batches SET closed = NULL WHERE batch = ?", [name])
        seats.log(conn, name, "reopen", detail={"closed": info.closed}, note=note)


def add_people(
    store: Store,
    name: str,
    people: Sequence[str],
    *,
    n: int | None = None,
    note: str | None = None,
    allow_exposed: bool = False,
) -> Changed:
    """Assign units of the batch's sample to new people.

    Each person gets the `n` units that have the fewest annotators, or all units if `n` is None. The person
    also gets the batch's training units, which come first, and its attention units. Raises UsageError if a
    person is already in the batch, was stopped in it, or has seen the answers elsewhere.
    """
    info = seats.open_batch(store, name)
    people = list(dict.fromkeys(people))
    if not people:
        raise UsageError("--to must name at least one person, for example --to dave,erin")
    done = Changed(name)
    with store.transaction() as conn:
        _newcomers(conn, name, people)
        blocks = seats.blocks_of(conn, info, seats.sample_of(conn, name))
        if n is not None and n > sum(map(len, blocks)):
            raise UsageError(f"-n {n}: batch '{name}' has {sum(map(len, blocks))} units")
        given: dict[str, list[str]] = {}
        load = _load(conn, name)
        by_name = {b[0]: b for b in blocks}
        for person in people:
            chosen: list[list[str]] = []
            # Shuffle before sorting, so that chance decides among units with equally many people.
            ranked = shuffle(by_name, info.plan.seed, f"add:{person}")
            for head in sorted(ranked, key=lambda head: load.get(head, 0)):
                if n is None or sum(map(len, chosen)) < n:
                    chosen.append(by_name[head])
            for unit in (u for block in chosen for u in block):
                load[unit] = load.get(unit, 0) + 1
            given[person] = seats.seat(conn, info, person, chosen, checks=True)
            seats.log(conn, name, "add", person, {"units": sum(map(len, chosen))}, note)
        seats.finish(store, info, given, done, allow_exposed)
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
    """Assign the units of `person` that have no event to other people, who may be new to the batch.

    Units that were drawn together stay together. Each unit goes to the person with the least work among those
    who do not already have the unit. If nobody else can label a unit, it stays with `person`. The person's
    hidden repeats and checks are removed. Raises StudyError if the person is currently working, and UsageError
    under the same conditions as `add_people`.
    """
    info = seats.open_batch(store, name)
    to = list(dict.fromkeys(to))
    known = people_of(store.conn, name)
    if person not in known:
        raise refuse_person(name, person, known)
    if person in to or not to:
        raise UsageError(f"--to must not include {person}")
    done = Changed(name)
    # While the person is working, a unit could be labelled and handed over at the same time.
    busy = f"batch '{name}': {person} is working at this moment; hand over the units afterwards"
    with store.run_lock(f"annotate {name} {person}", busy), store.transaction() as conn:
        _newcomers(conn, name, [p for p in to if p not in known])
        for other in to:
            seats.require_active(conn, name, other)
        _move(conn, store, info, person, to, done, note, allow_exposed)
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
        raise UsageError(f"batch '{name}': {person} has already begun or finished every unit")
    units_of = {p: _units_of(conn, name, p) for p in to}
    todo = {p: _open_count(conn, name, p) for p in to}
    new_blocks: dict[str, list[list[str]]] = {p: [] for p in to}
    moved: dict[str, str] = {}
    for block in seats.blocks_of(conn, info, units):
        # Nobody may label a unit twice without knowing it.
        free = [p for p in to if not units_of[p] & set(block)]
        if not free:
            continue
        other = min(free, key=lambda p: (todo[p], to.index(p)))
        new_blocks[other].append(block)
        todo[other] += len(block)
        moved |= dict.fromkeys(block, other)
    have = "has" if len(to) == 1 else "have"
    if not moved:
        raise UsageError(f"batch '{name}': {', '.join(to)} already {have} all units of {person}")
    all_gone = len(moved) == len(units)
    stamp = get_time()
    for position, unit, role, repeat in rows:
        # Checks and repeats are removed, too, because they only make sense for somebody who continues.
        if unit in moved or (role != "sample" and all_gone):
            place = [name, person, position]
            receiver = moved.get(unit) if role == "sample" else None
            # The old position is stored, because a pack that contains it may still return.
            # A unit may have been handed over before and returned since.
            query = "INSERT OR REPLACE INTO handed_over VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            conn.execute(query, [*place, unit, role, repeat, receiver, stamp])
            conn.execute(
                "DELETE FROM assignments WHERE batch = ? AND annotator_id = ? AND position = ?", place
            )
    given = {}
    for other, blocks in new_blocks.items():
        if blocks:
            given[other] = seats.seat(conn, info, other, blocks, checks=other not in known)
    seats.log(conn, name, "hand over", person, {"to": {p: len(u) for p, u in given.items()}}, note)
    if left := len(units) - len(moved):
        done.notes.append(f"{left} units stay with {person}: {', '.join(to)} already {have} them")
    done.units = len(moved)
    seats.finish(store, info, given, done, allow_exposed)


# A unit with any event, such as a note, counts as started: the person would lose that work.
_UNTOUCHED = """
    SELECT a.position, a.unit_id, a.role, a.repeat FROM assignments AS a
    WHERE a.batch = ? AND a.annotator_id = ? AND a.role <> 'adjudication' AND a.status = 'open' AND NOT EXISTS
        (SELECT 1 FROM events AS e WHERE e.batch = a.batch AND e.annotator_id = a.annotator_id AND e.position = a.position)
    ORDER BY a.position
"""


def stop_person(store: Store, name: str, person: str, why: str) -> int:
    """Stop a person in a batch. The person's new events are rejected, and the person's labels move to the layer
    `stopped`.

    The log keeps all events, and `resume_person` restores the labels. Returns the number of units that the
    person has.
    """
    info = seats.open_batch(store, name)
    if person not in (known := people_of(store.conn, name)):
        raise refuse_person(name, person, known)
    if not why.strip():
        raise UsageError("--why must contain a reason, which is printed in the report")
    with store.transaction() as conn:
        if reason := is_stopped(conn, name, person):
            raise UsageError(f"batch '{name}': {person} is already stopped ({reason})")
        conn.execute("INSERT INTO stopped VALUES (?, ?, ?, ?)", [name, person, why.strip(), get_time()])
        seats.log(conn, name, "stop", person, {}, why.strip())
        return replay_log(conn, info.task, name, person)


def resume_person(store: Store, name: str, person: str, note: str | None = None) -> int:
    """Let a stopped person label again in a batch, and restore the person's labels. Returns the number of
    units that the person has.
    """
    info = seats.open_batch(store, name)
    with store.transaction() as conn:
        if not is_stopped(conn, name, person):
            raise UsageError(f"batch '{name}': {person} has not been stopped")
        conn.execute("DELETE FROM stopped WHERE batch = ? AND annotator_id = ?", [name, person])
        seats.log(conn, name, "resume", person, {}, note)
        return replay_log(conn, info.task, name, person)


def _newcomers(conn: sqlite3.Connection, name: str, people: Iterable[str]) -> None:
    for person in people:
        seats.require_active(conn, name, person)
        if person in people_of(conn, name):
            raise UsageError(
                f"{person} is already in batch '{name}'; to add units: {command('annotate batches extend', name, '--to', 'N')}"
            )
        ensure_human(conn, [person])


def _units_of(conn: sqlite3.Connection, name: str, person: str) -> set[str]:
    query = "SELECT unit_id FROM assignments WHERE batch = ? AND annotator_id = ? AND role <> 'adjudication'"
    return {u for (u,) in conn.execute(query, [name, person])}


def _open_count(conn: sqlite3.Connection, name: str, person: str) -> int:
    query = "SELECT count(*) FROM assignments WHERE batch = ? AND annotator_id = ? AND status = 'open'"
    return int(conn.execute(query, [name, person]).fetchone()[0])


def _load(conn: sqlite3.Connection, name: str) -> dict[str, int]:
    """Return a map from each unit to its number of annotators. People who were stopped are not counted."""
    query = """
        SELECT a.unit_id, count(*) FROM assignments AS a WHERE a.batch = ? AND a.role = 'sample' AND NOT EXISTS
        (SELECT 1 FROM stopped AS s WHERE s.batch = a.batch AND s.annotator_id = a.annotator_id) GROUP BY a.unit_id
    """
    return dict(conn.execute(query, [name]).fetchall())
