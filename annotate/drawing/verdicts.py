"""Compute the verdict on each judge for a field. Judges that share one significance level are tested with
Holm's procedure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from annotate.drawing.looks import StudyDraws
from judge.labels.reference import Reference, list_compared_people
from judge.labels.scope import Scope, read_panel
from judge.stats import Ratings, Verdict, verdict
from judge.stats.looks import Draw
from judge.stats.multiple import holm_steps
from judge.types import AnnotatorKind


def judge_verdicts(
    drawn: StudyDraws, resolved: Reference | None, *, power: float, confidence: float = 0.0, **rule: Any
) -> dict[str, Verdict]:
    """Return the verdict on each judge in the panel. `rule` contains the limits that `verdict` uses, and
    `resolved` is the reference.

    The m judges of a family share the significance level by Holm's steps. First, each judge is tested at 1/m
    of the level. Then the k judges that remain undecided are tested at 1/k of the level, and so on.
    """
    panel = drawn.panel
    people = drawn.people(list_compared_people(panel, resolved))
    compared = {judge: _Compared(drawn, judge, resolved, people) for judge in panel.judges}
    shown = {drawn.run_of(judge): judge for judge in panel.judges}
    family = {run for member in compared.values() for run in member.draw.family}
    # Members of the family that the panel leaves out (--run) are tested too: leaving one out must not raise the
    # share of the others. The judges of a table have no runs, so the family contains their names.
    others = _replace_judges(drawn, sorted(family - {run for run in shown if run} - compared.keys()))
    if others is not None:
        compared |= {judge: _Compared(others, judge, resolved, people) for judge in others.panel.judges}

    def decide(judge: str, share: float, power: float | None) -> Verdict:
        case = compared[judge]
        stricter = max(confidence, case.drawn.panel.confidence(judge))
        draw = replace(case.draw, share=share)
        return verdict(
            case.table, judge, people, reference=case.reference, gold=case.gold, draw=draw, level=panel.level, field=panel.field,
            confidence=stricter, power=power, **rule,
        )  # fmt: skip

    share = dict.fromkeys(compared, 1.0)
    for members in {case.draw.family for case in compared.values() if len(case.draw.family) > 1}:
        judges = [
            judge for judge, case in compared.items() if case.draw.family == members and not case.draw.refused
        ]
        # These steps pass no power, because only the last step needs the plan, which simulates further units.
        share |= holm_steps(
            judges, len(members), lambda judge, part: decide(judge, part, None).decision != "undecided"
        )
    return {judge: decide(judge, share[judge], power) for judge in panel.judges}


@dataclass(frozen=True, eq=False)
class _Compared:
    """One judge, together with the people and the reference with which it is compared."""

    drawn: StudyDraws
    judge: str
    resolved: Reference | None
    people: Sequence[str]

    @cached_property
    def reference(self) -> str | None:
        name = self.resolved.name if self.resolved is not None and self.resolved.name != self.judge else None
        return self.drawn.reference(name, self.people)

    @cached_property
    def gold(self) -> str | None:
        return next(iter(self.drawn.panel.select_kinds(AnnotatorKind.GOLD)), None)

    @cached_property
    def table(self) -> Ratings:
        return self.drawn.table(self.drawn.panel.select_judged(self.judge, self.reference, self.people))

    @cached_property
    def draw(self) -> Draw:
        return self.drawn.find_draw(self.judge, self.table, self.people)


def _replace_judges(drawn: StudyDraws, runs: Sequence[str]) -> StudyDraws | None:
    """Return draws like `drawn`, but with these runs as judges. Return None if there are no runs.

    The study, the field and the batch stay the same.
    """
    if not runs:
        return None
    panel = drawn.panel
    order = None if panel.numeric else panel.domain
    scope = Scope(
        panel.field,
        panel.task.name if panel.task else None,
        drawn.batch,
        tuple(runs),
        None,
        panel.level,
        order,
    )
    return StudyDraws(drawn.store, read_panel(drawn.store, scope), drawn.batch)
