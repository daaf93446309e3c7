"""Parse stored replies again, to check that the labels of a run match its replies."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from judge.free_text import parse_free_text
from judge.parse import parse_choice, parse_json
from judge.prompts.load import Task
from judge.prompts.render import CODES, Mode
from judge.runner.modes import label_orders
from judge.store import Store
from judge.store.export import read_stored_task
from judge.store.label_rows import find_without_judgement, with_replies
from judge.types import Json, LabelDistribution, Reply, Status


class Unlike(NamedTuple):
    """A label for which the study and the reply differ.

    `expected` is None if there should be no label, and `stored` is None if the label is missing.
    """

    unit: str
    field: str
    expected: str | None
    stored: str | None


def unlike_replies(store: Store, run: str) -> Iterator[Unlike]:
    """Yield every label of a run that does not match its reply, and every label that is missing.

    A label with probabilities must be the most probable label. Any other label must match the reply's text. A
    label without a successful judgement has no reply, so it is always yielded. Fields derived from gold
    labels are not checked, because gold labels may have been added later.
    """
    query = "SELECT task, options, derived_from IS NULL FROM runs WHERE run_id = ?"
    task_name, options, judged_fields = store.conn.execute(query, [run]).fetchone()
    # Labels of a derived run are computed from other runs, and have no replies.
    if not judged_fields:
        return
    task, mode = read_stored_task(store, task_name), json.loads(options)
    if "mode" not in mode:
        # Imported answers have no replies, only labels.
        return
    for (unit, _), rows in groupby(with_replies(store.conn, run), key=lambda row: row[:2]):
        labels = list(rows)
        stored = {row[3]: row for row in labels if row[3] is not None}
        expected = _expect_labels(task, mode, str(labels[0][2]), stored)
        for name, value in expected.items():
            stored_labels = stored[name][4] if name in stored else None
            if stored_labels != value:
                yield Unlike(unit, name, value, stored_labels)
    for unit, name, value in find_without_judgement(store.conn, run):
        yield Unlike(unit, name, None, value)


def _expect_labels(
    task: Task, options: Mapping[str, Json], reply: str, stored: Mapping[str, sqlite3.Row]
) -> dict[str, str]:
    """Return the label that the reply implies for each field, including derived fields.

    The mapping is empty if the reply cannot be parsed without its request.
    """
    # The distribution decided the label, which may differ from the sampled token in the reply.
    parsed = _answers(task, options, reply)
    labels = dict(parsed)
    for name, row in stored.items():
        if row[5] is not None:
            masses = json.loads(row[5])
            labels[name] = LabelDistribution(masses, masses.pop("unassigned")).argmax()
    for name, rule in task.spec.derive.items():
        value = rule.table.get(labels.get(rule.source, "")) if rule.gold is None else None
        if value is not None:
            labels[name] = value
    return labels


def _answers(task: Task, options: Mapping[str, Json], text: str) -> dict[str, str]:
    mode, reply = Mode(str(options["mode"])), Reply(text)
    if mode is Mode.PAIR:
        return {}
    if mode is Mode.TEXT:
        parsed = parse_free_text(task, reply, task.domain(task.spec.questions[0].field))
    elif mode is Mode.JSON:
        parsed = parse_json(task, reply)
    else:
        shown = label_orders(task, str(options.get("label_order") or "declared"))
        labels = shown[task.spec.questions[0].field]
        parsed = parse_choice(task, reply, labels, CODES[: len(labels)] if mode is Mode.CODES else "")
    if parsed.status is not Status.OK:
        return {}
    # The text is compared as it is stored, and SQLite does not accept lone surrogates.
    return {a.field: a.value.encode("utf-8", "replace").decode() for a in parsed.labels}
