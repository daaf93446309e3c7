"""Whether a study says what was done: every log is folded again, and what follows is compared with what is stored."""

import json
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from annotate.sitting.desk import batch_info
from annotate.sitting.events import fold
from annotate.sitting.standing import events_of, follow, source_of
from judge.store import Store
from judge.store.label_sources import PEOPLE
from judge.types import Json

NEAR = 1e-6
"""How far a stored weight may be from what its probability says, relative to it."""


class Finding(NamedTuple):
    """A row that is not as it should be. `what` names the check, `where` the row."""

    what: str
    where: str
    expected: str
    stored: str


def verify(store: Store) -> list[Finding]:
    """Every difference between what is stored and what follows from the logs and the sources; nothing is changed."""
    conn = store.conn
    with store.reading_once():
        return [
            *_logs(store),
            *_orphans(conn),
            *_labels(conn),
            *_weights(conn),
            *_splits(conn),
            *_exposures(conn),
        ]


def _logs(store: Store) -> Iterator[Finding]:
    """How units stand, and the labels of each batch, folded again from its log."""
    conn = store.conn
    for (batch,) in conn.execute("SELECT batch FROM batches ORDER BY rowid").fetchall():
        task = batch_info(store, batch).task
        query = "SELECT DISTINCT annotator_id FROM assignments WHERE batch = ? ORDER BY 1"
        for (person,) in conn.execute(query, [batch]).fetchall():
            events = events_of(conn, batch, person)
            cursor = conn.execute(
                "SELECT * FROM assignments WHERE batch = ? AND annotator_id = ? ORDER BY position",
                [batch, person],
            )
            names = [column[0] for column in cursor.description]
            expected: set[tuple[Json, ...]] = set()
            for values in cursor.fetchall():
                row = dict(zip(names, values, strict=True))
                seat, unit = (batch, person, row["position"]), (row["unit_id"], row["repeat"])
                state = fold(events.pop(row["position"], []))
                stands, labels = follow(conn, task, seat, row["role"], unit, state)
                expected |= {tuple(label) for label in labels}
                for name, value in stands.items():
                    if value != row[name]:
                        where = f"batch '{batch}', {person}, unit '{unit[0]}': {name}"
                        yield Finding("log", where, str(value), str(row[name]))
            yield from _sources(conn, batch, person, expected)


def _sources(
    conn: sqlite3.Connection, batch: str, person: str, expected: set[tuple[Json, ...]]
) -> Iterator[Finding]:
    query = (
        "SELECT unit_id, field, annotator_id, layer, repeat, value, rationale, derived_from, source, given, stored "
        "FROM label_sources WHERE annotator_id = ? AND source = ?"
    )
    stored = set(conn.execute(query, [person, source_of(batch, person)]))
    for row in sorted(expected ^ stored, key=str):
        where = f"batch '{batch}', {person}, unit '{row[0]}', field '{row[1]}', layer '{row[3]}'"
        told = f"{row[5]} (given {row[9]})"
        yield Finding("log", where, *((told, "nothing") if row in expected else ("nothing", told)))


def _orphans(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Labels whose source is not in the study."""
    query = """
        SELECT s.annotator_id, s.unit_id, s.field, s.source, s.value FROM label_sources AS s WHERE NOT CASE
            WHEN s.source GLOB 'batch:*' OR s.source GLOB 'adjudication:*' THEN EXISTS (SELECT 1 FROM assignments AS a
                WHERE a.batch = substr(s.source, instr(s.source, ':') + 1) AND a.annotator_id = s.annotator_id
                AND a.unit_id = s.unit_id AND a.repeat = s.repeat)
            WHEN s.source GLOB 'import:*' THEN EXISTS (SELECT 1 FROM label_imports AS i
                WHERE i.import_id = substr(s.source, 8, 26))
            WHEN s.source GLOB 'items:*' THEN EXISTS (SELECT 1 FROM imports AS i WHERE i.import_id = substr(s.source, 7))
                OR EXISTS (SELECT 1 FROM runs AS r WHERE r.run_id = substr(s.source, 7))
            ELSE s.source = 'study:0.2.0' END
        ORDER BY 2, 1, 3
    """
    for person, unit, field, source, value in conn.execute(query):
        yield Finding("source", f"{person}, unit '{unit}', field '{field}'", f"a source '{source}'", value)


def _labels(conn: sqlite3.Connection) -> Iterator[Finding]:
    """The labels of people against what follows from their sources."""
    columns = "annotator_id, unit_id, field, repeat, layer, value, sources"
    sides = []
    for table in ("resolved_labels", "labels"):
        rows = conn.execute(f"SELECT {columns} FROM {table} WHERE annotator_id IN ({PEOPLE})")
        # In which order sources are listed says nothing.
        sides.append({row[:5]: (row[5], tuple(sorted(json.loads(row[6])))) for row in rows})
    expected, stored = sides
    for key in sorted(expected.keys() | stored.keys(), key=str):
        if expected.get(key) != stored.get(key):
            person, unit, field, repeat, layer = key
            where = f"{person}, unit '{unit}', field '{field}', layer '{layer}', repeat {repeat}"
            told = [
                f"{s[0]} ({', '.join(s[1])})" if s else "nothing"
                for s in (expected.get(key), stored.get(key))
            ]
            yield Finding("label", where, *told)


def _weights(conn: sqlite3.Connection) -> Iterator[Finding]:
    """A drawn unit stands for as many as its probability says."""
    query = "SELECT batch, unit_id, probability, weight FROM batch_units WHERE role = 'sample' AND probability IS NOT NULL"
    for batch, unit, probability, weight in conn.execute(query):
        if not 0 < probability <= 1 or weight is None or abs(weight * probability - 1) > NEAR:
            expected = f"{1 / probability:g}" if 0 < probability <= 1 else "a probability from 0 to 1"
            yield Finding("weight", f"batch '{batch}', unit '{unit}'", expected, f"{weight} ({probability})")
    query = (
        "SELECT DISTINCT a.batch, a.unit_id FROM assignments AS a WHERE a.role IN ('sample', 'repeat') "
        "AND (SELECT packed_for FROM batches AS b WHERE b.batch = a.batch) IS NULL AND NOT EXISTS (SELECT 1 "
        "FROM batch_units AS u WHERE u.batch = a.batch AND u.unit_id = a.unit_id) ORDER BY 1, 2"
    )
    for batch, unit in conn.execute(query):
        yield Finding("weight", f"batch '{batch}', unit '{unit}'", "a unit of the sample", "not drawn")


def _splits(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Questions of a split are questions of the study, and the looks at its test are counted without a gap."""
    query = "SELECT task_id, question_id FROM split_questions WHERE question_id NOT IN (SELECT question_id FROM units)"
    for task, question in conn.execute(query):
        yield Finding("split", f"split of {task}", f"question '{question}' in the study", "it is not there")
    query = (
        "SELECT task_id, count(*), max(look) FROM split_looks GROUP BY task_id HAVING count(*) <> max(look)"
    )
    for task, n, last in conn.execute(query):
        yield Finding("split", f"looks at the test of {task}", f"{n}", f"the last is number {last}")


def _exposures(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Who labelled a unit at a desk was shown it, and the ledger says so."""
    query = """
        SELECT DISTINCT e.batch, s.person, a.unit_id FROM events AS e JOIN sessions AS s USING (session_id)
        JOIN assignments AS a ON a.batch = e.batch AND a.annotator_id = e.annotator_id AND a.position = e.position
        JOIN batches AS b ON b.batch = e.batch
        WHERE e.kind = 'label' AND b.exposure = 'kept' AND b.packed_for IS NULL AND s.version NOT LIKE '% %'
          AND NOT EXISTS (SELECT 1 FROM exposures AS x WHERE x.person = s.person AND x.unit_id = a.unit_id)
        ORDER BY 1, 2, 3
    """
    for batch, person, unit in conn.execute(query):
        yield Finding("exposure", f"batch '{batch}', {person}, unit '{unit}'", "shown", "not in the ledger")
