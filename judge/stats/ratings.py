"""The input table of the package: units x annotators, with integer codes over a declared domain."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judge.errors import BadInput

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MISSING = -1
_UNITS_AT_ONCE = 20_000


def compact(codes: NDArray[np.integer], n_values: int) -> IntArray:
    """Return the codes as the smallest type of integer that holds -1 and `n_values` values.

    Labels have few values, and a table may have millions of units. Whoever computes with codes, instead of comparing or
    counting them, converts them first: `Ratings.column` does.
    """
    kind = np.int8 if n_values <= 127 else np.int16 if n_values <= 2**15 - 1 else np.int64
    return codes.astype(kind, copy=False)


class UnitSource(Protocol):
    """Something that knows the ids of units, such as a study."""

    def read_ids(self, rowids: IntArray) -> list[str]:
        """Return the ids of these units, in this order."""

    def find_rowids(self, ids: Sequence[str]) -> IntArray:
        """Return the rowids of these units, in this order."""


@dataclass(frozen=True, eq=False)
class UnitIds(Sequence[str]):
    """The ids of a table's units, which are read when they are needed.

    A million ids take 70 MB, and a table of a study needs those of the rows that it prints.
    """

    rowids: IntArray
    source: UnitSource

    def __len__(self) -> int:
        return len(self.rowids)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self.rowids), _UNITS_AT_ONCE):
            yield from self.source.read_ids(self.rowids[start : start + _UNITS_AT_ONCE])

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return replace(self, rowids=self.rowids[at])
        return self.source.read_ids(self.rowids[[at]])[0]

    def select(self, mask: BoolArray) -> UnitIds:
        """Return the ids where the mask is true."""
        return replace(self, rowids=self.rowids[mask])


@dataclass(frozen=True, eq=False)
class Ratings:
    """A table of the labels that annotators gave to units.

    `codes[u, a]` is the position in `domain` of the label that annotator `a` gave to unit `u`, or -1. Its type is the
    smallest type of integer for this domain (see `compact`).
    `domain` is the task's declared list of labels, in order, including labels that nobody used. `clusters[u]`
    numbers the question that unit `u` belongs to; `clustered` is False if every unit is its own cluster.
    Build a table with `from_rows` or `from_codes`, which validate their input.

    `weights[u]` is the design weight of unit `u`, if units were drawn with unequal probabilities. Only the
    ratios of weights matter, and None means equal weights. The method `with_weights` adds weights.
    """

    codes: IntArray
    # Unused labels stay in the domain, because weights and chance corrections depend on them.
    domain: tuple[str, ...]
    annotators: tuple[str, ...]
    units: Sequence[str]
    clusters: IntArray
    clustered: bool
    weights: FloatArray | None = None

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[Any]], domain: Sequence[str]) -> Ratings:
        """Build the table from long rows `(unit, annotator, label)` or `(unit, annotator, label, cluster)`.
        For files see `judge.labels.tables`.

        A label of None means "requested, but not given" (an unparsed reply, a skipped unit): the unit counts
        towards the coverage. A cluster of None makes the unit its own cluster. Units and annotators are
        sorted.

        Raises BadInput with the row's number if two rows have the same unit and annotator, a label is outside
        the domain, or a unit is in two clusters. Also raises BadInput if the table is empty.
        """
        labels = _domain(domain)
        code_of: dict[Any, int] = {None: MISSING, **{label: code for code, label in enumerate(labels)}}
        seen: dict[tuple[str, str], int] = {}
        cluster_of: dict[str, str] = {}
        for number, (unit, annotator, label, *given) in enumerate(rows, 1):
            cluster = unit if not given or given[0] is None else given[0]
            if (unit, annotator) in seen:
                raise BadInput(f"row {number}: annotator '{annotator}' already has a label for unit '{unit}'")
            if label not in code_of:
                raise BadInput(f"row {number}: unknown label {label!r}; the labels are {', '.join(labels)}")
            if (known := cluster_of.setdefault(unit, cluster)) != cluster:
                raise BadInput(f"row {number}: unit '{unit}' is in cluster '{known}' and in '{cluster}'")
            seen[unit, annotator] = code_of[label]
        if not seen:
            raise BadInput("there are no rows")
        # Sorted, so that no result depends on the order of the rows.
        units, names = sorted(cluster_of), sorted({annotator for _, annotator in seen})
        row_of = {unit: i for i, unit in enumerate(units)}
        column_of = {name: i for i, name in enumerate(names)}
        codes = np.full((len(units), len(names)), MISSING, dtype=np.int64)
        for (unit, annotator), code in seen.items():
            codes[row_of[unit], column_of[annotator]] = code
        return cls._make(codes, labels, tuple(names), tuple(units), [cluster_of[u] for u in units])

    @classmethod
    def from_codes(
        cls,
        codes: ArrayLike,
        domain: Sequence[str],
        annotators: Sequence[str],
        *,
        clusters: ArrayLike | None = None,
        units: Sequence[str] | None = None,
    ) -> Ratings:
        """Build the table from an integer array, units x annotators, with -1 for missing labels.

        `clusters` has one value per unit.

        Raises BadInput for a wrong shape, a wrong dtype (bool, float, object) or a code outside the domain.
        """
        labels, names = _domain(domain), _annotators(annotators)
        array = np.asarray(codes)
        # Floats and objects may contain nan or None, which other packages count as a category of its own.
        if array.dtype.kind not in "iu":
            raise BadInput(f"codes must be integers (-1 for a missing label), but the type is {array.dtype}")
        # The number of names exposes a transposed table, which the `krippendorff` package would accept silently.
        if array.ndim != 2 or array.shape[1] != len(names):
            raise BadInput(
                f"codes must have the shape units x annotators; there are {len(names)} annotators, but the shape is {array.shape}"
            )
        bad = np.argwhere((array < MISSING) | (array >= len(labels)))
        if len(bad):
            u, a = bad[0]
            where = units[int(u)] if units is not None else f"row {int(u)}"
            raise BadInput(f"code {array[u, a]} of '{names[a]}' on {where} is outside 0..{len(labels) - 1}")
        ids: Sequence[str]
        if units is None:
            ids = tuple(str(i) for i in range(len(array)))
        else:
            ids = units if isinstance(units, UnitIds) else tuple(units)
        if len(ids) != len(array):
            raise BadInput(f"there are {len(ids)} unit ids for {len(array)} rows")
        groups = np.asarray(clusters) if clusters is not None else np.arange(len(array))
        if groups.shape != (len(array),):
            raise BadInput(
                f"clusters must have one value for each of {len(array)} units, but the shape is {groups.shape}"
            )
        return cls._make(array, labels, names, ids, groups)

    @classmethod
    def _make(
        cls,
        codes: IntArray,
        domain: tuple[str, ...],
        annotators: tuple[str, ...],
        units: Sequence[str],
        clusters: ArrayLike,
        weights: FloatArray | None = None,
    ) -> Ratings:
        n, numbered = number_clusters(np.asarray(clusters))
        # Columns are contiguous in memory, because all later code reads whole columns.
        codes = np.asfortranarray(compact(codes, len(domain)))
        return cls(codes, domain, annotators, units, numbered, n < len(codes), weights)

    def with_weights(self, weights: FloatArray) -> Ratings:
        """Return the table with a weight for each unit. Raises BadInput if the number of weights is wrong, or
        a weight is not above 0.
        """
        if weights.shape != (self.n_units,) or not (np.isfinite(weights) & (weights > 0)).all():
            raise BadInput(f"there must be one weight above 0 for each of the {self.n_units} units")
        return replace(self, weights=weights)

    @property
    def n_units(self) -> int:
        return len(self.codes)

    @cached_property
    def n_clusters(self) -> int:
        return int(self.clusters.max()) + 1 if len(self.clusters) else 0

    @cached_property
    def counts(self) -> IntArray:
        """The number of annotators who gave each label to each unit: units x labels."""
        table = np.zeros(
            (self.n_units, len(self.domain)), dtype=np.int8 if len(self.annotators) <= 127 else np.int64
        )
        for column in self.codes.T:
            rated = column >= 0
            table[rated, column[rated]] += 1
        return table

    def column(self, annotator: str, units: BoolArray | IntArray | None = None) -> IntArray:
        """Return the codes of one annotator, as int64, for all units or for those at a mask or at positions.

        Raises BadInput if the name is unknown.
        """
        codes = self.codes[:, self._place(annotator)]
        return (codes if units is None else codes[units]).astype(np.int64)

    def has_label(self, annotator: str) -> BoolArray:
        """Return a mask of the units that the annotator labelled. Raises BadInput if the name is unknown."""
        return np.asarray(self.codes[:, self._place(annotator)] != MISSING)

    def has_code(self, annotator: str, code: int) -> BoolArray:
        """Return a mask of the units to which the annotator gave the label with this code."""
        return np.asarray(self.codes[:, self._place(annotator)] == code)

    def _place(self, annotator: str) -> int:
        if annotator not in self.annotators:
            raise BadInput(f"no annotator '{annotator}'; available: {', '.join(self.annotators)}")
        return self.annotators.index(annotator)

    def select(self, annotators: Sequence[str]) -> Ratings:
        """Return the same units with only these annotators, in this order."""
        codes = np.empty((self.n_units, len(annotators)), dtype=self.codes.dtype, order="F")
        for j, name in enumerate(annotators):
            codes[:, j] = self.codes[:, self._place(name)]
        return replace(self, codes=codes, annotators=tuple(annotators))

    def subset(self, mask: BoolArray) -> Ratings:
        """Return the units where `mask` is true, with the same annotators and clusters."""
        if mask.all():
            return self
        units = self.units
        kept = units.select(mask) if isinstance(units, UnitIds) else tuple(compress(units, mask.tolist()))
        weights = None if self.weights is None else self.weights[mask]
        return Ratings._make(
            self.codes[mask], self.domain, self.annotators, kept, self.clusters[mask], weights
        )

    def with_annotator(self, name: str, codes: IntArray) -> Ratings:
        """Return the table with one more column, for example the majority vote."""
        if name in self.annotators:
            raise BadInput(f"the table already has an annotator '{name}'")
        wider = np.empty((self.n_units, len(self.annotators) + 1), dtype=self.codes.dtype, order="F")
        wider[:, :-1], wider[:, -1] = self.codes, codes
        return replace(self, codes=wider, annotators=(*self.annotators, name))

    def with_ids(self) -> Ratings:
        """Return the table with the ids of its units in memory, for a table that is used after its study is closed."""
        return replace(self, units=tuple(self.units))

    def ids(self, at: Sequence[int]) -> list[str]:
        """Return the ids of the units at these positions."""
        if isinstance(self.units, UnitIds):
            return self.units.source.read_ids(self.units.rowids[np.asarray(at, dtype=np.int64)])
        return [self.units[i] for i in at]

    def find(self, ids: Collection[str]) -> BoolArray:
        """Return a mask of the units with these ids."""
        return ~np.isnan(self.spread(dict.fromkeys(ids, 1.0)))

    def spread(self, values: Mapping[str, float]) -> FloatArray:
        """Return the value of each unit, or nan for a unit without a value. Values of other units are ignored."""
        if not isinstance(self.units, UnitIds):
            return np.array([values.get(unit, np.nan) for unit in self.units], dtype=np.float64)
        spread = np.full(self.n_units, np.nan)
        rowids = self.units.rowids
        wanted = self.units.source.find_rowids(list(values))
        at = np.searchsorted(rowids, wanted)
        there = at < len(rowids)
        there[there] = rowids[at[there]] == wanted[there]
        spread[at[there]] = np.array(list(values.values()), dtype=np.float64)[there]
        return spread

    def numbers(self, level: str) -> FloatArray:
        """Return the domain as numbers, for interval and ratio measures.

        Raises BadInput if a label is not a finite number, or is negative when the level is ratio.
        """
        numbers = np.empty(len(self.domain))
        for i, label in enumerate(self.domain):
            try:
                numbers[i] = float(label)
            except ValueError:
                raise BadInput(
                    f"level {level} needs numbers, but the label '{label}' is not a number"
                ) from None
        if not np.isfinite(numbers).all():
            raise BadInput(f"level {level} needs finite numbers")
        if len(set(numbers.tolist())) < len(numbers):
            raise BadInput(f"level {level}: two labels are the same number")
        if level == "ratio" and (numbers < 0).any():
            raise BadInput("the level ratio needs non-negative numbers")
        return numbers


def number_clusters(clusters: NDArray[Any]) -> tuple[int, IntArray]:
    """Return the number of distinct clusters, and each unit's cluster as a number from 0, in the order of the values."""
    # Sorting a million numbers takes more memory than all labels of a table, so small numbers are counted instead.
    if (
        clusters.dtype.kind in "iu"
        and len(clusters)
        and 0 <= clusters.min() <= clusters.max() < 2 * len(clusters)
    ):
        there = np.bincount(clusters) > 0
        n = int(there.sum())
        if n == len(there):
            return n, clusters.astype(np.int64, copy=False)
        return n, (np.cumsum(there) - 1)[clusters]
    distinct, numbered = np.unique(clusters, return_inverse=True)
    return len(distinct), numbered.astype(np.int64)


def effective_size(weights: FloatArray) -> float:
    """Kish's effective sample size (Kish 1965, Survey Sampling, section 11.7): (sum w)^2 / sum w^2."""
    return float(weights.sum() ** 2 / (weights**2).sum()) if len(weights) else 0.0


def _domain(domain: Sequence[str]) -> tuple[str, ...]:
    # A string is a sequence of letters, and each letter would silently become a label.
    if isinstance(domain, str) or not domain:
        raise BadInput("the domain must be a list of at least one label")
    for label in domain:
        if not isinstance(label, str):
            raise BadInput(f"the label {label!r} in the domain is not a string: quote it")
    if len(set(domain)) < len(domain):
        twice = next(label for i, label in enumerate(domain) if label in domain[:i])
        raise BadInput(f"the label '{twice}' is in the domain twice")
    return tuple(domain)


def _annotators(annotators: Sequence[str]) -> tuple[str, ...]:
    if len(set(annotators)) < len(annotators):
        twice = next(name for i, name in enumerate(annotators) if name in annotators[:i])
        raise BadInput(f"the annotator '{twice}' is named twice")
    return tuple(annotators)
