"""A measure before its interval is computed: the units' values, clustered by question, and a function of the
sums of these values.

All measures in this package are functions of sums over units: a share, a micro-averaged F1, a drop from another
setting. One class therefore represents them all. `measure_score` adds the interval (questions are resampled),
`restrict` selects a stratum, and `judge.scores.compare` pairs two runs on the same units. The intervals do not
depend on the order of the rows or on the names of units and questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judge.errors import BadInput
from judge.notes import Note
from judge.stats.bootstrap import IntervalOptions, IntervalSettings, resample
from judge.stats.coefficients import ratio
from judge.stats.estimate import Estimate, about
from judge.stats.patterns import Tally, collapse
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.types import Measure, Status

Column = pd.Series | np.ndarray[Any, Any] | Sequence[Any]


@dataclass(frozen=True, eq=False)
class Units:
    """Units clustered by question: `clusters[u]` is the position in `questions` of the question that unit u belongs to.

    `parts` contains the names of the units. It has several lists if several kinds of units are concatenated.
    """

    parts: tuple[pd.Index[Any], ...]
    clusters: IntArray
    questions: pd.Index[Any]

    @classmethod
    def build(cls, ids: Column, questions: Column | None = None) -> Units:
        """Build units from rows, one per unit. A unit without a question forms its own cluster."""
        names = pd.Series(ids)
        if questions is None:
            index = pd.Index(names.to_numpy())
            return cls((index,), np.arange(len(index), dtype=np.int64), index)
        groups = pd.Series(questions)
        if len(groups) != len(names):
            raise BadInput(f"there are {len(names)} units, but {len(groups)} questions")
        missing = groups.isna().to_numpy()
        if missing.any():
            # A unit without a question is a separate cluster. If such units shared a cluster, they would count as one
            # question.
            groups = pd.Series(np.where(missing, names.astype(object), groups.astype(object)))
        codes, distinct = pd.factorize(groups.to_numpy())
        return cls((pd.Index(names.to_numpy()),), codes.astype(np.int64), pd.Index(distinct))

    def __len__(self) -> int:
        return len(self.clusters)

    @cached_property
    def ids(self) -> pd.Index[Any]:
        """The names of the units. If there are several lists, each name is a tuple (number of the list, name
        in the list).
        """
        if len(self.parts) == 1:
            return self.parts[0]
        number = np.repeat(np.arange(len(self.parts)), [len(part) for part in self.parts])
        return pd.MultiIndex.from_arrays([number, np.concatenate([part.to_numpy() for part in self.parts])])

    def take(self, which: BoolArray) -> Units:
        """Return the units that a mask selects."""
        ends = np.cumsum([len(part) for part in self.parts])[:-1]
        kept = zip(self.parts, np.split(which, ends), strict=True)
        return Units(tuple(part[mask] for part, mask in kept), self.clusters[which], self.questions)

    def parts_of(self, ids: pd.Index[Any], whole: IntArray) -> Units:
        """Return Units for the parts of these units, such as the sentences of answers. Each part keeps the
        question of its unit.

        `whole[p]` is the position of the unit that part p belongs to.
        """
        return Units((ids,), self.clusters[whole], self.questions)


Value = Callable[[FloatArray], FloatArray]
StatusArray = NDArray[np.int8]

SHARE = (0.0, 1.0)
"""The bounds of a value that is a share."""

NOT_JUDGED = "not judged"
TIED = "tied"
NO_ANSWER = "no answer"
# The order matters: a whole has the first reason among those of its parts (`columns.combine_status`).
STATUSES: tuple[str, ...] = (*(s.value for s in Status), TIED, NO_ANSWER, NOT_JUDGED)
"""Reasons why a unit has no label: the status of its judgement, a tie between several judges, no answer by the system under
test, or no judgement at all."""

NOT_JUDGED_CODE = np.int8(STATUSES.index(NOT_JUDGED))
NO_ANSWER_CODE = np.int8(STATUSES.index(NO_ANSWER))
_OK = STATUSES.index(Status.OK)
# Collapsing more distinct rows than this does not pay, because drawing counts is slower than drawing units.
_MOST_DISTINCT = 1 / 30


@dataclass(frozen=True, slots=True)
class Quotient:
    """The sum of one column over the sum of another. The last column counts units, so -1 makes a mean."""

    over: int
    under: int = -1

    def __call__(self, sums: FloatArray) -> FloatArray:
        """Return the quotients of these sums."""
        return ratio(sums[:, self.over], sums[:, self.under])


def share(column: int) -> Quotient:
    """Return a function for the mean of one column."""
    return Quotient(column)


def quotient(over: int, under: int) -> Quotient:
    """Return a function for the sum of one column over the sum of another: a micro average."""
    return Quotient(over, under)


def harmonic(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return 2ab / (a + b): 0 if both are 0, nan if either is nan."""
    total = first + second
    result: FloatArray = np.where(total == 0, 0.0, ratio(2 * first * second, total))
    return result


mean = Quotient(0)
"""The mean of the first column."""


@dataclass(frozen=True, eq=False)
class Score:
    """A measure on units. `rows[u]` contains the values of unit u; if any of them is nan, the unit has no
    value.

    `value` maps sums `[B, p + 1]` to values `[B]`, which are nan if undefined. The last column of the sums
    counts units. `status[u]` is a position in STATUSES; `why` is the reason why a unit has no value although
    it was judged. `binary` is True if the measure is a mean of zeros and ones. `bounds` has the least and the
    greatest possible value of a unit, if its value is bounded. `undefined` is the reason to give if units
    have values but the measure still has none. `counted` marks the units that n_units and coverage refer to
    (default: all).
    """

    measure: str
    units: Units
    rows: FloatArray
    value: Value = mean
    status: StatusArray | None = None
    why: str = "undefined"
    binary: bool = False
    undefined: str = "the denominator is zero"
    notes: tuple[str, ...] = ()
    counted: BoolArray | None = None
    bounds: tuple[float, float] | None = None

    @property
    def used(self) -> BoolArray:
        """The units that have a value."""
        known: BoolArray = np.isfinite(self.rows.sum(axis=1))
        return known

    @property
    def span(self) -> float | None:
        """The largest possible difference between two values of this measure, or None if there is no bound."""
        if self.binary:
            return 1.0
        return self.bounds[1] - self.bounds[0] if self.bounds is not None and self.value is mean else None

    @property
    def reasons(self) -> list[str | None]:
        """For each unit, why it has no value, or None if it has one."""
        codes = np.full(len(self.rows), _OK) if self.status is None else self.status
        return [
            None if used else self.why if code == _OK else STATUSES[code]
            for used, code in zip(self.used.tolist(), codes.tolist(), strict=True)
        ]

    @property
    def missing(self) -> dict[str, int]:
        """The number of units without a value, by reason: unparsed, refused, truncated, failed, not judged, `why`."""
        return self._missing(self.used)

    def _missing(self, used: BoolArray) -> dict[str, int]:
        lost: BoolArray = ~used if self.counted is None else ~used & self.counted
        if not lost.any():
            return {}
        if self.status is None:
            return {self.why: int(lost.sum())}
        counts = np.bincount(self.status[lost], minlength=len(STATUSES)).tolist()
        names = [self.why if i == _OK else name for i, name in enumerate(STATUSES)]
        return {name: n for name, n in zip(names, counts, strict=True) if n}

    def restrict(self, mask: BoolArray, measure: str | None = None) -> Score:
        """Return the same measure on the units that the mask selects."""
        return replace(
            self,
            measure=measure or self.measure,
            units=self.units.take(mask),
            rows=self.rows[mask],
            status=None if self.status is None else self.status[mask],
            counted=None if self.counted is None else self.counted[mask],
        )

    def rename(self, measure: str) -> Score:
        """Return the score under another name."""
        return replace(self, measure=measure)

    def drop_values(self, reason: str) -> Score:
        """Return the same measure with no value for any unit, and with this reason."""
        rows = np.full_like(self.rows, np.nan)
        return replace(self, rows=rows, status=None, counted=None, why=reason)

    def add_notes(self, *notes: str) -> Score:
        """Return the score with additional notes."""
        return replace(self, notes=self.notes + notes)

    def measure_score(
        self,
        *,
        annotators: tuple[str, ...] | None = None,
        field: str | None = None,
        drawn: Resampled | None = None,
        **options: Unpack[IntervalOptions],
    ) -> Measure:
        """Return the Measure: value, interval over questions, n_units, n_clusters, coverage, notes, reason.

        `options` contains the interval settings: interval, confidence, replicates, seed. For many scores, use
        `measure_all`.
        """
        settings = IntervalSettings(**options)
        used = self.used
        counted = used if self.counted is None else used & self.counted
        n_units = int(counted.sum())
        n_asked = len(used) if self.counted is None else int(self.counted.sum())
        missing = self._missing(used)
        lost = ", ".join(f"{n} {name}" for name, n in missing.items())
        notes = self.notes + ((Note("no_value", requested=n_asked, missing=missing),) if lost else ())
        drawn = drawn or Resampled.build(self, settings)
        n_clusters = drawn.tally.n_clusters

        def reason() -> str:
            if not n_asked:
                return "there are no units"
            return self.undefined if n_units else f"none of the {n_asked} units has a value: {lost}"

        estimate = Estimate(
            about=about(self.measure, n_units, n_asked, n_clusters, annotators, field),
            tally=drawn.tally,
            value=self.value,
            undefined=reason,
            clustered=n_clusters < int(used.sum()),
            # The exact bound counts questions, because units of one question are not independent.
            trials=n_clusters if self.binary else None,
            notes=notes,
        ).measure(settings, drawn.sums)
        return estimate if estimate.value is not None else replace(estimate, notes=notes)


@dataclass(frozen=True, eq=False)
class Resampled:
    """The sums for each question, and their resamples. Scores that differ only in `value` share them."""

    tally: Tally
    sums: FloatArray | None

    @classmethod
    def build(cls, score: Score, settings: IntervalSettings) -> Resampled:
        """Compute the sums for each question, and draw their resamples."""
        used = score.used
        tally = _tally(score.rows[used], score.units.clusters[used])
        wanted = settings.interval is not None and tally.n_clusters > 1
        return cls(tally, resample([tally], settings)[0] if wanted else None)


def measure_all(
    scores: Sequence[Score],
    *,
    annotators: tuple[str, ...] | None = None,
    field: str | None = None,
    **options: Unpack[IntervalOptions],
) -> list[Measure]:
    """Return the result of `measure_score` for each score. Scores that are functions of the same sums share
    their resamples.
    """
    settings = IntervalSettings(**options)
    # Resamples are dropped after the last score that uses them, so that few of them are in memory at once.
    last: dict[tuple[int, int], int] = {_key(score): i for i, score in enumerate(scores)}
    drawn: dict[tuple[int, int], Resampled] = {}
    measures = []
    for i, score in enumerate(scores):
        key = _key(score)
        if key not in drawn:
            drawn[key] = Resampled.build(score, settings)
        measures.append(score.measure_score(annotators=annotators, field=field, drawn=drawn[key], **options))
        if last[key] == i:
            del drawn[key]
    return measures


def _key(score: Score) -> tuple[int, int]:
    # By identity, because scores with the same arrays have the same sums.
    return id(score.rows), id(score.units)


def score_values(
    measure: str,
    units: Units,
    values: FloatArray,
    status: StatusArray | None = None,
    *,
    reason: str = "undefined",
    notes: tuple[str, ...] = (),
    bounds: tuple[float, float] | None = None,
) -> Score:
    """Return a score that is the mean of one value per unit. A unit whose value is nan has no value."""
    known = values[~np.isnan(values)]
    # The exact binomial bound for equal resamples is valid only for 0/1 values.
    binary = bool(((known == 0) | (known == 1)).all())
    return Score(measure, units, values[:, None], mean, status, reason, binary, notes=notes, bounds=bounds)


def split_by_stratum(scores: Iterable[Score], strata: Mapping[Any, Any]) -> dict[str, list[Score]]:
    """Return each score in each stratum. A unit is in the stratum of its question.

    `strata` (a dict or a Series) maps questions to strata. Units of questions that are absent or map to None
    are in the stratum "(none)", so every unit is in a stratum. The result is sorted by name.
    """
    of = pd.Series(strata, dtype=object)
    if not of.index.is_unique:
        raise BadInput(f"question '{of.index[of.index.duplicated()][0]}' is in two strata")
    result: dict[str, list[Score]] = {}
    for score in scores:
        named = of.reindex(score.units.questions)
        stratum_of = named.where(named.notna(), "(none)").astype(str).to_numpy()[score.units.clusters]
        for name in pd.unique(stratum_of):
            result.setdefault(str(name), []).append(score.restrict(stratum_of == name))
    return dict(sorted(result.items(), key=lambda pair: (pair[0] == "(none)", pair[0])))


def _tally(rows: FloatArray, clusters: IntArray) -> Tally:
    """Return the sums for each cluster, with a column that counts units. The order of the rows depends only
    on their values.
    """
    size = np.bincount(clusters)
    there = np.flatnonzero(size)
    columns = [np.bincount(clusters, weights=column)[there] for column in rows.T]
    sums = np.column_stack([*columns, size[there]]).astype(np.float64)
    if not len(sums):
        return Tally(np.empty((0, rows.shape[1] + 1)), np.ones(0, dtype=np.int64), b"")
    # Numbers are replaced by their ranks, so that code for integers can collapse any numbers, in the same order.
    ranks = np.column_stack([pd.factorize(column, sort=True)[0] for column in sums.T]).astype(np.int64)
    patterns = collapse(ranks)
    if len(patterns.rows) < _MOST_DISTINCT * len(sums):
        first = np.empty(len(patterns.rows), dtype=np.int64)
        first[patterns.of_unit] = np.arange(len(sums))
        return Tally(sums[first], patterns.count, b"")
    # Sorted by their values, so that neither the order of rows nor a question's name changes a resample.
    order = np.argsort(patterns.of_unit, kind="stable")
    return Tally(sums[order], np.ones(len(sums), dtype=np.int64), b"")
