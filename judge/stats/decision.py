"""May this judge be trusted? One rule for each number of annotators, said in words with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from typing import Literal, Unpack

import numpy as np

from judge.errors import BadInput
from judge.stats.alternative import ENOUGH, AltTest, alt_test, to_win
from judge.stats.bootstrap import FEW_CLUSTERS, FEWEST_CLUSTERS, NO_WIDTH, How
from judge.stats.metrics import measures
from judge.stats.paired import Comparison, compare
from judge.stats.patterns import n_present
from judge.stats.planning import still_needed
from judge.stats.ratings import MISSING, BoolArray, Ratings
from judge.types import Measure

Decision = Literal["trust", "do not trust", "undecided"]
MARGIN = -0.1
THRESHOLD = 0.667
# Pairs are sought among the people with most labels: of 164 workers there are 13,000 pairs.
MOST_PAIRED = 40


@dataclass(frozen=True)
class Verdict:
    """`rule` is the rule in words, `because` its numbers. `more_clusters` and `more_units` (None when
    decided, or not to be said) are the labels still needed. `ceiling_known` is False where people cannot
    be compared with people."""

    decision: Decision
    rule: str
    because: str
    more_clusters: int | None
    more_units: int | None
    ceiling_known: bool
    measures: tuple[Measure, ...] = ()
    alt_test: AltTest | None = None
    comparison: Comparison | None = None


def verdict(
    ratings: Ratings,
    judge: str,
    people: Sequence[str] = (),
    *,
    reference: str | None = None,
    epsilon: float = 0.2,
    margin: float = MARGIN,
    threshold: float = THRESHOLD,
    name: str = "cohen_kappa",
    level: str = "nominal",
    field: str | None = None,
    **how: Unpack[How],
) -> Verdict:
    """Three or more people with enough units: the alt-test. Two: judge-human minus human-human agreement against
    `margin`. One, or only `reference` (gold, or the people's majority): agreement against `threshold`.

    Enough: 10 questions, with two others (of two people: with each other) and the judge. People who
    share fewer take no part. Where nobody shares enough the number of people chooses the rule, which then leaves it
    undecided.

    `how` as in `measures` (an interval is needed). Raises BadInput without anybody to compare with, for
    unknown names, and for interval=None.
    """
    if how.get("interval", "bca") is None:
        raise BadInput("a verdict needs intervals")
    people = [person for person in people if person != judge]
    if not people and reference is None:
        raise BadInput(f"there is nobody to compare '{judge}' with")
    test = _alt_test(ratings, judge, people, epsilon, level) if len(people) >= 3 else None
    if test is not None and len(test.compared) >= 3:
        return _by_alt_test(test, people, level)
    pair = _closest_pair(ratings, judge, people)
    alone = _alone(ratings, judge, people, reference)
    if pair and _shared(ratings, judge, *pair) < FEWEST_CLUSTERS <= _shared(ratings, judge, alone):
        pair = None
    elif test is not None and pair and _shared(ratings, judge, *pair) < FEWEST_CLUSTERS:
        return _too_few_for_alt_test(ratings, test, judge, people, level)
    if pair:
        first, second = pair
        found = compare(
            ratings,
            [(judge, first), (judge, second)],
            [(first, second)],
            name,
            level=level,
            field=field,
            **how,
        )
        rule = (
            f"Two annotators{_of(people, pair)}: the judge's {name} with them, minus theirs with each other, and its "
            f"{_interval(found.difference)} against {margin}: trust when the interval lies above, do not trust when "
            f"below, else undecided, as with fewer than {FEWEST_CLUSTERS} questions."
        )
        return _by_interval(found.difference, margin, rule, True, found)
    (agreement,) = measures(ratings.select([judge, alone]), [name], level=level, field=field, **how)
    unknown = (
        f"How well people agree on the same units cannot be said{_of(people, ())}."
        if len(people) > 1
        else "How well people would agree is unknown."
    )
    rule = (
        f"One source of labels ('{alone}'): the judge's {name} with it, and its {_interval(agreement)} against "
        f"{threshold}: trust when the interval lies above, do not trust when below, else undecided, as with fewer than "
        f"{FEWEST_CLUSTERS} questions. {unknown}"
    )
    return _by_interval(agreement, threshold, rule, False, None)


def _shared(ratings: Ratings, *names: str) -> int:
    """Questions with a unit that all of these labelled; 0 for a name that labelled nothing."""
    if not all(name in ratings.annotators for name in names):
        return 0
    both = np.logical_and.reduce([ratings.column(name) != MISSING for name in names])
    return n_present(ratings.clusters[both])


def _alone(ratings: Ratings, judge: str, people: Sequence[str], reference: str | None) -> str:
    """The one source of labels: the only person where they labelled enough, else the reference."""
    if reference is None or (len(people) == 1 and _shared(ratings, judge, people[0]) >= FEWEST_CLUSTERS):
        return max(people, key=lambda person: _shared(ratings, judge, person))
    return reference


def _closest_pair(ratings: Ratings, judge: str, people: Sequence[str]) -> tuple[str, str] | None:
    """The two people who share most questions with each other and the judge."""
    if len(people) < 2:
        return None
    there = {p: set(ratings.clusters[_both(ratings, judge, p)].tolist()) for p in people}
    ranked = sorted(people, key=lambda p: -len(there[p]))[:MOST_PAIRED]
    return max(combinations(ranked, 2), key=lambda pair: _shared(ratings, judge, *pair))


def _both(ratings: Ratings, first: str, second: str) -> BoolArray:
    both: BoolArray = (ratings.column(first) != MISSING) & (ratings.column(second) != MISSING)
    return both


def _of(people: Sequence[str], chosen: Sequence[str]) -> str:
    """Who takes part where others share too few units to do so."""
    if len(people) <= len(chosen):
        return ""
    who = f" ({' and '.join(chosen)})" if chosen else ""
    return (
        f"{who} of {len(people)}, the others share fewer than {FEWEST_CLUSTERS} questions"
        if chosen
        else (f": of {len(people)} people no two share {FEWEST_CLUSTERS} questions")
    )


def _interval(found: Measure) -> str:
    return f"{100 * found.confidence:g} % interval (questions are resampled)"


def _by_interval(
    found: Measure, limit: float, rule: str, ceiling_known: bool, comparison: Comparison | None
) -> Verdict:
    def done(decision: Decision, because: str, more: tuple[int, int] | None = None) -> Verdict:
        clusters, units = more if more is not None else (None, None)
        return Verdict(decision, rule, because, clusters, units, ceiling_known, (found,), None, comparison)

    n = found.n_clusters or 0
    per_cluster = found.n_units / n if n else 1.0
    if found.value is None:
        return done("undecided", f"{found.measure} is undefined: {found.reason}")
    if found.low is None or found.high is None or n < FEWEST_CLUSTERS:
        missing = max(1, FEW_CLUSTERS - n)
        because = f"{found.measure} {found.value:.3f} rests on {n} questions, too few for an interval"
        return done("undecided", because, (missing, ceil(missing * per_cluster)))
    span = f"{found.low:.3f} to {found.high:.3f}"
    because = f"{found.measure} {found.value:.3f} ({span}, {found.n_units} units) against {limit}"
    if NO_WIDTH in found.notes:
        # Questions that are all alike say nothing of the next one.
        return done("undecided", f"{because}: {NO_WIDTH}")
    if found.low > limit:
        return done("trust", because)
    if found.high < limit:
        return done("do not trust", because)
    return done("undecided", because, still_needed(found, limit))


def _alt_test(ratings: Ratings, judge: str, people: Sequence[str], epsilon: float, level: str) -> AltTest:
    return alt_test(ratings, judge, people, epsilon=epsilon, level="interval" if level == "ratio" else level)


CLOSENESS = {
    "nominal": "the share of equal labels",
    "ordinal": "the distance of the labels' positions (root mean square)",
    "interval": "the distance of the numbers (root mean square)",
    "ratio": "the distance of the numbers (root mean square)",
}


def _alt_rule(test: AltTest, people: Sequence[str], level: str) -> str:
    return (
        f"{len(people)} annotators: the alternative annotator test (epsilon {test.epsilon:g}, false discovery rate "
        f"{test.q:g} by Benjamini and Yekutieli; closeness is {CLOSENESS[level]}). The judge wins against a person when it is "
        "at least as close to the other people, give or take epsilon. Trust when it wins against half of the people tested or "
        f"more, on {ENOUGH} questions each. Undecided when for at least half of them it has won or the gap seen is below "
        "epsilon; else do not trust."
    )


def _too_few_for_alt_test(
    ratings: Ratings, test: AltTest, judge: str, people: Sequence[str], level: str
) -> Verdict:
    humans = ratings.select(people)
    enough = (humans.codes != MISSING).sum(axis=1) >= 3
    table = ratings.subset(enough)
    there = sorted((_shared(table, judge, person) for person in people), reverse=True)
    missing = max(1, ENOUGH - there[2])
    because = f"only {len(test.compared)} of {len(people)} annotators share enough units with the others"
    rule = _alt_rule(test, people, level)
    return Verdict("undecided", rule, because, missing, missing, True, (), test, None)


def _by_alt_test(test: AltTest, people: Sequence[str], level: str) -> Verdict:
    rule = _alt_rule(test, people, level)

    def done(decision: Decision, because: str, more: tuple[int, int] | None = None) -> Verdict:
        clusters, units = more if more is not None else (None, None)
        return Verdict(decision, rule, because, clusters, units, True, (), test, None)

    because = f"winning rate {test.winning_rate:.2f}, advantage probability {test.advantage:.2f}"
    half = ceil(len(test.compared) / 2)
    if test.passed:
        sure = [row for row in test.compared if row.won and row.n_clusters >= ENOUGH]
        if len(sure) >= half:
            return done("trust", because)
        missing = sorted(max(0, ENOUGH - row.n_clusters) for row in test.compared if row.won)[half - 1]
        told = f"{because}, but won on fewer than {ENOUGH} questions, where the test wins too easily"
        return done("undecided", told, (missing, missing))
    # The judge could still win where the estimate, if not yet the test, is on its side.
    close = [row for row in test.compared if row.won or row.annotator_wins - row.judge_wins < test.epsilon]
    if len(close) < half:
        return done("do not trust", because)
    needed = sorted(more for more in (to_win(row, test) for row in close) if more)
    return done("undecided", because, needed[half - 1] if len(needed) >= half else None)
