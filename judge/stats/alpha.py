"""Krippendorff's alpha. This is the only module that imports the `krippendorff` package.

Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"; Content Analysis, 4th ed., chapter 12.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import krippendorff
import numpy as np

from judge.stats.coefficients import pairable, ratio
from judge.stats.ratings import BoolArray, FloatArray, IntArray

Level = Literal["nominal", "ordinal", "interval", "ratio"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")
# The package builds arrays of units x labels x labels. Past this many cells it takes longer than a thousand resamples, and
# our sums take over. They are the same formula, and tests hold them equal to 1e-12.
PACKAGE_CELLS = 500_000
# Up to here interval alpha counts labels, whose distances lose no digit whatever lies far out; past it
# three moments take their place, or every resample would sum thousands of columns.
COUNTED_LABELS = 32


def package_alpha(counts: IntArray, numbers: FloatArray, level: str) -> float | None:
    """Return alpha from the `krippendorff` package, or None if the package would raise an error, return nan,
    or use too much memory.

    `counts` has the shape units x labels. Labels are passed as numbers in declared order, not as strings,
    because the package would treat a missing string as a category, and would drop a label called "nan".
    """
    counts = counts[pairable(counts)]
    used = counts.any(axis=0)
    if level in ("interval", "ratio"):
        counts, numbers = counts[:, used], numbers[used]
    units, q = counts.shape
    # With one label in use the package raises, or returns nan when it is given a domain.
    if units * q * q > PACKAGE_CELLS or int(used.sum()) < 2:
        return None
    domain = numbers if level in ("interval", "ratio") else np.arange(q, dtype=np.float64)
    level = cast(Level, level)
    # The package's default level is interval, so the level is always passed.
    return float(
        krippendorff.alpha(
            value_counts=counts.astype(np.int64), value_domain=domain, level_of_measurement=level
        )
    )


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's alpha = 1 - D_o / D_e over the pairable values; missing labels are allowed.

    D_o = (1/n) sum_u sum_ck n_uc n_uk d_ck / (m_u - 1), D_e = sum_ck n_c n_k d_ck / (n (n - 1)), where d is
    [c != k] (nominal), (sum_{g=c..k} n_g - (n_c + n_k)/2)^2 (ordinal, in declared order), (c - k)^2
    (interval) or ((c - k)/(c + k))^2 (ratio). Alpha is undefined if no unit has two labels, or if only one
    label was used.
    """

    TITLES: ClassVar[Mapping[str, str]] = {"krippendorff_alpha": "Krippendorff's alpha"}

    level: str = "nominal"
    measure: str = "krippendorff_alpha"
    weights: str | None = None
    pair: bool = False
    least: float = -1.0

    def mask_used(self, patterns: IntArray) -> BoolArray:
        return pairable(patterns)

    def features(self, patterns: IntArray, numbers: FloatArray) -> FloatArray:
        used = pairable(patterns)
        counts = np.where(used[:, None], patterns, 0).astype(np.float64)
        share = np.divide(1.0, counts.sum(axis=1) - 1, out=np.zeros(len(counts)), where=used)
        if self._uses_moments(numbers):
            return _moments(counts, numbers, share)
        if self.level == "ordinal":
            c, k = np.triu_indices(patterns.shape[1], 1)
            return np.column_stack([2 * counts[:, c] * counts[:, k] * share[:, None], counts])
        observed = ((counts @ _distance(self.level, numbers)) * counts).sum(axis=1) * share
        return np.column_stack([observed, counts])

    def value(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        observed, expected = self._disagreements(sums, numbers)
        return 1 - ratio(observed, expected)

    def chance(self, sums: FloatArray, numbers: FloatArray) -> FloatArray:
        _, expected = self._disagreements(sums, numbers)
        if self._uses_moments(numbers):
            return ratio(expected, np.full(len(sums), (numbers.max() - numbers.min()) ** 2))
        n = sums[:, -len(numbers) :]
        if self.level == "ordinal":
            ranks = _mid_ranks(n)
            return ratio(expected, (ranks.max(axis=1) - ranks.min(axis=1)) ** 2)
        # A label that occurs only on units without a pair cannot take part in a disagreement.
        there = (n[:, :, None] > 0) & (n[:, None, :] > 0)
        return ratio(expected, (there * _distance(self.level, numbers)).max(axis=(1, 2)))

    def _uses_moments(self, numbers: FloatArray) -> bool:
        return self.level == "interval" and len(numbers) > COUNTED_LABELS

    def _disagreements(self, sums: FloatArray, numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the observed and the expected disagreement per pairable value, each `[B]`."""
        if self._uses_moments(numbers):
            return moment_disagreements(sums)
        q = len(numbers)
        n_label = sums[:, -q:]
        n = n_label.sum(axis=1)
        pairs = n * (n - 1)
        if self.level == "nominal":
            return ratio(sums[:, 0], n), ratio(n * n - (n_label**2).sum(axis=1), pairs)
        if self.level == "ordinal":
            c, k = np.triu_indices(q, 1)
            ranks = _mid_ranks(n_label)
            distance = (ranks[:, c] - ranks[:, k]) ** 2
            expected = 2 * (n_label[:, c] * n_label[:, k] * distance).sum(axis=1)
            return ratio((sums[:, :-q] * distance).sum(axis=1), n), ratio(expected, pairs)
        expected = ((n_label @ _distance(self.level, numbers)) * n_label).sum(axis=1)
        return ratio(sums[:, 0], n), ratio(expected, pairs)


def _distance(level: str, numbers: FloatArray) -> FloatArray:
    if level == "nominal":
        return 1 - np.eye(len(numbers))
    difference = numbers[:, None] - numbers[None, :]
    if level == "interval":
        squared: FloatArray = difference**2
        return squared
    total = numbers[:, None] + numbers[None, :]
    return np.divide(difference, total, out=np.zeros_like(total), where=total != 0) ** 2


def _mid_ranks(n_label: FloatArray) -> FloatArray:
    """Return the mid-ranks of the labels. The ordinal distance between two labels is the difference between
    their mid-ranks.
    """
    return np.cumsum(n_label, axis=1) - n_label / 2


def _moments(counts: FloatArray, numbers: FloatArray, share: FloatArray) -> FloatArray:
    # Alpha does not change under a shift, and small numbers keep the differences of squares exact. The
    # median of the pairable values, unlike their mean, stays small when a few lie far out.
    so_far = np.cumsum(counts.sum(axis=0)[np.argsort(numbers)])
    middle = np.searchsorted(so_far, so_far[-1] / 2)
    centred = numbers - np.sort(numbers)[min(int(middle), len(numbers) - 1)]
    m, s, squares = counts.sum(axis=1), counts @ centred, counts @ centred**2
    return np.column_stack([2 * (m * squares - s * s) * share, m, s, squares])


def scale_down(numbers: FloatArray) -> FloatArray:
    """Divide the numbers by a power of two, so that no square or sum overflows. No precision is lost."""
    largest = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0))
    scaled: FloatArray = np.ldexp(numbers, -int(np.frexp(largest)[1]))
    return scaled


def moment_disagreements(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the observed and the expected disagreement for interval data, from sums over units.

    Each row of `sums` is the sum of (2(m q - s^2)/(m - 1), m, s, q) over units, where m is the number of
    values of a unit, s their sum and q their sum of squares.

    Do = (1/n) sum_u 2(m q - s^2)/(m - 1), De = 2(n Q - S^2)/(n(n - 1)). This needs no table of distinct
    values, so continuous scores are computed as fast as labels.
    """
    within, n, s, squares = sums.T
    expected = 2 * (n * squares - s * s)
    # n Q - S^2 of equal values is zero up to rounding of its two terms.
    expected = np.where(expected > 1e-12 * np.maximum(n * squares, 1e-300), expected, 0.0)
    return ratio(within, n), ratio(expected, n * (n - 1))
