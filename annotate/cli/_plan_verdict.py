"""annotate plan --verdict: what a verdict on each judge still needs, by the rule that its number of people takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from annotate.cli._show import MOST_SHOWN, table
from judge.console import visible
from judge.errors import BadInput, UsageError
from judge.labels.panel import Panel
from judge.labels.reference import Reference, voices
from judge.stats.verdict_plan import Needed, VerdictPlan, plan_verdict

if TYPE_CHECKING:
    from judge.types import Json

RULES = {
    "alt_test": "three people or more: the alt-test",
    "difference": "two people: the paired difference against the margin",
    "threshold": "one source of labels: the agreement against the threshold",
}


def verdict_plans(panel: Panel, reference: Reference | None, given: Mapping[str, Any]) -> list[VerdictPlan]:
    """A plan for each judge of the field. Raises UsageError without a judge, BadInput for what cannot be judged."""
    if not panel.judges:
        raise UsageError("--verdict is on a judge: --judge NAME, or a judge run")
    if panel.are_scores:
        raise BadInput(f"'{panel.field}' has continuous numbers: a verdict takes labels")
    if not panel.people and reference is None:
        raise BadInput(f"'{panel.field}' has nobody to compare a judge with: import gold labels, or votes")
    (key,) = panel.keys([given["name"] or panel.coefficient])
    limits = {key: value for key in ("margin", "threshold") if (value := given[key]) is not None}
    people = voices(panel, reference)
    plans = []
    for judge in panel.judges:
        name = reference.name if reference is not None and reference.name != judge else None
        plans.append(
            plan_verdict(
                panel.judged(judge, name, people),
                judge,
                people,
                reference=name,
                epsilon=given["epsilon"],
                name=key,
                level=panel.level,
                power=given["power"],
                confidence=given["confidence"],
                **limits,
            )
        )
    return plans


def as_json(plan: VerdictPlan) -> dict[str, Json]:
    """One judge of the document."""
    return {
        "judge": plan.judge,
        "regime": plan.regime,
        "decision": plan.decision,
        "rule": plan.verdict.rule,
        "because": plan.verdict.because,
        "people_needed": plan.people_needed,
        "more_clusters": plan.more_clusters,
        "more_units": plan.more_units,
        "assumed": list(plan.assumed),
        "rows": [
            {
                "annotators": list(row.annotators),
                "value": row.value,
                "limit": row.limit,
                "n_clusters": row.n_clusters,
                "n_units": row.n_units,
                "more_clusters": row.more_clusters,
                "more_units": row.more_units,
                "why": row.why,
            }
            for row in plan.rows
        ],
    }


def text(plan: VerdictPlan) -> str:
    """The plan for a terminal: the rule, what is there, what is missing, what is assumed."""
    lines = [f"{plan.judge}: {plan.decision} ({RULES[plan.regime]})", plan.verdict.because, ""]
    whom = "person" if plan.regime == "alt_test" else "annotators"
    value = "gap" if plan.regime == "alt_test" else "value"
    head = [whom, value, "limit", "questions", "units", "more questions", "more units", ""]
    rows = list(plan.rows)
    if len(rows) > 3 * MOST_SHOWN:
        rows = sorted(plan.rows, key=_nearest)[:MOST_SHOWN]
        lines.insert(
            2, f"the {MOST_SHOWN} of {len(plan.rows)} people nearest to a win that counts (--json has all):"
        )
    lines += [table(head, [_cells(row) for row in rows]), "", _needs(plan), ""]
    lines += [f"- rule: {plan.verdict.rule}", *(f"- {line}" for line in plan.assumed)]
    return visible("\n".join(lines))


def _nearest(row: Needed) -> tuple[bool, bool, int]:
    """Those who still need labels first, the fewest before the others; those who need none, or no number, last."""
    return row.more_units is None, row.more_units == 0, row.more_units or 0


def _cells(row: Needed) -> list[Any]:
    counts = [row.n_clusters, row.n_units, row.more_clusters, row.more_units]
    return [", ".join(row.annotators), row.value, row.limit, *counts, row.why]


def _needs(plan: VerdictPlan) -> str:
    if plan.decision != "undecided":
        return "Decided: no more labels are needed for a verdict."
    if plan.more_units is None or plan.more_clusters is None:
        return "No number of labels can be named that would decide it."
    who = f"each of {plan.people_needed} people" if plan.regime == "alt_test" else "each of them"
    questions = f" on {plan.more_clusters:,} more questions" if plan.more_clusters != plan.more_units else ""
    return f"Still needed: about {plan.more_units:,} more units{questions}, labelled by {who}."
