"""The verdict over its limits: what it would be with another margin and epsilon, or another threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from judge.stats.conditions import rule
from judge.stats.decision import DECISIONS, Verdict
from judge.stats.told import Decision

MARGINS = (-0.3, -0.25, -0.2, -0.15, -0.1, -0.05, 0.0)
EPSILONS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
THRESHOLDS = (0.2, 0.4, 0.5, 0.6, 0.667, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Point:
    """The decision at these limits; None for a limit that does not act in this study."""

    margin: float | None
    epsilon: float | None
    threshold: float | None
    decision: Decision


def curve(found: Verdict) -> tuple[Point, ...]:
    """The same labels put to the same rule with other limits, those of the verdict itself among them.

    Epsilon acts where the alt-test is asked (three people who share ten questions), the threshold where there is one
    source of labels. A limit chosen after looking at this is no test any more: the caller says so.
    """
    limits, sums = found.limits, found.of.sums

    def at(**given: Any) -> Decision:
        decision = DECISIONS[int(rule(sums, replace(limits, **given)).decision[0])]
        # No limit makes copied labels a check on the judge.
        return "undecided" if found.copies and decision != "do not trust" else decision

    if found.regime == "threshold":
        steps = sorted({*THRESHOLDS, limits.threshold})
        return tuple(Point(None, None, t, at(threshold=t)) for t in steps)
    margins = sorted({*MARGINS, limits.margin})
    if all(c.state == "not asked" for c in found.conditions if c.name == "alt_test"):
        return tuple(Point(m, None, None, at(margin=m)) for m in margins)
    grid = product(margins, sorted({*EPSILONS, limits.epsilon}))
    return tuple(Point(m, e, None, at(margin=m, epsilon=e)) for m, e in grid)
