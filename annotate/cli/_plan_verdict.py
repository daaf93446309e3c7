"""annotate plan --verdict: compute how many more labels each judge's verdict needs.

Also compute the probability that this number of labels decides the verdict.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from annotate.drawing.source import VerdictSource
from annotate.drawing.verdicts import judge_verdicts
from judge.errors import BadInput, UsageError
from judge.labels.reference import Reference
from judge.stats.verdict_plan import VerdictPlan, plan_of
from judge.types import Json, attributes


def verdict_plans(
    source: VerdictSource,
    reference: Reference | None,
    measure: str | None,
    confidence: float,
    power: float,
    **rule: Any,
) -> list[VerdictPlan]:
    """Return a plan for each judge that labelled the field.

    `rule` contains the options of the verdict's decision rule. Raises UsageError if there is no judge, and
    BadInput if the labels do not allow a verdict.
    """
    panel = source.panel
    if not panel.judges:
        raise UsageError("--verdict requires a judge: --judge NAME")
    if panel.are_scores:
        raise BadInput(f"'{panel.field}' has continuous values, but a verdict requires labels")
    if not panel.people and reference is None:
        raise BadInput(f"'{panel.field}' has no labels to compare a judge with: import gold labels or votes")
    if not 0.5 <= power < 1:
        raise BadInput(f"--power must be at least 0.5 and below 1 for a verdict, not {power:g}")
    (key,) = panel.keys([measure or panel.coefficient])
    verdicts = judge_verdicts(source, reference, power=power, confidence=confidence, name=key, **rule)
    return [plan_of(verdict, power) for verdict in verdicts.values()]


def as_json(plan: VerdictPlan) -> dict[str, Json]:
    """Return one judge's plan as a JSON object."""
    return {
        **attributes(plan.verdict, "judge", "regime", "decision", "rule", "because"),
        "conditions": [asdict(condition) for condition in plan.verdict.conditions],
        "labels": [asdict(label) for label in plan.verdict.labels],
        "labelled_by": list(plan.labelled_by),
        "more_clusters": plan.more_clusters,
        "more_units": plan.more_units,
        "half_units": plan.half,
        "most_units": plan.most,
        "curve": [asdict(point) for point in plan.curve],
        "why": plan.why,
        "assumed": list(plan.assumed),
    }
