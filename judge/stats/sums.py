"""What the verdict takes of a study: sums over the units of each question, for many studies at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judge.stats.ratings import MISSING, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the units of each question, [studies, questions, ...].

    `units` that the judge and enough people labelled; `judge_people` and `people` are their agreement; `shares` and
    `judge_shares` the labels, [..., labels], in units; `judge_recall` and `people_recall`, too, count as units
    of the label. `apart` and `apart_units`, [..., people], are what the alt-test compares: the sum of (person wins - judge
    wins) and the units. `apart_squares` is the sum of its squares.
    """

    units: FloatArray
    judge_people: FloatArray
    people: FloatArray
    shares: FloatArray
    judge_shares: FloatArray
    judge_recall: FloatArray
    people_recall: FloatArray
    apart: FloatArray
    apart_units: FloatArray
    apart_squares: FloatArray
    agreement: FloatArray
    alone: bool


def sums(
    judge: IntArray,
    people: IntArray,
    clusters: IntArray,
    agreement: FloatArray,
    distance: FloatArray,
    *,
    least_others: int = 1,
    fewest: int = 2,
) -> Sums:
    """Codes of the judge [studies, units] and of people [studies, units, people], -1 for none; one row of clusters for all.

    `agreement[i, j]` is what two labels count as agreeing, 0 to 1, and `distance` what lies between them in the
    alt-test. Units count that `fewest` people labelled; with one person (or gold) those that both did, and `people` stays 0.
    """
    if not len(clusters):
        # No unit is shared. One that nobody labelled says the same, and every sum has a place for it.
        judge, people = np.full((len(judge), 1), MISSING), np.full((len(people), 1, people.shape[2]), MISSING)
        clusters = np.zeros(1, dtype=np.int64)
    order = np.argsort(clusters, kind="stable")
    if (order[1:] < order[:-1]).any():
        judge, people, clusters = judge[:, order], people[:, order], clusters[order]
    starts = np.flatnonzero(np.r_[True, clusters[1:] != clusters[:-1]])
    labels, k = len(agreement), people.shape[2]
    votes = np.stack([(people == code).sum(axis=2) for code in range(labels)], axis=-1).astype(np.float64)
    own = (judge[..., None] == np.arange(labels)).astype(np.float64)
    m = votes.sum(axis=-1)
    used = (m >= min(fewest, k)) & (judge != MISSING)
    divisor = np.where(used, m, 1.0)[..., None]
    pairs = np.where(used & (m > 1), m * (m - 1), np.inf)[..., None]
    by_label = np.where(used[..., None], votes / divisor, 0.0)
    own_used = np.where(used[..., None], own, 0.0)
    near = by_label @ agreement
    alike = (votes * (votes @ agreement)).sum(axis=-1, keepdims=True) - m[..., None]
    features = np.concatenate(
        [
            used[..., None],
            (near * own_used).sum(axis=-1, keepdims=True),
            alike / pairs,
            by_label,
            own_used,
            by_label * own_used,
            votes * (votes - 1) / pairs,
        ],
        axis=-1,
    )
    t = np.add.reduceat(features, starts, axis=1)
    n = labels
    apart = _apart(judge, people, votes, m, distance, starts, least_others)
    return Sums(
        t[..., 0],
        t[..., 1],
        t[..., 2],
        t[..., 3 : 3 + n],
        t[..., 3 + n : 3 + 2 * n],
        t[..., 3 + 2 * n : 3 + 3 * n],
        t[..., 3 + 3 * n :],
        *apart,
        agreement,
        k == 1,
    )


def _apart(
    judge: IntArray,
    people: IntArray,
    votes: FloatArray,
    m: FloatArray,
    distance: FloatArray,
    starts: IntArray,
    least_others: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    k = people.shape[2]
    shape = (len(judge), len(starts), k if k > 2 else 0)
    total, units, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    far = votes @ distance if k > 2 else votes
    mine_of_judge = np.maximum(judge, 0)
    of_judge = np.take_along_axis(far, mine_of_judge[..., None], axis=2)[..., 0]
    for h in range(shape[2]):
        mine = np.maximum(people[..., h], 0)
        there = (people[..., h] != MISSING) & (judge != MISSING) & (m - 1 >= least_others)
        person = np.take_along_axis(far, mine[..., None], axis=2)[..., 0]
        gap = of_judge - distance[mine, mine_of_judge] - person
        # -1 where the judge is nearer to the others, 1 where the person is, 0 for a tie.
        d = np.where(there, (gap > 1e-9).astype(np.float64) - (gap < -1e-9), 0.0)
        total[..., h] = np.add.reduceat(d, starts, axis=1)
        units[..., h] = np.add.reduceat(there.astype(np.float64), starts, axis=1)
        squares[..., h] = np.add.reduceat(d * d, starts, axis=1)
    return total, units, squares
