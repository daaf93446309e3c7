"""Pieces of SQL for the views of a blind session."""

from __future__ import annotations

import hashlib

from judge.prompts.load import Task


def derivations(task: Task, batch: str, who: str, kept: str) -> str:
    """Statements that add labels which follow from an answer and gold; the session cannot read either."""
    out = ""
    for name, rule in task.spec.derive.items():
        if not rule.gold:
            continue
        cells = [(*key.split("|", 1), value) for key, value in rule.table.items()]
        table = ", ".join(f"({', '.join(quote(c) for c in cell)})" for cell in cells)
        of = (
            "(SELECT g.value FROM main.labels AS g WHERE g.annotator_id = 'gold' AND g.layer = 'first' "
            f"AND g.repeat = 0 AND g.field = {quote(rule.gold)} AND g.unit_id = {{}})"
        )
        gold = f"coalesce({of.format('a.unit_id')}, {of.format('u.item_id')})"
        out += (
            "; INSERT INTO labels (unit_id, field, annotator_id, layer, repeat, value, derived_from) "
            f"SELECT a.unit_id, {quote(name)}, {who}, NEW.layer, a.repeat, r.column3, NEW.field "
            f"FROM main.assignments AS a JOIN main.units AS u ON u.unit_id = a.unit_id JOIN (VALUES {table}) AS r "
            f"WHERE a.batch = {batch} AND a.annotator_id = {who} AND a.position = NEW.position AND {kept} "
            f"AND NEW.field = {quote(rule.source)} AND r.column1 = NEW.value AND r.column2 = {gold}"
        )
    return out


def rank(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:8]


def quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
