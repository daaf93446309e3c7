"""Measures by label: confusion matrices, precision, recall and F1, specific agreement, label shares."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from judge.stats.bootstrap import IntervalOptions, IntervalSettings, resample
from judge.stats.coefficients import pairable, ratio
from judge.stats.estimate import Estimate, about
from judge.stats.metrics import finish
from judge.stats.patterns import collapse, n_present, tally
from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, Ratings
from judge.types import Measure


@dataclass(frozen=True, eq=False)
class Confusion:
    """A confusion matrix: `matrix[i, j]` units have `labels[i]` from `reference` and `labels[j]` from
    `predicted`.

    Rows and columns are the labels of the declared domain in order, including unused labels. `n_asked` counts
    all units in the table; the cells count only the units that both annotators labelled. If units were drawn
    with unequal probabilities, `shares[i, j]` is the estimated share of all units that belong to a cell;
    otherwise `shares` is None.
    """

    reference: str
    predicted: str
    labels: tuple[str, ...]
    matrix: IntArray
    n_asked: int
    shares: FloatArray | None = None

    @property
    def n_units(self) -> int:
        return int(self.matrix.sum())


def confusion(ratings: Ratings, predicted: str, reference: str) -> Confusion:
    """Return the confusion matrix of two annotators. Raises BadInput if one of them is not in the table."""
    q = len(ratings.domain)
    rows, columns = ratings.column(reference), ratings.column(predicted)
    both = (rows >= 0) & (columns >= 0)
    matrix = np.bincount(rows[both] * q + columns[both], minlength=q * q).reshape(q, q)
    shares = None
    # The counts in a sample that was drawn with unequal probabilities are misleading.
    if ratings.weights is not None and both.any():
        w = ratings.weights[both]
        shares = np.bincount(rows[both] * q + columns[both], w, minlength=q * q).reshape(q, q) / w.sum()
    return Confusion(reference, predicted, ratings.domain, matrix.astype(np.int64), ratings.n_units, shares)


def class_scores(
    ratings: Ratings,
    predicted: str,
    reference: str,
    *,
    field: str | None = None,
    **options: Unpack[IntervalOptions],
) -> list[Measure]:
    """Return accuracy and macro F1 of one annotator against another, and the precision, recall and F1 of each
    label.

    The measures are named `accuracy`, `macro_f1`, `precision:LABEL`, `recall:LABEL`, `f1:LABEL`. Precision =
    TP / predicted, recall = TP / reference, F1 = 2 TP / (predicted + reference). macro_f1 is the mean F1 over
    the labels that either annotator used. The values equal those of scikit-learn
    (`precision_recall_fscore_support`, zero_division=nan), which is not used here, because its import takes a second and
    90 MB.

    n is the number of units in the denominator. If it is zero, the value is None with a reason, never 0. The
    coverage of every measure is the share of units that both annotators labelled. For `options`, see
    `measures`. Raises BadInput if an annotator is not in the table.
    """
    settings = IntervalSettings(**options)
    table = ratings.select([predicted, reference])
    cells = collapse(table.codes)
    q = len(table.domain)
    used = cells.rows.min(axis=1) >= 0
    a, b = np.where(used[:, None], cells.rows, 0).T
    same = (a == b)[:, None]
    # The TP, predicted and reference counts, each with one column per label.
    features = np.column_stack([np.eye(q)[a] * same, np.eye(q)[a], np.eye(q)[b]]) * used[:, None]
    sums = tally(features, cells, used, table)
    n_units = int(cells.count[used].sum())
    both = used[cells.of_unit]
    n_clusters = n_present(table.clusters[both])
    silent = f"no unit is labelled by both '{predicted}' and '{reference}'"

    def score(
        name: str,
        value: Callable[[FloatArray], FloatArray],
        trials: int,
        reason: str,
        mine: BoolArray | None = None,
    ) -> Estimate:
        every = about(name, n_units, ratings.n_units, n_clusters, (predicted, reference), field)
        return Estimate(
            about=every if mine is None else _measure_label(every, table, mine[cells.of_unit] & both),
            tally=sums,
            value=value,
            undefined=lambda: reason if n_units else silent,
            clustered=table.clustered,
            trials=trials,
        )

    estimates = [
        score("accuracy", lambda s: ratio(s[:, :q].sum(axis=1), s[:, q : 2 * q].sum(axis=1)), n_clusters, ""),
        score("macro_f1", lambda s: _macro_f1(s, q), n_clusters, "no label was used"),
    ]
    for k, label in enumerate(table.domain):
        by_predicted, by_reference = sums.rows[:, q + k], sums.rows[:, 2 * q + k]
        never = f"never used the label '{label}'"
        neither = f"neither '{predicted}' nor '{reference}' used the label '{label}'"
        rows = (
            ("precision", f"'{predicted}' {never}", _quotient(k, q + k), by_predicted, a == k),
            ("recall", f"'{reference}' {never}", _quotient(k, 2 * q + k), by_reference, b == k),
            ("f1", neither, _f1(k, q), by_predicted + by_reference, (a == k) | (b == k)),
        )
        for name, reason, value, denominators, mine in rows:
            trials = int(sums.count[denominators > 0].sum())
            estimates.append(score(f"{name}:{label}", value, trials, reason, mine))
    return finish(estimates, settings)


def _measure_label(every: Measure, table: Ratings, mine: BoolArray) -> Measure:
    """Return the measure for one label.

    `n_units` and `n_clusters` count only the units with this label and their questions. The coverage still
    refers to all units.
    """
    return replace(every, n_units=int(mine.sum()), n_clusters=n_present(table.clusters[mine]))


def _f1(k: int, q: int) -> Callable[[FloatArray], FloatArray]:
    return lambda sums: ratio(2 * sums[:, k], sums[:, q + k] + sums[:, 2 * q + k])


def _macro_f1(sums: FloatArray, q: int) -> FloatArray:
    given = sums[:, q : 2 * q] + sums[:, 2 * q :]
    # A label that neither annotator used has an undefined F1, so the mean leaves it out.
    f1 = ratio(2 * sums[:, :q], given)
    used = given > 0
    return ratio(np.where(used, f1, 0.0).sum(axis=1), used.sum(axis=1).astype(np.float64))


def class_agreement(
    ratings: Ratings, *, field: str | None = None, **options: Unpack[IntervalOptions]
) -> list[Measure]:
    """Return the specific agreement of each label, over all pairs of annotators: `class_agreement:LABEL`.

    sum_u n_uk (n_uk - 1) / sum_u n_uk (m_u - 1): the probability that one annotator gives label k to a unit,
    given that another annotator did. With two annotators this is 2a / (2a + b + c) (Cicchetti & Feinstein
    1990); for more annotators, see Fleiss 1981, section 13.1. n is the number of units with the label,
    whereas the coverage refers to all units. The value is None if no pairable unit has the label. For
    `options`, see `measures`.
    """
    settings = IntervalSettings(**options)
    patterns = collapse(ratings.counts)
    rows = patterns.rows.astype(np.float64)
    used = pairable(patterns.rows)
    q = len(ratings.domain)
    agreeing = rows * (rows - 1)
    possible = rows * np.maximum(rows.sum(axis=1) - 1, 0)[:, None]
    sums = tally(np.column_stack([agreeing, possible]), patterns, used, ratings)
    both = used[patterns.of_unit]
    n_units = int(both.sum())
    n_clusters = n_present(ratings.clusters[both])
    resampled = settings.interval and sums.n_clusters >= 2 and sums.effective is None
    drawn = resample([sums], settings)[0] if resampled else None
    measures = []
    for k, label in enumerate(ratings.domain):
        name = f"class_agreement:{label}"
        every = about(name, n_units, ratings.n_units, n_clusters, ratings.annotators, field)
        estimate = Estimate(
            about=_measure_label(every, ratings, both & (patterns.rows[:, k] > 0)[patterns.of_unit]),
            tally=sums,
            value=_quotient(k, q + k),
            undefined=_reason(label, n_units),
            clustered=ratings.clustered,
            trials=int(sums.count[sums.rows[:, q + k] > 0].sum()),
        )
        measures.append(estimate.measure(settings, drawn))
    return measures


def _quotient(numerator: int, denominator: int) -> Callable[[FloatArray], FloatArray]:
    return lambda sums: ratio(sums[:, numerator], sums[:, denominator])


def _reason(label: str, n_units: int) -> Callable[[], str]:
    if not n_units:
        return lambda: "no unit is labelled by two annotators"
    return lambda: f"nobody gave '{label}' to a unit that two annotators labelled"


def label_shares(ratings: Ratings) -> dict[str, dict[str, float] | None]:
    """Return, for each annotator, the share of each label, or None if the annotator gave no labels."""
    shares: dict[str, dict[str, float] | None] = {}
    for at, name in enumerate(ratings.annotators):
        given = ratings.codes[:, at] != MISSING
        weights = None if ratings.weights is None else ratings.weights[given]
        counts = np.bincount(ratings.codes[given, at], weights=weights, minlength=len(ratings.domain))
        total = float(counts.sum())
        shares[name] = dict(zip(ratings.domain, (counts / total).tolist(), strict=True)) if total else None
    return shares
