"""A verdict told: its conditions, labels, rule and measures, in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from judge.notes import Note
from judge.stats.alternative import FEWEST_FOR_T_TEST, AltTest
from judge.stats.conditions import ConditionArrays, IntervalArrays
from judge.stats.estimate import about
from judge.stats.pairwise import Copy, lone
from judge.stats.ratings import FloatArray, IntArray, Ratings
from judge.stats.verdict_inputs import FEWEST_OTHER, FEWEST_QUESTIONS, Case, Limits
from judge.types import Measure

Decision = Literal["trust", "trust in part", "do not trust", "undecided"]
Direction = Literal["finds", "means"]
State = Literal["holds", "open", "fails", "not asked"]
STATES: dict[int, State] = {1: "holds", 0: "open", -1: "fails"}
_SHOWN: dict[int, Literal["shown", "missed", "not shown"]] = {1: "shown", 0: "not shown", -1: "missed"}
UNKNOWN_CEILING = "against a threshold; how well people would agree is unknown"


@dataclass(frozen=True)
class Condition:
    """One condition: `value` with its interval (at `confidence`) against `limit`; `why` says it in words.

    `name` is evidence, non_inferiority (a) or threshold in its place, skill (b), alt_test (c) or people_agree (e);
    independence where people gave nearly the judge's labels, gold where gold labels contradict people.
    """

    name: str
    state: State
    value: float | None
    low: float | None
    high: float | None
    limit: float
    confidence: float | None
    n_units: int
    n_clusters: int
    why: str


@dataclass(frozen=True)
class LabelRow:
    """Condition (d) on one label in one direction.

    `finds`: how often the judge says it where a person does (recall), beside another person. `means`: how often a person says
    it where the judge does (precision), beside where another person does. `n_units` are units with the label in the people's
    or in the judge's labels; a unit counts by the share of its people who gave the label. `why` says why it is not shown.
    """

    label: str
    direction: Direction
    state: Literal["shown", "missed", "not shown"]
    n_units: float
    judge: float | None
    people: float | None
    difference: float | None
    low: float | None
    high: float | None
    why: str = ""


def _numbers(
    found: IntervalArrays | None, most: float = 1.0
) -> tuple[float | None, float | None, float | None]:
    """Value and bounds; a t interval knows no limits, so its bounds are cut at those of an agreement, or of a difference of
    two (`most` 2)."""
    if found is None:
        return None, None, None
    value, low, high = (float(x[0]) for x in found)
    return (
        value if np.isfinite(value) else None,
        max(-most, low) if np.isfinite(low) else None,
        min(most, high) if np.isfinite(high) else None,
    )


def _span(found: IntervalArrays, most: float = 1.0) -> str:
    value, low, high = _numbers(found, most)
    if value is None:
        return "undefined"
    return f"{value:.3f}" + (f" ({low:.3f} to {high:.3f})" if low is not None else " (no interval)")


def conditions(
    of: Case, found: ConditionArrays, limits: Limits, test: AltTest | None, table: Ratings | None
) -> tuple[Condition, ...]:
    """Each condition with its interval; `table` are the people's labels, `test` the alt-test of the study."""
    n, g = of.n_units, int(found.of.questions[0])
    states = {name: STATES[int(state[0])] for name, state in found.states.items()}
    usual, other = limits.confidence, float(found.of.other[0])

    def one(
        name: str, interval: IntervalArrays | None, limit: float, confidence: float, why: str, state: str = ""
    ) -> Condition:
        numbers = _numbers(interval, 2.0 if interval is found.difference else 1.0)
        return Condition(name, states[state or name], *numbers, limit, confidence, n, g, why)

    why = (
        f"{g:,} questions and {other:.4g} units with a label other than the commonest one; both have to be "
        f"{FEWEST_QUESTIONS} or more"
        + ("; the judge gives one label only" if bool(found.of.one_label[0]) else "")
    )
    evidence = Condition("evidence", states["evidence"], other, None, None, FEWEST_OTHER, None, n, g, why)
    why = f"the {100 * limits.skill_confidence:g} % interval of the judge's agreement, {_span(found.skill)}, against 0, which is guessing"
    skill = one("skill", found.skill, 0.0, limits.skill_confidence, why)
    if of.regime == "threshold":
        why = f"the judge's agreement with '{of.source}', chance-corrected, is {_span(found.agreement)} against {limits.threshold:g}"
        first = one("threshold", found.agreement, limits.threshold, usual, why, "non_inferiority")
        return evidence, first, skill
    assert found.difference is not None and found.ceiling is not None
    why = (
        f"the judge's agreement with people, {_span(found.agreement)}, minus people's with each other, "
        f"{_span(found.ceiling)}, is {_span(found.difference, 2.0)} against the margin {limits.margin:g}"
    )
    first = one("non_inferiority", found.difference, limits.margin, usual, why)
    alone = lone(table, limits.ceiling) if table is not None else ()
    names = " and ".join([*([", ".join(alone[:-1])] if alone[1:] else []), *alone[-1:]])
    who = f"; {names} agree{'s' if len(alone) == 1 else ''} with nobody" if alone else ""
    why = f"people's agreement with each other is {_span(found.ceiling)} against {limits.ceiling:g}{who}"
    agree = one("people_agree", found.ceiling, limits.ceiling, usual, why)
    return evidence, first, skill, _alt_condition(of, states["alt_test"], limits, test, n, g), agree


def independence(copies: Sequence[Copy], questions: int) -> Condition:
    """People who gave the judge's labels, or nearly, are no check on it: open, whatever the other conditions say."""
    who = "; ".join(f"{copy.person} differs on {copy.apart:,} of {copy.units:,} units" for copy in copies)
    n = max(copy.units for copy in copies)
    why = f"labels that were given without the judge's: {who}, which hardly happens by chance"
    return Condition("independence", "open", None, None, None, 1.0, None, n, questions, why)


def gold_agrees(gold: ConditionArrays, name: str, limits: Limits) -> Condition:
    """Gold labels that people contradict: what the judge has learnt of people may be what both get wrong."""
    n, g = round(float(gold.of.units[0])), int(gold.of.questions[0])
    why = f"people's agreement with '{name}' is {_span(gold.agreement)}"
    limit = limits.threshold
    if gold.difference is not None and gold.ceiling is not None:
        limit = limits.margin
        why += f", with each other {_span(gold.ceiling)}: the difference, {_span(gold.difference, 2.0)}, is below {limit:g}"
    else:
        why += f", below {limit:g}"
    numbers = _numbers(gold.difference or gold.agreement, 2.0)
    return Condition(
        "gold", "open", *numbers, limit, limits.confidence, n, g, f"{why}; find out who is right"
    )


def _alt_condition(of: Case, state: State, limits: Limits, test: AltTest | None, n: int, g: int) -> Condition:
    if test is None or len(test.compared) < 3:
        why = "the alt-test takes three people who share ten questions with the judge and others: not asked"
        return Condition("alt_test", "not asked", None, None, None, limits.epsilon, None, n, g, why)
    sure = [row for row in test.compared if row.n_clusters >= FEWEST_FOR_T_TEST]
    lost, won = sum(row.lost for row in sure), sum(row.won for row in sure)
    why = f"the alt-test at epsilon {limits.epsilon:g}"
    left = len(test.compared) - len(sure)
    if not sure:
        why += f" tests none of the {left} people: each shares fewer than {FEWEST_FOR_T_TEST} questions with the judge and others"
    else:
        why += (
            f": the judge wins against {won} of {len(sure)} people and loses to {lost} by more than epsilon"
        )
        why += (
            f" ({left} more share fewer than the {FEWEST_FOR_T_TEST} questions that count here)"
            if left
            else ""
        )
    return Condition("alt_test", state, test.winning_rate, None, None, 0.5, None, n, g, why)


def labels(ratings: Ratings, found: ConditionArrays, limits: Limits) -> tuple[LabelRow, ...]:
    """Two rows for each label: what the judge finds of it, and what it means by it."""
    assert found.finds is not None and found.means is not None
    of = found.of
    rows = []
    for i, label in enumerate(ratings.domain):
        people = _number(of.people_find, i)
        rows.append(
            _label(label, "finds", i, of.by_label, of.judge_finds, people, found.finds, found.found, limits)
        )
        rows.append(
            _label(
                label, "means", i, of.judge_labels, of.judge_means, people, found.means, found.meant, limits
            )
        )
    return tuple(rows)


def _label(
    label: str,
    direction: Direction,
    i: int,
    units: FloatArray,
    judge: FloatArray,
    people: float | None,
    difference: IntervalArrays,
    states: IntArray,
    limits: Limits,
) -> LabelRow:
    n, state = float(units[0, i]), _SHOWN[int(states[0, i])]
    # The difference of two shares.
    value, low, high = (_number(np.clip(x, -1.0, 1.0), i) for x in difference)
    why = "" if state != "not shown" else _not_shown(direction, n, float(difference.low[0, i]), limits)
    return LabelRow(label, direction, state, round(n, 6), _number(judge, i), people, value, low, high, why)


def _number(values: FloatArray, i: int) -> float | None:
    value = float(values[0, i])
    return value if np.isfinite(value) else None


def _not_shown(direction: Direction, n: float, low: float, limits: Limits) -> str:
    if n < 1e-9:
        return f"{'no person' if direction == 'finds' else 'the judge never'} gave it"
    if n < FEWEST_OTHER - 1e-9:
        return f"{_units(n)}, fewer than {FEWEST_OTHER}"
    if low > limits.label_margin:
        return f"{_units(n)}; the judge gives it no oftener where people do than elsewhere"
    return f"{_units(n)}; the interval includes {limits.label_margin:g}"


def _units(n: float) -> str:
    """Whole units: where people differ each counts by its share of them."""
    whole = math.floor(n + 1e-9)
    return f"{whole:,} unit" if whole == 1 else f"{whole:,} units"


def by_state(rows: Sequence[LabelRow]) -> dict[str, list[str]]:
    """The labels that are shown in both directions, those missed in either, and the others, which are not shown."""
    states: dict[str, set[str]] = {}
    for row in rows:
        states.setdefault(row.label, set()).add(row.state)
    shown = [label for label, found in states.items() if found == {"shown"}]
    missed = [label for label, found in states.items() if "missed" in found]
    return {"shown": shown, "missed": missed, "not_shown": [x for x in states if x not in (*shown, *missed)]}


MOST_NAMED = 6
"""Labels that a sentence names; of more it gives the numbers of those that a verdict allows, and the table has the labels."""


def labels_text(rows: Sequence[LabelRow]) -> str:
    """What a verdict allows label by label: "for 'A'; to find 'B'; where it says 'C'; not for 'D'; open for 'E'"."""
    kinds = ("for", "to find", "where it says", "not for", "open for")
    groups: dict[str, list[str]] = {kind: [] for kind in kinds}
    for finds, means in zip(rows[::2], rows[1::2], strict=True):
        if not is_used(finds, means):
            continue
        if finds.state == means.state == "shown":
            what = "for"
        elif finds.state == "shown":
            what = "to find"
        elif means.state == "shown":
            what = "where it says"
        else:
            what = "not for" if "missed" in (finds.state, means.state) else "open for"
        groups[what].append(f"'{finds.label}'")
    n = sum(map(len, groups.values()))
    if n > MOST_NAMED:
        allowed = [f"{what} {len(groups[what]):,}" for what in kinds[:3] if groups[what]]
        return f"{'; '.join(allowed)} of {n:,} labels"
    return "; ".join(f"{what} {', '.join(names)}" for what, names in groups.items() if names)


def is_used(finds: LabelRow, means: LabelRow) -> bool:
    """Whether a person or the judge gave the label."""
    return finds.n_units > 0 or means.n_units > 0


def _label_numbers(rows: Sequence[LabelRow]) -> str:
    """The units of each label in both directions, with what keeps it from being shown."""
    parts = []
    for finds, means in zip(rows[::2], rows[1::2], strict=True):
        if is_used(finds, means):
            both = (("recall", finds), ("precision", means))
            told = [f"{what} {row.state} ({row.why or _units(row.n_units)})" for what, row in both]
            parts.append(f"'{finds.label}': {', '.join(told)}")
    return "; ".join(parts)


def because(
    found: ConditionArrays,
    conditions: Sequence[Condition],
    labels: Sequence[LabelRow],
    decision: Decision,
    limits: Limits,
) -> str:
    """The numbers of the conditions that made the decision."""
    if decision == "do not trust" and bool(found.of.one_label[0]):
        return "the judge gives one label only"
    wanted = {"do not trust": ("fails",), "undecided": ("open", "fails")}.get(decision, ("holds",))
    shown_only = () if limits.near_labels else ("skill", "alt_test")
    telling = [
        c.why
        for c in conditions
        if c.state in wanted and c.name not in shown_only and not (c.name == "evidence" and "holds" in wanted)
    ]
    if decision == "undecided" and not telling:
        telling = ["no label is shown"]
    if decision == "undecided" and any(c.name == "evidence" and c.state == "open" for c in conditions):
        telling = telling[:1]
    if labels and decision in ("trust", "trust in part"):
        telling.append(f"label by label: {_label_numbers(labels)}")
    return "; ".join(telling)


def rule(of: Case, limits: Limits) -> str:
    """The rule in words; docs/verdict.md has it at length."""
    sure = f"{100 * limits.confidence:.4g} %"
    evidence = (
        f"Undecided with fewer than {FEWEST_QUESTIONS} questions or {FEWEST_OTHER} units with a label other than the "
        "commonest; a judge that gives one label only is not trusted. "
    )
    if of.regime == "threshold":
        return (
            f"One source of labels ('{of.source}'). {evidence}Trust when the judge's agreement with it, chance-corrected, lies "
            f"with its {sure} interval above {limits.threshold:g}; do not trust when the interval lies below; else undecided. "
            f"This is {UNKNOWN_CEILING}."
        )
    near = (
        f" Near labels count in part, so (b) skill and (c) the alt-test at epsilon {limits.epsilon:g} decide, too."
        if limits.near_labels
        else ""
    )
    return (
        f"{len(of.people)} people. {evidence}Trust when (a) the judge's agreement with people, chance-corrected, minus "
        f"theirs with each other lies with its {sure} interval above {limits.margin:g} and (e) people's own agreement above "
        f"{limits.ceiling:g}; (d) says for which labels: what the judge finds and what it means by each, less than "
        f"{-limits.label_margin:g} below another person. Do not trust when (a) lies below {limits.margin:g}. Else "
        f"undecided.{near} Questions are the units of the intervals."
    )


def without_intervals(
    conditions: Sequence[Condition], labels: Sequence[LabelRow]
) -> tuple[tuple[Condition, ...], tuple[LabelRow, ...]]:
    """The same as weighted estimates of units drawn with unequal probabilities: their jackknife intervals are too narrow."""
    return (
        tuple(replace(c, low=None, high=None) for c in conditions),
        tuple(replace(r, low=None, high=None, state="not shown", why="weighted estimate") for r in labels),
    )


def measures(
    judge: str,
    of: Case,
    found: ConditionArrays,
    limits: Limits,
    name: str,
    level: str,
    field: str | None,
) -> tuple[Measure, ...]:
    """(a) first, or the agreement with the one source; then what it is made of."""
    n, g = of.n_units, int(found.of.questions[0])
    who = (judge, of.source) if of.source is not None else (judge, *of.people)
    weights = name.partition(":")[2] or None

    def measure(kind: str, interval: IntervalArrays | None, names: tuple[str, ...]) -> Measure:
        value, low, high = _numbers(interval, 2.0 if interval is found.difference else 1.0)
        base = replace(
            about(kind, n, of.n_asked, g, names, field),
            level=level,
            weights=weights if weights in ("linear", "quadratic") else None,
            confidence=limits.confidence,
        )
        if value is None:
            reason = (
                "no unit is labelled by the judge and enough people"
                if not n
                else "one label only: chance agreement is complete"
            )
            return replace(base, reason=reason)
        if of.sums.weighted:
            return replace(base, value=value, notes=(Note("weighted", n_eff=of.n_effective),))
        return replace(base, value=value, low=low, high=high, notes=(Note("jackknife"),))

    if of.regime == "threshold":
        return (measure("cohen_kappa", found.agreement, who),)
    return (
        measure("pooled_kappa_difference", found.difference, who),
        measure("pooled_kappa", found.agreement, who),
        measure("pooled_kappa", found.ceiling, of.people),
    )
