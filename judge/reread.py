"""Stored replies of models read again: whether the labels of a run are those that its replies give."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from judge.parse import parse_choice, parse_json
from judge.prompts.load import Task
from judge.prompts.render import CODES, Mode
from judge.runner.requests import label_orders
from judge.store import Store
from judge.store.export import stored_task
from judge.store.label_rows import with_replies, without_judgement
from judge.types import Json, LabelDistribution, Reply, Status


class Unlike(NamedTuple):
    """A label that the reply does not give, or one that is missing; `expected` None: there should be none."""

    unit: str
    field: str
    expected: str | None
    stored: str | None


def unlike_replies(store: Store, run: str) -> Iterator[Unlike]:
    """Every label of a run that differs from its reply.

    A label with probabilities is the most probable one; any other is read from the text of the reply. A label without an
    answered judgement has no reply at all. What was derived with gold is left out, because gold may come later.
    """
    query = "SELECT task, options, derived_from IS NULL FROM runs WHERE run_id = ?"
    task_name, options, asked = store.conn.execute(query, [run]).fetchone()
    if not asked:
        return
    task, mode = stored_task(store, task_name), json.loads(options)
    if "mode" not in mode:
        return  # imported answers: there was no request, and the labels are all that came
    for (unit, _), rows in groupby(with_replies(store.conn, run), key=lambda row: row[:2]):
        labels = list(rows)
        stored = {row[3]: row for row in labels if row[3] is not None}
        expected = _expected(task, mode, str(labels[0][2]), stored)
        for name, value in expected.items():
            there = stored[name][4] if name in stored else None
            if there != value:
                yield Unlike(unit, name, value, there)
    for unit, name, value in without_judgement(store.conn, run):
        yield Unlike(unit, name, None, value)


def _expected(
    task: Task, options: Mapping[str, Json], reply: str, stored: Mapping[str, sqlite3.Row]
) -> dict[str, str]:
    """Field -> label that the reply gives, asked and derived; empty for a reply that cannot be read without its request."""
    parsed = _answers(task, options, reply)
    found = dict(parsed)
    for name, row in stored.items():
        if row[5] is not None:
            masses = json.loads(row[5])
            found[name] = LabelDistribution(masses, masses.pop("unassigned")).argmax()
    for name, rule in task.spec.derive.items():
        value = rule.table.get(found.get(rule.source, "")) if rule.gold is None else None
        if value is not None:
            found[name] = value
    return found


def _answers(task: Task, options: Mapping[str, Json], text: str) -> dict[str, str]:
    mode, reply = Mode(str(options["mode"])), Reply(text)
    if mode is Mode.PAIR:
        return {}
    if mode is Mode.JSON:
        parsed = parse_json(task, reply)
    else:
        shown = label_orders(task, str(options.get("label_order") or "declared"))
        labels = shown[task.spec.questions[0].field]
        parsed = parse_choice(task, reply, labels, CODES[: len(labels)] if mode is Mode.CODES else "")
    if parsed.status is not Status.OK:
        return {}
    # As it is stored: SQLite refuses half of a surrogate pair.
    return {a.field: a.value.encode("utf-8", "replace").decode() for a in parsed.labels}
