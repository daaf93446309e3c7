"""The schedule of interim looks at a growing sample, and the significance level of each look.

The verdict is computed only after fixed numbers of units, called places. Each computation is called a look.
All looks at one sequence of units share one significance level: an alpha-spending function (Lan & DeMets
1983, Biometrika 70(3)) fixes how much of the level is spent up to each place. The boundary is the z value
that a look must exceed. It takes into account how many labels two looks have in common. docs/verdict.md
explains the rule.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from judge.stats.ratings import BoolArray, FloatArray

# With the fixed-sample rule and a look every 25 units up to 300, a judge exactly at the margin is trusted at some
# look in 13 to 15 % of studies.
PLACES = (100, 200, 300, 450, 650, 1000)
"""Numbers of units after which the verdict is computed."""
# Most of the level is spent by 300 units: O'Brien and Fleming's boundary for 1,000 would lose .58 of the power there.
SPENT = (0.10, 0.35, 0.65, 0.85, 0.95, 1.0)
"""The cumulative share of the level that is spent up to each place."""
# The one-sided level of all looks together. The usual .025 is lowered because the jackknife's standard errors are a little
# too small on few units. With .0225 a judge at the margin is trusted at some look in about 4 % of simulated studies.
LEVEL = 0.0225
ONE_LOOK = 0.025
"""The one-sided level of a verdict that is computed once: the level of one side of a 95 % interval."""
LEAST_COVERAGE = 0.9
"""The smallest share of the drawn units that must have labels from the judge and from people. The other units
may be harder.
"""
# The best of 10 prompts on the same labels would be trusted in 25 to 32 % of studies if the level were not divided. With
# exact tests, 1 / m of the level would do (Bonferroni). The verdict's statistic is skewed on a few hundred units, and Student's
# t has thinner tails: a judge at the margin passes at a small level a with a probability in proportion to a^(1 / 1.75).
TAIL = 1.75
# Smallest share of information that a look adds, because by chance the later of two standard errors may be the larger
# one.
_LEAST_NEW = 0.02
_NODES = 48
_LOWEST = -8.0


@dataclass(frozen=True, eq=False)
class Looks:
    """The interim looks at one sequence of units: those that are completed, and those that may follow.

    The last completed look decides. `masks` select the units of each completed look in a table; each mask
    includes the previous one. `places` has, for each completed look, the number of units drawn by the time of
    that look, labelled or not. `ahead` has the corresponding numbers for the looks that may follow.
    `spent[k]` is the one-sided level that is spent up to look k, including the looks at `ahead`. `size` is
    the number of units drawn up to now.
    """

    masks: tuple[BoolArray, ...]
    places: tuple[int, ...]
    ahead: tuple[int, ...]
    spent: tuple[float, ...]
    size: int


@dataclass(frozen=True, eq=False)
class Draw:
    """How the labelled units were selected, and which judges are tested on them. Tables, imported labels and
    drawn batches differ only in these values.

    `words` complete the sentence "on 300 units ...". `is_random` states whether the units are known to be
    drawn with equal probabilities. `judges` is the number of judges that share the significance level.

    `refused` says why these units give only estimates, and what to do. `objection` says why they cannot
    support trust. Both are empty if there is no such reason. `is_tested` is false if the units were drawn for
    other judges. `no_labels` is true if the judge labelled none of the units. In both cases `refused` says so.
    `remedy` says how to obtain labels that the judge lacks.

    Without `looks` there is a single look. `fresh` marks the units whose human labels were given after the
    draw; other units count as unlabelled. If it is None, all labels were.
    """

    words: str = "in the table"
    is_random: bool = False
    judges: int = 1
    looks: Looks | None = None
    fresh: BoolArray | None = None
    refused: str = ""
    objection: str = ""
    remedy: str = ""
    is_tested: bool = True
    no_labels: bool = False

    @property
    def next_place(self) -> int | None:
        """The number of units at which the verdict is computed next."""
        return self.looks.ahead[0] if self.looks is not None and self.looks.ahead else None

    @property
    def share(self) -> float:
        """The share of the significance level at which each judge is tested."""
        return float(self.judges**-TAIL)


def compute_spent(places: Sequence[int], end: int) -> tuple[float, ...]:
    """Return the significance level that is spent up to and including each place.

    The sequence has at most `end` units.
    """
    share = dict(zip(PLACES, SPENT, strict=True))
    # No look follows the end of the sequence, so the whole level is spent there.
    return tuple(LEVEL if place >= end else LEVEL * share[place] for place in places)


def places_until(end: int) -> tuple[int, ...]:
    """Return the numbers of units (places) at which the verdict is computed, up to `end` units.

    The last place is `end` or 1,000, whichever is smaller. The others are the entries of PLACES below it.
    """
    last = min(end, PLACES[-1])
    return (*(place for place in PLACES if place < last), last) if last > 0 else ()


def boundary(information: FloatArray, spent: Sequence[float]) -> FloatArray:
    """Return the value of z [studies] that the last look must exceed.

    `information` [studies, looks] is 1 / (standard error)^2 at each look, and `spent` is the one-sided level
    that is spent up to each look. The z of look k is such that, under the null hypothesis, the probability of
    passing at look k and at no earlier look is spent[k] - spent[k - 1]. It is found by numerical integration
    over the estimate at the previous look (Armitage, McPherson & Rowe 1969).
    """
    from scipy.special import ndtr, ndtri

    # A study in which no question differs from another has infinite information, and no boundary follows from that.
    known = np.where(np.isfinite(information).all(axis=1, keepdims=True), information, 1.0)
    studies, looks = known.shape
    limit = np.full(studies, float(ndtri(1 - spent[0])))
    at, weights = np.polynomial.legendre.leggauss(_NODES)
    density: Callable[[FloatArray], FloatArray] = _normal
    before = known[:, 0]
    for k in range(1, looks):
        half = (limit - _LOWEST) / 2
        nodes = _LOWEST + half[:, None] * (at + 1)
        mass = half[:, None] * weights * density(nodes)
        now = np.maximum(known[:, k], before * (1 + _LEAST_NEW))
        pull = np.sqrt(before / now)[:, None]
        free = np.sqrt(1 - pull**2)
        low, high = np.zeros(studies), np.full(studies, 8.0)
        wanted = spent[k] - spent[k - 1]
        for _ in range(40):
            middle = (low + high) / 2
            passing = (mass * ndtr((pull * nodes - middle[:, None]) / free)).sum(axis=1)
            low, high = np.where(passing > wanted, middle, low), np.where(passing > wanted, high, middle)
        limit, before = (low + high) / 2, now
        density = _make_density(nodes, mass, pull, free)
    return limit


def _normal(z: FloatArray) -> FloatArray:
    value: FloatArray = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return value


def _make_density(
    nodes: FloatArray, mass: FloatArray, pull: FloatArray, free: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return the density of z at the next look, for studies that have not passed a look yet."""

    def density(z: FloatArray) -> FloatArray:
        apart = (z[:, :, None] - (pull * nodes)[:, None, :]) / free[:, :, None]
        value: FloatArray = (mass[:, None, :] * _normal(apart)).sum(axis=2) / free
        return value

    return density
