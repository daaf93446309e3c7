"""The relation `labels` as it is read: the SQL on it, and nothing else.

(unit_id, field, annotator_id, layer, repeat) -> value, with distribution, rationale and derived_from. Layer `first`,
repeat 0 is what everything but self-consistency and revisions is computed on.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from judge.stats.ratings import IntArray
from judge.store.label_rows import FIRST
from judge.store.study import dumps

ONE = "annotator_id = ? AND field = ? AND layer = ? AND repeat = ?"
CHUNK = 20_000
"""Stored distributions that are in memory at once."""
KINDS = (
    "SELECT annotator_id, kind FROM annotators AS a WHERE kind <> 'judge' AND (EXISTS "
    "(SELECT 1 FROM labels AS l WHERE l.annotator_id = a.annotator_id{0}) OR EXISTS "
    "(SELECT 1 FROM label_conflicts AS l WHERE l.annotator_id = a.annotator_id{0})) ORDER BY 1"
)

SOURCES_OF_ANSWERS = (
    "(SELECT json_group_object(j.key, json(l.sources)) FROM json_each(a.answers) AS j "
    "JOIN labels AS l ON l.annotator_id = a.annotator_id AND l.field = j.key AND l.unit_id = a.unit_id "
    "AND l.repeat = a.repeat AND l.value = j.value AND l.layer <> 'revised')"
)
"""Of a row `a` of `assignments`: field -> the sources of the label, for answers that count."""


def values(
    conn: sqlite3.Connection, annotator: str, field: str, layer: str = "first", repeat: int = 0
) -> dict[str, str]:
    """Unit -> label of one annotator."""
    query = f"SELECT unit_id, value FROM labels WHERE {ONE}"
    return dict(conn.execute(query, [annotator, field, layer, repeat]).fetchall())


def codes(
    conn: sqlite3.Connection, annotator: str, field: str, layer: str = "first", repeat: int = 0
) -> tuple[IntArray, IntArray, list[str]]:
    """Labels of one annotator, by unit: its rowid (ascending), the label's position in the third, and the labels used."""
    query = f"SELECT u.rowid, l.value FROM labels AS l JOIN units AS u USING (unit_id) WHERE {ONE}"
    code_of: dict[str, int] = {}
    rowids, given = array("q"), array("q")
    for rowid, value in conn.execute(query, [annotator, field, layer, repeat]):
        rowids.append(rowid)
        given.append(code_of.setdefault(value, len(code_of)))
    found = np.array(rowids, np.int64)
    order = np.argsort(found)
    return found[order], np.array(given, np.int64)[order], list(code_of)


def distributions(
    conn: sqlite3.Connection, annotator: str, field: str, layer: str = "first", repeat: int = 0
) -> Iterator[tuple[IntArray, list[str]]]:
    """The stored distributions (JSON) of one annotator's labels and the rowids of their units, some at a time."""
    query = (
        "SELECT u.rowid, l.distribution FROM labels AS l JOIN units AS u USING (unit_id) "
        f"WHERE {ONE} AND l.distribution IS NOT NULL"
    )
    cursor = conn.execute(query, [annotator, field, layer, repeat])
    while rows := cursor.fetchmany(CHUNK):
        yield np.array([rowid for rowid, _ in rows], np.int64), [text for _, text in rows]


def rows_of(conn: sqlite3.Connection, units: Collection[str]) -> IntArray:
    """The rowids of these units, ascending."""
    query = "SELECT rowid FROM units WHERE unit_id IN (SELECT value FROM json_each(?)) ORDER BY rowid"
    return _rowids(conn.execute(query, [dumps(sorted(units))]))


def judged_rows(conn: sqlite3.Connection, run: str, repeat: int = 0) -> IntArray:
    """The rowids of the units that a run was asked about, with a label or without, ascending."""
    query = (
        "SELECT u.rowid FROM units AS u WHERE EXISTS "
        "(SELECT 1 FROM judgements AS j WHERE j.run_id = ? AND j.unit_id = u.unit_id AND j.repeat = ?) ORDER BY u.rowid"
    )
    return _rowids(conn.execute(query, [run, repeat]))


def _rowids(rows: Iterable[tuple[int]]) -> IntArray:
    return np.fromiter((rowid for (rowid,) in rows), dtype=np.int64)


def column(
    conn: sqlite3.Connection, annotator: str, field: str
) -> tuple[list[str], list[str], list[str | None]]:
    """Units in ascending order, labels and stored distributions (JSON) of one annotator's first labels."""
    query = f"SELECT unit_id, value, distribution FROM labels WHERE {ONE} ORDER BY unit_id"
    rows = conn.execute(query, [annotator, field, "first", 0]).fetchall()
    units, values, masses = zip(*rows, strict=True) if rows else ((), (), ())
    return list(units), list(values), list(masses)


def has_distributions(conn: sqlite3.Connection, annotator: str, field: str) -> bool:
    """Whether any label of an annotator's field has a stored distribution."""
    query = f"SELECT 1 FROM labels WHERE {ONE} AND distribution IS NOT NULL LIMIT 1"
    return conn.execute(query, [annotator, field, "first", 0]).fetchone() is not None


def unlabelled(conn: sqlite3.Connection, run: str) -> dict[str, str]:
    """Unit -> status of those that a run was asked about and that have no label, by the latest attempt."""
    query = (
        "SELECT j.unit_id, j.status FROM judgements AS j WHERE j.run_id = ? AND j.repeat = 0 AND j.status <> 'ok' "
        "AND NOT EXISTS (SELECT 1 FROM judgements AS k WHERE k.run_id = j.run_id AND k.unit_id = j.unit_id "
        "AND k.repeat = 0 AND k.attempt > j.attempt)"
    )
    return dict(conn.execute(query, [run]).fetchall())


def labelled_by_people(conn: sqlite3.Connection, field: str) -> set[str]:
    """The units with a label of a field by anybody but a judge."""
    query = (
        f"SELECT DISTINCT l.unit_id FROM {FIRST} JOIN annotators AS a USING (annotator_id) "
        "WHERE l.field = ? AND a.kind <> 'judge'"
    )
    return {unit for (unit,) in conn.execute(query, [field])}


def of_selection(conn: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """Every label of the selected units (`judge.store.selection`), in their order.

    A row is (unit, field, annotator, layer, repeat, value, distribution, rationale, derived_from, sources).
    """
    return conn.execute(
        "SELECT l.unit_id, l.field, l.annotator_id, l.layer, l.repeat, l.value, l.distribution, l.rationale, "
        "l.derived_from, l.sources FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n "
        "JOIN labels AS l ON l.unit_id = u.unit_id ORDER BY s.place, l.field, l.annotator_id, l.repeat, l.layer"
    )


def counts(conn: sqlite3.Connection, annotator: str, field: str) -> Counter[str]:
    """How often one annotator gave each label."""
    query = f"SELECT value, count(*) FROM labels WHERE {ONE} GROUP BY value"
    return Counter({str(v): int(n) for v, n in conn.execute(query, [annotator, field, "first", 0])})


def in_conflict(conn: sqlite3.Connection, annotator: str, field: str, repeat: int = 0) -> set[str]:
    """The units that a person labelled differently in two ways, so that no label counts until somebody decides."""
    query = "SELECT unit_id FROM label_conflicts WHERE annotator_id = ? AND field = ? AND repeat = ?"
    return {unit for (unit,) in conn.execute(query, [annotator, field, repeat])}


def conflict_counts(conn: sqlite3.Connection) -> dict[str, dict[str, int]]:
    """Field -> person -> how many labels are in conflict."""
    query = (
        "SELECT field, annotator_id, count(*) FROM label_conflicts GROUP BY field, annotator_id ORDER BY 1, 2"
    )
    return _nested(conn.execute(query))


def judged_values(conn: sqlite3.Connection, run: str, annotator: str, field: str) -> list[str]:
    """The first labels of an annotator on the units that a run has judged."""
    query = f"""
        SELECT value FROM labels AS l WHERE {ONE} AND EXISTS (
            SELECT 1 FROM judgements AS j WHERE j.run_id = ? AND j.unit_id = l.unit_id AND j.repeat = 0)
    """
    return [value for (value,) in conn.execute(query, [annotator, field, "first", 0, run])]


def judged(conn: sqlite3.Connection, run: str, repeat: int = 0) -> set[str]:
    """The units that a run was asked about, with a label or without."""
    query = "SELECT unit_id FROM judgements WHERE run_id = ? AND repeat = ?"
    return {unit for (unit,) in conn.execute(query, [run, repeat])}


def judges_of(conn: sqlite3.Connection, field: str, units: Sequence[str]) -> dict[str, int]:
    """Judge -> on how many of these units it has a label of the field."""
    query = (
        f"SELECT l.annotator_id, count(DISTINCT l.unit_id) FROM {FIRST} JOIN annotators AS a USING (annotator_id) "
        "WHERE a.kind = 'judge' AND l.field = ? AND l.unit_id IN (SELECT value FROM json_each(?)) GROUP BY 1 ORDER BY 1"
    )
    return dict(conn.execute(query, [field, dumps(list(units))]).fetchall())


def labelled_since(conn: sqlite3.Connection, field: str, units: Sequence[str], at: str) -> int:
    """How many of these units somebody but a judge labelled after a time."""
    query = (
        "SELECT count(DISTINCT s.unit_id) FROM label_sources AS s JOIN annotators AS a USING (annotator_id) "
        "WHERE a.kind <> 'judge' AND s.field = ? AND s.stored > ? AND s.unit_id IN (SELECT value FROM json_each(?))"
    )
    return int(conn.execute(query, [field, at, dumps(list(units))]).fetchone()[0])


def fields(conn: sqlite3.Connection) -> dict[str, list[str]]:
    """Field -> who labelled it (run ids for judges)."""
    found: dict[str, list[str]] = {}
    query = "SELECT DISTINCT field, annotator_id FROM labels ORDER BY field, annotator_id"
    for field, annotator in conn.execute(query):
        found.setdefault(field, []).append(annotator)
    return found


def newest_fields(conn: sqlite3.Connection) -> set[str]:
    """The fields that anybody but a judge has labelled among the newest units of the study."""
    newest = "SELECT unit_id FROM units ORDER BY rowid DESC LIMIT 50"
    query = (
        f"SELECT DISTINCT l.field FROM labels AS l JOIN annotators AS a USING (annotator_id) "
        f"WHERE l.unit_id IN ({newest}) AND a.kind <> 'judge'"
    )
    return {field for (field,) in conn.execute(query)}


def unit_counts(conn: sqlite3.Connection) -> dict[str, int]:
    """Field -> how many units have a label of it."""
    return dict(conn.execute("SELECT field, count(DISTINCT unit_id) FROM labels GROUP BY field").fetchall())


def label_counts(conn: sqlite3.Connection) -> dict[str, dict[str, int]]:
    """Annotator -> field -> how many labels."""
    query = "SELECT annotator_id, field, count(*) FROM labels GROUP BY annotator_id, field ORDER BY 1, 2"
    return _nested(conn.execute(query))


def labellers(conn: sqlite3.Connection, field: str | None = None) -> dict[str, str]:
    """Everybody but judges who labelled the field (any field: None) -> kind."""
    if field is None:
        return dict(conn.execute(KINDS.format("")).fetchall())
    return dict(conn.execute(KINDS.format(" AND l.field = ?1"), [field]).fetchall())


def layers(conn: sqlite3.Connection, field: str) -> dict[str, dict[str, int]]:
    """Annotator -> layer -> labels, of layers other than first labels and revised ones."""
    query = (
        "SELECT annotator_id, layer, count(*) FROM labels WHERE field = ? AND layer NOT IN ('first', 'revised') "
        "GROUP BY 1, 2 ORDER BY 1, 2"
    )
    return _nested(conn.execute(query, [field]))


def _nested(rows: Iterable[tuple[str, str, Any]]) -> dict[str, dict[str, Any]]:
    """First column -> second -> third."""
    found: dict[str, dict[str, Any]] = {}
    for first, second, value in rows:
        found.setdefault(first, {})[second] = value
    return found


def rationale(conn: sqlite3.Connection, annotator: str, field: str, unit: str) -> str:
    """Why an annotator gave a first label; empty where nothing is said."""
    query = f"SELECT rationale FROM labels WHERE {ONE} AND unit_id = ?"
    row = conn.execute(query, [annotator, field, "first", 0, unit]).fetchone()
    return str(row[0] or "") if row else ""


def revised(conn: sqlite3.Connection, field: str) -> dict[str, dict[str, str]]:
    """Annotator -> unit -> label as it was revised."""
    query = (
        "SELECT annotator_id, unit_id, value FROM labels WHERE field = ? AND layer = 'revised' AND repeat = 0 "
        "ORDER BY annotator_id"
    )
    return _nested(conn.execute(query, [field]))


def repeats(
    conn: sqlite3.Connection, annotator: str, field: str, is_judge: bool
) -> tuple[int, list[tuple[str, int, str | None, str]]]:
    """How often an annotator was asked again at most, and (unit, repeat, label or None, question) of units asked again."""
    most = conn.execute(
        "SELECT max(repeat) FROM labels WHERE annotator_id = ? AND field = ? AND layer = 'first'",
        [annotator, field],
    ).fetchone()[0]
    if not most:
        return 0, []
    asked = "SELECT unit_id, repeat FROM labels WHERE annotator_id = ?1 AND field = ?2 AND layer = 'first'"
    if is_judge:
        asked = "SELECT DISTINCT unit_id, repeat FROM judgements WHERE run_id = ?1 AND ?2 <> ''"
    query = f"""
        SELECT a.unit_id, a.repeat, l.value, u.question_id FROM ({asked}) AS a JOIN units AS u USING (unit_id)
        LEFT JOIN labels AS l ON l.unit_id = a.unit_id AND l.repeat = a.repeat AND l.annotator_id = ?1
                              AND l.field = ?2 AND l.layer = 'first'
        WHERE a.unit_id IN (SELECT unit_id FROM ({asked}) WHERE repeat > 0)
    """
    return most, conn.execute(query, [annotator, field]).fetchall()


EVERY = (
    *("unit_id", "unit_kind", "item_id", "question_id", "passage_id", "field", "annotator", "annotator_kind"),
    *("model", "layer", "repeat", "value", "distribution", "rationale", "derived_from"),
)
"""The columns of `every`."""


def every(conn: sqlite3.Connection, field: str | None = None) -> Iterator[tuple[str | int | None, ...]]:
    """Every label (of a field), in the order of the study; `model` is that of a run, `distribution` is JSON."""
    query = """
        SELECT l.unit_id, u.kind, u.item_id, u.question_id, u.passage_id, l.field, l.annotator_id, a.kind,
               r.model, l.layer, l.repeat, l.value, l.distribution, l.rationale, l.derived_from
        FROM labels AS l JOIN units AS u USING (unit_id) JOIN annotators AS a USING (annotator_id)
        LEFT JOIN runs AS r ON r.run_id = l.annotator_id
        WHERE ?1 IS NULL OR l.field = ?1 ORDER BY u.rowid, l.field, a.kind, l.annotator_id, l.layer, l.repeat
    """
    yield from conn.execute(query, [field])
