"""People on whose labels alone a judge's agreement rests: copies of it that were changed here and there, or made in part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from judge.stats.case import case
from judge.stats.conditions import ConditionArrays, rule
from judge.stats.limits import DISTRUST, FEWEST_QUESTIONS, Limits
from judge.stats.pairwise import ALIKE, pair_tables
from judge.stats.ratings import Ratings

CUTS = 8
"""People are parted at the widest gaps of their agreement with the judge, so many at most."""


@dataclass(frozen=True)
class Leaning:
    """`people` agree with the judge, by `agreement`; the `others` do not (`rest`)."""

    people: tuple[str, ...]
    others: tuple[str, ...]
    agreement: float
    rest: float


def leaning(
    ratings: Ratings, judge: str, people: Sequence[str], limits: Limits, name: str, level: str
) -> Leaning | None:
    """Those who alone carry the judge's agreement with people, the fewest of them; None where the others bear it out.

    A judge that knows something agrees with everybody who does. So wherever people are parted by how often they give
    its labels, those who do so least, a third of all or more (one alone, where all the rest have a kappa of ALIKE with it), have to show its skill (condition b) unless it could be
    as great there as with the rest; and two of them or more, who agree with each other, may not distrust it.
    """
    if len(people) < 2:
        return None
    kappa = np.nan_to_num(pair_tables(ratings.select([judge, *people]))[2][0, 1:])
    order = np.argsort(-kappa, kind="stable")
    most = len(people) - ceil(len(people) / 3)
    parts = [k for k in range(1, len(people)) if k <= most or kappa[order[k - 1]] >= ALIKE]
    gaps = {k: float(kappa[order[k - 1]] - kappa[order[k]]) for k in parts}
    for k in sorted(sorted(gaps, key=lambda k: -gaps[k])[:CUTS]):
        near, far = [people[i] for i in order[:k]], [people[i] for i in order[k:]]
        with_near, with_far = (_found(ratings, judge, who, limits, name, level) for who in (near, far))
        if with_far.questions[0] < FEWEST_QUESTIONS:
            continue
        value, low, high = (float(x[0]) for x in with_far.skill)
        agreement = float(with_near.agreement.value[0])
        against = with_far.difference is not None and with_far.decision[0] == DISTRUST
        if high < agreement and (low <= 0 or against):
            return Leaning(tuple(near), tuple(far), agreement, value)
    return None


def _found(
    ratings: Ratings, judge: str, people: Sequence[str], limits: Limits, name: str, level: str
) -> ConditionArrays:
    about_it = case(ratings, judge, people, name=name, level=level, least_others=limits.least_others)
    return rule(about_it.sums, limits)
