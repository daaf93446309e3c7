"""Adopt labels that a person gave before a batch was drawn.

They are stored as events in the batch's log. Each label remains marked as blind, assisted or undeclared.
"""

import sqlite3
from collections.abc import Collection

from ulid import ULID

from annotate.sitting.events import BLIND, Event, Kind, fold
from annotate.sitting.standing import append, events_at, make_session, write_state
from judge.labels import relation
from judge.prompts.load import Task
from judge.store import label_sources
from judge.store.study import dumps

# Not adopted: labels of a stopped person, which do not count, and revised labels, which have a first label as
# well.
LAYERS = ("first", "assisted", "undeclared")
"""The layers of labels that are adopted."""


def adopt(conn: sqlite3.Connection, task: Task, batch: str, person: str, units: Collection[str]) -> set[str]:
    """Adopt a person's earlier labels for units that were drawn for this person.

    Return the units for which the earlier labels answer every question.
    """
    # Leaving such units out of the draw would make it unrepresentative, and a second answer would be influenced by the
    # first. A label in conflict is not adopted: the person labels the unit, and a lead decides.
    # A hidden repeat measures whether the person gives the same answer again, so no earlier label replaces
    # it.
    query = (
        "SELECT a.position, a.unit_id FROM assignments AS a WHERE a.batch = ? AND a.annotator_id = ? "
        "AND a.role = 'sample' AND a.repeat = 0 AND a.unit_id IN (SELECT value FROM json_each(?)) ORDER BY a.position"
    )
    seats = conn.execute(query, [batch, person, dumps(list(units))]).fetchall()
    fields = [question.field for question in task.spec.questions]
    known = {field: _read_labels(conn, task, person, field) for field in fields}
    session = None
    finished = set()
    for position, unit in seats:
        answers = {field: known[field][unit] for field in fields if unit in known[field]}
        if not answers:
            continue
        session = session or make_session(conn, batch, person, person, "adopt")
        for field, (value, layer) in answers.items():
            sources = [s for s in label_sources.read_labels(conn, unit, field, person, 0) if s.value == value]
            event = Event(str(ULID()), Kind.LABEL, field, value, BLIND if layer == "first" else layer, None)
            append(conn, batch, person, position, event, session, sources[0].at)
            origin = dumps([s.source for s in sources])
            conn.execute("INSERT INTO event_sources VALUES (?, ?)", [event.event_id, origin])
        state = fold(events_at(conn, batch, person, position))
        write_state(conn, task, (batch, person, position), "sample", (unit, 0), state)
        if len(answers) == len(fields):
            finished.add(unit)
    return finished


def read_labelled_before(conn: sqlite3.Connection, task: Task, people: Collection[str]) -> list[str]:
    """Return the units on which any of these people answered a question of the task, in a batch or an import."""
    query = (
        "SELECT DISTINCT unit_id FROM label_sources WHERE annotator_id IN (SELECT value FROM json_each(?)) "
        "AND field IN (SELECT value FROM json_each(?)) ORDER BY unit_id"
    )
    fields = [question.field for question in task.spec.questions]
    return [unit for (unit,) in conn.execute(query, [dumps(list(people)), dumps(fields)])]


def _read_labels(conn: sqlite3.Connection, task: Task, person: str, field: str) -> dict[str, tuple[str, str]]:
    """Return a person's labels for a field, as a map from units to (label, layer).

    The layer states whether the label is blind. Labels that the task does not allow are left out.
    """
    domain = task.domain(field)
    return {
        unit: (value, layer)
        for layer in LAYERS
        for unit, value in relation.values(conn, person, field, layer).items()
        # An import without a task accepts any label, also those that this task does not have.
        if not domain or value in domain
    }
