"""When a growing sample is looked at, and how strict each look is.

The verdict is computed at fixed places only. All looks of one sequence of units share one level: each place has its share
of it (an alpha-spending function, Lan & DeMets 1983, Biometrika 70(3)), and the boundary takes account of how many
labels two places have in common. docs/verdict.md explains the rule.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from judge.stats.ratings import BoolArray, FloatArray

# With the fixed-sample rule a judge exactly at the margin is ever trusted in 13 to 15 % of studies with a look every 25
# units up to 300.
PLACES = (100, 200, 300, 450, 650, 1000)
"""Numbers of units after which the verdict is computed."""
# Most of the level is spent by 300 units: O'Brien and Fleming's boundary for 1,000 would lose .58 of the power there.
SPENT = (0.10, 0.35, 0.65, 0.85, 0.95, 1.0)
"""Share of the level that is spent up to each place."""
# The one-sided level of all looks together. The usual .025 is lowered because the jackknife's standard errors are a little
# too small on few units. With .0225 a judge at the margin is trusted at some look in about 4 % of simulated studies.
LEVEL = 0.0225
ONE_LOOK = 0.025
"""One-sided level of a verdict that is computed once: that of a 95 % interval."""
# Largest share of drawn units that annotators may skip or have labelled before the draw, or that the judge leaves
# unlabelled: somebody may have chosen them, and the remaining units may be easier.
MOST_MISSING = 0.2
# Smallest share of information that a look adds: by chance the later of two standard errors may be the larger one.
_LEAST_NEW = 0.02
_NODES = 48
_LOWEST = -8.0


@dataclass(frozen=True, eq=False)
class Looks:
    """The interim looks at one sequence of units: those so far, the last of which decides, and those that may follow.

    `masks` are over the units of a table, each within the next; `places` are the units drawn up to each, labelled or not.
    `spent[k]` is the one-sided level that is spent up to look k, continued over `ahead`, the places to come. `size` is the
    number of units drawn so far, `chosen` the share of units up to the last place that annotators skipped or had labelled
    before.
    """

    masks: tuple[BoolArray, ...]
    places: tuple[int, ...]
    ahead: tuple[int, ...]
    spent: tuple[float, ...]
    size: int
    chosen: float = 0.0


@dataclass(frozen=True, eq=False)
class Draw:
    """How units came to be labelled, as far as a verdict may rest on it.

    `words` end the sentence "on 300 units ..."; `refused` says why no verdict can rest on them, with what to do, and is
    empty where one can. Without `looks` there is one look.
    """

    words: str = "as they are in the table; how they were chosen is not recorded: one look"
    refused: str = ""
    looks: Looks | None = None
    unlabelled: str = ""
    """Why no trust can rest on these units: too many have no label of the judge. Empty where enough have one."""
    share: float = 1.0
    """The share of the level that this judge is tested at, where a family of judges shares it (Holm)."""
    family: tuple[str, ...] = ()
    """The judges that share the level."""
    no_labels: bool = False
    """Whether the judge has no label on any of these units; `refused` says so."""

    @property
    def next_place(self) -> int | None:
        """The number of units at which the verdict is computed next."""
        return self.looks.ahead[0] if self.looks is not None and self.looks.ahead else None


def spent_at(places: Sequence[int], end: int) -> tuple[float, ...]:
    """Return the level that is spent up to each of these places, where a sequence ends with `end` units at the latest."""
    share = dict(zip(PLACES, SPENT, strict=True))
    # No look follows the end of the sequence, so the whole level is spent there.
    return tuple(LEVEL if place >= end else LEVEL * share[place] for place in places)


def places_until(end: int) -> tuple[int, ...]:
    """Return the places of a sequence that ends with `end` units: the fixed ones before it, and its end, at most 1,000."""
    last = min(end, PLACES[-1])
    return (*(place for place in PLACES if place < last), last) if last > 0 else ()


def boundary(information: FloatArray, spent: Sequence[float]) -> FloatArray:
    """Return the value of z [studies] that the last look has to pass.

    `information` [studies, looks] is 1 / (standard error)^2 at each look, `spent` the one-sided level up to each of them.
    The z of look k makes the probability under the null hypothesis to pass there, and at no look before, equal to
    spent[k] - spent[k - 1], by numerical integration over the estimate of the look before (Armitage, McPherson & Rowe 1969).
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
        density = _carried_on(nodes, mass, pull, free)
    return limit


def _normal(z: FloatArray) -> FloatArray:
    value: FloatArray = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return value


def _carried_on(
    nodes: FloatArray, mass: FloatArray, pull: FloatArray, free: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return the density of z at the next look, of studies that have passed no look yet."""

    def density(z: FloatArray) -> FloatArray:
        apart = (z[:, :, None] - (pull * nodes)[:, None, :]) / free[:, :, None]
        value: FloatArray = (mass[:, None, :] * _normal(apart)).sum(axis=2) / free
        return value

    return density
