"""One label out of several annotators': majority vote, and Dawid & Skene's latent classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from judge.errors import BadInput
from judge.stats.patterns import collapse
from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, Ratings

# EM crawls where annotators are few or poor: it stops at what no printed digit shows, or after minutes.
ITERATIONS, TOLERANCE = 20_000, 1e-11
Tie = Literal["missing", "first", "last", "random"]


@dataclass(frozen=True, eq=False)
class Majority:
    """One code per unit, -1 where nobody voted or a tie is left open. `n_tied` counts all ties."""

    codes: IntArray
    n_tied: int
    tie: Tie


def majority(
    ratings: Ratings, annotators: Sequence[str] | None = None, *, tie: Tie = "missing", seed: int = 0
) -> Majority:
    """The most frequent label of each unit, among `annotators` (default: all).

    A tie between labels is left open (`missing`), or goes to the `first` or `last` of them in the
    order of the domain, or to a `random` one (seeded by `seed`).
    Raises BadInput for another tie rule or an unknown annotator.
    """
    counts = (ratings if annotators is None else ratings.select(annotators)).counts
    codes, tied = vote(counts)
    winners = (counts == counts.max(axis=1, keepdims=True)) & (counts > 0)
    if tie == "missing":
        return Majority(codes, int(tied.sum()), tie)
    if tie == "first":
        codes = winners.argmax(axis=1)
    elif tie == "last":
        codes = counts.shape[1] - 1 - winners[:, ::-1].argmax(axis=1)
    elif tie == "random":
        # Units are visited in the order of the table, which is sorted, so the seed decides alone.
        lot = np.random.default_rng(seed).random(winners.shape)
        codes = np.where(winners, lot, -1.0).argmax(axis=1)
    else:
        raise BadInput(f"unknown tie rule '{tie}'; there are missing, first, last and random")
    codes = np.where(winners.any(axis=1), codes, MISSING)
    return Majority(codes.astype(np.int64), int(tied.sum()), tie)


def vote(counts: IntArray) -> tuple[IntArray, BoolArray]:
    """Of votes [units, labels]: the label with most of them, -1 for none and for ties, and which units are tied."""
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


def dawid_skene(
    ratings: Ratings, *, iterations: int = ITERATIONS, tolerance: float = TOLERANCE
) -> DawidSkene:
    """Maximum likelihood of prevalences and annotators' error rates by EM.

    Dawid & Skene 1979, Applied Statistics 28(1), eq. 2.3-2.5, started from the shares of votes (3.1).
    Annotators are taken as independent given the true class, which a judge prompted alike is not.
    Stops when the log-likelihood of a labelled unit changes by less than `tolerance`. Raises BadInput
    when nothing is labelled.
    """
    patterns = collapse(ratings.codes)
    q = len(ratings.domain)
    one_hot = (patterns.rows[:, :, None] == np.arange(q)).astype(np.float64)
    found = dawid_skene_counts(one_hot, patterns.count, iterations=iterations, tolerance=tolerance)
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
    weight: IntArray | None = None,
    *,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> DawidSkene:
    """As `dawid_skene`, on counts `[units, annotators, labels]`: an annotator may label a unit several times.

    `weight[u]` says how many units have these very counts.
    """
    k, n_annotators, q = counts.shape
    weight = np.ones(k, dtype=np.int64) if weight is None else weight
    flat = counts.reshape(k, n_annotators * q)
    labelled = flat.sum(axis=1) > 0
    n = float(weight[labelled].sum())
    if not n:
        raise BadInput("Dawid-Skene needs at least one label")
    votes = counts.sum(axis=1)[labelled]
    posterior = votes / votes.sum(axis=1, keepdims=True)
    flat, w = flat[labelled], weight[labelled].astype(np.float64)
    path = [-np.inf]
    for _ in range(max(1, iterations)):
        weighted = posterior * w[:, None]
        prevalence = weighted.sum(axis=0) / n
        confusion = (weighted.T @ flat).reshape(q, n_annotators, q)
        total = confusion.sum(axis=2, keepdims=True)
        confusion = np.divide(confusion, total, out=np.zeros_like(confusion), where=total > 0)
        # The floor stands for log 0: such a class cannot win against one that is possible.
        log_joint = flat @ np.log(np.maximum(confusion.reshape(q, -1), 1e-300)).T
        log_joint += np.log(np.maximum(prevalence, 1e-300))
        top = log_joint.max(axis=1, keepdims=True)
        joint = np.exp(log_joint - top)
        posterior = joint / joint.sum(axis=1, keepdims=True)
        path.append(float(w @ (np.log(joint.sum(axis=1)) + top[:, 0])))
        if path[-1] - path[-2] < tolerance * n:
            break
    confusion = np.where(total > 0, confusion, np.nan)
    every = np.full((k, q), np.nan)
    every[labelled] = posterior
    codes = np.full(k, MISSING, dtype=np.int64)
    codes[labelled] = posterior.argmax(axis=1)
    return DawidSkene(
        prevalence,
        confusion.transpose(1, 0, 2),
        every,
        codes,
        log_likelihood=path[-1],
        iterations=len(path) - 1,
        converged=path[-1] - path[-2] < tolerance * n,
    )
