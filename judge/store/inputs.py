"""What a unit shows: columns of `unit_texts`, gold for people's tasks, and passages by their ids."""

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task
from judge.store import label_rows
from judge.store.label_rows import quoted
from judge.types import GOLD, Json

_OWN_ID = re.compile(r"[A-Za-z0-9_.-]{1,24}")
_HASH = re.compile(r"[0-9a-f]{16}")
_JSON_COLUMNS = ("reference_answers", "options")
CHUNK = 500


def column(task: Task, name: str) -> str:
    """The SQL expression of an input over `unit_texts AS t`; lists of passages come as JSON ids."""
    if name in task.gold_inputs:
        return gold_value(task.gold_inputs[name])
    if name == "relevant_passages" and task.spec.relevant is not None:
        values = ", ".join(quoted(v) for v in task.spec.relevant.values)
        return (
            "(SELECT nullif(json_group_array(q.passage_id), '[]') FROM (SELECT r.passage_id FROM passages AS r "
            f"JOIN {label_rows.FIRST} ON l.unit_id = r.passage_id AND l.annotator_id = '{GOLD}' "
            f"AND l.field = {quoted(task.spec.relevant.field)} AND l.value IN ({values}) "
            "WHERE r.item_id = t.item_id ORDER BY r.position) AS q)"
        )
    if name == "option_probabilities":
        return "NULL"  # only a second pass has them: see judge.runner.second
    return f"t.{name}"


def gold_value(field: str) -> str:
    """The SQL expression of a gold label over `unit_texts AS t`: the unit's own, else its item's."""
    # Two look-ups by primary key. One with ORDER BY over `t` is an error in SQLite 3.40.
    both = [label_rows.one(quoted(GOLD), quoted(field), f"t.{name}") for name in ("unit_id", "item_id")]
    return f"coalesce({', '.join(both)})"


def decode(conn: sqlite3.Connection, rows: Sequence[Mapping[str, str | None]]) -> list[dict[str, Json]]:
    """Inputs as read, with JSON columns decoded and passage ids replaced by the passages."""
    ids = {i for row in rows for n in LIST_INPUTS if row.get(n) for i in json.loads(row[n] or "[]")}
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
    """Passages by id: item_id, title, date, text."""
    wanted, found = list(ids), {}
    for start in range(0, len(wanted), CHUNK):
        some = wanted[start : start + CHUNK]
        query = (
            "SELECT passage_id, item_id, title, date, text FROM passages "
            f"WHERE passage_id IN ({','.join('?' * len(some))})"
        )
        for pid, item, title, date, text in conn.execute(query, some):
            found[pid] = {"item_id": item, "title": title, "date": date, "text": text}
    return found


def marked(ids: Sequence[str], item_of: Mapping[str, str]) -> dict[str, str]:
    """Marker -> passage id, in order, for passages that stand in one list.

    The markers are the passages' own ids when all of them are short words and differ, as GaRAGe's
    `cite_3`; else they count from 1.
    """
    own = [name for pid in ids if (name := own_name(pid, item_of[pid])) is not None]
    fit = len(set(own)) == len(ids)
    return dict(zip(own if fit else [str(n) for n in range(1, len(ids) + 1)], ids, strict=True))


def own_name(passage_id: str, item_id: str) -> str | None:
    """The passage's own id where it is a short word that an answer could cite it by, else None."""
    name = passage_id.removeprefix(f"{item_id}/")
    return name if _OWN_ID.fullmatch(name) and not _HASH.fullmatch(name) else None


def golds(
    conn: sqlite3.Connection, fields: Sequence[str], unit_ids: Sequence[str]
) -> dict[str, dict[str, str]]:
    """The gold labels of these fields, by unit: the unit's own, else its item's."""
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
