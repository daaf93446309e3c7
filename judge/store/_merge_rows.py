"""Copy the rows in the attached database `src` into `main`.

If `main` already has a row with the same key, both rows must be equal.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from sqlite3 import Connection

from judge.commands import command
from judge.store.nuggets import add_nugget_units

TEXTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "items": (
        ("item_id",),
        ("question_id", "question", "question_date", "claim", "reference_answers", "options", "correct", "pair_id",
         "polarity"),
    ),
    "answers": (("answer_id",), ("item_id", "system", "condition", "text", "cited", "context")),
    "nuggets": (("item_id", "n"), ("text", "importance")),
    "units": (("unit_id",), ("kind", "item_id", "question_id", "passage_id", "answer_id", "span")),
    "tasks": (("task",), ("sha256",)),
    "rankings": (("name", "stage", "item_id", "rank"), ("passage_id",)),
}  # fmt: skip
"""Maps each table to (its key, the columns that must be equal in both studies)."""
PASSAGE = ("item_id", "text", "title", "date", "source")
BY_CONTENT = ("imports", "prompts")
"""Tables whose key is a hash of the row's content, so rows with the same key are equal."""
OWN = {
    *TEXTS, *BY_CONTENT, "passages", "annotators", "runs", "judgements", "requests", "labels", "label_sources",
    "imported_labels", "label_resolutions", "label_rulings", "run_counts", "splits",
    "split_questions", "split_looks",
}  # fmt: skip
"""Tables with their own merge rules. `add_others` merges all other tables."""
LABELS = "labels"
SHOWN = 60


def tables(conn: Connection, schema: str) -> list[str]:
    """Return the tables in a study that were created by migrations. Tables that a user has added are not merged."""
    query = "SELECT name FROM {schema}.sqlite_master WHERE type = 'table' AND name NOT GLOB '*sqlite_*' ORDER BY rowid"
    ours = {name for (name,) in conn.execute(query.format(schema="main"))}
    return [name for (name,) in conn.execute(query.format(schema=schema)) if name in ours]


@contextmanager
def suspend_triggers(conn: Connection) -> Iterator[None]:
    """Drop the triggers, and create them again at the end.

    The triggers check each new row. Rows that are copied from another study were already checked when they
    were written to that study.
    """
    conn.execute("CREATE TEMP TABLE triggers (name TEXT PRIMARY KEY, sql TEXT NOT NULL)")
    conn.execute(
        "INSERT INTO temp.triggers SELECT name, sql FROM main.sqlite_master WHERE type = 'trigger' ORDER BY rowid"
    )
    for (name,) in conn.execute("SELECT name FROM temp.triggers").fetchall():
        # The names come from the new file `main`, not from an untrusted file.
        conn.execute(f'DROP TRIGGER "{name}"')
    yield
    # This is not in `finally`, because the new file is deleted after an error.
    for (sql,) in conn.execute("SELECT sql FROM temp.triggers ORDER BY rowid").fetchall():
        conn.execute(sql)


def columns_of(conn: Connection, table: str) -> list[str]:
    """Return the columns of a table, in order."""
    return [row[1] for row in conn.execute(f"PRAGMA main.table_info('{table}')")]


def _key(conn: Connection, table: str) -> list[str]:
    columns = [(row[5], row[1]) for row in conn.execute(f"PRAGMA main.table_info('{table}')") if row[5]]
    return [name for _, name in sorted(columns)]


def add_texts(conn: Connection) -> Iterator[str]:
    """Add imports, items, passages, units, tasks, rankings and annotators.

    Yield a message for each difference between rows with the same id.
    """
    for name in BY_CONTENT:
        conn.execute(f"INSERT OR IGNORE INTO main.{name} SELECT * FROM src.{name}")
    yield from _build_keys(conn, "items")
    yield from _passages(conn)
    for name in ("answers", "nuggets", "units", "tasks", "rankings"):
        yield from _build_keys(conn, name)
    # One study may have the nuggets of a question, and another study answers to it.
    add_nugget_units(conn)
    yield from _people(conn)


def _build_keys(conn: Connection, table: str) -> Iterator[str]:
    key, same = TEXTS[table]
    yield from _differing(conn, table, key, same)
    conn.execute(_insert_new(conn, table, key, columns_of(conn, table)))


def _differing(conn: Connection, table: str, key: Sequence[str], same: Sequence[str]) -> Iterator[str]:
    on = " AND ".join(f"m.{k} = s.{k}" for k in key)
    differ = " OR ".join(f"m.{c} IS NOT s.{c}" for c in same)
    names = ", ".join([*(f"s.{k}" for k in key), *(f"m.{c}, s.{c}" for c in same)])
    query = f"SELECT {names} FROM src.{table} AS s JOIN main.{table} AS m ON {on} WHERE {differ}"
    for row in conn.execute(query):
        values = row[len(key) :]
        column, position = next((c, n) for n, c in enumerate(same) if values[2 * n] != values[2 * n + 1])
        row_key = "/".join(map(str, row[: len(key)]))
        yield f"{table} '{row_key}': {column} is {_shorten(values[2 * position + 1])} in one study and {_shorten(values[2 * position])} in another"


def _insert_new(conn: Connection, table: str, key: Sequence[str], columns: Sequence[str]) -> str:
    """Return the statement that inserts new rows in their order in `src`.

    The order of rowids is the order of import.
    """
    on = " AND ".join(f"m.{k} = s.{k}" for k in key)
    listed = ", ".join(columns)
    return (
        f"INSERT INTO main.{table} ({listed}) SELECT {listed} FROM src.{table} AS s "
        f"WHERE NOT EXISTS (SELECT 1 FROM main.{table} AS m WHERE {on})"
        + (" ORDER BY s.rowid" if _has_rowid(conn, table) else "")
    )


def _has_rowid(conn: Connection, table: str) -> bool:
    query = "SELECT sql FROM main.sqlite_master WHERE name = ? AND type = 'table'"
    return "WITHOUT ROWID" not in conn.execute(query, [table]).fetchone()[0].upper()


def _passages(conn: Connection) -> Iterator[str]:
    """Add passages. As in an import, an item's new passages come after its stored passages."""
    yield from _differing(conn, "passages", ("passage_id",), PASSAGE)
    after = "(SELECT coalesce(max(p.position) + 1, 0) FROM main.passages AS p WHERE p.item_id = s.item_id)"
    conn.execute(
        "INSERT INTO main.passages (passage_id, item_id, position, title, text, date, source, meta, content_sha, "
        "import_id) SELECT s.passage_id, s.item_id, s.position, s.title, s.text, s.date, s.source, s.meta, "
        "s.content_sha, s.import_id FROM src.passages AS s "
        "WHERE NOT EXISTS (SELECT 1 FROM main.passages AS m WHERE m.item_id = s.item_id) ORDER BY s.rowid"
    )
    late = conn.execute(
        f"SELECT s.passage_id, s.item_id, {after}, s.title, s.text, s.date, s.source, s.meta, s.content_sha, "
        "s.import_id FROM src.passages AS s WHERE NOT EXISTS "
        "(SELECT 1 FROM main.passages AS m WHERE m.passage_id = s.passage_id) ORDER BY s.item_id, s.position"
    )
    last, place = "", 0
    insert = f"INSERT INTO main.passages VALUES ({', '.join('?' * 10)})"
    # A row is inserted after it has been read, because the query that is being read selects rows that `main`
    # does not have yet.
    while chunk := late.fetchmany(1000):
        for passage, item, position, *rest in chunk:
            last, place = item, place + 1 if item == last else position
            conn.execute(insert, [passage, item, place, *rest])


def _people(conn: Connection) -> Iterator[str]:
    """Add all annotators except runs, which `map_runs` has already added."""
    yield from _differing(conn, "annotators", ("annotator_id",), ("kind",))
    query = (
        "SELECT s.annotator_id FROM src.annotators AS s JOIN main.annotators AS m USING (annotator_id) "
        "WHERE s.kind <> 'judge' AND s.profile <> m.profile AND '{}' NOT IN (s.profile, m.profile)"
    )
    for (name,) in conn.execute(query):
        yield f"annotator '{name}' has different profiles in the studies; if this is one person, make the profiles equal: {command('annotate annotators set', name)}"
    conn.execute(
        "UPDATE main.annotators SET profile = (SELECT s.profile FROM src.annotators AS s WHERE s.annotator_id = "
        "annotators.annotator_id) WHERE profile = '{}' AND annotator_id IN (SELECT annotator_id FROM src.annotators)"
    )
    conn.execute("INSERT OR IGNORE INTO main.annotators SELECT * FROM src.annotators WHERE kind <> 'judge'")


def add_labels(conn: Connection) -> Iterator[str]:
    """Add gold and human labels by source. The labels from runs are added with their judgements.

    If the same source has different labels in the two studies, the studies conflict. If different sources
    have different labels, a lead annotator resolves the conflict later.
    """
    gold = "annotator_id IN (SELECT annotator_id FROM main.annotators WHERE kind = 'gold')"
    by_source = ("label_sources", "imported_labels")
    for table, where in ((LABELS, gold), *((name, "1") for name in by_source)):
        key = _key(conn, table)
        on = " AND ".join(f"m.{c} = s.{c}" for c in key)
        source = f"(SELECT * FROM src.{table} WHERE {where}) AS s"
        if key:
            query = (
                f"SELECT s.unit_id, s.field, s.annotator_id, s.value, m.value FROM {source} "
                f"JOIN main.{table} AS m ON {on} WHERE m.value <> s.value"
            )
            for unit, name, annotator, value, other in conn.execute(query):
                yield f"{annotator}'s label for '{name}' of '{unit}' is {_shorten(value)} in one study and {_shorten(other)} in another"
        columns = ", ".join(columns_of(conn, table))
        conn.execute(f"INSERT OR IGNORE INTO main.{table} ({columns}) SELECT {columns} FROM {source}")
    # The rulings are numbered anew, because both studies begin at 1. Copies of one study share their first rulings.
    rulings = "annotator_id, field, unit_id, repeat, how, value, kept, rejected, at, knew"
    conn.execute(
        f"INSERT INTO main.label_rulings ({rulings}) SELECT {rulings} FROM src.label_rulings AS s "
        "WHERE NOT EXISTS (SELECT 1 FROM main.label_rulings AS m WHERE m.annotator_id = s.annotator_id AND m.field = s.field "
        "AND m.unit_id = s.unit_id AND m.repeat = s.repeat AND m.rejected = s.rejected AND m.at = s.at) ORDER BY seq"
    )
    # If one of the studies has later recorded how the labels of an import were made, the merged study uses
    # this information.
    conn.execute(
        "DELETE FROM main.label_sources AS s WHERE s.layer = 'undeclared' AND s.source GLOB 'import:*' AND EXISTS (SELECT 1 "
        "FROM main.label_sources AS o WHERE o.annotator_id = s.annotator_id AND o.field = s.field AND o.unit_id = s.unit_id "
        "AND o.repeat = s.repeat AND o.source = s.source AND o.layer IN ('first', 'assisted'))"
    )


def add_splits(conn: Connection) -> Iterator[str]:
    """Add splits. If both studies have split the same task, each question must be in the same part in both.

    A split is drawn only once, so a difference cannot be resolved. A question that was imported later may be
    in only one of the studies. All recorded uses of the test part (looks) are kept, because each use spends
    part of the error rate.
    """
    both = "SELECT task_id FROM src.splits INTERSECT SELECT task_id FROM main.splits"
    query = (
        "SELECT count(*) FROM src.split_questions AS s JOIN main.split_questions AS m USING (task_id, question_id) "
        "WHERE task_id = ? AND m.part <> s.part"
    )
    for (task,) in conn.execute(both).fetchall():
        rows = [conn.execute(f"SELECT * FROM {s}.splits WHERE task_id = ?", [task]) for s in ("src", "main")]
        ours, theirs = (r.fetchone() for r in rows)
        if ours != theirs or conn.execute(query, [task]).fetchone()[0]:
            yield f"the split of {task} was drawn separately in each study, so its parts differ"
    for name in ("splits", "split_questions"):
        conn.execute(f"INSERT OR IGNORE INTO main.{name} SELECT * FROM src.{name}")
    # Looks are renumbered by time, because the level of a look depends on its number.
    looks = conn.execute("SELECT * FROM src.split_looks ORDER BY task_id, at, look").fetchall()
    # If both studies have the same look, it is kept once, because one of the studies is a copy of the other.
    for task, _, purpose, run_ids, *rest in looks:
        mapped = _build_id_map(conn, "?1")
        runs = conn.execute(f"SELECT {mapped}", [run_ids]).fetchone()[0]
        conn.execute(
            "INSERT INTO main.split_looks SELECT ?1, 1 + coalesce(max(look), 0), ?2, ?3, ?4, ?5, ?6 "
            "FROM main.split_looks WHERE task_id = ?1 HAVING NOT EXISTS (SELECT 1 FROM main.split_looks "
            "WHERE task_id = ?1 AND purpose = ?2 AND runs = ?3 AND at = ?6)",
            [task, purpose, runs, *rest],
        )


def add_others(conn: Connection) -> Iterator[str]:
    """Add the rows of every other table.

    If a table's key is only a row number, new keys are assigned. In all other tables, rows with the same key
    must be equal. The ids of joined runs are replaced with the new ids.
    """
    for table in tables(conn, "src"):
        if table in OWN:
            continue
        info = conn.execute(f"PRAGMA main.table_info('{table}')").fetchall()
        key = _key(conn, table)
        counted = [r[1] for r in info if r[5] and len(key) == 1 and r[2].upper() == "INTEGER"]
        columns = [row[1] for row in info if row[1] not in counted]
        texts = {row[1] for row in info if row[2].upper() == "TEXT"}
        expressions = {c: _build_id_map(conn, f"s.{c}") if c in texts else f"s.{c}" for c in columns}
        compared = _unique(conn, table) or columns if counted else key
        # A subquery is used so that a mapped column is compared by its new value.
        ordered = " ORDER BY s.rowid" if _has_rowid(conn, table) else ""
        listed = ", ".join(f"{sql} AS {c}" for c, sql in expressions.items())
        source = f"(SELECT {listed} FROM src.{table} AS s{ordered}) AS s"
        on = " AND ".join(f"m.{c} IS s.{c}" for c in compared)
        # The studies may have recorded the same fact at different times, so times are not compared.
        rest = [c for c in columns if c not in compared and not (counted and c.endswith("at"))]
        if rest:
            yield from _rows_differing(conn, table, source, on, compared, rest)
        listed = ", ".join(columns)
        conn.execute(
            f"INSERT OR IGNORE INTO main.{table} ({listed}) SELECT {listed} FROM {source} "
            f"WHERE NOT EXISTS (SELECT 1 FROM main.{table} AS m WHERE {on})"
        )


def _rows_differing(
    conn: Connection, table: str, source: str, on: str, key: Sequence[str], rest: Sequence[str]
) -> Iterator[str]:
    differ = " OR ".join(f"m.{c} IS NOT s.{c}" for c in rest)
    names = ", ".join(f"s.{c}" for c in key)
    for row in conn.execute(f"SELECT {names} FROM {source} JOIN main.{table} AS m ON {on} WHERE {differ}"):
        row_key = "/".join(map(str, row))
        yield f"{table} '{row_key}': the rows in the studies differ"


def _unique(conn: Connection, table: str) -> list[str]:
    """Return the columns of a unique index that is not the primary key."""
    for _, index, unique, *_ in conn.execute(f"PRAGMA main.index_list('{table}')").fetchall():
        # In an index on an expression, the column has no name.
        names = [row[2] for row in conn.execute(f"PRAGMA main.index_info('{index}')")]
        query = "SELECT sql FROM main.sqlite_master WHERE name = ?"
        sql = (conn.execute(query, [index]).fetchone() or [None])[0]
        if unique and all(names) and not (sql and " WHERE " in sql.upper()):
            return names
    return []


def _build_id_map(conn: Connection, sql: str) -> str:
    """Return SQL that replaces the ids of joined runs in a text.

    An id has 26 characters, so it does not match other text by chance.
    """
    for old, new in conn.execute("SELECT old, new FROM temp.run_map WHERE old <> new").fetchall():
        # The ids come from an untrusted file and may contain quotes.
        old, new = (name.replace("'", "''") for name in (old, new))
        sql = f"replace({sql}, '{old}', '{new}')"
    return sql


def _shorten(value: object) -> str:
    text = " ".join(str(value).split())
    return f"'{text}'" if len(text) <= SHOWN else f"'{text[: SHOWN - 1]}…'"
