"""Compute the verdict on each judge for a field."""

from typing import Any

from annotate.drawing.source import VerdictSource
from judge.labels.reference import Reference, list_compared_people
from judge.stats import Verdict, verdict
from judge.types import AnnotatorKind


def judge_verdicts(source: VerdictSource, resolved: Reference | None, **rule: Any) -> dict[str, Verdict]:
    """Return the verdict on each judge in the panel.

    `resolved` is the reference, and `rule` contains the other arguments of `verdict`.
    """
    panel = source.panel
    labelled_by = list_compared_people(panel, resolved)
    gold = next(iter(panel.select_kinds(AnnotatorKind.GOLD)), None)
    verdicts = {}
    for judge in panel.judges:
        units = source.of_judge(judge)
        people = units.people(labelled_by)
        name = resolved.name if resolved is not None and resolved.name != judge else None
        reference = units.reference(name, people)
        table = units.table(reference, people)
        draw = units.draw(table, people)
        verdicts[judge] = verdict(
            table, judge, people, reference=reference, gold=gold, draw=draw, level=panel.level, field=panel.field, **rule
        )  # fmt: skip
    return verdicts
