"""The conditions of the verdict, for many studies at once: sums of questions in, intervals and decisions out.

Everything is a function of sums over questions: agreement is averaged within the units that the judge and two people
labelled, chance comes from the pooled shares, and the intervals are jackknife intervals by question with quantiles of
Student's t (Efron & Tibshirani 1993, chapter 11). Nothing is drawn, so the order of rows and the names of
labels cannot matter. docs/verdict.md says the rule in words, benchmarks/verdict.py measures its error rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
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
SMALL = 50
"""Questions below which (a) takes its quantiles from those that carry its variance; without it a judge at the margin was
trusted in 6 to 8 % of studies of 30 units and five people."""


class IntervalArrays(NamedTuple):
    """Arrays over studies; nan where it is undefined."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class ConditionArrays:
    """What the conditions found, arrays over studies (labels, people as a second axis).

    `difference` (a), None with one source of labels; `skill` (b) at its own confidence; `agreement` of the judge
    with people at the usual one; `ceiling` (e); `labels` (d). States are HOLDS, OPEN, FAILS. `shown` and
    `missed` are by label.
    """

    units: FloatArray
    questions: FloatArray
    by_label: FloatArray
    other: FloatArray
    one_label: BoolArray
    difference: IntervalArrays | None
    agreement: IntervalArrays
    skill: IntervalArrays
    ceiling: IntervalArrays | None
    labels: IntervalArrays | None
    judge_recall: FloatArray
    people_recall: FloatArray
    states: dict[str, IntArray]
    shown: BoolArray
    missed: BoolArray
    decision: IntArray


def rule(found: Sums, limits: Limits, weights: IntArray | None = None) -> ConditionArrays:
    """The verdict on each study. `weights` [studies, questions] count questions several times, for plans."""
    w = np.ones(found.units.shape) if weights is None else weights.astype(np.float64)
    w = np.where(found.units > 0, w, 0.0)
    n_labels = len(found.agreement)
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
        by_label, judge_labels = total[:, 3 : 3 + n_labels], total[:, 3 + n_labels : 3 + 2 * n_labels]
        commonest = by_label.argmax(axis=1)
        units = total[:, 0]
        other = np.round(units - by_label.max(axis=1), DIGITS)
        # Where a label is rare few questions carry the variance, so the quantiles are those of as many.
        with_label = _effective(found.shares, w)
        without = (
            found.units
            - np.take_along_axis(
                np.broadcast_to(found.shares, (len(w), *found.shares.shape[1:])),
                commonest[:, None, None],
                axis=2,
            )[..., 0]
        )
        telling = _effective(without[..., None], w)[:, 0]
        scale = 1 - value[:, -1]
        # Of few questions, fewer still carry the variance of (a): counted from what each one moves it by.
        moved = w * np.where(w > 0, left_out[..., 0] - centre[:, :1], 0.0) ** 2
        carrying = np.where(
            questions < SMALL, moved.sum(axis=1) ** 2 / (moved**2 / np.maximum(w, 1)).sum(axis=1), np.inf
        )

        def interval(column: int, confidence: float) -> IntervalArrays:
            few = np.fmin(telling, carrying) if column == 0 else telling
            spread = _quantile(few, confidence) * error[:, column]
            # No question differs from another: what might have been seen still has its exact bound.
            unseen = _unseen(questions, confidence) / scale
            return _interval(value[:, column], np.where(error[:, column] < NO_SPREAD, unseen, spread))

        difference = None if found.alone else interval(0, limits.confidence)
        agreement = interval(1, limits.confidence)
        skill = interval(1, limits.skill_confidence)
        ceiling = None if found.alone else interval(2, limits.confidence)
        labels = None
        if not found.alone:
            own = error[:, 3 : 3 + n_labels]
            unseen = _unseen(with_label, limits.confidence)
            reach = np.where(own < NO_SPREAD, unseen, _quantile(with_label, limits.confidence) * own)
            labels = _interval(value[:, 3 : 3 + n_labels], reach)
        judge_recall = np.round(total[:, 3 + 2 * n_labels : 3 + 3 * n_labels] / by_label, DIGITS)
        people_recall = np.round(total[:, 3 + 3 * n_labels :] / by_label, DIGITS)
    one_label = (judge_labels > 1e-9).sum(axis=1) <= 1
    enough = (questions >= FEWEST_QUESTIONS) & (other >= FEWEST_OTHER - 1e-9)
    states = {
        "evidence": np.where(enough, HOLDS, OPEN),
        "non_inferiority": _state(difference, limits.margin)
        if difference
        else _state(agreement, limits.threshold),
        "skill": _state(skill, 0.0),
        "alt_test": alt_state(found, limits, weights),
        "people_agree": np.where(ceiling.low > limits.ceiling, HOLDS, OPEN)
        if ceiling
        else np.ones(len(w), dtype=int),
    }
    shown = np.zeros(by_label.shape, dtype=bool)
    missed = shown.copy()
    if labels is not None:
        counted_label = by_label >= FEWEST_OTHER - 1e-9
        # A label that the judge gives no oftener where a person does than elsewhere is not shown, however few people give it.
        better = judge_recall > np.round(judge_labels / np.maximum(units, 1)[:, None], DIGITS)
        shown = counted_label & better & (labels.low > limits.label_margin)
        missed = counted_label & (labels.high < limits.label_margin)
    ask_labels = limits.by_label and not found.alone
    decision = _decision(states, one_label, shown, ask_labels)
    return ConditionArrays(
        units,
        questions,
        by_label,
        other,
        one_label,
        difference,
        agreement,
        skill,
        ceiling,
        labels,
        judge_recall,
        people_recall,
        states,
        shown,
        missed,
        decision,
    )


def _statistics(total: FloatArray, agreement: FloatArray) -> FloatArray:
    """(a), agreement of the judge with people, of people, (d) by label, and the people's chance agreement, last axis."""
    n = len(agreement)
    units = total[..., :1]
    shares, judge_shares = total[..., 3 : 3 + n] / units, total[..., 3 + n : 3 + 2 * n] / units
    near = shares @ agreement
    chance = np.sort(near * judge_shares, axis=-1).sum(axis=-1)
    people_chance = np.sort(near * shares, axis=-1).sum(axis=-1)
    observed, people = total[..., 1] / units[..., 0], total[..., 2] / units[..., 0]
    with_people = (observed - chance) / (1 - chance)
    among_people = (people - people_chance) / (1 - people_chance)
    recall = (total[..., 3 + 2 * n : 3 + 3 * n] - total[..., 3 + 3 * n :]) / total[..., 3 : 3 + n]
    return np.concatenate(
        [
            np.stack([with_people - among_people, with_people, among_people], axis=-1),
            recall,
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


def _unseen(questions: FloatArray, confidence: float) -> FloatArray:
    """The largest share of questions that might have told otherwise where none did: the exact binomial bound."""
    bound: FloatArray = 1 - ((1 - confidence) / 2) ** (1 / np.maximum(questions, 1))
    return bound


def _quantile(questions: FloatArray, confidence: float) -> FloatArray:
    table = _quantiles(confidence)
    return table[np.clip(questions, 0, len(table) - 1).astype(np.int64)]


@lru_cache
def _quantiles(confidence: float) -> FloatArray:
    """Of Student's t for 0, 1, 2 ... questions, infinite below two."""
    from scipy.special import stdtrit

    found: FloatArray = stdtrit(np.maximum(np.arange(2001.0) - 1, 1), 1 - (1 - confidence) / 2)
    found[:2] = np.inf
    return found


def _decision(
    states: dict[str, IntArray], one_label: BoolArray, shown: BoolArray, ask_labels: bool
) -> IntArray:
    a, b, c, e = (states[name] for name in ("non_inferiority", "skill", "alt_test", "people_agree"))
    enough = states["evidence"] == HOLDS
    trusted = (a == HOLDS) & (b == HOLDS) & (c == HOLDS) & (e == HOLDS) & ~one_label
    # The two ways to ask whether the judge is as good as a person may not contradict each other.
    conflict = (a == HOLDS) & (c == FAILS)
    failed = (e == HOLDS) & ((a == FAILS) | (b == FAILS) | (c == FAILS)) & ~conflict
    if ask_labels:
        kind = np.where(shown.all(axis=1), TRUST, np.where(shown.any(axis=1), IN_PART, UNDECIDED))
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
