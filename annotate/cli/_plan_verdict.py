"""annotate plan --verdict: compute how many more labels each judge's verdict needs.

Also compute the probability that this number of labels decides the verdict.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from annotate.drawing.source import VerdictSource
from annotate.drawing.verdicts import judge_verdicts
from judge.console import visible
from judge.document.terminal import table
from judge.errors import BadInput, UsageError
from judge.labels.reference import Reference
from judge.stats.verdict_plan import VerdictPlan, plan_of
from judge.types import Json, attributes

MOST_NAMED = 5


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


def text(plan: VerdictPlan) -> str:
    """Return the plan as text for a terminal: the conditions, the missing labels, the probabilities and the assumptions."""
    lines = [f"{plan.verdict.judge}: {plan.decision}", plan.verdict.because, ""]
    head = ["condition", "", "value", "low", "high", "limit"]
    rows = [
        [
            condition.name.replace("_", " "),
            condition.state,
            condition.value,
            condition.low,
            condition.high,
            condition.limit,
        ]
        for condition in plan.verdict.conditions
    ]
    lines += [table(head, rows), "", describe_needs(plan), ""]
    if plan.curve:
        head = ["more units", "more questions", "decided", "trust", "do not trust"]
        chances = [[c.more_units, c.more_clusters, c.decided, c.trusted, c.distrusted] for c in plan.curve]
        lines += [table(head, chances), ""]
    lines += [f"- rule: {plan.verdict.rule}", *(f"- {line}" for line in plan.assumed)]
    return visible("\n".join(lines))


def describe_needs(plan: VerdictPlan) -> str:
    """Return a sentence that says how many more units are needed and who must label them.

    The sentence also says how many units give a probability of 50 % and of 90 % that the verdict is decided.
    """
    if plan.decision != "undecided":
        return "Decided: no more labels are needed for a verdict."
    if plan.more_units is None or plan.more_clusters is None:
        return f"More labels may not decide the verdict: {plan.why}."
    # With one unit for each question, both numbers are the same.
    questions = f" on {plan.more_clusters:,} more questions" if plan.more_clusters != plan.more_units else ""
    start = f"Still needed: about {plan.more_units:,} more units{questions}, labelled by {describe_annotators(plan.labelled_by)}"
    if not plan.curve:
        return f"{start}; {plan.why}."
    half = f"{plan.half:,} for a probability of 50 %" if plan.half is not None else ""
    most = f"{plan.most:,} for 90 %" if plan.most is not None else "no number on the curve reaches 90 %"
    return (
        f"{start}, for a probability of {100 * plan.power:g} % ({', '.join(x for x in (half, most) if x)})."
    )


def describe_annotators(names: tuple[str, ...]) -> str:
    """Return the names of all annotators as text, or their number if there are many."""
    if len(names) == 1:
        return names[0]
    # A sentence with the names of a whole crowd is not read.
    if len(names) > MOST_NAMED:
        return f"the {len(names)} people"
    return f"{', '.join(names[:-1])} and {names[-1]}, each of them"
