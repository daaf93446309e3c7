"""May this judge be trusted? One rule, five conditions, each tested in both directions, said with its numbers.

docs/verdict.md explains the rule; `conditions` computes it, `outlook` says what is still needed. `curve` puts the same
labels to the rule at other limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Unpack

from judge.errors import BadInput
from judge.notes import Note, few
from judge.stats import told
from judge.stats.alternative import FEWEST_FOR_T_TEST, AltTest, alt_test
from judge.stats.bootstrap import How
from judge.stats.conditions import ConditionArrays, rule
from judge.stats.leaning import leaning
from judge.stats.outlook import Outlook, outlook
from judge.stats.pairwise import copied, identical
from judge.stats.ratings import Ratings
from judge.stats.told import Condition, Decision, LabelRow
from judge.stats.verdict_inputs import FEWEST_QUESTIONS, Case, Limits, Regime, case
from judge.types import Measure

MARGIN = Limits.margin
THRESHOLD = Limits.threshold
DECISIONS: tuple[Decision, ...] = ("undecided", "trust", "trust in part", "do not trust")


@dataclass(frozen=True)
class Verdict:
    """`rule` is the rule in words, `because` its numbers. `more_clusters` and `more_units` (None when
    decided, or where no number would do: `outlook` says why) are labels still needed. `ceiling_known` is False where
    people cannot be compared with people. `people` are those that took part, `source` the one source of labels. `of`
    and `limits` are what the rule was put to. `copies` are people who gave the judge's own labels throughout, or on whom alone its
    agreement rests (`leaning`): beside them no judge is trusted."""

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
    measures: tuple[Measure, ...] = ()
    alt_test: AltTest | None = None
    outlook: Outlook | None = None
    warnings: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(row.label for row in self.labels if row.state == "shown")

    @property
    def missed(self) -> tuple[str, ...]:
        return tuple(row.label for row in self.labels if row.state == "missed")

    @property
    def not_shown(self) -> tuple[str, ...]:
        return tuple(row.label for row in self.labels if row.state == "not shown")


def verdict(
    ratings: Ratings,
    judge: str,
    people: Sequence[str] = (),
    *,
    reference: str | None = None,
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
    shares; `name` and `level` give the weights of near labels. `power` None leaves out what is still needed.
    With a person who gave the judge's own labels throughout (`pairwise.copied`) what would be trust is undecided, and the
    verdict without them is told. `how`: only `confidence` acts, as the intervals are jackknife ones;
    above .95 (b) and (c) are as much stricter. Raises BadInput without anybody to
    compare with, for unknown names, limits out of range, and for interval=None.
    """
    if how.get("interval", "bca") is None:
        raise BadInput("a verdict needs intervals")
    if not 0 <= epsilon <= 1 or not -1 <= margin <= 1 or not -1 <= threshold <= 1:
        raise BadInput("epsilon lies in 0..1, the margin and the threshold in -1..1")
    confidence = how.get("confidence", Limits.confidence)
    # A look at a sealed test is tested more strictly: every condition by the same factor, so that all looks together
    # keep each condition's promise.
    stricter = min(1.0, (1 - confidence) / (1 - Limits.confidence))
    limits = Limits(
        margin=margin,
        epsilon=epsilon,
        threshold=threshold,
        least_others=least_others,
        clustered=clustered,
        by_label=level in ("nominal", "ordinal"),
        q=Limits.q * stricter,
        confidence=confidence,
        skill_confidence=1 - stricter * (1 - Limits.skill_confidence),
    )
    about_it = case(
        ratings, judge, people, reference=reference, name=name, level=level, least_others=least_others
    )
    found = rule(about_it.sums, limits)
    decision = DECISIONS[int(found.decision[0])]
    test = None
    if about_it.regime == "people" and len(about_it.people) >= 3:
        test = alt_test(
            ratings,
            judge,
            about_it.people,
            epsilon=epsilon,
            q=limits.q,
            level="interval" if level == "ratio" else level,
            least_others=least_others,
            clustered=clustered,
        )
    table = ratings.select(about_it.people) if about_it.people else None
    conditions = told.conditions(about_it, found, limits, test, table)
    voices = about_it.people or [p for p in people if p == about_it.source]
    copies = copied(ratings.select(voices), ratings.column(judge)) if voices else ()
    lean = None if copies else leaning(ratings, judge, about_it.people, limits, name, level)
    warnings = identical(table) if table is not None else ()
    labels = told.labels(ratings, found, limits) if about_it.regime == "people" and limits.by_label else ()
    ahead = None
    if copies and decision != "do not trust":
        decision = "undecided"
        names = [name for name, _ in copies]
        without = None
        if rest := [person for person in people if person not in names]:
            without = verdict(
                ratings,
                judge,
                rest,
                reference=reference,
                epsilon=epsilon,
                margin=margin,
                threshold=threshold,
                least_others=least_others,
                clustered=clustered,
                name=name,
                level=level,
                field=field,
                power=None,
                **how,
            ).decision
        warnings = (Note("copied_judge", judge=judge, who=copies, alone=not rest, without=without), *warnings)
        conditions = (*conditions, told.independence(copies, limits, int(found.questions[0])))
        why = f"{' and '.join(names[:3])} gave the judge's own labels throughout"
        ahead = Outlook(power or 0.0, why=why)
    elif lean is not None and decision != "do not trust":
        decision = "undecided"
        warnings = (
            Note(
                "leaning",
                judge=judge,
                who=lean.people,
                others=lean.others,
                agreement=lean.agreement,
                rest=lean.rest,
            ),
            *warnings,
        )
        n, g = round(float(found.units[0])), int(found.questions[0])
        conditions = (*conditions, told.carried(lean, n, g))
        why = f"the judge's agreement rests on {few(lean.people)} alone"
        ahead = Outlook(power or 0.0, why=why)
    elif decision == "undecided" and power is not None:
        ahead = outlook(about_it.sums, limits, power=power)
    more = (None, None) if copies or lean else _more(ahead, found)
    return Verdict(
        judge,
        decision,
        about_it.regime,
        told.rule(about_it, limits),
        told.because(found, conditions, labels, decision),
        conditions,
        labels,
        about_it.people,
        about_it.source,
        *more,
        about_it.regime == "people",
        about_it,
        limits,
        told.measures(judge, about_it, found, limits, name, level, field),
        test,
        ahead,
        tuple(warnings),
        tuple(name for name, _ in copies) or (lean.people if lean else ()),
    )


def _more(ahead: Outlook | None, found: ConditionArrays) -> tuple[int | None, int | None]:
    if ahead is None:
        return None, None
    questions = int(found.questions[0])
    if questions >= FEWEST_QUESTIONS:
        return ahead.more_clusters, ahead.more_units
    # No pilot: thirty questions are one.
    missing = FEWEST_FOR_T_TEST - questions
    per = float(found.units[0]) / questions if questions else 1.0
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
