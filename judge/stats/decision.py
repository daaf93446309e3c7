"""May this judge be trusted? One rule for each number of annotators, said in words with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import NormalDist
from typing import Literal, Unpack

from judge.errors import BadInput
from judge.stats.alternative import ENOUGH, AltTest, Compared, alt_test
from judge.stats.bootstrap import FEW_CLUSTERS, How
from judge.stats.metrics import measures
from judge.stats.paired import Comparison, compare
from judge.stats.planning import still_needed
from judge.stats.ratings import Ratings
from judge.types import Measure

Decision = Literal["trust", "do not trust", "undecided"]
MARGIN = -0.1
THRESHOLD = 0.667
# With fewer clusters than this no interval is taken at its word.
FEWEST = 10


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
    """Three or more people: the alt-test. Two: judge-human minus human-human agreement against `margin`.
    One, or only `reference` (gold): agreement against `threshold`.

    `how` as in `measures` (an interval is needed). Raises BadInput without anybody to compare with, for
    unknown names, and for interval=None.
    """
    if how.get("interval", "bca") is None:
        raise BadInput("a verdict needs intervals")
    people = [person for person in people if person != judge]
    if len(people) >= 3:
        return _by_alt_test(ratings, judge, people, epsilon, level)
    if len(people) == 2:
        first, second = people
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
            f"Two annotators: the judge's agreement with them, minus theirs with each other, against {margin}: "
            "trust when the interval lies above, do not trust when below."
        )
        return _by_interval(found.difference, margin, rule, True, found)
    other = people[0] if people else reference
    if other is None:
        raise BadInput(f"there is nobody to compare '{judge}' with")
    (agreement,) = measures(ratings.select([judge, other]), [name], level=level, field=field, **how)
    rule = (
        f"One source of labels ('{other}'): the judge's agreement with it against {threshold}: trust when the "
        "interval lies above, do not trust when below. How well people would agree is unknown."
    )
    return _by_interval(agreement, threshold, rule, False, None)


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
    if found.low is None or found.high is None or n < FEWEST:
        missing = max(1, FEW_CLUSTERS - n)
        because = f"{found.measure} {found.value:.3f} rests on {n} clusters, too few for an interval"
        return done("undecided", because, (missing, ceil(missing * per_cluster)))
    span = f"{found.low:.3f} to {found.high:.3f}"
    because = f"{found.measure} {found.value:.3f} ({span}, {found.n_units} units) against {limit}"
    if found.low > limit:
        return done("trust", because)
    if found.high < limit:
        return done("do not trust", because)
    return done("undecided", because, still_needed(found, limit))


def _by_alt_test(ratings: Ratings, judge: str, people: Sequence[str], epsilon: float, level: str) -> Verdict:
    test = alt_test(ratings, judge, people, epsilon=epsilon, level="nominal" if level == "ratio" else level)
    rule = (
        f"{len(people)} annotators: the alternative annotator test (epsilon {epsilon}, q {test.q}): trust when the "
        "judge wins against half of them or more. Not won, but short of it only by the number of labels: "
        "undecided."
    )

    def done(decision: Decision, because: str, more: tuple[int, int] | None = None) -> Verdict:
        clusters, units = more if more is not None else (None, None)
        return Verdict(decision, rule, because, clusters, units, True, (), test, None)

    if len(test.compared) < 3 or test.winning_rate is None or test.advantage is None:
        most = max((row.n_clusters for row in test.compared), default=0)
        because = f"only {len(test.compared)} of {len(people)} annotators share enough units with the others"
        missing = max(1, ENOUGH - most)
        return done("undecided", because, (missing, missing))
    because = f"winning rate {test.winning_rate:.2f}, advantage probability {test.advantage:.2f}"
    if test.passed:
        return done("trust", because)
    # The judge could still win where the estimate, if not yet the test, is on its side.
    close = [row for row in test.compared if row.won or row.annotator_wins - row.judge_wins < epsilon]
    if 2 * len(close) < len(test.compared):
        return done("do not trust", because)
    more = sorted(_more(row, test) for row in close)[ceil(len(test.compared) / 2) - 1]
    return done("undecided", because, more)


def _more(row: Compared, test: AltTest) -> tuple[int, int]:
    """(clusters, units) that this annotator still needs to label for a win, if the estimate stays."""
    if row.won:
        return 0, 0
    distance = test.epsilon - (row.annotator_wins - row.judge_wins)
    # Half of m annotators must win: their Benjamini-Yekutieli limit is about q / (2 H_m).
    level = test.q / (2 * sum(1 / i for i in range(1, len(test.compared) + 1)))
    z = NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(0.8)
    clusters = ceil(row.n_clusters * (z * row.error / distance) ** 2)
    more = max(1, ENOUGH - row.n_clusters, clusters - row.n_clusters)
    return more, ceil(more * row.n_units / row.n_clusters)
