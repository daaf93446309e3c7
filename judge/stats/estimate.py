"""Turn sums into a Measure: the value, its interval, the bounds that resampling cannot compute, and the
notes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from judge.notes import Note
from judge.stats.bootstrap import NO_WIDTH, Interval, IntervalSettings, Value, bootstrap, sample_notes
from judge.stats.patterns import Tally
from judge.stats.ratings import FloatArray
from judge.types import Measure

# Smallest effective number of questions for an interval of a weighted estimate. With fewer, its coverage was as low
# as .59 for a rare label (benchmarks/weighted.py).
LEAST_EFFECTIVE = 250
# Values closer than this to an end of their scale count as equal to it.
SAME_END = 1e-9


@dataclass(frozen=True, eq=False)
class Estimate:
    """A statistic of sums, from which a Measure is computed.

    `about` has the fields that do not depend on the value: name, annotators, n_units, n_clusters, coverage.
    `undefined` returns the reason why the value is nan. `least` is the smallest possible value.

    Some statistics are 1 - share / scale, where `share` is the share of failures in `trials` independent
    trials. The value is then 1 if no trial failed, and 1 - 1 / scale if all failed. For other statistics,
    `trials` is None.
    """

    about: Measure
    tally: Tally
    value: Value
    undefined: Callable[[], str]
    clustered: bool
    trials: int | None = None
    scale: float = 1.0
    least: float = 0.0
    notes: tuple[str, ...] = ()
    by_package: float | None = None

    @property
    def point(self) -> float | None:
        """The value, or None if it is undefined. If a statistics package also computed the value, the
        package's value is used, except for weighted units.
        """
        if not self.tally.n_clusters or not self.about.n_units:
            return None
        value = float(self.value(self.tally.total[None, :])[0])
        if not np.isfinite(value):
            return None
        weighted = self.tally.effective is not None
        return value if self.by_package is None or weighted else self.by_package

    def measure(self, settings: IntervalSettings, sums: FloatArray | None = None) -> Measure:
        """Return the finished Measure. `sums` are existing resamples, which several statistics can share."""
        about = replace(self.about, confidence=settings.confidence)
        point = self.point
        if point is None:
            return replace(about, value=None, reason=self.undefined())
        if self.tally.effective is not None:
            bounds = (
                self._compute_weighted_interval(point, settings.confidence)
                if settings.interval is not None
                else None
            )
            note = Note("weighted", n_eff=self.tally.effective, interval=bounds is not None)
            low, high = bounds or (None, None)
            return replace(about, value=point, low=low, high=high, notes=(*self.notes, note))
        if settings.interval is None:
            return replace(about, value=point, notes=self.notes)
        interval = self._bound(point, bootstrap(self.tally, self.value, settings, sums), settings.confidence)
        notes = (
            interval.notes + sample_notes(about.n_units, about.n_clusters or 0, self.clustered) + self.notes
        )
        return replace(about, value=point, low=interval.low, high=interval.high, notes=notes)

    def _compute_weighted_interval(self, point: float, confidence: float) -> tuple[float, float] | None:
        """Return the jackknife interval by cluster for weighted units, with quantiles of Student's t.

        Return None if the interval would contain the true value too rarely (in less than 93 % of samples), or
        if it has no width.
        """
        from scipy.special import stdtrit

        left_out = self.value(self.tally.total[None, :] - self.tally.rows)
        if self.tally.carrying < LEAST_EFFECTIVE or not np.isfinite(left_out).all():
            return None
        n = len(left_out)
        error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
        # All clusters are equal: an interval of zero width would claim certainty.
        if error < SAME_END:
            return None
        reach = float(stdtrit(self.tally.carrying - 1, 1 - (1 - confidence) / 2) * error)
        return max(self.least, point - reach), min(1.0, point + reach)

    def _bound(self, point: float, interval: Interval, confidence: float) -> Interval:
        # Resamples of data without an error never contain one, so a bootstrap interval from five units would be [1, 1].
        # The exact binomial bound on the share of clusters with an error replaces it.
        if not self.trials or interval.low is None or interval.high is None:
            return interval
        reach = unseen_share(self.trials, confidence) / self.scale
        notes = tuple(note for note in interval.notes if note != NO_WIDTH)
        if point > 1 - SAME_END and NO_WIDTH in interval.notes:
            note = Note("nothing_wrong_seen", cut=self.least if point - reach < self.least else None)
            return Interval(max(self.least, point - reach), point, (*notes, note))
        if point < 1 - 1 / self.scale + SAME_END:
            # The resamples of such a value may differ because their margins differ, but none contains a unit with
            # agreement.
            note = Note("none_seen", cut=point + reach > 1)
            return Interval(interval.low, max(interval.high, min(1.0, point + reach)), (*notes, note))
        return interval


def unseen_share(trials: int, confidence: float) -> float:
    """Return the exact (Clopper-Pearson) upper bound on the rate of an event that was not observed in this
    many trials.
    """
    return float(1 - ((1 - confidence) / 2) ** (1 / trials))


def about(
    measure: str,
    n_units: int,
    n_asked: int,
    n_clusters: int,
    annotators: tuple[str, ...] | None = None,
    field: str | None = None,
) -> Measure:
    """Return the part of a Measure that does not depend on its value."""
    return Measure(
        measure=measure,
        value=None,
        n_units=n_units,
        coverage=n_units / n_asked if n_asked else None,
        n_clusters=n_clusters,
        annotators=annotators,
        field=field,
    )
