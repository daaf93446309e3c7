"""Agreement coefficients as functions of sums: each unit contributes a row, and the value is computed from
the sums of rows.

This form makes the bootstrap fast (`patterns.Tally`). One table and thousands of resamples are processed in
the same way: `sums` has the shape `[B, p]`, and the values have the shape `[B]`, with nan for undefined
values.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from judge.stats.ratings import BoolArray, FloatArray, IntArray


class Coefficient(Protocol):
    """An agreement coefficient. If `pair` is true, a pattern consists of the two codes of a pair of
    annotators; otherwise it consists of the counts per label.

    `features` turns patterns `[K, w]` into rows `[K, p]`; `mask_used` selects the patterns that take part, and
    `pairable` selects those that count towards the number of units. `chance` is the disagreement expected by
    chance, scaled so that the largest disagreement is 1: value = 1 - observed / chance. `least` is a lower
    bound of the value. `TITLES`, if present, maps a measure's name to its title in reports.
    """

    @property
    def measure(self) -> str: ...
    @property
    def level(self) -> str | None: ...
    @property
    def weights(self) -> str | None: ...
    @property
    def pair(self) -> bool: ...
    @property
    def least(self) -> float: ...

    def mask_used(self, patterns: IntArray) -> BoolArray: ...
    def features(self, patterns: IntArray, numbers: FloatArray) -> FloatArray: ...
    def value(self, sums: FloatArray, numbers: FloatArray) -> FloatArray: ...
    def chance(self, sums: FloatArray, numbers: FloatArray) -> FloatArray: ...


def disagreement(q: int, weights: str | None) -> FloatArray:
    """Return the disagreement (0 to 1) between every two of `q` ordered labels: [i != j], |i - j| / (q - 1),
    or its square.
    """
    if weights is None:
        unequal: FloatArray = 1 - np.eye(q)
        return unequal
    i = np.arange(q)
    # With a single label there is no distance, and q - 1 would divide by zero.
    distance: FloatArray = np.abs(i[:, None] - i[None, :]) / max(q - 1, 1)
    return distance if weights == "linear" else distance**2


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return numerator / denominator, or nan where the denominator is not above zero."""
    result: FloatArray = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def pairable(counts: IntArray) -> BoolArray:
    """Return a mask of the patterns of units that at least two annotators labelled."""
    enough: BoolArray = counts.sum(axis=1) >= 2
    return enough


def _pair_agreement(counts: IntArray, weights: str | None) -> FloatArray:
    """Return the share of agreeing pairs of annotators within each unit, or 0 if the unit has no pair."""
    m = counts.sum(axis=1)
    similar = 1 - disagreement(counts.shape[1], weights)
    agreeing = ((counts @ similar - 1) * counts).sum(axis=1)
    share: FloatArray = agreeing / np.maximum(m * (m - 1), 1)
    return share


@dataclass(frozen=True)
class Percent:
    """Share of agreeing pairs of annotators, averaged over units with at least two labels."""

    TITLES: ClassVar[Mapping[str, str]] = {"percent": "percent agreement"}

    measure: str = "percent"
    level: str | None = None
    weights: str | None = None
    pair: bool = False
    least: float = 0.0

    def mask_used(self, patterns: IntArray) -> BoolArray:
        return pairable(patterns)

    def features(self, patterns: IntArray, numbers: FloatArray) -> FloatArray:
        return np.column_stack([_pair_agreement(patterns, None), pairable(patterns)]).astype(np.float64)

    def value(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        return ratio(sums[:, 0], sums[:, 1])

    def chance(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        return np.ones(len(sums))


@dataclass(frozen=True)
class Pabak(Percent):
    """Prevalence-adjusted, bias-adjusted kappa: (q p_o - 1) / (q - 1), with q labels in the domain.

    Byrt, Bishop & Carlin 1993 (q = 2); Brennan & Prediger 1981 for any q.
    """

    measure: str = "pabak"
    least: float = -1.0

    def value(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        observed, q = super().value(sums, numbers), len(numbers)
        return (q * observed - 1) / (q - 1) if q > 1 else np.full(len(sums), np.nan)

    def chance(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        return np.full(len(sums), 1 - 1 / len(numbers), dtype=np.float64)


@dataclass(frozen=True)
class _SharesByUnit(ABC):
    """A coefficient computed from the observed agreement over pairable units and the mean label shares over
    labelled units.

    If every unit has the same number of labels, the shares are those of Fleiss. If labels are missing, the
    coefficient is Gwet's generalisation (Handbook of Inter-Rater Reliability, 4th ed., sections 2.3 and 3.4).
    """

    measure: str
    level: str | None = None
    weights: str | None = None
    pair: bool = False
    least: float = -1.0

    def mask_used(self, patterns: IntArray) -> BoolArray:
        labelled: BoolArray = patterns.sum(axis=1) >= 1
        return labelled

    def features(self, patterns: IntArray, numbers: FloatArray) -> FloatArray:
        m = patterns.sum(axis=1)
        shares = patterns / np.maximum(m, 1)[:, None]
        return np.column_stack([_pair_agreement(patterns, self.weights), m >= 2, shares])

    def _compute_observed_and_shares(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        shares = ratio(sums[:, 2:], sums[:, 2:].sum(axis=1, keepdims=True))
        return ratio(sums[:, 0], sums[:, 1]), shares

    def value(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        observed, _ = self._compute_observed_and_shares(sums)
        value: FloatArray = 1 - ratio(1 - observed, _round_to_zero(self.chance(sums, numbers)))
        return value

    @abstractmethod
    def chance(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        """Return the disagreement expected by chance. The coefficients of Fleiss and Gwet differ only in this
        term.
        """


@dataclass(frozen=True)
class Fleiss(_SharesByUnit):
    """Fleiss' kappa: (p_o - p_e) / (1 - p_e) with p_e = sum_k share_k^2. Fleiss 1971, eq. 1-7."""

    TITLES: ClassVar[Mapping[str, str]] = {"fleiss_kappa": "Fleiss' kappa"}

    measure: str = "fleiss_kappa"

    def chance(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        _, shares = self._compute_observed_and_shares(sums)
        chance: FloatArray = 1 - (shares**2).sum(axis=1)
        return chance


@dataclass(frozen=True)
class Gwet(_SharesByUnit):
    """Gwet's AC1, or AC2 with weights w: p_e = T_w / (q (q - 1)) sum_k share_k (1 - share_k).

    T_w is the sum of all weights, and q is the number of labels in the domain. Gwet 2008, Br. J. Math. Stat.
    Psychol. 61, eq. 6; Gwet 2014, Handbook, 4th ed., section 3.5.
    """

    TITLES: ClassVar[Mapping[str, str]] = {"gwet_ac1": "Gwet's AC1", "gwet_ac2": "Gwet's AC2"}

    measure: str = "gwet_ac1"

    def chance(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        _, shares = self._compute_observed_and_shares(sums)
        q = len(numbers)
        # With a single label the formula divides by q - 1 = 0.
        if q < 2:
            return np.full(len(sums), np.nan)
        total = (1 - disagreement(q, self.weights)).sum()
        chance: FloatArray = 1 - total / (q * (q - 1)) * (shares * (1 - shares)).sum(axis=1)
        return chance


@dataclass(frozen=True)
class Cohen:
    """Cohen's kappa of two annotators: 1 - sum w o / sum w e over the confusion matrix.

    o is the share of units in a cell, e is the product of the margins, and w is the disagreement between
    positions in the declared domain: [i != j], |i - j| or (i - j)^2. If either annotator used only one label,
    kappa is undefined, because the formula would give 0 whatever the agreement. Cohen 1960; Cohen 1968 with
    weights.
    """

    TITLES: ClassVar[Mapping[str, str]] = {
        "cohen_kappa": "Cohen's kappa",
        "cohen_kappa:quadratic": "quadratic weighted kappa",
    }

    measure: str = "cohen_kappa"
    level: str | None = None
    weights: str | None = None
    pair: bool = True
    least: float = -1.0

    def mask_used(self, patterns: IntArray) -> BoolArray:
        both: BoolArray = patterns.min(axis=1) >= 0
        return both

    def features(self, patterns: IntArray, numbers: FloatArray) -> FloatArray:
        q = len(numbers)
        used = self.mask_used(patterns)
        a, b = np.where(used[:, None], patterns, 0).T
        rows = np.column_stack([disagreement(q, self.weights)[a, b], np.eye(q)[a], np.eye(q)[b]])
        rows[~used] = 0
        return rows

    def value(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        q = len(numbers)
        first, second = sums[:, 1 : 1 + q], sums[:, 1 + q :]
        n = first.sum(axis=1)
        observed = ratio(sums[:, 0], n)
        kappa: FloatArray = 1 - ratio(observed, self.chance(sums, numbers))
        # scikit-learn returns 0.0 if one annotator is constant and nan if both are; here both are undefined.
        # Sums of whole numbers are exact, so a margin has a single label exactly when its maximum is n.
        largest: FloatArray = np.maximum(first.max(axis=1), second.max(axis=1))
        return np.where(largest < n, kappa, np.nan)

    def chance(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        q = len(numbers)
        first, second = sums[:, 1 : 1 + q], sums[:, 1 + q :]
        n = first.sum(axis=1)
        return ratio(((first @ disagreement(q, self.weights)) * second).sum(axis=1), n * n)


def _round_to_zero(chance: FloatArray) -> FloatArray:
    """Set values below 1e-12 to zero."""
    # Shares that sum to one leave 1e-16 where the exact answer is zero.
    return np.where(np.abs(chance) < 1e-12, 0.0, chance)
