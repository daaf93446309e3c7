"""The one table of the package: units x annotators, integer codes over a declared domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    """Who gave which label to which unit.

    `codes[u, a]` is the position in `domain` of the label that annotator `a` gave to unit `u`, or -1.
    `domain` is the task's declared list of labels, in order; labels that nobody used stay in it,
    because weights and chance corrections depend on them. `clusters[u]` numbers the question that
    unit `u` belongs to; `clustered` is False when every unit stands for itself.
    Build it with `from_rows` or `from_codes`, which check everything.
    """

    codes: IntArray
    domain: tuple[str, ...]
    annotators: tuple[str, ...]
    units: tuple[str, ...]
    clusters: IntArray
    clustered: bool

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Sequence[Any]],
        domain: Sequence[str],
        *,
        annotators: Sequence[str] | None = None,
        path: str = "",
        first_line: int = 1,
    ) -> Ratings:
        """Read long rows `(unit, annotator, label)` or `(unit, annotator, label, cluster)`.

        A label of None says "asked, but no label" (an unparsed reply, a skipped unit): the unit counts
        in the coverage. A cluster of None makes the unit its own cluster. Units and annotators are
        sorted (annotators as given in `annotators`, if given), so that no result depends on the
        order of the rows.

        Raises BadInput with the row's line (`first_line` is the line of the first row) for: two rows for
        one unit and annotator, a label outside the domain or not a string, a unit in two clusters, an
        empty id, an annotator outside `annotators`; and for an empty table.
        """
        labels = _domain(domain)
        code_of = {label: code for code, label in enumerate(labels)}
        known = set(_annotators(annotators)) if annotators is not None else None
        seen: dict[tuple[str, str], int] = {}
        line_of: dict[tuple[str, str], int] = {}
        cluster_of: dict[str, str] = {}
        line = first_line - 1
        for line, row in enumerate(rows, first_line):
            if len(row) not in (3, 4):
                reason = f"a row is (unit, annotator, label[, cluster]); this one has {len(row)} values"
                raise BadInput(reason, path=path, line=line)
            unit = _identifier(row[0], "unit", path, line)
            annotator = _identifier(row[1], "annotator", path, line)
            if known is not None and annotator not in known:
                raise BadInput(f"unknown annotator '{annotator}'", path=path, line=line, field="annotator")
            key = (unit, annotator)
            if key in seen:
                raise BadInput(
                    f"a second label by '{annotator}' on unit '{unit}' (the first is on line {line_of[key]})",
                    path=path,
                    line=line,
                    field="label",
                )
            seen[key] = _code(row[2], code_of, path, line)
            line_of[key] = line
            cluster = unit
            if len(row) == 4 and row[3] is not None:
                cluster = _identifier(row[3], "cluster", path, line)
            if cluster_of.setdefault(unit, cluster) != cluster:
                raise BadInput(
                    f"unit '{unit}' is in cluster '{cluster_of[unit]}' and in cluster '{cluster}'",
                    path=path,
                    line=line,
                    field="cluster",
                )
        if not seen:
            raise BadInput("there are no rows", path=path)
        units = sorted(cluster_of)
        names = list(annotators) if annotators is not None else sorted({a for _, a in seen})
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
        """Take an integer array, units x annotators, with -1 for missing.

        `clusters` has one value per unit. The annotators must be named: that is what catches a
        transposed table.

        Raises BadInput for another shape, dtype (bool, float, object) or a code outside the domain.
        """
        labels, names = _domain(domain), _annotators(annotators)
        array = np.asarray(codes)
        if array.dtype.kind not in "iu":
            raise BadInput(f"codes must be integers with -1 for missing, not {array.dtype}")
        if array.ndim != 2 or array.shape[1] != len(names):
            raise BadInput(
                f"codes must be units x annotators: {len(names)} annotators, but the shape is {array.shape}"
            )
        checked = array.astype(np.int64)
        bad = np.argwhere((checked < MISSING) | (checked >= len(labels)))
        if len(bad):
            u, a = bad[0]
            where = units[int(u)] if units is not None else f"row {int(u)}"
            raise BadInput(f"code {checked[u, a]} of '{names[a]}' on {where} is outside 0..{len(labels) - 1}")
        ids = tuple(units) if units is not None else tuple(str(i) for i in range(len(array)))
        if len(ids) != len(array):
            raise BadInput(f"{len(ids)} unit ids for {len(array)} rows")
        groups = np.asarray(clusters) if clusters is not None else np.arange(len(array))
        if groups.shape != (len(array),):
            raise BadInput(f"clusters must have one value for each of {len(array)} units, not {groups.shape}")
        return cls._make(checked, labels, names, ids, groups)

    @classmethod
    def _make(
        cls,
        codes: IntArray,
        domain: tuple[str, ...],
        annotators: tuple[str, ...],
        units: tuple[str, ...],
        clusters: ArrayLike,
    ) -> Ratings:
        distinct, numbered = np.unique(np.asarray(clusters), return_inverse=True)
        codes = np.asfortranarray(codes)  # everything below walks down columns
        return cls(codes, domain, annotators, units, numbered.astype(np.int64), len(distinct) < len(codes))

    @property
    def n_units(self) -> int:
        return len(self.codes)

    @cached_property
    def n_clusters(self) -> int:
        return int(self.clusters.max()) + 1 if len(self.clusters) else 0

    @cached_property
    def counts(self) -> IntArray:
        """How many annotators gave each label to each unit: units x labels."""
        table = np.zeros((self.n_units, len(self.domain)), dtype=np.int64)
        for column in self.codes.T:
            rated = column >= 0
            table[rated, column[rated]] += 1
        return table

    def column(self, annotator: str) -> IntArray:
        """The codes of one annotator. Raises BadInput when there is none of that name."""
        if annotator not in self.annotators:
            raise BadInput(f"no annotator '{annotator}'; there are {', '.join(self.annotators)}")
        return self.codes[:, self.annotators.index(annotator)]

    def select(self, annotators: Sequence[str]) -> Ratings:
        """The same units with these annotators only, in this order."""
        codes = np.empty((self.n_units, len(annotators)), dtype=np.int64, order="F")
        for j, name in enumerate(annotators):
            codes[:, j] = self.column(name)
        return Ratings(codes, self.domain, tuple(annotators), self.units, self.clusters, self.clustered)

    def subset(self, mask: BoolArray) -> Ratings:
        """The units where `mask` is true, with the same annotators and clusters."""
        if mask.all():
            return self
        kept = tuple(compress(self.units, mask.tolist()))
        return Ratings._make(self.codes[mask], self.domain, self.annotators, kept, self.clusters[mask])

    def with_annotator(self, name: str, codes: IntArray) -> Ratings:
        """One more column, for example the majority vote."""
        if name in self.annotators:
            raise BadInput(f"there is an annotator '{name}' already")
        return Ratings.from_codes(
            np.column_stack([self.codes, codes]),
            self.domain,
            (*self.annotators, name),
            clusters=self.clusters,
            units=self.units,
        )

    def numbers(self, level: str) -> FloatArray:
        """The domain as numbers, for interval and ratio measures.

        Raises BadInput when a label is not a finite number, or is negative on a ratio level.
        """
        numbers = np.empty(len(self.domain))
        for i, label in enumerate(self.domain):
            try:
                numbers[i] = float(label)
            except ValueError:
                raise BadInput(f"level {level} needs numbers; the label '{label}' is not one") from None
        if not np.isfinite(numbers).all():
            raise BadInput(f"level {level} needs finite numbers")
        if len(set(numbers.tolist())) < len(numbers):
            raise BadInput(f"level {level}: two labels stand for the same number")
        if level == "ratio" and (numbers < 0).any():
            raise BadInput("level ratio needs numbers that are not negative")
        return numbers


def _domain(domain: Sequence[str]) -> tuple[str, ...]:
    if isinstance(domain, str) or not domain:
        raise BadInput("the domain is a list of at least one label")
    for label in domain:
        if not isinstance(label, str):
            raise BadInput(f"the label {label!r} in the domain is {_kind(label)}, not a string: quote it")
    if len(set(domain)) < len(domain):
        twice = next(label for i, label in enumerate(domain) if label in domain[:i])
        raise BadInput(f"the label '{twice}' is in the domain twice")
    return tuple(domain)


def _annotators(annotators: Sequence[str]) -> tuple[str, ...]:
    if len(set(annotators)) < len(annotators):
        twice = next(name for i, name in enumerate(annotators) if name in annotators[:i])
        raise BadInput(f"the annotator '{twice}' is named twice")
    return tuple(annotators)


def _identifier(value: Any, field: str, path: str, line: int) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{value!r} is {_kind(value)}, not a string", path=path, line=line, field=field)
    if not value:
        raise BadInput("is empty", path=path, line=line, field=field)
    return value


def _kind(value: Any) -> str:
    if value is None:
        return "missing"
    return {bool: "a boolean", int: "a number", float: "a number"}.get(type(value), type(value).__name__)


def _code(label: Any, code_of: dict[str, int], path: str, line: int) -> int:
    if label is None:
        return MISSING
    if not isinstance(label, str):
        reason = f"the label {label!r} is {_kind(label)}, not a string: quote it"
        raise BadInput(reason, path=path, line=line, field="label")
    if label not in code_of:
        reason = f"unknown label '{label}'; the labels are {', '.join(code_of)}"
        raise BadInput(reason, path=path, line=line, field="label")
    return code_of[label]
