"""All pairs of people at once: who agrees with nobody, and who is the same as somebody else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, Ratings

FEWEST = 10
SHOWN = 3
# Labels that differ from the judge's on at most this share of the units are nearly identical with its. More than this is what
# a careful person and a good judge come to where one label is rare.
NEARLY = 0.02
# They are taken for copies when somebody who agrees with the judge as often as the others do would differ from it so seldom
# with less than this chance. Labels of a person who labelled alone must be identical throughout, where somebody who agrees on
# ALIKE of the units would not be.
BY_CHANCE = 0.001
ALIKE = 0.9


def pair_tables(people: Ratings) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(units shared, share of equal labels, Cohen's kappa), each [people, people]; nan where there is none."""
    codes = people.codes
    there = (codes != MISSING).astype(np.float64)
    shared = there.T @ there
    equal, chance = np.zeros_like(shared), np.zeros_like(shared)
    for code in range(len(people.domain)):
        said = (codes == code).astype(np.float64)
        equal += said.T @ said
        mine = said.T @ there
        chance += mine * mine.T
    with np.errstate(divide="ignore", invalid="ignore"):
        share, by_chance = equal / shared, chance / shared**2
        kappa = np.where(by_chance < 1 - 1e-12, (share - by_chance) / (1 - by_chance), np.nan)
    return shared, share, kappa


def lone(people: Ratings, least: float) -> tuple[str, ...]:
    """Those whose kappa is above `least` with nobody, of those who share ten units with somebody."""
    shared, _, kappa = pair_tables(people)
    known: BoolArray = (shared >= FEWEST) & ~np.eye(len(shared), dtype=bool)
    near = known & (np.nan_to_num(kappa, nan=-1.0) > least)
    alone = np.asarray(known.any(axis=1) & ~near.any(axis=1))
    return tuple(name for name, is_alone in zip(people.annotators, alone.tolist(), strict=True) if is_alone)


def identical(people: Ratings) -> tuple[str, ...]:
    """A warning where two people gave the same labels throughout: one person counted twice makes people agree
    better than they do, and any judge look worse beside them."""
    shared, share, _ = pair_tables(people)
    several = np.array([len(np.unique(c[c != MISSING])) > 1 for c in people.codes.T])
    same = (shared >= FEWEST) & (share >= 1) & several[:, None] & several[None, :]
    pairs = [(i, j) for i, j in np.argwhere(same).tolist() if i < j]
    if not pairs:
        return ()
    told = "; ".join(
        f"{people.annotators[i]} and {people.annotators[j]} ({int(shared[i, j]):,} units)"
        for i, j in pairs[:SHOWN]
    )
    more = f"; and {len(pairs) - SHOWN} more pairs" if len(pairs) > SHOWN else ""
    return (
        f"The same labels throughout: {told}{more}. If that is one person twice, leave one out: a duplicate raises "
        "people's agreement, and a good judge falls behind it.",
    )


@dataclass(frozen=True, slots=True)
class Copy:
    """A person whose labels are nearly the judge's: on `units` that both labelled they differ on `apart`."""

    person: str
    units: int
    apart: int


def copied(people: Ratings, labels: IntArray) -> tuple[Copy, ...]:
    """Who gave the judge's labels, or nearly: such a person is no check on it. `labels` [units] are the judge's codes.

    Named is who differs from the judge on at most NEARLY of ten units or more (one person alone: on none), where somebody who
    agrees with it as often as the others do (alone: on ALIKE of the units) would do so with less than the chance BY_CHANCE.
    """
    from scipy.special import bdtr

    both = (people.codes != MISSING) & (labels != MISSING)[:, None]
    shared, equal = both.sum(axis=0), (both & (people.codes == labels[:, None])).sum(axis=0)
    others, agreed = shared.sum() - shared, equal.sum() - equal
    rate = np.where(others >= FEWEST, agreed / np.maximum(others, 1), ALIKE if len(shared) == 1 else 1.0)
    apart = shared - equal
    near = (shared >= FEWEST) & (apart <= (NEARLY * shared if len(shared) > 1 else 0))
    chance = bdtr(apart.astype(np.float64), np.maximum(shared, 1), 1 - rate)
    found = np.flatnonzero(near & (chance < BY_CHANCE)).tolist()
    return tuple(Copy(people.annotators[i], int(shared[i]), int(apart[i])) for i in found)
