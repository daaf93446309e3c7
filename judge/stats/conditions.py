"""Compute the conditions of the verdict for many studies at once: from sums by question to intervals and
decisions.

Everything is a function of sums over questions. Agreement is averaged within units that the judge and at
least two annotators labelled. Chance agreement comes from the pooled label shares. The intervals are
jackknife intervals by question with quantiles of Student's t (Efron & Tibshirani 1993, chapter 11). Nothing
is drawn at random, so the order of rows and the names of labels cannot change the result. docs/verdict.md
explains the rule, and benchmarks/verdict.py measures its error rates.
"""

from dataclasses import dataclass

import numpy as np

from judge.stats.condition_estimates import DIGITS, LABELS, Estimates, IntervalArrays, estimates
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.stats.verdict_inputs import (
    DISTRUST,
    FAILS,
    FEWEST_OTHER,
    FEWEST_QUESTIONS,
    HOLDS,
    IN_PART,
    OPEN,
    TRUST,
    UNDECIDED,
    Limits,
    Sums,
)


@dataclass(frozen=True, eq=False)
class ConditionArrays:
    """The results of the conditions, as arrays over studies. In results by label, labels are the second axis.

    `difference` is condition (a), or None if there is only one source of labels. `skill` is (b); its interval
    has the confidence `Limits.skill_confidence`. `agreement` is the judge's agreement with the annotators,
    and `ceiling` is (e); their intervals have the same confidence as the interval of (a). `finds` and `means`
    contain (d) for each label; `recall_states` and `precision_states` say whether (d) holds. A state is
    HOLDS, OPEN or FAILS.
    """

    of: Estimates
    difference: IntervalArrays | None
    agreement: IntervalArrays
    skill: IntervalArrays
    ceiling: IntervalArrays | None
    finds: IntervalArrays | None
    means: IntervalArrays | None
    states: dict[str, IntArray]
    recall_states: IntArray
    precision_states: IntArray
    decision: IntArray


def rule(question_sums: Sums, limits: Limits, weights: IntArray | None = None) -> ConditionArrays:
    """Evaluate the conditions of each study from its sums by question.

    For plans, `weights` [studies, questions] is the number of times that each question counts.
    """
    return decide(estimates(question_sums, limits, weights), limits)


def decide(of: Estimates, limits: Limits, confidence: FloatArray | None = None) -> ConditionArrays:
    """Evaluate the conditions of each study from its estimates.

    If `confidence` [studies] is given, it replaces the confidence in `limits`.
    """
    sure: float | FloatArray = limits.confidence if confidence is None else confidence
    n = of.by_label.shape[1]
    difference = None if of.alone else of.interval(0, sure)
    agreement, skill = of.interval(1, sure), of.interval(1, limits.skill_confidence)
    ceiling = None if of.alone else of.interval(2, sure)
    first = _state(difference, limits.margin) if difference else _state(agreement, limits.threshold)
    # Without this condition false trust reached 18 to 37 % and false distrust 26 to 38 % in simulated studies of 30 units.
    # Units count by the shares of their annotators, so a sum that should be ten may lie a rounding error below it.
    enough = (of.questions >= FEWEST_QUESTIONS) & (of.other >= FEWEST_OTHER - 1e-9)
    states = {
        "evidence": np.where(enough, HOLDS, OPEN),
        "non_inferiority": first,
        "skill": _state(skill, 0.0),
        "alt_test": of.alt_test,
        # With three guessers among five annotators a judge of kappa .16 was trusted in 60 to 99 % of studies.
        "people_agree": np.where(ceiling.low > limits.ceiling, HOLDS, OPEN)
        if ceiling
        else np.ones(len(of.units), dtype=int),
    }
    finds = means = None
    recall_states = precision_states = np.full((len(of.units), n), OPEN)
    if not of.alone:
        finds = _stack([of.interval(LABELS + i, sure) for i in range(n)])
        means = _stack([of.interval(LABELS + n + i, sure) for i in range(n)])
        # The judge must give a label more often on units where an annotator gives it than on other units. Otherwise,
        # a judge that guesses would pass for a label that annotators rarely find themselves.
        units = np.maximum(of.units, 1)[:, None]
        recall_states = _decide_labels(
            finds, of.by_label, of.judge_finds > np.round(of.judge_labels / units, DIGITS), limits
        )
        precision_states = _decide_labels(
            means, of.judge_labels, of.judge_means > np.round(of.by_label / units, DIGITS), limits
        )
    # A declared label that nobody used is not part of the verdict.
    used = (of.by_label > 1e-9) | (of.judge_labels > 1e-9)
    shown = np.concatenate([recall_states == HOLDS, precision_states == HOLDS], axis=1)
    decision = _decision(states, of.one_label, shown, np.concatenate([used, used], axis=1), limits, of.alone)
    return ConditionArrays(
        of,
        difference,
        agreement,
        skill,
        ceiling,
        finds,
        means,
        states,
        recall_states,
        precision_states,
        decision,
    )


def _stack(intervals: list[IntervalArrays]) -> IntervalArrays:
    value, low, high = (np.stack(parts, axis=1) for parts in zip(*intervals, strict=True))
    return IntervalArrays(value, low, high)


def _decide_labels(
    difference: IntervalArrays, units: FloatArray, better: BoolArray, limits: Limits
) -> IntArray:
    """Return HOLDS if the interval for a label is above the limit, FAILS if it is below, and OPEN otherwise."""
    counted = units >= FEWEST_OTHER - 1e-9
    with np.errstate(invalid="ignore"):
        shown = counted & better & (difference.low > limits.label_margin)
        missed = counted & (difference.high < limits.label_margin)
    return np.where(shown, HOLDS, np.where(missed, FAILS, OPEN))


def _state(interval: IntervalArrays, limit: float) -> IntArray:
    with np.errstate(invalid="ignore"):
        return np.where(interval.low > limit, HOLDS, np.where(interval.high < limit, FAILS, OPEN))


def _decision(
    states: dict[str, IntArray],
    one_label: BoolArray,
    shown: BoolArray,
    used: BoolArray,
    limits: Limits,
    alone: bool,
) -> IntArray:
    a, b, c, e = (states[name] for name in ("non_inferiority", "skill", "alt_test", "people_agree"))
    enough = states["evidence"] == HOLDS
    trusted, failed = a == HOLDS, a == FAILS
    if limits.near_labels:
        # Quadratic weights reward a judge that is always slightly off, and (a) alone would trust it: trust needs (b) and (c).
        # (a) and (c) both compare the judge with an annotator; if they contradict each other, the verdict is undecided.
        trusted &= (b == HOLDS) & (c == HOLDS)
        failed = (failed | (b == FAILS) | (c == FAILS)) & ~((a == HOLDS) & (c == FAILS))
    # Where a label is rare, a judge that gives one label only agrees often enough to pass the alt-test.
    trusted &= (e == HOLDS) & ~one_label
    failed &= e == HOLDS
    if limits.by_label and not alone:
        kind = np.where((shown | ~used).all(axis=1), TRUST, np.where(shown.any(axis=1), IN_PART, UNDECIDED))
    else:
        kind = np.full(len(a), TRUST)
    kind = np.where(trusted, kind, UNDECIDED)
    kind = np.where(failed | one_label, DISTRUST, kind)
    return np.where(enough, kind, UNDECIDED)
