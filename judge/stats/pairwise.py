"""All pairs of annotators at once: who agrees with nobody, and who has the same labels as somebody else."""

from dataclasses import dataclass

import numpy as np

from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, Ratings

FEWEST = 10
SHOWN = 3
# Labels that differ from the judge's on at most this share of the units are nearly identical. A careful annotator and a good
# judge differ on more than this, even where one label is rare.
NEARLY = 0.02
# Labels count as copied when they are less probable than this for an annotator who agrees with the judge as often as the
# others do. A single annotator's labels must all be identical, and improbable at an agreement of ALIKE.
BY_CHANCE = 0.001
ALIKE = 0.9


def pair_tables(people: Ratings) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (units shared, share of equal labels, Cohen's kappa), each [people, people]; nan where there is none."""
    codes = people.codes
    there = (codes != MISSING).astype(np.float64)
    shared = there.T @ there
    equal, chance = np.zeros_like(shared), np.zeros_like(shared)
    for code in range(len(people.domain)):
        has_label = (codes == code).astype(np.float64)
        equal += has_label.T @ has_label
        by_first = has_label.T @ there
        chance += by_first * by_first.T
    with np.errstate(divide="ignore", invalid="ignore"):
        share, by_chance = equal / shared, chance / shared**2
        kappa = np.where(by_chance < 1 - 1e-12, (share - by_chance) / (1 - by_chance), np.nan)
    return shared, share, kappa


def lone(people: Ratings, least: float) -> tuple[str, ...]:
    """Return the annotators whose kappa is above `least` with nobody, of those who share ten units with somebody."""
    shared, _, kappa = pair_tables(people)
    known: BoolArray = (shared >= FEWEST) & ~np.eye(len(shared), dtype=bool)
    near = known & (np.nan_to_num(kappa, nan=-1.0) > least)
    alone = np.asarray(known.any(axis=1) & ~near.any(axis=1))
    return tuple(name for name, is_alone in zip(people.annotators, alone.tolist(), strict=True) if is_alone)


def identical(people: Ratings) -> tuple[str, ...]:
    """Return a warning where two annotators gave the same labels throughout.

    One person who is counted twice raises the agreement among annotators, and any judge looks worse: one duplicate moves a
    good judge by -.11.
    """
    shared, share, _ = pair_tables(people)
    # Two annotators who each used one label only are not suspicious: nothing in their labels could differ.
    several = np.array([len(np.unique(c[c != MISSING])) > 1 for c in people.codes.T])
    same = (shared >= FEWEST) & (share >= 1) & several[:, None] & several[None, :]
    pairs = [(i, j) for i, j in np.argwhere(same).tolist() if i < j]
    if not pairs:
        return ()
    listed = "; ".join(
        f"{people.annotators[i]} and {people.annotators[j]} ({int(shared[i, j]):,} units)"
        for i, j in pairs[:SHOWN]
    )
    more = f"; and {len(pairs) - SHOWN} more pairs" if len(pairs) > SHOWN else ""
    return (
        f"The same labels throughout: {listed}{more}. If that is one person twice, leave one out: a duplicate raises "
        "the agreement among people, and a good judge looks worse than it is.",
    )


@dataclass(frozen=True, slots=True)
class Copy:
    """A person whose labels are nearly the judge's: of `units` that both labelled, they differ on `apart`."""

    person: str
    units: int
    apart: int


def copied(people: Ratings, labels: IntArray) -> tuple[Copy, ...]:
    """Return the annotators with nearly the judge's labels: such a person is no check on it. `labels` [units] are its codes.

    An annotator is returned who differs from the judge on at most NEARLY of ten units or more (a single annotator: on none),
    where somebody who agrees with it as often as the others do (single: on ALIKE of the units) would do so with a
    probability below BY_CHANCE.
    """
    from scipy.special import bdtr

    both = (people.codes != MISSING) & (labels != MISSING)[:, None]
    shared, equal = both.sum(axis=0), (both & (people.codes == labels[:, None])).sum(axis=0)
    others, agreed = shared.sum() - shared, equal.sum() - equal
    rate = np.where(others >= FEWEST, agreed / np.maximum(others, 1), ALIKE if len(shared) == 1 else 1.0)
    apart = shared - equal
    near = (shared >= FEWEST) & (apart <= (NEARLY * shared if len(shared) > 1 else 0))
    chance = bdtr(apart.astype(np.float64), np.maximum(shared, 1), 1 - rate)
    copies = np.flatnonzero(near & (chance < BY_CHANCE)).tolist()
    return tuple(Copy(people.annotators[i], int(shared[i]), int(apart[i])) for i in copies)
