"""Which units a run is about: selected once, then read page by page, the unjudged ones first."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.errors import UsageError
from judge.prompts.load import Task
from judge.store.inputs import column, decode, gold_value
from judge.store.study import Store, dumps
from judge.types import Status, Unit

PAGE = 256


@dataclass(frozen=True, slots=True)
class Selection:
    """Which units a run is asked for: SQL condition on `unit_texts`, first `limit`, or a seeded sample."""

    where: str | None = None
    limit: int | None = None
    sample_seed: int | None = None
    contexts: Mapping[str, Sequence[str]] | None = None
    """The passages that the input `context` of each item holds; items without an entry are left out."""
    relevant: Mapping[str, Sequence[str]] | None = None
    """The passages of each item that the input `relevant_passages` holds, in place of those the task names."""
    options: Mapping[str, Mapping[str, str]] | None = None
    """The input `options` of items in `contexts`, instead of their own (distractors there are already)."""


def select(store: Store, task: Task, selection: Selection) -> tuple[int, int]:
    """Fix the units of a run in a temporary table of this connection, in order.

    Returns (units selected, units of the kind that lack an input or are examples). Raises
    UsageError when the condition is not SQL over the columns of `unit_texts`.
    """
    conn = store.conn
    offer_shuffle(conn)
    # The line break ends a comment that the condition may end in.
    wanted = f"({selection.where}\n)" if selection.where else "1"
    examples = [e.item_id for e in task.spec.examples if e.item_id]
    usable = " AND ".join(
        [_present(task, name, selection) for name in task.required_inputs]
        + ([] if selection.contexts is None else ["t.item_id IN (SELECT item_id FROM temp.contexts)"])
        + [f"t.item_id NOT IN ({','.join('?' * len(examples))})"]
    )
    order = (
        "n" if selection.sample_seed is None else f"adjudge_shuffle({int(selection.sample_seed)}, unit_id)"
    )
    kind = task.spec.unit
    _keep_contexts(conn, selection.contexts, selection.options or {})
    _keep_relevant(conn, selection.relevant)
    conn.execute("DROP TABLE IF EXISTS temp.selection")
    conn.execute("CREATE TEMP TABLE selection (place INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
    try:
        selected = conn.execute(
            "INSERT INTO temp.selection (n) SELECT n FROM unit_texts AS t "
            f"WHERE kind = ? AND {usable} AND {wanted} ORDER BY {order} LIMIT ?",
            [kind, *examples, -1 if selection.limit is None else selection.limit],
        ).rowcount
        if selection.limit is None:
            # Every unit that fits is selected: no need to look at the texts of all units once more.
            source = "unit_texts AS t" if selection.where else "units"
            query = f"SELECT count(*) FROM {source} WHERE kind = ? AND {wanted}"
            of_kind, fit = conn.execute(query, [kind]).fetchone()[0], selected
        else:
            of_kind, fit = conn.execute(
                f"SELECT count(*), count(CASE WHEN {usable} THEN 1 END) FROM unit_texts AS t "
                f"WHERE kind = ? AND {wanted}",
                [*examples, kind],
            ).fetchone()
    except (sqlite3.Error, sqlite3.Warning) as e:
        columns = [c[1] for c in conn.execute("PRAGMA table_info(unit_texts)")]
        raise UsageError(f"--where {selection.where!r}: {e}; the columns are: {', '.join(columns)}") from e
    return selected, of_kind - fit


def _present(task: Task, name: str, selection: Selection) -> str:
    if name == "context" and selection.contexts is not None:
        return "t.item_id IN (SELECT item_id FROM temp.contexts WHERE context <> '[]')"
    value = (
        _RELEVANT if name == "relevant_passages" and selection.relevant is not None else column(task, name)
    )
    return f"{value} IS NOT NULL AND {value} <> ''"


def _keep_contexts(
    conn: sqlite3.Connection,
    contexts: Mapping[str, Sequence[str]] | None,
    options: Mapping[str, Mapping[str, str]],
) -> None:
    conn.execute("DROP TABLE IF EXISTS temp.contexts")
    conn.execute(
        "CREATE TEMP TABLE contexts (item_id TEXT PRIMARY KEY, context TEXT NOT NULL, options TEXT) WITHOUT ROWID"
    )
    rows = (
        (item, dumps(list(ids)), dumps(dict(options[item])) if options.get(item) else None)
        for item, ids in (contexts or {}).items()
    )
    conn.executemany("INSERT INTO temp.contexts VALUES (?, ?, ?)", rows)


_RELEVANT = "(SELECT r.passages FROM temp.relevant AS r WHERE r.item_id = t.item_id)"


def _keep_relevant(conn: sqlite3.Connection, relevant: Mapping[str, Sequence[str]] | None) -> None:
    conn.execute("DROP TABLE IF EXISTS temp.relevant")
    if relevant is None:
        return
    conn.execute(
        "CREATE TEMP TABLE relevant (item_id TEXT PRIMARY KEY, passages TEXT NOT NULL) WITHOUT ROWID"
    )
    rows = ((item, dumps(list(ids))) for item, ids in relevant.items() if ids)
    conn.executemany("INSERT INTO temp.relevant VALUES (?, ?)", rows)


def _has_relevant(conn: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_temp_master WHERE name = 'relevant'"
    return conn.execute(query).fetchone() is not None


def offer_shuffle(conn: sqlite3.Connection) -> None:
    """Let SQL on this connection order rows at random: `ORDER BY adjudge_shuffle(SEED, unit_id)`."""
    conn.create_function("adjudge_shuffle", 2, _shuffle, deterministic=True)


def _shuffle(seed: int, unit_id: str) -> bytes:
    return hashlib.sha256(f"{seed}:{unit_id}".encode()).digest()[:8]


def selected_units(store: Store) -> list[str]:
    """The ids of the units that `select` has fixed, in order."""
    query = "SELECT u.unit_id FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n ORDER BY s.place"
    return [str(row[0]) for row in store.conn.execute(query)]


_LATEST = """
    SELECT k.{column} FROM judgements AS k
    WHERE k.run_id = :run AND k.unit_id = u.unit_id AND k.repeat = :repeat ORDER BY k.attempt DESC LIMIT 1
"""


def selected_statuses(store: Store, run_id: str, repeat: int = 0) -> Counter[str]:
    """How many of the selected units ended how; units without a judgement are under `pending`."""
    query = f"""
        SELECT coalesce(({_LATEST.format(column="status")}), 'pending') AS status, count(*)
        FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n GROUP BY 1
    """
    return Counter(dict(store.conn.execute(query, {"run": run_id, "repeat": repeat})))


def pending(
    store: Store, task: Task, run_id: str, repeat: int = 0, retry: Collection[str] = ()
) -> Iterator[Unit]:
    """The selected units that this run has still to judge, page by page: those it never judged, in
    selection order, then those whose latest attempt, when this began, was `failed` or in `retry`.

    New units go first so that some that never succeed cannot keep the others waiting. Memory stays
    at one page whatever the study's size.
    """
    values = {"run": run_id, "repeat": repeat}
    again = [
        (n, attempt)
        for n, attempt, status in store.conn.execute(
            f"""
            SELECT s.n, j.attempt, j.status FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n
            JOIN judgements AS j ON j.run_id = :run AND j.unit_id = u.unit_id AND j.repeat = :repeat
            WHERE j.attempt = ({_LATEST.format(column="attempt")}) ORDER BY s.place
            """,
            values,
        )
        if status == Status.FAILED or status in retry
    ]
    place = 0
    while True:
        page = store.conn.execute(
            f"""
            SELECT s.place, s.n FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n
            WHERE s.place > :place AND ({_LATEST.format(column="attempt")}) IS NULL
            ORDER BY s.place LIMIT {PAGE}
            """,
            {**values, "place": place},
        ).fetchall()
        if not page:
            break
        place = page[-1][0]
        yield from _units(store.conn, task, dict.fromkeys((n for _, n in page), 0))
    for start in range(0, len(again), PAGE):
        yield from _units(store.conn, task, dict(again[start : start + PAGE]))


def _units(conn: sqlite3.Connection, task: Task, wanted: Mapping[int, int]) -> Iterator[Unit]:
    names = task.input_names
    golds = sorted({rule.gold for rule in task.spec.derive.values() if rule.gold})
    gold_columns = "".join(f", {gold_value(field)}" for field in golds)
    columns = {name: column(task, name) for name in names}
    if task.spec.unit == "item" and "context" in columns:
        columns["context"] = "(SELECT c.context FROM temp.contexts AS c WHERE c.item_id = t.item_id)"
    if task.spec.unit == "item" and "options" in columns:
        given = "(SELECT c.options FROM temp.contexts AS c WHERE c.item_id = t.item_id)"
        columns["options"] = f"coalesce({given}, t.options)"
    if "relevant_passages" in columns and _has_relevant(conn):
        columns["relevant_passages"] = _RELEVANT
    query = (
        f"SELECT t.n, t.unit_id, {', '.join(columns.values())}{gold_columns} "
        f"FROM unit_texts AS t WHERE t.n IN ({','.join(str(int(n)) for n in wanted)})"
    )
    rows = {row[0]: row for row in conn.execute(query)}
    read = [dict(zip(names, rows[n][2:], strict=False)) for n in wanted]
    for (n, attempts), inputs in zip(wanted.items(), decode(conn, read), strict=True):
        row = rows[n]
        gold_values = zip(golds, row[2 + len(names) :], strict=True)
        yield Unit(row[1], inputs, {g: v for g, v in gold_values if v is not None}, attempts)
