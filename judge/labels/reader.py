"""Read labels from a study as arrays. All numbers on labels are computed from what this module returns.

A unit is identified by its rowid in the study, and a label by its code: the position of its value in a list of values. Ids
and values become strings only where a row is printed, because a million strings need a hundred times the memory.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from judge.labels import masses, relation
from judge.labels.batches import Members
from judge.labels.values import canonical
from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, compact
from judge.store.derived import read_seen_units
from judge.store.study import dumps
from judge.types import AnnotatorKind

CHUNK = 20_000
"""The number of rows that are in memory as Python objects at once."""


class _Codes(dict[str, int]):
    """Numbers values in the order in which they are first looked up."""

    def __missing__(self, value: str) -> int:
        return self.setdefault(value, len(self))


@dataclass(frozen=True, eq=False)
class LabelCodes:
    """One annotator's first labels: the unit `rowids[i]` has the label `values[codes[i]]`. The rowids are in ascending order."""

    rowids: IntArray
    codes: IntArray
    values: list[str]

    def select(self, kept: BoolArray) -> LabelCodes:
        """Return only the labels where the mask is true."""
        return LabelCodes(self.rowids[kept], self.codes[kept], self.values)

    def find_used_values(self) -> set[str]:
        """Return the values that at least one unit has. After `select`, some values may have no unit."""
        used = np.zeros(len(self.values), dtype=np.bool_)
        # In pages, because numpy counts 8 bytes for each label.
        for start in range(0, len(self.codes), CHUNK):
            used[self.codes[start : start + CHUNK]] = True
        return {self.values[at] for at in np.flatnonzero(used).tolist()}

    def in_domain(self, domain: Sequence[str], numeric_field: str | None = None) -> IntArray:
        """Return the code of each label in `domain`, or MISSING for a label outside it.

        `numeric_field` is the field's name if its labels are numbers, which then have one form each.
        """
        code_of = {label: code for code, label in enumerate(domain)}
        codes = [code_of.get(canonical(v, numeric_field), MISSING) for v in self.values]
        return compact(np.array([*codes, MISSING], dtype=np.int64), len(domain))[self.codes]


def read_labels(
    conn: sqlite3.Connection, annotator: str, field: str, only: IntArray | None = None
) -> LabelCodes:
    """Return one annotator's first labels for a field, on all units or `only` on the units with these rowids."""
    # Labels for an old text have a layer of their own, so they are not read.
    return code_rows(_pages("l.value", conn, annotator, field, only))


def _pages(
    column: str, conn: sqlite3.Connection, annotator: str, field: str, only: IntArray | None
) -> Iterator[list[tuple[int, str]]]:
    """Yield pages of (rowid of the unit, column) of one annotator's first labels."""
    given = f"l.annotator_id = ?1 AND l.field = ?2 AND l.layer = 'first' AND l.repeat = 0 AND {column} IS NOT NULL"
    if only is None:
        query = f"SELECT u.rowid, {column} FROM labels AS l JOIN units AS u USING (unit_id) WHERE {given}"
        cursor = conn.execute(query, [annotator, field])
        while page := cursor.fetchmany(CHUNK):
            yield page
        return
    # CROSS JOIN keeps this order: one lookup for each unit, and never a scan of all labels for each of them.
    query = (
        f"SELECT u.rowid, {column} FROM json_each(?3) AS s CROSS JOIN units AS u ON u.rowid = s.value "
        f"CROSS JOIN labels AS l ON l.unit_id = u.unit_id WHERE {given}"
    )
    for some in _json_pages(only):
        if page := conn.execute(query, [annotator, field, some]).fetchall():
            yield page


def _json_pages(rowids: IntArray) -> Iterator[str]:
    """Yield the rowids as JSON arrays, which a query reads with json_each."""
    for start in range(0, len(rowids), CHUNK):
        yield dumps(rowids[start : start + CHUNK].tolist())


def read_statuses(
    conn: sqlite3.Connection, run: str, units: IntArray, reason: str
) -> Iterator[tuple[int, str]]:
    """Yield (rowid, status of a run's latest attempt) for each of these units that the run has judged.

    If the stored reason of the attempt is `reason`, this word is yielded instead of the status.
    """
    # Repeats measure how stable a judge is, so only the first repeat counts.
    query = (
        "SELECT u.rowid, iif(j.reason = ?2, ?2, j.status) FROM json_each(?3) AS s CROSS JOIN units AS u ON u.rowid = s.value "
        "CROSS JOIN judgements AS j ON j.unit_id = u.unit_id WHERE j.run_id = ?1 AND j.repeat = 0 ORDER BY u.rowid, j.attempt"
    )
    for some in _json_pages(units):
        # Of several attempts, the last one replaces earlier ones.
        yield from dict(conn.execute(query, [run, reason, some]).fetchall()).items()


def code_rows(pages: Iterable[list[tuple[int, str]]]) -> LabelCodes:
    """Return pages of rows (rowid of a unit, label) as arrays, ordered by rowid. A unit has at most one row."""
    code_of = _Codes()
    # Arrays of a few bytes a row: a list of a million Python integers would need ten times the memory.
    rowids, given = array("q"), array("i")
    for page in pages:
        page_rowids, page_values = zip(*page, strict=True)
        rowids.extend(page_rowids)
        given.extend(map(code_of.__getitem__, page_values))
    codes = compact(np.frombuffer(given, np.intc) if given else np.empty(0, np.intc), len(code_of))
    del given
    unit_rowids = np.frombuffer(rowids, np.int64) if rowids else np.empty(0, np.int64)
    if (unit_rowids[1:] < unit_rowids[:-1]).any():
        # Each code becomes the last bits of its rowid, so that one array is sorted in place: an order of a million
        # rows and the reordered copies would take more memory than everything else.
        bits = len(code_of).bit_length()
        unit_rowids <<= bits
        unit_rowids |= codes
        unit_rowids.sort()
        codes = np.bitwise_and(unit_rowids, (1 << bits) - 1, out=np.empty_like(codes), casting="unsafe")
        unit_rowids >>= bits
    return LabelCodes(unit_rowids, codes, list(code_of))


def read_distributions(
    conn: sqlite3.Connection, annotator: str, field: str, domain: Sequence[str], only: IntArray | None
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield one annotator's stored label probabilities in pages: the rowids of units, and an array of units x labels.

    If `only` is given, only those of these units are read.
    """
    for page in _pages("l.distribution", conn, annotator, field, only):
        rowids, texts = zip(*page, strict=True)
        yield np.array(rowids, np.int64), masses.read_distributions(texts, domain)


def locate(rowids: IntArray, wanted: IntArray) -> tuple[IntArray, BoolArray]:
    """Return the position of each wanted unit in the ascending `rowids`, and a mask of those that are there."""
    if not len(rowids):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(rowids, wanted), len(rowids) - 1)
    return at, np.asarray(rowids[at] == wanted)


def rowids_of(conn: sqlite3.Connection, units: Collection[str]) -> IntArray:
    """Return the rowids of these units in ascending order."""
    query = "SELECT rowid FROM units WHERE unit_id IN (SELECT value FROM json_each(?)) ORDER BY rowid"
    return _integers(conn.execute(query, [dumps(sorted(units))]))


def rowids_of_questions(conn: sqlite3.Connection, questions: Collection[str]) -> IntArray:
    """Return the rowids of all units of these questions in ascending order."""
    query = "SELECT rowid FROM units WHERE question_id IN (SELECT value FROM json_each(?)) ORDER BY rowid"
    return _integers(conn.execute(query, [dumps(sorted(questions))]))


def read_judged_without_label(
    conn: sqlite3.Connection, run: str, field: str, only: IntArray | None = None
) -> IntArray:
    """Return the rowids of the units that a run has judged without a label for the field."""
    some = "" if only is None else "AND u.rowid IN (SELECT value FROM json_each(?)) "
    query = (
        f"SELECT DISTINCT u.rowid FROM judgements AS j JOIN units AS u USING (unit_id) WHERE j.run_id = ? AND j.repeat = 0 {some}"
        "AND NOT EXISTS (SELECT 1 FROM labels AS l WHERE l.annotator_id = j.run_id AND l.field = ? "
        "AND l.unit_id = j.unit_id AND l.layer = 'first' AND l.repeat = 0) ORDER BY u.rowid"
    )
    values = [run, *([] if only is None else [dumps(only.tolist())]), field]
    return _integers(conn.execute(query, values))


def read_other_versions(conn: sqlite3.Connection, person: str, field: str, version: str) -> IntArray:
    """Return the rowids of the units that a person labelled in batches, but in no batch of this version of the task."""
    query = (
        "SELECT u.rowid FROM labels AS l JOIN units AS u USING (unit_id) JOIN json_each(l.sources) AS s "
        "JOIN batches AS b ON s.value = 'batch:' || b.batch WHERE l.annotator_id = ? AND l.field = ? "
        "AND l.layer = 'first' AND l.repeat = 0 GROUP BY u.rowid HAVING NOT max(b.task = ?) ORDER BY u.rowid"
    )
    return _integers(conn.execute(query, [person, field, version]))


def read_questions(conn: sqlite3.Connection, rowids: IntArray) -> IntArray:
    """Return the number of each unit's question. Questions are numbered in the order of their ids.

    `rowids` are in ascending order.
    """
    where, values = "", []
    if len(rowids) <= CHUNK:
        where, values = "WHERE rowid IN (SELECT value FROM json_each(?))", [dumps(rowids.tolist())]
    numbers = np.empty(len(rowids), np.int64)
    cursor = conn.execute(f"SELECT rowid, question_id FROM units {where} ORDER BY question_id", values)
    number, last = -1, None
    while rows := cursor.fetchmany(CHUNK):
        at, there = locate(rowids, np.array([rowid for rowid, _ in rows], np.int64))
        questions = []
        for (_, question), used in zip(rows, there.tolist(), strict=True):
            # Units arrive by question, so only one id has to be remembered.
            if used and question != last:
                number, last = number + 1, question
            questions.append(number)
        numbers[at[there]] = np.array(questions, np.int64)[there]
    return numbers


def _integers(rows: Iterable[tuple[int]]) -> IntArray:
    return np.fromiter((number for (number,) in rows), dtype=np.int64)


@dataclass(frozen=True)
class StudyUnits:
    """Looks up the ids and the rowids of a study's units (see `judge.stats.ratings.UnitSource`)."""

    conn: sqlite3.Connection

    def read_ids(self, rowids: IntArray) -> list[str]:
        """Return the ids of these units, in this order."""
        return [unit for (unit,) in self.conn.execute(
            "SELECT u.unit_id FROM json_each(?) AS s JOIN units AS u ON u.rowid = s.value ORDER BY s.key", [dumps(rowids.tolist())]
        )]  # fmt: skip

    def find_rowids(self, ids: Sequence[str]) -> IntArray:
        """Return the rowids of these units, in this order. A unit that the study does not have gets the rowid 0."""
        query = "SELECT coalesce(u.rowid, 0) FROM json_each(?) AS s LEFT JOIN units AS u ON u.unit_id = s.value ORDER BY s.key"
        return _integers(self.conn.execute(query, [dumps(list(ids))]))


@dataclass(eq=False)
class AnnotatorColumn:
    """One annotator's labels in a table of several annotators.

    `requested` contains all units (ascending rowids) that the annotator labelled or was asked to label.
    """

    annotator: str
    labels: LabelCodes
    requested: IntArray
    n_seen: int = 0
    """The number of units that are left out because this derived judge was fitted on labels of their questions."""
    n_in_conflict: int = 0
    """The number of units for which different sources have different labels from this person. These units count
    as requested but unlabelled until a lead resolves the conflict.
    """

    def leave_out(self, units: IntArray) -> None:
        """Remove these units from the column, as if the annotator had never been asked to label them."""
        if len(units):
            self.labels = self.labels.select(~np.isin(self.labels.rowids, units))
            self.requested = np.setdiff1d(self.requested, units)


def read_judge(conn: sqlite3.Connection, run: str, field: str, only: IntArray | None) -> AnnotatorColumn:
    """Return a run's labels. The requested units are those that it has judged."""
    labels = read_labels(conn, run, field, only)
    failed = read_judged_without_label(conn, run, field, only)
    # Most runs have a label for every unit, and the two arrays then are one.
    requested = _merge(labels.rowids, failed)
    column = AnnotatorColumn(run, labels, requested)
    fitted = rowids_of(conn, read_seen_units(conn, run))
    column.n_seen = int(np.isin(requested, fitted).sum()) if len(fitted) else 0
    # A judge is never scored on questions that it was fitted on.
    column.leave_out(fitted)
    return column


def read_other(
    conn: sqlite3.Connection,
    annotator: str,
    field: str,
    kind: AnnotatorKind,
    batch: Members | None,
    version: str | None,
) -> AnnotatorColumn:
    """Return the labels of a person, the lead or gold. A batch restricts them to its units and its people.

    If a version of the task is given, a person's labels from batches of other versions are left out.
    """
    labels = read_labels(conn, annotator, field)
    # A label in conflict counts as unlabelled until a lead decides, but the person was asked, so it lowers the
    # coverage.
    unresolved = relation.read_conflicts(conn, annotator, field)
    if batch is not None:
        units = batch.units if kind is not AnnotatorKind.HUMAN or annotator in batch.people else frozenset()
        labels = labels.select(np.isin(labels.rowids, rowids_of(conn, units)))
        unresolved = unresolved.intersection(units)
    requested = _merge(labels.rowids, rowids_of(conn, unresolved))
    column = AnnotatorColumn(annotator, labels, requested, n_in_conflict=len(unresolved))
    if version is not None and kind is AnnotatorKind.HUMAN:
        column.leave_out(read_other_versions(conn, annotator, field, version))
    return column


def union(columns: Sequence[AnnotatorColumn]) -> IntArray:
    """Return the rowids of the units that the annotator of any of these columns labelled or was asked to label."""
    rowids = np.empty(0, np.int64)
    for column in sorted(columns, key=lambda column: -len(column.requested)):
        # People label a few of the units that judges label, and judges mostly label the same units.
        if not np.array_equal(column.requested, rowids):
            rowids = _merge(rowids, column.requested)
    return rowids


def _merge(rowids: IntArray, more: IntArray) -> IntArray:
    """Return the ascending union of two ascending arrays, which is `rowids` itself if there is nothing to add."""
    new = more[~locate(rowids, more)[1]] if len(rowids) else more
    if not len(new) or not len(rowids):
        return rowids if len(rowids) else more
    merged = np.concatenate([rowids, new])
    merged.sort()
    return merged


def tabulate(
    columns: Sequence[AnnotatorColumn], rowids: IntArray, domain: Sequence[str], numeric_field: str | None
) -> tuple[IntArray, BoolArray, list[Counter[str]]]:
    """Return the code of each label, whether each label was requested, and the labels outside the domain.

    The codes and the requests are arrays of units x columns. The labels outside the domain are counted for
    each column; they have no code and do not count as requested. `numeric_field` is the field's name if its labels are
    numbers, and None otherwise.
    """
    shape = (len(rowids), len(columns))
    codes = np.full(shape, MISSING, dtype=compact(np.empty(0, np.int64), len(domain)).dtype, order="F")
    requested = np.zeros(shape, dtype=np.bool_, order="F")
    outside: list[Counter[str]] = []
    for j, column in enumerate(columns):
        labels = column.labels
        requested[_places(rowids, column.requested), j] = True
        label_codes = labels.in_domain(domain, numeric_field)
        codes[_places(rowids, labels.rowids), j] = label_codes
        # No measure can use a label outside the domain, so the unit does not count as asked either.
        strange = label_codes == MISSING
        requested[np.searchsorted(rowids, labels.rowids[strange]), j] = False
        outside.append(Counter(labels.values[at] for at in labels.codes[strange].tolist()))
    return codes, requested, outside


def _places(rowids: IntArray, wanted: IntArray) -> IntArray | slice:
    """Return the row numbers of these units in a table of the units `rowids`."""
    return slice(None) if len(wanted) == len(rowids) else np.searchsorted(rowids, wanted)
