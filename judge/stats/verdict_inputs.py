"""The input of a verdict: the annotators who take part, the sums of their labels by question, and the limits.

`case` selects the annotators and computes the sums of one study. `sums` computes the sums of many studies at
once, for simulations and plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from judge.errors import BadInput
from judge.stats.coefficients import disagreement
from judge.stats.patterns import n_present
from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, Ratings, effective_size

HOLDS, OPEN, FAILS = 1, 0, -1
UNDECIDED, TRUST, IN_PART, DISTRUST = 0, 1, 2, 3
FEWEST_QUESTIONS = 10
FEWEST_OTHER = 10


@dataclass(frozen=True)
class Limits:
    """The limits of the conditions: `margin` (a), `epsilon` and `q` (c), `label_margin` (d), `ceiling` (e).

    `threshold` replaces (a) if there is only one source of labels. `apart` is the limit for a person who
    agrees with the others less than the others agree with each other. If `clustered` is False, (c) treats
    each unit as a question of its own, as the code of the alt-test's authors does. `near_labels` is true if
    similar labels count as partial agreement (ordinal labels with quadratic weights). Only then, (b) and (c)
    take part in the decision.
    """

    margin: float = -0.1
    epsilon: float = 0.2
    threshold: float = 0.667
    label_margin: float = -0.2
    ceiling: float = 0.2
    apart: float = 0.1
    q: float = 0.05
    clustered: bool = True
    by_label: bool = True
    near_labels: bool = False
    confidence: float = 0.95
    # With a 95 % interval, judges that answer at random show skill in more than 1 % of studies.
    skill_confidence: float = 0.99

    def adjust_confidence(self, confidence: float) -> Limits:
        """Return the limits with another confidence for (a), (d) and (e). If this confidence is stricter, (b)
        and (c) become stricter to the same extent.
        """
        stricter = min(1.0, (1 - confidence) / (1 - Limits.confidence))
        return replace(
            self,
            confidence=confidence,
            q=Limits.q * stricter,
            skill_confidence=1 - stricter * (1 - Limits.skill_confidence),
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the units of each question, [studies, questions, ...].

    The first three columns of `rows` are the number of units, the judge-human agreement and the human-human
    agreement. Four groups of columns follow, with one column per label in each group. They count the units to
    which the label was given by annotators, by the judge, by both, and by two annotators.

    The other arrays, [..., people], are for the alt-test. On each unit, the person's difference is 1 if the
    person is closer to the other people than the judge is, -1 if the judge is closer, and 0 for a tie.
    `apart` is the sum of the differences, `apart_squares` the sum of their squares, and `apart_units` the
    number of units.
    """

    rows: FloatArray
    apart: FloatArray
    apart_units: FloatArray
    apart_squares: FloatArray
    agreement: FloatArray
    alone: bool
    weighted: bool = False

    @property
    def units(self) -> FloatArray:
        """The units that the judge and enough annotators labelled."""
        return self.rows[..., 0]

    @property
    def shares(self) -> FloatArray:
        """The number of units to which annotators gave each label."""
        return self.rows[..., 3 : 3 + len(self.agreement)]

    @property
    def judge_shares(self) -> FloatArray:
        """The number of units to which the judge gave each label."""
        n = len(self.agreement)
        return self.rows[..., 3 + n : 3 + 2 * n]


def sums(
    judge: IntArray,
    people: IntArray,
    clusters: IntArray,
    agreement: FloatArray,
    distance: FloatArray,
    *,
    least_others: int = 1,
    weights: FloatArray | None = None,
) -> Sums:
    """Compute the sums by question from the labels of `judge` [studies, units] and `people` [studies, units,
    people].

    A code of -1 is a missing label. `clusters` is the same for all studies.

    `agreement[i, j]` is how much two labels agree (0 to 1), and `distance` is the distance between them in
    the alt-test. A unit counts if the judge and two people labelled it or, if there is only one person (or
    gold), if that person and the judge labelled it. With fewer than three people, the alt-test's arrays are
    empty. `weights` [units] apply to every sum except those of the alt-test, which does not weight units.
    """
    if not len(clusters):
        # No unit is shared. One unlabelled unit gives the same sums, and keeps the arrays from being empty.
        judge, people = np.full((len(judge), 1), MISSING), np.full((len(people), 1, people.shape[2]), MISSING)
        clusters, weights = np.zeros(1, dtype=np.int64), None
    # `np.add.reduceat` below sums consecutive rows, so units of one question must be adjacent.
    order = np.argsort(clusters, kind="stable")
    if (order[1:] < order[:-1]).any():
        judge, people, clusters = judge[:, order], people[:, order], clusters[order]
        weights = None if weights is None else weights[order]
    starts = np.flatnonzero(np.r_[True, clusters[1:] != clusters[:-1]])
    k = people.shape[2]
    votes = _count_votes(people, len(agreement))
    features = _features(judge, votes, agreement, min(2, k))
    if weights is not None:
        features = features * weights[:, None]
    rows = np.add.reduceat(features, starts, axis=1)
    apart = _apart(judge, people, votes, distance, starts, least_others)
    return Sums(rows, *apart, agreement, k == 1, weights is not None)


def sums_by_person(
    people: IntArray, clusters: IntArray, agreement: FloatArray, weights: FloatArray | None = None
) -> Iterator[Sums]:
    """Yield, for each person, the sums by question of a comparison between this person and the other people.

    The person takes the place of the judge. The arguments are those of `sums`; units of a question must be
    adjacent.
    """
    votes = _count_votes(people, len(agreement))
    for codes in np.moveaxis(people, 2, 0):
        # In a crowd, each person labelled few of the units.
        kept = (codes != MISSING).any(axis=0)
        if not kept.any():
            kept[:1] = True
        labels, by_question = codes[:, kept], clusters[kept]
        others = votes[:, kept] - (labels[..., None] == np.arange(len(agreement)))
        features = _features(labels, others, agreement, 2)
        if weights is not None:
            features = features * weights[kept][:, None]
        starts = np.flatnonzero(np.r_[True, by_question[1:] != by_question[:-1]])
        nothing = np.zeros((len(people), len(starts), 0))
        rows = np.add.reduceat(features, starts, axis=1)
        yield Sums(rows, nothing, nothing, nothing, agreement, False, weights is not None)


def _count_votes(people: IntArray, labels: int) -> FloatArray:
    """Return how many people gave each label, [studies, units, labels]."""
    return np.stack([(people == code).sum(axis=2) for code in range(labels)], axis=-1).astype(np.float64)


def _features(judge: IntArray, votes: FloatArray, agreement: FloatArray, least: int) -> FloatArray:
    """Return the columns of `Sums.rows` for each unit.

    A unit counts if the judge labelled it, and if at least `least` people did.
    """
    judge_votes = (judge[..., None] == np.arange(len(agreement))).astype(np.float64)
    m = votes.sum(axis=-1)
    used = (m >= least) & (judge != MISSING)
    divisor = np.where(used, m, 1.0)[..., None]
    pairs = np.where(used & (m > 1), m * (m - 1), np.inf)[..., None]
    by_label = np.where(used[..., None], votes / divisor, 0.0)
    own_used = np.where(used[..., None], judge_votes, 0.0)
    near = by_label @ agreement
    alike = (votes * (votes @ agreement)).sum(axis=-1, keepdims=True) - m[..., None]
    return np.concatenate(
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


def _apart(
    judge: IntArray,
    people: IntArray,
    votes: FloatArray,
    distance: FloatArray,
    starts: IntArray,
    least_others: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    k, m = people.shape[2], votes.sum(axis=-1)
    shape = (len(judge), len(starts), k if k > 2 else 0)
    total, units, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    far = votes @ distance if k > 2 else votes
    mine_of_judge = np.maximum(judge, 0)
    of_judge = np.take_along_axis(far, mine_of_judge[..., None], axis=2)[..., 0]
    for h in range(shape[2]):
        person_codes = np.maximum(people[..., h], 0)
        there = (people[..., h] != MISSING) & (judge != MISSING) & (m - 1 >= least_others)
        person = np.take_along_axis(far, person_codes[..., None], axis=2)[..., 0]
        gap = of_judge - distance[person_codes, mine_of_judge] - person
        # -1 where the judge is nearer to the others, 1 where the person is, 0 for a tie.
        d = np.where(there, (gap > 1e-9).astype(np.float64) - (gap < -1e-9), 0.0)
        total[..., h] = np.add.reduceat(d, starts, axis=1)
        units[..., h] = np.add.reduceat(there.astype(np.float64), starts, axis=1)
        squares[..., h] = np.add.reduceat(d * d, starts, axis=1)
    return total, units, squares


Regime = Literal["people", "threshold"]


@dataclass(frozen=True, eq=False)
class Case:
    """The arrays of one study from which a verdict, its plan and its curves are computed.

    Of the `n_asked` units, `n_units` have the labels that a verdict needs. `n_effective` is Kish's effective
    sample size, (sum w)^2 / sum w^2, which equals `n_units` for equal weights. `by_judge` and `by_people`
    mark the units that the judge, and enough people, labelled.
    """

    sums: Sums
    regime: Regime
    people: tuple[str, ...]
    source: str | None
    n_asked: int
    n_units: int
    n_effective: float
    by_judge: BoolArray
    by_people: BoolArray


def case(
    ratings: Ratings,
    judge: str,
    people: Sequence[str] = (),
    *,
    reference: str | None = None,
    name: str = "cohen_kappa",
    level: str = "nominal",
    least_others: int = 1,
) -> Case:
    """Select the annotators who take part, and compute the sums by question.

    If two or more people share ten questions with the judge, they are also compared with each other.
    Otherwise there is one source of labels: the only person, or `reference` (gold, decided, the people's
    majority). Raises BadInput if there is nobody to compare with, and for unknown names.
    """
    people = [person for person in people if person != judge]
    if not people and reference is None:
        raise BadInput(f"there are no annotators to compare '{judge}' with")
    judge_codes = ratings.column(judge)
    together = 0
    if len(people) > 1:
        several = (ratings.select(people).codes != MISSING).sum(axis=1) >= 2
        together = n_present(ratings.clusters[several & (judge_codes != MISSING)])
    source: str | None = None
    regime: Regime = "people"
    if together < FEWEST_QUESTIONS:
        candidate = _find_single_source(ratings, judge, people, reference)
        if len(people) < 2 or _count_shared(ratings, judge, candidate) >= FEWEST_QUESTIONS:
            regime, source = "threshold", candidate
    columns = [source] if source is not None else list(people)
    agreement, distance = label_weights(ratings, name, level)
    question_sums = sums(
        judge_codes[None, :],
        ratings.select(columns).codes[None, :, :],
        ratings.clusters,
        agreement,
        distance,
        least_others=least_others,
        weights=ratings.weights,
    )
    by_judge: BoolArray = judge_codes != MISSING
    by_people: BoolArray = (ratings.select(columns).codes != MISSING).sum(axis=1) >= min(2, len(columns))
    counted = by_judge & by_people
    n = int(counted.sum())
    return Case(
        question_sums,
        regime,
        tuple(people if source is None else ()),
        source,
        ratings.n_units,
        n,
        effective_size(ratings.weights[counted]) if ratings.weights is not None else float(n),
        by_judge,
        by_people,
    )


def _count_shared(ratings: Ratings, *names: str) -> int:
    """Return the number of questions with a unit that all of these annotators labelled; 0 if one of them
    labelled nothing.
    """
    if not all(name in ratings.annotators for name in names):
        return 0
    both = np.logical_and.reduce([ratings.column(name) != MISSING for name in names])
    return n_present(ratings.clusters[both])


def _find_single_source(ratings: Ratings, judge: str, people: Sequence[str], reference: str | None) -> str:
    """Return the single source of labels for the comparison with the judge.

    It is the only person, if that person shares enough questions with the judge; otherwise it is the
    reference. Without a reference, it is the person who shares the most questions with the judge.
    """
    if reference is None or (
        len(people) == 1 and _count_shared(ratings, judge, people[0]) >= FEWEST_QUESTIONS
    ):
        return max(people, key=lambda person: _count_shared(ratings, judge, person))
    return reference


def label_weights(ratings: Ratings, name: str, level: str) -> tuple[FloatArray, FloatArray]:
    """Return, for each pair of labels, their agreement (0 to 1), and their distance in the alt-test."""
    q = len(ratings.domain)
    if level in ("interval", "ratio"):
        numbers = ratings.numbers(level)
        squared = (numbers[:, None] - numbers[None, :]) ** 2
        return 1 - squared / max(float(squared.max()), 1e-300), squared
    places = np.arange(q, dtype=np.float64)
    distance = (places[:, None] - places[None, :]) ** 2 if level == "ordinal" else 1 - np.eye(q)
    weights = "linear" if name.endswith(":linear") else None
    if name.endswith(":quadratic") or (level == "ordinal" and name.startswith("krippendorff")):
        weights = "quadratic"
    apart = disagreement(q, weights)
    return 1 - apart / max(float(apart.max()), 1e-300), distance
