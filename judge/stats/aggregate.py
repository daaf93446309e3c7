"""One label out of several annotators': majority vote, and Dawid & Skene's latent classes."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from judge.errors import BadInput
from judge.stats.patterns import collapse
from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, Ratings

# EM crawls where annotators are few or poor: it stops at what no printed digit shows, or after minutes.
ITERATIONS, TOLERANCE, CYCLES = 20_000, 1e-9, 5


def vote(counts: IntArray) -> tuple[IntArray, BoolArray]:
    """Majority of votes [units, labels] (`Ratings.counts`, `tally_votes`): the label with most of them, and which units are tied.

    -1 for no vote and for ties, which are left open.
    """
    most = counts.max(axis=1)
    tied = ((counts == most[:, None]).sum(axis=1) > 1) & (most > 0)
    codes = np.where((most > 0) & ~tied, counts.argmax(axis=1), MISSING)
    return codes.astype(np.int64), tied


def tally_votes(codes: IntArray, q: int) -> IntArray:
    """How often each of q labels stands in each row of codes [units, annotators], -1 for none."""
    counts = np.zeros((len(codes), q + 1), dtype=np.int64)
    rows = np.arange(len(codes))
    for own in codes.T:
        counts[rows, own] += 1  # what is no label goes to the last column
    return counts[:, :q]


@dataclass(frozen=True, eq=False)
class DawidSkene:
    """`prevalence[j]`; `confusion[a, j, l]` = P(annotator a says l | true class j), nan rows where a
    class has no weight; `posterior[u, j]`, nan where a unit has no label; `codes[u]` its argmax or -1.
    """

    prevalence: FloatArray
    confusion: FloatArray
    posterior: FloatArray
    codes: IntArray
    log_likelihood: float
    iterations: int
    converged: bool

    @property
    def right(self) -> list[list[float | None]]:
        """[a][j]: the chance that annotator a gives the label of class j to its units, None where it has no weight."""
        chances = np.einsum("ajj->aj", self.confusion).tolist()
        return [[None if math.isnan(p) else p for p in row] for row in chances]

    @property
    def accuracies(self) -> list[float | None]:
        """Each annotator's probability of the true label: sum_j prevalence_j confusion[a, j, j]."""
        chances = np.einsum("ajj->aj", self.confusion)
        known = ~np.isnan(chances)
        weight = np.where(known, self.prevalence, 0.0).sum(axis=1)
        value = (np.where(known, chances, 0.0) * self.prevalence).sum(axis=1)
        return [float(v / w) if w > 0 else None for v, w in zip(value, weight, strict=True)]


def dawid_skene(
    ratings: Ratings, *, iterations: int = ITERATIONS, tolerance: float = TOLERANCE
) -> DawidSkene:
    """Maximum likelihood of prevalences and annotators' error rates by EM.

    Dawid & Skene 1979, Applied Statistics 28(1), eq. 2.3-2.5, started from the shares of votes (3.1).
    Annotators are taken as independent given the true class, which a judge prompted alike is not.
    Stops when no prevalence or rate is moved by `tolerance` any more. Weighted units count by how many they stand for, so
    that prevalences and rates are those of all units. Raises BadInput when nothing is labelled.
    """
    patterns = collapse(ratings.codes)
    weight: FloatArray = patterns.count.astype(np.float64)
    if ratings.weights is not None:
        share = ratings.weights / ratings.weights.mean()
        weight = np.bincount(patterns.of_unit, share, len(patterns.count)).astype(np.float64)
    q = len(ratings.domain)
    one_hot = (patterns.rows[:, :, None] == np.arange(q)).astype(np.float64)
    found = dawid_skene_counts(one_hot, weight, iterations=iterations, tolerance=tolerance)
    return DawidSkene(
        found.prevalence,
        found.confusion,
        found.posterior[patterns.of_unit],
        found.codes[patterns.of_unit],
        found.log_likelihood,
        found.iterations,
        found.converged,
    )


def dawid_skene_counts(
    counts: FloatArray,
    weight: FloatArray | None = None,
    *,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> DawidSkene:
    """As `dawid_skene`, on counts `[units, annotators, labels]`: an annotator may label a unit several times.

    `weight[u]` says how many units have these very counts, or stand behind them.
    """
    k, n_annotators, q = counts.shape
    weight = np.ones(k) if weight is None else weight
    flat = counts.reshape(k, n_annotators * q)
    labelled = flat.sum(axis=1) > 0
    n = float(weight[labelled].sum())
    if not n:
        raise BadInput("Dawid-Skene needs at least one label")
    votes = counts.sum(axis=1)[labelled]
    flat, w = flat[labelled], weight[labelled]

    def fitted(posterior: FloatArray) -> FloatArray:
        """Prevalences [q] and, one below the other, the shares of labels that each annotator gives a class [q, 1 + a q]."""
        weighted = posterior * w[:, None]
        confusion = (weighted.T @ flat).reshape(q, n_annotators, q)
        return np.column_stack([weighted.sum(axis=0), confusion.reshape(q, -1)])

    def shares(theta: FloatArray) -> FloatArray:
        confusion = theta[:, 1:].reshape(q, n_annotators, q)
        total = confusion.sum(axis=2, keepdims=True)
        confusion = np.divide(confusion, total, out=np.zeros_like(confusion), where=total > 0)
        return np.column_stack([theta[:, 0] / theta[:, 0].sum(), confusion.reshape(q, -1)])

    def expected(theta: FloatArray) -> tuple[FloatArray, float]:
        """The posterior of every unit's class, and the log-likelihood."""
        # The floor stands for log 0: such a class cannot win against one that is possible.
        logs = np.log(np.maximum(theta, 1e-300))
        log_joint = flat @ logs[:, 1:].T + logs[:, 0]
        top = log_joint.max(axis=1, keepdims=True)
        joint = np.exp(log_joint - top)
        total = joint.sum(axis=1, keepdims=True)
        return joint / total, float(w @ (np.log(total) + top)[:, 0])

    theta = shares(fitted(votes / votes.sum(axis=1, keepdims=True)))
    found = _settled(
        theta, expected, lambda posterior: shares(fitted(posterior)), shares, iterations, tolerance
    )
    theta, posterior, log_likelihood, steps, converged = found
    confusion = theta[:, 1:].reshape(q, n_annotators, q)
    confusion = np.where(confusion.sum(axis=2, keepdims=True) > 0, confusion, np.nan)
    every = np.full((k, q), np.nan)
    every[labelled] = posterior
    codes = np.full(k, MISSING, dtype=np.int64)
    codes[labelled] = posterior.argmax(axis=1)
    return DawidSkene(
        theta[:, 0],
        confusion.transpose(1, 0, 2),
        every,
        codes,
        log_likelihood=log_likelihood,
        iterations=steps,
        converged=converged,
    )


def _settled(
    theta: FloatArray,
    expected: Callable[[FloatArray], tuple[FloatArray, float]],
    fitted: Callable[[FloatArray], FloatArray],
    shares: Callable[[FloatArray], FloatArray],
    iterations: int,
    tolerance: float,
) -> tuple[FloatArray, FloatArray, float, int, bool]:
    """EM from `theta` until it stands still, with squared extrapolation (SQUAREM, Varadhan and Roland 2008, scheme S3) where
    that does not lower the likelihood: theta, posterior, log-likelihood, steps taken, and whether it stands still.

    Plain EM creeps along flat ridges, where its steps are small long before its end is near. An extrapolated cycle goes as
    far as the steps lead: it stands still when CYCLES of them in turn move nothing by more than the tolerance.
    """
    posterior, value = expected(theta)
    steps, still = 1, 0
    while steps + 3 <= iterations:
        one = fitted(posterior)
        posterior, _ = expected(one)
        two = fitted(posterior)
        posterior, value = expected(two)
        first, second = one - theta, two - 2 * one + theta
        bend = float(np.sqrt((second**2).sum()))
        reach = float(np.sqrt((first**2).sum())) / bend if bend > 0 else 1.0
        tried = theta + 2 * reach * first + reach**2 * second
        tried = shares(np.where(tried > 0, tried, two))
        found, better = expected(tried)
        moved = max(float(np.abs(one - theta).max()), float(np.abs(tried - theta).max()))
        theta = two
        if better >= value:
            theta, posterior, value = tried, found, better
        steps += 3
        still = still + 1 if moved < tolerance else 0
        if still == CYCLES:
            return theta, posterior, value, steps, True
    for _ in range(iterations - steps):
        theta = fitted(posterior)
        posterior, value = expected(theta)
    return theta, posterior, value, iterations, False
