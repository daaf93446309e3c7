"""Selective labelling with a promise: on how many units may a judge stand alone, so that it agrees often enough?

A path of thresholds is fixed without the labels that test it, from few accepted units to all. Each step is a test of
"the judge disagrees on at least a = 1 - agree of what it accepts here"; the path is followed while tests reject, all at the
same level (fixed-sequence testing: Angelopoulos, Bates, Candès, Jordan & Lei, Learn then Test, arXiv 2110.01052, section 4). So
the chance that the step arrived at breaks the promise is at most that level.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, logsumexp

from judge.stats.ratings import BoolArray, FloatArray, IntArray

ERRORS = 2
"""The path begins where so many errors are allowed: 61 units for 90 % at 95 %. With fewer units a single error ends it."""
STEPS = 24
# Bets as shares of the largest one, which can lose all and no more, and how much of the stake lies on each. A judge that is
# wrong on a share e of single units is best bet on with 1 - e / a; with several units a question the bold bets are best.
_BETS = np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05])
_STAKES = np.array([0.24, 0.12, 0.12, 0.1, 0.1, 0.08, 0.08, 0.06, 0.05, 0.03, 0.02])


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of the path on the tested units: how many are accepted, of how many questions, on how many of them the
    judge is wrong; `agreement` is weighted where units are. `p`: of the test that it is wrong too often; `holds`: this
    step and all before it passed.
    """

    accepted: int
    questions: int
    wrong: int
    agreement: float | None
    p: float
    holds: bool


def first_units(agree: float, level: float) -> int:
    """How many single-unit questions of which ERRORS are wrong still show an agreement of `agree` at a level."""
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
    """The share of units that the first step accepts, read off units that do not test it but were chosen like those.

    The least share whose accepted units stand for `first` of `tested` questions: their number through the most that one
    question holds, which is how the test counts them (single units: just their number). And one standard deviation
    more, of both sets of questions. `sure` and `questions` [N] are of those units.
    """
    n = len(np.unique(questions))
    if not n:
        return 1.0
    numbers = np.unique(questions, return_inverse=True)[1]
    order = np.argsort(-sure, kind="stable")
    for share in np.linspace(0.01, 1.0, 100):
        some = order[: max(1, round(share * len(order)))]
        held = np.bincount(numbers[some])
        if held.sum() / held.max() * tested / n >= first:
            return float(min(1.0, share + np.sqrt(share * (1 - share) * (1 / tested + 1 / n))))
    return 1.0


def path_of(sure: FloatArray, begin: float, steps: int = STEPS) -> list[float]:
    """Thresholds of confidence, the highest first, ending with -inf: everything is accepted.

    `sure` [N] are the confidences of units that are not tested. The first threshold accepts a share `begin` of such
    units, the others go on to all of them in equal steps.
    """
    if not len(sure) or begin >= 1:
        return [-np.inf]
    levels = np.quantile(sure, 1 - np.linspace(begin, 1.0, steps)[:-1], method="lower")
    # One that all these units reach is the last one: everything.
    return [*sorted({float(level) for level in levels if level > sure.min()}, reverse=True), -np.inf]


def follow(
    wrong: BoolArray,
    reached: IntArray,
    clusters: IntArray,
    n_steps: int,
    agree: float,
    level: float,
) -> list[PathStep]:
    """The path on tested units: `reached[u]` is the first step that accepts unit u (n_steps or more: none does).

    All units stand for as many: a promise takes a draw with equal probability. Steps after the first that fails are computed
    (for the curve) and never hold.
    """
    found: list[PathStep] = []
    going = True
    for step in range(n_steps):
        here = reached <= step
        p = disagreement_p(wrong[here], clusters[here], 1 - agree)
        going = going and p <= level
        n = int(here.sum())
        share = None if not n else float((~wrong[here]).mean())
        found.append(PathStep(n, len(np.unique(clusters[here])), int(wrong[here].sum()), share, p, going))
    return found


def disagreement_p(wrong: BoolArray, clusters: IntArray, a: float) -> float:
    """p value of "the judge is wrong on a share of at least `a`", small when it is wrong on clearly fewer units.

    One unit a question: the exact binomial one. Else a bet on the sums of (wrong - a) over
    questions, which lie in [-a m, (1 - a) m], m the most that a question holds: the mean over bets b of
    prod_g (1 - b S_g) has an expectation of at most 1 where the sums' mean is not below 0, so by Markov its inverse is a
    p value (Waudby-Smith & Ramdas 2024, Estimating means of bounded random variables by betting, JRSS B 86(1), section 4,
    with bets that do not change: the order of the questions does not matter).
    """
    n = len(wrong)
    if not n:
        return 1.0
    if np.bincount(clusters).max() <= 1:
        return float(bdtr(int(wrong.sum()), n, a))
    _, own = np.unique(clusters, return_inverse=True)
    sums = np.bincount(own, weights=wrong - a)
    most = float(np.bincount(own).max())
    if a <= 0:
        return 1.0
    # Rounding must not make a lost stake a debt.
    losses = np.minimum(sums / ((1 - a) * most), 1.0)
    with np.errstate(divide="ignore"):
        capital = np.log1p(-np.outer(_BETS, losses)).sum(axis=1)
    return float(min(1.0, np.exp(-logsumexp(capital, b=_STAKES))))


def reached_by(sure: FloatArray, path: Sequence[float]) -> IntArray:
    """The first step of the path that accepts each unit; len(path) for a unit of no confidence (nan)."""
    # Thresholds fall: the first that is not above the confidence.
    at = np.searchsorted(-np.asarray(path), -np.where(np.isnan(sure), -np.inf, sure), side="left")
    at[np.isnan(sure)] = len(path)
    return at.astype(np.int64)
