"""What people said of a unit, by source, and what a lead decides where sources contradict each other.

A row of `label_sources` belongs to one source: a batch, an import, an adjudication, votes that came with items. A source
adds and removes its own rows only. `labels` follows from all of them by the triggers of the migration that made the table:
where all sources agree there is one label that lists them, and where they differ there is none until a lead decides.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from judge.errors import UsageError
from judge.store.study import now
from judge.types import Json

Keep = Literal["earliest", "latest"]
PEOPLE = "SELECT annotator_id FROM annotators WHERE kind IN ('human', 'adjudicated')"
"""Whose labels have sources; runs and gold have one each."""
SAME = "annotator_id = ? AND field = ? AND unit_id = ? AND repeat = ?"


class SourceLabel(NamedTuple):
    """What one source says; `given` is None where nobody knows when the person gave the label."""

    source: str
    layer: str
    value: str
    given: str | None
    stored: str

    @property
    def at(self) -> str:
        """When it was given, else when it came into the study: what `earliest` and `latest` compare."""
        return self.given or self.stored


class Conflict(NamedTuple):
    """A label of which the sources differ, the earliest first."""

    annotator: str
    field: str
    unit: str
    repeat: int
    said: list[SourceLabel]


def add(conn: sqlite3.Connection, rows: Iterable[Sequence[Json]]) -> None:
    """Add (unit, field, annotator, layer, repeat, value, rationale, derived_from, source, given, stored) of a batch, whose
    log says the same."""
    conn.executemany(
        "INSERT INTO label_sources (unit_id, field, annotator_id, layer, repeat, value, rationale, derived_from, "
        f"source, given, stored) VALUES ({', '.join('?' * 11)})",
        rows,
    )


def add_imported(conn: sqlite3.Connection, rows: Sequence[Sequence[Json]]) -> None:
    """Add such rows of an import, and the same to `imported_labels`: the log by which they can be verified."""
    add(conn, rows)
    conn.executemany(
        "INSERT OR IGNORE INTO imported_labels (source, annotator_id, field, unit_id, repeat, layer, value, given) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(row[8], row[2], row[1], row[0], row[4], row[3], row[5], row[9]) for row in rows],
    )


def add_first(conn: sqlite3.Connection, rows: Iterable[Sequence[Json]], source: str) -> None:
    """Add votes (unit, field, annotator, value, rationale) that came with items, which say nothing of when."""
    stored = now()
    add_imported(
        conn,
        [(u, f, who, "first", 0, value, why, None, source, None, stored) for u, f, who, value, why in rows],
    )


def clear(
    conn: sqlite3.Connection, annotator: str, unit: str, repeat: int, source: str, fields: Sequence[str]
) -> None:
    """Remove what one source says of these fields of a unit."""
    marks = ", ".join("?" * len(fields))
    conn.execute(
        f"DELETE FROM label_sources WHERE annotator_id = ? AND field IN ({marks}) AND unit_id = ? AND repeat = ? "
        "AND source = ?",
        [annotator, *fields, unit, repeat, source],
    )


def said(conn: sqlite3.Connection, unit: str, field: str, annotator: str, repeat: int) -> list[SourceLabel]:
    """What each source says of a person's label, revised labels and what a lead decided against left out."""
    query = f"SELECT source, layer, value, given, stored FROM counted_labels WHERE {SAME} AND NOT revised"
    rows = conn.execute(query, [annotator, field, unit, repeat])
    return sorted((SourceLabel(*row) for row in rows), key=lambda one: (one.at, one.source))


def of_items(conn: sqlite3.Connection, unit: str, field: str, annotator: str) -> str | None:
    """What votes that came with items say of a unit; those of a study of 0.2.0 may be among its other labels."""
    query = (
        f"SELECT value FROM label_sources WHERE {SAME} AND (source GLOB 'items:*' OR source = 'study:0.2.0')"
    )
    found = conn.execute(query, [annotator, field, unit, 0]).fetchone()
    return None if found is None else str(found[0])


def conflicts(
    conn: sqlite3.Connection, fields: Iterable[str] | None = None, *, derived: bool = False
) -> list[Conflict]:
    """Every label whose sources contradict each other (of these fields), in the order of the study.

    A conflict of a derived field that only follows from one of the field it is derived from is left out, unless
    `derived`: deciding that one decides both.
    """
    query = (
        "SELECT c.annotator_id, c.field, c.unit_id, c.repeat, c.derived_from FROM label_conflicts AS c "
        "JOIN units AS u USING (unit_id) ORDER BY u.rowid, c.annotator_id, c.field, c.repeat"
    )
    rows = conn.execute(query).fetchall()
    there = {(who, field, unit, repeat) for who, field, unit, repeat, _ in rows}
    wanted = None if fields is None else set(fields)
    return [
        Conflict(who, field, unit, repeat, said(conn, unit, field, who, repeat))
        for who, field, unit, repeat, source_field in rows
        if (wanted is None or field in wanted) and (derived or (who, source_field, unit, repeat) not in there)
    ]


def resolve(conn: sqlite3.Connection, found: Iterable[Conflict], keep: Callable[[Conflict], str]) -> int:
    """Let one value count in each conflict; `keep` returns it. Returns how many were resolved.

    What the other sources say stays in `label_sources`, and `label_resolutions` says why it does not count.
    """
    people = set()
    n, at = 0, now()
    for one in found:
        value = keep(one)
        kept = next(s.source for s in one.said if s.value == value)
        rows = [
            (one.annotator, one.field, one.unit, one.repeat, s.source, s.value, s.given, kept, at)
            for s in one.said
            if s.value != value
        ]
        conn.executemany(f"INSERT OR IGNORE INTO label_resolutions VALUES ({', '.join('?' * 9)})", rows)
        people.add(one.annotator)
        n += 1
    follow(conn, sorted(people))
    return n


def by_time(keep: Keep) -> Callable[[Conflict], str]:
    """The value of a conflict that was given first or last; a label without a time counts from when it came in."""
    return lambda one: (one.said[0] if keep == "earliest" else one.said[-1]).value


def by_value(value: str) -> Callable[[Conflict], str]:
    """This value, which one of the sources must say. Raises UsageError otherwise."""

    def keep(one: Conflict) -> str:
        values = list(dict.fromkeys(s.value for s in one.said))
        if value not in values:
            told = f"{one.annotator}'s labels of '{one.unit}', field '{one.field}', are {', '.join(values)}"
            raise UsageError(f"--keep {value}: {told}; --field and --annotator name one of several conflicts")
        return value

    return keep


def follow(conn: sqlite3.Connection, people: Sequence[str] | None = None) -> None:
    """Write again what follows from the sources in `labels`, for these people or everybody."""
    who = PEOPLE if people is None else ", ".join("?" * len(people))
    values = [] if people is None else list(people)
    conn.execute(f"DELETE FROM labels WHERE annotator_id IN ({who})", values)
    conn.execute(
        "INSERT INTO labels (unit_id, field, annotator_id, repeat, layer, value, rationale, derived_from, sources) "
        f"SELECT * FROM resolved_labels WHERE annotator_id IN ({who})",
        values,
    )
