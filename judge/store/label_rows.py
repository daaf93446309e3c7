"""The relation `labels` as the store and annotate's batches use it: what writes it, and look-ups inside other queries.

Runs and gold are written here. What people say is written by source (`judge.store.label_sources`), and their rows follow.

Whoever computes on labels reads them through `judge.labels`, whose `relation` holds the other half of the SQL. Nothing
outside these two modules names the table in a statement of its own.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import repeat

from judge.types import GOLD, Json

FIRST = "(SELECT * FROM labels WHERE layer = 'first' AND repeat = 0) AS l"
"""The labels that everything but self-consistency and revisions is computed on, as a table `l` of a query."""

ALL = "main.labels AS l"
"""All of them: for the views of a blind session, whose authorizer knows the table by this name, and listings."""

JUDGED = (
    "INSERT OR REPLACE INTO labels (unit_id, field, annotator_id, repeat, value, distribution, rationale, "
    "derived_from) VALUES ?"
)
"""What a run adds, for `insert_rows`."""

OF_UNIT = "l.unit_id = {unit} AND +l.annotator_id = {run}"
"""What one annotator said of one unit, in any field. The plus keeps SQLite from the primary key, which begins with the
annotator: without the field it would read all labels of a run for each unit."""


def one(annotator: str, field: str, unit: str, column: str = "value") -> str:
    """The SQL expression of one label; the arguments are SQL themselves."""
    return (
        f"(SELECT l.{column} FROM labels AS l WHERE l.annotator_id = {annotator} AND l.field = {field} "
        f"AND l.unit_id = {unit} AND l.layer = 'first' AND l.repeat = 0)"
    )


def units_of_gold(field: str, value: str | None = None) -> str:
    """A query of the units with a gold label of a field (of this value)."""
    own = "" if value is None else f" AND value = {quoted(value)}"
    return f"SELECT unit_id FROM labels WHERE annotator_id = '{GOLD}' AND field = {quoted(field)}{own}"


def quoted(text: str) -> str:
    """Text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def objects(run: str, unit: str, content: str, repeat: str = "0") -> str:
    """The SQL expression of a JSON object: field -> `content`, of a run's first labels on a unit."""
    return (
        f"(SELECT json_group_object(l.field, {content}) FROM labels AS l WHERE {OF_UNIT.format(run=run, unit=unit)} "
        f"AND l.layer = 'first' AND l.repeat = {repeat})"
    )


def add_column(
    conn: sqlite3.Connection,
    run: str,
    field: str,
    derived_from: str | None,
    units: Iterable[str],
    values: Sequence[str | None],
    distributions: Sequence[str | None] | None,
) -> None:
    """Add a run's first labels of one field (None: none), aligned to `units`.

    What all rows share stands in the statement: binding it anew for each would be half of the work.
    """
    rows: Iterable[tuple[str | None, ...]] = zip(units, values, distributions or repeat(None), strict=False)
    if None in values:
        rows = (row for row in rows if row[1] is not None)
    shared = f"{quoted(field)}, {quoted(run)}, {'NULL' if derived_from is None else quoted(derived_from)}"
    conn.executemany(
        "INSERT INTO labels (field, annotator_id, derived_from, unit_id, value, distribution) "
        f"VALUES ({shared}, ?, ?, ?)",
        rows,
    )


def judge_labelled(conn: sqlite3.Connection, run: str, field: str, status: str, at: str) -> None:
    """A judgement with this status for every unit that a run has a first label of in this field, and no judgement yet."""
    conn.execute(
        "INSERT OR IGNORE INTO judgements (run_id, unit_id, repeat, attempt, status, judged_at) "
        f"SELECT annotator_id, unit_id, 0, 1, ?3, ?4 FROM {FIRST} WHERE annotator_id = ?1 AND field = ?2 ORDER BY unit_id",
        [run, field, status, at],
    )


def add_gold(conn: sqlite3.Connection, rows: Iterable[Sequence[Json]], source: str) -> None:
    """Add gold labels (unit, field, annotator, value, rationale) that came with items; those that are there stay."""
    conn.executemany(
        "INSERT OR IGNORE INTO labels (unit_id, field, annotator_id, value, rationale, sources) "
        f"VALUES (?, ?, ?, ?, ?, json_array({quoted(source)}))",
        rows,
    )


def of_judgement(conn: sqlite3.Connection, run: str, unit: str, repeat: int) -> list[tuple[Json, ...]]:
    """(field, value, distribution, rationale) of the labels that a reply gave, without those derived from them."""
    query = (
        f"SELECT field, value, distribution, rationale FROM labels AS l WHERE {OF_UNIT.format(run='?', unit='?')} "
        "AND repeat = ? AND layer = 'first' AND derived_from IS NULL"
    )
    return conn.execute(query, [unit, run, repeat]).fetchall()


def with_replies(conn: sqlite3.Connection, run: str) -> sqlite3.Cursor:
    """Of each unit that a model answered in a run: (unit, repeat, reply, field, value, whether it has a distribution,
    derived_from), a row for each label, and one without a label where there is none."""
    return conn.execute(
        "SELECT k.unit_id, k.repeat, k.reply, l.field, l.value, l.distribution, l.derived_from "
        "FROM latest_judgements AS k LEFT JOIN labels AS l ON l.annotator_id = k.run_id AND l.unit_id = k.unit_id "
        "AND l.repeat = k.repeat AND l.layer = 'first' "
        "WHERE k.run_id = ? AND k.status = 'ok' AND k.reply IS NOT NULL ORDER BY k.unit_id, k.repeat",
        [run],
    )


def without_judgement(conn: sqlite3.Connection, run: str) -> sqlite3.Cursor:
    """(unit, field, value) of labels of a run that no judgement of it explains."""
    return conn.execute(
        "SELECT l.unit_id, l.field, l.value FROM labels AS l WHERE l.annotator_id = ?1 AND NOT EXISTS (SELECT 1 "
        "FROM judgements AS k WHERE k.run_id = ?1 AND k.unit_id = l.unit_id AND k.repeat = l.repeat AND k.status = 'ok')",
        [run],
    )
