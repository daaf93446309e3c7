"""Statistics of numbers instead of labels: interval alpha of continuous scores, and means of per-unit values."""

from dataclasses import replace
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from judge.errors import BadInput
from judge.stats.alpha import moment_disagreements, scale_down
from judge.stats.bootstrap import IntervalOptions, IntervalSettings
from judge.stats.coefficients import ratio
from judge.stats.estimate import Estimate, about
from judge.stats.patterns import Tally, n_present, tally_units, weighted_sums
from judge.stats.ratings import FloatArray, IntArray, number_clusters
from judge.types import Measure


def scores_alpha(
    scores: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    annotators: tuple[str, ...] | None = None,
    field: str | None = None,
    **options: Unpack[IntervalOptions],
) -> Measure:
    """Return Krippendorff's interval alpha of `scores` `[units, annotators]`, with nan for missing scores.

    Alpha is computed from the number m, the sum s and the sum of squares q of each unit's scores: Do = (1/n)
    sum_u 2(m q - s^2)/(m - 1), De = 2(n Q - S^2)/(n(n - 1)). `clusters` has one value per unit. For `options`,
    see `measures`. Raises BadInput unless `scores` is a two-dimensional array of finite numbers or nan.
    """
    settings = IntervalSettings(**options)
    table = numbers(scores, "scores", dimensions=2)
    groups, clustered = cluster_numbers(clusters, len(table))
    present = ~np.isnan(table)
    m = present.sum(axis=1)
    used = m >= 2
    n_units = int(used.sum())
    present, m = present[used], m[used].astype(np.float64)
    pairable = scale_down(table[used])
    # Alpha does not change under a shift, and small numbers keep the differences of squares exact. The
    # median, unlike the mean, stays small when a few lie far out.
    shift = float(np.median(pairable[present])) if n_units else 0.0
    filled = np.where(present, pairable - shift, 0.0)
    # Not by distinct values: the `krippendorff` package would take 20 GB for 500 x 4 scores with 1,500 of them.
    s, squares = filled.sum(axis=1), (filled**2).sum(axis=1)
    rows = np.column_stack([2 * (m * squares - s * s) / (m - 1), m, s, squares])
    sums = unit_sums(rows, groups[used], clustered)
    n_clusters = n_present(groups[used])
    reason = "all scores are equal, so agreement cannot be distinguished from chance"
    base = about("krippendorff_alpha", n_units, len(table), n_clusters, annotators, field)

    def value(drawn: FloatArray) -> FloatArray:
        observed, expected = moment_disagreements(drawn)
        return 1 - ratio(observed, expected)

    return Estimate(
        about=replace(base, level="interval"),
        tally=sums,
        value=value,
        undefined=lambda: reason if n_units else "no unit is scored by two annotators",
        clustered=clustered,
    ).measure(settings)


def mean(
    values: ArrayLike,
    *,
    measure: str = "mean",
    clusters: ArrayLike | None = None,
    field: str | None = None,
    annotators: tuple[str, ...] | None = None,
    weights: FloatArray | None = None,
    **options: Unpack[IntervalOptions],
) -> Measure:
    """Return the mean of one value per unit, with an interval by cluster.

    Pass nan for a unit without a value.

    For a share such as accuracy, the values are 0 or 1. `n_units` counts the values. `weights` are design
    weights, one for each value. For `options`, see `measures`. Raises BadInput unless `values` is a
    one-dimensional array of finite numbers or nan.
    """
    settings = IntervalSettings(**options)
    row = numbers(values, "values", dimensions=1)
    groups, clustered = cluster_numbers(clusters, len(row))
    used = ~np.isnan(row)
    kept = row[used]
    # If all 0 / 1 values are equal, so are all resamples: the bound comes from the binomial distribution instead.
    binary = bool(np.isin(kept, (0.0, 1.0)).all())
    n_clusters = n_present(groups[used])
    rows = np.column_stack([kept, np.ones(len(kept))])
    sums = (
        unit_sums(rows, groups[used], clustered)
        if weights is None
        else weighted_sums(rows, groups[used], weights[used])
    )
    return Estimate(
        about=about(measure, len(kept), len(row), n_clusters, annotators, field),
        tally=sums,
        value=lambda sums: ratio(sums[:, 0], sums[:, 1]),
        undefined=lambda: "no unit has a value",
        clustered=clustered,
        trials=n_clusters if binary else None,
    ).measure(settings)


def numbers(values: ArrayLike, name: str, dimensions: int) -> FloatArray:
    """Return `values` as floats. Raises BadInput for strings, booleans in object arrays, infinities or a
    wrong shape.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iufb":
        raise BadInput(f"{name} must be numbers (nan for a missing value), but the type is {array.dtype}")
    if array.ndim != dimensions:
        raise BadInput(f"{name} must have {dimensions} dimension(s), but the shape is {array.shape}")
    floats = array.astype(np.float64, copy=False)
    if np.isinf(floats).any():
        raise BadInput(f"{name} must be finite")
    return floats


def cluster_numbers(clusters: ArrayLike | None, n: int) -> tuple[IntArray, bool]:
    """Return the clusters numbered from 0, and whether any cluster has more than one unit."""
    if clusters is None:
        return np.arange(n, dtype=np.int64), False
    array = np.asarray(clusters)
    if array.shape != (n,):
        raise BadInput(f"clusters must have one value for each of {n} units, but the shape is {array.shape}")
    distinct, numbered = number_clusters(array)
    return numbered, distinct < n


def unit_sums(rows: FloatArray, clusters: IntArray, clustered: bool) -> Tally:
    """Return a Tally of `rows`, which has one row for each unit."""
    if clustered:
        return tally_units(rows, np.arange(len(rows)), clusters)
    # Equal rows are worth collapsing only when there are few of them, as with 0 / 1 values.
    few = len(rows) > 0 and len(np.unique(rows[: min(len(rows), 1000)], axis=0)) < 50
    if not few:
        return Tally(rows, np.ones(len(rows), dtype=np.int64), b"")
    distinct, count = np.unique(rows, axis=0, return_counts=True)
    return Tally(distinct, count.astype(np.int64), b"")
