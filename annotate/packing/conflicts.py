"""Find contradictions between a pack and the study, and carry out the lead's decisions about them."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ulid import ULID

from annotate.sitting.desk import Desk, batch_info
from annotate.sitting.events import ASSISTED, FIRST_LAYER, UNDOABLE, Event, Kind, State, fold
from annotate.sitting.exposure import is_exposed
from annotate.sitting.standing import INSERT, add_session, append, events_at, make_session, replay_log
from judge.store import Store

_ANSWER = "answer"
_PARTS: dict[str, Callable[[State], object]] = {
    _ANSWER: lambda state: (state.answers, state.skipped),
    "note": lambda state: state.note,
    "flag": lambda state: state.flag,
    "evidence": lambda state: state.spans,
}
_PART_OF = {Kind.NOTE: "note", Kind.FLAG: "flag", Kind.SPAN: "evidence"}


def conflict(position: int, events: Sequence[Event], mine: Sequence[Event]) -> str | None:
    """Describe how a unit's events in the study (`mine`) contradict its events in the file (`events`).

    They contradict each other if either of them changed the unit, and the events of the other would reverse
    this change. Return None if there is no contradiction.
    """
    differences = _contradicting(events, mine)
    if _ANSWER in differences or _undone(events) & _undone(mine) - {
        e.undoes for e in _select_known(events, mine)
    }:
        return f"unit {position}: {_describe_state(fold(mine))} in the study, but {_describe_state(fold(events))} in the file"
    return (
        f"unit {position}: the {' and the '.join(differences)} in the study and in the file differ"
        if differences
        else None
    )


def _contradicting(events: Sequence[Event], mine: Sequence[Event]) -> list[str]:
    """Return the names of the parts of a unit's state that the study and the file changed in contradictory ways.

    This is the case if one of them has changed a part since packing, and the events of the other would reverse
    this change.
    """
    known = _select_known(events, mine)
    ids = {e.event_id for e in known}
    sides = fold(mine), fold(events)
    before, merged = fold(known), fold([*mine, *(e for e in events if e.event_id not in ids)])
    return [
        name
        for name, part in _PARTS.items()
        if any(part(before) != part(side) != part(merged) for side in sides)
    ]


def _select_known(events: Sequence[Event], mine: Sequence[Event]) -> list[Event]:
    ids = {e.event_id for e in events}
    return [e for e in mine if e.event_id in ids]


def _undone(events: Iterable[Event]) -> set[str]:
    return {e.undoes for e in events if e.undoes}


def _describe_state(state: State) -> str:
    return "skipped" if state.skipped else ", ".join(state.answers.values()) or "open"


def settle_conflict(store: Store, payload: Mapping[str, Any]) -> None:
    """Replace the study's version of a unit with the file's version.

    Changes in the study that contradict the file are undone by new events, so the log keeps all events. A
    second call changes nothing. Raises StudyError if the batch is closed, or if the person is currently
    working.
    """
    batch, person, position = payload["batch"], payload["annotator"], int(payload["position"])
    info = batch_info(store, batch)
    with Desk.open(store, batch, person, returning=True), store.transaction() as conn:
        seated = "SELECT count(*) FROM assignments WHERE batch = ? AND annotator_id = ? AND position = ?"
        if not conn.execute(seated, [batch, person, position]).fetchone()[0]:
            give_back(conn, batch, person, [position])
        mine = events_at(conn, batch, person, position)
        here = {e.event_id for e in mine}
        # An event can be undone only once, so the same undo in both places counts once.
        new = [e for e in payload["events"] if e[0] not in here and (not e[5] or e[5] not in _undone(mine))]
        if not new:
            return
        session = make_session(conn, batch, person, person, "merge")
        for event in _giving_way(mine, payload):
            append(conn, batch, person, position, event, session)
        for row in payload["sessions"]:
            add_session(conn, row)
        unit = "SELECT unit_id FROM assignments WHERE batch = ? AND annotator_id = ? AND position = ?"
        of = conn.execute(unit, [batch, person, position]).fetchone()[0]
        for event_id, *rest in new:
            # A wrong time cannot show that a label was given before an answer was shown.
            before = rest[-1] if payload.get("believed", True) else None
            if rest[0] == Kind.LABEL and is_exposed(conn, info.task, person, of, before):
                rest[3] = ASSISTED
            conn.execute(INSERT, [event_id, batch, person, position, *rest])
        replay_log(conn, info.task, batch, person, [position])


def _giving_way(mine: Sequence[Event], payload: Mapping[str, Any]) -> list[Event]:
    """Return new events that make the study agree with the file where the two contradict each other."""
    came = [Event(*e[:8]) for e in payload["events"]]
    known = {*payload["known"], *(e.event_id for e in came)}
    there = [*(e for e in mine if e.event_id in payload["known"]), *came]
    parts, locked = _contradicting(there, mine), fold(mine).locked

    def gives_way(event: Event) -> bool:
        part = _PART_OF.get(Kind(event.kind), _ANSWER)
        # A first answer is final once the judge was shown, because no later answer to this unit is blind.
        return event.kind in UNDOABLE and part in parts and not (locked and event.kind in FIRST_LAYER)

    done = [e for e in mine if gives_way(e) and e.event_id not in known | _undone(mine)]
    lost = [e for e in mine if gives_way(e) and e.event_id in known & _undone(mine) - _undone(there)]
    again = [e._replace(event_id=str(ULID()), active_ms=0, idle_ms=0) for e in lost]
    return [*(Event(str(ULID()), Kind.UNDO, None, None, "merge", e.event_id) for e in reversed(done)), *again]


def give_back(conn: sqlite3.Connection, batch: str, person: str, positions: Sequence[int]) -> int:
    """Give handed-over units back to their first annotator, because the pack contains that person's labels for them.

    The units also stay with the people who received them. Return the number of units.
    """
    for position in positions:
        conn.execute(
            "INSERT INTO assignments (batch, annotator_id, position, unit_id, role, repeat) "
            "SELECT batch, annotator_id, position, unit_id, role, repeat FROM handed_over "
            "WHERE batch = ? AND annotator_id = ? AND position = ?",
            [batch, person, position],
        )
    return len(positions)
