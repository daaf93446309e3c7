"""Compare annotators with one reference, using a paired test that all commands share.

Agreement is a function of sums over questions (or units, where there are no questions). A question's
pseudo-value is its contribution to the estimate (Tukey 1958; Efron and Tibshirani, An Introduction to the
Bootstrap, chapter 11). The difference is tested with a paired t-test of the pseudo-values by question, so the
interval and the p value agree. For plain means the pseudo-values are the questions' own values (times their
share of units), and the test is the ordinary paired t-test.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Unpack

import numpy as np

from judge.errors import BadInput
from judge.notes import Note
from judge.stats.bootstrap import IntervalOptions, IntervalSettings, sample_notes
from judge.stats.coefficients import disagreement
from judge.stats.estimate import about
from judge.stats.metrics import METRICS, domain_numbers, metric_key
from judge.stats.multiple import holm
from judge.stats.patterns import collapse, n_present
from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, Ratings, effective_size
from judge.types import Measure

FEWEST = 2
"""The smallest number of questions for a test."""


@dataclass(frozen=True, slots=True)
class Paired:
    """The difference second - first, with its t interval and two-sided p value from the same test.

    None means undefined, and `reason` says why.
    """

    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    n_clusters: int
    reason: str | None = None


def pseudo_values(sums: FloatArray, value: Callable[[FloatArray], FloatArray]) -> tuple[float, FloatArray]:
    """Return the estimate on all G questions, and the G pseudo-values; nan if undefined.

    Pseudo-value g is G times the estimate on all questions, minus G - 1 times the estimate without question
    g.

    Each row of `sums` [G, p + 1] has a question's sums and, in the last column, its number of units; `value`
    maps such rows to numbers.
    """
    total = sums.sum(axis=0, keepdims=True)
    whole = float(value(total)[0])
    count = len(sums)
    return whole, count * whole - (count - 1) * value(total - sums)


def paired_difference(
    first: tuple[float, FloatArray],
    second: tuple[float, FloatArray],
    confidence: float = 0.95,
    *,
    exact: bool = False,
    most: float | None = None,
) -> Paired:
    """Return the difference second - first between two estimates, from their pseudo-values on the same
    questions in the same order.

    With `exact` the p value is that of McNemar's exact test, for two 0/1 outcomes. `most` is the largest
    possible difference, if known; the interval is cut off at this value. Raises BadInput if the numbers of
    questions differ.
    """
    from scipy.special import stdtr, stdtrit

    if first[1].shape != second[1].shape:
        raise BadInput("a paired comparison needs the same questions on both sides")
    apart = second[1] - first[1]
    n = len(apart)
    difference = second[0] - first[0]
    undefined = Paired(None, None, None, None, n)
    if n < FEWEST:
        reason = f"the number of shared questions is {n}, but a test needs at least {FEWEST}"
        return replace(undefined, reason=reason)
    if not (np.isfinite(apart).all() and np.isfinite(difference)):
        reason = "the measure is undefined on the shared questions, or would be if one of them were left out"
        return replace(undefined, reason=reason)
    error = float(apart.std(ddof=1) / np.sqrt(n))
    # A difference that is the same on every question has no spread. So it has no interval, and its p value is that of
    # the sign test, 2^(1 - G).
    if error < 1e-12 * max(1.0, abs(difference)):
        same = abs(difference) < 1e-12
        return Paired(difference, None, None, 1.0 if same else 2.0 ** (1 - n), n)
    # The difference itself is the plain estimate: the mean of pseudo-values differs from it by the jackknife's bias.
    t = difference / error
    width = float(stdtrit(n - 1, (1 + confidence) / 2)) * error
    # If few questions differ, the t-test is too liberal: for five wins in twelve questions its p is .017 instead of
    # .0625.
    p = _mcnemar(first[1], second[1]) if exact else None
    p = float(2 * stdtr(n - 1, -abs(t))) if p is None else p
    # A t interval is unbounded, but a difference of two shares lies in -1..1.
    limit = np.inf if most is None else most
    return Paired(difference, max(-limit, difference - width), min(limit, difference + width), p, n)


def _mcnemar(first: FloatArray, second: FloatArray) -> float | None:
    """Return the exact two-sided p value of McNemar's test for one 0/1 outcome per question on both sides;
    None for other outcomes.

    Under the null hypothesis, each side wins half of the questions on which the two differ: p = 2 P(X <= the
    smaller number of wins), where X is binomial with probability 1/2 (McNemar 1947; Fagerland et al. 2013).
    """
    from scipy.special import bdtr

    if not all(((abs(v) < 1e-9) | (abs(v - 1) < 1e-9)).all() for v in (first, second)):
        return None
    wins, losses = int(np.sum(second - first > 0.5)), int(np.sum(first - second > 0.5))
    return min(1.0, 2 * float(bdtr(min(wins, losses), wins + losses, 0.5)))


@dataclass(frozen=True)
class Comparison:
    """The agreement of `second` with the reference minus that of `first`.

    `p_value` is two-sided and comes from the same test as the interval. It is None if the difference is
    undefined. `adjusted` is Holm's adjusted p value over all pairs that were compared at once.
    """

    first: str
    second: str
    difference: Measure
    p_value: float | None
    adjusted: float | None = None


def compare(
    ratings: Ratings,
    annotators: Sequence[str],
    reference: str,
    name: str = "cohen_kappa",
    *,
    level: str = "nominal",
    field: str | None = None,
    **options: Unpack[IntervalOptions],
) -> list[Comparison]:
    """Compare each pair of annotators by their agreement with the reference.

    Only the units that all annotators and the reference labelled are used; `coverage` is their share of all
    units in the table. `name` is percent, cohen_kappa with or without weights, or krippendorff_alpha. An
    annotator who used only one label is assigned a kappa of 0 (no skill).

    From `options`, only `confidence` and interval=None (no bounds) are used. Nothing is drawn at random.
    Raises BadInput for other measures, for fewer than two annotators, and for names that are not in the
    table.
    """
    settings = IntervalSettings(**options)
    key = metric_key(name, level)
    if not key.startswith(("percent", "cohen_kappa", "krippendorff_alpha")):
        raise BadInput(
            f"judges can be compared by percent, cohen_kappa or krippendorff_alpha, not by '{name}'"
        )
    if len(annotators) < 2:
        raise BadInput("a comparison needs at least two annotators")
    table = ratings.select([reference, *annotators])
    # All judges are compared on one set of units. Otherwise each pair would have different reference labels.
    table = table.subset((table.codes != MISSING).all(axis=1))
    n = n_present(table.clusters)
    base = replace(
        about(f"{METRICS[key].measure}_difference", table.n_units, ratings.n_units, n, field=field),
        level=METRICS[key].level,
        weights=METRICS[key].weights,
        confidence=settings.confidence,
    )
    # Two shares differ by at most 1. Two coefficients between -1 and 1 differ by at most 2.
    most = 1.0 if key == "percent" else 2.0
    each = [_pseudo(table, who, reference, key) for who in annotators] if table.n_units else []
    comparisons = []
    for (i, first), (j, second) in combinations(enumerate(annotators), 2):
        named = replace(base, annotators=(first, second, reference))
        if not each:
            names = ", ".join([*annotators, reference])
            reason = f"no unit is labelled by all of {names}"
            comparisons.append(Comparison(first, second, replace(named, reason=reason), None))
            continue
        test = paired_difference(each[i], each[j], settings.confidence, most=most)
        if table.weights is not None:
            # The test is too liberal if a rare label depends on a few units with large weights.
            weighted = Note("weighted", n_eff=effective_size(table.weights))
            measure = replace(named, value=test.difference, reason=test.reason, notes=(weighted,))
            comparisons.append(Comparison(first, second, measure, None))
            continue
        notes = (Note("jackknife") if test.low is not None else Note("same_everywhere"),)
        measure = replace(
            named,
            value=test.difference,
            reason=test.reason,
            low=test.low if settings.interval else None,
            high=test.high if settings.interval else None,
            notes=()
            if test.difference is None or not settings.interval
            else (*notes, *sample_notes(table.n_units, n, table.clustered)),
        )
        comparisons.append(Comparison(first, second, measure, test.p))
    return _adjust(comparisons)


def _adjust(comparisons: list[Comparison]) -> list[Comparison]:
    known = [c.p_value for c in comparisons if c.p_value is not None]
    adjusted = iter(holm(known).tolist())
    return [c if c.p_value is None else replace(c, adjusted=next(adjusted)) for c in comparisons]


def _pseudo(table: Ratings, who: str, reference: str, key: str) -> tuple[float, FloatArray]:
    """Return the agreement of one annotator with the reference, and its pseudo-values by question."""
    codes, truth, q = table.column(who), table.column(reference), len(table.domain)
    if not key.startswith("krippendorff_alpha"):
        weights = METRICS[key].weights
        value: Callable[[FloatArray], FloatArray] = (
            agreement_of if key == "percent" else lambda sums: kappa_of(sums, weights)
        )
        sums = kappa_sums(codes, truth, table.clusters, q, weights, table.weights)
        return pseudo_values(sums, value)
    coefficient = METRICS[key]
    numbers = domain_numbers(coefficient, table)
    patterns = collapse(np.column_stack([codes, truth]))
    counts = (patterns.rows[:, :, None] == np.arange(q)).sum(axis=1).astype(np.int64)
    rows = coefficient.features(counts, numbers)
    n = int(table.clusters.max()) + 1
    sums = np.empty((n, rows.shape[1]))
    for k in range(rows.shape[1]):
        sums[:, k] = np.bincount(table.clusters, weights=rows[patterns.of_unit, k], minlength=n)
    present = np.bincount(table.clusters, minlength=n) > 0
    return pseudo_values(sums[present], lambda sums: coefficient.value(sums, numbers))


def kappa_sums(
    first: IntArray,
    second: IntArray,
    clusters: IntArray,
    n_labels: int,
    weights: str | None = None,
    design: FloatArray | None = None,
) -> FloatArray:
    """Return sums for each cluster [G, 2 + 2 q]: the agreement, the label counts of both annotators, and the
    number of units.

    `design` [units] are the weights of units drawn with unequal probabilities. For `weights`, see
    `disagreement`. All units count, so the caller must leave out units that either annotator did not label.
    """
    n = int(clusters.max()) + 1 if len(clusters) else 0
    alike = (1 - disagreement(n_labels, weights))[first, second]
    sums = np.empty((n, 2 + 2 * n_labels))
    w = np.ones(len(clusters)) if design is None else design
    sums[:, 0] = np.bincount(clusters, weights=w * alike, minlength=n)
    for at, codes in ((1, first), (1 + n_labels, second)):
        counts = np.bincount(clusters * n_labels + codes, weights=w, minlength=n * n_labels)
        sums[:, at : at + n_labels] = counts.reshape(n, n_labels)
    sums[:, -1] = np.bincount(clusters, weights=w, minlength=n)
    return sums[sums[:, -1] > 0]


def kappa_of(sums: FloatArray, weights: str | None = None) -> FloatArray:
    """Return Cohen's kappa for rows of `kappa_sums`; nan if chance alone would give full agreement."""
    q = (sums.shape[1] - 2) // 2
    n = sums[:, -1]
    first, second = sums[:, 1 : 1 + q], sums[:, 1 + q : 1 + 2 * q]
    with np.errstate(divide="ignore", invalid="ignore"):
        agree = sums[:, 0] / n
        chance = ((first @ (1 - disagreement(q, weights))) * second).sum(axis=1) / n**2
        # A single label on one side gives 0, not nan: nan would exclude a judge without skill from comparisons.
        return np.where(chance < 1 - 1e-12, (agree - chance) / (1 - chance), np.nan)


def agreement_of(sums: FloatArray) -> FloatArray:
    """Return the share of equal labels or, if there are weights, the mean similarity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share: FloatArray = sums[:, 0] / sums[:, -1]
    return share


def difference_spread(first: FloatArray, second: FloatArray) -> float | None:
    """Return the standard deviation, over questions, of the contributions to the difference of two kappas.

    `first` and `second` are `kappa_sums` of two judges with the same reference on the same units. The result
    divided by sqrt G is the standard error of the paired difference on G questions. It is None if a kappa is
    undefined.
    """
    apart = pseudo_values(second, kappa_of)[1] - pseudo_values(first, kappa_of)[1]
    if len(apart) < 2 or not np.isfinite(apart).all():
        return None
    return float(apart.std(ddof=1))


@dataclass(frozen=True, slots=True)
class Duel:
    """The comparison of two judges, at the positions `first` and `second`, with the same reference.

    `kappa` and `agreement` are the differences, second minus first. A judge is right on a unit if its label
    equals the reference. `both`, `only_first`, `only_second` and `neither` count the units on which both
    judges, only one of them, or neither is right, separately for each label of the reference [q].
    """

    first: int
    second: int
    kappa: Comparison
    agreement: Comparison
    both: tuple[int, ...]
    only_first: tuple[int, ...]
    only_second: tuple[int, ...]
    neither: tuple[int, ...]


def contest(
    table: Ratings,
    reference: str,
    name: str = "cohen_kappa",
    *,
    level: str = "nominal",
    confidence: float = 0.95,
) -> list[Duel]:
    """Compare each pair of judges by their agreement with `reference`.

    The judges are all annotators in the table except the reference. All annotators must have labelled every
    unit. For `name`, see `compare`.
    """
    judges = [who for who in table.annotators if who != reference]
    truth, q = table.column(reference), len(table.domain)
    right = [table.column(who) == truth for who in judges]

    def count(mask: BoolArray) -> tuple[int, ...]:
        return tuple(np.bincount(truth[mask], minlength=q).tolist())

    kappas, agreements = (
        compare(table, judges, reference, measure, level=level, confidence=confidence)
        for measure in (name, "percent")
    )
    duels = []
    for kappa, agreement in zip(kappas, agreements, strict=True):
        i, j = judges.index(kappa.first), judges.index(kappa.second)
        first_right, second_right = right[i], right[j]
        counts = [
            count(mask)
            for mask in (
                first_right & second_right,
                first_right & ~second_right,
                ~first_right & second_right,
                ~first_right & ~second_right,
            )
        ]
        duels.append(Duel(i, j, kappa, agreement, *counts))
    return duels
