"""Reasons against trusting a judge that its agreement with people cannot show: too many units without labels,
a person who agrees with the others less than they agree with each other, people whose labels are copies of
the judge's, and people who contradict the gold labels.
"""

from collections.abc import Iterable

import numpy as np

from judge.stats.condition_estimates import IntervalArrays, estimates
from judge.stats.looks import LEAST_COVERAGE
from judge.stats.ratings import BoolArray, FloatArray, Ratings
from judge.stats.verdict_inputs import FEWEST_OTHER, Case, Limits, Sums, sums_by_person
from judge.stats.verdict_rows import Condition, State

ONE_INTERVAL = 0.95
"""The confidence of the intervals that find a lone annotator. It is the same at every look, because an
objection can only prevent trust.
"""


def compare_persons(by_person: Iterable[Sums], confidence: float = ONE_INTERVAL) -> IntervalArrays:
    """Return the others' agreement with each other minus each person's agreement with them, [studies, people].

    `by_person` contains the result of `sums_by_person`. The statistic is that of condition (a) with the person
    in the place of the judge, with the opposite sign.
    """
    intervals = [estimates(sums, Limits()).interval(0, confidence) for sums in by_person]
    value, low, high = (np.stack(parts, axis=1) for parts in zip(*intervals, strict=True))
    return IntervalArrays(-value, -high, -low)


def compare_people(
    people: Ratings, agreement: FloatArray, confidence: float = ONE_INTERVAL
) -> IntervalArrays:
    """Return the result of `compare_persons` for the people of one table, [1, people].

    `agreement[i, j]` is how much two labels agree (0 to 1).
    """
    order = np.argsort(people.clusters, kind="stable")
    weights = None if people.weights is None else people.weights[order]
    by_person = sums_by_person(people.codes[None, order], people.clusters[order], agreement, weights)
    return compare_persons(by_person, confidence)


def lone_annotator(
    people: Ratings, agreement: FloatArray, limits: Limits, n: int, g: int
) -> tuple[Condition | None, str]:
    """Return the condition `lone_annotator`, and the objection in words ("" if nobody is apart).

    The condition is None with fewer than three people.
    """
    if len(people.annotators) < 3 or not people.n_units:
        return None, ""
    apart = compare_people(people, agreement)
    low = np.where(np.isfinite(apart.low[0]), apart.low[0], -np.inf)
    worst = int(low.argmax())
    name, value = people.annotators[worst], float(apart.value[0, worst])
    is_apart = bool(low[worst] > limits.apart)
    if not np.isfinite(low[worst]):
        reason = "no person can be compared with the others"
        return Condition(
            "lone_annotator", "open", None, None, None, limits.apart, ONE_INTERVAL, n, g, reason
        ), ""
    bounds = max(-2.0, float(low[worst])), min(2.0, float(apart.high[0, worst]))
    reason = (
        f"the agreement of the others with each other, minus that of {name} with them, is {value:.3f} ({bounds[0]:.3f} to "
        f"{bounds[1]:.3f}); the interval must not lie above {limits.apart:g}"
    )
    state: State = "fails" if is_apart else "holds"
    row = Condition("lone_annotator", state, value, *bounds, limits.apart, ONE_INTERVAL, n, g, reason)
    return (
        row,
        f"{name} agrees with the other people less than they agree with each other" if is_apart else "",
    )


def coverage(ratings: Ratings, case: Case, fresh: BoolArray | None, remedy: str) -> tuple[Condition, str]:
    """Return the condition `coverage`, and the objection in words ("" if enough units have labels).

    `fresh` marks the units whose human labels count (None: all). `remedy` says how to obtain labels that the
    judge lacks. At least nine tenths of the units must have labels both from the judge and from enough people. The judge
    must also have labelled nine tenths of the units with each label.
    """
    by_people = case.by_people if fresh is None else case.by_people & fresh
    both, n = int((case.by_judge & by_people).sum()), case.n_asked
    who = "two people" if case.people else f"'{case.source}'"
    counts = (
        f"{who} labelled {int(by_people.sum()):,} and the judge {int(case.by_judge.sum()):,} of {n:,} units"
    )
    share = both / n if n else 0.0
    objection = ""
    if share < LEAST_COVERAGE - 1e-9:
        before = "" if fresh is None or fresh.all() else " given after the draw"
        # A share just under the limit must not be rounded to it.
        shown = min(share, LEAST_COVERAGE - 0.01)
        objection = f"only {shown:.0%} of these units have labels{before} from the judge and {who}; the others may be harder"
        if (~case.by_judge).sum() > (1 - LEAST_COVERAGE) * n and remedy:
            objection += f". {remedy}"
    elif label := _find_unlabelled(ratings, case):
        # A judge that fails on most units of a rare label lacks few labels in all, and would seem better than it is.
        objection = f"the judge has no label on {label}, which may be harder. {remedy}".rstrip(". ")
    reason = f"{counts}; at least {LEAST_COVERAGE:.0%} must have labels from both"
    state: State = "open" if objection else "holds"
    g = int((case.sums.units[0] > 0).sum())
    return Condition(
        "coverage", state, share, None, None, LEAST_COVERAGE, None, case.n_units, g, reason
    ), objection


def _find_unlabelled(ratings: Ratings, case: Case) -> str:
    """Describe the units of a label that the judge labelled too rarely. Return "" if there is no such label."""
    names = case.people or ((case.source,) if case.source else ())
    codes = ratings.select(names).codes
    for code, label in enumerate(ratings.domain):
        units = (codes == code).any(axis=1)
        n, missing = int(units.sum()), int((units & ~case.by_judge).sum())
        if n >= FEWEST_OTHER and missing > (1 - LEAST_COVERAGE) * n + 1e-9:
            return f"{missing:,} of {n:,} units labelled '{label}'"
    return ""
