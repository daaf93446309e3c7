"""The units of a packed batch, emptied of everything that their task's screen does not show."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping

from judge.prompts.inputs import ITEM_INPUTS, LIST_INPUTS
from judge.prompts.load import Task
from judge.store import label_rows
from judge.store.inputs import column, gold_value
from judge.store.study import dumps
from judge.types import GOLD

_HIDDEN: dict[str, str | None] = {
    "meta": "{}",
    "import_id": "pack",
    "origin": "pack",
    "content_sha": "",
    "correct": None,
    "polarity": None,
    "pair_id": None,
}


def copy_units(source: sqlite3.Connection, target: sqlite3.Connection, task: Task, units: set[str]) -> None:
    """Units with the items, answers and passages that their inputs name; gold only where it is an input."""
    names = set(task.input_names)
    rows = _select(
        source, "units", "unit_id, item_id, passage_id, answer_id, json_extract(span, '$.counter')", units
    )
    items, passages, answers, counters = ({row[i] for row in rows} - {None} for i in (1, 2, 3, 4))
    listed = _listed(source, task, units)
    passages |= {passage for found in listed.values() for passage in found}
    if "baseline_answer" in names:
        found = _select(source, "answers", "answer_id", items, key="item_id", where="AND system = 'human'")
        answers |= {row[0] for row in found}
    blank = {**_HIDDEN, **{n: None for n in ITEM_INPUTS if n not in names}}
    nothing = {**_HIDDEN, **dict.fromkeys(ITEM_INPUTS)}
    # Of the other claim of a pair only the claim is shown; of a question whose passages are noise, nothing.
    others = {row[0] for row in _select(source, "passages", "item_id", passages, key="passage_id")}
    _copy(source, target, "items", items, blank)
    _copy(source, target, "items", counters - items, {k: v for k, v in nothing.items() if k != "claim"})
    _copy(source, target, "items", others - items - counters, nothing)
    _copy(source, target, "passages", passages, _HIDDEN)
    _copy(source, target, "answers", answers, _HIDDEN)
    _keep_contexts(source, target, units)
    gold = _shown_gold(source, task, units, listed)
    _copy(source, target, "units", units | {unit for unit, _, _ in gold}, {})
    if gold:
        target.execute("INSERT INTO annotators VALUES (?, 'gold', '{}')", [GOLD])
    label_rows.add_first(
        target, [(unit, field, GOLD, value, None) for unit, field, value in gold], ignore=True
    )


def _select(
    conn: sqlite3.Connection,
    table: str,
    columns: str,
    ids: Iterable[str],
    *,
    key: str = "unit_id",
    where: str = "",
) -> list[tuple[str, ...]]:
    query = f"SELECT {columns} FROM {table} AS t WHERE t.{key} IN (SELECT value FROM json_each(?)) {where}"
    return conn.execute(query, [dumps(sorted(ids))]).fetchall()


def _copy(
    source: sqlite3.Connection,
    target: sqlite3.Connection,
    table: str,
    ids: Iterable[str],
    blank: Mapping[str, str | None],
) -> None:
    """Copy rows by id, in their order; `blank` has what stands in columns that are not shown."""
    key = f"{table[:-1]}_id"
    query = f"SELECT * FROM {table} WHERE {key} IN (SELECT value FROM json_each(?)) ORDER BY rowid"
    cursor = source.execute(query, [dumps(sorted(ids))])
    names = [c[0] for c in cursor.description]
    rows = [[blank.get(n, v) for n, v in zip(names, row, strict=True)] for row in cursor]
    marks = ", ".join("?" * len(names))
    target.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)


def _listed(source: sqlite3.Connection, task: Task, units: set[str]) -> dict[str, set[str]]:
    """Input that is a list of passages -> all passages in it."""
    out = {}
    for name in task.input_names:
        if name in LIST_INPUTS:
            rows = _select(source, "unit_texts", column(task, name), units)
            out[name] = {passage for (text,) in rows if text for passage in json.loads(text)}
    return out


def _keep_contexts(source: sqlite3.Connection, target: sqlite3.Connection, units: set[str]) -> None:
    """Say which passages an answer was given, because only those that are shown are in the target."""
    rows = _select(
        source, "unit_texts", "DISTINCT context, answer_id", units, where="AND context IS NOT NULL"
    )
    target.executemany("UPDATE answers SET context = ? WHERE answer_id = ?", rows)


def _shown_gold(
    source: sqlite3.Connection, task: Task, units: set[str], listed: Mapping[str, set[str]]
) -> list[tuple[str, str, str]]:
    """(unit, field, label) for gold that the task's inputs show, and for what makes a passage relevant."""
    out: list[tuple[str, str, str]] = []
    for name in task.gold_inputs.values():
        rows = _select(source, "unit_texts", f"t.unit_id, {gold_value(name)}", units)
        out += [(unit, name, value) for unit, value in rows]
    relevant = task.spec.relevant
    if relevant is not None:
        # Which of several labels made it relevant is not shown, so it is always the first.
        out += [(p, relevant.field, relevant.values[0]) for p in sorted(listed["relevant_passages"])]
    return out
