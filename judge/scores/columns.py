"""Read the plain tables from which measures are computed: columns, ids, labels and statuses. Errors name the
table and the invalid value.

A table is a DataFrame with one row per unit. These columns occur in many tables:
    unit_id      the unit; a duplicate is an error (choose one system, condition and repeat first)
    question_id  the cluster for intervals; if absent or None, the unit is its own cluster
    label        the label; None or nan: no label
    status       how the judgement ended (a Status value, "no answer", or "not judged"); if absent, it is ok
                 where there is a label, and not judged elsewhere
    answered     only in tables of answers: False for an empty or missing answer, which is a failure of the
                 system

Tables of parts (sentences, claims, citations) have a column such as answer_id, which names the whole that
contains each part.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from judge.errors import BadInput
from judge.scores.score import NO_ANSWER, NOT_JUDGED_CODE, STATUSES, StatusArray, Units
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.types import Status

_OK = STATUSES.index(Status.OK)
# A reply came, but no label could be read from it.
REPLIED = (Status.UNPARSED, Status.REFUSED, Status.TRUNCATED)


def column(table: pd.DataFrame, name: str, of: str) -> pd.Series:
    """Return a column. Raises BadInput if the table has no column of this name."""
    if name not in table.columns:
        there = ", ".join(map(str, table.columns))
        raise BadInput(f"the table of {of} has no column '{name}'; its columns are {there}")
    values: pd.Series = table[name]
    return values


def units(table: pd.DataFrame, of: str, unit: str = "unit_id") -> Units:
    """Return the units of a table, one per row. Raises BadInput if an id is missing or occurs twice."""
    ids = column(table, unit, of)
    if ids.isna().any():
        raise BadInput(f"a row of the table of {of} has no {unit}")
    again = ids.duplicated()
    if again.any():
        problem = f"the table of {of} has two rows for {unit} '{ids[again].iloc[0]}'"
        raise BadInput(f"{problem}: choose one system, condition and repeat first")
    return Units.build(ids, table["question_id"] if "question_id" in table.columns else None)


def encode_labels(
    labels: pd.Series, values: Mapping[Any, float], of: str, *, fold: bool = False, other: float | None = None
) -> FloatArray:
    """Return labels as numbers; nan for a missing label.

    With `fold`, the case of labels is ignored. `other` is the number for labels that `values` does not contain.
    Without `other`, such a label raises BadInput.
    """
    # Labels repeat, so each distinct label is looked up only once, not once per row.
    codes, distinct = pd.factorize(labels)
    numbers = np.full(len(distinct) + 1, np.nan)
    for i, label in enumerate(distinct):
        name = label.casefold() if fold and isinstance(label, str) else label
        if name not in values and other is None:
            raise BadInput(f"unknown label '{label}' for {of}; the labels are {', '.join(map(str, values))}")
        numbers[i] = values.get(name, np.nan if other is None else other)
    coded_values: FloatArray = numbers[codes]
    return coded_values


def flags(values: pd.Series, of: str) -> FloatArray:
    """Return flags (True / False / None, or 1 / 0 / nan) as 1 / 0 / nan."""
    return encode_labels(values, {True: 1.0, False: 0.0}, of)


def statuses(table: pd.DataFrame, known: BoolArray, name: str = "status") -> StatusArray:
    """Return each row's position in STATUSES; `known` is a mask of the rows with a label."""
    if name not in table.columns:
        return np.where(known, _OK, NOT_JUDGED_CODE).astype(np.int8)
    given = table[name]
    codes = encode_labels(given, {status: float(i) for i, status in enumerate(STATUSES)}, "status")
    status = np.where(np.isnan(codes), NOT_JUDGED_CODE, codes).astype(np.int8)
    # A judgement can have the status ok without a label of this field. This field was then not judged.
    return np.where(known, _OK, np.where(status == _OK, NOT_JUDGED_CODE, status)).astype(np.int8)


def mask_replied(status: StatusArray) -> BoolArray:
    """Return a mask of the rows for which the judge's reply has no usable label: unparsed, refused or truncated."""
    return np.isin(status, [STATUSES.index(s) for s in REPLIED])


def mask_unanswered(status: StatusArray) -> BoolArray:
    """Return a mask of the system's failures: no answer, or an unusable reply. A failed call does not count as
    a failure of the system.
    """
    return np.isin(status, [STATUSES.index(s) for s in (*REPLIED, NO_ANSWER)])


def empty(answers: pd.DataFrame) -> BoolArray:
    """Return a mask of the answers that the optional column `answered` marks as empty or missing."""
    if "answered" not in answers.columns:
        return np.zeros(len(answers), dtype=bool)
    return np.asarray(flags(answers["answered"], "answered") == 0, dtype=bool)


def positions(parts: pd.Series, whole: Units, of: str, wholes: str) -> IntArray:
    """Return, for each id in `parts`, the position in `whole` of the unit with this id.

    Raises BadInput if an id is unknown. The error names the tables `of` and `wholes`.
    """
    places = whole.ids.get_indexer(pd.Index(parts.to_numpy()))
    if (places < 0).any():
        raise BadInput(
            f"the table of {of} names '{parts.iloc[int((places < 0).argmax())]}', which is not in the {wholes}"
        )
    return places.astype(np.int64)


def counts(where: IntArray, n: int, of: BoolArray | None = None) -> FloatArray:
    """Return the number of parts in each of `n` wholes, i.e. larger units.

    `where` contains the position of each part's whole. If the mask `of` is given, only the parts that it
    marks are counted.
    """
    return np.bincount(where if of is None else where[of], minlength=n).astype(np.float64)


class Parts:
    """Parts of larger units, such as the sentences of answers.

    The larger units are called wholes. `of[p]` is the position of the whole that contains part p.
    """

    def __init__(self, table: pd.DataFrame, name: str, wholes: Units, of: str, key: str) -> None:
        """`key`: the column that names the whole. Raises BadInput if a whole is unknown or a part occurs twice."""
        self.wholes = wholes
        self.of = positions(column(table, key, name), wholes, name, of)
        # A part in two rows would count twice, so an answer could state more nuggets than there are.
        ids = units(table.drop(columns="question_id", errors="ignore"), name).ids
        self.units = wholes.parts_of(ids, self.of)
        """The parts as units, each clustered by the question of its whole."""

    def count(self, marked: BoolArray | None = None) -> FloatArray:
        """Return the number of parts in each whole. If a mask is given, only the parts that it selects are
        counted.
        """
        return counts(self.of, len(self.wholes), marked)

    def count_expected(self, wholes: pd.DataFrame, name: str) -> FloatArray:
        """Return the expected number of parts in each whole.

        This is the number in the optional column `name` of `wholes`. If the table has more parts of the
        whole, their number is returned instead.
        """
        rows = self.count()
        if name not in wholes.columns:
            return rows
        # Parts without a row were not judged. If only rows were counted, such a whole would seem complete.
        expected: FloatArray = np.fmax(rows, wholes[name].to_numpy(dtype=np.float64, na_value=np.nan))
        return expected

    def total(self, values: FloatArray) -> FloatArray:
        """Return the sum of the parts' values in each whole, or nan if any of these values is unknown."""
        sums = np.bincount(self.of, weights=values, minlength=len(self.wholes))
        return np.asarray(sums, dtype=np.float64)

    def status(self, status: StatusArray) -> StatusArray:
        """Return the status of each whole, derived from the statuses of its parts (see `combine_status`)."""
        return combine_status(status, self.of, len(self.wholes))


def combine_status(status: StatusArray, where: IntArray, n: int) -> StatusArray:
    """Return the status of each whole, which is ok if all its parts are ok.

    Otherwise it is the first status in STATUSES, other than ok, that one of its parts has.
    """
    result = np.zeros(n, dtype=np.int8)
    # From the last status to the first, so that the first in the order of STATUSES overwrites the others.
    for code in range(len(STATUSES) - 1, 0, -1):
        result[where[status == code]] = code
    return result


def to_sets(values: pd.Series, of: str) -> list[frozenset[Any] | None]:
    """Return lists of ids as sets. A missing list stays None. Raises BadInput if a value is a string instead of
    a list.
    """
    sets: list[frozenset[Any] | None] = []
    for value in values:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            sets.append(None)
        # A string is iterable, and its letters would become ids.
        elif isinstance(value, str) or not isinstance(value, Iterable):
            raise BadInput(f"{of} must be lists of ids; {value!r} is not a list")
        else:
            sets.append(frozenset(value))
    return sets
