"""Combine two scores, either on the same units (such as the difference between two judges) or on different
units (such as a drop).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from judge.errors import BadInput
from judge.scores.score import Score, Units, measure_all
from judge.stats.bootstrap import NO_WIDTH, IntervalOptions
from judge.stats.coefficients import ratio
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.types import Measure

Both = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Difference:
    """The difference in a measure between two runs (`second` - `first`), on the units that have a value in both runs.

    `p` is the two-sided p value of the paired test clustered by question, or None if there is only an interval.
    """

    first: Measure
    second: Measure
    difference: Measure
    p: float | None = None


def compare_all(
    first: Sequence[Score], second: Sequence[Score], **options: Unpack[IntervalOptions]
) -> list[Difference]:
    """Return the paired difference in each measure between two runs, with an interval clustered by question.

    The result maps names to differences, in the order of `first`; a measure that only one run has gets a reason
    instead of a value. The scores can be of any kind. Units are matched by id, and both runs use the same
    resamples. `coverage` is the share of the units in both runs that have a value in both. A note counts the
    units that are in only one run.
    """
    mine, theirs = _by_name(first), _by_name(second)
    shared = iter(
        _differences([(score, theirs[name]) for name, score in mine.items() if name in theirs], **options)
    )
    differences = [
        next(shared) if name in theirs else _make_single(score, "first", **options)
        for name, score in mine.items()
    ]
    return differences + [
        _make_single(score, "second", **options) for name, score in theirs.items() if name not in mine
    ]


def score_pair(measure: str, first: Score, second: Score, value: Both) -> Score:
    """Return `value(first, second)`, a function of two measures, computed on the units that have both values."""
    return _Pairing(first, second).score(measure, first, second, value)


def divide_by(measure: str, score: Score, baseline: Score) -> Score:
    """Return the ratio of a score to a baseline, on the units with both values."""
    return replace(score_pair(measure, score, baseline, ratio), undefined="the baseline is zero or undefined")


def combine_scores(measure: str, parts: Sequence[Score], value: Callable[..., FloatArray]) -> Score:
    """Return a function of several measures, which may be computed on different units of the same questions.

    `value` receives one array for each part. Questions are resampled jointly for all parts, which preserves the
    correlations between the parts. n_units and coverage are taken from the first part.
    """
    names = parts[0].units.questions
    for part in parts[1:]:
        if part.units.questions is not names:
            names = names.append(part.units.questions).unique()
    widths = [part.rows.shape[1] + 1 for part in parts]
    starts = np.cumsum([0, *widths])
    sizes = [len(part.units) for part in parts]
    # Parts are stacked, each in separate columns, so the sums of the whole array are the sums of every part.
    rows = np.zeros((sum(sizes), int(starts[-1])))
    clusters, at = np.empty(sum(sizes), dtype=np.int64), 0
    for part, start, width, size in zip(parts, starts, widths, sizes, strict=False):
        here = slice(at, at + size)
        rows[here, start : start + width - 1] = part.rows
        rows[here, start + width - 1] = 1
        part_units = part.units
        same = part_units.questions is names
        clusters[here] = (
            part_units.clusters if same else names.get_indexer(part_units.questions)[part_units.clusters]
        )
        at += size
    counted = np.zeros(sum(sizes), dtype=bool)
    counted[: sizes[0]] = True if parts[0].counted is None else parts[0].counted
    status = [
        np.zeros(size, dtype=np.int8) if part.status is None else part.status
        for part, size in zip(parts, sizes, strict=True)
    ]

    def of(sums: FloatArray) -> FloatArray:
        each = zip(parts, starts, widths, strict=False)
        return value(*(part.value(sums[:, start : start + width]) for part, start, width in each))

    return Score(
        measure,
        Units(tuple(ids for part in parts for ids in part.units.parts), clusters, names),
        rows,
        of,
        np.concatenate(status),
        parts[0].why,
        undefined=f"{' or '.join(part.measure for part in parts)} is undefined",
        notes=parts[0].notes,
        counted=counted,
    )


class _Pairing:
    """Matches the units of two scores by id, and combines the scores on the units that are in both."""

    def __init__(self, first: Score, second: Score) -> None:
        for score in (first, second):
            # If an id occurred twice, only its first unit would be paired.
            if not score.units.ids.is_unique:
                raise BadInput(f"{score.measure}: a unit occurs twice")
        if first.units is second.units:
            position = np.arange(len(first.units))
        else:
            position = second.units.ids.get_indexer(first.units.ids)
        self.both: BoolArray = position >= 0
        self.where: IntArray = position[self.both].astype(np.int64)
        self.units = first.units if self.both.all() else first.units.take(self.both)
        self.n_alone = len(first.units) + len(second.units) - 2 * len(self.units)
        self._rows: dict[tuple[int, int], FloatArray] = {}

    def rows(self, first: Score, second: Score) -> FloatArray:
        """Return the rows of both scores side by side. Scores with the same rows get the same array."""
        key = id(first.rows), id(second.rows)
        if key not in self._rows:
            self._rows[key] = np.concatenate([first.rows[self.both], second.rows[self.where]], axis=1)
        return self._rows[key]

    def score(self, measure: str, first: Score, second: Score, value: Both) -> Score:
        """Return `value` applied to both scores, on the units that have a value in both scores."""
        width = first.rows.shape[1]

        def both(sums: FloatArray) -> FloatArray:
            mine = np.concatenate([sums[:, :width], sums[:, -1:]], axis=1)
            return value(first.value(mine), second.value(sums[:, width:]))

        note = f"{self.n_alone} units are in only one of the two scores"
        return Score(
            measure,
            self.units,
            self.rows(first, second),
            both,
            why="no value in one of the two scores",
            undefined="one of the two scores is undefined on the shared units",
            notes=(note,) if self.n_alone else (),
            counted=None if first.counted is None else first.counted[self.both],
        )


def _differences(
    pairs: Sequence[tuple[Score, Score]], **options: Unpack[IntervalOptions]
) -> list[Difference]:
    # Measures of one paper share their units, so their ids are matched once.
    pairings: dict[tuple[int, int], _Pairing] = {}
    scores: list[Score] = []
    for first, second in pairs:
        key = id(first.units), id(second.units)
        pairing = pairings[key] if key in pairings else pairings.setdefault(key, _Pairing(first, second))
        name = first.measure
        # Each side alone is still a mean of zeros and ones, to which the exact bound applies.
        paired_first = replace(pairing.score(name, first, second, lambda a, b: a), binary=first.binary)
        scores += [
            paired_first,
            replace(pairing.score(name, first, second, lambda a, b: b), binary=second.binary),
            pairing.score(f"{name}_difference", first, second, lambda a, b: b - a),
        ]
    measures = measure_all(scores, **options)
    differences = []
    for i, (first, second) in enumerate(pairs):
        difference = measures[3 * i + 2]
        # The binomial bound below counts questions that would change by a whole point, so it needs 0/1 values.
        if NO_WIDTH in difference.notes and first.binary and second.binary:
            difference = _bound(difference)
        differences.append(Difference(measures[3 * i], measures[3 * i + 1], difference))
    return differences


def _bound(difference: Measure) -> Measure:
    # All resamples are equal, so they give no interval. But the share of questions that would have shown a change has
    # an exact bound.
    assert difference.n_clusters and difference.value is not None
    reach = 1 - ((1 - difference.confidence) / 2) ** (1 / difference.n_clusters)
    note = "all resamples are equal, so the interval is the exact binomial interval"
    notes = tuple(note if old == NO_WIDTH else old for old in difference.notes)
    low, high = max(-1.0, difference.value - reach), min(1.0, difference.value + reach)
    return replace(difference, low=low, high=high, notes=notes)


def _make_single(score: Score, which: str, **options: Unpack[IntervalOptions]) -> Difference:
    measure = score.measure_score(**options)
    reason = f"only the {which} run has this measure"
    none = replace(
        measure, value=None, low=None, high=None, n_units=0, coverage=None, notes=(), reason=reason
    )
    change = replace(none, measure=f"{score.measure}_difference")
    return Difference(measure, none, change) if which == "first" else Difference(none, measure, change)


def _by_name(scores: Sequence[Score]) -> dict[str, Score]:
    by_name = {score.measure: score for score in scores}
    # Strata repeat the names of measures; matching by name would pair one stratum with another.
    if len(by_name) < len(scores):
        raise BadInput("two scores of one run have the same name: compare one stratum at a time")
    return by_name
