"""Means of a judge's values corrected by a sample that people labelled: PPI++ and Rogan-Gladen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from judge.errors import BadInput
from judge.notes import Note
from judge.stats.bootstrap import FEW_UNITS, SAME, How, IntervalSettings
from judge.stats.coefficients import ratio
from judge.stats.continuous import cluster_numbers, numbers
from judge.stats.estimate import about, unseen_share
from judge.stats.patterns import n_present
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.types import Json, Measure


@dataclass(frozen=True)
class Corrected:
    """The same mean three ways. `lam` is the weight of the judge in `ppi`: 0 is human only, None undefined."""

    judge_only: Measure
    human_only: Measure
    ppi: Measure
    lam: float | None

    def as_json(self) -> dict[str, Json]:
        """The documented shape; lambda is the weight of the judge."""
        three = {name: getattr(self, name).as_json() for name in ("judge_only", "human_only", "ppi")}
        return {**three, "lambda": self.lam}


def corrected_mean(
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
    """Prediction-powered mean: the judge on everything, corrected by the units that people labelled.

    theta = lam mean_N(judge) + mean_n(human - lam judge), over n units with a human label and N without. `lam` None takes Cov_n(human, judge) / ((1 + n/N) Var_n+N(judge)), cut to 0..1, which is the
    one with the least variance; a constant judge gives 0, human only.
    Angelopoulos, Duchi & Zrnic 2023, PPI++, arXiv 2311.01453, section 6. Standard errors are
    robust to clusters, with quantiles of t(g - 1), g clusters with human labels. With lam=1 the interval
    can be wider than without the judge. The sample must be random among the units judged.

    `weights`, one per unit: for how many units of those judged a labelled one stands, where they were drawn with
    unequal probabilities. Means over labelled units are then weighted (Hajek), and mean_N(judge) - mean_n(judge)
    becomes (n+N)/N (mean_n+N(judge) - weighted mean_n(judge)), the same when all weights are. Its intervals do not
    use that strata were drawn apart: they are rather too wide.
    `bounds` are the least and the greatest possible value; what leaves them is cut.

    Every unit of the arrays was asked of the judge. Where it gave no value (refused, unparsed) the mean of its others
    stands in `ppi`, which any number may: leaving such units out would leave out their human labels too. `judge_only`
    is of the units that it gave a value. `judge` and `human` hold one number per unit, nan where there is none. Raises BadInput for
    another shape, infinities, lam outside 0..1, a labelled unit without a weight above 0.
    """
    f, y = numbers(judge, "judge", dimensions=1), numbers(human, "human", dimensions=1)
    if f.shape != y.shape:
        raise BadInput(f"{len(f)} judge values, {len(y)} human values")
    if lam is not None and not 0 <= lam <= 1:
        raise BadInput(f"lambda lies between 0 and 1, not {lam}")
    settings, tuned = IntervalSettings(interval=None, confidence=confidence), lam is None
    groups, clustered = cluster_numbers(clusters, len(f))
    judged, labelled = ~np.isnan(f), ~np.isnan(y)
    w = _weights(weights, labelled)
    sample = _Sample(groups, clustered, len(f), settings.confidence, field, bounds)
    judge_only = sample.mean("judge_only", f, judged, np.ones(len(f)))
    human_only = sample.mean("human_only", y, labelled, w)
    n, g = int(labelled.sum()), n_present(groups[labelled])
    found = about("ppi", len(f), len(f), n_present(groups), field=field)
    if n < 2 or g < 2:
        reason = "fewer than two questions or units have a human label"
        return Corrected(judge_only, human_only, replace(found, reason=reason, confidence=confidence), None)
    notes: tuple[str, ...] = ()
    filled = np.where(judged, f, f[judged].mean() if judged.any() else 0.0)
    shift, judge_part = _shift(sample, filled, labelled, None if weights is None else w)
    if labelled.all():
        lam, notes = 0.0, (Note("human_only", why="all_labelled"),)
    elif not judged.any():
        lam, notes = 0.0, (Note("human_only", why="no_judge"),)
    elif np.ptp(f[judged]) == 0:
        lam, notes = 0.0, (Note("human_only", why="constant"),)
    elif lam is None:
        covariance = float(np.cov(y[labelled], filled[labelled], ddof=0, aweights=w[labelled])[0, 1])
        best = covariance / ((1 + n / (len(f) - n)) * float(filled.var(ddof=1)))
        lam = min(1.0, max(0.0, best))
        if best <= 0:
            notes = (Note("human_only", why="unrelated"),)
    if lam and not judged.all():
        notes = (*notes, Note("filled", n=int((~judged).sum())))
    value = float(np.average(y[labelled], weights=w[labelled])) + lam * shift
    ppi = sample.with_interval(found, value, sample.influence(y, labelled, w) - lam * judge_part, g, n)
    if not lam or (tuned and _wider(ppi, human_only)):
        # Never wider than people alone: with few labels of a rare kind the judge adds nothing that can be shown.
        if lam:
            notes, lam, value = (Note("human_only", why="wider"),), 0.0, human_only.value or 0.0
        ppi = replace(ppi, value=value if not lam else ppi.value, low=human_only.low, high=human_only.high)
    return Corrected(judge_only, human_only, replace(ppi, notes=(*ppi.notes, *notes)), lam)


def _wider(one: Measure, other: Measure) -> bool:
    """Whether an interval is wider than another; not where one of them has none."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high - one.low > other.high - other.low


def _weights(given: ArrayLike | None, labelled: BoolArray) -> FloatArray:
    if given is None:
        return np.ones(len(labelled))
    found = numbers(given, "weights", dimensions=1)
    if found.shape != labelled.shape:
        raise BadInput(f"{len(found)} weights, {len(labelled)} units")
    if not (found[labelled] > 0).all():
        raise BadInput("every labelled unit takes a weight above 0: how many units it stands for")
    return np.where(labelled, found, 1.0)


def _shift(
    sample: _Sample, f: FloatArray, labelled: BoolArray, weights: FloatArray | None
) -> tuple[float, FloatArray]:
    """How far the judge's mean elsewhere lies from its mean on the labelled units, and minus what clusters add to it."""
    one = np.ones(len(f))
    if labelled.all():
        return 0.0, np.zeros(int(sample.groups.max()) + 1)
    if weights is None:
        apart = float(f[~labelled].mean() - f[labelled].mean())
        return apart, sample.influence(f, labelled, one) - sample.influence(f, ~labelled, one)
    scale = float(len(f) / (~labelled).sum())
    apart = float(f.mean() - np.average(f[labelled], weights=weights[labelled]))
    everywhere = sample.influence(f, np.ones(len(f), dtype=np.bool_), one)
    return scale * apart, scale * (sample.influence(f, labelled, weights) - everywhere)


@dataclass(frozen=True, eq=False)
class _Sample:
    """Means with cluster-robust errors over one set of units."""

    groups: IntArray
    clustered: bool
    n_asked: int
    confidence: float
    field: str | None
    bounds: tuple[float, float] | None

    def influence(self, values: FloatArray, used: BoolArray, weights: FloatArray) -> FloatArray:
        """What each cluster adds to the error of the mean over `used`: sum w (value - mean) / sum w."""
        kept, w = values[used], weights[used]
        size = int(self.groups.max()) + 1
        total = np.bincount(
            self.groups[used], weights=w * (kept - np.average(kept, weights=w)), minlength=size
        )
        share: FloatArray = total / w.sum()
        return share

    def mean(self, name: str, values: FloatArray, used: BoolArray, weights: FloatArray) -> Measure:
        n, g = int(used.sum()), n_present(self.groups[used])
        found = about(name, n, self.n_asked, g, field=self.field)
        if not n:
            return replace(found, reason="no unit has a value", confidence=self.confidence)
        value = float(np.average(values[used], weights=weights[used]))
        whole = self.with_interval(found, value, self.influence(values, used, weights), g)
        if self.bounds != (0.0, 1.0) or not 0 < value < 1 or whole.low is None:
            return whole
        if not np.isin(values[used], (0.0, 1.0)).all():
            return whole
        low, high = self._wilson(values, np.where(used, weights, 0.0), g)
        return replace(whole, low=low, high=high)

    def _wilson(self, values: FloatArray, weights: FloatArray, g: int) -> tuple[float, float]:
        """Wilson's bounds of a share, on as many units as its variance by cluster stands for; quantile of t(g - 1).

        A standard error taken from few successes is too small when they are fewest: with p = .05 and 100 units
        the symmetric interval holds the truth in 89 % of samples.
        """
        from scipy.special import stdtrit

        share, n = effective_share(np.nan_to_num(values), weights, self.groups)
        t = float(stdtrit(g - 1, 1 - (1 - self.confidence) / 2))
        middle, scale = share + t * t / (2 * n), 1 + t * t / n
        reach = t * sqrt(share * (1 - share) / n + t * t / (4 * n * n))
        return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)

    def with_interval(
        self, found: Measure, value: float, influence: FloatArray, g: int, residuals: int = 0
    ) -> Measure:
        """The measure with its value and t interval.

        `residuals` labelled units of values in `bounds` get two more, one error in each direction: with a rare label none may
        be seen, and the standard error is too small exactly where the estimate is too low.
        """
        found = replace(found, confidence=self.confidence)
        least, most = self.bounds or (-np.inf, np.inf)
        cut: tuple[str, ...] = ()
        if not least <= value <= most:
            cut = (Note("cut", least=least, most=most, value=value),)
        found = replace(found, value=min(most, max(least, value)))
        if g < 2:
            return replace(found, notes=(*cut, Note("one_cluster")))
        noun = "question" if self.clustered else "unit"
        few = (Note("few_labelled", n=g, noun=noun, least=30),) if g < 30 else ()
        pseudo = 2 * ((most - least) / residuals) ** 2 if residuals and self.bounds else 0.0
        error = float(np.sqrt(g / (g - 1) * (influence**2).sum() + pseudo))
        if error < SAME:
            return self._constant(found, value, g, (*cut, *few))
        from scipy.special import stdtrit

        reach = float(stdtrit(g - 1, 1 - (1 - self.confidence) / 2)) * error
        return replace(
            found,
            low=min(most, max(least, value - reach)),
            high=min(most, max(least, value + reach)),
            notes=(*cut, *few),
        )

    def _constant(self, found: Measure, value: float, g: int, notes: tuple[str, ...]) -> Measure:
        """Values that are all the same have no standard error, and yet the next one may differ."""
        if self.bounds is None or min(abs(value - bound) for bound in self.bounds) > SAME:
            return replace(found, notes=(*notes, Note("all_same", bounded=False)))
        # No cluster was seen with anything else: the exact binomial bound on the share of those that have.
        unseen = unseen_share(g, self.confidence) * (self.bounds[1] - self.bounds[0])
        told = Note("all_same", bounded=True)
        if abs(value - self.bounds[0]) <= SAME:
            return replace(found, low=value, high=value + unseen, notes=(*notes, told))
        return replace(found, low=value - unseen, high=value, notes=(*notes, told))


def rogan_gladen(
    judge: ArrayLike,
    human: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    field: str | None = None,
    **how: Unpack[How],
) -> Measure:
    """A rate corrected for the judge's sensitivity and specificity: (p + spec - 1) / (sens + spec - 1).

    p is the judge's rate on all units it judged; sens and spec come from the units with a human
    label. Rogan & Gladen 1978; for judges Lee et al. 2025, arXiv 2511.21140, section 3. The value is cut
    to 0..1. The interval is Lang and Reiczigel's (2014, Preventive Veterinary Medicine 113(1), 13-22); each of the three
    shares counts with as many units as it would rest on if they were independent (its variance by cluster).
    None when a class has no human label, or sens + spec <= 1.
    `weights` as in `corrected_mean`: sens and spec are then weighted shares.

    `judge` and `human` are 0, 1 or nan. Raises BadInput for other values. `how` as in `measures`; of it
    only `interval` (None makes none) and `confidence` act.
    """
    settings = IntervalSettings(**how)
    f, y = numbers(judge, "judge", dimensions=1), numbers(human, "human", dimensions=1)
    if f.shape != y.shape:
        raise BadInput(f"{len(f)} judge values, {len(y)} human values")
    for name, values in (("judge", f), ("human", y)):
        if not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
            raise BadInput(f"{name} must be 0, 1 or nan for a rate")
    groups, _ = cluster_numbers(clusters, len(f))
    judged = ~np.isnan(f)
    w = _weights(weights, ~np.isnan(y))[judged]
    f, y, used_groups = f[judged], y[judged], groups[judged]
    ones, zeros = w * (y == 1), w * (y == 0)
    rows = np.column_stack([np.ones(len(f)), f, ones, ones * (f == 1), zeros, zeros * (f == 0)])
    total = rows.sum(axis=0) if len(f) else np.zeros(6)
    raw = float(_rogan_gladen(total[None, :])[0]) if len(f) else np.nan
    found = replace(
        about("rogan_gladen", len(f), len(judged), n_present(used_groups), field=field),
        confidence=settings.confidence,
    )
    notes = [Note("cut", least=0, most=1, value=raw)] if raw < 0 or raw > 1 else []
    n_ones, n_zeros = int((y == 1).sum()), int((y == 0).sum())
    if 0 < min(n_ones, n_zeros) < FEW_UNITS:
        notes.append(Note("few_for_rates", ones=n_ones, zeros=n_zeros, least=FEW_UNITS))
    if not judged.all():
        notes.append(Note("left_out", n=int((~judged).sum())))
    if not np.isfinite(raw):
        return replace(found, reason=_why_no_rate(total), notes=tuple(notes))
    found = replace(found, value=min(1.0, max(0.0, raw)), notes=tuple(notes))
    if settings.interval is None:
        return found
    every = np.ones(len(f))
    shares = (
        effective_share(f, every, used_groups),
        effective_share(f, ones, used_groups),
        effective_share(1 - f, zeros, used_groups),
    )
    low, high = lang_reiczigel(*shares, confidence=settings.confidence)
    return replace(found, low=min(low, found.value or 0.0), high=max(high, found.value or 0.0))


def effective_share(values: FloatArray, weights: FloatArray, clusters: IntArray) -> tuple[float, float]:
    """A weighted share of 0 and 1, and on how many independent units it would have the same variance by cluster.

    Never more units than there are. Where no value differs, of units in clusters: the clusters.
    """
    there = weights > 0
    share = float(np.average(values[there], weights=weights[there]))
    n, g = int(there.sum()), n_present(clusters[there])
    if g < 2 or share in (0.0, 1.0):
        return share, float(g)
    parts = np.bincount(clusters[there], weights=weights[there] * (values[there] - share)) / weights.sum()
    variance = g / (g - 1) * float((parts**2).sum())
    return share, min(float(n), share * (1 - share) / variance) if variance > 0 else float(n)


def lang_reiczigel(
    positive: tuple[float, float],
    sensitivity: tuple[float, float],
    specificity: tuple[float, float],
    *,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Bounds of a prevalence from three independent (share, units). Lang & Reiczigel 2014, section 2.

    One success and one failure are added to the sensitivity and the specificity, z^2 units, half of them positive, to the
    judge's rate. The whole range where the judge tells nothing.
    """
    z = NormalDist().inv_cdf(1 - (1 - confidence) / 2)
    (p, n), (se, n_se), (sp, n_sp) = positive, sensitivity, specificity
    p = (n * p + z * z / 2) / (n + z * z)
    se, sp = (n_se * se + 1) / (n_se + 2), (n_sp * sp + 1) / (n_sp + 2)
    youden = se + sp - 1
    if youden <= 0:
        return 0.0, 1.0
    value = (p + sp - 1) / youden
    of_se, of_sp = se * (1 - se) / (n_se + 2), sp * (1 - sp) / (n_sp + 2)
    error = sqrt(p * (1 - p) / (n + z * z) + value**2 * of_se + (1 - value) ** 2 * of_sp) / youden
    shift = 2 * z * z * (value * of_se - (1 - value) * of_sp)
    return max(0.0, min(1.0, value + shift - z * error)), max(0.0, min(1.0, value + shift + z * error))


def _rogan_gladen(sums: FloatArray) -> FloatArray:
    n, positive, ones, true_ones, zeros, true_zeros = sums.T
    sensitivity, specificity = ratio(true_ones, ones), ratio(true_zeros, zeros)
    return ratio(ratio(positive, n) + specificity - 1, sensitivity + specificity - 1)


def _why_no_rate(total: FloatArray) -> str:
    n, _, ones, _, zeros, _ = total
    if not n:
        return "the judge labelled no unit"
    if not ones or not zeros:
        return f"no unit has the human label {0 if ones else 1}: " + (
            "the specificity is unknown" if ones else "the sensitivity is unknown"
        )
    return "sensitivity + specificity is not above 1: the judge tells nothing about this rate"
