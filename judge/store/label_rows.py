"""SQL that writes to the table `labels`, and SQL expressions that look up labels in other queries.

This module writes the labels of runs and gold labels. Human labels are written by source
(`judge.store.label_sources`), and triggers add their rows to `labels`.

Computations read labels with `judge.labels.relation`. No other module accesses the table.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

from judge.types import GOLD, Json

FIRST = "(SELECT * FROM labels WHERE layer = 'first' AND repeat = 0) AS l"
"""The first labels, as a table `l`. All computations use these labels, except those on self-consistency and
revisions.
"""

ALL = "main.labels AS l"
"""All labels.

They are used in listings and in the views of a blind session. The session's authorizer refers to the table by
this name.
"""

JUDGED = (
    "INSERT OR REPLACE INTO labels (unit_id, field, annotator_id, repeat, value, distribution, rationale, "
    "derived_from) VALUES ?"
)
"""The INSERT statement for a run's labels. It is used with `insert_rows`."""

_KINDS = (
    "SELECT annotator_id, kind FROM annotators AS a WHERE kind <> 'judge' AND (EXISTS "
    "(SELECT 1 FROM labels AS l WHERE l.annotator_id = a.annotator_id{0}) OR EXISTS "
    "(SELECT 1 FROM label_conflicts AS l WHERE l.annotator_id = a.annotator_id{0})) ORDER BY 1"
)

OF_UNIT = "l.unit_id = {unit} AND +l.annotator_id = {run}"
"""Selects one annotator's labels for one unit, in any field.

Without the plus, SQLite would use the primary key, which starts with the annotator and the field. It would
then read all labels from the run for each unit.
"""


def single_label(annotator: str, field: str, unit: str, column: str = "value") -> str:
    """Return an SQL subquery that looks up one label of an annotator (layer `first`, repeat 0).

    `annotator`, `field` and `unit` are SQL expressions. `column` is the column of the label to return.
    """
    return (
        f"(SELECT l.{column} FROM labels AS l WHERE l.annotator_id = {annotator} AND l.field = {field} "
        f"AND l.unit_id = {unit} AND l.layer = 'first' AND l.repeat = 0)"
    )


def units_of_gold(field: str, value: str | None = None) -> str:
    """Return a query for the units with a gold label for a field, optionally only those with this value."""
    only_value = "" if value is None else f" AND value = {quote(value)}"
    return f"SELECT unit_id FROM labels WHERE annotator_id = '{GOLD}' AND field = {quote(field)}{only_value}"


def quote(text: str) -> str:
    """Return a string as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def objects(run: str, unit: str, content: str, repeat: str = "0") -> str:
    """Return an SQL expression for a JSON object that contains a run's labels for a unit, by field.

    `content` is the SQL expression for the values of the object. Only labels in the layer `first` are
    included.
    """
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
    """Add a run's labels for one field.

    `values` has one value for each unit. If the value is None, the unit gets no label.

    Values that are the same in all rows are part of the SQL text. Binding them for each row would take twice
    as long.
    """
    rows: Iterable[tuple[str | None, ...]] = zip(units, values, distributions or repeat(None), strict=False)
    # There may be millions of values, so they are filtered only if some of them are missing.
    if None in values:
        rows = (row for row in rows if row[1] is not None)
    shared = f"{quote(field)}, {quote(run)}, {'NULL' if derived_from is None else quote(derived_from)}"
    conn.executemany(
        "INSERT INTO labels (field, annotator_id, derived_from, unit_id, value, distribution) "
        f"VALUES ({shared}, ?, ?, ?)",
        rows,
    )


def judge_labelled(conn: sqlite3.Connection, run: str, field: str, status: str, at: str) -> None:
    """Add a judgement with this status for each unit that has a label from the run in this field.

    Units that already have a judgement are skipped.
    """
    conn.execute(
        "INSERT OR IGNORE INTO judgements (run_id, unit_id, repeat, attempt, status, judged_at) "
        f"SELECT annotator_id, unit_id, 0, 1, ?3, ?4 FROM {FIRST} WHERE annotator_id = ?1 AND field = ?2 ORDER BY unit_id",
        [run, field, status, at],
    )


def add_gold(conn: sqlite3.Connection, rows: Iterable[Sequence[Json]], source: str) -> None:
    """Add gold labels (unit, field, annotator, value, rationale) that came with items.

    Stored labels are never replaced.
    """
    conn.executemany(
        # The source is part of the row, so that changes to another source never affect this row.
        "INSERT OR IGNORE INTO labels (unit_id, field, annotator_id, value, rationale, sources) "
        f"VALUES (?, ?, ?, ?, ?, json_array({quote(source)}))",
        rows,
    )


OLD_TEXT = "old_text"
"""The layer of labels that were given before the text of their unit was corrected."""


def replace_gold(conn: sqlite3.Connection, unit: str, field: str, value: str, source: str) -> None:
    """Replace a gold label on purpose (`judge.store.corrections`). `source` is the import that has the new one."""
    conn.execute(
        "UPDATE labels SET value = ?, sources = json_array(?) WHERE annotator_id = ? AND field = ? AND unit_id = ? "
        "AND layer = 'first' AND repeat = 0",
        [value, source, GOLD, field, unit],
    )


def count_usable(conn: sqlite3.Connection, condition: str) -> int:
    """Return how many labels fulfil an SQL condition, without derived and revised labels and those for an old text."""
    query = (
        f"SELECT count(*) FROM labels WHERE layer NOT IN ('{OLD_TEXT}', 'revised') AND derived_from IS NULL "
        f"AND {condition}"
    )
    return int(conn.execute(query).fetchone()[0])


def mark_old_text(conn: sqlite3.Connection, condition: str) -> None:
    """Mark the labels of runs that fulfil an SQL condition as given for an old text."""
    conn.execute(f"UPDATE OR REPLACE labels SET layer = '{OLD_TEXT}' WHERE layer = 'first' AND {condition}")


def derive_again(
    conn: sqlite3.Connection, task: str, unit: str, name: str, source: str, table: Mapping[str, str]
) -> None:
    """Derive the field `name` again for a unit, from the labels that runs on the task gave for the field `source`.

    `table` maps each of these labels to the derived one.
    """
    of_task = "annotator_id IN (SELECT run_id FROM runs WHERE task = ?)"
    conn.execute(
        f"DELETE FROM labels WHERE unit_id = ? AND field = ? AND layer = 'first' AND {of_task}",
        [unit, name, task],
    )
    query = (
        "SELECT unit_id, annotator_id, layer, repeat, value FROM labels WHERE unit_id = ? AND field = ? "
        f"AND layer = 'first' AND {of_task}"
    )
    rows = conn.execute(query, [unit, source, task]).fetchall()
    conn.executemany(
        "INSERT INTO labels (unit_id, annotator_id, layer, repeat, value, field, derived_from) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(*row[:4], table[row[4]], name, source) for row in rows if row[4] in table],
    )


def make_label_rows(conn: sqlite3.Connection, run: str, unit: str, repeat: int) -> list[tuple[Json, ...]]:
    """Return (field, value, distribution, rationale) for each label that was read from a reply.

    Labels that were derived from other labels are omitted.
    """
    query = (
        f"SELECT field, value, distribution, rationale FROM labels AS l WHERE {OF_UNIT.format(run='?', unit='?')} "
        "AND repeat = ? AND layer = 'first' AND derived_from IS NULL"
    )
    return conn.execute(query, [unit, run, repeat]).fetchall()


def with_replies(conn: sqlite3.Connection, run: str) -> sqlite3.Cursor:
    """Return a run's replies with their labels.

    Rows are (unit, repeat, reply, field, value, distribution, derived_from). There is one row for each label.
    A reply without labels has one row, in which the label columns are empty.
    """
    return conn.execute(
        "SELECT k.unit_id, k.repeat, k.reply, l.field, l.value, l.distribution, l.derived_from "
        "FROM latest_judgements AS k LEFT JOIN labels AS l ON l.annotator_id = k.run_id AND l.unit_id = k.unit_id "
        "AND l.repeat = k.repeat AND l.layer = 'first' "
        "WHERE k.run_id = ? AND k.status = 'ok' AND k.reply IS NOT NULL ORDER BY k.unit_id, k.repeat",
        [run],
    )


def find_without_judgement(conn: sqlite3.Connection, run: str) -> sqlite3.Cursor:
    """Return (unit, field, value) for each label of a run that has no successful judgement."""
    return conn.execute(
        "SELECT l.unit_id, l.field, l.value FROM labels AS l WHERE l.annotator_id = ?1 AND NOT EXISTS (SELECT 1 "
        "FROM judgements AS k WHERE k.run_id = ?1 AND k.unit_id = l.unit_id AND k.repeat = l.repeat AND k.status = 'ok')",
        [run],
    )


def labellers(conn: sqlite3.Connection, field: str | None = None) -> dict[str, str]:
    """Return {annotator: kind} for all annotators with labels for a field. Judges are omitted.

    If the field is None, labels for any field count.
    """
    if field is None:
        return dict(conn.execute(_KINDS.format("")).fetchall())
    return dict(conn.execute(_KINDS.format(" AND l.field = ?1"), [field]).fetchall())


def count_unlabelled(conn: sqlite3.Connection, batch: str, run: str, field: str) -> int:
    """Return how many units in the sample of a batch have no label from a run for a field."""
    query = (
        "SELECT count(*) FROM batch_units AS b WHERE b.batch = ?1 AND b.role = 'sample' AND NOT EXISTS (SELECT 1 FROM labels AS l "
        "WHERE l.unit_id = b.unit_id AND l.annotator_id = ?2 AND l.field = ?3)"
    )
    return int(conn.execute(query, [batch, run, field]).fetchone()[0])


def find_outdated(conn: sqlite3.Connection, run: str, field: str, layer: str) -> set[str]:
    """Return the units with an outdated label for a field and a label of a run in this layer."""
    query = (
        "SELECT DISTINCT s.unit_id FROM dated_labels AS s JOIN labels AS j USING (unit_id, field) "
        "WHERE s.outdated AND s.field = ? AND j.annotator_id = ? AND j.layer = ?"
    )
    return {unit for (unit,) in conn.execute(query, [field, run, layer])}
