"""Pieces of SQL for the views of a blind session: what a unit shows, and labels that follow from gold."""

from __future__ import annotations

import hashlib

from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task
from judge.store.inputs import column, gold_value, quoted

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


def derivations(task: Task, batch: str, who: str, kept: str) -> str:
    """Statements that add labels which follow from an answer and gold; the session cannot read either."""
    out = ""
    for name, rule in task.spec.derive.items():
        if not rule.gold:
            continue
        cells = [(*key.split("|", 1), value) for key, value in rule.table.items()]
        table = ", ".join(f"({', '.join(quoted(c) for c in cell)})" for cell in cells)
        out += (
            "; INSERT INTO labels (unit_id, field, annotator_id, layer, repeat, value, derived_from) "
            f"SELECT a.unit_id, {quoted(name)}, {who}, NEW.layer, a.repeat, r.column3, NEW.field "
            f"FROM main.assignments AS a JOIN main.units AS t ON t.unit_id = a.unit_id JOIN (VALUES {table}) AS r "
            f"WHERE a.batch = {batch} AND a.annotator_id = {who} AND a.position = NEW.position AND {kept} "
            f"AND NEW.field = {quoted(rule.source)} AND r.column1 = NEW.value AND r.column2 = {gold_value(rule.gold)}"
        )
    return out


def rank(text: str) -> bytes:
    """The order of sources when adjudicating."""
    return hashlib.sha256(text.encode()).digest()[:8]
