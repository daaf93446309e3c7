"""Split questions into parts at random, evenly over strata, and compute the difference that a test on a given
number of questions can detect.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri, stdtrit

from judge.errors import BadInput
from judge.stats.ratings import IntArray

_GOLDEN = (5**0.5 - 1) / 2
# The assumption for two judges that have not been compared yet: they differ on a quarter of the units, and the units
# of one question have this intraclass correlation.
_DIFFER, _ICC = 0.25, 0.1
# The usual power of a planned test (Cohen 1988).
_POWER = 0.8


def spread_parts(strata: Sequence[tuple[float, ...]], shares: Sequence[float], seed: int) -> IntArray:
    """Return a random part for each item `[N]`, 0 .. len(shares) - 1, with about the requested shares in
    every stratum.

    Items are ordered by stratum and shuffled within each stratum. Item i in that order goes to the part that
    contains frac(u + i (sqrt 5 - 1) / 2), where u is uniform. The probability that an item is in a part is
    exactly the part's share. Among any consecutive items of the order, the parts are distributed as evenly as
    possible, because the golden ratio's sequence has the least discrepancy (Niederreiter, Random Number
    Generation and Quasi-Monte Carlo Methods, 1992, section 3.1).

    Raises BadInput for shares that are not positive or do not sum to one.
    """
    if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise BadInput("shares must be numbers above 0 that sum to 1")
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(strata))
    order = sorted(shuffled.tolist(), key=lambda i: strata[i])
    at = (rng.random() + _GOLDEN * np.arange(len(order))) % 1
    parts = np.empty(len(order), dtype=np.int64)
    # In floats, the shares may sum to slightly less than 1, which would give an index after the last part.
    parts[order] = np.minimum(np.searchsorted(np.cumsum(shares), at, side="right"), len(shares) - 1)
    return parts


def assumed_spread(n_units: int, n_clusters: int, chance: float) -> float:
    """Return the assumed spread of a paired difference over questions, for use before any two judges have
    been compared.

    If two judges differ on a share of the units, that share is the variance of their paired difference
    (McNemar). Kappa scales agreement by 1 / (1 - chance).
    """
    each = n_units / n_clusters
    variance = _DIFFER * (1 + (each - 1) * _ICC) / each
    return float(np.sqrt(variance) / (1 - chance))


def detectable(spread: float, n_clusters: int, level: float) -> float:
    """Return the difference that a two-sided paired test at `level` on `n_clusters` questions detects with probability .8.

    (t_{1 - level / 2} + z_power) spread / sqrt G: Cohen, Statistical Power Analysis, 1988, chapter 2.
    """
    return float((stdtrit(n_clusters - 1, 1 - level / 2) + ndtri(_POWER)) * spread / np.sqrt(n_clusters))
