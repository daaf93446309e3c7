"""Test whether a judge still answers as it did at the beginning, with an exact permutation test by unit.

Each anchor has replies from the beginning and replies from today. If the judge has not changed, all replies
for one anchor come from the same distribution, however noisy. Which of the replies are from today is then
random. The statistic is the number of pairs (one reply from the beginning, one from today) that differ,
summed over the anchors. Its distribution under random assignment is known exactly, so the rate of false
alarms is at most the level of the test for any judge. The noise need not be estimated (a permutation test
with blocks: Pesarin and Salmaso, Permutation Tests for Complex Data, 2010).

A set of anchors is checked many times. The level of one check, `LEVEL`, is .05 / 52. By Bonferroni's
inequality, the probability of a false alarm in the 52 weekly checks of a year is at most 5 %, although the
checks share the replies from the beginning. The checks therefore need not be counted.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import combinations

import numpy as np

from judge.stats.ratings import FloatArray, IntArray

CHECKS = 52
LEVEL = 0.05 / CHECKS
"""The level of one check."""


def drift_p(first: IntArray, now: IntArray) -> float:
    """Return the one-sided p value of the hypothesis that the judge has not changed. A small value is
    evidence that it has changed.

    `first` [units, replies] and `now` [units, replies] are codes of labels; a reply without a label has a
    code of its own.
    """
    seen = 0
    null: FloatArray = np.ones(1)
    patterns: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for opening, today in zip(first.tolist(), now.tolist(), strict=True):
        seen += sum(a != b for a in opening for b in today)
        # The distribution depends only on how many replies are equal, so anchors with the same counts share it.
        patterns[len(opening), tuple(sorted(Counter(opening + today).values()))] += 1
    for (n_first, counts), times in patterns.items():
        dealt = _dealt(n_first, counts)
        for _ in range(times):
            null = np.convolve(null, dealt)
    return float(min(1.0, null[seen:].sum()))


@cache
def _dealt(n_first: int, counts: tuple[int, ...]) -> FloatArray:
    """Return the probability of each number of differing pairs when the replies of one anchor are assigned at random."""
    replies = [label for label, n in enumerate(counts) for _ in range(n)]
    n_now = len(replies) - n_first
    deals = np.zeros(n_first * n_now + 1)
    for places in combinations(range(len(replies)), n_first):
        opening = Counter(replies[i] for i in places)
        alike = sum(n * (counts[label] - n) for label, n in opening.items())
        deals[n_first * n_now - alike] += 1
    dealt: FloatArray = deals / deals.sum()
    return dealt


def drift_power(
    units: int,
    noise: float,
    changed: float = 0.2,
    *,
    opening: int = 3,
    replies: int = 3,
    labels: int = 3,
    studies: int = 400,
    seed: int = 0,
) -> float:
    """Return the share of simulated checks that detect the change.

    With probability `noise`, a reply is one of the other labels instead of the anchor's usual label.
    `changed` is the share of anchors whose usual label has changed.
    """
    random = np.random.default_rng(seed)
    n_changed = round(changed * units)
    alarms = 0
    for _ in range(studies):
        usual = random.integers(labels, size=units)
        later = usual.copy()
        later[:n_changed] = _draw_others(random, usual[:n_changed], labels)
        first = _replies(random, usual, opening, noise, labels)
        alarms += drift_p(first, _replies(random, later, replies, noise, labels)) <= LEVEL
    return alarms / studies


def _replies(
    random: np.random.Generator, usual: IntArray, replies: int, noise: float, labels: int
) -> IntArray:
    given = np.repeat(usual[:, None], replies, axis=1)
    return np.where(random.random(given.shape) < noise, _draw_others(random, given, labels), given)


def _draw_others(random: np.random.Generator, codes: IntArray, labels: int) -> IntArray:
    """Return, for each code, a different code chosen at random."""
    return (codes + random.integers(1, labels, size=codes.shape)) % labels


def noise_of(first: IntArray) -> float:
    """Return the share of replies that are not their anchor's usual label, estimated from the share of pairs
    of replies that differ.

    If p is the returned share and each unit has only one other label, two replies differ with probability 2 p
    (1 - p). If more pairs differ than this allows, p is .5.
    """
    pairs = list(combinations(range(first.shape[1]), 2))
    apart = float(np.mean([first[:, a] != first[:, b] for a, b in pairs])) if pairs and len(first) else 0.0
    return 0.5 if apart >= 0.5 else float((1 - np.sqrt(1 - 2 * apart)) / 2)


def as_codes(rows: Sequence[Sequence[str]]) -> IntArray:
    """Return the labels as codes, [units, replies]."""
    places: dict[str, int] = {}
    return np.array([[places.setdefault(v, len(places)) for v in row] for row in rows], dtype=np.int64)
