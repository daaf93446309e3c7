"""The SQL that reads the relation `labels`.

The columns unit_id, field, annotator_id, layer and repeat identify a label. The other columns include the value
of the label, its distribution, its rationale and derived_from.

The layer `first` contains the annotators' first, blind labels. If an annotator labels a unit repeatedly, the
first of these labels has repeat 0.
All statistics except self-consistency and revisions are computed on these labels.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from judge.store.label_rows import FIRST, OLD_TEXT
from judge.store.runs import DRIFT, TRIED
from judge.store.study import dumps

ONE = "annotator_id = ? AND field = ? AND layer = ? AND repeat = ?"
SOURCES_OF_ANSWERS = (
    "(SELECT json_group_object(j.key, json(l.sources)) FROM json_each(a.answers) AS j "
    "JOIN labels AS l ON l.annotator_id = a.annotator_id AND l.field = j.key AND l.unit_id = a.unit_id "
    "AND l.repeat = a.repeat AND l.value = j.value AND l.layer <> 'revised')"
)
"""SQL that returns, for a row `a` of `assignments`, the sources of each field's label. Only answers that count
are included.
"""


def values(
    conn: sqlite3.Connection, annotator: str, field: str, layer: str = "first", repeat: int = 0
) -> dict[str, str]:
    """Return the label that an annotator assigned to each unit."""
    query = f"SELECT unit_id, value FROM labels WHERE {ONE}"
    return dict(conn.execute(query, [annotator, field, layer, repeat]).fetchall())


def column(
    conn: sqlite3.Connection, annotator: str, field: str
) -> tuple[list[str], list[str], list[str | None]]:
    """Return one annotator's first labels as three lists: units in ascending order, labels, and stored
    distributions (JSON).
    """
    query = f"SELECT unit_id, value, distribution FROM labels WHERE {ONE} ORDER BY unit_id"
    rows = conn.execute(query, [annotator, field, "first", 0]).fetchall()
    units, values, masses = zip(*rows, strict=True) if rows else ((), (), ())
    return list(units), list(values), list(masses)


def has_distributions(conn: sqlite3.Connection, annotator: str, field: str) -> bool:
    """Return whether any of the annotator's labels for this field has a stored distribution."""
    query = f"SELECT 1 FROM labels WHERE {ONE} AND distribution IS NOT NULL LIMIT 1"
    return conn.execute(query, [annotator, field, "first", 0]).fetchone() is not None


def read_unlabelled(conn: sqlite3.Connection, run: str) -> dict[str, str]:
    """Map each unit whose latest attempt in the run gave no label to the status of that attempt."""
    query = (
        "SELECT j.unit_id, j.status FROM judgements AS j WHERE j.run_id = ? AND j.repeat = 0 AND j.status <> 'ok' "
        "AND NOT EXISTS (SELECT 1 FROM judgements AS k WHERE k.run_id = j.run_id AND k.unit_id = j.unit_id "
        "AND k.repeat = 0 AND k.attempt > j.attempt)"
    )
    return dict(conn.execute(query, [run]).fetchall())


def read_units_with_labels(conn: sqlite3.Connection, field: str) -> set[str]:
    """Return the units that have a label for this field. Judges' labels do not count."""
    query = (
        f"SELECT DISTINCT l.unit_id FROM {FIRST} JOIN annotators AS a USING (annotator_id) "
        "WHERE l.field = ? AND a.kind <> 'judge'"
    )
    return {unit for (unit,) in conn.execute(query, [field])}


def read_selection(conn: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """Return all labels of the selected units (`judge.store.selection`), in the order of these units.

    A row is (unit, field, annotator, layer, repeat, value, distribution, rationale, derived_from, sources).
    """
    return conn.execute(
        "SELECT l.unit_id, l.field, l.annotator_id, l.layer, l.repeat, l.value, l.distribution, l.rationale, "
        "l.derived_from, l.sources FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n "
        "JOIN labels AS l ON l.unit_id = u.unit_id ORDER BY s.place, l.field, l.annotator_id, l.repeat, l.layer"
    )


def counts(conn: sqlite3.Connection, annotator: str, field: str) -> Counter[str]:
    """Return how often one annotator gave each label."""
    query = f"SELECT value, count(*) FROM labels WHERE {ONE} GROUP BY value"
    return Counter({str(v): int(n) for v, n in conn.execute(query, [annotator, field, "first", 0])})


def read_conflicts(conn: sqlite3.Connection, annotator: str, field: str) -> set[str]:
    """Return the units for which sources, such as two imported files, have different labels by this person.

    None of these labels is used until a lead annotator resolves the conflict.
    """
    query = "SELECT unit_id FROM label_conflicts WHERE annotator_id = ? AND field = ? AND repeat = 0"
    return {unit for (unit,) in conn.execute(query, [annotator, field])}


def conflict_counts(conn: sqlite3.Connection) -> dict[str, dict[str, int]]:
    """Return the number of conflicting labels for each field and person."""
    query = (
        "SELECT field, annotator_id, count(*) FROM label_conflicts GROUP BY field, annotator_id ORDER BY 1, 2"
    )
    return _nest(conn.execute(query))


def read_judged_values(conn: sqlite3.Connection, run: str, annotator: str, field: str) -> list[str]:
    """Return an annotator's first labels on the units that a run has judged."""
    query = f"""
        SELECT value FROM labels AS l WHERE {ONE} AND EXISTS (
            SELECT 1 FROM judgements AS j WHERE j.run_id = ? AND j.unit_id = l.unit_id AND j.repeat = 0)
    """
    return [value for (value,) in conn.execute(query, [annotator, field, "first", 0, run])]


def read_judged_units(conn: sqlite3.Connection, run: str) -> set[str]:
    """Return the units that a run has judged, with or without a label."""
    query = "SELECT unit_id FROM judgements WHERE run_id = ? AND repeat = 0"
    return {unit for (unit,) in conn.execute(query, [run])}


def judges_of(conn: sqlite3.Connection, field: str, units: Sequence[str]) -> dict[str, int]:
    """Return, for each judge, how many of these units it has labelled for the field."""
    # Runs of `judge drift` repeat a judge's questions, and nobody can choose them as a judge.
    query = (
        f"SELECT l.annotator_id, count(DISTINCT l.unit_id) FROM {FIRST} JOIN annotators AS a USING (annotator_id) "
        "WHERE a.kind = 'judge' AND l.field = ? AND l.unit_id IN (SELECT value FROM json_each(?)) AND NOT EXISTS "
        f"(SELECT 1 FROM runs AS r WHERE r.run_id = l.annotator_id AND json_extract(r.options, '$.{TRIED}') = '{DRIFT}') "
        "GROUP BY 1 ORDER BY 1"
    )
    return dict(conn.execute(query, [field, dumps(list(units))]).fetchall())


def read_people(conn: sqlite3.Connection, field: str) -> set[str]:
    """Return the people who labelled at least one unit for the field."""
    query = f"SELECT DISTINCT l.annotator_id FROM {FIRST} JOIN annotators AS a USING (annotator_id) WHERE a.kind = 'human' AND l.field = ?"
    return {person for (person,) in conn.execute(query, [field])}


def fields(conn: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the annotators who labelled each field (run ids for judges)."""
    by_field: dict[str, list[str]] = {}
    # One lookup for each annotator and field. DISTINCT would scan the millions of labels of a run.
    query = """
        WITH RECURSIVE given(annotator_id, field) AS (
            SELECT a.annotator_id, (SELECT min(l.field) FROM labels AS l WHERE l.annotator_id = a.annotator_id) FROM annotators AS a
            UNION ALL
            SELECT g.annotator_id, (SELECT min(l.field) FROM labels AS l WHERE l.annotator_id = g.annotator_id AND l.field > g.field)
            FROM given AS g WHERE g.field IS NOT NULL
        )
        SELECT field, annotator_id FROM given WHERE field IS NOT NULL ORDER BY field, annotator_id
    """
    for field, annotator in conn.execute(query):
        by_field.setdefault(field, []).append(annotator)
    return by_field


def newest_fields(conn: sqlite3.Connection) -> set[str]:
    """Return the fields for which at least one of the 50 most recently imported units has a label.

    Judges' labels do not count.
    """
    # The advice after an import is about the units that it brought, not about older data.
    newest = "SELECT unit_id FROM units ORDER BY rowid DESC LIMIT 50"
    query = (
        f"SELECT DISTINCT l.field FROM labels AS l JOIN annotators AS a USING (annotator_id) "
        f"WHERE l.unit_id IN ({newest}) AND a.kind <> 'judge'"
    )
    return {field for (field,) in conn.execute(query)}


def label_counts(conn: sqlite3.Connection) -> dict[str, dict[str, int]]:
    """Return the number of labels for each annotator and field."""
    query = "SELECT annotator_id, field, count(*) FROM labels GROUP BY annotator_id, field ORDER BY 1, 2"
    return _nest(conn.execute(query))


def layers(conn: sqlite3.Connection, field: str) -> dict[str, dict[str, int]]:
    """Return the number of labels for each annotator and layer, except for the layers `first` and `revised`.

    A judge's label for an old text is not counted if the judge has labelled the new text.
    """
    again = (
        "SELECT 1 FROM labels AS n WHERE n.annotator_id = o.annotator_id AND n.field = o.field "
        "AND n.unit_id = o.unit_id AND n.repeat = o.repeat AND n.layer = 'first'"
    )
    query = (
        "SELECT annotator_id, layer, count(*) FROM labels AS o WHERE field = ? AND layer NOT IN ('first', 'revised') "
        f"AND NOT (layer = '{OLD_TEXT}' AND EXISTS ({again})) GROUP BY 1, 2 ORDER BY 1, 2"
    )
    return _nest(conn.execute(query, [field]))


def count_by_version(conn: sqlite3.Connection, field: str, batch: str | None = None) -> dict[str | None, int]:
    """Return how many of people's labels were given under each version of a task, in a batch or in all batches.

    Labels without a batch, such as imported ones, have the key None: the study does not record their version.
    """
    task = (
        "(SELECT b.task FROM json_each(l.sources) AS s JOIN batches AS b "
        "ON s.value IN ('batch:' || b.batch, 'adjudication:' || b.batch) ORDER BY b.batch IS NOT ?2, b.created LIMIT 1)"
    )
    inside = "?2 IS NULL OR EXISTS (SELECT 1 FROM json_each(l.sources) AS s WHERE s.value = 'batch:' || ?2)"
    query = (
        # People's labels are few, and are found by their annotator without a scan of the judges' labels.
        f"SELECT {task}, count(*) FROM annotators AS a CROSS JOIN {FIRST} USING (annotator_id) "
        f"WHERE a.kind = 'human' AND l.field = ?1 AND ({inside}) GROUP BY 1"
    )
    return dict(conn.execute(query, [field, batch]).fetchall())


def _nest(rows: Iterable[tuple[str, str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the rows as a nested dict: {first column: {second column: third column}}."""
    nested: dict[str, dict[str, Any]] = {}
    for first, second, value in rows:
        nested.setdefault(first, {})[second] = value
    return nested


def rationale(conn: sqlite3.Connection, annotator: str, field: str, unit: str) -> str:
    """Return the annotator's reason for a first label, or an empty string if no reason is stored."""
    query = f"SELECT rationale FROM labels WHERE {ONE} AND unit_id = ?"
    row = conn.execute(query, [annotator, field, "first", 0, unit]).fetchone()
    return str(row[0] or "") if row else ""


def read_revised(conn: sqlite3.Connection, field: str) -> dict[str, dict[str, str]]:
    """Return each annotator's revised labels, by unit."""
    query = (
        "SELECT annotator_id, unit_id, value FROM labels WHERE field = ? AND layer = 'revised' AND repeat = 0 "
        "ORDER BY annotator_id"
    )
    return _nest(conn.execute(query, [field]))


def repeats(
    conn: sqlite3.Connection, annotator: str, field: str, is_judge: bool
) -> tuple[int, list[tuple[str, int, str | None, str]]]:
    """Return the repeated labels of an annotator, preceded by their highest repeat number.

    Each row is (unit, repeat, label, question). A unit that was labelled repeatedly has one row for each
    repeat, beginning with repeat 0. If a judge's repeat failed, the label is None.
    """
    most = conn.execute(
        "SELECT max(repeat) FROM labels WHERE annotator_id = ? AND field = ? AND layer = 'first'",
        [annotator, field],
    ).fetchone()[0]
    if not most:
        return 0, []
    # A judge's failed repeat counts as a try without a label; a person has no record of tries, only labels.
    attempts = "SELECT unit_id, repeat FROM labels WHERE annotator_id = ?1 AND field = ?2 AND layer = 'first'"
    if is_judge:
        attempts = "SELECT DISTINCT unit_id, repeat FROM judgements WHERE run_id = ?1 AND ?2 <> ''"
    query = f"""
        SELECT a.unit_id, a.repeat, l.value, u.question_id FROM ({attempts}) AS a JOIN units AS u USING (unit_id)
        LEFT JOIN labels AS l ON l.unit_id = a.unit_id AND l.repeat = a.repeat AND l.annotator_id = ?1
                              AND l.field = ?2 AND l.layer = 'first'
        WHERE a.unit_id IN (SELECT unit_id FROM ({attempts}) WHERE repeat > 0)
    """
    return most, conn.execute(query, [annotator, field]).fetchall()


EVERY = (
    *("unit_id", "unit_kind", "item_id", "question_id", "passage_id", "field", "annotator", "annotator_kind"),
    *("model", "layer", "repeat", "value", "distribution", "rationale", "derived_from"),
)
"""The columns of `read_all`."""


def read_all(conn: sqlite3.Connection, field: str | None = None) -> Iterator[tuple[str | int | None, ...]]:
    """Yield every label in study order or, if a field is given, every label for that field.

    `model` is the run's model, and `distribution` is JSON.
    """
    query = """
        SELECT l.unit_id, u.kind, u.item_id, u.question_id, u.passage_id, l.field, l.annotator_id, a.kind,
               r.model, l.layer, l.repeat, l.value, l.distribution, l.rationale, l.derived_from
        FROM labels AS l JOIN units AS u USING (unit_id) JOIN annotators AS a USING (annotator_id)
        LEFT JOIN runs AS r ON r.run_id = l.annotator_id
        WHERE ?1 IS NULL OR l.field = ?1 ORDER BY u.rowid, l.field, a.kind, l.annotator_id, l.layer, l.repeat
    """
    yield from conn.execute(query, [field])
