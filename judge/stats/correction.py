"""Correct the mean of a judge's values with a sample of human labels, using prediction-powered inference
(PPI++).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from judge.errors import BadInput
from judge.notes import Note
from judge.stats.bootstrap import SAME, IntervalSettings
from judge.stats.continuous import cluster_numbers, numbers
from judge.stats.estimate import about, unseen_share
from judge.stats.patterns import n_present
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.types import Json, Measure


@dataclass(frozen=True)
class Corrected:
    """Three estimates of one mean. `lam` is the weight of the judge in `ppi`: 0 means human labels only, and
    None means undefined.
    """

    judge_only: Measure
    human_only: Measure
    ppi: Measure
    lam: float | None

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON object. Its field `lambda` is the weight of the judge."""
        three = {name: getattr(self, name).as_json() for name in ("judge_only", "human_only", "ppi")}
        return {**three, "lambda": self.lam}


def correct_mean(
    judge: ArrayLike,
    human: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    bounds: tuple[float, float] | None = None,
    lam: float | None = None,
    confidence: float = 0.95,
    field: str | None = None,
) -> Corrected:
    """Return the prediction-powered mean: the judge's mean over all units, corrected with the human labels.

    theta = lam mean_N(judge) + mean_n(human - lam judge), over n units with a human label and N without. If
    `lam` is None, lambda is Cov_n(human, judge) / ((1 + n/N) Var_n+N(judge)), clipped to 0..1, which
    minimises the variance. If all judge values are equal, lambda is 0, so only human labels are used.
    Angelopoulos, Duchi & Zrnic 2023, PPI++, arXiv 2311.01453, section 6. Standard errors are cluster-robust,
    and intervals use quantiles of t(g - 1), where g is the number of clusters with human labels. With lam=1
    the interval can be wider than that of the human labels alone. The labelled units must be a random sample
    of the judged units.

    `weights` are for units that were drawn with unequal probabilities: the weight of a labelled unit is the
    number of judged units that it represents. Means over labelled units are then weighted (Hajek), and
    mean_N(judge) - mean_n(judge) becomes (n+N)/N (mean_n+N(judge) - weighted mean_n(judge)), which is the
    same for equal weights. The intervals ignore stratification, so they are conservative. `bounds` are the
    least and the greatest possible value; estimates and intervals are clipped to this range.

    The arrays contain every unit that the judge was asked about. For a unit without a judge value (refused,
    unparsed), `ppi` uses the mean of the judge's other values. `judge_only` covers only units with a judge
    value. `judge` and `human` have one number per unit, or nan. Raises BadInput for a wrong shape,
    infinities, lam outside 0..1, or a labelled unit whose weight is not above 0.
    """
    f, y = numbers(judge, "judge", dimensions=1), numbers(human, "human", dimensions=1)
    if f.shape != y.shape:
        raise BadInput(f"there are {len(f)} judge values, but {len(y)} human values")
    if lam is not None and not 0 <= lam <= 1:
        raise BadInput(f"lambda must be from 0 to 1, not {lam}")
    settings, tuned = IntervalSettings(interval=None, confidence=confidence), lam is None
    groups, clustered = cluster_numbers(clusters, len(f))
    judged, labelled = ~np.isnan(f), ~np.isnan(y)
    w = None if weights is None else design_weights(weights, labelled)
    of_labelled = None if w is None else w[labelled]
    sample = _Sample(groups, clustered, len(f), settings.confidence, field, bounds)
    judge_only = sample.mean("judge_only", f, judged, None)
    human_only = sample.mean("human_only", y, labelled, w)
    n, g = int(labelled.sum()), n_present(groups[labelled])
    base = about("ppi", len(f), len(f), n_present(groups), field=field)
    # One labelled cluster has no standard error, whatever the judge's values are.
    if n < 2 or g < 2:
        reason = "fewer than two questions or units have a human label"
        return Corrected(judge_only, human_only, replace(base, reason=reason, confidence=confidence), None)
    notes: tuple[str, ...] = ()
    # Any constant would be valid where the judge has no value. Leaving such units out would drop their human labels too.
    values = f if judged.all() else f[judged]
    filled = f if judged.all() else np.where(judged, f, values.mean() if len(values) else 0.0)
    shift = _find_shift(sample, filled, labelled, of_labelled)
    if labelled.all():
        lam, notes = 0.0, (Note("human_only", why="all_labelled"),)
    elif not len(values):
        lam, notes = 0.0, (Note("human_only", why="no_judge"),)
    # The best lambda of a constant judge would be 0 / 0.
    elif np.ptp(values) == 0:
        lam, notes = 0.0, (Note("human_only", why="constant"),)
    elif lam is None:
        covariance = float(np.cov(y[labelled], filled[labelled], ddof=0, aweights=of_labelled)[0, 1])
        # By chance the optimum can be outside 0..1, where the estimate would extrapolate, so it is clipped.
        best = covariance / ((1 + n / (len(f) - n)) * float(filled.var(ddof=1)))
        lam = min(1.0, max(0.0, best))
        if best <= 0:
            notes = (Note("human_only", why="unrelated"),)
    if lam and not judged.all():
        notes = (*notes, Note("filled", n=int((~judged).sum())))
    human_mean = float(np.average(y[labelled], weights=of_labelled))
    value = human_mean + lam * shift.value
    human_part = _sum_deviations(y[labelled], shift.clusters, of_labelled, human_mean) / (
        n if of_labelled is None else of_labelled.sum()
    )
    squares = float(((human_part - lam * shift.of_labelled) ** 2).sum()) + lam**2 * shift.squares_of_others
    ppi = sample.with_interval(base, value, squares, g, n)
    if not lam or (tuned and _wider(ppi, human_only)):
        # With few labels of a rare class, tuning lambda can make the interval wider than that of the human labels
        # alone.
        if lam:
            notes, lam, value = (Note("human_only", why="wider"),), 0.0, human_only.value or 0.0
        ppi = replace(ppi, value=value if not lam else ppi.value, low=human_only.low, high=human_only.high)
    return Corrected(judge_only, human_only, replace(ppi, notes=(*ppi.notes, *notes)), lam)


def _wider(first: Measure, second: Measure) -> bool:
    """Return whether the first interval is wider than the second. The result is False if either is missing."""
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return False
    return first.high - first.low > second.high - second.low


def design_weights(given: ArrayLike, labelled: BoolArray) -> FloatArray:
    """Return the design weights as an array, with 1 for units without a human label. Raises BadInput for other weights."""
    weights = numbers(given, "weights", dimensions=1)
    if weights.shape != labelled.shape:
        raise BadInput(f"there are {len(weights)} weights for {len(labelled)} units")
    if not (weights[labelled] > 0).all():
        raise BadInput("every labelled unit needs a weight above 0: the number of units that it represents")
    return np.where(labelled, weights, 1.0)


@dataclass(frozen=True, eq=False)
class _Shift:
    """The difference between the judge's mean on unlabelled units and on labelled units, with its error.

    `clusters` numbers the clusters with a labelled unit, and has one number for each labelled unit. `of_labelled[c]` is
    the contribution of such a cluster to the error of labelled minus unlabelled. Of all other clusters, which can be a
    million, only the sum of their squared contributions is kept.
    """

    value: float
    clusters: IntArray
    of_labelled: FloatArray
    squares_of_others: float


def _find_shift(sample: _Sample, f: FloatArray, labelled: BoolArray, weights: FloatArray | None) -> _Shift:
    """Return the shift of the judge's values. `weights` are the design weights of the labelled units."""
    present, clusters = np.unique(sample.groups[labelled], return_inverse=True)
    of_labelled = f[labelled]
    n, n_unlabelled = len(f), len(f) - len(of_labelled)
    if not n_unlabelled:
        return _Shift(0.0, clusters, np.zeros(len(present)), 0.0)
    labelled_mean = float(np.average(of_labelled, weights=weights))
    part = _sum_deviations(of_labelled, clusters, weights, labelled_mean) / (
        len(of_labelled) if weights is None else weights.sum()
    )
    if weights is None:
        mean = float((f.sum() - of_labelled.sum()) / n_unlabelled)
        # The unlabelled units are nearly all units, so their sums are those of all units without the labelled ones.
        others = _sum_deviations(f, sample.groups, None, mean)
        others[present] -= _sum_deviations(of_labelled, clusters, None, mean)
        others /= n_unlabelled
        scale = 1.0
    else:
        mean = float(f.mean())
        others = _sum_deviations(f, sample.groups, None, mean)
        others /= n
        scale = n / n_unlabelled
    part = scale * (part - others[present])
    others[present] = 0.0
    return _Shift(scale * (mean - labelled_mean), clusters, part, scale**2 * float(others @ others))


def _sum_deviations(
    values: FloatArray, clusters: IntArray, weights: FloatArray | None, mean: float
) -> FloatArray:
    """Return sum w (value - mean) over the units of each cluster. All weights are 1 if `weights` is None."""
    # From sums by cluster: the deviations of a million units would need most of the memory of a report.
    weighted = values if weights is None else values * weights
    sums: FloatArray = np.bincount(clusters, weighted).astype(np.float64, copy=False)
    sums -= mean * np.bincount(clusters, weights)
    return sums


@dataclass(frozen=True, eq=False)
class _Sample:
    """Means over one set of units, with cluster-robust standard errors."""

    groups: IntArray
    clustered: bool
    n_asked: int
    confidence: float
    field: str | None
    bounds: tuple[float, float] | None

    def _select(
        self, values: FloatArray, used: BoolArray, weights: FloatArray | None
    ) -> tuple[FloatArray, IntArray, FloatArray | None]:
        # Copies of the values of a million units would need most of the memory of a report.
        if used.all():
            return values, self.groups, weights
        return values[used], self.groups[used], None if weights is None else weights[used]

    def mean(self, name: str, values: FloatArray, used: BoolArray, weights: FloatArray | None) -> Measure:
        kept, groups, w = self._select(values, used, weights)
        n, g = len(kept), n_present(groups)
        base = about(name, n, self.n_asked, g, field=self.field)
        if not n:
            return replace(base, reason="no unit has a value", confidence=self.confidence)
        value = float(np.average(kept, weights=w))
        parts = _sum_deviations(kept, groups, w, value)
        squares = float(parts @ parts) / (n if w is None else float(w.sum())) ** 2
        with_t_interval = self.with_interval(base, value, squares, g)
        if self.bounds != (0.0, 1.0) or not 0 < value < 1 or with_t_interval.low is None:
            return with_t_interval
        if not ((kept == 0) | (kept == 1)).all():
            return with_t_interval
        low, high = self._wilson(kept, w, groups, g)
        return replace(with_t_interval, low=low, high=high)

    def _wilson(
        self, values: FloatArray, weights: FloatArray | None, groups: IntArray, g: int
    ) -> tuple[float, float]:
        """Return Wilson's bounds for a share of values that may be weighted and clustered.

        Wilson's formula is used with the effective number of independent units and the quantiles of t(g - 1).
        """
        from scipy.special import stdtrit

        # A standard error computed from few successes is too small exactly when there are fewest: with p = .05 and 100
        # units the symmetric interval contains the truth in 89 % of samples.
        share, n = effective_share(values, weights, groups)
        n_units = len(values)
        if n_units > g:
            # With a rare label in few questions, the spread between questions is too small exactly when the share is too
            # low: with a share of .03 and 30 questions of ten, coverage was .90. One more question of the label is added.
            n = share * (1 - share) / (share * (1 - share) / n + 1 / (n_units * g))
        t = float(stdtrit(g - 1, 1 - (1 - self.confidence) / 2))
        middle, scale = share + t * t / (2 * n), 1 + t * t / n
        reach = t * sqrt(share * (1 - share) / n + t * t / (4 * n * n))
        return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)

    def with_interval(
        self, base: Measure, value: float, squares: float, g: int, residuals: int = 0
    ) -> Measure:
        """Return the measure with the given value and a t interval.

        `squares` is the sum of the squared contributions of all clusters to the error of the value.
        `residuals` is 0 or the number of labelled units. If it is not 0 and there are `bounds`, the variance
        is increased as if two more questions had the largest possible error, one in each direction, on the
        square root of their units.
        """
        base = replace(base, confidence=self.confidence)
        least, most = self.bounds or (-np.inf, np.inf)
        cut: tuple[str, ...] = ()
        if not least <= value <= most:
            cut = (Note("cut", least=least, most=most, value=value),)
        base = replace(base, value=min(most, max(least, value)))
        if g < 2:
            return replace(base, notes=(*cut, Note("one_cluster")))
        noun = "question" if self.clustered else "unit"
        few = (Note("few_labelled", n=g, noun=noun, least=30),) if g < 30 else ()
        # With a rare label, the sample may contain no error. The standard error is then too small exactly when the
        # estimate is too low. With 2 to 5 % of a label and 50 to 300 labels, coverage was .86 to .94 without
        # pseudo-residuals. With them it was .94 to 1.00. Errors come in questions: with a share of .03 in 30 questions of
        # ten units, pseudo-residuals of single units covered .85 to .88, and these cover .99.
        pseudo = 2 * (most - least) ** 2 / (residuals * g) if residuals and self.bounds else 0.0
        error = sqrt(g / (g - 1) * squares + pseudo)
        if error < SAME:
            return self._constant(base, value, g, (*cut, *few))
        from scipy.special import stdtrit

        reach = float(stdtrit(g - 1, 1 - (1 - self.confidence) / 2)) * error
        return replace(
            base,
            low=min(most, max(least, value - reach)),
            high=min(most, max(least, value + reach)),
            notes=(*cut, *few),
        )

    def _constant(self, base: Measure, value: float, g: int, notes: tuple[str, ...]) -> Measure:
        """Add bounds to a mean whose values are all equal. Its standard error is zero, although the next
        value may differ.
        """
        if self.bounds is None or min(abs(value - bound) for bound in self.bounds) > SAME:
            return replace(base, notes=(*notes, Note("all_same", bounded=False)))
        # No cluster has a different value, so the bound is the exact binomial bound on the share of clusters that do.
        unseen = unseen_share(g, self.confidence) * (self.bounds[1] - self.bounds[0])
        note = Note("all_same", bounded=True)
        if abs(value - self.bounds[0]) <= SAME:
            return replace(base, low=value, high=value + unseen, notes=(*notes, note))
        return replace(base, low=value - unseen, high=value, notes=(*notes, note))


def effective_share(
    values: FloatArray, weights: FloatArray | None, clusters: IntArray
) -> tuple[float, float]:
    """Return a weighted share of 0 / 1 values, and the effective number of independent units.

    The effective number is the number of independent units that would give a share with the same variance. It
    is at most the number of units. If all values are equal, it is the number of clusters. All weights are 1 if `weights`
    is None; units with the weight 0 are left out.
    """
    if weights is not None and not (weights > 0).all():
        there = weights > 0
        values, weights, clusters = values[there], weights[there], clusters[there]
    share = float(np.average(values, weights=weights))
    n, g = len(values), n_present(clusters)
    if g < 2 or share in (0.0, 1.0):
        return share, float(g)
    parts = _sum_deviations(values, clusters, weights, share)
    variance = g / (g - 1) * float(parts @ parts) / (n if weights is None else float(weights.sum())) ** 2
    return share, min(float(n), share * (1 - share) / variance) if variance > 0 else float(n)
