"""The lead's queue: units of a batch on which people disagree or that nobody could label, in a seeded order.

The batch's policy can decide some of these units without the lead. It uses the majority of the people or, for
numbers, the median of answers within a tolerance. The log records its decisions under the name `policy`.
"""

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from ulid import ULID

from annotate.batch_plan import Policy
from annotate.drawing.places import Place
from annotate.drawing.sample import shuffle
from annotate.drawing.seats import add_places, log, open_batch
from annotate.sitting.desk import BatchInfo, batch_info
from annotate.sitting.events import Event, Kind, fold
from annotate.sitting.standing import append, events_at, make_session, write_state
from annotate.store import ADJUDICATED, ensure_adjudicated, ensure_human
from judge.errors import UsageError
from judge.store import Store
from judge.store.study import dumps

POLICY = "policy"
"""The name that is recorded as the person in sessions in which a policy decided."""


@dataclass(slots=True)
class _Unit:
    """The answers that people gave for one unit. People whom a lead stopped are ignored."""

    open: int = 0
    given_up: int = 0
    """The number of people who skipped the unit, or who flagged it without answering."""
    answers: list[dict[str, str]] = field(default_factory=list)
    flagged: int = 0

    @property
    def differs(self) -> bool:
        # Sorted, because people answer several questions in different orders.
        return len({json.dumps(a, sort_keys=True) for a in self.answers}) > 1

    @property
    def stuck(self) -> bool:
        """Whether everybody skipped or flagged the unit, so that only a lead can decide it."""
        people = self.open + self.given_up + len(self.answers)
        return people > 0 and (self.given_up == people or self.flagged == people)


def _units(store: Store, batch: str) -> dict[str, _Unit]:
    units: dict[str, _Unit] = {}
    query = (
        "SELECT a.unit_id, a.status, a.answers, a.flag FROM assignments AS a WHERE a.batch = ? AND a.role = 'sample' "
        "AND NOT EXISTS (SELECT 1 FROM stopped AS s WHERE s.batch = a.batch AND s.annotator_id = a.annotator_id)"
    )
    for unit, status, answers, flag in store.conn.execute(query, [batch]):
        state = units.setdefault(unit, _Unit())
        state.flagged += flag is not None
        if status == "done":
            state.answers.append(json.loads(answers))
        elif status == "skipped" or flag is not None:
            state.given_up += 1
        else:
            state.open += 1
    return units


def for_the_lead(store: Store, batch: str) -> dict[str, int]:
    """Count the units that need a lead's decision.

    The keys are `differ` (people disagree) and `stuck` (everybody skipped or flagged the unit).
    """
    ruled = "SELECT unit_id FROM assignments WHERE batch = ? AND role = 'adjudication' AND status <> 'open'"
    done = {u for (u,) in store.conn.execute(ruled, [batch])}
    waiting = [state for unit, state in _units(store, batch).items() if unit not in done]
    return {"differ": sum(u.differs for u in waiting), "stuck": sum(u.stuck for u in waiting)}


def fill_queue(store: Store, batch: str, lead: str, *, allow_own: bool = False) -> int:
    """Queue the units that need a lead's decision, and return how many of them `lead` may decide.

    A unit needs a decision if two people gave different answers, or if everybody skipped or flagged it. Units
    that the batch's policy can decide are left out.

    Units that `lead` has labelled are not counted, because nobody may adjudicate their own label. With
    `allow_own`, they are counted too.
    """
    info = batch_info(store, batch)
    # 0 would mean that nothing is left to decide. With this number, the session reports that the batch is closed.
    if info.closed:
        return 1
    predecide(store, batch)
    units = _units(store, batch)
    waiting = {unit for unit, state in units.items() if state.differs or state.stuck}
    if policy := info.plan.adjudication:
        ruled = {unit for unit, state in units.items() if _outcome(info, policy, state)}
        # Under a policy, a unit waits for the lead only after all its people are done, because a majority is possible
        # until then.
        waiting = {u for u in waiting if u not in ruled and not units[u].open}
    with store.transaction() as conn:
        ensure_human(conn, [lead])
        queued = _queue(conn, info, waiting)
        query = "SELECT unit_id FROM assignments WHERE batch = ? AND annotator_id = ?"
        labelled_by_lead = set() if allow_own else {u for (u,) in conn.execute(query, [batch, lead])}
    return len((queued | waiting) - labelled_by_lead)


def _queue(conn: sqlite3.Connection, info: BatchInfo, units: set[str]) -> set[str]:
    """Assign units for adjudication, except units that are already assigned. Return the units that were already
    assigned.
    """
    ensure_adjudicated(conn)
    query = "SELECT unit_id FROM assignments WHERE batch = ? AND annotator_id = ?"
    queued = {u for (u,) in conn.execute(query, [info.batch, ADJUDICATED])}
    new = _order_units(conn, units - queued, info.plan.seed)
    add_places(conn, info.batch, ADJUDICATED, [Place(unit, "adjudication") for unit in new])
    return queued


def set_policy(store: Store, name: str, policy: Policy, *, note: str | None = None) -> None:
    """Store the adjudication policy of a batch. An empty policy removes the stored one.

    Raises UsageError if the batch cannot be changed, or if a tolerance is given for a field that is not
    numeric.
    """
    info = open_batch(store, name)
    numbers = [q.field for q in info.task.spec.questions if q.level == "interval"]
    for field_name, most in policy.tolerance.items():
        if field_name not in numbers:
            listed = ", ".join(numbers) or "it has none"
            raise UsageError(
                f"--tolerance {field_name}: not a numeric question of {info.task.name} (numeric: {listed})"
            )
        # `float` accepts "nan" and "inf": with these, no answers or all answers would agree.
        if not (math.isfinite(most) and most >= 0):
            raise UsageError(f"--tolerance {field_name}={most:g}: must be a number, 0 or more")
    with store.transaction() as conn:
        change = (
            "json_set(options, '$.adjudication', json(?1))"
            if policy
            else "json_remove(options, '$.adjudication')"
        )
        conn.execute(
            f"UPDATE batches SET options = {change} WHERE batch = ?2", [dumps(policy.to_stored()), name]
        )
        log(conn, name, "policy", None, policy.to_stored(), note)


def _outcome(info: BatchInfo, policy: Policy, unit: _Unit) -> dict[str, str] | None:
    """Return the policy's decision on a unit. Return None if the policy does not decide every question, so that
    the lead must decide.
    """
    if unit.open or not unit.differs:
        return None
    values = {}
    for question in info.task.spec.questions:
        answers = [a[question.field] for a in unit.answers if question.field in a]
        value = _find_agreed_value(answers, policy.tolerance.get(question.field), policy.majority)
        if value is None:
            return None
        values[question.field] = value
    return values


def _find_agreed_value(answers: Sequence[str], tolerance: float | None, majority: bool) -> str | None:
    if not answers:
        return None
    value, count = Counter(answers).most_common(1)[0]
    if count == len(answers) or (majority and 2 * count > len(answers)):
        return value
    if tolerance is not None:
        # The import loads numpy, which few tasks need.
        from judge.labels.values import number

        numbers = [float(answer) for answer in answers]
        # The tolerance covers rounding: a difference of 0.1 is not exact in binary, but a person would call
        # it equal.
        if max(numbers) - min(numbers) <= tolerance + 1e-9:
            return number(repr(median(numbers)))
    return None


def predecide(store: Store, batch: str) -> int:
    """Apply the policy, and return the number of units that it decides. Its earlier decisions that no longer
    hold are withdrawn.

    Units for which a lead has logged an event are not changed.
    """
    info = batch_info(store, batch)
    policy = info.plan.adjudication
    units = _units(store, batch)
    with store.transaction() as conn:
        ruled = {u: o for u, state in units.items() if policy and (o := _outcome(info, policy, state))}
        before = _read_decided(conn, batch, by_policy=True)
        if not ruled and not before:
            return 0
        leads = _read_decided(conn, batch, by_policy=False)
        outcomes = {u: o for u, o in ruled.items() if u not in leads}
        _queue(conn, info, set(outcomes))
        seats = "SELECT unit_id, position, answers FROM assignments WHERE batch = ? AND annotator_id = ?"
        session = ""
        for unit, position, text in conn.execute(seats, [batch, ADJUDICATED]).fetchall():
            current, outcome = json.loads(text), outcomes.get(unit, {})
            if unit in leads or (unit not in before and not outcome) or current == outcome:
                continue
            # The session is created with the first change only: every `annotate adjudicate` runs this, and an empty session
            # has no meaning.
            session = session or make_session(conn, batch, ADJUDICATED, POLICY, "policy")
            _log_outcome(conn, info, session, (unit, position), outcome)
    return len(outcomes)


def _read_decided(conn: sqlite3.Connection, batch: str, *, by_policy: bool) -> set[str]:
    """Return the units for which a lead logged an event.

    With `by_policy`, return the units for which the policy logged an event.
    """
    query = (
        "SELECT DISTINCT a.unit_id FROM events AS e JOIN sessions AS s USING (session_id) JOIN assignments AS a "
        "ON a.batch = e.batch AND a.annotator_id = e.annotator_id AND a.position = e.position "
        f"WHERE e.batch = ? AND e.annotator_id = ? AND (s.person = ?) = {by_policy:d}"
    )
    return {u for (u,) in conn.execute(query, [batch, ADJUDICATED, POLICY])}


def _log_outcome(
    conn: sqlite3.Connection, info: BatchInfo, session: str, seat: tuple[str, int], outcome: Mapping[str, str]
) -> None:
    """Undo the policy's earlier decisions on a unit, log its current decisions, and update the unit's state and
    labels.
    """
    unit, position = seat
    events = events_at(conn, info.batch, ADJUDICATED, position)
    undone = {e.undoes for e in events}
    new = [
        Event(str(ULID()), Kind.UNDO, None, None, None, e.event_id)
        # Undo the latest events first, as a person does.
        for e in reversed(events)
        if e.kind == Kind.LABEL and e.event_id not in undone
    ]
    new += [Event(str(ULID()), Kind.LABEL, name, value, None, None) for name, value in outcome.items()]
    for e in new:
        append(conn, info.batch, ADJUDICATED, position, e, session)
    place = (info.batch, ADJUDICATED, position)
    write_state(conn, info.task, place, "adjudication", (unit, 0), fold([*events, *new]))


def _order_units(conn: sqlite3.Connection, units: set[str], seed: int) -> list[str]:
    """Return the units in a seeded order. The parts of an answer keep their original order."""
    query = "SELECT unit_id, coalesce(answer_id, unit_id) FROM units WHERE unit_id IN (SELECT value FROM json_each(?)) ORDER BY rowid"
    groups: dict[str, list[str]] = {}
    for unit, answer in conn.execute(query, [dumps(sorted(units))]):
        groups.setdefault(answer, []).append(unit)
    return [unit for answer in shuffle(groups, seed, "adjudicate") for unit in groups[answer]]
