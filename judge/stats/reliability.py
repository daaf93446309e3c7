"""The reliability of stated probabilities: reliability bins, ECE and temperature scaling."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from judge.errors import BadInput
from judge.stats.bootstrap import IntervalOptions, IntervalSettings
from judge.stats.continuous import cluster_numbers, mean, numbers
from judge.stats.estimate import Estimate, about
from judge.stats.patterns import n_present, tally_units, weighted_sums
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.types import Measure


@dataclass(frozen=True)
class Bin:
    """The units whose highest label probability lies in (low, high].

    `confidence` is the mean of these probabilities, and `accuracy` is the share of units whose most probable
    label is correct. Both are weighted, and None if the bin is empty.
    """

    low: float
    high: float
    n: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Calibration:
    """The reliability of the top label. `ece`, `brier` and `log_loss` are Measures."""

    bins: tuple[Bin, ...]
    ece: Measure
    log_loss: Measure
    _brier: Callable[[], Measure]

    @cached_property
    def brier(self) -> Measure:
        """The mean squared error of the probabilities."""
        # Computed on demand, because not every command shows it, and its interval takes as long as all others
        # together.
        return self._brier()


def calibration(
    probabilities: ArrayLike,
    codes: ArrayLike,
    *,
    bins: int = 10,
    clusters: ArrayLike | None = None,
    field: str | None = None,
    weights: FloatArray | None = None,
    **options: Unpack[IntervalOptions],
) -> Calibration:
    """Measure the calibration of `probabilities` `[units, labels]` against the true `codes` `[units]` (-1: unknown).

    ECE = sum_b (n_b / n) |accuracy_b - confidence_b| over bins of equal width of the top probability (Guo et
    al. 2017, arXiv 1706.04599, section 2); Brier = mean sum_k (p_k - [k = true])^2; log loss = mean -ln
    p_true (None with a reason if some true label has probability 0). Rows that are nan, or whose code is -1,
    are left out and lower the coverage. The ECE of a finite sample is biased upwards; its interval has the
    same bias. `weights` [units] are design weights; with weights, no measure has an interval. Raises BadInput
    for rows that do not sum to 1 within 1e-3, codes out of range, or bins < 1.
    """
    p, y = check_probabilities(probabilities, codes)
    if bins < 1:
        raise BadInput(f"calibration needs at least one bin, not {bins}")
    if weights is not None:
        # No interval for a weighted calibration error has been validated (benchmarks/weighted.py).
        options["interval"] = None
    settings = IntervalSettings(**options)
    groups, clustered = cluster_numbers(clusters, len(p))
    used = _usable(p, y)
    p_used, y_used, groups_used = p[used], y[used], groups[used]
    n = len(p_used)
    top = p_used.argmax(axis=1) if n else np.empty(0, dtype=np.int64)
    confidence = p_used[np.arange(n), top]
    correct = (top == y_used).astype(np.float64)
    # A confidence of exactly 0.3 belongs to the bin (0.2, 0.3], and 0.3 * 10 is above 3 in floats.
    which = np.clip(np.ceil(confidence * bins - 1e-9).astype(np.int64) - 1, 0, bins - 1)
    rows = np.hstack(
        [_spread_over_bins(which, bins, of_unit) for of_unit in (np.ones(n), confidence, correct)]
    )
    sums = (
        tally_units(rows, np.arange(n), groups_used)
        if weights is None
        else weighted_sums(rows, groups_used, weights[used])
    )

    def value(drawn: FloatArray) -> FloatArray:
        gap = np.abs(drawn[:, 2 * bins :] - drawn[:, bins : 2 * bins]).sum(axis=1)
        error: FloatArray = gap / drawn[:, :bins].sum(axis=1)
        return error

    ece = Estimate(
        about=about("ece", n, len(p), n_present(groups_used), field=field),
        tally=sums,
        value=value,
        undefined=lambda: "no unit has both probabilities and a true label",
        clustered=clustered,
    ).measure(settings)
    total = sums.total
    brier, loss = np.full(len(p), np.nan), np.full(len(p), np.nan)
    brier[used] = ((p_used - np.eye(p.shape[1])[y_used]) ** 2).sum(axis=1)
    true = p_used[np.arange(n), y_used]
    loss[used] = -np.log(np.where(true > 0, true, np.nan))
    log_loss = mean(loss, measure="log_loss", clusters=clusters, field=field, weights=weights, **options)
    impossible = int((true <= 0).sum())
    if impossible:
        reason = f"the true label has probability 0 on {impossible} units, so the log loss is infinite"
        log_loss = Measure("log_loss", None, n, reason=reason, field=field, coverage=ece.coverage)
    return Calibration(
        tuple(_bin(i, bins, total, int((which == i).sum())) for i in range(bins)),
        ece,
        log_loss,
        lambda: mean(brier, measure="brier", clusters=clusters, field=field, weights=weights, **options),
    )


def temperature(
    probabilities: ArrayLike, codes: ArrayLike, weights: FloatArray | None = None
) -> tuple[float | None, str | None]:
    """Return the temperature T that maximises the likelihood of `scale(probabilities, T)`, and a reason if
    there is no such T.

    Minimises the log loss of softmax(ln p / T) (Guo et al. 2017, section 4.2); T > 1 means overconfident. T
    is None if there is no minimum between 1/1000 and 1000, i.e. if every true label is the most probable
    label, or if the probabilities carry no information. `weights` [units] are design weights.
    """
    p, y = check_probabilities(probabilities, codes)
    used = _usable(p, y)
    w = None if weights is None else weights[used]
    p, y = p[used], y[used]
    if not len(p):
        return None, "no unit has both probabilities and a true label"
    logits = np.log(np.maximum(p, 1e-12))
    chosen = logits[np.arange(len(p)), y]

    def slope(inverse: float) -> float:
        shares = softmax(logits * inverse)
        return float(np.average(across(np.add, shares * logits) - chosen, weights=w))

    low, high = np.log(1e-3), np.log(1e3)
    if slope(float(np.exp(high))) <= 0:
        return None, "every true label is the most probable label, so the best temperature is 0"
    if slope(float(np.exp(low))) >= 0:
        return None, "the probabilities do not favour the true labels, so the best temperature is infinite"
    # The derivative in 1 / T increases, so bisection finds its root.
    for _ in range(100):
        middle = (low + high) / 2
        if slope(float(np.exp(middle))) < 0:
            low = middle
        else:
            high = middle
    return float(np.exp(-(low + high) / 2)), None


def scale(probabilities: ArrayLike, temperature: float) -> FloatArray:
    """Return softmax(ln p / T) row by row. Raises BadInput unless T > 0."""
    if not temperature > 0:
        raise BadInput(f"the temperature must be above 0, not {temperature}")
    p = numbers(probabilities, "probabilities", dimensions=2)
    return softmax(np.log(np.maximum(p, 1e-12)) / temperature)


def across(combine: np.ufunc, table: FloatArray) -> FloatArray:
    """Apply `combine` (np.add, np.maximum) over each row of `[units, labels]`, one column at a time."""
    # Rows are short, so this takes a tenth of the time of a reduction along them.
    return np.asarray(reduce(combine, table.T))


def softmax(logits: FloatArray) -> FloatArray:
    """Return the softmax of each row."""
    weights = np.exp(logits - across(np.maximum, logits)[:, None])
    return np.asarray(weights / across(np.add, weights)[:, None])


def check_probabilities(probabilities: ArrayLike, codes: ArrayLike) -> tuple[FloatArray, IntArray]:
    """Return probabilities `[units, labels]` and codes `[units]`. Raises BadInput for anything else."""
    p = numbers(probabilities, "probabilities", dimensions=2)
    y = np.asarray(codes)
    if y.dtype.kind not in "iu" or y.shape != (len(p),):
        raise BadInput(f"codes must be {len(p)} integers, not {y.dtype} of shape {y.shape}")
    if ((y < -1) | (y >= p.shape[1])).any():
        raise BadInput(f"codes must be in 0..{p.shape[1] - 1}, or -1 for unknown labels")
    known = p[~np.isnan(across(np.add, p))]
    if (known < 0).any() or (np.abs(across(np.add, known) - 1) > 1e-3).any():
        raise BadInput("probabilities must not be negative and must sum to 1 in each row")
    return p, y.astype(np.int64)


def _spread_over_bins(which: IntArray, bins: int, values: FloatArray) -> FloatArray:
    """Return an array [units, bins] with the value of each unit in the column of its bin, and 0 in the other
    columns.
    """
    rows = np.zeros((len(which), bins))
    rows[np.arange(len(which)), which] = values
    return rows


def _usable(p: FloatArray, y: IntArray) -> BoolArray:
    usable: BoolArray = (y >= 0) & ~np.isnan(across(np.add, p))
    return usable


def _bin(i: int, bins: int, total: FloatArray, n: int) -> Bin:
    weight, confidence, accuracy = (float(total[part * bins + i]) for part in range(3))
    return Bin(
        i / bins, (i + 1) / bins, n, confidence / weight if n else None, accuracy / weight if n else None
    )
