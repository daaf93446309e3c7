"""Store human labels by source, and resolve conflicts between sources.

A row of `label_sources` belongs to one source: a batch, an import, an adjudication, or votes that were
imported with items. A source adds and removes only its own rows. Triggers (see the migration that creates the
table) derive the table `labels` from these rows. If all sources agree, there is one label, which lists the
sources. If they disagree, there is no label until a lead resolves the conflict.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from judge.errors import UsageError
from judge.store.study import dumps, get_time
from judge.types import Json

Keep = Literal["earliest", "latest"]
PEOPLE = "SELECT annotator_id FROM annotators WHERE kind IN ('human', 'adjudicated')"
"""Selects the annotators whose labels can have several sources. A run's labels have one source, as have gold
labels.
"""
_FOLLOW = (
    "INSERT INTO labels (unit_id, field, annotator_id, repeat, layer, value, rationale, derived_from, sources) "
    "SELECT * FROM resolved_labels"
)
SAME = "annotator_id = ? AND field = ? AND unit_id = ? AND repeat = ?"


class SourceLabel(NamedTuple):
    """The label from one source. `given` is None if the time of labelling is unknown."""

    source: str
    layer: str
    value: str
    given: str | None
    stored: str

    @property
    def at(self) -> str:
        """The time of labelling or, if it is unknown, the time at which the label was stored.

        `earliest` and `latest` compare these times.
        """
        return self.given or self.stored


class Conflict(NamedTuple):
    """A label on which sources disagree. `said` lists the label from each source, earliest first."""

    annotator: str
    field: str
    unit: str
    repeat: int
    said: list[SourceLabel]


def add(conn: sqlite3.Connection, rows: Iterable[Sequence[Json]]) -> None:
    """Add the labels from a batch. The batch's event log contains the same labels.

    A row is (unit, field, annotator, layer, repeat, value, rationale, derived_from, source, given, stored).
    """
    conn.executemany(
        "INSERT INTO label_sources (unit_id, field, annotator_id, layer, repeat, value, rationale, derived_from, "
        f"source, given, stored) VALUES ({', '.join('?' * 11)})",
        rows,
    )


def add_imported(conn: sqlite3.Connection, rows: Sequence[Sequence[Json]]) -> None:
    """Add the labels from an import.

    The labels are also added to the log `imported_labels`, so that the import can be verified later.
    """
    add(conn, rows)
    conn.executemany(
        "INSERT OR IGNORE INTO imported_labels (source, annotator_id, field, unit_id, repeat, layer, value, given) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(row[8], row[2], row[1], row[0], row[4], row[3], row[5], row[9]) for row in rows],
    )


def add_first(conn: sqlite3.Connection, rows: Iterable[Sequence[Json]], source: str) -> None:
    """Add votes (unit, field, annotator, value, rationale) that were imported with items.

    The times at which they were labelled are unknown.
    """
    # Data files do not contain the time of a vote, so `earliest` and `latest` compare the time of the import.
    stored = get_time()
    add_imported(
        conn,
        [
            (u, f, who, "first", 0, value, reason, None, source, None, stored)
            for u, f, who, value, reason in rows
        ],
    )


def clear(
    conn: sqlite3.Connection, annotator: str, unit: str, repeat: int, source: str, fields: Sequence[str]
) -> None:
    """Remove one source's labels for these fields of a unit."""
    marks = ", ".join("?" * len(fields))
    # Only rows of this source are removed, because the same person's labels from other sources must be kept.
    conn.execute(
        f"DELETE FROM label_sources WHERE annotator_id = ? AND field IN ({marks}) AND unit_id = ? AND repeat = ? "
        "AND source = ?",
        [annotator, *fields, unit, repeat, source],
    )


def read_labels(
    conn: sqlite3.Connection, unit: str, field: str, annotator: str, repeat: int, *, revised: bool = False
) -> list[SourceLabel]:
    """Return a person's labels for a field of a unit, one per source, earliest first.

    Labels that a lead has rejected are omitted. The labels are either the first or the `revised` labels.
    """
    query = f"SELECT source, layer, value, given, stored FROM counted_labels WHERE {SAME} AND revised = ?"
    rows = conn.execute(query, [annotator, field, unit, repeat, revised])
    # The source breaks ties, so that `earliest` does not depend on the order of rows.
    return sorted((SourceLabel(*row) for row in rows), key=lambda label: (label.at, label.source))


def read_item_vote(
    conn: sqlite3.Connection, unit: str, field: str, annotator: str, *, outdated: bool = False
) -> str | None:
    """Return the annotator's vote for a field of a unit, or None.

    Only votes that were imported with items are considered: those for the present text of the unit or, with
    `outdated`, the latest one for an earlier text. In a study created by adjudge 0.2.0, these votes cannot be distinguished from other labels, so any label counts.
    """
    query = (
        f"SELECT value FROM dated_labels WHERE {SAME} AND outdated = ? "
        "AND (source GLOB 'items:*' OR source = 'study:0.2.0') ORDER BY stored DESC"
    )
    row = conn.execute(query, [annotator, field, unit, 0, outdated]).fetchone()
    return None if row is None else str(row[0])


def conflicts(conn: sqlite3.Connection, fields: Iterable[str] | None = None) -> list[Conflict]:
    """Return every label in these fields on which the sources disagree, in study order.

    A conflict in a derived field is omitted if its source field also has a conflict. Resolving the conflict
    in the source field resolves both.
    """
    query = (
        "SELECT c.annotator_id, c.field, c.unit_id, c.repeat, c.derived_from FROM label_conflicts AS c "
        "JOIN units AS u USING (unit_id) ORDER BY u.rowid, c.annotator_id, c.field, c.repeat"
    )
    rows = conn.execute(query).fetchall()
    in_conflict = {(who, field, unit, repeat) for who, field, unit, repeat, _ in rows}
    selected = None if fields is None else set(fields)
    return [
        Conflict(who, field, unit, repeat, read_labels(conn, unit, field, who, repeat))
        for who, field, unit, repeat, source_field in rows
        if (selected is None or field in selected) and (who, source_field, unit, repeat) not in in_conflict
    ]


def is_rejected(
    conn: sqlite3.Connection, unit: str, field: str, annotator: str, repeat: int, value: str, at: str | None
) -> bool:
    """Return whether a lead has rejected this label, and the label was not given after that decision.

    A label without a time counts as given before the decision, as when a file is imported again. A decision on labels
    for an earlier text of the unit does not count.
    """
    query = (
        "SELECT 1 FROM standing_rejections AS r WHERE annotator_id = ?1 AND field = ?2 AND unit_id = ?3 AND repeat = ?4 "
        "AND value = ?5 AND how = 'lead' AND (?6 IS NULL OR ?6 <= at) AND NOT EXISTS "
        "(SELECT 1 FROM corrected_units AS c WHERE c.unit_id = r.unit_id AND c.at >= r.at)"
    )
    return conn.execute(query, [annotator, field, unit, repeat, value, at]).fetchone() is not None


def resolve(
    conn: sqlite3.Connection,
    conflicts_to_resolve: Iterable[Conflict],
    keep: Callable[[Conflict], str],
    how: Literal["lead", "latest"] = "lead",
) -> int:
    """Resolve each conflict in favour of the value that `keep` returns. Return the number of conflicts.

    The rejected labels remain in `label_sources`, and `label_resolutions` records why they are not used. `how` is
    "latest" if the import option --latest decided, and not a lead.
    """
    # Only the labels of these people are derived again, because a study may have millions of other labels.
    people = set()
    n, at = 0, get_time()
    for conflict in conflicts_to_resolve:
        value = keep(conflict)
        kept = next(s.source for s in conflict.said if s.value == value)
        label = (conflict.annotator, conflict.field, conflict.unit, conflict.repeat)
        losing = [s for s in conflict.said if s.value != value]
        rows = [(*label, s.source, s.value, s.given, kept, at) for s in losing]
        conn.executemany(f"INSERT OR IGNORE INTO label_resolutions VALUES ({', '.join('?' * 9)})", rows)
        rejected = dumps([[s.source, s.value, s.given] for s in losing])
        conn.execute(
            "INSERT INTO label_rulings (annotator_id, field, unit_id, repeat, how, value, kept, rejected, at, knew) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, (SELECT json_group_array(at) FROM label_rulings "
            "WHERE annotator_id = ?1 AND field = ?2 AND unit_id = ?3 AND repeat = ?4))",
            [*label, how, value, kept, rejected, at],
        )
        people.add(conflict.annotator)
        n += 1
    follow(conn, sorted(people))
    return n


def follow_rulings(conn: sqlite3.Connection) -> None:
    """Rebuild the table `label_resolutions` from the log of rulings, after a merge has put the logs of two studies together."""
    columns = "annotator_id, field, unit_id, repeat, source, value, given, kept, at"
    conn.execute("DELETE FROM label_resolutions")
    conn.execute(f"INSERT INTO label_resolutions ({columns}) SELECT {columns} FROM standing_rejections")


def pick_by_time(keep: Keep) -> Callable[[Conflict], str]:
    """Return a function that picks the earliest or latest value in a conflict.

    If the time of labelling is unknown, the time at which the label was stored is used.
    """
    return lambda conflict: (conflict.said[0] if keep == "earliest" else conflict.said[-1]).value


def pick_by_value(value: str) -> Callable[[Conflict], str]:
    """Return a function that resolves a conflict in favour of `value`.

    The function raises UsageError if no source in the conflict gave this label.
    """

    def keep(conflict: Conflict) -> str:
        values = list(dict.fromkeys(s.value for s in conflict.said))
        if value not in values:
            summary = f"the labels of {conflict.annotator} for the field '{conflict.field}' of '{conflict.unit}' are {', '.join(values)}"
            raise UsageError(
                f"--keep {value}: {summary}; if there are several conflicts, select one with --field and "
                "--annotator"
            )
        return value

    return keep


def follow_units(conn: sqlite3.Connection, chosen: str) -> None:
    """Rebuild the human labels of some units from the sources. `chosen` is an SQL condition on `unit_id`."""
    conn.execute(f"DELETE FROM labels WHERE {chosen} AND annotator_id IN ({PEOPLE})")
    conn.execute(f"{_FOLLOW} WHERE {chosen}")


def follow(conn: sqlite3.Connection, people: Sequence[str] | None = None) -> None:
    """Rebuild the table `labels` from the sources, for these people or, if `people` is None, for all people."""
    annotators = PEOPLE if people is None else ", ".join("?" * len(people))
    values = [] if people is None else list(people)
    conn.execute(f"DELETE FROM labels WHERE annotator_id IN ({annotators})", values)
    conn.execute(f"{_FOLLOW} WHERE annotator_id IN ({annotators})", values)


def keep_current(conn: sqlite3.Connection) -> None:
    """Record which labels and events of the attached study `src` are for the present texts of their units.

    A correction in another study may have a later time. It does not concern them, because `src` had the corrected text.
    """
    # All studies have the same texts, so what counts in its own study was given for the text of the merged one.
    conn.execute(
        "INSERT OR IGNORE INTO main.given_for_corrected SELECT s.unit_id, s.annotator_id, s.source, "
        "coalesce(s.given, s.stored), c.at FROM main.corrected_units AS c JOIN src.dated_labels AS s "
        "ON s.unit_id = c.unit_id AND coalesce(s.given, s.stored) <= c.at WHERE NOT s.outdated"
    )
    conn.execute(
        "INSERT OR IGNORE INTO main.given_for_corrected SELECT e.unit_id, e.annotator_id, 'batch:' || e.batch, e.at, c.at "
        "FROM main.corrected_units AS c JOIN src.event_corrections AS e ON e.unit_id = c.unit_id AND e.at <= c.at "
        "WHERE NOT e.outdated"
    )
