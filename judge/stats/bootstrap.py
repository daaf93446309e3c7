"""Bootstrap intervals (BCa or percentile) over units or clusters, for any function of sums.

Efron & Tibshirani 1993, "An Introduction to the Bootstrap", chapters 13 and 14.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from judge.errors import BadInput
from judge.notes import Note
from judge.stats.patterns import Tally, canonical
from judge.stats.ratings import FloatArray, IntArray

# BCa is the default: percentile intervals covered .883 at n = 30 with 90 % prevalence, BCa .908.
Method = Literal["bca", "percentile"]
Value = Callable[[FloatArray], FloatArray]

REPLICATES = 2000
MOST_REPLICATES = 1_000_000
# Passages of one question are not independent: on TREC DL23 a kappa of .286 has an interval of .266 to .308 by item and
# .171 to .392 by question.
FEW_CLUSTERS = 30
# From this number of questions on, intervals of kappa, alpha and AC1 cover at least .92. With 10 questions of ten units, they
# cover .94 (python -m benchmarks.coverage).
NARROW_BELOW, COVERED_BY_TEN = 20, 0.94
LEAST_FREEDOM = 3
"""The smallest number of degrees of freedom of an interval. With fewer, Student's t would be wider than any resample."""
# With fewer clusters than this, no verdict relies on an interval. Every plan has at least this number of clusters.
FEWEST_CLUSTERS = 10
FEW_UNITS = 50
# If more than this share of resamples has no value, the others no longer describe the sampling error.
MOST_UNDEFINED = 0.25
# Sums of floats in a different order differ by less than this. It matters when resamples are compared with the value.
SAME = 1e-12
NO_WIDTH = Note("no_width")
_NORMAL = NormalDist()
# Beyond this number of distinct rows, rows are pooled at random into this many blocks before resampling.
BLOCKS = 4096
# Number of weights in one batch of resamples: larger batches exceed the cache, smaller ones make the matrix product slow.
_CELLS = 1_000_000
# Largest number of cells of resamples that are cached for the next measure: 20 MB.
_KEPT_CELLS = 10_000_000


class IntervalOptions(TypedDict, total=False):
    """The keyword arguments of all functions that compute intervals; see IntervalSettings."""

    interval: Method | None
    confidence: float
    replicates: int
    seed: int


@dataclass(frozen=True)
class IntervalSettings:
    """How intervals are computed. If `interval` is None, no intervals are computed. The same seed gives the
    same interval.

    Raises BadInput for an unknown method, a confidence outside (0, 1), replicates outside 100..1,000,000, or
    a negative seed.
    """

    interval: Method | None = "bca"
    confidence: float = 0.95
    replicates: int = REPLICATES
    seed: int = 0

    def __post_init__(self) -> None:
        if self.interval not in ("bca", "percentile", None):
            raise BadInput(f"unknown interval '{self.interval}'; available: bca and percentile")
        if not 0 < self.confidence < 1:
            raise BadInput(f"confidence must be between 0 and 1, not {self.confidence}")
        # Above ten thousand replicates an interval hardly changes.
        if not 100 <= self.replicates <= MOST_REPLICATES:
            raise BadInput(f"replicates must be from 100 to {MOST_REPLICATES:,}, not {self.replicates:,}")
        if self.seed < 0:
            raise BadInput(f"the seed must be a non-negative integer, not {self.seed}")


@dataclass(frozen=True)
class Interval:
    """The bounds of an interval, or None if there is no interval.

    `notes` say why there is no interval, or how it was computed.
    """

    low: float | None
    high: float | None
    notes: tuple[str, ...] = ()


def resample(tallies: Sequence[Tally], settings: IntervalSettings) -> list[FloatArray]:
    """Return, for each tally, the sums of all resamples: a list of arrays `[replicates, p]`.

    All tallies must have the same counts (`Tally.key`). They share the random draws, which saves time and
    does not change the results.
    """
    count = tallies[0].count
    replicates = settings.replicates
    rng = np.random.default_rng(settings.seed)
    # Each tally is put into a canonical order, by its counts first. So no interval depends on names, or on the other
    # measures that are computed with it.
    orders = [canonical(t.rows, t.count) for t in tallies]
    count = np.sort(count)
    dealt = 0
    # Sums of random blocks of equal size have the same distribution as a draw of that many clusters. They change an
    # interval's width by about 1 %, 1 / sqrt(2 BLOCKS), which is less than the noise of 2,000 replicates.
    if len(count) > BLOCKS:
        dealt = int(count.sum())
        drawn = rng.permutation(np.repeat(np.arange(len(count)), count))
        rows = np.concatenate(
            [_pool(t.rows, order[drawn]) for t, order in zip(tallies, orders, strict=True)], axis=1
        )
        count = np.ones(BLOCKS, dtype=np.int64)
    else:
        rows = np.concatenate([t.rows[order] for t, order in zip(tallies, orders, strict=True)], axis=1)
    n, k = int(count.sum()), len(count)
    if _are_small_integers(rows, n):
        rows = rows.astype(np.float32)
    sums = np.empty((replicates, rows.shape[1]))
    # A binomial draw costs about thirty times an index draw.
    few = 30 * k < n
    row_of = np.repeat(np.arange(k), count)
    lots = _lots(settings.seed, dealt, n, replicates) if not few and replicates * n <= _KEPT_CELLS else None
    block = max(1, _CELLS // max(k, 1))
    for start in range(0, replicates, block):
        size = min(block, replicates - start)
        if few:
            # Drawing the counts of the distinct rows is equivalent to drawing N units, and hundreds of times faster.
            weights = rng.multinomial(n, count / n, size=size).astype(rows.dtype)
        elif lots is not None:
            cells = row_of[lots[start : start + size]] + k * np.arange(size)[:, None]
            weights = np.bincount(cells.ravel(), minlength=size * k).reshape(size, k).astype(rows.dtype)
        else:
            weights = np.empty((size, k), dtype=rows.dtype)
            for row in weights:
                row[:] = np.bincount(row_of[_draw(rng, n)], minlength=k)
        sums[start : start + size] = weights @ rows
    edges = np.cumsum([t.rows.shape[1] for t in tallies])[:-1]
    return list(np.split(sums, edges, axis=1))


def _draw(rng: np.random.Generator, n: int) -> NDArray[np.integer]:
    return rng.integers(0, n, size=n, dtype=np.uint16 if n <= 2**16 else np.int32)


@lru_cache(maxsize=4)
def _lots(seed: int, dealt: int, n: int, replicates: int) -> NDArray[np.integer]:
    """Return random resamples of `n` units, as positions `[replicates, n]`.

    The resamples are the same for every measure on `n` units.

    `dealt` is the number of clusters that were pooled into blocks, or 0 if none were pooled.
    """
    # Drawing takes most of the time of a small statistic's interval, so the draws are cached.
    rng = np.random.default_rng(seed)
    # Pooling draws a permutation first. The same draw is made here, so that cached and uncached resamples are equal.
    rng.permutation(dealt)
    return np.stack([_draw(rng, n) for _ in range(replicates)])


def _pool(rows: FloatArray, drawn: IntArray) -> FloatArray:
    """Pool the clusters, in the random order `drawn`, into BLOCKS blocks whose sizes differ by at most one. Return
    the sums of the blocks.
    """
    blocks = np.arange(len(drawn)) % BLOCKS
    return np.column_stack(
        [np.bincount(blocks, weights=column[drawn], minlength=BLOCKS) for column in rows.T]
    )


def _are_small_integers(rows: FloatArray, n: int) -> bool:
    """Return whether every sum of n of these rows is exact in single precision."""
    # Single precision takes half the time, and whole numbers up to 2^24 lose no digit in it.
    largest = float(np.abs(rows).max(initial=0.0))
    return n * largest <= 2**24 and bool((rows == np.rint(rows)).all())


def bootstrap(
    tally: Tally, value: Value, settings: IntervalSettings, sums: FloatArray | None = None
) -> Interval:
    """Return the interval of `value(sums)`, where `value` maps `[B, p]` to `[B]`, with nan for undefined values.

    `sums` are the resamples from `resample`, which several statistics can share. BCa: z0 = Phi^-1(share of
    resamples below the value, where ties count half) and a = sum d^3 / (6 (sum d^2)^1.5), where d are the
    jackknife deviations with one cluster left out. If z0 or a is undefined, the interval is a percentile
    interval, and a note says so.
    """
    # Every resample of a single cluster is that cluster, so it shows nothing about the differences between clusters.
    if tally.n_clusters < 2:
        return Interval(None, None, (Note("one_cluster"),))
    if sums is None:
        sums = resample([tally], settings)[0]
    point = float(value(tally.total[None, :])[0])
    drawn = value(sums)
    finite = np.isfinite(drawn)
    # A resample with a single label has no kappa; leaving many of these out would bias the interval.
    undefined = 1 - float(finite.mean())
    if undefined > MOST_UNDEFINED:
        return Interval(None, None, (Note("undefined_no_interval", share=undefined),))
    notes = [Note("undefined_left_out", share=undefined)] if undefined else []
    drawn = drawn[finite]
    deviation = _deviations(tally, value)
    levels = _levels((1 - settings.confidence) / 2, tally.count, deviation)
    # All resamples are equal, which BCa cannot correct. An interval of zero width claims too much certainty, so it
    # has a note.
    if float(drawn.max() - drawn.min()) < SAME:
        return Interval(point, point, (*notes, NO_WIDTH))
    if settings.interval == "bca":
        a = _acceleration(tally.count, deviation)
        adjusted = None if a is None else _bca_levels(point, drawn, a, levels)
        if adjusted is None:
            notes.append(Note("percentile"))
        else:
            levels = adjusted
    low, high = np.quantile(drawn, levels)
    return Interval(float(low), float(high), tuple(notes))


def _bca_levels(
    point: float, drawn: FloatArray, a: float, levels: tuple[float, float]
) -> tuple[float, float] | None:
    below = float(((drawn < point - SAME).mean() + (drawn <= point + SAME).mean()) / 2)
    if not 0 < below < 1:
        return None
    z0 = _NORMAL.inv_cdf(below)
    adjusted = []
    for level in levels:
        z = z0 + _NORMAL.inv_cdf(level)
        # Beyond this pole of the BCa formula the adjusted level would jump to the other tail.
        if 1 - a * z <= 0:
            return None
        adjusted.append(_NORMAL.cdf(z0 + z / (1 - a * z)))
    return adjusted[0], adjusted[1]


def _deviations(tally: Tally, value: Value) -> FloatArray | None:
    """Return the jackknife deviation of each kind of cluster. None if a value without one cluster is undefined."""
    left_out = value(tally.total[None, :] - tally.rows)
    if not np.isfinite(left_out).all():
        return None
    deviation: FloatArray = np.average(left_out, weights=tally.count) - left_out
    return deviation


def _levels(tail: float, count: IntArray, deviation: FloatArray | None) -> tuple[float, float]:
    """Return the levels of the resamples' quantiles that give an interval with this share in each tail.

    If few clusters carry the variance, the levels are those of Student's t. The number of these clusters is
    Kish's effective number of the squared deviations, (sum d^2)^2 / sum d^4.
    """
    if deviation is None or not (squares := float(count @ deviation**4)):
        return tail, 1 - tail
    carrying = float(count @ deviation**2) ** 2 / squares
    # In a sample of many clusters, intervals cover at least .92 also if few of them carry the variance.
    if carrying >= FEW_CLUSTERS or count.sum() >= FEW_UNITS:
        return tail, 1 - tail
    # The import takes a while, and most intervals do not need it.
    from scipy.special import stdtrit

    lower = _NORMAL.cdf(float(stdtrit(max(carrying - 1, LEAST_FREEDOM), tail)))
    return lower, 1 - lower


def _acceleration(count: IntArray, deviation: FloatArray | None) -> float | None:
    if deviation is None:
        return None
    scale = float(count @ deviation**2)
    if scale <= 0:
        return None
    return float(count @ deviation**3 / (6 * scale**1.5))


def sample_notes(n_units: int, n_clusters: int, clustered: bool) -> tuple[str, ...]:
    """Return notes that warn about an interval from a small sample."""
    notes = []
    if clustered and n_clusters < NARROW_BELOW:
        notes.append(Note("few_questions", n=n_clusters, least=NARROW_BELOW, covered=COVERED_BY_TEN))
    if n_units < FEW_UNITS:
        notes.append(Note("few_units", n=n_units, least=FEW_UNITS))
    return tuple(notes)
