"""Splitting questions into parts at random, evenly over strata, and what a test of so many units can show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri, stdtrit

from judge.errors import BadInput
from judge.stats.jackknife import pseudo_values
from judge.stats.ratings import FloatArray, IntArray

_GOLDEN = (5**0.5 - 1) / 2


def spread_parts(strata: Sequence[tuple[float, ...]], shares: Sequence[float], seed: int) -> IntArray:
    """A part for each thing `[N]`, 0 .. len(shares) - 1: at random, and every stratum in about the shares asked for.

    Things are put in order of their stratum, shuffled within it; thing i of that order goes to the part that
    frac(u + i (sqrt 5 - 1) / 2) falls in, u uniform. Each has exactly the chance of a part's share, and any stretch of the
    order holds the parts in their shares as evenly as a sequence can (the golden ratio's has the least discrepancy;
    Niederreiter, Random Number Generation and Quasi-Monte Carlo Methods, 1992, section 3.1).

    Raises BadInput for shares that are not positive or do not sum to one.
    """
    if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise BadInput("shares are numbers above 0 that sum to 1")
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(strata))
    order = sorted(shuffled.tolist(), key=lambda i: strata[i])
    at = (rng.random() + _GOLDEN * np.arange(len(order))) % 1
    parts = np.empty(len(order), dtype=np.int64)
    parts[order] = np.minimum(np.searchsorted(np.cumsum(shares), at, side="right"), len(shares) - 1)
    return parts


def kappa_sums(first: IntArray, second: IntArray, clusters: IntArray, n_labels: int) -> FloatArray:
    """For each cluster: both give the same label, the first's labels, the second's, and last the units [G, 2 + 2 q].

    All units count: leave out beforehand those that one of the two has no label of.
    """
    n = int(clusters.max()) + 1 if len(clusters) else 0
    sums = np.zeros((n, 2 + 2 * n_labels))
    sums[:, 0] = np.bincount(clusters, weights=first == second, minlength=n)
    for k in range(n_labels):
        sums[:, 1 + k] = np.bincount(clusters, weights=first == k, minlength=n)
        sums[:, 1 + n_labels + k] = np.bincount(clusters, weights=second == k, minlength=n)
    sums[:, -1] = np.bincount(clusters, minlength=n)
    return sums[sums[:, -1] > 0]


def kappa_of(sums: FloatArray) -> FloatArray:
    """Cohen's kappa of rows of such sums, nan where it is undefined."""
    q = (sums.shape[1] - 2) // 2
    n = sums[:, -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        agree = sums[:, 0] / n
        chance = (sums[:, 1 : 1 + q] * sums[:, 1 + q : 1 + 2 * q]).sum(axis=1) / n**2
        return np.where(chance < 1 - 1e-12, (agree - chance) / (1 - chance), np.nan)


def difference_spread(first: FloatArray, second: FloatArray) -> float | None:
    """The standard deviation, over questions, of what each adds to the difference of two kappas.

    `first` and `second` are `kappa_sums` of two judges with the same reference on the same units: the paired
    difference on G questions has this over sqrt G as its standard error. None where a kappa is undefined.
    """
    apart = pseudo_values(second, kappa_of)[1] - pseudo_values(first, kappa_of)[1]
    if len(apart) < 2 or not np.isfinite(apart).all():
        return None
    return float(apart.std(ddof=1))


def assumed_spread(
    n_units: int, n_clusters: int, chance: float, differ: float = 0.25, icc: float = 0.1
) -> float:
    """The same where no two judges have been seen: they differ in being right on a share `differ` of the units.

    Per unit the variance of the paired difference is then `differ` (McNemar); units of one question are alike to the
    intraclass correlation `icc`; kappa stretches agreement by 1 / (1 - chance).
    """
    each = n_units / n_clusters
    variance = differ * (1 + (each - 1) * icc) / each
    return float(np.sqrt(variance) / (1 - chance))


def detectable(spread: float, n_clusters: int, level: float, power: float = 0.8) -> float:
    """The difference that a two-sided paired test at `level` on `n_clusters` questions finds with chance `power`.

    (t_{1 - level / 2} + z_power) spread / sqrt G: Cohen, Statistical Power Analysis, 1988, chapter 2.
    """
    return float((stdtrit(n_clusters - 1, 1 - level / 2) + ndtri(power)) * spread / np.sqrt(n_clusters))
