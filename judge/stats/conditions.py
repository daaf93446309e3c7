"""The conditions of the verdict, for many studies at once: sums of questions in, intervals and decisions out.

Everything is a function of sums over questions: agreement is averaged within the units that the judge and two people
labelled, chance comes from the pooled shares, and the intervals are jackknife intervals by question with quantiles of
Student's t (Efron & Tibshirani 1993, chapter 11). Nothing is drawn, so the order of rows and the names of
labels cannot matter. docs/verdict.md says the rule in words, benchmarks/verdict.py measures its error rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from judge.stats.alternative import FEWEST_FOR_T_TEST
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

# Results are rounded to this many digits, so that sums in another order cannot decide.
DIGITS = 10
NO_SPREAD = 1e-9
LABELS = 3
"""Where the statistics of the labels begin."""
SMALL = 50
"""Questions below which (a) takes its quantiles from those that carry its variance; without it a judge at the margin was
trusted in 6 to 8 % of studies of 30 units and five people."""


class IntervalArrays(NamedTuple):
    """Arrays over studies; nan where it is undefined."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class Estimates:
    """What the conditions are about, with standard errors: arrays over studies, statistics as the last axis.

    The statistics are (a) the difference of the judge's agreement and people's, the judge's agreement with people, people's
    own agreement, then for each label (d) how much oftener the judge than another person *finds* it (recall), and how much
    oftener it *means* it (precision). `few` is the number of questions that carry each one, the degrees of freedom plus 1.
    `unseen(confidence)` of `reach` bounds a statistic that no question moves.
    """

    units: FloatArray
    questions: FloatArray
    by_label: FloatArray
    judge_labels: FloatArray
    other: FloatArray
    value: FloatArray
    error: FloatArray
    few: FloatArray
    scale: FloatArray
    judge_finds: FloatArray
    people_find: FloatArray
    judge_means: FloatArray
    one_label: BoolArray
    alone: bool
    alt_test: IntArray

    @property
    def information(self) -> FloatArray:
        """Of what decides, [studies]: 1 / (standard error)^2; infinite where no question differs from another."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found: FloatArray = 1 / self.error[:, 1 if self.alone else 0] ** 2
        return found

    def interval(self, column: int, confidence: float | FloatArray) -> IntervalArrays:
        """The interval of one statistic; `confidence` is one number, or one for each study."""
        few, error = self.few[:, column], self.error[:, column]
        with np.errstate(divide="ignore", invalid="ignore"):
            # No question differs from another: what might have been seen still has its exact bound.
            unseen = _unseen(self.questions if column < LABELS else few, confidence)
            unseen = unseen / self.scale if column < LABELS else unseen
            reach = np.where(error < NO_SPREAD, unseen, _quantile(few, confidence) * error)
        return _interval(self.value[:, column], reach)


@dataclass(frozen=True, eq=False)
class ConditionArrays:
    """What the conditions found, arrays over studies (labels as a second axis).

    `difference` (a), None with one source of labels; `skill` (b) at its own confidence; `agreement` of the judge
    with people at the usual one; `ceiling` (e); `finds` and `means` (d) by label, each with its state. States are HOLDS,
    OPEN, FAILS.
    """

    of: Estimates
    difference: IntervalArrays | None
    agreement: IntervalArrays
    skill: IntervalArrays
    ceiling: IntervalArrays | None
    finds: IntervalArrays | None
    means: IntervalArrays | None
    states: dict[str, IntArray]
    found: IntArray
    meant: IntArray
    decision: IntArray


def rule(found: Sums, limits: Limits, weights: IntArray | None = None) -> ConditionArrays:
    """The verdict on each study. `weights` [studies, questions] count questions several times, for plans."""
    return decide(estimates(found, limits, weights), limits)


def estimates(found: Sums, limits: Limits, weights: IntArray | None = None) -> Estimates:
    """The statistics of each study with jackknife errors by question; of `limits` only what (c) takes acts."""
    w = np.ones(found.units.shape) if weights is None else weights.astype(np.float64)
    w = np.where(found.units > 0, w, 0.0)
    n = len(found.agreement)
    rows = np.concatenate(
        [
            found.units[..., None],
            found.judge_people[..., None],
            found.people[..., None],
            found.shares,
            found.judge_shares,
            found.judge_recall,
            found.people_recall,
        ],
        axis=-1,
    )
    total = w @ rows[0] if rows.shape[0] != w.shape[0] else np.einsum("sg,sgf->sf", w, rows)
    questions = w.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = _statistics(total, found.agreement)
        left_out = _statistics(total[:, None, :] - rows, found.agreement)
        counted = np.where(w[..., None] > 0, left_out, 0.0)
        centre = (w[..., None] * counted).sum(axis=1) / questions[:, None]
        spread = (w[..., None] * np.where(w[..., None] > 0, left_out - centre[:, None, :], 0.0) ** 2).sum(
            axis=1
        )
        error = np.sqrt((questions - 1) / questions)[:, None] * np.sqrt(spread)
        by_label, judge_labels = total[:, 3 : 3 + n], total[:, 3 + n : 3 + 2 * n]
        commonest = by_label.argmax(axis=1)
        units = total[:, 0]
        other = np.round(units - by_label.max(axis=1), DIGITS)
        # Where a label is rare few questions carry the variance, so the quantiles are those of as many.
        without = (
            found.units
            - np.take_along_axis(
                np.broadcast_to(found.shares, (len(w), *found.shares.shape[1:])),
                commonest[:, None, None],
                axis=2,
            )[..., 0]
        )
        telling = _effective(without[..., None], w)
        # Of few questions, fewer still carry the variance of (a): counted from what each one moves it by.
        moved = w * np.where(w > 0, left_out[..., 0] - centre[:, :1], 0.0) ** 2
        carrying = np.where(
            questions < SMALL, moved.sum(axis=1) ** 2 / (moved**2 / np.maximum(w, 1)).sum(axis=1), np.inf
        )[:, None]
        few = [np.fmin(telling, carrying), telling, telling]
        few += [_effective(found.shares, w), _effective(found.judge_shares, w)]
        judge_finds = np.round(total[:, 3 + 2 * n : 3 + 3 * n] / by_label, DIGITS)
        people_find = np.round(total[:, 3 + 3 * n :] / by_label, DIGITS)
        judge_means = np.round(total[:, 3 + 2 * n : 3 + 3 * n] / judge_labels, DIGITS)
    return Estimates(
        units,
        questions,
        by_label,
        judge_labels,
        other,
        value[:, :-1],
        error[:, :-1],
        np.concatenate(few, axis=1),
        1 - value[:, -1],
        judge_finds,
        people_find,
        judge_means,
        (judge_labels > 1e-9).sum(axis=1) <= 1,
        found.alone,
        alt_state(found, limits, weights),
    )


def decide(of: Estimates, limits: Limits, confidence: FloatArray | None = None) -> ConditionArrays:
    """The verdict on each study from its estimates; `confidence` [studies] in place of that of the limits."""
    sure: float | FloatArray = limits.confidence if confidence is None else confidence
    n = of.by_label.shape[1]
    difference = None if of.alone else of.interval(0, sure)
    agreement, skill = of.interval(1, sure), of.interval(1, limits.skill_confidence)
    ceiling = None if of.alone else of.interval(2, sure)
    first = _state(difference, limits.margin) if difference else _state(agreement, limits.threshold)
    enough = (of.questions >= FEWEST_QUESTIONS) & (of.other >= FEWEST_OTHER - 1e-9)
    states = {
        "evidence": np.where(enough, HOLDS, OPEN),
        "non_inferiority": first,
        "skill": _state(skill, 0.0),
        "alt_test": of.alt_test,
        "people_agree": np.where(ceiling.low > limits.ceiling, HOLDS, OPEN)
        if ceiling
        else np.ones(len(of.units), dtype=int),
    }
    finds = means = None
    found = meant = np.full((len(of.units), n), OPEN)
    if not of.alone:
        finds = _together([of.interval(LABELS + i, sure) for i in range(n)])
        means = _together([of.interval(LABELS + n + i, sure) for i in range(n)])
        # A label that the judge gives no oftener where a person does than elsewhere is not shown, however few people give it.
        units = np.maximum(of.units, 1)[:, None]
        found = _shown(finds, of.by_label, of.judge_finds > np.round(of.judge_labels / units, DIGITS), limits)
        meant = _shown(means, of.judge_labels, of.judge_means > np.round(of.by_label / units, DIGITS), limits)
    # A label that neither a person nor the judge gave is no part of what a verdict holds for.
    used = (of.by_label > 1e-9) | (of.judge_labels > 1e-9)
    shown = np.concatenate([found == HOLDS, meant == HOLDS], axis=1)
    decision = _decision(states, of.one_label, shown, np.concatenate([used, used], axis=1), limits, of.alone)
    return ConditionArrays(
        of, difference, agreement, skill, ceiling, finds, means, states, found, meant, decision
    )


def _together(found: list[IntervalArrays]) -> IntervalArrays:
    value, low, high = (np.stack(parts, axis=1) for parts in zip(*found, strict=True))
    return IntervalArrays(value, low, high)


def _shown(found: IntervalArrays, units: FloatArray, better: BoolArray, limits: Limits) -> IntArray:
    """HOLDS where a label is shown, FAILS where it is missed, else OPEN."""
    counted = units >= FEWEST_OTHER - 1e-9
    with np.errstate(invalid="ignore"):
        shown = counted & better & (found.low > limits.label_margin)
        missed = counted & (found.high < limits.label_margin)
    return np.where(shown, HOLDS, np.where(missed, FAILS, OPEN))


def _statistics(total: FloatArray, agreement: FloatArray) -> FloatArray:
    """(a), agreement of the judge with people, of people, (d) finds and means by label, and the people's chance agreement."""
    n = len(agreement)
    units = total[..., :1]
    shares, judge_shares = total[..., 3 : 3 + n] / units, total[..., 3 + n : 3 + 2 * n] / units
    near = shares @ agreement
    chance = np.sort(near * judge_shares, axis=-1).sum(axis=-1)
    people_chance = np.sort(near * shares, axis=-1).sum(axis=-1)
    observed, people = total[..., 1] / units[..., 0], total[..., 2] / units[..., 0]
    with_people = (observed - chance) / (1 - chance)
    among_people = (people - people_chance) / (1 - people_chance)
    both, of_two = total[..., 3 + 2 * n : 3 + 3 * n], total[..., 3 + 3 * n :]
    of_people = of_two / total[..., 3 : 3 + n]
    finds = both / total[..., 3 : 3 + n] - of_people
    means = both / total[..., 3 + n : 3 + 2 * n] - of_people
    return np.concatenate(
        [
            np.stack([with_people - among_people, with_people, among_people], axis=-1),
            finds,
            means,
            people_chance[..., None],
        ],
        axis=-1,
    )


def _effective(parts: FloatArray, w: FloatArray) -> FloatArray:
    """Over how many questions a sum is spread, [studies, labels]: (sum x)^2 / sum x^2 (Kish 1965)."""
    shared = parts.shape[0] != w.shape[0]
    total = w @ parts[0] if shared else np.einsum("sg,sgl->sl", w, parts)
    squares = w @ parts[0] ** 2 if shared else np.einsum("sg,sgl->sl", w, parts**2)
    return np.where(squares > 0, total**2 / np.where(squares > 0, squares, 1.0), 0.0)


def _interval(value: FloatArray, reach: FloatArray) -> IntervalArrays:
    reach = np.where(np.isfinite(reach), reach, np.nan)
    return IntervalArrays(
        np.round(value, DIGITS), np.round(value - reach, DIGITS), np.round(value + reach, DIGITS)
    )


def _state(found: IntervalArrays, limit: float) -> IntArray:
    with np.errstate(invalid="ignore"):
        return np.where(found.low > limit, HOLDS, np.where(found.high < limit, FAILS, OPEN))


def _unseen(questions: FloatArray, confidence: float | FloatArray) -> FloatArray:
    """The largest share of questions that might have told otherwise where none did: the exact binomial bound."""
    bound: FloatArray = 1 - ((1 - confidence) / 2) ** (1 / np.maximum(questions, 1))
    return bound


def _quantile(questions: FloatArray, confidence: float | FloatArray) -> FloatArray:
    """Of Student's t with whole degrees of freedom, one fewer than questions; infinite below two questions."""
    from scipy.special import stdtrit

    whole = np.floor(np.clip(np.nan_to_num(questions), 0, 2000))
    found: FloatArray = np.where(
        whole < 2, np.inf, stdtrit(np.maximum(whole - 1, 1), 1 - (1 - confidence) / 2)
    )
    return found


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
        # Weights of near labels reward a judge that is always a little off: (b) and (c) stop those that (a) lets through.
        # The two ways to ask whether the judge is as good as a person may not contradict each other.
        trusted &= (b == HOLDS) & (c == HOLDS)
        failed = (failed | (b == FAILS) | (c == FAILS)) & ~((a == HOLDS) & (c == FAILS))
    trusted &= (e == HOLDS) & ~one_label
    failed &= e == HOLDS
    if limits.by_label and not alone:
        kind = np.where((shown | ~used).all(axis=1), TRUST, np.where(shown.any(axis=1), IN_PART, UNDECIDED))
    else:
        kind = np.full(len(a), TRUST)
    kind = np.where(trusted, kind, UNDECIDED)
    kind = np.where(failed | one_label, DISTRUST, kind)
    return np.where(enough, kind, UNDECIDED)


def alt_state(found: Sums, limits: Limits, weights: IntArray | None) -> IntArray:
    """(c): HOLDS when the judge wins against half of the people tested, FAILS when it loses to half of them by more than
    epsilon; both by t-tests with Benjamini and Yekutieli's limits, of those who share thirty questions. Three people
    must be tested: OPEN where they share ten, else HOLDS says that the condition is not asked."""
    studies = len(found.units) if weights is None else len(weights)
    k = found.apart.shape[2]
    if k < 3:
        return np.full(studies, HOLDS)
    from scipy.special import stdtr

    d, n = found.apart, found.apart_units

    def total(x: FloatArray) -> FloatArray:
        """Over the questions, [studies, people]; they are sums of whole numbers, so no order of adding matters."""
        if weights is None:
            return np.asarray(x.sum(axis=1))
        return np.asarray(weights @ x[0] if len(x) == 1 else np.einsum("sg,sgk->sk", weights, x))

    units, there = total(n), total((n > 0).astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total(d) / units
        if limits.clustered:
            g, around = there, total(d * d) - 2 * mean * total(d * n) + mean**2 * total(n * n)
        else:
            g, around = units, total(found.apart_squares) - units * mean**2
        error = np.sqrt(g / (g - 1) * np.maximum(around, 0)) / units
        t = (mean - limits.epsilon) / np.maximum(error, 1e-12)
    few, tested = g >= FEWEST_QUESTIONS, g >= FEWEST_FOR_T_TEST
    win = np.where(tested & (mean < limits.epsilon), stdtr(np.maximum(g - 1, 1), t), 1.0)
    lose = np.where(tested & (mean > limits.epsilon), stdtr(np.maximum(g - 1, 1), -t), 1.0)
    compared = tested.sum(axis=1)
    wins, losses = _rejected(win, tested, limits.q), _rejected(lose, tested, limits.q)
    half = compared / 2
    state = np.where(wins >= half, HOLDS, np.where(losses >= half, FAILS, OPEN))
    return np.where(compared >= 3, state, np.where(few.sum(axis=1) >= 3, OPEN, HOLDS))


def _rejected(p: FloatArray, tested: BoolArray, q: float) -> IntArray:
    """How many hypotheses Benjamini and Yekutieli reject, row by row."""
    k = p.shape[1]
    ranked = np.sort(np.where(tested, p, np.inf), axis=1)
    m = np.maximum(tested.sum(axis=1, keepdims=True), 1)
    harmonic = np.cumsum(1 / np.arange(1, k + 1))[m - 1]
    below = ranked <= q * np.arange(1, k + 1) / (m * harmonic)
    return np.where(below.any(axis=1), k - below[:, ::-1].argmax(axis=1), 0)
