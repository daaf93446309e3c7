"""The alt-test for many studies at once, in both directions: condition (c) of the verdict."""

from __future__ import annotations

import numpy as np

from judge.stats.limits import ENOUGH, FAILS, FEWEST_QUESTIONS, HOLDS, OPEN, Limits
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.stats.sums import Sums


def alt_state(found: Sums, limits: Limits, weights: IntArray | None) -> IntArray:
    """(c): HOLDS when the judge wins against half of the people tested, FAILS when it loses to half of them by more than
    epsilon; both by t-tests with Benjamini and Yekutieli's limits, of those who share thirty questions. Three people
    must be tested: OPEN where they share ten, else HOLDS says that the condition is not asked."""
    studies = len(found.units) if weights is None else len(weights)
    k = found.apart.shape[2]
    if k < 3:
        return np.full(studies, HOLDS)
    from scipy.special import stdtr

    d, n = found.apart, found.apart_units

    def total(x: FloatArray) -> FloatArray:
        """Over the questions, [studies, people]; they are sums of whole numbers, so no order of adding matters."""
        if weights is None:
            return np.asarray(x.sum(axis=1))
        return np.asarray(weights @ x[0] if len(x) == 1 else np.einsum("sg,sgk->sk", weights, x))

    units, there = total(n), total((n > 0).astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total(d) / units
        if limits.clustered:
            g, around = there, total(d * d) - 2 * mean * total(d * n) + mean**2 * total(n * n)
        else:
            g, around = units, total(found.apart_squares) - units * mean**2
        error = np.sqrt(g / (g - 1) * np.maximum(around, 0)) / units
        t = (mean - limits.epsilon) / np.maximum(error, 1e-12)
    few, tested = g >= FEWEST_QUESTIONS, g >= ENOUGH
    win = np.where(tested & (mean < limits.epsilon), stdtr(np.maximum(g - 1, 1), t), 1.0)
    lose = np.where(tested & (mean > limits.epsilon), stdtr(np.maximum(g - 1, 1), -t), 1.0)
    compared = tested.sum(axis=1)
    wins, losses = _rejected(win, tested, limits.q), _rejected(lose, tested, limits.q)
    half = compared / 2
    state = np.where(wins >= half, HOLDS, np.where(losses >= half, FAILS, OPEN))
    return np.where(compared >= 3, state, np.where(few.sum(axis=1) >= 3, OPEN, HOLDS))


def _rejected(p: FloatArray, tested: BoolArray, q: float) -> IntArray:
    """How many hypotheses Benjamini and Yekutieli reject, row by row."""
    k = p.shape[1]
    ranked = np.sort(np.where(tested, p, np.inf), axis=1)
    m = np.maximum(tested.sum(axis=1, keepdims=True), 1)
    harmonic = np.cumsum(1 / np.arange(1, k + 1))[m - 1]
    below = ranked <= q * np.arange(1, k + 1) / (m * harmonic)
    return np.where(below.any(axis=1), k - below[:, ::-1].argmax(axis=1), 0)
