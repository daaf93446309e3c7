"""Parse stored replies again, to check that the labels of a run match its replies."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from judge.runner.requests import Asker
from judge.runner.stored import asker_of
from judge.store import Store
from judge.store.label_rows import find_without_judgement, with_replies
from judge.types import LabelDistribution, Reply


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
    query = "SELECT options, derived_from IS NULL FROM runs WHERE run_id = ?"
    options, judged_fields = store.conn.execute(query, [run]).fetchone()
    # Labels of a derived run are computed from other runs, and have no replies.
    if not judged_fields:
        return
    if "mode" not in json.loads(options):
        # Imported answers have no replies, only labels.
        return
    asker = asker_of(store, run)
    for (unit, _), rows in groupby(with_replies(store.conn, run), key=lambda row: row[:2]):
        labels = list(rows)
        stored = {row[3]: row for row in labels if row[3] is not None}
        expected = _expect_labels(asker, str(labels[0][2]), stored)
        for name, value in expected.items():
            stored_labels = stored[name][4] if name in stored else None
            if stored_labels != value:
                yield Unlike(unit, name, value, stored_labels)
    for unit, name, value in find_without_judgement(store.conn, run):
        yield Unlike(unit, name, None, value)


def _expect_labels(asker: Asker, reply: str, stored: Mapping[str, sqlite3.Row]) -> dict[str, str]:
    """Return the label that the reply implies for each field, including derived fields.

    The mapping is empty if the reply cannot be parsed without its request.
    """
    # The distribution decided the label, which may differ from the sampled token in the reply.
    parsed = asker.accept(Reply(reply))
    # The text is compared as it is stored, and SQLite does not accept lone surrogates.
    labels = {a.field: a.value.encode("utf-8", "replace").decode() for a in parsed.labels}
    for name, row in stored.items():
        if row[5] is not None:
            masses = json.loads(row[5])
            labels[name] = LabelDistribution(masses, masses.pop("unassigned")).argmax()
    for name, rule in asker.task.spec.derive.items():
        value = rule.table.get(labels.get(rule.source, "")) if rule.gold is None else None
        if value is not None:
            labels[name] = value
    return labels
