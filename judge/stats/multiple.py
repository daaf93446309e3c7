"""Adjust p-values for the number of tests."""

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
