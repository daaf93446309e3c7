"""May this judge be trusted? One rule, five conditions, each tested in both directions, said with its numbers.

docs/verdict.md explains the rule; `conditions` computes it, `outlook` says what is still needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Unpack

import numpy as np

from judge.errors import BadInput
from judge.stats.alternative import ENOUGH, AltTest, alt_test
from judge.stats.bootstrap import How
from judge.stats.coefficients import disagreement
from judge.stats.conditions import (
    FEWEST_OTHER,
    FEWEST_QUESTIONS,
    Found,
    Interval,
    Limits,
    Sums,
    rule,
    sums,
)
from judge.stats.estimate import about
from judge.stats.outlook import Outlook, outlook
from judge.stats.pairwise import identical, lone
from judge.stats.patterns import n_present
from judge.stats.ratings import MISSING, FloatArray, Ratings
from judge.types import Measure

Decision = Literal["trust", "trust in part", "do not trust", "undecided"]
State = Literal["holds", "open", "fails", "not asked"]
Regime = Literal["people", "threshold"]
MARGIN = Limits.margin
THRESHOLD = Limits.threshold
DECISIONS: tuple[Decision, ...] = ("undecided", "trust", "trust in part", "do not trust")
STATES: dict[int, State] = {1: "holds", 0: "open", -1: "fails"}
UNKNOWN_CEILING = "against a threshold; how well people would agree is unknown"
JACKKNIFE = "jackknife interval by question, quantiles of t"


@dataclass(frozen=True)
class Condition:
    """One condition: `value` with its interval (at `confidence`) against `limit`; `why` says it in words.

    `name` is evidence, non_inferiority (a) or threshold in its place, skill (b), alt_test (c) or people_agree (e).
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

    `n_units` are units with the label, a unit counting by the share of its people who gave it.
    """

    label: str
    state: Literal["shown", "missed", "not shown"]
    n_units: float
    judge_recall: float | None
    people_recall: float | None
    difference: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Verdict:
    """`rule` is the rule in words, `because` its numbers. `more_clusters` and `more_units` (None when
    decided, or where no number would do: `outlook` says why) are labels still needed. `ceiling_known` is False where
    people cannot be compared with people. `people` are those that took part, `source` the one source of labels."""

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
    measures: tuple[Measure, ...] = ()
    alt_test: AltTest | None = None
    outlook: Outlook | None = None
    warnings: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(row.label for row in self.labels if row.state == "shown")

    @property
    def missed(self) -> tuple[str, ...]:
        return tuple(row.label for row in self.labels if row.state == "missed")

    @property
    def not_shown(self) -> tuple[str, ...]:
        return tuple(row.label for row in self.labels if row.state == "not shown")


@dataclass(frozen=True, eq=False)
class Case:
    """The arrays of one study behind a verdict; `plan` and curves start from them."""

    sums: Sums
    regime: Regime
    people: tuple[str, ...]
    source: str | None
    n_asked: int


def case(
    ratings: Ratings,
    judge: str,
    people: Sequence[str] = (),
    *,
    reference: str | None = None,
    name: str = "cohen_kappa",
    level: str = "nominal",
    least_others: int = 1,
) -> Case:
    """Who takes part, and the sums by question.

    Two or more people who share ten questions with the judge are compared with each other; else the one source is
    the only person, or `reference` (gold, decided, the people's majority). Raises BadInput without anybody
    to compare with, and for unknown names.
    """
    people = [person for person in people if person != judge]
    if not people and reference is None:
        raise BadInput(f"there is nobody to compare '{judge}' with")
    mine = ratings.column(judge)
    together = 0
    if len(people) > 1:
        several = (ratings.select(people).codes != MISSING).sum(axis=1) >= 2
        together = n_present(ratings.clusters[several & (mine != MISSING)])
    source: str | None = None
    regime: Regime = "people"
    if together < FEWEST_QUESTIONS:
        candidate = _alone(ratings, judge, people, reference)
        if len(people) < 2 or _shared(ratings, judge, candidate) >= FEWEST_QUESTIONS:
            regime, source = "threshold", candidate
    columns = [source] if source is not None else list(people)
    agreement, distance = _weights(ratings, name, level)
    found = sums(
        mine[None, :],
        ratings.select(columns).codes[None, :, :],
        ratings.clusters,
        agreement,
        distance,
        least_others=least_others,
    )
    return Case(found, regime, tuple(people if source is None else ()), source, ratings.n_units)


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
    `how`: only `confidence` acts, as the intervals are jackknife ones. Raises BadInput without anybody to
    compare with, for unknown names, limits out of range, and for interval=None.
    """
    if how.get("interval", "bca") is None:
        raise BadInput("a verdict needs intervals")
    if not 0 <= epsilon <= 1 or not -1 <= margin <= 1 or not -1 <= threshold <= 1:
        raise BadInput("epsilon lies in 0..1, the margin and the threshold in -1..1")
    limits = Limits(
        margin=margin,
        epsilon=epsilon,
        threshold=threshold,
        least_others=least_others,
        clustered=clustered,
        by_label=level in ("nominal", "ordinal"),
        confidence=how.get("confidence", Limits.confidence),
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
            level="interval" if level == "ratio" else level,
            least_others=least_others,
            clustered=clustered,
        )
    table = ratings.select(about_it.people) if about_it.people else None
    conditions = _conditions(about_it, found, limits, test, table)
    labels = _labels(ratings, found, limits) if about_it.regime == "people" and limits.by_label else ()
    ahead = None
    if decision == "undecided" and power is not None:
        ahead = outlook(about_it.sums, limits, power=power)
    more = _more(ahead, found)
    return Verdict(
        judge,
        decision,
        about_it.regime,
        _rule(about_it, limits),
        _because(found, conditions, labels, decision),
        conditions,
        labels,
        about_it.people,
        about_it.source,
        *more,
        about_it.regime == "people",
        _measures(judge, about_it, found, limits, name, level, field),
        test,
        ahead,
        identical(table) if table is not None else (),
    )


def _shared(ratings: Ratings, *names: str) -> int:
    """Questions with a unit that all of these labelled; 0 for a name that labelled nothing."""
    if not all(name in ratings.annotators for name in names):
        return 0
    both = np.logical_and.reduce([ratings.column(name) != MISSING for name in names])
    return n_present(ratings.clusters[both])


def _alone(ratings: Ratings, judge: str, people: Sequence[str], reference: str | None) -> str:
    """The one source of labels: the only person where they labelled enough, else the reference."""
    if reference is None or (len(people) == 1 and _shared(ratings, judge, people[0]) >= FEWEST_QUESTIONS):
        return max(people, key=lambda person: _shared(ratings, judge, person))
    return reference


def _weights(ratings: Ratings, name: str, level: str) -> tuple[FloatArray, FloatArray]:
    """How much two labels agree (0 to 1), and the distance that the alt-test squares."""
    q = len(ratings.domain)
    if level in ("interval", "ratio"):
        numbers = ratings.numbers(level)
        squared = (numbers[:, None] - numbers[None, :]) ** 2
        return 1 - squared / max(float(squared.max()), 1e-300), squared
    places = np.arange(q, dtype=np.float64)
    distance = (places[:, None] - places[None, :]) ** 2 if level == "ordinal" else 1 - np.eye(q)
    weights = "linear" if name.endswith(":linear") else None
    if name.endswith(":quadratic") or (level == "ordinal" and name.startswith("krippendorff")):
        weights = "quadratic"
    apart = disagreement(q, weights)
    return 1 - apart / max(float(apart.max()), 1e-300), distance


def _more(ahead: Outlook | None, found: Found) -> tuple[int | None, int | None]:
    if ahead is None:
        return None, None
    questions = int(found.questions[0])
    if questions >= FEWEST_QUESTIONS:
        return ahead.more_clusters, ahead.more_units
    # No pilot: thirty questions are one.
    missing = ENOUGH - questions
    per = float(found.units[0]) / questions if questions else 1.0
    return missing, max(missing, round(missing * per))


def _numbers(found: Interval | None) -> tuple[float | None, float | None, float | None]:
    if found is None:
        return None, None, None
    value, low, high = (float(x[0]) for x in found)
    return (
        value if np.isfinite(value) else None,
        low if np.isfinite(low) else None,
        high if np.isfinite(high) else None,
    )


def _span(found: Interval) -> str:
    value, low, high = _numbers(found)
    if value is None:
        return "undefined"
    return f"{value:.3f}" + (f" ({low:.3f} to {high:.3f})" if low is not None else " (no interval)")


def _conditions(
    of: Case, found: Found, limits: Limits, test: AltTest | None, table: Ratings | None
) -> tuple[Condition, ...]:
    n, g = round(float(found.units[0])), int(found.questions[0])
    states = {name: STATES[int(state[0])] for name, state in found.states.items()}

    def condition(
        name: str, state: State, interval: Interval | None, limit: float, confidence: float | None, why: str
    ) -> Condition:
        return Condition(name, state, *_numbers(interval), limit, confidence, n, g, why)

    other = float(found.other[0])
    rows = [
        Condition(
            "evidence",
            states["evidence"],
            other,
            None,
            None,
            FEWEST_OTHER,
            None,
            n,
            g,
            f"{g:,} questions and {other:.4g} units with a label other than the commonest one; both have to be "
            f"{FEWEST_QUESTIONS} or more"
            + ("; the judge gives one label only" if bool(found.one_label[0]) else ""),
        )
    ]
    if of.regime == "threshold":
        why = f"the judge's agreement with '{of.source}', chance-corrected, is {_span(found.agreement)} against {limits.threshold:g}"
        rows.append(
            condition(
                "threshold",
                states["non_inferiority"],
                found.agreement,
                limits.threshold,
                limits.confidence,
                why,
            )
        )
    else:
        assert found.difference is not None and found.ceiling is not None
        why = (
            f"the judge's agreement with people, {_span(found.agreement)}, minus people's with each other, "
            f"{_span(found.ceiling)}, is {_span(found.difference)} against the margin {limits.margin:g}"
        )
        rows.append(
            condition(
                "non_inferiority",
                states["non_inferiority"],
                found.difference,
                limits.margin,
                limits.confidence,
                why,
            )
        )
    why = f"the {100 * limits.skill_confidence:g} % interval of the judge's agreement, {_span(found.skill)}, against 0, which is guessing"
    rows.append(condition("skill", states["skill"], found.skill, 0.0, limits.skill_confidence, why))
    if of.regime == "people":
        rows.append(_alt_condition(of, states["alt_test"], limits, test, n, g))
        assert found.ceiling is not None
        alone = lone(table, limits.ceiling) if table is not None else ()
        who = f"; {' and '.join(alone)} agree{'s' if len(alone) == 1 else ''} with nobody" if alone else ""
        why = f"people's agreement with each other is {_span(found.ceiling)} against {limits.ceiling:g}{who}"
        rows.append(
            condition(
                "people_agree", states["people_agree"], found.ceiling, limits.ceiling, limits.confidence, why
            )
        )
    return tuple(rows)


def _alt_condition(of: Case, state: State, limits: Limits, test: AltTest | None, n: int, g: int) -> Condition:
    if test is None or len(test.compared) < 3:
        why = "the alt-test takes three people who share ten questions with the judge and others: not asked"
        return Condition("alt_test", "not asked", None, None, None, limits.epsilon, None, n, g, why)
    sure = [row for row in test.compared if row.n_clusters >= ENOUGH]
    lost, won = sum(row.lost for row in sure), sum(row.won for row in sure)
    why = (
        f"the alt-test at epsilon {limits.epsilon:g}: the judge wins against {won} of {len(sure)} people and "
        f"loses to {lost} by more than epsilon"
    )
    if len(sure) < len(test.compared):
        why += f" ({len(test.compared) - len(sure)} more share fewer than the {ENOUGH} questions that count here)"
    return Condition("alt_test", state, test.winning_rate, None, None, 0.5, None, n, g, why)


def _labels(ratings: Ratings, found: Found, limits: Limits) -> tuple[LabelRow, ...]:
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
            )
        )
    return tuple(rows)


def labels_text(rows: Sequence[LabelRow]) -> str:
    """ "trust for A, B; not for C; D is not shown (9 units)", without the word trust."""
    parts = []
    shown = [row.label for row in rows if row.state == "shown"]
    missed = [row.label for row in rows if row.state == "missed"]
    if shown:
        parts.append("for " + ", ".join(f"'{label}'" for label in shown))
    if missed:
        parts.append("not for " + ", ".join(f"'{label}'" for label in missed))
    parts += [
        f"'{row.label}' is not shown ({row.n_units:.4g} units)" for row in rows if row.state == "not shown"
    ]
    return "; ".join(parts)


def _because(
    found: Found, conditions: Sequence[Condition], labels: Sequence[LabelRow], decision: Decision
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


def _rule(of: Case, limits: Limits) -> str:
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
        f"which labels: those where its recall is less than {-limits.label_margin:g} below another person's. Do not trust when (a), "
        f"(b){' or (c)' if third else ''} fails in the other direction. Else undecided. Questions are the units of the intervals."
    )


def _measures(
    judge: str, of: Case, found: Found, limits: Limits, name: str, level: str, field: str | None
) -> tuple[Measure, ...]:
    """(a) first, or the agreement with the one source; then what it is made of."""
    n, g = round(float(found.units[0])), int(found.questions[0])
    who = (judge, of.source) if of.source is not None else (judge, *of.people)
    weights = name.partition(":")[2] or None

    def measure(kind: str, interval: Interval | None, names: tuple[str, ...]) -> Measure:
        value, low, high = _numbers(interval)
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
        return replace(base, value=value, low=low, high=high, notes=(JACKKNIFE,))

    if of.regime == "threshold":
        return (measure("cohen_kappa", found.agreement, who),)
    return (
        measure("pooled_kappa_difference", found.difference, who),
        measure("pooled_kappa", found.agreement, who),
        measure("pooled_kappa", found.ceiling, of.people),
    )
