"""Adjust p-values for the number of tests."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from judge.stats.ratings import FloatArray


def holm(p_values: ArrayLike) -> FloatArray:
    """Return Holm's step-down adjusted p-values, in the order given. Reject a hypothesis if its adjusted
    p-value <= alpha.

    adjusted_(i) = max_{j <= i} min(1, (m - j + 1) p_(j)). Holm 1979. Controls the family-wise error rate.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    return np.asarray(np.minimum(stepped, 1.0)[np.argsort(order)])


# The best of 10 prompts on the same labels would be trusted in 25 to 32 % of studies without a correction. A judge at
# the margin passes a test at a small level a with a probability above a: in simulations, it is proportional to a^(1 /
# 1.75).
TAIL = 1.75


def share_of(size: int) -> float:
    """Return the share of the significance level that each of `size` judges gets, so that the level limits
    the error rate over all of them together.
    """
    # Exact tests would use 1 / size (Holm). The verdict's statistic is skewed on a few hundred units, and Student's t has
    # thinner tails: with 1 / size, ten judges at the margin were trusted too often at some look. With this share they are
    # trusted in a mean of .027 and at most .062 of 1,000 studies in 12 cells (benchmarks/verdict_families.csv).
    return float(size**-TAIL)


def holm_steps(names: Sequence[str], size: int, decided: Callable[[str, float], bool]) -> dict[str, float]:
    """Return the share of the significance level at which each judge is tested, by Holm's procedure.

    The family consists of `size` judges that share the level. `decided(name, share)` tests a judge at this
    share of the level and returns whether the judge is decided. At first, every judge is tested at
    `share_of(size)`. The undecided judges are then tested again. Their share is larger, because decided
    judges no longer count in the size of the family.
    """
    left, shares, open_size = list(names), dict.fromkeys(names, share_of(size)), size
    while left:
        newly_decided = [name for name in left if decided(name, share_of(open_size))]
        shares |= dict.fromkeys(left, share_of(open_size))
        if not newly_decided or len(newly_decided) == open_size:
            break
        left, open_size = [name for name in left if name not in newly_decided], open_size - len(newly_decided)
    return shares


def benjamini_yekutieli(p_values: ArrayLike) -> FloatArray:
    """Return Benjamini & Yekutieli's adjusted p-values, in the order given. Reject a hypothesis if its
    adjusted p-value <= q.

    adjusted_(i) = min_{j >= i} min(1, p_(j) m H_m / j) with H_m = 1 + 1/2 + ... + 1/m. Ann. Stat. 29(4), 2001.
    Controls the false discovery rate under any dependence.
    """
    p = np.asarray(p_values, dtype=np.float64)
    m = len(p)
    ranks = np.arange(1, m + 1)
    order = np.argsort(p, kind="stable")
    stepped = p[order] * m * (1 / ranks).sum() / ranks
    stepped = np.minimum.accumulate(stepped[::-1])[::-1]
    return np.asarray(np.minimum(stepped, 1.0)[np.argsort(order)])
