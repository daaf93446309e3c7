"""The events of one unit, and the state that is computed from them.

Only the event log is stored as entered. Everything else about a unit is computed from the log, and can be
recomputed. An undo is also an event. It names the event that no longer counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from judge.prompts.load import Task
from judge.store.study import dumps
from judge.types import Json


class Kind(StrEnum):
    """The kind of an event. An event is an action by a person, or by the program on a person's behalf."""

    LABEL = "label"
    SKIP = "skip"
    FLAG = "flag"
    NOTE = "note"
    SPAN = "span"
    SHOWN = "shown"
    """The judge's label or the training key was shown. After this event, the first labels cannot change."""
    KEEP = "keep"
    REVISE = "revise"
    UNDO = "undo"


class UnitStatus(StrEnum):
    """The status of a unit."""

    OPEN = "open"
    DONE = "done"
    SKIPPED = "skipped"


FIRST_LAYER = (Kind.LABEL, Kind.SKIP)
STOPPED = "stopped"
"""The layer for labels by a person whom a lead has stopped in the batch. No result uses these labels."""
BLIND, ASSISTED, UNDECLARED = "blind", "assisted", "undeclared"
"""The values of `reason` in label events from imports, which state whether suggestions were visible. The last
two are also layers.
"""
# SHOWN cannot be undone, because undo cannot make somebody forget what they have seen.
UNDOABLE = (Kind.LABEL, Kind.SKIP, Kind.FLAG, Kind.NOTE, Kind.SPAN, Kind.KEEP, Kind.REVISE)


class Event(NamedTuple):
    """One row of the log, with the columns from which the state is computed."""

    event_id: str
    kind: str
    field: str | None
    value: str | None
    reason: str | None
    undoes: str | None
    active_ms: int = 0
    idle_ms: int = 0
    outdated: int = 0
    """How often the text of the unit was corrected after the event."""


WAS_CORRECTED = (
    "coalesce((SELECT w.outdated FROM main.event_corrections AS w WHERE w.event_id = {0}.event_id), 0)"
)
"""SQL for the column `outdated` of an event, in a query that calls the table of events `{0}`."""


class Revision(NamedTuple):
    """A label given after the judge's label was shown. `kept` is true if it equals the first label."""

    value: str
    reason: str | None
    kept: bool


@dataclass(slots=True)
class State:
    """The state of one unit for one annotator."""

    answers: dict[str, str] = field(default_factory=dict)
    revised: dict[str, Revision] = field(default_factory=dict)
    spans: list[tuple[str, int, int]] = field(default_factory=list)
    skipped: bool = False
    flag: str | None = None
    note: str | None = None
    locked: bool = False
    active_ms: int = 0
    idle_ms: int = 0
    layers: dict[str, str] = field(default_factory=dict)
    """A map from each field whose first label is not known to be blind to `assisted` or `undeclared`."""
    before: State | None = None
    """The state of the unit with its previous text, or None if the text was not corrected. Its answers are for the old
    text: they stay in the study, but the unit must be labelled again.
    """

    def texts(self) -> Iterator[State]:
        """Yield this state and the states with earlier texts, the current one first."""
        yield self
        if self.before is not None:
            yield from self.before.texts()

    def status(self, fields: Sequence[str]) -> UnitStatus:
        """Return the unit's status: skipped, done (every field has an answer) or open."""
        if self.skipped:
            return UnitStatus.SKIPPED
        return UnitStatus.DONE if all(f in self.answers for f in fields) else UnitStatus.OPEN

    def next_field(self, fields: Sequence[str]) -> str | None:
        """Return the first field without an answer, or None if all fields have one."""
        return next((f for f in fields if f not in self.answers), None)


def fold(events: Iterable[Event]) -> State:
    """Compute the state of a unit from its events, in their order."""
    rows = list(events)
    undone = {e.undoes for e in rows if e.kind == Kind.UNDO}
    # An answer belongs to the text that was shown, so each text has its own state.
    state = State()
    texts = [state]
    for _ in range(max((e.outdated for e in rows), default=0)):
        earlier = State()
        texts[-1].before = earlier
        texts.append(earlier)
    for e in rows:
        # The time for a label that was undone was still spent.
        state.active_ms += e.active_ms
        state.idle_ms += e.idle_ms
        if e.event_id in undone:
            continue
        # A flag and a note stay with the unit; an answer, evidence and a lock belong to the text.
        _apply(state if e.kind in (Kind.FLAG, Kind.NOTE) else texts[e.outdated], e)
    return state


def explain_refusal(events: Sequence[Event], new: Event, fields: Sequence[str]) -> str | None:
    """Return the reason why a new event is not possible after a unit's earlier events, or None if it is
    possible.

    `fields` are the fields of the task's questions.
    """
    state = fold(events)
    stands = "the answer has been shown: your first label for this unit is final"
    if new.kind in FIRST_LAYER and state.locked:
        return stands
    if new.kind == Kind.SHOWN and state.status(fields) is not UnitStatus.DONE:
        # Otherwise, the person could read the judge's label before answering.
        return "answer every question first"
    if new.kind in (Kind.KEEP, Kind.REVISE) and not state.locked:
        return "nothing has been shown for this unit"
    if new.kind == Kind.UNDO:
        target = next((e for e in events if e.event_id == new.undoes), None)
        # The second undo of an event would undo nothing but be reported as an undo.
        is_undone = any(e.undoes == new.undoes for e in events)
        if target is None or target.kind not in UNDOABLE or is_undone:
            return "there is no such event to undo"
        if target.kind in FIRST_LAYER and state.locked:
            return stands
    return None


def spans_of(text: str) -> list[tuple[str, int, int]]:
    """Parse stored evidence into (input, start, end), in code points."""
    return [(str(name), int(start), int(end)) for name, start, end in json.loads(text)]


def _apply(state: State, e: Event) -> None:
    if e.kind == Kind.LABEL and e.field is not None and e.value is not None:
        state.answers[e.field] = e.value
        state.skipped = False
        _layer(state, e.field, e.reason)
    elif e.kind == Kind.SKIP:
        state.skipped = True
    elif e.kind == Kind.FLAG:
        state.flag = e.value
    elif e.kind == Kind.NOTE:
        state.note = e.value
    elif e.kind == Kind.SPAN:
        state.spans = spans_of(e.value or "[]")
    elif e.kind == Kind.SHOWN:
        state.locked = True
    elif e.kind in (Kind.KEEP, Kind.REVISE) and e.field is not None and e.value is not None:
        state.revised[e.field] = Revision(e.value, e.reason, e.kind == Kind.KEEP)


def standing(state: State, fields: Sequence[str]) -> dict[str, Json]:
    """Return the columns of a unit's row in `assignments` that are computed from the unit's state."""
    return {
        "status": str(state.status(fields)),
        "answers": dumps(state.answers),
        "revised": dumps({f: r._asdict() for f, r in state.revised.items()}),
        "layers": dumps(state.layers),
        "spans": dumps([list(s) for s in state.spans]),
        "flag": state.flag,
        "note": state.note,
        "locked": int(state.locked),
        "active_ms": state.active_ms,
        "idle_ms": state.idle_ms,
    }


def _layer(state: State, name: str, reason: str | None) -> None:
    # Once somebody has seen a suggestion, later answers to that question are not blind either.
    if state.layers.get(name) == ASSISTED:
        return
    if reason in (ASSISTED, UNDECLARED):
        state.layers[name] = str(reason)
    elif reason == BLIND:
        # A file that declares a label blind resolves an undeclared label.
        state.layers.pop(name, None)


class NewLabel(NamedTuple):
    """A label to store in the study's table of labels."""

    field: str
    layer: str
    value: str
    rationale: str | None = None
    derived_from: str | None = None


def label_rows(state: State, task: Task) -> list[NewLabel]:
    """Return the labels that are computed from a unit's state. They include derived labels, except for those
    that are derived from gold.
    """
    # A skip overrides earlier answers, because the person decided that the unit cannot be judged.
    if state.skipped:
        return []
    # The answers to a new text replace those to the earlier ones, question by question.
    for old in [*state.texts()][1:]:
        if old.skipped:
            break
        state = replace(
            state,
            answers=old.answers | state.answers,
            revised={f: r for f, r in old.revised.items() if f not in state.answers} | state.revised,
            layers={f: v for f, v in old.layers.items() if f not in state.answers} | state.layers,
        )
    rows = [NewLabel(f, state.layers.get(f, "first"), v) for f, v in state.answers.items()]
    rows += [NewLabel(f, "revised", r.value, r.reason) for f, r in state.revised.items()]
    for row in list(rows):
        for name, rule in task.spec.derive.items():
            if rule.source == row.field and not rule.gold and row.value in rule.table:
                rows.append(NewLabel(name, row.layer, rule.table[row.value], None, row.field))
    return rows
