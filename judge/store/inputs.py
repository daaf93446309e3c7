"""Read the inputs that are shown for a unit.

Inputs are columns of `unit_texts`, passages and, in tasks for people, gold labels.
"""

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task
from judge.store import label_rows
from judge.store.label_rows import quote
from judge.types import GOLD, Json

_SHORT_ID = re.compile(r"[A-Za-z0-9_.-]{1,24}")
_HASH = re.compile(r"[0-9a-f]{16}")
_JSON_COLUMNS = ("reference_answers", "options")
CHUNK = 500


def column(task: Task, name: str) -> str:
    """Return the SQL expression for an input, over `unit_texts AS t`.

    Lists of passages are JSON arrays of ids.
    """
    if name in task.gold_inputs:
        return gold_value(task.gold_inputs[name])
    if name == "relevant_passages" and task.spec.relevant is not None:
        values = ", ".join(quote(v) for v in task.spec.relevant.values)
        return (
            "(SELECT nullif(json_group_array(q.passage_id), '[]') FROM (SELECT r.passage_id FROM passages AS r "
            f"JOIN {label_rows.FIRST} ON l.unit_id = r.passage_id AND l.annotator_id = '{GOLD}' "
            f"AND l.field = {quote(task.spec.relevant.field)} AND l.value IN ({values}) "
            "WHERE r.item_id = t.item_id ORDER BY r.position) AS q)"
        )
    if name == "option_probabilities":
        # Only a second pass has option probabilities, which come from `Selection.shown`; see
        # judge.runner.second.
        return "NULL"
    if name == "reference_answers":
        # A file may contain an empty list of reference answers, with which no judge can compare a claim.
        return "nullif(t.reference_answers, '[]')"
    return f"t.{name}"


def gold_value(field: str) -> str:
    """Return the SQL expression for a gold label, over `unit_texts AS t`.

    The label is the unit's own label or, if the unit has none, its item's label.
    """
    # There are two look-ups by primary key, because a single one with ORDER BY over `t` is an error in SQLite
    # 3.40.
    both = [
        label_rows.single_label(quote(GOLD), quote(field), f"t.{name}") for name in ("unit_id", "item_id")
    ]
    return f"coalesce({', '.join(both)})"


def decode(conn: sqlite3.Connection, rows: Sequence[Mapping[str, str | None]]) -> list[dict[str, Json]]:
    """Return the inputs with decoded JSON columns, and with passages in place of their ids."""
    ids = {i for row in rows for n in LIST_INPUTS if row.get(n) for i in json.loads(row[n] or "[]")}
    # One query reads the passages for all rows of a page, because the units of an item share their passages.
    texts = passages(conn, ids) if ids else {}
    return [{name: _decoded(name, value, texts) for name, value in row.items()} for row in rows]


def _decoded(name: str, value: str | None, texts: Mapping[str, Mapping[str, Json]]) -> Json:
    if value is None or (name not in LIST_INPUTS and name not in _JSON_COLUMNS):
        return value
    loaded = json.loads(value)
    if name in _JSON_COLUMNS:
        return loaded
    return [
        {"marker": marker, **{k: texts[pid][k] for k in ("title", "date", "text")}}
        for marker, pid in marked(loaded, {p: texts[p]["item_id"] for p in loaded}).items()
    ]


def passages(conn: sqlite3.Connection, ids: Iterable[str]) -> dict[str, dict[str, Json]]:
    """Return {passage id: its item id, title, date and text}."""
    passage_ids, by_id = list(ids), {}
    for start in range(0, len(passage_ids), CHUNK):
        chunk = passage_ids[start : start + CHUNK]
        query = (
            "SELECT passage_id, item_id, title, date, text FROM passages "
            f"WHERE passage_id IN ({','.join('?' * len(chunk))})"
        )
        for pid, item, title, date, text in conn.execute(query, chunk):
            by_id[pid] = {"item_id": item, "title": title, "date": date, "text": text}
    return by_id


def marked(ids: Sequence[str], item_of: Mapping[str, str]) -> dict[str, str]:
    """Return {marker: passage id} for a list of passages, in order.

    If the passages' source ids are distinct short words, such as GaRAGe's `cite_3`, the source ids are the
    markers. Otherwise the markers are numbers from 1.
    """
    # If the data set has markers, annotators and systems see these, so that the citations in answers match
    # them.
    source_ids = [name for pid in ids if (name := get_citable_name(pid, item_of[pid])) is not None]
    # If two passages had the same marker, a citation would be ambiguous.
    usable = len(set(source_ids)) == len(ids)
    return dict(zip(source_ids if usable else [str(n) for n in range(1, len(ids) + 1)], ids, strict=True))


def get_citable_name(passage_id: str, item_id: str) -> str | None:
    """Return a passage's source id if it is a short word that an answer could cite, otherwise None.

    A hash is excluded: adjudge created it, so no answer cites it.
    """
    name = passage_id.removeprefix(f"{item_id}/")
    return name if _SHORT_ID.fullmatch(name) and not _HASH.fullmatch(name) else None


def golds(
    conn: sqlite3.Connection, fields: Sequence[str], unit_ids: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return {unit: {field: gold label}}. The label is the unit's own label or, if it has none, its item's
    label.
    """
    if not fields or not unit_ids:
        return {}
    query = (
        f"SELECT t.unit_id, {', '.join(map(gold_value, fields))} FROM unit_texts AS t "
        f"WHERE t.unit_id IN ({','.join('?' * len(unit_ids))})"
    )
    return {
        unit: {f: v for f, v in zip(fields, values, strict=True) if v is not None}
        for unit, *values in conn.execute(query, unit_ids)
    }
