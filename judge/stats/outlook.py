"""Plan a verdict: compute the probability of a decision as a function of the number of added questions.

The population of questions is drawn at random from those that are consistent with the pilot (the Bayesian
bootstrap, Rubin 1981: the shares of the pilot's questions have a flat Dirichlet distribution). New questions
are drawn from that population, and the verdict's rule is applied to the pilot and the new questions together.
A probability of 80 % means that 80 % of studies reach a decision, averaged over all populations consistent
with the pilot. If the true value is near the limit, only 26 to 64 % of studies reach a decision, however many
questions are planned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from judge.stats.conditions import rule
from judge.stats.patterns import canonical
from judge.stats.ratings import FloatArray, IntArray
from judge.stats.verdict_inputs import DISTRUST, FEWEST_QUESTIONS, IN_PART, TRUST, UNDECIDED, Limits, Sums

DRAWS = 200
# Multiples of the pilot. If a study is undecided at the last multiple, the truth is too close to the limit for any
# plan.
TIMES = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 20.0)
MOST_UNITS = 20_000
# Number of cells in one batch of the rule, which keeps several arrays of this size in memory.
_CELLS = 2_000_000


@dataclass(frozen=True)
class Chance:
    """The probability of each decision with `more_clusters` questions (`more_units` units) added to the pilot."""

    more_clusters: int
    more_units: int
    decided: float
    trusted: float
    distrusted: float


@dataclass(frozen=True)
class Outlook:
    """The probability of a decision as the study grows (`curve`), and the sizes needed for given
    probabilities.

    `more_clusters` and `more_units` are the smallest numbers of added questions and units at which the
    probability is at least `power`. `half` and `most` are the numbers of added units for 50 % and 90 %. A
    number is None if no study on the curve is large enough. `why` is the reason if a number is missing.
    """

    power: float
    curve: tuple[Chance, ...] = ()
    more_clusters: int | None = None
    more_units: int | None = None
    half: int | None = None
    most: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class LookAhead:
    """A future look, at which the verdict is computed with intervals at `confidence`.

    `growth` is the number of units added to the pilot by then, divided by the number of units in the pilot.
    `more_units` is the number of units that still have to be drawn before this look.
    """

    growth: float
    more_units: int
    confidence: float


def outlook(
    sums: Sums,
    limits: Limits,
    *,
    power: float = 0.8,
    looks: Sequence[LookAhead] = (),
    anew: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
) -> Outlook:
    """Return the probability of a decision as one study grows. The arrays in `sums` contain only this study.

    The caller handles studies that are already decided. With `looks`, a study is decided at the first look
    that reaches a decision, and the curve contains only the looks.

    `anew` is true if the pilot's units were drawn with unequal probabilities and weighted. Such units cannot
    count towards a verdict, so they are used only to estimate the distribution of questions, and the planned
    study is a new sample. If the pilot has fewer than ten questions, `why` says so, and no number is
    returned.
    """
    questions, units = int((sums.units[0] > 0).sum()), float(sums.units.sum())
    if questions < FEWEST_QUESTIONS:
        return Outlook(power, why=f"{questions} questions are too few to plan from")
    if float(sums.shares.sum(axis=(0, 1)).max()) > units - 1e-9:
        return Outlook(power, why="people gave only one label, so the rate of other labels is unknown")
    pilot, count, share = _patterns(sums)
    rng = np.random.default_rng(seed)
    truths = rng.dirichlet(share, size=draws)
    # An unequal draw supports no verdict, so its units cannot count towards one.
    kept = np.zeros_like(count) if anew else count
    decided = _Grown(pilot, kept, truths, limits, units / questions)

    def smallest(chance: float) -> Chance | None:
        # Nothing is decided between two looks, so the smallest number is a point of the curve itself.
        if looks:
            return next((point for point in curve if point.decided >= chance - 1e-9), None)
        return decided.crossing(curve, chance)

    if looks:
        curve = decided.compute_chances(looks, questions, seed)
    else:
        curve = []
        for times in TIMES:
            more = max(1, ceil(questions * (times - 1)))
            if curve and more * units / questions > MOST_UNITS:
                break
            curve.append(decided.compute_chance(more))
    first, half, most = map(smallest, (power, 0.5, 0.9))
    reason = ""
    if first is None:
        last = curve[-1]
        # The remaining looks can be at units that are already drawn and wait for labels.
        which = (
            f"even {last.more_units:,} more units"
            if last.more_units > 0
            else "the units that are already drawn"
        )
        reason = f"{which} have a chance of only {last.decided:.0%}"
    return Outlook(
        power,
        tuple(curve),
        first.more_clusters if first else None,
        first.more_units if first else None,
        half.more_units if half else None,
        most.more_units if most else None,
        reason,
    )


@dataclass(frozen=True, eq=False)
class _Grown:
    """Simulated studies to which questions are added: one study for each drawn population [draws, patterns]."""

    pilot: Sums
    count: IntArray
    truths: FloatArray
    limits: Limits
    units_per_question: float

    def compute_chance(self, more: int) -> Chance:
        """Return the probability of each decision after `more` questions have been added."""
        # Seeded by the number of questions: each point of the curve is the same however the search reaches it.
        drawn = np.random.default_rng(more).multinomial(more, self.truths)
        decision = _decide(self.pilot, self.limits, self.count + drawn)
        return _chance(more, max(1, round(more * self.units_per_question)), decision)

    def compute_chances(self, looks: Sequence[LookAhead], questions: int, seed: int) -> list[Chance]:
        """Return the probability that a decision is reached by the time of each look.

        The same simulated studies grow from look to look. Each study keeps the first decision that it
        reaches.
        """
        rng = np.random.default_rng(seed + 1)
        drawn, before = np.zeros(self.truths.shape, dtype=np.int64), 0
        decision = np.full(len(self.truths), UNDECIDED)
        curve = []
        for look in looks:
            more = max(before, round(questions * look.growth))
            drawn = drawn + rng.multinomial(more - before, self.truths)
            before = more
            now = _decide(self.pilot, self.limits.adjust_confidence(look.confidence), self.count + drawn)
            decision = np.where(decision == UNDECIDED, now, decision)
            curve.append(_chance(more, look.more_units, decision))
        return curve

    def crossing(self, curve: Sequence[Chance], power: float) -> Chance | None:
        """Return the smallest number of added questions that leads to a decision with the probability
        `power`.

        The result is None if no point on the curve has this probability. The search is limited to the range
        between two points on the curve.
        """
        # Interpolation would fail, because a condition that needs ten units of a kind makes a step in the curve.
        over = next((i for i, point in enumerate(curve) if point.decided >= power - 1e-9), None)
        if over is None:
            return None
        fewest, below = curve[over], curve[over - 1].more_clusters if over else 0
        while fewest.more_clusters - below > 1:
            middle = self.compute_chance((fewest.more_clusters + below) // 2)
            if middle.decided >= power - 1e-9:
                fewest = middle
            else:
                below = middle.more_clusters
        return fewest


def _chance(more_clusters: int, more_units: int, decision: IntArray) -> Chance:
    trusted = float(np.isin(decision, (TRUST, IN_PART)).mean())
    distrusted = float((decision == DISTRUST).mean())
    return Chance(more_clusters, more_units, float((decision != UNDECIDED).mean()), trusted, distrusted)


def _patterns(sums: Sums) -> tuple[Sums, IntArray, FloatArray]:
    """Return the distinct patterns of questions, the number of questions with each pattern, and the weight of
    each pattern.

    The order of patterns does not depend on names. If the units have design weights, the weights are removed
    from the sums of each question, and the weights of the patterns sum to the effective number of questions
    (Kish 1965). Otherwise the weight of a pattern is its number of questions.
    """
    used = sums.units[0] > 0
    mean = float(sums.units[0][used].mean())
    weight = sums.units[0][used] / mean if sums.weighted else np.ones(int(used.sum()))
    names = ("rows", "apart", "apart_units", "apart_squares")
    arrays = {name: getattr(sums, name)[:, used] for name in names}
    # The alt-test's sums are not weighted.
    arrays["rows"] = arrays["rows"] / weight[:, None]
    flat = np.concatenate([a[0] for a in arrays.values()], axis=1)
    rows, first, which, count = np.unique(
        flat.round(9), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = canonical(rows, count)
    share = np.bincount(which.reshape(-1), weights=weight)[order] * weight.sum() / (weight**2).sum()
    pilot = replace(sums, **{name: a[:, first[order]] for name, a in arrays.items()})
    return pilot, count[order].astype(np.int64), share


def _decide(pilot: Sums, limits: Limits, weights: IntArray) -> IntArray:
    patterns = weights.shape[1]
    block = max(1, _CELLS // max(1, patterns * (3 + 4 * len(pilot.agreement))))
    parts = [rule(pilot, limits, weights[i : i + block]).decision for i in range(0, len(weights), block)]
    return np.concatenate(parts)
