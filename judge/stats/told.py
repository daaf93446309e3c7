"""A verdict told: its conditions, labels, rule and measures, in words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from judge.notes import Note, few
from judge.stats.alternative import FEWEST_FOR_T_TEST, AltTest
from judge.stats.conditions import ConditionArrays, IntervalArrays
from judge.stats.estimate import about
from judge.stats.leaning import Leaning
from judge.stats.pairwise import lone
from judge.stats.ratings import FloatArray, Ratings
from judge.stats.verdict_inputs import FEWEST_OTHER, FEWEST_QUESTIONS, Case, Limits
from judge.types import Measure

Decision = Literal["trust", "trust in part", "do not trust", "undecided"]
State = Literal["holds", "open", "fails", "not asked"]
STATES: dict[int, State] = {1: "holds", 0: "open", -1: "fails"}
UNKNOWN_CEILING = "against a threshold; how well people would agree is unknown"


@dataclass(frozen=True)
class Condition:
    """One condition: `value` with its interval (at `confidence`) against `limit`; `why` says it in words.

    `name` is evidence, non_inferiority (a) or threshold in its place, skill (b), alt_test (c) or people_agree (e);
    independence where people gave the judge's own labels throughout, or carry its agreement alone.
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
    """Condition (d) on one label: how often the judge and another person say it where a person does.

    `n_units` are units with the label, a unit counting by the share of its people who gave it. `why` says why it is
    not shown, empty where it is shown or missed.
    """

    label: str
    state: Literal["shown", "missed", "not shown"]
    n_units: float
    judge_recall: float | None
    people_recall: float | None
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
    n, g = round(float(found.units[0])), int(found.questions[0])
    states = {name: STATES[int(state[0])] for name, state in found.states.items()}
    usual, other = limits.confidence, float(found.other[0])

    def one(
        name: str, interval: IntervalArrays | None, limit: float, confidence: float, why: str, state: str = ""
    ) -> Condition:
        numbers = _numbers(interval, 2.0 if interval is found.difference else 1.0)
        return Condition(name, states[state or name], *numbers, limit, confidence, n, g, why)

    why = (
        f"{g:,} questions and {other:.4g} units with a label other than the commonest one; both have to be "
        f"{FEWEST_QUESTIONS} or more"
        + ("; the judge gives one label only" if bool(found.one_label[0]) else "")
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


def independence(copies: Sequence[tuple[str, int]], limits: Limits, questions: int) -> Condition:
    """People who gave the judge's own labels throughout are no check on it: open, whatever the other conditions say."""
    who, n = "; ".join(f"{name} on {n:,} units" for name, n in copies), max(n for _, n in copies)
    why = f"labels that were given without the judge's: {who} gave its own throughout, which hardly happens by chance"
    return Condition("independence", "open", 1.0, None, None, 1.0, None, n, questions, why)


def carried(lean: Leaning, units: int, questions: int) -> Condition:
    """Agreement that a few people carry may be their copying: open, its value that with the others."""
    why = (
        f"agreement that everybody bears out: {few(lean.people)} agree{'s' if len(lean.people) == 1 else ''} with the judge ({lean.agreement:.3f}), "
        f"{few(lean.others)} {_less(lean)} ({lean.rest:.3f})"
    )
    return Condition("independence", "open", lean.rest, None, None, 0.0, None, units, questions, why)


def _less(lean: Leaning) -> str:
    return "does less" if len(lean.others) == 1 else "do less"


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
    assert found.labels is not None
    rows = []
    for i, label in enumerate(ratings.domain):
        n = float(found.by_label[0, i])

        def number(values: FloatArray, i: int = i) -> float | None:
            value = float(values[0, i])
            return value if np.isfinite(value) else None

        state: Literal["shown", "missed", "not shown"] = (
            "shown" if found.shown[0, i] else "missed" if found.missed[0, i] else "not shown"
        )
        rows.append(
            LabelRow(
                label,
                state,
                round(n, 6),
                number(found.judge_recall),
                number(found.people_recall),
                number(found.labels.value),
                number(found.labels.low),
                number(found.labels.high),
                _not_shown(n, float(found.labels.low[0, i]), limits) if state == "not shown" else "",
            )
        )
    return tuple(rows)


def _not_shown(n: float, low: float, limits: Limits) -> str:
    if n < 1e-9:
        return "0 units: no person gave it"
    if n < FEWEST_OTHER - 1e-9:
        return f"{n:.4g} units, fewer than {FEWEST_OTHER}"
    if low > limits.label_margin:
        return f"{n:.4g} units; the judge gives it no oftener where people do than elsewhere"
    return f"{n:.4g} units; the interval holds {limits.label_margin:g}"


def labels_text(rows: Sequence[LabelRow]) -> str:
    """ "trust for A (40 units), B (30 units); not for C (12 units); D is not shown (9 units)", without the word trust."""
    parts = []
    for state, told in (("shown", "for"), ("missed", "not for")):
        named = [f"'{row.label}' ({row.n_units:.4g} units)" for row in rows if row.state == state]
        parts += [f"{told} {', '.join(named)}"] if named else []
    parts += [f"'{row.label}' is not shown ({row.why})" for row in rows if row.state == "not shown"]
    return "; ".join(parts)


def because(
    found: ConditionArrays, conditions: Sequence[Condition], labels: Sequence[LabelRow], decision: Decision
) -> str:
    if decision == "do not trust" and bool(found.one_label[0]):
        return "the judge gives one label only"
    wanted = {"do not trust": ("fails",), "undecided": ("open", "fails")}.get(decision, ("holds",))
    telling = [
        c.why for c in conditions if c.state in wanted and not (c.name == "evidence" and "holds" in wanted)
    ]
    if decision == "undecided" and not telling:
        telling = ["no label is shown"]
    if decision == "undecided" and any(c.name == "evidence" and c.state == "open" for c in conditions):
        telling = telling[:1]
    if labels and decision in ("trust", "trust in part"):
        telling.append(f"label by label: {labels_text(labels)}")
    return "; ".join(telling)


def rule(of: Case, limits: Limits) -> str:
    evidence = (
        f"Undecided with fewer than {FEWEST_QUESTIONS} questions or {FEWEST_OTHER} units with a label other than the "
        "commonest; a judge that gives one label only is not trusted. "
    )
    if of.regime == "threshold":
        return (
            f"One source of labels ('{of.source}'). {evidence}Trust when the judge's agreement with it, chance-corrected, lies "
            f"with its whole interval above {limits.threshold:g} and above 0 at {100 * limits.skill_confidence:g} %; do not trust when "
            f"the interval lies below {limits.threshold:g}; else undecided. This is {UNKNOWN_CEILING}."
        )
    third = (
        f", (c) it wins the alt-test at epsilon {limits.epsilon:g} against half of the people"
        if len(of.people) > 2
        else ""
    )
    return (
        f"{len(of.people)} people. {evidence}Trust when (a) the judge's agreement with people, chance-corrected, minus "
        f"theirs with each other lies with its whole interval above {limits.margin:g}, (b) the judge's agreement is above 0 "
        f"at {100 * limits.skill_confidence:g} %{third}, and (e) people's own agreement is above {limits.ceiling:g}; (d) says for "
        f"which labels: those where its recall is less than {-limits.label_margin:g} below another person's. Do not trust when "
        f"{'(a), (b) or (c)' if third else '(a) or (b)'} fails in the other direction. Else undecided. Questions are the units of the intervals."
    )


def measures(
    judge: str, of: Case, found: ConditionArrays, limits: Limits, name: str, level: str, field: str | None
) -> tuple[Measure, ...]:
    """(a) first, or the agreement with the one source; then what it is made of."""
    n, g = round(float(found.units[0])), int(found.questions[0])
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
        return replace(base, value=value, low=low, high=high, notes=(Note("jackknife"),))

    if of.regime == "threshold":
        return (measure("cohen_kappa", found.agreement, who),)
    return (
        measure("pooled_kappa_difference", found.difference, who),
        measure("pooled_kappa", found.agreement, who),
        measure("pooled_kappa", found.ceiling, of.people),
    )
