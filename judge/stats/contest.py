"""Several judges against one reference on the same units: each one's kappa, and every two by a paired test.

Kappa is a function of sums over questions, so the test is that of `jackknife`: Student's t on pseudo-values by question.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.special import stdtrit

from judge.stats.coefficients import disagreement
from judge.stats.jackknife import Paired, paired_difference, pseudo_values
from judge.stats.multiple import holm
from judge.stats.ratings import BoolArray, FloatArray, IntArray


def kappa_sums(
    first: IntArray, second: IntArray, clusters: IntArray, n_labels: int, weights: str | None = None
) -> FloatArray:
    """For each cluster: how alike both labels are, the first's labels, the second's, and last the units [G, 2 + 2 q].

    `weights` as in `disagreement`. All units count: leave out beforehand those that one of the two has no label of.
    """
    n = int(clusters.max()) + 1 if len(clusters) else 0
    alike = (1 - disagreement(n_labels, weights))[first, second]
    sums = np.empty((n, 2 + 2 * n_labels))
    sums[:, 0] = np.bincount(clusters, weights=alike, minlength=n)
    for at, codes in ((1, first), (1 + n_labels, second)):
        counts = np.bincount(clusters * n_labels + codes, minlength=n * n_labels)
        sums[:, at : at + n_labels] = counts.reshape(n, n_labels)
    sums[:, -1] = np.bincount(clusters, minlength=n)
    return sums[sums[:, -1] > 0]


def kappa_of(sums: FloatArray, weights: str | None = None) -> FloatArray:
    """Cohen's kappa of rows of such sums; nan where chance alone would agree on everything.

    One of the two with a single label gives 0, which is what the formula says: such a judge has no skill.
    """
    q = (sums.shape[1] - 2) // 2
    n = sums[:, -1]
    first, second = sums[:, 1 : 1 + q], sums[:, 1 + q : 1 + 2 * q]
    with np.errstate(divide="ignore", invalid="ignore"):
        agree = sums[:, 0] / n
        chance = ((first @ (1 - disagreement(q, weights))) * second).sum(axis=1) / n**2
        return np.where(chance < 1 - 1e-12, (agree - chance) / (1 - chance), np.nan)


def agreement_of(sums: FloatArray) -> FloatArray:
    """The share of equal labels (weighted: how alike they are on average)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share: FloatArray = sums[:, 0] / sums[:, -1]
    return share


def difference_spread(first: FloatArray, second: FloatArray, weights: str | None = None) -> float | None:
    """The standard deviation, over questions, of what each adds to the difference of two kappas.

    `first` and `second` are `kappa_sums` of two judges with the same reference on the same units: the paired
    difference on G questions has this over sqrt G as its standard error. None where a kappa is undefined.
    """

    def kappa(sums: FloatArray) -> FloatArray:
        return kappa_of(sums, weights)

    apart = pseudo_values(second, kappa)[1] - pseudo_values(first, kappa)[1]
    if len(apart) < 2 or not np.isfinite(apart).all():
        return None
    return float(apart.std(ddof=1))


@dataclass(frozen=True, slots=True)
class Standing:
    """One judge on the shared units: kappa with its t interval by question (None: undefined, or nothing varies), and
    the share of units on which it agrees; `n_labels` is how many labels it gave."""

    kappa: float | None
    low: float | None
    high: float | None
    agreement: float
    n_labels: int


@dataclass(frozen=True, slots=True)
class Duel:
    """Two judges, by their places. `kappa` and `agreement` are second - first; `p_holm` adjusts kappa's p value for all duels.

    `both`, `only_first`, `only_second` and `neither` count the units, label by label of the reference [q].
    """

    first: int
    second: int
    kappa: Paired
    agreement: Paired
    both: tuple[int, ...]
    only_first: tuple[int, ...]
    only_second: tuple[int, ...]
    neither: tuple[int, ...]
    p_holm: float | None = None


def contest(
    codes: IntArray,
    truth: IntArray,
    clusters: IntArray,
    n_labels: int,
    weights: str | None = None,
    confidence: float = 0.95,
) -> tuple[list[Standing], list[Duel]]:
    """Judges `codes` [U, m] against `truth` [U], everything labelled: each one, and every two of them.

    `weights` (linear, quadratic) for ordered labels. Intervals and p values are by question (`clusters` [U]).
    """

    def kappa(sums: FloatArray) -> FloatArray:
        return kappa_of(sums, weights)

    sums = [kappa_sums(column, truth, clusters, n_labels, weights) for column in codes.T]
    kappas = [pseudo_values(each, kappa) for each in sums]
    agreements = [pseudo_values(each, agreement_of) for each in sums]
    standings = [
        _standing(each, kappas[i], agreements[i][0], n_labels, confidence) for i, each in enumerate(sums)
    ]
    duels = []
    for i, j in combinations(range(codes.shape[1]), 2):
        one, other = codes[:, i] == truth, codes[:, j] == truth

        def count(mask: BoolArray) -> tuple[int, ...]:
            return tuple(np.bincount(truth[mask], minlength=n_labels).tolist())

        duels.append(
            Duel(
                i,
                j,
                paired_difference(kappas[i], kappas[j], confidence),
                paired_difference(agreements[i], agreements[j], confidence),
                count(one & other),
                count(one & ~other),
                count(~one & other),
                count(~one & ~other),
            )
        )
    known = [d for d in duels if d.kappa.p is not None]
    tested = [float(d.kappa.p) for d in known if d.kappa.p is not None]
    adjusted = dict(zip(map(id, known), holm(tested).tolist(), strict=True)) if known else {}
    return standings, [replace(d, p_holm=adjusted.get(id(d))) for d in duels]


def _standing(
    sums: FloatArray, kappa: tuple[float, FloatArray], agreement: float, n_labels: int, confidence: float
) -> Standing:
    used = int((sums[:, 1 : 1 + n_labels].sum(axis=0) > 0).sum())
    value, pseudo = kappa
    if used < 2 or not np.isfinite(value):
        return Standing(None, None, None, agreement, used)
    n = len(pseudo)
    if n < 2 or not np.isfinite(pseudo).all() or (error := float(pseudo.std(ddof=1) / np.sqrt(n))) < 1e-12:
        return Standing(value, None, None, agreement, used)
    reach = float(stdtrit(n - 1, (1 + confidence) / 2)) * error
    return Standing(value, max(-1.0, value - reach), min(1.0, value + reach), agreement, used)
