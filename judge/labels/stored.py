"""Read annotators' labels as the study stores them, and combine several annotators in one table."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from judge.labels import masses, relation
from judge.labels.batches import Members
from judge.labels.values import canonical
from judge.stats import MISSING, BoolArray, FloatArray, IntArray
from judge.store import Store
from judge.store.derived import read_seen_units
from judge.types import AnnotatorKind

if TYPE_CHECKING:
    from judge.labels.scope import Scope


@dataclass(eq=False)
class StoredColumn:
    """One annotator's labels, as stored.

    Units are identified by their rowids in the study, in ascending order. The unit `labelled[i]` has the
    label `values[codes[i]]`. `requested` contains all units that the annotator was asked to label.
    """

    annotator: str
    # Rowids are used, not unit ids, because a million ids would be a million strings in memory for each column.
    labelled: IntArray
    codes: IntArray
    values: list[str]
    requested: IntArray
    n_seen: int = 0
    """The number of units that are left out because this derived judge was fitted on labels of their questions."""
    n_in_conflict: int = 0
    """The number of units for which different sources have different labels from this person. These units count
    as requested but unlabelled until a lead resolves the conflict.
    """

    def leave_out(self, units: IntArray) -> None:
        """Remove these units from the column, as if the annotator had never been asked to label them."""
        kept = ~np.isin(self.labelled, units)
        self.labelled, self.codes = self.labelled[kept], self.codes[kept]
        self.requested = np.setdiff1d(self.requested, units)

    @classmethod
    def from_study(
        cls, store: Store, annotator: str, scope: Scope, kind: AnnotatorKind, batch: Members | None
    ) -> StoredColumn:
        """Read one annotator's labels. For a judge, `requested` is every unit that it has judged."""
        conn = store.conn
        # A batch restricts people's labels only: human labels correct an estimate from all labels of a judge.
        labelled, codes, values = relation.codes(conn, annotator, scope.field)
        if kind is AnnotatorKind.JUDGE:
            requested = np.union1d(relation.read_judged_rows(conn, annotator), labelled)
            column = cls(annotator, labelled, codes, values, requested)
            fitted = relation.rows_of(conn, read_seen_units(conn, annotator))
            column.n_seen = int(np.isin(requested, fitted).sum())
            # A judge is never scored on questions that it was fitted on.
            column.leave_out(fitted)
            return column
        # A label in conflict counts as unlabelled until a lead decides, but the person was asked, so it lowers the
        # coverage.
        unresolved = relation.read_conflicts(conn, annotator, scope.field)
        if batch is not None:
            selected_units = (
                batch.units if kind is not AnnotatorKind.HUMAN or annotator in batch.people else frozenset()
            )
            selected = np.isin(labelled, relation.rows_of(conn, selected_units))
            labelled, codes = labelled[selected], codes[selected]
            unresolved = unresolved.intersection(selected_units)
        requested = np.union1d(relation.rows_of(conn, unresolved), labelled)
        column = cls(annotator, labelled, codes, values, requested, n_in_conflict=len(unresolved))
        if scope.version is not None and kind is AnnotatorKind.HUMAN:
            column.leave_out(relation.read_other_versions(conn, annotator, scope.field, scope.version))
        return column


@dataclass(frozen=True, eq=False)
class UnitRows:
    """The units of a table, in the order in which they were imported.

    `units` and `rowids` identify the units. `question` has the position of each unit's question in the sorted
    list `questions`.
    """

    units: list[str]
    rowids: IntArray
    question: IntArray
    questions: list[str]

    @classmethod
    def from_columns(cls, store: Store, columns: Sequence[StoredColumn]) -> UnitRows:
        """Return all units that the annotator of any of these columns labelled or was asked to label."""
        rowids = np.unique(np.concatenate([np.empty(0, np.int64), *(column.requested for column in columns)]))
        units: list[str] = []
        question_numbers = array("q")
        first: dict[str, int] = {}
        remaining = iter(rowids.tolist())
        next_rowid = next(remaining, None)
        for rowid, unit, question in store.conn.execute(
            "SELECT rowid, unit_id, question_id FROM units ORDER BY rowid"
        ):
            if rowid == next_rowid:
                units.append(unit)
                question_numbers.append(first.setdefault(question, len(first)))
                next_rowid = next(remaining, None)
        questions = sorted(first)
        number = np.empty(len(first), np.int64)
        number[[first[question] for question in questions]] = np.arange(len(first))
        return cls(units, rowids, number[np.array(question_numbers, np.int64)], questions)

    def places(self, rowids: IntArray) -> IntArray:
        """Return the row numbers of these units in the table."""
        return np.searchsorted(self.rowids, rowids)


def tabulate(
    columns: Sequence[StoredColumn], rows: UnitRows, domain: Sequence[str], name: str | None
) -> tuple[IntArray, BoolArray, list[Counter[str]]]:
    """Return the code of each label, whether each label was requested, and the labels outside the domain.

    The codes and the requests are arrays of units x columns. The labels outside the domain are counted for
    each column; they have no code and do not count as requested. `name` is the field's name if its labels are
    numbers, and None otherwise.
    """
    code_of = {label: code for code, label in enumerate(domain)}
    codes = np.full((len(rows.units), len(columns)), MISSING, dtype=np.int64)
    requested = np.zeros(codes.shape, dtype=np.bool_)
    outside: list[Counter[str]] = []
    for j, column in enumerate(columns):
        requested[rows.places(column.requested), j] = True
        code = np.array([code_of.get(canonical(v, name), MISSING) for v in column.values], dtype=np.int64)
        row_numbers, label_codes = rows.places(column.labelled), code[column.codes]
        codes[row_numbers, j] = label_codes
        # No measure can use a label outside the domain, so the unit does not count as asked either.
        requested[row_numbers[label_codes == MISSING], j] = False
        unknown_codes = column.codes[label_codes == MISSING].tolist()
        outside.append(Counter(column.values[at] for at in unknown_codes))
    return codes, requested, outside


def read_probabilities(
    store: Store, column: StoredColumn, scope: Scope, rows: UnitRows, domain: Sequence[str]
) -> FloatArray | None:
    """Return a column's stored distributions as an array of units x labels, or None if there are none.

    A unit without a distribution has a row of nan.
    """
    table = np.full((len(rows.units), len(domain)), np.nan)
    any_stored = False
    for rowids, texts in relation.distributions(store.conn, column.annotator, scope.field):
        kept = np.isin(rowids, column.labelled)
        if kept.any():
            any_stored = True
            table[rows.places(rowids[kept])] = masses.read_distributions(
                list(compress(texts, kept.tolist())), domain
            )
    return table if any_stored else None
