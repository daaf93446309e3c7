"""Plan the number of questions and units to label, for an interval of a given width or for a decision.

Variance of a mean over clusters of m units: sd^2 (1 + (m - 1) icc) / n (Kish 1965, Survey Sampling, section
5.4). To first order, a coefficient is the mean of its influence values, so plans use the variance of these
values. Existing labels count with their actual variance, whatever the sizes of their questions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, isfinite, sqrt
from statistics import NormalDist

import numpy as np

from judge.errors import BadInput
from judge.notes import Note
from judge.stats.bootstrap import FEW_CLUSTERS, FEWEST_CLUSTERS
from judge.stats.coefficients import disagreement
from judge.stats.metrics import METRICS, domain_numbers, metric_key
from judge.stats.patterns import collapse
from judge.stats.ratings import FloatArray, IntArray, Ratings

_NORMAL = NormalDist()
# A plan for more units than this usually means that the goal was mistyped.
MOST_UNITS = 10**12


@dataclass(frozen=True)
class Design:
    """The input of a plan: the value, the spread of one unit, and the correlation of units within a question.

    `n_units` and `n_clusters` are the units and questions that are already labelled (0 without a pilot).
    `effect` is the design effect of these labels: the variance of their mean, divided by the variance for
    independent units, sd^2 / n_units. If `effect` is None, it is computed as 1 + (m - 1) icc, for questions
    with m units each. `least` is the smallest possible value; the largest is 1. `sd_at` returns the spread at
    another value, if there is a model for it.
    """

    value: float
    sd: float
    icc: float
    n_units: int = 0
    n_clusters: int = 0
    effect: float | None = None
    least: float = -inf
    sd_at: Callable[[float], float] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class SampleSize:
    """A plan: the numbers of questions and units to label, with `per_cluster` units in each question.

    `n_clusters` and `n_units` are the numbers for a study without a pilot. `more_clusters` and `more_units`
    are the numbers that are needed in addition to the pilot. `notes` explain the numbers.
    """

    per_cluster: int
    n_clusters: int
    n_units: int
    more_clusters: int
    more_units: int
    design_effect: float
    notes: tuple[str, ...] = ()


def pilot(ratings: Ratings, name: str = "cohen_kappa", *, level: str = "nominal") -> Design:
    """Return the design for one coefficient from existing labels. A pair coefficient needs the labels of two
    annotators.

    Unit values are jackknife pseudo-values; icc is the analysis-of-variance estimate, not below 0. Raises
    BadInput if the coefficient is undefined on these labels, or if it needs two annotators and the table has
    more.
    """
    coefficient = METRICS[metric_key(name, level)]
    if coefficient.pair and len(ratings.annotators) != 2:
        raise BadInput(
            f"{name} can only be planned for two annotators, not {len(ratings.annotators)}: select two"
        )
    patterns = collapse(ratings.codes if coefficient.pair else ratings.counts)
    values = domain_numbers(coefficient, ratings)
    used = coefficient.mask_used(patterns.rows)
    rows = coefficient.features(patterns.rows, values)[used]
    count = patterns.count[used]
    n = int(count.sum())
    total = count @ rows
    if ratings.weights is not None and n:
        # The totals of n units with the shares of the frame. The spread remains that of the units as drawn.
        weight = np.bincount(patterns.of_unit, weights=ratings.weights, minlength=len(patterns.rows))[used]
        total = (weight @ rows) * n / weight.sum()
    point = float(coefficient.value(total[None, :], values)[0]) if n else np.nan
    left_out = coefficient.value(total[None, :] - rows, values) if n else np.empty(0)
    if n < 2 or not np.isfinite(point) or not np.isfinite(left_out).all():
        raise BadInput(f"{name} is undefined on these {n} units, so there is nothing to plan from")
    pseudo = np.full(len(patterns.rows), np.nan)
    pseudo[used] = n * point - (n - 1) * left_out
    mask = used[patterns.of_unit]
    return _design(point, pseudo[patterns.of_unit][mask], ratings.clusters[mask], coefficient.least)


def expected_rate(rate: float, *, icc: float = 0.0) -> Design:
    """Return the design for a share of units, without a pilot. Raises BadInput for a rate or icc outside 0..1."""
    _check_icc(icc)
    if not 0 < rate < 1:
        raise BadInput(f"the rate to plan for must be between 0 and 1, not {rate}")

    def sd(at: float) -> float:
        return sqrt(at * (1 - at)) if 0 < at < 1 else sqrt(rate * (1 - rate))

    return Design(rate, sd(rate), icc, least=0.0, sd_at=sd)


def expected_kappa(
    kappa: float, shares: Sequence[float], *, weights: str | None = None, icc: float = 0.0
) -> Design:
    """Return the design for Cohen's kappa, without a pilot. Both annotators are assumed to use the labels
    with these `shares`.

    The cells are kappa share_i [i = j] + (1 - kappa) share_i share_j, and the variance comes from the delta
    method (Fleiss, Cohen & Everitt 1969). Raises BadInput unless shares are positive and sum to 1, and 0 <=
    kappa < 1.
    """
    _check_icc(icc)
    p = np.asarray(shares, dtype=np.float64)
    if len(p) < 2 or not (p > 0).all() or abs(float(p.sum()) - 1) > 1e-6:
        raise BadInput("shares must be two or more positive numbers that sum to 1")
    if not 0 <= kappa < 1:
        raise BadInput(f"the kappa to plan for must be at least 0 and below 1, not {kappa}")
    chance = np.outer(p, p)
    w = disagreement(len(p), weights)
    expected, margin = float((w * chance).sum()), w @ p

    def sd(at: float) -> float:
        mixed = min(1.0, max(0.0, at))
        cells = mixed * np.diag(p) + (1 - mixed) * chance
        observed = float((w * cells).sum())
        influence = -(w - observed) / expected + observed / expected**2 * (
            margin[:, None] + margin[None, :] - 2 * expected
        )
        return sqrt(float((cells * influence**2).sum()))

    return Design(kappa, sd(kappa), icc, least=-1.0, sd_at=sd)


def plan_width(
    design: Design, width: float, *, per_cluster: Sequence[int] = (1, 2, 3, 5, 10), confidence: float = 0.95
) -> list[SampleSize]:
    """Return the labels needed for an interval of this full width, for several numbers of units per question."""
    if not 0 < width < inf:
        raise BadInput(f"the width must be above 0, not {width}")
    if width >= 1 - design.least:
        raise BadInput(
            f"no interval is as wide as {width:g}, because values range from {design.least:g} to 1"
        )
    tail = (1 - confidence) / 2

    def independent(clusters: int) -> float:
        root = 2 * _quantile(1 - tail, clusters) * design.sd / width
        return root * root

    return [_plan(design, independent, m, 2) for m in per_cluster]


def plan_decision(
    design: Design,
    threshold: float,
    *,
    per_cluster: Sequence[int] = (1, 2, 3, 5, 10),
    confidence: float = 0.95,
    power: float = 0.8,
) -> list[SampleSize]:
    """Return the number of labels needed for an interval that excludes `threshold` with the probability
    `power`. It is assumed that the value does not change.

    n = ((z_confidence sd_threshold + z_power sd) / (value - threshold))^2, where sd_threshold is the spread
    at the threshold if the design has `sd_at`, and otherwise sd. (The interval is wider on the side of
    smaller values.) A plan has at least the ten questions that a verdict needs. If the pilot's own interval
    includes the threshold, a note says that the probability does not apply to all values in that interval.
    Raises BadInput if the threshold is outside the scale. Also raises BadInput if the threshold equals the
    value, because then no number of labels is enough.
    """
    if not isfinite(threshold) or not design.least <= threshold <= 1:
        lowest = f"between {design.least:g} and 1" if isfinite(design.least) else "below 1"
        raise BadInput(f"the threshold must be {lowest} (the range of the values), not {threshold:g}")
    distance = abs(design.value - threshold)
    if distance < 1e-9:
        raise BadInput(f"the value equals the threshold {threshold}, so no number of labels is enough")
    tail, z_power = (1 - confidence) / 2, _NORMAL.inv_cdf(power)
    sd_there = design.sd_at(threshold) if design.sd_at else design.sd

    def independent(clusters: int) -> float:
        return ((_quantile(1 - tail, clusters) * sd_there + z_power * design.sd) / distance) ** 2

    plans = [_plan(design, independent, m, FEWEST_CLUSTERS) for m in per_cluster]
    if design.n_units and distance < _NORMAL.inv_cdf(1 - tail) * design.sd * sqrt(
        _pilot_effect(design) / design.n_units
    ):
        unsure = Note("side_open", threshold=threshold, confidence=confidence)
        plans = [replace(plan, notes=(*plan.notes, unsure)) for plan in plans]
    return plans


def _quantile(level: float, clusters: int) -> float:
    """Return the quantile of Student's t with clusters - 1 degrees of freedom; from 30 clusters on, the
    normal quantile.
    """
    if clusters >= FEW_CLUSTERS:
        return _NORMAL.inv_cdf(level)
    # The import takes a while, and large plans do not need it.
    from scipy.special import stdtrit

    return float(stdtrit(clusters - 1, level))


def _plan(design: Design, independent: Callable[[int], float], m: int, fewest: int) -> SampleSize:
    """Return the plan for questions with m units each. `independent(g)` is the number of independent units
    that g clusters need.
    """
    if m < 1:
        raise BadInput(f"each question must have at least one unit, not {m}")
    # A pilot without any disagreement would plan for no labels at all.
    if design.sd == 0:
        raise BadInput("all values in the pilot are equal: label more units, or plan from assumptions")
    effect = 1 + (m - 1) * design.icc
    if not independent(FEW_CLUSTERS) * effect < MOST_UNITS:
        raise BadInput(f"the plan needs more than {MOST_UNITS:,} units: choose a less ambitious goal")

    def missing(there: int, units: int, pilot_effect: float, fewest: int) -> int:
        """Return how many questions to add if `there` questions, with `units` units in total, are already
        labelled.
        """
        more = max(0, fewest - there)
        while True:
            needed = independent(max(2, there + more))
            # The variance of all units together, pilot and new, each counting once, over sd^2:
            # (units pilot_effect + x effect) / (units + x)^2 <= 1 / needed, solved for x = more m.
            excess = needed * effect - 2 * units
            left = units * (needed * pilot_effect - units)
            x = (excess + sqrt(excess**2 + 4 * left)) / 2 if left >= 0 else 0.0
            if ceil(x / m) <= more:
                return more
            # With few clusters Student's t is wide, and each added cluster lowers the number needed, so they are
            # added one by one.
            more = ceil(x / m) if there + more >= FEW_CLUSTERS else more + 1

    clusters = missing(0, 0, 0.0, fewest)
    more = missing(design.n_clusters, design.n_units, _pilot_effect(design), fewest)
    return SampleSize(m, clusters, clusters * m, more, more * m, effect, _note_few(design, more))


def _pilot_effect(design: Design) -> float:
    """Return the pilot's design effect: the variance of its mean, divided by the variance for the same number
    of independent units.
    """
    if design.effect is not None:
        return design.effect
    per_pilot = design.n_units / design.n_clusters if design.n_clusters else 1.0
    return 1 + (per_pilot - 1) * design.icc


def _note_few(design: Design, more: int) -> tuple[str, ...]:
    notes = []
    if 0 < design.n_clusters < FEW_CLUSTERS:
        notes.append(Note("small_pilot", n=design.n_clusters, least=FEW_CLUSTERS))
    if design.n_clusters + more < FEW_CLUSTERS:
        notes.append(Note("few_planned", least=FEW_CLUSTERS))
    return tuple(notes)


def _design(value: float, unit_values: FloatArray, clusters: IntArray, least: float) -> Design:
    sizes = np.bincount(clusters)
    n, g = len(unit_values), int((sizes > 0).sum())
    sd = float(unit_values.std(ddof=1))
    icc = intraclass(unit_values, clusters)
    if g < 2:
        # Units of a single question carry no information about other questions, so together they count as one unit.
        effect = float(n)
    else:
        totals = np.bincount(clusters, weights=unit_values - unit_values.mean())
        effect = g / (g - 1) * float((totals**2).sum()) / (n * sd**2) if sd > 0 else 1.0
    return Design(value, sd, icc, n, g, effect, least)


def intraclass(values: FloatArray, clusters: IntArray) -> float:
    """Return the analysis-of-variance estimate of the intraclass correlation, clipped to 0..1. The estimate
    is 0 if there are no groups.

    (MSB - MSW) / (MSB + (m0 - 1) MSW). Donner & Koval 1980, Biometrics 36.
    """
    sizes = np.bincount(clusters).astype(np.float64)
    present = sizes > 0
    totals = np.bincount(clusters, weights=values)[present]
    sizes = sizes[present]
    n, g = len(values), len(sizes)
    if g < 2 or n == g:
        return 0.0
    between = float((totals**2 / sizes).sum() - values.sum() ** 2 / n)
    within = float((values**2).sum() - (totals**2 / sizes).sum())
    msb, msw = between / (g - 1), within / (n - g)
    m0 = (n - float((sizes**2).sum()) / n) / (g - 1)
    total = msb + (m0 - 1) * msw
    return min(1.0, max(0.0, (msb - msw) / total)) if total > 0 else 0.0


def _check_icc(icc: float) -> None:
    if not 0 <= icc <= 1:
        raise BadInput(f"the intraclass correlation must be from 0 to 1, not {icc}")
