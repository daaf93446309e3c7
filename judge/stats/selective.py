"""Selective labelling with a guarantee: select the units that a judge may label alone, so that its agreement
with people is high enough.

A path of thresholds, from few accepted units to all units, is fixed without using the labels that test it.
Each step tests the hypothesis that the judge disagrees with people on a share of at least a = 1 - agree of
the units that this step accepts. The path is followed as long as the tests reject the hypothesis, all at the
same level (fixed-sequence testing: Angelopoulos, Bates, Candès, Jordan & Lei, Learn then Test, arXiv
2110.01052, section 4). So the probability that the last passed step violates the guarantee is at most that
level.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, logsumexp

from judge.stats.ratings import BoolArray, FloatArray, IntArray

# Errors allowed at the start of the path, which is 61 units for 90 % at 95 %. With fewer units, a single error would
# end the path.
ERRORS = 2
STEPS = 24
# Bets as shares of the largest bet, which can lose the whole stake but no more, and the part of the stake on each.
# For a judge that is wrong on a share e of single units, the best bet is 1 - e / a. With several units per question,
# larger bets are better.
_BETS = np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05])
_STAKES = np.array([0.24, 0.12, 0.12, 0.1, 0.1, 0.08, 0.08, 0.06, 0.05, 0.03, 0.02])


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of the path on the tested units: the accepted units, their questions, and the units on which the judge is wrong.

    `agreement` is weighted if the units are weighted. `p` is the p value of the hypothesis that the judge is
    wrong too often. `holds` is true if this step and all earlier steps passed.
    """

    accepted: int
    questions: int
    wrong: int
    agreement: float | None
    p: float
    holds: bool


def first_units(agree: float, level: float) -> int:
    """Return how many questions, with one unit each, are enough to show an agreement of `agree` at a
    significance level.

    It is assumed that the judge is wrong on ERRORS of the units.
    """
    n = ERRORS + 1
    while bdtr(ERRORS, n, 1 - agree) > level:
        n += 1
    return n


def first_share(
    first: int,
    sure: FloatArray,
    questions: IntArray,
    tested: int,
) -> float:
    """Return the share of units that the first step should accept.

    It is estimated from units that were drawn in the same way as the tested units, but are not tested
    themselves. `sure` [N] are their confidences, and `questions` [N] their questions.

    The first step must provide as much evidence as `first` questions with one unit each. As in the test, the
    amount of evidence is the number of accepted units, divided by the largest number of accepted units in one
    question. The result is the smallest share that is expected to suffice among `tested` questions, plus one
    standard deviation.
    """
    n = len(np.unique(questions))
    if not n:
        return 1.0
    numbers = np.unique(questions, return_inverse=True)[1]
    order = np.argsort(-sure, kind="stable")
    for share in np.linspace(0.01, 1.0, 100):
        some = order[: max(1, round(share * len(order)))]
        per_question = np.bincount(numbers[some])
        if per_question.sum() / per_question.max() * tested / n >= first:
            # The share varies between the two sets of questions. With one standard deviation added, there are rarely
            # too few units.
            return float(min(1.0, share + np.sqrt(share * (1 - share) * (1 / tested + 1 / n))))
    return 1.0


def path_of(sure: FloatArray, begin: float, steps: int = STEPS) -> list[float]:
    """Return confidence thresholds, the highest first. The last is -inf, which accepts everything.

    `sure` [N] are the confidences of units that are not tested. The first threshold accepts a share `begin`
    of these units. From one threshold to the next, the accepted share grows by equal amounts, up to 1.
    """
    if not len(sure) or begin >= 1:
        return [-np.inf]
    levels = np.quantile(sure, 1 - np.linspace(begin, 1.0, steps)[:-1], method="lower")
    # A threshold that all these units reach equals the last step, which accepts everything.
    return [*sorted({float(level) for level in levels if level > sure.min()}, reverse=True), -np.inf]


def follow(
    wrong: BoolArray,
    reached: IntArray,
    clusters: IntArray,
    n_steps: int,
    agree: float,
    level: float,
) -> list[PathStep]:
    """Return the path on tested units: `reached[u]` is the first step that accepts unit u (n_steps or more if
    no step does).

    All units have equal weights, because the guarantee needs a draw with equal probability. Steps after the
    first failure are computed for the curve, but never hold.
    """
    path: list[PathStep] = []
    going = True
    for step in range(n_steps):
        here = reached <= step
        p = disagreement_p(wrong[here], clusters[here], 1 - agree)
        # All steps are tested at one level, which is valid only if nothing holds after the first failure.
        going = going and p <= level
        n = int(here.sum())
        share = None if not n else float((~wrong[here]).mean())
        path.append(PathStep(n, len(np.unique(clusters[here])), int(wrong[here].sum()), share, p, going))
    return path


def disagreement_p(wrong: BoolArray, clusters: IntArray, a: float) -> float:
    """Return the p value of the hypothesis that the judge is wrong on a share of at least `a`. It is small if
    the judge is wrong on clearly fewer units.

    With one unit per question, this is the exact binomial p value. Otherwise it comes from bets on the sums
    S_g of (wrong - a) by question. These sums are in [-a m, (1 - a) m], where m is the largest number of
    units in a question. If the mean of the sums is not below 0, the mean over bets b of prod_g (1 - b S_g)
    has an expectation of at most 1, so by Markov's inequality its inverse is a p value (Waudby-Smith & Ramdas
    2024, Estimating means of bounded random variables by betting, JRSS B 86(1), section 4). The bets are
    constant, so the order of the questions does not matter.
    """
    n = len(wrong)
    if not n:
        return 1.0
    # An exact binomial test on units that share questions violated its guarantee in 11 to 14 % of studies.
    if np.bincount(clusters).max() <= 1:
        return float(bdtr(int(wrong.sum()), n, a))
    _, question_of = np.unique(clusters, return_inverse=True)
    sums = np.bincount(question_of, weights=wrong - a)
    most = float(np.bincount(question_of).max())
    # A guarantee of full agreement allows no disagreement, and no number of units can show that.
    if a <= 0:
        return 1.0
    # Rounding must not make the loss larger than the stake, because the logarithm would be nan.
    losses = np.minimum(sums / ((1 - a) * most), 1.0)
    with np.errstate(divide="ignore"):
        capital = np.log1p(-np.outer(_BETS, losses)).sum(axis=1)
    return float(min(1.0, np.exp(-logsumexp(capital, b=_STAKES))))


def find_accepting_step(sure: FloatArray, path: Sequence[float]) -> IntArray:
    """Return, for each unit, the first step of the path that accepts it, or len(path) if its confidence is nan."""
    # The thresholds decrease, so this finds the first one that is not above the confidence.
    at = np.searchsorted(-np.asarray(path), -np.where(np.isnan(sure), -np.inf, sure), side="left")
    at[np.isnan(sure)] = len(path)
    return at.astype(np.int64)
