"""The rows of a verdict: conditions, labels and measures, each with numbers and a reason."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from judge.notes import Note
from judge.stats.alternative import FEWEST_FOR_T_TEST, AltTest
from judge.stats.condition_estimates import IntervalArrays
from judge.stats.conditions import ConditionArrays
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


@dataclass(frozen=True)
class Condition:
    """One condition: `value`, with its interval at `confidence`, is compared with `limit`. `why` is the
    reason in words.

    `name` is evidence, coverage, non_inferiority (a), threshold (which replaces (a) for a single source),
    people_agree (e), lone_annotator (a person agrees with the others too little), independence (people's
    labels are nearly identical to the judge's) or gold (people contradict the gold labels). For ordinal labels
    with quadratic weights, skill (b) and alt_test (c) are added.
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
    """Condition (d) for one label in one direction, `finds` (recall) or `means` (precision).

    `finds`: how often the judge gives the label when a person does, compared with how often another person
    does. `means`: how often a person gives the label when the judge does, compared with how often a person
    gives it when another person does.

    `n_units` counts the units to which people or the judge gave the label. A unit counts in proportion to the
    share of its people who gave the label. `why` is the reason if the condition is not shown to hold.
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
    interval: IntervalArrays | None, most: float = 1.0
) -> tuple[float | None, float | None, float | None]:
    """Return the value and its bounds. A t interval is unbounded, so its bounds are cut to the range of an
    agreement (`most` 1) or of a difference between two agreements (`most` 2).
    """
    if interval is None:
        return None, None, None
    value, low, high = (float(x[0]) for x in interval)
    return (
        value if np.isfinite(value) else None,
        max(-most, low) if np.isfinite(low) else None,
        min(most, high) if np.isfinite(high) else None,
    )


def _span(interval: IntervalArrays, most: float = 1.0) -> str:
    value, low, high = _numbers(interval, most)
    if value is None:
        return "undefined"
    return f"{value:.3f}" + (f" ({low:.3f} to {high:.3f})" if low is not None else " (no interval)")


def conditions(
    case: Case, outcome: ConditionArrays, limits: Limits, test: AltTest | None, table: Ratings | None
) -> tuple[Condition, ...]:
    """Return each condition with its interval.

    `table` has the people's labels, and `test` is the alt-test of the study.
    """
    n, g = case.n_units, int(outcome.of.questions[0])
    states = {name: STATES[int(state[0])] for name, state in outcome.states.items()}
    usual, other = limits.confidence, float(outcome.of.other[0])

    def condition(
        name: str,
        interval: IntervalArrays | None,
        limit: float,
        confidence: float,
        reason: str,
        state: str = "",
    ) -> Condition:
        numbers = _numbers(interval, 2.0 if interval is outcome.difference else 1.0)
        return Condition(name, states[state or name], *numbers, limit, confidence, n, g, reason)

    reason = (
        f"{g:,} questions and {other:.4g} units with a label other than the most common label; "
        f"both numbers must be at least {FEWEST_QUESTIONS}"
        + ("; the judge gives only one label" if bool(outcome.of.one_label[0]) else "")
    )
    evidence = Condition("evidence", states["evidence"], other, None, None, FEWEST_OTHER, None, n, g, reason)
    shown = [evidence]
    if case.regime == "threshold":
        reason = (
            f"the judge's chance-corrected agreement with '{case.source}' is {_span(outcome.agreement)}, "
            f"and the threshold is {limits.threshold:g}"
        )
        limit = limits.threshold
        shown += [condition("threshold", outcome.agreement, limit, usual, reason, "non_inferiority")]
    else:
        assert outcome.difference is not None and outcome.ceiling is not None
        reason = (
            f"the judge's agreement with people, {_span(outcome.agreement)}, minus their agreement with each other, "
            f"{_span(outcome.ceiling)}, is {_span(outcome.difference, 2.0)}, and the margin is {limits.margin:g}"
        )
        shown += [condition("non_inferiority", outcome.difference, limits.margin, usual, reason)]
        alone = lone(table, limits.ceiling) if table is not None else ()
        names = " and ".join([*([", ".join(alone[:-1])] if alone[1:] else []), *alone[-1:]])
        who = f"; {names} agree{'s' if len(alone) == 1 else ''} with nobody" if alone else ""
        reason = f"people's agreement with each other is {_span(outcome.ceiling)}, and must be above {limits.ceiling:g}{who}"
        shown += [condition("people_agree", outcome.ceiling, limits.ceiling, usual, reason)]
    if limits.near_labels:
        reason = (
            f"the {100 * limits.skill_confidence:g} % interval of the judge's agreement, {_span(outcome.skill)}, "
            "compared with 0, the value for guessing"
        )
        shown += [condition("skill", outcome.skill, 0.0, limits.skill_confidence, reason)]
        if case.regime == "people":
            shown += [_alt_condition(case, states["alt_test"], limits, test, n, g)]
    return tuple(shown)


def independence(copies: Sequence[Copy], questions: int) -> Condition:
    """Return the condition `independence`. Its state is always open.

    It lists people whose labels are nearly identical to the judge's.
    """
    who = "; ".join(
        f"{copy.person} differs from the judge on {copy.apart:,} of {copy.units:,} units" for copy in copies
    )
    n = max(copy.units for copy in copies)
    reason = f"independent labels rarely agree this often: {who}"
    return Condition("independence", "open", None, None, None, 1.0, None, n, questions, reason)


def gold_agrees(gold: ConditionArrays, name: str, limits: Limits) -> Condition:
    """Return the condition `gold`, which reports gold labels that people contradict.

    Its state is open, because it is unknown who is right: the judge and the people may share an error.
    """
    n, g = round(float(gold.of.units[0])), int(gold.of.questions[0])
    reason = f"people's agreement with '{name}' is {_span(gold.agreement)}"
    limit = limits.threshold
    if gold.difference is not None and gold.ceiling is not None:
        limit = limits.margin
        reason += f", and with each other {_span(gold.ceiling)}: the difference, {_span(gold.difference, 2.0)}, is below {limit:g}"
    else:
        reason += f", below {limit:g}"
    numbers = _numbers(gold.difference or gold.agreement, 2.0)
    return Condition(
        "gold", "open", *numbers, limit, limits.confidence, n, g, f"{reason}; find out who is right"
    )


def _alt_condition(
    case: Case, state: State, limits: Limits, test: AltTest | None, n: int, g: int
) -> Condition:
    if test is None or len(test.compared) < 3:
        reason = (
            "the alt-test needs three people who share ten questions with the judge and with other people"
        )
        return Condition("alt_test", "not asked", None, None, None, limits.epsilon, None, n, g, reason)
    sure = [row for row in test.compared if row.n_clusters >= FEWEST_FOR_T_TEST]
    lost, won = sum(row.lost for row in sure), sum(row.won for row in sure)
    reason = f"the alt-test at epsilon {limits.epsilon:g}"
    left = len(test.compared) - len(sure)
    if not sure:
        reason += (
            f" tests none of the {left} people, because each shares fewer than {FEWEST_FOR_T_TEST} questions "
            "with the judge and with other people"
        )
    else:
        reason += (
            f": the judge wins against {won} of {len(sure)} people and loses to {lost} by more than epsilon"
        )
        if left:
            reason += f" ({left} more people are not tested, because they share fewer than {FEWEST_FOR_T_TEST} questions)"
    return Condition("alt_test", state, test.winning_rate, None, None, 0.5, None, n, g, reason)


def labels(ratings: Ratings, outcome: ConditionArrays, limits: Limits) -> tuple[LabelRow, ...]:
    """Return two rows for each label: the judge's recall and its precision."""
    assert outcome.finds is not None and outcome.means is not None
    of = outcome.of
    rows = []
    for i, label in enumerate(ratings.domain):
        people = _number(of.people_find, i)
        sides: tuple[tuple[Direction, FloatArray, FloatArray, IntervalArrays, IntArray], ...] = (
            ("finds", of.by_label, of.judge_finds, outcome.finds, outcome.recall_states),
            ("means", of.judge_labels, of.judge_means, outcome.means, outcome.precision_states),
        )
        for direction, units, judge, difference, states in sides:
            n, state = float(units[0, i]), _SHOWN[int(states[0, i])]
            # A difference of two shares is in -1..1, even if the t interval is wider.
            value, low, high = (_number(np.clip(x, -1.0, 1.0), i) for x in difference)
            reason = ""
            if state == "not shown":
                reason = _describe_not_shown(direction, n, float(difference.low[0, i]), limits)
            numbers = round(n, 6), _number(judge, i), people, value, low, high
            rows.append(LabelRow(label, direction, state, *numbers, reason))
    return tuple(rows)


def _number(values: FloatArray, i: int) -> float | None:
    value = float(values[0, i])
    return value if np.isfinite(value) else None


def _describe_not_shown(direction: Direction, n: float, low: float, limits: Limits) -> str:
    if n < 1e-9:
        return f"{'no person' if direction == 'finds' else 'the judge never'} gave the label"
    if n < FEWEST_OTHER - 1e-9:
        return f"{units_text(n)}, fewer than {FEWEST_OTHER}"
    if low > limits.label_margin:
        return f"{units_text(n)}; the judge gives the label no more often where people give it than on other units"
    return f"{units_text(n)}; the interval includes {limits.label_margin:g}"


def units_text(n: float) -> str:
    """Return the number of units as text, such as "12 units", rounded down.

    The number can be a fraction, because a unit on which people disagree counts in part.
    """
    whole = math.floor(n + 1e-9)
    return f"{whole:,} unit" if whole == 1 else f"{whole:,} units"


def remove_intervals(
    conditions: Sequence[Condition], labels: Sequence[LabelRow]
) -> tuple[tuple[Condition, ...], tuple[LabelRow, ...]]:
    """Return the rows with their intervals removed.

    Jackknife intervals are too narrow if units were drawn with unequal probabilities.
    """
    return (
        tuple(replace(c, low=None, high=None) for c in conditions),
        tuple(replace(r, low=None, high=None, state="not shown", why="weighted estimate") for r in labels),
    )


def measures(
    judge: str,
    case: Case,
    outcome: ConditionArrays,
    limits: Limits,
    name: str,
    level: str,
    field: str | None,
) -> tuple[Measure, ...]:
    """Return condition (a), or the agreement with the single source, followed by the agreements from which it
    is computed.
    """
    n, g = case.n_units, int(outcome.of.questions[0])
    who = (judge, case.source) if case.source is not None else (judge, *case.people)
    weights = name.partition(":")[2] or None

    def measure(kind: str, interval: IntervalArrays | None, names: tuple[str, ...]) -> Measure:
        value, low, high = _numbers(interval, 2.0 if interval is outcome.difference else 1.0)
        base = replace(
            about(kind, n, case.n_asked, g, names, field),
            level=level,
            weights=weights if weights in ("linear", "quadratic") else None,
            confidence=limits.confidence,
        )
        if value is None:
            reason = (
                "no unit is labelled by the judge and by enough people"
                if not n
                else "there is only one label, so chance agreement is complete"
            )
            return replace(base, reason=reason)
        if case.sums.weighted:
            return replace(base, value=value, notes=(Note("weighted", n_eff=case.n_effective),))
        return replace(base, value=value, low=low, high=high, notes=(Note("jackknife"),))

    if case.regime == "threshold":
        return (measure("cohen_kappa", outcome.agreement, who),)
    return (
        measure("pooled_kappa_difference", outcome.difference, who),
        measure("pooled_kappa", outcome.agreement, who),
        measure("pooled_kappa", outcome.ceiling, case.people),
    )
