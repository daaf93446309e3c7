"""Find the distinct rows (patterns) of a table. All fast statistics rely on them.

With patterns, 1,000 resamples of 100,000 x 5 ratings take 0.07 s. A loop over units takes 185 s.
"""

from dataclasses import dataclass, replace

import numpy as np

from judge.stats.ratings import BoolArray, FloatArray, IntArray, Ratings, effective_size

_UNITS_AT_ONCE = 50_000


@dataclass(frozen=True, eq=False)
class Patterns:
    """The distinct rows `[K, w]` and, for each unit, the index of its row `[U]`."""

    rows: IntArray
    of_unit: IntArray

    @property
    def count(self) -> IntArray:
        """The number of units with each row."""
        counts = np.zeros(len(self.rows), dtype=np.int64)
        # In pages, because numpy converts the numbers to 8 bytes each.
        for start in range(0, len(self.of_unit), _UNITS_AT_ONCE):
            counts += np.bincount(self.of_unit[start : start + _UNITS_AT_ONCE], minlength=len(self.rows))
        return counts


def collapse(table: IntArray) -> Patterns:
    """Return the distinct rows of an integer table `[U, w]` (values from -1), in ascending order."""
    if not table.size:
        return Patterns(table[:0], np.zeros(len(table), dtype=np.int64))
    low = [int(column.min()) for column in table.T]
    spans = [int(column.max()) - base + 1 for column, base in zip(table.T, low, strict=True)]
    size = 1
    for span in spans:
        size *= span
    # The mixed-radix key would overflow: sort whole rows, which is several times slower.
    if size >= 2**62:
        rows, of_unit = np.unique(table, axis=0, return_inverse=True)
        return Patterns(rows, of_unit.reshape(-1).astype(np.int64))
    # A table may have millions of units, and most have few patterns.
    key: IntArray = np.zeros(len(table), dtype=np.int16 if size < 2**15 else np.int64)
    for column, base, span in zip(table.T, low, spans, strict=True):
        key *= span
        key += column.astype(key.dtype) - base
    # A counting table is several times faster than a sort.
    if size <= max(4 * len(table), 4096):
        present = np.bincount(key, minlength=size) > 0
        distinct = np.flatnonzero(present)
        rank = (np.cumsum(present) - 1).astype(key.dtype)
        of_unit = rank[key]
    else:
        distinct, of_unit = np.unique(key, return_inverse=True)
    rows = np.empty((len(distinct), table.shape[1]), dtype=np.int64)
    rest = distinct.copy()
    for j in range(len(spans) - 1, -1, -1):
        rows[:, j] = rest % spans[j] + low[j]
        rest //= spans[j]
    return Patterns(rows, of_unit)


@dataclass(frozen=True, eq=False)
class Tally:
    """Contributions of resampled clusters to the sums from which a statistic is computed.

    `rows[k]` is the contribution of one cluster, and `count[k]` is the number of clusters with exactly that
    contribution. A statistic is a function of `count @ rows`, so resampling clusters means drawing the
    counts. Tallies with the same `key` count the same clusters in the same order. If units are weighted,
    `effective` is the effective number of units, and `carrying` is the effective number of clusters (Kish).
    """

    rows: FloatArray
    count: IntArray
    key: bytes
    effective: float | None = None
    carrying: float = 0.0

    @property
    def n_clusters(self) -> int:
        return int(self.count.sum())

    @property
    def total(self) -> FloatArray:
        sums: FloatArray = self.count @ self.rows
        return sums


def tally(features: FloatArray, patterns: Patterns, used: BoolArray, ratings: Ratings) -> Tally:
    """Sum the features `[K, p]` of the patterns over units, or over clusters if the table has them.

    `used` `[K]` marks the patterns that the statistic can use. Units with other patterns are left out, so
    that the bootstrap does not draw them.
    """
    of_unit = patterns.of_unit
    keep = used[of_unit]
    if ratings.weights is not None:
        return weighted_sums(features[of_unit[keep]], ratings.clusters[keep], ratings.weights[keep])
    if not ratings.clustered:
        count = np.bincount(of_unit[keep], minlength=len(features)).astype(np.int64)
        return Tally(features[used], count[used], b"units" + np.packbits(used).tobytes() + count.tobytes())
    if keep.all():
        return tally_units(features, of_unit, ratings.clusters)
    return tally_units(features, of_unit[keep], ratings.clusters[keep])


def tally_units(features: FloatArray, of_unit: IntArray, clusters: IntArray) -> Tally:
    """Return the sums of the units' features by cluster, as a Tally. All units take part.

    Unit u adds `features[of_unit[u]]` to cluster `clusters[u]`.
    """
    n = int(clusters.max()) + 1 if len(clusters) else 0
    k = len(features)
    # Counting how often each cluster has each pattern takes one pass, instead of one pass per column.
    if n * k <= 4 * len(of_unit):
        # In pages, and with 4 bytes for a count, because the table can be larger than all labels.
        counts = np.zeros(n * k, dtype=np.int32)
        for start in range(0, len(of_unit), _UNITS_AT_ONCE):
            page = slice(start, start + _UNITS_AT_ONCE)
            np.add.at(counts, clusters[page] * k + of_unit[page], 1)
        by_cluster = counts.reshape(n, k)
        rows = np.empty((n, features.shape[1]))
        for start in range(0, n, _UNITS_AT_ONCE):
            page = slice(start, start + _UNITS_AT_ONCE)
            rows[page] = by_cluster[page] @ features
    else:
        rows = np.empty((n, features.shape[1]))
        for j in range(features.shape[1]):
            rows[:, j] = np.bincount(clusters, weights=features[of_unit, j], minlength=n)
    return sum_by_cluster(rows, clusters)


def weighted_sums(rows: FloatArray, clusters: IntArray, weights: FloatArray) -> Tally:
    """Return a Tally of `rows` [U, p], which has one row for each unit. `weights` [U] are the units' design
    weights.
    """
    if not len(rows):
        return Tally(np.zeros((0, rows.shape[1])), np.zeros(0, dtype=np.int64), b"")
    sums = sum_by_cluster(
        np.stack([np.bincount(clusters, weights * column) for column in rows.T], axis=1), clusters
    )
    by_question = effective_size(np.bincount(clusters, weights).astype(np.float64))
    key = b"weighted" + weights.tobytes()
    return replace(sums, key=key, effective=effective_size(weights), carrying=by_question)


def sum_by_cluster(rows: FloatArray, clusters: IntArray) -> Tally:
    """Return a Tally of the clusters that contain a unit.

    `rows[c]` contains the sums of cluster c, and `clusters` [U] has the cluster number of each unit.
    """
    present = np.bincount(clusters, minlength=len(rows)) > 0
    each = np.ones(int(present.sum()), dtype=np.int64)
    return Tally(rows[present], each, b"clusters" + np.packbits(present).tobytes())


def canonical(rows: FloatArray, count: IntArray) -> IntArray:
    """Return an order of `rows` [K, p] that depends only on their contents and their multiplicities `count`,
    with the smallest multiplicity first.

    The names of questions, labels and annotators determine the order of rows and columns, but must not
    influence the random draws. Colours are refined in turn: a column's colour is the sum of the colours of
    its rows, and a row's colour is the sum of the colours of its columns (Weisfeiler and Leman 1968, with
    sums as colours).
    """
    scaled = rows / np.maximum(np.abs(rows).max(axis=0, initial=1.0), 1.0)
    colour = np.zeros(len(rows))
    for _ in range(3):
        columns = (count * np.cos(colour)) @ scaled
        colour = scaled @ np.cos(columns)
    return np.lexsort((colour, count)).astype(np.int64)


def n_present(clusters: IntArray) -> int:
    """Return the number of distinct cluster numbers."""
    if not len(clusters):
        return 0
    there = np.zeros(int(clusters.max()) + 1, dtype=np.bool_)
    there[clusters] = True
    return int(np.count_nonzero(there))
