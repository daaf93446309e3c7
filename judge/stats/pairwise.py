"""Compare all pairs of annotators at once, to find annotators who agree with nobody, or whose labels equal
those of another annotator.
"""

from dataclasses import dataclass

import numpy as np

from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, Ratings

FEWEST = 10
SHOWN = 3
# Labels that differ from the judge's on at most this share of the units are nearly identical. A careful annotator and a good
# judge differ on more than this, even where one label is rare.
NEARLY = 0.02
# Labels count as copied if they are less probable than this for an annotator who agrees with the judge as often as
# the other annotators do. A single annotator's labels must all be identical, and improbable at an agreement of ALIKE.
BY_CHANCE = 0.001
ALIKE = 0.9


def pair_tables(people: Ratings) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the number of shared units, the share of equal labels and Cohen's kappa for every pair of
    people.

    Each array has the shape [people, people]. Undefined values are nan.
    """
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
    """Return the annotators who share ten units with at least one other annotator, but whose kappa with each
    of these annotators is at most `least` or undefined.
    """
    shared, _, kappa = pair_tables(people)
    known: BoolArray = (shared >= FEWEST) & ~np.eye(len(shared), dtype=bool)
    near = known & (np.nan_to_num(kappa, nan=-1.0) > least)
    alone = np.asarray(known.any(axis=1) & ~near.any(axis=1))
    return tuple(name for name, is_alone in zip(people.annotators, alone.tolist(), strict=True) if is_alone)


def identical(people: Ratings) -> tuple[str, ...]:
    """Return a warning that lists the pairs of annotators with identical labels on all shared units. The
    result is empty if there are none.

    If one person is counted twice, the agreement among annotators rises and any judge looks worse: one
    duplicate lowers the result of a good judge by .11.
    """
    shared, share, _ = pair_tables(people)
    # Two annotators who each used only one label are not suspicious, because their labels could not differ.
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
        f"These pairs gave identical labels throughout: {listed}{more}. If a pair is one person, leave out one "
        f"of the two: a duplicate raises the agreement among people, which makes a good judge look worse than it is.",
    )


@dataclass(frozen=True, slots=True)
class Copy:
    """A person whose labels are nearly identical to the judge's: they differ on `apart` of the `units` that
    both labelled.
    """

    person: str
    units: int
    apart: int


def find_copies(people: Ratings, labels: IntArray) -> tuple[Copy, ...]:
    """Return the annotators whose labels are nearly identical to the judge's. They cannot serve as a check on
    the judge.

    `labels` [units] are the judge's codes. An annotator is returned if two conditions are met. First, the
    annotator and the judge both labelled at least ten units, and their labels differ on at most the share
    NEARLY of these units. Second, so few differences are improbable (a probability below BY_CHANCE) for
    somebody who agrees with the judge as often as the other annotators do.

    If there is only one annotator, the first condition allows no differences, and the second assumes that
    people and the judge agree on the share ALIKE of the units.
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
