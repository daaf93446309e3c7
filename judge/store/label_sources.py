"""Human labels by source, and how conflicts between sources are resolved.

A row of `label_sources` belongs to one source: a batch, an import, an adjudication, or votes that came with items. A
source adds and removes only its own rows. Triggers (see the migration that made the table) derive `labels` from them:
if all sources agree, there is one label that lists them. If they differ, there is none until a lead resolves the
conflict.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from judge.errors import UsageError
from judge.store.study import now
from judge.types import Json

Keep = Literal["earliest", "latest"]
PEOPLE = "SELECT annotator_id FROM annotators WHERE kind IN ('human', 'adjudicated')"
"""Annotators whose labels have several sources. A run and gold each have one."""
SAME = "annotator_id = ? AND field = ? AND unit_id = ? AND repeat = ?"


class SourceLabel(NamedTuple):
    """The label that one source has; `given` is None if the time of labelling is unknown."""

    source: str
    layer: str
    value: str
    given: str | None
    stored: str

    @property
    def at(self) -> str:
        """When the label was given or, if that is unknown, stored. `earliest` and `latest` compare this time."""
        return self.given or self.stored


class Conflict(NamedTuple):
    """A label on which sources differ; `said` lists the sources' labels, earliest first."""

    annotator: str
    field: str
    unit: str
    repeat: int
    said: list[SourceLabel]


def add(conn: sqlite3.Connection, rows: Iterable[Sequence[Json]]) -> None:
    """Add the rows of a batch, whose event log has the same labels.

    A row is (unit, field, annotator, layer, repeat, value, rationale, derived_from, source, given, stored).
    """
    conn.executemany(
        "INSERT INTO label_sources (unit_id, field, annotator_id, layer, repeat, value, rationale, derived_from, "
        f"source, given, stored) VALUES ({', '.join('?' * 11)})",
        rows,
    )


def add_imported(conn: sqlite3.Connection, rows: Sequence[Sequence[Json]]) -> None:
    """Add the rows of an import. They are also added to `imported_labels`, the log against which they can be
    verified.
    """
    add(conn, rows)
    conn.executemany(
        "INSERT OR IGNORE INTO imported_labels (source, annotator_id, field, unit_id, repeat, layer, value, given) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(row[8], row[2], row[1], row[0], row[4], row[3], row[5], row[9]) for row in rows],
    )


def add_first(conn: sqlite3.Connection, rows: Iterable[Sequence[Json]], source: str) -> None:
    """Add votes (unit, field, annotator, value, rationale) that came with items. Such votes have no time."""
    # Data files have no time of the vote, so `earliest` and `latest` compare the time of the import.
    stored = now()
    add_imported(
        conn,
        [(u, f, who, "first", 0, value, why, None, source, None, stored) for u, f, who, value, why in rows],
    )


def clear(
    conn: sqlite3.Connection, annotator: str, unit: str, repeat: int, source: str, fields: Sequence[str]
) -> None:
    """Remove the labels that one source has for these fields of a unit."""
    marks = ", ".join("?" * len(fields))
    # Only this source: the labels that other sources have of the same person are not its own to remove.
    conn.execute(
        f"DELETE FROM label_sources WHERE annotator_id = ? AND field IN ({marks}) AND unit_id = ? AND repeat = ? "
        "AND source = ?",
        [annotator, *fields, unit, repeat, source],
    )


def said(conn: sqlite3.Connection, unit: str, field: str, annotator: str, repeat: int) -> list[SourceLabel]:
    """Return the label of each source for a unit, field and person, earliest first.

    Revised labels and labels that a lead decided against are left out.
    """
    query = f"SELECT source, layer, value, given, stored FROM counted_labels WHERE {SAME} AND NOT revised"
    rows = conn.execute(query, [annotator, field, unit, repeat])
    # The source breaks ties, so that `earliest` does not depend on the order of rows.
    return sorted((SourceLabel(*row) for row in rows), key=lambda label: (label.at, label.source))


def of_items(conn: sqlite3.Connection, unit: str, field: str, annotator: str) -> str | None:
    """Return the vote that came with the items, or None.

    A study made by adjudge 0.2.0 may store it among its other labels.
    """
    query = (
        f"SELECT value FROM label_sources WHERE {SAME} AND (source GLOB 'items:*' OR source = 'study:0.2.0')"
    )
    row = conn.execute(query, [annotator, field, unit, 0]).fetchone()
    return None if row is None else str(row[0])


def conflicts(conn: sqlite3.Connection, fields: Iterable[str] | None = None) -> list[Conflict]:
    """Return every label in these fields on which the sources disagree, in study order.

    A conflict in a derived field that only follows from its source field is left out, because resolving the
    source field resolves both.
    """
    query = (
        "SELECT c.annotator_id, c.field, c.unit_id, c.repeat, c.derived_from FROM label_conflicts AS c "
        "JOIN units AS u USING (unit_id) ORDER BY u.rowid, c.annotator_id, c.field, c.repeat"
    )
    rows = conn.execute(query).fetchall()
    in_conflict = {(who, field, unit, repeat) for who, field, unit, repeat, _ in rows}
    selected = None if fields is None else set(fields)
    return [
        Conflict(who, field, unit, repeat, said(conn, unit, field, who, repeat))
        for who, field, unit, repeat, source_field in rows
        if (selected is None or field in selected) and (who, source_field, unit, repeat) not in in_conflict
    ]


def resolve(
    conn: sqlite3.Connection, conflicts_to_resolve: Iterable[Conflict], keep: Callable[[Conflict], str]
) -> int:
    """Resolve each conflict in favour of the value that `keep` returns. Return how many were resolved.

    The losing labels stay in `label_sources`, and `label_resolutions` records why they do not count.
    """
    # Only `labels` of these people are derived again: a study may have millions of others.
    people = set()
    n, at = 0, now()
    for conflict in conflicts_to_resolve:
        value = keep(conflict)
        kept = next(s.source for s in conflict.said if s.value == value)
        label = (conflict.annotator, conflict.field, conflict.unit, conflict.repeat)
        losing = [s for s in conflict.said if s.value != value]
        rows = [(*label, s.source, s.value, s.given, kept, at) for s in losing]
        conn.executemany(f"INSERT OR IGNORE INTO label_resolutions VALUES ({', '.join('?' * 9)})", rows)
        people.add(conflict.annotator)
        n += 1
    follow(conn, sorted(people))
    return n


def by_time(keep: Keep) -> Callable[[Conflict], str]:
    """Return a function that picks the earliest or latest value of a conflict.

    For a label without a time, the time at which it was stored is used.
    """
    return lambda conflict: (conflict.said[0] if keep == "earliest" else conflict.said[-1]).value


def by_value(value: str) -> Callable[[Conflict], str]:
    """Return a function that picks this value; it raises UsageError if no source has the value."""

    def keep(conflict: Conflict) -> str:
        values = list(dict.fromkeys(s.value for s in conflict.said))
        if value not in values:
            summary = f"{conflict.annotator}'s labels of '{conflict.unit}', field '{conflict.field}', are {', '.join(values)}"
            raise UsageError(
                f"--keep {value}: {summary}; use --field and --annotator to choose one of several conflicts"
            )
        return value

    return keep


def follow(conn: sqlite3.Connection, people: Sequence[str] | None = None) -> None:
    """Derive `labels` from the sources again, for these people or for everybody."""
    annotators = PEOPLE if people is None else ", ".join("?" * len(people))
    values = [] if people is None else list(people)
    conn.execute(f"DELETE FROM labels WHERE annotator_id IN ({annotators})", values)
    conn.execute(
        "INSERT INTO labels (unit_id, field, annotator_id, repeat, layer, value, rationale, derived_from, sources) "
        f"SELECT * FROM resolved_labels WHERE annotator_id IN ({annotators})",
        values,
    )
