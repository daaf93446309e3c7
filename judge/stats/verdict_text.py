"""A verdict in words: the rule, the numbers behind the decision, and the labels that it allows."""

from collections.abc import Sequence

from judge.stats.conditions import ConditionArrays
from judge.stats.looks import LEAST_COVERAGE
from judge.stats.verdict_inputs import FEWEST_OTHER, FEWEST_QUESTIONS, Case, Limits
from judge.stats.verdict_rows import Condition, Decision, LabelRow, units_text

UNKNOWN_CEILING = "a comparison with a threshold; how well people would agree is unknown"


def group_by_state(rows: Sequence[LabelRow]) -> dict[str, list[str]]:
    """Group the labels into `shown`, `missed` and `not_shown`, by the states of condition (d).

    A label is shown if the condition holds in both directions (recall and precision). It is missed if the
    condition fails in at least one direction. All other labels are not shown.
    """
    states: dict[str, set[str]] = {}
    for row in rows:
        states.setdefault(row.label, set()).add(row.state)
    shown = [label for label, kinds in states.items() if kinds == {"shown"}]
    missed = [label for label, kinds in states.items() if "missed" in kinds]
    return {"shown": shown, "missed": missed, "not_shown": [x for x in states if x not in (*shown, *missed)]}


MOST_NAMED = 6
"""The largest number of labels that a sentence names. If there are more, the sentence counts them, and the
table names them.
"""


def labels_text(rows: Sequence[LabelRow]) -> str:
    """Return a description of the uses that a verdict allows for each label: "for 'A'; to find 'B'; where it says 'C'; not for
    'D'; open for 'E'".
    """
    kinds = ("for", "to find", "where it says", "not for", "open for")
    groups: dict[str, list[str]] = {kind: [] for kind in kinds}
    for finds, means in zip(rows[::2], rows[1::2], strict=True):
        if not is_used(finds, means):
            continue
        if finds.state == means.state == "shown":
            group = "for"
        elif finds.state == "shown":
            group = "to find"
        elif means.state == "shown":
            group = "where it says"
        else:
            group = "not for" if "missed" in (finds.state, means.state) else "open for"
        groups[group].append(f"'{finds.label}'")
    n = sum(map(len, groups.values()))
    if n > MOST_NAMED:
        allowed = [f"{kind} {len(groups[kind]):,}" for kind in kinds[:3] if groups[kind]]
        return f"{'; '.join(allowed)} of {n:,} labels"
    return "; ".join(f"{kind} {', '.join(names)}" for kind, names in groups.items() if names)


def is_used(finds: LabelRow, means: LabelRow) -> bool:
    """Return whether any person, or the judge, gave the label."""
    return finds.n_units > 0 or means.n_units > 0


def _label_numbers(rows: Sequence[LabelRow]) -> str:
    """Return a text with the states of recall and precision for each label that was used.

    Each state is followed by its reason or, if it has none, by the number of units.
    """
    parts = []
    for finds, means in zip(rows[::2], rows[1::2], strict=True):
        if is_used(finds, means):
            both = (("recall", finds), ("precision", means))
            directions = [f"{word} {row.state} ({row.why or units_text(row.n_units)})" for word, row in both]
            parts.append(f"'{finds.label}': {', '.join(directions)}")
    return "; ".join(parts)


def because(
    outcome: ConditionArrays,
    conditions: Sequence[Condition],
    labels: Sequence[LabelRow],
    decision: Decision,
    limits: Limits,
) -> str:
    """Return the numbers of the conditions that determined the decision."""
    if decision == "do not trust" and bool(outcome.of.one_label[0]):
        return "the judge gives only one label"
    wanted = {"do not trust": ("fails",), "undecided": ("open", "fails")}.get(decision, ("holds",))
    # Conditions that nearly always hold would only lengthen the reason for a decision.
    usual = ("evidence", "coverage", "lone_annotator") if "holds" in wanted else ()
    telling = [c.why for c in conditions if c.state in wanted and c.name not in usual]
    if decision == "undecided" and not telling:
        telling = ["no label meets its condition yet"]
    if decision == "undecided" and any(c.name == "evidence" and c.state == "open" for c in conditions):
        telling = telling[:1]
    if labels and decision in ("trust", "trust in part"):
        telling.append(f"label by label: {_label_numbers(labels)}")
    return "; ".join(telling)


def rule(case: Case, limits: Limits) -> str:
    """Return the rule in words; docs/verdict.md explains it in detail."""
    sure = f"{100 * limits.confidence:.4g} %"
    evidence = (
        f"The verdict is undecided with fewer than {FEWEST_QUESTIONS} questions, fewer than {FEWEST_OTHER} units with a "
        f"label other than the most common label, or if less than {LEAST_COVERAGE:.0%} of the units have labels from the judge "
        f"and from people. A judge that gives only one label is not trusted. "
    )
    if case.regime == "threshold":
        return (
            f"There is one source of labels ('{case.source}'). {evidence}The judge is trusted if the {sure} interval of its "
            f"chance-corrected agreement with this source is above {limits.threshold:g}, and not trusted if the interval is "
            f"below it. Otherwise the verdict is undecided. This is {UNKNOWN_CEILING}."
        )
    near = (
        f" Near labels agree in part, so (b) skill and (c) the alt-test at epsilon {limits.epsilon:g} also take part "
        "in the decision."
        if limits.near_labels
        else ""
    )
    lone = (
        " The verdict is also undecided if one person agrees with the others much less than they agree with each other."
        if len(case.people) > 2
        else ""
    )
    return (
        f"The judge is compared with {len(case.people)} people. {evidence}It is trusted if two {sure} intervals are high "
        f"enough. (a) The interval of the judge's chance-corrected agreement with people, minus people's agreement with each "
        f"other, is above {limits.margin:g}. (e) The interval of people's agreement with each other is above "
        f"{limits.ceiling:g}. Trust applies to "
        f"the labels for which (d) the judge's recall and precision are less than {-limits.label_margin:g} below those of "
        f"another person. The judge is not trusted if the interval in (a) is below {limits.margin:g}. Otherwise the verdict is "
        f"undecided.{lone}{near} Intervals are computed by question."
    )
