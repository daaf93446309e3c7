"""The input table of the package: units x annotators, with integer codes over a declared domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judge.errors import BadInput

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MISSING = -1


@dataclass(frozen=True, eq=False)
class Ratings:
    """A table of the labels that annotators gave to units.

    `codes[u, a]` is the position in `domain` of the label that annotator `a` gave to unit `u`, or -1.
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
    units: tuple[str, ...]
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
        checked = array.astype(np.int64)
        bad = np.argwhere((checked < MISSING) | (checked >= len(labels)))
        if len(bad):
            u, a = bad[0]
            where = units[int(u)] if units is not None else f"row {int(u)}"
            raise BadInput(f"code {checked[u, a]} of '{names[a]}' on {where} is outside 0..{len(labels) - 1}")
        ids = tuple(units) if units is not None else tuple(str(i) for i in range(len(array)))
        if len(ids) != len(array):
            raise BadInput(f"there are {len(ids)} unit ids for {len(array)} rows")
        groups = np.asarray(clusters) if clusters is not None else np.arange(len(array))
        if groups.shape != (len(array),):
            raise BadInput(
                f"clusters must have one value for each of {len(array)} units, but the shape is {groups.shape}"
            )
        return cls._make(checked, labels, names, ids, groups)

    @classmethod
    def _make(
        cls,
        codes: IntArray,
        domain: tuple[str, ...],
        annotators: tuple[str, ...],
        units: tuple[str, ...],
        clusters: ArrayLike,
        weights: FloatArray | None = None,
    ) -> Ratings:
        distinct, numbered = np.unique(np.asarray(clusters), return_inverse=True)
        # Columns are contiguous in memory, because all later code reads whole columns.
        codes = np.asfortranarray(codes)
        clustered = len(distinct) < len(codes)
        return cls(codes, domain, annotators, units, numbered.astype(np.int64), clustered, weights)

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
        table = np.zeros((self.n_units, len(self.domain)), dtype=np.int64)
        for column in self.codes.T:
            rated = column >= 0
            table[rated, column[rated]] += 1
        return table

    def column(self, annotator: str) -> IntArray:
        """Return the codes of one annotator. Raises BadInput if the name is unknown."""
        if annotator not in self.annotators:
            raise BadInput(f"no annotator '{annotator}'; available: {', '.join(self.annotators)}")
        return self.codes[:, self.annotators.index(annotator)]

    def select(self, annotators: Sequence[str]) -> Ratings:
        """Return the same units with only these annotators, in this order."""
        codes = np.empty((self.n_units, len(annotators)), dtype=np.int64, order="F")
        for j, name in enumerate(annotators):
            codes[:, j] = self.column(name)
        return replace(self, codes=codes, annotators=tuple(annotators))

    def subset(self, mask: BoolArray) -> Ratings:
        """Return the units where `mask` is true, with the same annotators and clusters."""
        if mask.all():
            return self
        kept = tuple(compress(self.units, mask.tolist()))
        weights = None if self.weights is None else self.weights[mask]
        return Ratings._make(
            self.codes[mask], self.domain, self.annotators, kept, self.clusters[mask], weights
        )

    def with_annotator(self, name: str, codes: IntArray) -> Ratings:
        """Return the table with one more column, for example the majority vote."""
        if name in self.annotators:
            raise BadInput(f"the table already has an annotator '{name}'")
        made = Ratings.from_codes(
            np.column_stack([self.codes, codes]),
            self.domain,
            (*self.annotators, name),
            clusters=self.clusters,
            units=self.units,
        )
        return replace(made, weights=self.weights)

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
