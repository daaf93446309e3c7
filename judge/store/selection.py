"""Select the units for a run, and read them page by page, starting with unjudged units."""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from judge.commands import command
from judge.errors import UsageError
from judge.prompts.load import Task
from judge.prompts.spec import Example
from judge.store.inputs import column, decode, gold_value
from judge.store.label_rows import quote
from judge.store.study import Store, dumps
from judge.types import Status, Unit

PAGE = 256


@dataclass(frozen=True, slots=True)
class Selection:
    """The units that the user selects for a run.

    `where` is an SQL condition on `unit_texts`, and `limit` is the maximum number of units. The first units
    are selected or, with `sample_seed`, a random sample.
    """

    where: str | None = None
    limit: int | None = None
    sample_seed: int | None = None
    contexts: Mapping[str, Sequence[str]] | None = None
    """Maps each item to the passages that are shown as the input `context`.

    Items without an entry are not selected.
    """
    relevant: Mapping[str, Sequence[str]] | None = None
    """Maps each item to the passages that are shown as the input `relevant_passages`.

    They replace the passages that the task specifies.
    """
    options: Mapping[str, Mapping[str, str]] | None = None
    """Maps an item in `contexts` to its input `options`.

    These options replace the stored ones and already include distractors.
    """
    shown: Mapping[str, str] | None = None
    """Maps an item in `contexts` to its input `option_probabilities` (see `judge.runner.second`)."""

    @property
    def is_all(self) -> bool:
        """Whether the selection contains all units that can be judged, in study order."""
        return self == Selection()


def select_all(store: Store, task: Task) -> None:
    """Select all units that can be judged in this task, without reading them yet.

    This creates a temporary view, whereas `select` creates a table. `count_all` counts the rows in the view.
    """
    conn = store.conn
    _keep_inputs(conn, Selection())
    _drop_selection(conn)
    conn.execute(f"CREATE TEMP VIEW selection AS SELECT t.n AS place, t.n FROM {_build_query(task)}")


def get_upper_bound(store: Store) -> int:
    """Return an upper bound on the number of units in any selection."""
    return int(store.conn.execute("SELECT coalesce(max(rowid), 0) FROM units").fetchone()[0])


def count_all(store: Store, task: Task) -> tuple[int, int]:
    """Return (number of units that `select_all` selects, number of units that it leaves out).

    Only units of the task's kind are counted. All units are read.
    """
    fit = store.conn.execute(f"SELECT count(*) FROM {_build_query(task)}").fetchone()[0]
    of_kind = store.conn.execute("SELECT count(*) FROM units WHERE kind = ?", [task.spec.unit]).fetchone()[0]
    return fit, of_kind - fit


NEWEST = 50
"""The number of newest units that `suits_newest` checks."""


def suits_newest(store: Store, task: Task) -> bool:
    """Return whether at least one of the newest units of the task's kind can be judged in the task."""
    newest = "SELECT rowid FROM units WHERE kind = ? ORDER BY rowid DESC LIMIT ?"
    query = f"SELECT 1 FROM {_build_query(task)} AND t.n IN ({newest}) LIMIT 1"
    return store.conn.execute(query, [task.spec.unit, NEWEST]).fetchone() is not None


def _build_query(task: Task) -> str:
    return f"unit_texts AS t WHERE t.kind = {quote(task.spec.unit)} AND {_usable(task, Selection())}"


def choose(store: Store, task: Task, selection: Selection) -> tuple[int, int]:
    """Call `select_all` if all units are selected, otherwise `select`. Return the same counts as `select`
    does.
    """
    if not selection.is_all:
        return select(store, task, selection)
    select_all(store, task)
    return count_all(store, task)


def select(store: Store, task: Task, selection: Selection) -> tuple[int, int]:
    """Write the selected units, in order, to a temporary table on this connection.

    Returns (number of selected units, number of units that cannot be judged). A unit of the task's kind
    cannot be judged if it lacks an input or is an example in the task. Raises UsageError if the condition is
    not valid SQL over the columns of `unit_texts`.
    """
    conn = store.conn
    offer_shuffle(conn)
    condition, usable = _build_condition(selection), _usable(task, selection)
    order = (
        "n" if selection.sample_seed is None else f"adjudge_shuffle({int(selection.sample_seed)}, unit_id)"
    )
    kind = task.spec.unit
    _keep_inputs(conn, selection)
    _drop_selection(conn)
    conn.execute("CREATE TEMP TABLE selection (place INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
    with _condition_explained(conn, selection):
        selected = conn.execute(
            "INSERT INTO temp.selection (n) SELECT n FROM unit_texts AS t "
            f"WHERE kind = ? AND {usable} AND {condition} ORDER BY {order} LIMIT ?",
            [kind, -1 if selection.limit is None else selection.limit],
        ).rowcount
        if selection.limit is None:
            # If all usable units are selected, the texts of all units need not be read a second time.
            source = "unit_texts AS t" if selection.where else "units"
            query = f"SELECT count(*) FROM {source} WHERE kind = ? AND {condition}"
            of_kind, fit = conn.execute(query, [kind]).fetchone()[0], selected
        else:
            of_kind, fit = conn.execute(
                f"SELECT count(*), count(CASE WHEN {usable} THEN 1 END) FROM unit_texts AS t "
                f"WHERE kind = ? AND {condition}",
                [kind],
            ).fetchone()
    return selected, of_kind - fit


def check_any(store: Store, task: Task, selection: Selection) -> None:
    """Raise UsageError if no unit would be selected. This is called before anything is sent or stored.

    The search stops at the first match.
    """
    conn = store.conn
    _keep_inputs(conn, selection)
    query = f"SELECT 1 FROM unit_texts AS t WHERE kind = ? AND {_usable(task, selection)} AND {_build_condition(selection)} LIMIT 1"
    with _condition_explained(conn, selection):
        first = conn.execute(query, [task.spec.unit]).fetchone()
    if first is None:
        raise UsageError(
            f"no unit has the inputs of {task.name} ({', '.join(task.required_inputs)}); check --where and the imported data: "
            + command("judge items show")
        )


def _build_condition(selection: Selection) -> str:
    # The line break ends a possible SQL comment (`--`) at the end of the condition.
    return f"({selection.where}\n)" if selection.where else "1"


@contextmanager
def _condition_explained(conn: sqlite3.Connection, selection: Selection) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning) as e:
        columns = [c[1] for c in conn.execute("PRAGMA table_info(unit_texts)")]
        raise UsageError(f"--where {selection.where!r}: {e}; the columns are: {', '.join(columns)}") from e


def _drop_selection(conn: sqlite3.Connection) -> None:
    """Drop the table or view of the previous selection."""
    previous = conn.execute("SELECT type FROM sqlite_temp_master WHERE name = 'selection'").fetchone()
    if previous is not None:
        conn.execute(f"DROP {previous[0]} temp.selection")


def _usable(task: Task, selection: Selection) -> str:
    """Return an SQL condition for the units that can be shown.

    Such a unit has all inputs and is not an example in the task.
    """
    # The prompt already contains the answer to an example.
    examples = [quote(e.item_id) for e in task.spec.examples if e.item_id]
    return " AND ".join(
        [_present(task, name, selection) for name in task.required_inputs]
        + ([] if selection.contexts is None else ["t.item_id IN (SELECT item_id FROM temp.contexts)"])
        + [f"t.item_id NOT IN ({','.join(examples)})"]
        + [_build_text_condition(task, example) for example in task.spec.examples]
    )


def _build_text_condition(task: Task, example: Example) -> str:
    """Return an SQL condition for units whose inputs differ from the inputs of an example."""
    # Texts are compared in addition to ids, because the study may have the example's item under another id.
    inputs = example.inputs.items()
    same = [f"{column(task, name)} IS {quote(value)}" for name, value in inputs if isinstance(value, str)]
    return f"NOT ({' AND '.join(same)})" if len(same) == len(example.inputs) else "1"


def _present(task: Task, name: str, selection: Selection) -> str:
    if name == "context" and selection.contexts is not None:
        return "t.item_id IN (SELECT item_id FROM temp.contexts WHERE context <> '[]')"
    if name == "option_probabilities" and selection.shown is not None:
        return "t.item_id IN (SELECT item_id FROM temp.contexts WHERE shown IS NOT NULL)"
    value = (
        _RELEVANT if name == "relevant_passages" and selection.relevant is not None else column(task, name)
    )
    return f"{value} IS NOT NULL AND {value} <> ''"


_RELEVANT = "(SELECT r.passages FROM temp.relevant AS r WHERE r.item_id = t.item_id)"


def _keep_inputs(conn: sqlite3.Connection, selection: Selection) -> None:
    """Write the contexts, options and relevant passages of a selection to temporary tables.

    Queries on `unit_texts` then use these inputs.
    """
    options, shown = selection.options or {}, selection.shown or {}
    conn.execute("DROP TABLE IF EXISTS temp.contexts")
    conn.execute(
        "CREATE TEMP TABLE contexts (item_id TEXT PRIMARY KEY, context TEXT NOT NULL, options TEXT, "
        "shown TEXT) WITHOUT ROWID"
    )
    rows = (
        (item, dumps(list(ids)), dumps(dict(options[item])) if options.get(item) else None, shown.get(item))
        for item, ids in (selection.contexts or {}).items()
    )
    conn.executemany("INSERT INTO temp.contexts VALUES (?, ?, ?, ?)", rows)
    conn.execute("DROP TABLE IF EXISTS temp.relevant")
    # The table is created only if it is needed, because `_has_relevant` checks whether it exists.
    if selection.relevant is None:
        return
    conn.execute(
        "CREATE TEMP TABLE relevant (item_id TEXT PRIMARY KEY, passages TEXT NOT NULL) WITHOUT ROWID"
    )
    relevant = ((item, dumps(list(ids))) for item, ids in selection.relevant.items() if ids)
    conn.executemany("INSERT INTO temp.relevant VALUES (?, ?)", relevant)


def _has_relevant(conn: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_temp_master WHERE name = 'relevant'"
    return conn.execute(query).fetchone() is not None


def offer_shuffle(conn: sqlite3.Connection) -> None:
    """Define an SQL function on this connection that puts rows in random order.

    It is used as `ORDER BY adjudge_shuffle(SEED, unit_id)`.
    """
    conn.create_function("adjudge_shuffle", 2, _shuffle, deterministic=True)


def _shuffle(seed: int, unit_id: str) -> bytes:
    # The order is determined by a hash of the id instead of a random number, so the sample does not change
    # when units are added to the study.
    return hashlib.sha256(f"{seed}:{unit_id}".encode()).digest()[:8]


def list_selected(store: Store) -> list[str]:
    """Return the ids of the selected units, in order."""
    query = "SELECT u.unit_id FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n ORDER BY s.place"
    return [str(row[0]) for row in store.conn.execute(query)]


_LATEST = """
    SELECT k.{column} FROM judgements AS k
    WHERE k.run_id = :run AND k.unit_id = u.unit_id AND k.repeat = :repeat ORDER BY k.attempt DESC LIMIT 1
"""


def count_statuses(store: Store, run_id: str, repeat: int = 0) -> Counter[str]:
    """Count the selected units by status; units without a judgement count as `pending`."""
    query = f"""
        SELECT coalesce(({_LATEST.format(column="status")}), 'pending') AS status, count(*)
        FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n GROUP BY 1
    """
    return Counter(dict(store.conn.execute(query, {"run": run_id, "repeat": repeat})))


def run_statuses(store: Store, run_id: str, repeat: int = 0) -> Counter[str]:
    """Count a run's units by status, using the counts that the study stores."""
    query = "SELECT status, units FROM run_counts WHERE run_id = ? AND repeat = ?"
    return Counter(dict(store.conn.execute(query, [run_id, repeat])))


def pending(
    store: Store, task: Task, run_id: str, repeat: int = 0, retry: Collection[str] = ()
) -> Iterator[Unit]:
    """Yield the selected units that this run has not judged yet or must retry, page by page.

    Units that were never judged come first, in selection order. They are followed by the units to retry.
    These are the units whose latest attempt, at the start of the iteration, has the status `failed` or a
    status in `retry`. With this order, units that never succeed cannot delay the others. Only one page is in
    memory at a time.
    """
    conn = store.conn
    # The units to retry are stored now, so that a unit that fails during this run is retried only by the next
    # run.
    _store_retries(conn, run_id, repeat, {str(Status.FAILED), *retry})
    lazy = conn.execute(
        "SELECT 1 FROM sqlite_temp_master WHERE name = 'selection' AND type = 'view'"
    ).fetchone()
    query, place = _NEXT_OF_ALL if lazy else _NEXT, 0
    while page := conn.execute(
        query, {"run": run_id, "repeat": repeat, "place": place, "kind": task.spec.unit}
    ).fetchall():
        place = page[-1][0]
        yield from _units(conn, task, dict.fromkeys((n for _, n in page), 0))
    place = 0
    while again := conn.execute(_NEXT_AGAIN, [place]).fetchall():
        place = again[-1][0]
        yield from _units(conn, task, {n: attempt for _, n, attempt in again})


_UNJUDGED = """
    NOT EXISTS (SELECT 1 FROM judgements AS k WHERE k.run_id = :run AND k.unit_id = u.unit_id AND k.repeat = :repeat)
"""
_NEXT = f"""
    SELECT s.place, s.n FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n
    WHERE s.place > :place AND {_UNJUDGED} ORDER BY s.place LIMIT {PAGE}
"""
# CROSS JOIN fixes the order: SQLite first checks whether a unit is judged, and reads only the texts of the
# others.
_NEXT_OF_ALL = f"""
    SELECT u.rowid, u.rowid FROM units AS u CROSS JOIN temp.selection AS s ON s.n = u.rowid
    WHERE u.rowid > :place AND u.kind = :kind AND {_UNJUDGED} ORDER BY u.rowid LIMIT {PAGE}
"""
_NEXT_AGAIN = f"SELECT place, n, attempt FROM temp.again WHERE place > ? ORDER BY place LIMIT {PAGE}"


def _store_retries(conn: sqlite3.Connection, run_id: str, repeat: int, statuses: Collection[str]) -> None:
    """Write the units that must be retried to a temporary table, in selection order.

    These are the selected units whose latest attempt has one of these statuses. Units that fail later, during
    the run, are not in the table.
    """
    conn.execute("DROP TABLE IF EXISTS temp.again")
    conn.execute(
        "CREATE TEMP TABLE again (place INTEGER PRIMARY KEY, n INTEGER NOT NULL, attempt INTEGER NOT NULL)"
    )
    # `status <> 'ok'` matches the condition of a partial index; the `IN` alone would not use it.
    conn.execute(
        f"""
        INSERT INTO temp.again
        SELECT s.place, s.n, j.attempt
        FROM judgements AS j CROSS JOIN units AS u ON u.unit_id = j.unit_id JOIN temp.selection AS s ON s.n = u.rowid
        WHERE j.run_id = :run AND j.repeat = :repeat AND j.status <> 'ok'
        AND j.status IN ({",".join(quote(s) for s in sorted(statuses))})
        AND j.attempt = ({_LATEST.format(column="attempt")})
        """,
        {"run": run_id, "repeat": repeat},
    )


def _units(conn: sqlite3.Connection, task: Task, attempts_by_n: Mapping[int, int]) -> Iterator[Unit]:
    names = task.input_names
    golds = sorted({rule.gold for rule in task.spec.derive.values() if rule.gold})
    gold_columns = "".join(f", {gold_value(field)}" for field in golds)
    columns = {name: column(task, name) for name in names}
    if task.spec.unit == "item" and "context" in columns:
        columns["context"] = "(SELECT c.context FROM temp.contexts AS c WHERE c.item_id = t.item_id)"
    if task.spec.unit == "item" and "options" in columns:
        stored = "(SELECT c.options FROM temp.contexts AS c WHERE c.item_id = t.item_id)"
        columns["options"] = f"coalesce({stored}, t.options)"
    if "option_probabilities" in columns:
        columns["option_probabilities"] = (
            "(SELECT c.shown FROM temp.contexts AS c WHERE c.item_id = t.item_id)"
        )
    if "relevant_passages" in columns and _has_relevant(conn):
        columns["relevant_passages"] = _RELEVANT
    query = (
        f"SELECT t.n, t.unit_id, {', '.join(columns.values())}{gold_columns} "
        f"FROM unit_texts AS t WHERE t.n IN ({','.join(str(int(n)) for n in attempts_by_n)})"
    )
    rows = {row[0]: row for row in conn.execute(query)}
    columns_by_name = [dict(zip(names, rows[n][2:], strict=False)) for n in attempts_by_n]
    for (n, attempt), inputs in zip(attempts_by_n.items(), decode(conn, columns_by_name), strict=True):
        row = rows[n]
        gold_values = zip(golds, row[2 + len(names) :], strict=True)
        yield Unit(row[1], inputs, {g: v for g, v in gold_values if v is not None}, attempt)
