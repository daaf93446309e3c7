"""Means of a judge's values corrected by a sample that people labelled: PPI++ and Rogan-Gladen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from judge.errors import BadInput
from judge.stats.bootstrap import SAME, How, Settings
from judge.stats.coefficients import ratio
from judge.stats.continuous import cluster_numbers, numbers, unit_sums
from judge.stats.estimate import Estimate, about, unseen_share
from judge.stats.patterns import n_present
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.types import Measure


@dataclass(frozen=True)
class Corrected:
    """The same mean three ways. `lam` is the weight of the judge in `ppi`: 0 is human only, None undefined."""

    judge_only: Measure
    human_only: Measure
    ppi: Measure
    lam: float | None


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

    theta = lam mean_N(judge) + mean_n(human - lam judge), over N units that only the judge and n that
    both labelled. `lam` None takes Cov_n(human, judge) / ((1 + n/N) Var_n+N(judge)), cut to 0..1, which is the
    one with the least variance; a constant judge gives 0, human only.
    Angelopoulos, Duchi & Zrnic 2023, PPI++, arXiv 2311.01453, section 6. Standard errors are
    robust to clusters, with quantiles of t(g - 1), g clusters with human labels. With lam=1 the interval
    can be wider than without the judge. The sample must be random among the units judged.

    `weights`, one per unit: for how many units of those judged a labelled one stands, where they were drawn with
    unequal probabilities. Means over labelled units are then weighted (Hajek), and mean_N(judge) - mean_n(judge)
    becomes (n+N)/N (mean_n+N(judge) - weighted mean_n(judge)), the same when all weights are. Its intervals do not
    use that strata were drawn apart: they are rather too wide.
    `bounds` are the least and the greatest possible value; what leaves them is cut.

    `judge` and `human` hold one number per unit, nan where there is none. Raises BadInput for
    another shape, infinities, lam outside 0..1, a labelled unit without a weight above 0.
    """
    f, y = numbers(judge, "judge", dimensions=1), numbers(human, "human", dimensions=1)
    if f.shape != y.shape:
        raise BadInput(f"{len(f)} judge values, {len(y)} human values")
    if lam is not None and not 0 <= lam <= 1:
        raise BadInput(f"lambda lies between 0 and 1, not {lam}")
    settings = Settings(interval=None, confidence=confidence)
    groups, clustered = cluster_numbers(clusters, len(f))
    judged, labelled = ~np.isnan(f), ~np.isnan(y)
    both, only = judged & labelled, judged & ~labelled
    w = _weights(weights, labelled)
    sample = _Sample(groups, clustered, len(f), settings.confidence, field, bounds)
    judge_only = sample.mean("judge_only", f, judged, np.ones(len(f)))
    human_only = sample.mean("human_only", y, labelled, w)
    if int(both.sum()) < 2 or n_present(groups[both]) < 2:
        blank = about("ppi", int(both.sum()), len(f), n_present(groups[both]), field=field)
        reason = "fewer than two questions or units have both a judge's and a human label"
        return Corrected(judge_only, human_only, replace(blank, reason=reason, confidence=confidence), None)
    notes: tuple[str, ...] = ()
    shift, judge_part = _shift(sample, f, judged, both, only, None if weights is None else w)
    if not only.any():
        lam, notes = 0.0, ("human only: every unit that is judged has a human label",)
    elif np.ptp(f[judged]) == 0:
        lam, notes = 0.0, ("human only: the judge gives the same value everywhere",)
    elif lam is None:
        n, rest = int(both.sum()), int(only.sum())
        covariance = float(np.cov(y[both], f[both], ddof=0, aweights=w[both])[0, 1])
        best = covariance / ((1 + n / rest) * float(f[judged].var(ddof=1)))
        lam = min(1.0, max(0.0, best))
        if best <= 0:
            notes = ("human only: the judge's values do not rise with the human ones",)
    value = float(np.average(y[both], weights=w[both])) + lam * shift
    about_all = about("ppi", int(judged.sum()), len(f), n_present(groups[judged]), field=field)
    influence = sample.influence(y, both, w) - lam * judge_part
    ppi = sample.with_interval(about_all, value, influence, n_present(groups[both]))
    return Corrected(judge_only, human_only, replace(ppi, notes=(*ppi.notes, *notes)), lam)


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
    sample: _Sample,
    f: FloatArray,
    judged: BoolArray,
    both: BoolArray,
    only: BoolArray,
    weights: FloatArray | None,
) -> tuple[float, FloatArray]:
    """How far the judge's mean elsewhere lies from its mean on the labelled units, and minus what clusters add to it."""
    one = np.ones(len(f))
    if not only.any():
        return 0.0, sample.influence(f, both, one if weights is None else weights)
    if weights is None:
        return float(f[only].mean() - f[both].mean()), sample.influence(f, both, one) - sample.influence(
            f, only, one
        )
    scale = float(judged.sum() / only.sum())
    apart = float(f[judged].mean() - np.average(f[both], weights=weights[both]))
    part = sample.influence(f, both, weights) - sample.influence(f, judged, one)
    return scale * apart, scale * part


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
        return self.with_interval(found, value, self.influence(values, used, weights), g)

    def with_interval(self, found: Measure, value: float, influence: FloatArray, g: int) -> Measure:
        found = replace(found, confidence=self.confidence)
        least, most = self.bounds or (-np.inf, np.inf)
        cut: tuple[str, ...] = ()
        if not least <= value <= most:
            cut = (f"cut to {least:g}..{most:g} from {value:.3f}",)
        found = replace(found, value=min(most, max(least, value)))
        if g < 2:
            return replace(found, notes=(*cut, "no interval: it takes at least two clusters"))
        few = (f"only {g} {'clusters' if self.clustered else 'units'} have labels",) if g < 30 else ()
        error = float(np.sqrt(g / (g - 1) * (influence**2).sum()))
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
            told = "no interval: all values are the same"
            return replace(found, notes=(*notes, told))
        # No cluster was seen with anything else: the exact binomial bound on the share of those that have.
        unseen = unseen_share(g, self.confidence) * (self.bounds[1] - self.bounds[0])
        told = "all values are the same: the other bound is the exact binomial one"
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
    to 0..1. The interval is our bootstrap by cluster over all of it at once, not that paper's, which takes
    units as independent. None when a class has no human label, or sens + spec <= 1.
    `weights` as in `corrected_mean`: sens and spec are then weighted shares.

    `judge` and `human` are 0, 1 or nan. Raises BadInput for other values. `how` as in `measures`.
    """
    f, y = numbers(judge, "judge", dimensions=1), numbers(human, "human", dimensions=1)
    if f.shape != y.shape:
        raise BadInput(f"{len(f)} judge values, {len(y)} human values")
    for name, values in (("judge", f), ("human", y)):
        if not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
            raise BadInput(f"{name} must be 0, 1 or nan for a rate")
    groups, clustered = cluster_numbers(clusters, len(f))
    judged = ~np.isnan(f)
    w = _weights(weights, ~np.isnan(y))[judged]
    f, y, used_groups = f[judged], y[judged], groups[judged]
    ones, zeros = w * (y == 1), w * (y == 0)
    rows = np.column_stack([np.ones(len(f)), f, ones, ones * (f == 1), zeros, zeros * (f == 0)])
    sums = unit_sums(rows, used_groups, clustered)
    raw = float(_rogan_gladen(sums.total[None, :])[0]) if len(f) else np.nan
    notes = (f"cut to 0..1 from {raw:.3f}",) if raw < 0 or raw > 1 else ()
    return Estimate(
        about=about("rogan_gladen", len(f), len(judged), n_present(used_groups), field=field),
        tally=sums,
        value=lambda drawn: np.clip(_rogan_gladen(drawn), 0.0, 1.0),
        undefined=lambda: _why_no_rate(sums.total),
        clustered=clustered,
        notes=notes,
    ).measure(Settings(**how))


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
