"""The queue of a lead: units of a batch on which people disagree, in a seeded order."""

from __future__ import annotations

import json
import sqlite3

from annotate.desk import batch_info
from annotate.sample import shuffled
from annotate.store import ADJUDICATED, ensure_human
from judge.store import Store
from judge.store.study import dumps


def fill_queue(store: Store, batch: str, lead: str, *, allow_own: bool = False) -> int:
    """Queue what is newly disagreed on; returns how many units of the queue `lead` may decide.

    A unit is disagreed on when two people who finished it differ in any answer. Units that the lead
    has labelled are counted only with `allow_own`; the session hides them otherwise.
    """
    info = batch_info(store, batch)
    if info.closed:
        return 1  # the desk says that it is closed
    answers: dict[str, set[str]] = {}
    query = "SELECT unit_id, answers FROM assignments WHERE batch = ? AND role = 'sample' AND status = 'done'"
    for unit, text in store.conn.execute(query, [batch]):
        answers.setdefault(unit, set()).add(json.dumps(json.loads(text), sort_keys=True))
    differ = {unit for unit, found in answers.items() if len(found) > 1}
    with store.transaction() as conn:
        ensure_human(conn, [lead])
        conn.execute("INSERT OR IGNORE INTO annotators VALUES (?, 'adjudicated', ?)", [ADJUDICATED, "{}"])
        key = [batch, ADJUDICATED]
        where = "FROM assignments WHERE batch = ? AND annotator_id = ?"
        queued = {u for (u,) in conn.execute(f"SELECT unit_id {where}", key)}
        last = conn.execute(f"SELECT coalesce(max(position), 0) {where}", key).fetchone()[0]
        seed = int(info.options.get("seed", 0))
        rows = [
            (batch, ADJUDICATED, last + i, unit)
            for i, unit in enumerate(_in_order(conn, differ - queued, seed), 1)
        ]
        conn.executemany(
            "INSERT INTO assignments (batch, annotator_id, position, unit_id, role) "
            "VALUES (?, ?, ?, ?, 'adjudication')",
            rows,
        )
        own = set()
        if not allow_own:
            own = {
                u
                for (u,) in conn.execute(
                    "SELECT unit_id FROM assignments WHERE batch = ? AND annotator_id = ?", [batch, lead]
                )
            }
    return len((queued | differ) - own)


def _in_order(conn: sqlite3.Connection, units: set[str], seed: int) -> list[str]:
    """A seeded order in which the parts of an answer follow each other as they stand in it."""
    query = "SELECT unit_id, coalesce(answer_id, unit_id) FROM units WHERE unit_id IN (SELECT value FROM json_each(?)) ORDER BY rowid"
    groups: dict[str, list[str]] = {}
    for unit, answer in conn.execute(query, [dumps(sorted(units))]):
        groups.setdefault(answer, []).append(unit)
    return [unit for answer in shuffled(groups, seed, "adjudicate") for unit in groups[answer]]
