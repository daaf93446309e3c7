"""Two functions of sums over questions, compared by a paired test whose interval and p value say the same.

Each question's pseudo-value is what it adds to the estimate (Tukey 1958; Efron and Tibshirani, An Introduction to the
Bootstrap, chapter 11); the paired t-test of pseudo-values by question is then the test of the difference. For plain
means the pseudo-values are the questions' own values (times their share of units), and it is the ordinary paired t-test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from judge.errors import BadInput
from judge.stats.ratings import FloatArray

FEWEST = 2
"""Questions without which there is no test."""


@dataclass(frozen=True, slots=True)
class Paired:
    """`difference` = second - first, with the t interval and the two-sided p value of the same test; None: undefined,
    and `reason` says why."""

    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    n_clusters: int
    reason: str | None = None


def pseudo_values(sums: FloatArray, value: Callable[[FloatArray], FloatArray]) -> tuple[float, FloatArray]:
    """The estimate on all G questions, and G pseudo-values G·all - (G - 1)·(all but g); nan where undefined.

    `sums` [G, p + 1] are a question's sums, the last column its units; `value` maps such rows to numbers.
    """
    total = sums.sum(axis=0, keepdims=True)
    whole = float(value(total)[0])
    count = len(sums)
    return whole, count * whole - (count - 1) * value(total - sums)


def paired_difference(
    first: tuple[float, FloatArray], second: tuple[float, FloatArray], confidence: float = 0.95
) -> Paired:
    """second - first of two estimates with their pseudo-values on the same questions in the same order.

    A difference that is the same on every question has no spread: its p value is that of the sign test, 2^(1 - G), and
    no interval is given. Raises BadInput for different numbers of questions.
    """
    from scipy.special import stdtr, stdtrit

    if first[1].shape != second[1].shape:
        raise BadInput("a paired comparison needs the same questions on both sides")
    apart = second[1] - first[1]
    n = len(apart)
    difference = second[0] - first[0]
    if n < FEWEST:
        return Paired(None, None, None, None, n, f"{n} shared questions: a test needs {FEWEST}")
    if not (np.isfinite(apart).all() and np.isfinite(difference)):
        return Paired(
            None, None, None, None, n, "undefined on the shared questions, or on all but one of them"
        )
    error = float(apart.std(ddof=1) / np.sqrt(n))
    if error < 1e-12 * max(1.0, abs(difference)):
        same = abs(difference) < 1e-12
        return Paired(difference, None, None, 1.0 if same else 2.0 ** (1 - n), n)
    # The difference itself is the plain estimate: the mean of pseudo-values differs from it by the jackknife's bias.
    t = difference / error
    width = float(stdtrit(n - 1, (1 + confidence) / 2)) * error
    return Paired(difference, difference - width, difference + width, float(2 * stdtr(n - 1, -abs(t))), n)
