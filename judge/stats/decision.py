"""May this judge be trusted? One rule, its conditions tested in both directions, said with its numbers.

docs/verdict.md explains the rule; `conditions` computes it, `looks` says how strict each look is, `outlook` says what is
still needed. `curve` puts the same labels to the rule at other limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Unpack

import numpy as np

from judge.errors import BadInput
from judge.notes import few
from judge.stats import told
from judge.stats.alternative import FEWEST_FOR_T_TEST, AltTest, alt_test
from judge.stats.bootstrap import How
from judge.stats.conditions import ConditionArrays, estimates, rule
from judge.stats.looks import MOST_MISSING, PLACES, Draw, Looks, boundary, spent_at
from judge.stats.outlook import LookAhead, Outlook, outlook
from judge.stats.pairwise import copied, identical
from judge.stats.ratings import FloatArray, Ratings
from judge.stats.told import Condition, Decision, LabelRow
from judge.stats.verdict_inputs import FAILS, FEWEST_QUESTIONS, HOLDS, Case, Limits, Regime, case
from judge.types import Measure

MARGIN = Limits.margin
THRESHOLD = Limits.threshold
DECISIONS: tuple[Decision, ...] = ("undecided", "trust", "trust in part", "do not trust")


@dataclass(frozen=True)
class Verdict:
    """`rule` is the rule in words, `because` its numbers. `more_clusters` and `more_units` (None when
    decided, or where no number would do: `outlook` says why) are labels still needed. `ceiling_known` is False where
    people cannot be compared with people. `people` are those that took part, `source` the one source of labels. `draw` says
    how the units came to be labelled, `of` and `limits` are what the rule was put to. `copies` are people who gave nearly the
    judge's labels: beside them no judge is trusted. `held_up` says what else keeps them from
    it. `refused`: the numbers are estimates, no verdict rests on them."""

    judge: str
    decision: Decision
    regime: Regime
    rule: str
    because: str
    conditions: tuple[Condition, ...]
    labels: tuple[LabelRow, ...]
    people: tuple[str, ...]
    source: str | None
    more_clusters: int | None
    more_units: int | None
    ceiling_known: bool
    of: Case
    limits: Limits
    draw: Draw
    measures: tuple[Measure, ...] = ()
    alt_test: AltTest | None = None
    outlook: Outlook | None = None
    warnings: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    held_up: str = ""

    @property
    def refused(self) -> str:
        """Why no verdict can rest on these units; empty where one can."""
        return self.draw.refused

    @property
    def shown(self) -> tuple[str, ...]:
        """The labels that are shown in both directions."""
        return tuple(told.by_state(self.labels)["shown"])

    @property
    def missed(self) -> tuple[str, ...]:
        """The labels that are missed in either direction."""
        return tuple(told.by_state(self.labels)["missed"])

    @property
    def not_shown(self) -> tuple[str, ...]:
        """The labels that are neither."""
        return tuple(told.by_state(self.labels)["not_shown"])


def verdict(
    ratings: Ratings,
    judge: str,
    people: Sequence[str] = (),
    *,
    reference: str | None = None,
    gold: str | None = None,
    draw: Draw | None = None,
    epsilon: float = Limits.epsilon,
    margin: float = MARGIN,
    threshold: float = THRESHOLD,
    least_others: int = 1,
    clustered: bool = True,
    name: str = "cohen_kappa",
    level: str = "nominal",
    field: str | None = None,
    power: float | None = 0.8,
    **how: Unpack[How],
) -> Verdict:
    """The verdict on a judge among `people`, or against `reference` (one person, gold, decided) alone.

    Agreement is pooled: averaged within the units that the judge and two people labelled, chance from the pooled
    shares; `name` and `level` give the weights of near labels. `draw` says how the units were drawn: with its looks the
    verdict is on the units of the last one, as strict as the boundary says; without, this is one look at all of them. `gold`
    is a column of gold labels: where people contradict it the verdict is undecided. `power` None leaves out what is still
    needed. `how`: only `confidence` acts, as the intervals are jackknife ones; above .95 (b) and (c) are as much stricter.
    Raises BadInput without anybody to compare with, for unknown names, limits out of range, and for interval=None.
    """
    if how.get("interval", "bca") is None:
        raise BadInput("a verdict needs intervals")
    if not 0 <= epsilon <= 1 or not -1 <= margin <= 1 or not -1 <= threshold <= 1:
        raise BadInput("epsilon lies in 0..1, the margin and the threshold in -1..1")
    draw = draw or Draw()
    limits = Limits(
        margin=margin,
        epsilon=epsilon,
        threshold=threshold,
        least_others=least_others,
        clustered=clustered,
        by_label=level in ("nominal", "ordinal"),
        near_labels=level == "ordinal" and name.endswith(":quadratic"),
    )

    def sides(units: Ratings, of: str = judge) -> Case:
        return case(
            units,
            of,
            people,
            reference=reference if of == judge else None,
            name=name,
            level=level,
            least_others=least_others,
        )

    if draw.looks:
        # Units of one sequence stand for as many each; the others, which may not, are outside its masks.
        ratings = replace(ratings, weights=None)
    used = ratings.subset(draw.looks.masks[-1]) if draw.looks and draw.looks.masks else ratings
    about_it = sides(used)
    if draw.looks and draw.looks.masks:
        # Units that everybody skipped are not in the table.
        about_it = replace(about_it, n_asked=draw.looks.places[-1])
    information = [
        estimates(sides(ratings.subset(mask)).sums, limits).information
        for mask in (draw.looks.masks if draw.looks and not draw.refused else ())
    ]
    limits = limits.at(_confidence(draw, information, how.get("confidence", Limits.confidence)))
    found = rule(about_it.sums, limits)
    decision = DECISIONS[int(found.decision[0])]
    test = None
    if about_it.regime == "people" and len(about_it.people) >= 3:
        test = alt_test(
            used,
            judge,
            about_it.people,
            epsilon=epsilon,
            q=limits.q,
            level="interval" if level == "ratio" else level,
            least_others=least_others,
            clustered=clustered,
        )
    table = used.select(about_it.people) if about_it.people else None
    conditions = told.conditions(about_it, found, limits, test, table)
    labels = told.labels(used, found, limits) if about_it.regime == "people" and limits.by_label else ()
    warnings = identical(table) if table is not None else ()
    voices = about_it.people or tuple(p for p in people if p == about_it.source)
    copies = copied(used.select(voices), used.column(judge)) if voices else ()
    held_up = ""
    if draw.refused:
        decision = "undecided"
        conditions = tuple(replace(c, state="not asked") for c in conditions)
        if used.weights is not None:
            conditions, labels = told.without_intervals(conditions, labels)
    elif decision != "do not trust":
        if copies:
            conditions = (*conditions, told.independence(copies, int(found.of.questions[0])))
            held_up = f"the labels of {few([copy.person for copy in copies])} are nearly the judge's own"
        if gold is not None and voices and gold not in voices and gold != about_it.source:
            against = rule(sides(used, gold).sums, limits)
            if against.states["evidence"][0] == HOLDS and against.states["non_inferiority"][0] == FAILS:
                conditions = (*conditions, told.gold_agrees(against, gold, limits))
                held_up = held_up or f"people contradict '{gold}'"
        if draw.looks and draw.looks.chosen > MOST_MISSING:
            held_up = held_up or (
                f"{draw.looks.chosen:.0%} of these units were skipped, labelled before the draw, or by people who were stopped; "
                "the others may be easier"
            )
        held_up = held_up or draw.unlabelled
    if held_up:
        decision = "undecided"
    ahead = None
    if held_up:
        ahead = Outlook(power or 0.0, why=held_up)
    elif decision == "undecided" and power is not None:
        ahead = outlook(
            about_it.sums,
            limits,
            power=power,
            looks=_ahead(draw, information, about_it),
            anew=used.weights is not None,
        )
    return Verdict(
        judge,
        decision,
        about_it.regime,
        told.rule(about_it, limits),
        draw.refused or held_up or told.because(found, conditions, labels, decision, limits),
        conditions,
        labels,
        about_it.people,
        about_it.source,
        *((None, None) if held_up else _more(ahead, found)),
        about_it.regime == "people",
        about_it,
        limits,
        draw,
        told.measures(judge, about_it, found, limits, name, level, field),
        test,
        ahead,
        tuple(warnings),
        tuple(copy.person for copy in copies),
        held_up,
    )


def _confidence(draw: Draw, information: Sequence[FloatArray], confidence: float) -> float:
    """Of the intervals that decide: at a look what the boundary asks for, and for one look the usual one."""
    if draw.looks is None or not information:
        return 1 - (1 - confidence) * draw.share
    from scipy.special import ndtr

    spent = [draw.share * level for level in draw.looks.spent[: len(information)]]
    z = boundary(np.column_stack(information), spent)
    return float(2 * ndtr(z[0]) - 1)


def _ahead(draw: Draw, information: Sequence[FloatArray], of: Case) -> list[LookAhead]:
    """The looks to come, each with what its boundary will be if information grows with the units.

    For units that were drawn with unequal probabilities they are the looks at a plain draw.
    """
    from scipy.special import ndtr

    looks, done = draw.looks, len(information)
    if looks is None and of.sums.weighted:
        looks = Looks((), (), PLACES, spent_at(PLACES, PLACES[-1]), 0)
    if looks is None:
        return []
    now = looks.places[-1] if done else looks.size or of.n_units
    per_unit = float(information[-1][0]) / now if done else 1.0
    known = np.array([*(float(x[0]) for x in information), *(per_unit * place for place in looks.ahead)])
    # Units of a weighted pilot are not among those that are looked at.
    kept = 0 if of.sums.weighted else 1
    found = []
    for k, place in enumerate(looks.ahead, done + 1):
        z = boundary(known[None, :k], [draw.share * level for level in looks.spent[:k]])
        found.append(
            LookAhead(place / now - kept if now else 0.0, place - looks.size, float(2 * ndtr(z[0]) - 1))
        )
    return found


def _more(ahead: Outlook | None, found: ConditionArrays) -> tuple[int | None, int | None]:
    if ahead is None:
        return None, None
    questions = int(found.of.questions[0])
    if questions >= FEWEST_QUESTIONS:
        return ahead.more_clusters, ahead.more_units
    # No pilot: thirty questions are one.
    missing = FEWEST_FOR_T_TEST - questions
    per = float(found.of.units[0]) / questions if questions else 1.0
    return missing, max(missing, round(missing * per))


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
    limits = found.limits

    def at(**given: Any) -> Decision:
        decision = DECISIONS[int(rule(found.of.sums, replace(limits, **given)).decision[0])]
        # No limit makes copied labels a check on the judge, or these units ones that were drawn alike.
        return "undecided" if found.refused or (found.held_up and decision != "do not trust") else decision

    if found.regime == "threshold":
        steps = sorted({*THRESHOLDS, limits.threshold})
        return tuple(Point(None, None, t, at(threshold=t)) for t in steps)
    margins = sorted({*MARGINS, limits.margin})
    if all(c.state == "not asked" for c in found.conditions if c.name == "alt_test"):
        return tuple(Point(m, None, None, at(margin=m)) for m in margins)
    grid = product(margins, sorted({*EPSILONS, limits.epsilon}))
    return tuple(Point(m, e, None, at(margin=m, epsilon=e)) for m, e in grid)
