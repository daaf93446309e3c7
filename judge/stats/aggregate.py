"""Aggregate several annotators' labels into one: majority vote, and the latent-class model of Dawid and Skene."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from judge.errors import BadInput
from judge.stats.patterns import collapse
from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, Ratings

# EM converges slowly where annotators are few or poor. So the tolerance is smaller than any printed digit, and the
# limit on iterations is reached only after minutes.
ITERATIONS, TOLERANCE, CYCLES = 20_000, 1e-9, 5


def vote(counts: IntArray) -> tuple[IntArray, BoolArray]:
    """Return, for each unit, the label with the most votes and whether the vote is tied.

    `counts` is an array of votes [units, labels], for example from `Ratings.counts` or `tally_votes`. The
    label is -1 if nobody voted or the vote is tied; ties are not broken.
    """
    most = counts.max(axis=1)
    tied = ((counts == most[:, None]).sum(axis=1) > 1) & (most > 0)
    # Breaking a tie by label order would favour the label that happens to be declared first.
    codes = np.where((most > 0) & ~tied, counts.argmax(axis=1), MISSING)
    return codes.astype(np.int64), tied


def tally_votes(codes: IntArray, q: int) -> IntArray:
    """Count how often each of q labels occurs in each row of `codes` [units, annotators].

    A code of -1 is a missing label.
    """
    counts = np.zeros((len(codes), q + 1), dtype=np.int64)
    rows = np.arange(len(codes))
    for annotator_codes in codes.T:
        # A missing label is -1, which indexes the extra last column; that column is cut off below.
        counts[rows, annotator_codes] += 1
    return counts[:, :q]


@dataclass(frozen=True, eq=False)
class DawidSkene:
    """A fitted Dawid-Skene model.

    `prevalence[j]` is the prevalence of class j, and `confusion[a, j, l]` is P(annotator a gives l | true
    class j). A class to which no unit is attributed has nan in its row of `confusion`. `posterior[u, j]` is
    nan for a unit without labels. `codes[u]` is the most probable class of unit u, or -1 if the unit has no
    label.
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
        """The probability that annotator a labels a unit of class j correctly, indexed [a][j]. It is None for
        a class to which no unit is attributed.
        """
        chances = np.einsum("ajj->aj", self.confusion).tolist()
        return [[None if math.isnan(p) else p for p in row] for row in chances]

    @property
    def accuracies(self) -> list[float | None]:
        """The probability that each annotator gives the true label: sum_j prevalence_j confusion[a, j, j]."""
        chances = np.einsum("ajj->aj", self.confusion)
        known = ~np.isnan(chances)
        weight = np.where(known, self.prevalence, 0.0).sum(axis=1)
        value = (np.where(known, chances, 0.0) * self.prevalence).sum(axis=1)
        return [float(v / w) if w > 0 else None for v, w in zip(value, weight, strict=True)]


def dawid_skene(ratings: Ratings) -> DawidSkene:
    """Estimate prevalences and annotators' error rates by maximum likelihood (EM).

    Dawid & Skene 1979, Applied Statistics 28(1), eq. 2.3-2.5, starting from the vote shares (section 3.1).
    The iteration stops when no prevalence or rate changes by more than TOLERANCE. The model assumes that
    annotators are independent given the true class, an assumption that judges with similar prompts violate.
    Units count in proportion to their design weights, so that the prevalences and rates apply to all units.
    Raises BadInput if no unit is labelled.
    """
    patterns = collapse(ratings.codes)
    weight: FloatArray = patterns.count.astype(np.float64)
    if ratings.weights is not None:
        # The likelihood would grow with the scale of the weights; a mean of 1 keeps the number of units.
        share = ratings.weights / ratings.weights.mean()
        weight = np.bincount(patterns.of_unit, share, len(patterns.count)).astype(np.float64)
    q = len(ratings.domain)
    one_hot = (patterns.rows[:, :, None] == np.arange(q)).astype(np.float64)
    fit = dawid_skene_counts(one_hot, weight)
    return replace(fit, posterior=fit.posterior[patterns.of_unit], codes=fit.codes[patterns.of_unit])


def dawid_skene_counts(counts: FloatArray, weight: FloatArray | None = None) -> DawidSkene:
    """Fit the model of `dawid_skene` to label counts `[units, annotators, labels]`. An annotator may label a
    unit several times.

    `weight[u]` is the number of units with these counts, or the design weight of unit u.
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

    def fit(posterior: FloatArray) -> FloatArray:
        """Return an array [q, 1 + a q]: the prevalences in the first column, then each annotator's label
        counts by class.
        """
        weighted = posterior * w[:, None]
        confusion = (weighted.T @ flat).reshape(q, n_annotators, q)
        return np.column_stack([weighted.sum(axis=0), confusion.reshape(q, -1)])

    def shares(theta: FloatArray) -> FloatArray:
        confusion = theta[:, 1:].reshape(q, n_annotators, q)
        total = confusion.sum(axis=2, keepdims=True)
        confusion = np.divide(confusion, total, out=np.zeros_like(confusion), where=total > 0)
        return np.column_stack([theta[:, 0] / theta[:, 0].sum(), confusion.reshape(q, -1)])

    def expected(theta: FloatArray) -> tuple[FloatArray, float]:
        """Return the posterior distribution of every unit's class, and the log-likelihood."""
        # The floor replaces log 0: an impossible class cannot win against a possible one.
        logs = np.log(np.maximum(theta, 1e-300))
        log_joint = flat @ logs[:, 1:].T + logs[:, 0]
        # With many annotators the joint probability underflows, so the largest term is taken out first (log-sum-exp).
        top = log_joint.max(axis=1, keepdims=True)
        joint = np.exp(log_joint - top)
        total = joint.sum(axis=1, keepdims=True)
        return joint / total, float(w @ (np.log(total) + top)[:, 0])

    # EM starts from the votes, not at random: it finds a local maximum, in which labels could be swapped.
    theta = shares(fit(votes / votes.sum(axis=1, keepdims=True)))
    theta, posterior, log_likelihood, steps, converged = _converge(
        theta, expected, lambda posterior: shares(fit(posterior)), shares
    )
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


def _converge(
    theta: FloatArray,
    expected: Callable[[FloatArray], tuple[FloatArray, float]],
    fitted: Callable[[FloatArray], FloatArray],
    shares: Callable[[FloatArray], FloatArray],
) -> tuple[FloatArray, FloatArray, float, int, bool]:
    """Run EM, starting from `theta`. Return theta, the posterior, the log-likelihood, the number of steps,
    and whether EM converged.

    Steps are extrapolated with SQUAREM (Varadhan and Roland 2008, scheme S3) unless that lowers the
    likelihood. EM has converged when CYCLES extrapolated cycles in a row change no value by more than
    TOLERANCE.
    """
    posterior, value = expected(theta)
    # A cycle evaluates the likelihood three times, so it counts as three steps.
    steps, still = 1, 0
    while steps + 3 <= ITERATIONS:
        first_step = fitted(posterior)
        posterior, _ = expected(first_step)
        second_step = fitted(posterior)
        posterior, value = expected(second_step)
        first, second = first_step - theta, second_step - 2 * first_step + theta
        bend = float(np.sqrt((second**2).sum()))
        reach = float(np.sqrt((first**2).sum())) / bend if bend > 0 else 1.0
        tried = theta + 2 * reach * first + reach**2 * second
        # An extrapolation can leave the simplex; those entries fall back to the plain EM step.
        tried = shares(np.where(tried > 0, tried, second_step))
        tried_posterior, better = expected(tried)
        moved = max(float(np.abs(first_step - theta).max()), float(np.abs(tried - theta).max()))
        theta = second_step
        # EM alone never lowers the likelihood; an extrapolation may, and is then dropped.
        if better >= value:
            theta, posterior, value = tried, tried_posterior, better
        steps += 3
        # Along a flat ridge the steps of EM become small long before it converges, so one still cycle proves nothing.
        still = still + 1 if moved < TOLERANCE else 0
        if still == CYCLES:
            return theta, posterior, value, steps, True
    # Fewer than three iterations remain, too few for an extrapolated cycle; plain EM uses them up.
    for _ in range(ITERATIONS - steps):
        theta = fitted(posterior)
        posterior, value = expected(theta)
    return theta, posterior, value, ITERATIONS, False
