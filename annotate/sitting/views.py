"""Pieces of SQL for the views of a blind session: what a unit shows, and labels that follow from gold."""

from __future__ import annotations

import hashlib

from annotate.sitting.events import FIRST_LAYER, UNDOABLE
from annotate.sitting.exposure import exposed, rows_after, rows_shown
from annotate.sitting.seat import Seat
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task
from judge.store.inputs import column, gold_value
from judge.store.label_rows import GIVEN_ONCE, quoted

PARTS = ("sentence", "citation", "claim")
"""Kinds of units that are parts of an answer, and stay together in a queue."""


def texts(task: Task, mine: str) -> str:
    """The task's inputs of one's own units; `start` and `stop` say where a sentence stands in its answer."""
    inputs = ", ".join(f'{column(task, name)} AS "{name}"' for name in task.input_names)
    return (
        "SELECT a.position, t.unit_id, t.question_id, t.answer_id, t.passage_id, t.item_id, "
        "json_extract(u.span, '$.start') AS start, json_extract(u.span, '$.end') AS stop, "
        f"{inputs} FROM main.assignments AS a JOIN main.unit_texts AS t ON t.unit_id = a.unit_id "
        f"JOIN main.units AS u ON u.unit_id = a.unit_id WHERE {mine}"
    )


def passages(task: Task, mine: str) -> str:
    """The passages that the task's lists name, in order; `place` counts them as the answer was given them."""
    shown = (
        "p.passage_id, p.item_id, p.title, p.date, p.source, p.text, "
        "(SELECT k.key FROM json_each(t.context) AS k WHERE k.value = p.passage_id LIMIT 1) AS place"
    )
    lists = [
        f"SELECT a.position, {quoted(name)} AS name, j.key AS n, {shown} FROM main.assignments AS a "
        f"JOIN main.unit_texts AS t ON t.unit_id = a.unit_id JOIN json_each({column(task, name)}) AS j "
        f"JOIN main.passages AS p ON p.passage_id = j.value WHERE {mine}"
        for name in task.input_names
        if name in LIST_INPUTS
    ]
    nothing = f"SELECT 0 AS position, '' AS name, 0 AS n, {', '.join(['NULL'] * 7)} WHERE 0"
    return " UNION ALL ".join(lists) or nothing


def parts(mine: str) -> str:
    """One's own units that are parts of answers. Hidden repeats and checks are left out: they stand alone."""
    kinds = ", ".join(map(quoted, PARTS))
    return (
        "SELECT a.position, u.unit_id, u.answer_id, u.rowid AS n, json_extract(u.span, '$.start') AS start, "
        "json_extract(u.span, '$.end') AS stop, a.status, a.answers FROM main.units AS u "
        "JOIN main.assignments AS a ON a.unit_id = u.unit_id "
        f"WHERE u.kind IN ({kinds}) AND a.role IN ('sample', 'adjudication') AND {mine}"
    )


FIRST = ("status", "answers", "layers")
"""What of a unit's standing follows from the first labels."""


class Locks:
    """SQL conditions on the log of the unit that a trigger is about; `own` picks its events `e`."""

    def __init__(self, task: Task, own: str) -> None:
        self.own = own
        given = f"{own} AND e.kind = 'label' AND {_STANDS}"
        self.shown = f"EXISTS (SELECT 1 FROM main.events AS e WHERE {own} AND e.kind = 'shown')"
        self.complete = " AND ".join(
            f"EXISTS (SELECT 1 FROM main.events AS e WHERE {given} AND e.field = {quoted(q.field)})"
            for q in task.spec.questions
        )
        sources = " ".join(f"WHEN {quoted(n)} THEN {quoted(r.source)}" for n, r in task.spec.derive.items())
        field = f"CASE NEW.field {sources} ELSE NEW.field END" if sources else "NEW.field"
        said = f"SELECT 1 FROM main.events AS e WHERE {given} AND e.field = {field} AND e.reason"
        later = (
            f"SELECT e.reason FROM main.events AS e WHERE {given} AND e.field = {field} "
            "AND e.reason IN ('undeclared', 'blind') ORDER BY e.seq DESC LIMIT 1"
        )
        # As annotate.sitting.events folds it: who has seen a suggestion once has seen it.
        self.layer = (
            "CASE NEW.layer WHEN 'revised' THEN 'revised' ELSE "
            f"CASE WHEN EXISTS ({said} = 'assisted') THEN 'assisted' WHEN ({later}) = 'undeclared' THEN 'undeclared' "
            "ELSE 'first' END END"
        )
        fields = ", ".join(quoted(f) for f in task.fields)
        self.may_label = f"NEW.field IN ({fields}) AND (NEW.layer = 'revised') = {self.shown}"


_STANDS = "NOT EXISTS (SELECT 1 FROM main.events AS x WHERE x.undoes = e.event_id)"


def still(batch: str, who: str) -> str:
    """A statement that refuses everything once the batch is closed or the person was stopped in it."""
    stopped = f"SELECT 1 FROM main.stopped WHERE batch = {batch} AND annotator_id = {who}"
    return (
        "SELECT RAISE(ABORT, 'the batch is closed, or the lead has stopped your work in it') FROM main.batches "
        f"WHERE batch = {batch} AND (closed IS NOT NULL OR EXISTS ({stopped}))"
    )


def events(task: Task, seat: Seat, here: str, locks: Locks) -> str:
    """The body of the trigger that appends an event: refused where the log does not allow it."""
    kinds = ", ".join(quoted(k) for k in UNDOABLE)
    first = ", ".join(quoted(k) for k in FIRST_LAYER)
    target = f"SELECT 1 FROM main.events AS e WHERE {locks.own} AND e.event_id = NEW.undoes AND e.kind IN ({kinds})"
    refused = [
        (f"NOT EXISTS (SELECT 1 FROM main.assignments WHERE {here})", "there is no such unit"),
        (
            f"NEW.kind IN ({first}) AND {locks.shown}",
            "the answer has been shown: your first label of this unit stands",
        ),
        (f"NEW.kind = 'label' AND NOT ({_labels(task)})", "this is no label of the task"),
        (f"NEW.kind = 'shown' AND NOT ({locks.complete})", "answer every question first"),
        (f"NEW.kind IN ('keep', 'revise') AND NOT {locks.shown}", "nothing has been shown for this unit"),
        (f"NEW.kind = 'undo' AND NOT EXISTS ({target})", "there is nothing like that to undo"),
        (
            f"NEW.kind = 'undo' AND {locks.shown} AND EXISTS ({target} AND e.kind IN ({first}))",
            "the answer has been shown: your first label of this unit stands",
        ),
    ]
    checks = "; ".join(
        f"SELECT RAISE(ABORT, {quoted(told)}) WHERE {condition}" for condition, told in refused
    )
    unit = f"(SELECT unit_id FROM main.assignments WHERE {here})"
    # A ruling is a reference: who has seen the judge's label, or the key, cannot make one that either is measured against.
    blind = exposed(task, quoted(seat.person), unit, deciding=seat.annotator != seat.person)
    reason = f"CASE WHEN NEW.kind <> 'label' THEN NEW.reason WHEN {blind} THEN 'assisted' END"
    batch, who = quoted(seat.batch), quoted(seat.annotator)
    insert = (
        "INSERT INTO events (event_id, batch, annotator_id, position, kind, field, value, reason, undoes, active_ms, "
        f"idle_ms, shown_ms, session_id, at) VALUES (NEW.event_id, {batch}, {who}, NEW.position, NEW.kind, NEW.field, NEW.value, "
        f"{reason}, CASE NEW.kind WHEN 'undo' THEN NEW.undoes END, NEW.active_ms, NEW.idle_ms, NEW.shown_ms, {quoted(seat.session)}, NEW.at)"
    )
    shown = rows_after(task, f"NEW.kind = 'shown' AND a.{here.replace(' AND ', ' AND a.')}", _about(seat))
    return f"{checks}; {insert}; {_INTO} {shown}"


_INTO = "INSERT OR IGNORE INTO exposures (unit_id, what, field, person, batch, how, at)"


def _about(seat: Seat) -> str:
    now = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
    return f", {quoted(seat.person)}, {quoted(seat.batch)}, 'sitting', {now}"


def _labels(task: Task) -> str:
    """SQL condition: the new event answers a question of the task with one of its labels."""
    parts = []
    for question in task.spec.questions:
        domain = ", ".join(quoted(v) for v in task.domain(question.field))
        within = f" AND NEW.value IN ({domain})" if domain else " AND NEW.value IS NOT NULL"
        parts.append(f"(NEW.field = {quoted(question.field)}{within})")
    return " OR ".join(parts)


def seen(task: Task, seat: Seat, mine: str) -> str:
    """The body of the trigger that notes what a unit shows; an adjudicator sees what others said of it."""
    body = f"{_INTO} {rows_shown(task, mine, _about(seat))}"
    if seat.annotator != seat.person:
        body += (
            f"; {_INTO} SELECT a.unit_id, 'labels', ''{_about(seat)} FROM main.assignments AS a WHERE {mine}"
        )
    return body


def derivations(task: Task, batch: str, who: str, kept: str, locks: Locks) -> str:
    """Statements that add labels which follow from an answer and gold; the session cannot read either."""
    out = ""
    for name, rule in task.spec.derive.items():
        if not rule.gold:
            continue
        cells = [(*key.split("|", 1), value) for key, value in rule.table.items()]
        table = ", ".join(f"({', '.join(quoted(c) for c in cell)})" for cell in cells)
        out += (
            f"; {GIVEN_ONCE} SELECT a.unit_id, {quoted(name)}, {who}, {locks.layer}, a.repeat, r.column3, NULL, NEW.field "
            f"FROM main.assignments AS a JOIN main.units AS t ON t.unit_id = a.unit_id JOIN (VALUES {table}) AS r "
            f"WHERE a.batch = {batch} AND a.annotator_id = {who} AND a.position = NEW.position AND {kept} "
            f"AND {locks.may_label} AND NEW.field = {quoted(rule.source)} AND r.column1 = NEW.value AND r.column2 = {gold_value(rule.gold)}"
        )
    return out


def rank(text: str) -> bytes:
    """The order of sources when adjudicating."""
    return hashlib.sha256(text.encode()).digest()[:8]
