"""The statistics behind the verdict's conditions, for many studies at once, with jackknife standard errors by
question.

Agreement is averaged within units that the judge and at least two annotators labelled. Chance agreement comes
from the pooled label shares. A mean over pairs of annotators is not used, because it would change if one
annotator were split into two.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from judge.stats.alternative import FEWEST_FOR_T_TEST
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.stats.verdict_inputs import (
    FAILS,
    FEWEST_QUESTIONS,
    HOLDS,
    OPEN,
    Limits,
    Sums,
)

# Results are rounded to this many digits, so that adding in another order cannot change a decision.
DIGITS = 10
NO_SPREAD = 1e-9
LABELS = 3
"""The index of the first per-label statistic."""
# With fewer questions, (a) takes its degrees of freedom from the questions that carry its variance. Without this a judge
# at the margin was trusted in 6 to 8 % of studies of 30 units and five annotators.
SMALL = 50


class IntervalArrays(NamedTuple):
    """Values and bounds as arrays over studies; nan where undefined."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class Estimates:
    """The statistics of the conditions with standard errors, as arrays over studies.

    In arrays of statistics, the last axis selects the statistic. The first three statistics belong to
    condition (a): judge-human minus human-human agreement, judge-human agreement, and human-human agreement.
    The other statistics belong to condition (d), for each label: the judge's recall minus another annotator's
    recall (*finds*), and the same difference in precision (*means*). `few` is the effective number of
    questions for each statistic, i.e. the degrees of freedom plus 1.
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
        """1 / (standard error)^2 of the statistic that decides the verdict, [studies]; infinite if all
        questions have the same value.

        This statistic is the judge-human agreement if there is only one source of labels. Otherwise it is the
        judge-human minus the human-human agreement.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            precision: FloatArray = 1 / self.error[:, 1 if self.alone else 0] ** 2
        return precision

    def interval(self, column: int, confidence: float | FloatArray) -> IntervalArrays:
        """Return the interval for one statistic.

        `confidence` is one number for all studies, or one number per study.
        """
        few, error = self.few[:, column], self.error[:, column]
        with np.errstate(divide="ignore", invalid="ignore"):
            # No question differs from another, so the standard error is 0; the exact binomial bound still applies.
            unseen = _unseen(self.questions if column < LABELS else few, confidence)
            unseen = unseen / self.scale if column < LABELS else unseen
            reach = np.where(error < NO_SPREAD, unseen, _quantile(few, confidence) * error)
        return _interval(self.value[:, column], reach)


def estimates(question_sums: Sums, limits: Limits, weights: IntArray | None = None) -> Estimates:
    """Return the statistics of each study with jackknife standard errors by question.

    `limits` is used only for condition (c).
    """
    w = np.ones(question_sums.units.shape) if weights is None else weights.astype(np.float64)
    # A question without a unit that counts is no question for the degrees of freedom.
    w = np.where(question_sums.units > 0, w, 0.0)
    n, rows = len(question_sums.agreement), question_sums.rows
    total = _sum_questions(w, rows)
    questions = w.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = _statistics(total, question_sums.agreement)
        left_out = _statistics(total[:, None, :] - rows, question_sums.agreement)
        counted = np.where(w[..., None] > 0, left_out, 0.0)
        centre = (w[..., None] * counted).sum(axis=1) / questions[:, None]
        deviation = np.where(w[..., None] > 0, left_out - centre[:, None, :], 0.0)
        spread = (w[..., None] * deviation**2).sum(axis=1)
        # Whole questions are left out one at a time, because units of a question are not independent (Efron & Tibshirani
        # 1993, chapter 11).
        error = np.sqrt((questions - 1) / questions)[:, None] * np.sqrt(spread)
        by_label, judge_labels = total[:, 3 : 3 + n], total[:, 3 + n : 3 + 2 * n]
        commonest = by_label.argmax(axis=1)
        units = total[:, 0]
        other = np.round(units - by_label.max(axis=1), DIGITS)
        # Where a label is rare, few questions carry the variance. Student's t gets as many degrees of freedom.
        without = (
            question_sums.units
            - np.take_along_axis(
                np.broadcast_to(question_sums.shares, (len(w), *question_sums.shares.shape[1:])),
                commonest[:, None, None],
                axis=2,
            )[..., 0]
        )
        telling = _effective(without[..., None], w)
        # With few questions, even fewer carry the variance of (a): they are counted from their influence on it.
        moved = w * deviation[..., 0] ** 2
        carrying = np.where(
            questions < SMALL, moved.sum(axis=1) ** 2 / (moved**2 / np.maximum(w, 1)).sum(axis=1), np.inf
        )[:, None]
        few = [np.fmin(telling, carrying), telling, telling]
        few += [_effective(question_sums.shares, w), _effective(question_sums.judge_shares, w)]
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
        question_sums.alone,
        alt_state(question_sums, limits, weights),
    )


def _statistics(total: FloatArray, agreement: FloatArray) -> FloatArray:
    """Return the statistics of conditions (a) and (d), and the human-human chance agreement.

    The statistics of (a) include judge-human and human-human agreement. Those of (d) are recall and precision
    by label.
    """
    n = len(agreement)
    units = total[..., :1]
    shares, judge_shares = total[..., 3 : 3 + n] / units, total[..., 3 + n : 3 + 2 * n] / units
    near = shares @ agreement
    # Sorting fixes the order of adding, so that renamed labels give the same digits.
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
    """Return Kish's effective number of questions for each sum, [studies, labels].

    It is (sum x)^2 / sum x^2, where x are the contributions of the questions to the sum (Kish 1965).
    """
    total, squares = _sum_questions(w, parts), _sum_questions(w, parts**2)
    return np.where(squares > 0, total**2 / np.where(squares > 0, squares, 1.0), 0.0)


def _sum_questions(w: FloatArray, parts: FloatArray) -> FloatArray:
    """Return the sums over the questions, [studies, columns], with the questions weighted by w [studies,
    questions].
    """
    # A plan weights one study in many ways, so `parts` has the questions of that study once.
    return np.asarray(w @ parts[0] if len(parts) != len(w) else np.einsum("sg,sgf->sf", w, parts))


def _interval(value: FloatArray, reach: FloatArray) -> IntervalArrays:
    reach = np.where(np.isfinite(reach), reach, np.nan)
    return IntervalArrays(
        np.round(value, DIGITS), np.round(value - reach, DIGITS), np.round(value + reach, DIGITS)
    )


def _unseen(questions: FloatArray, confidence: float | FloatArray) -> FloatArray:
    """Return an upper bound on the share of questions that could differ from those in the sample.

    It is the exact binomial bound for a sample in which all questions have the same value.
    """
    bound: FloatArray = 1 - ((1 - confidence) / 2) ** (1 / np.maximum(questions, 1))
    return bound


def _quantile(questions: FloatArray, confidence: float | FloatArray) -> FloatArray:
    """Return the quantile of Student's t with `questions` - 1 degrees of freedom (rounded down).

    The quantile is infinite for fewer than two questions.
    """
    from scipy.special import stdtrit

    at_most = np.floor(np.clip(np.nan_to_num(questions), 0, 2000))
    quantile: FloatArray = np.where(
        at_most < 2, np.inf, stdtrit(np.maximum(at_most - 1, 1), 1 - (1 - confidence) / 2)
    )
    return quantile


def alt_state(question_sums: Sums, limits: Limits, weights: IntArray | None) -> IntArray:
    """Return the state of condition (c): HOLDS if the judge wins against at least half of the tested
    annotators, FAILS if it loses to at least half.

    Wins and losses come from t-tests against epsilon with Benjamini and Yekutieli's limits, for annotators
    who share at least thirty questions with the judge. At least three annotators must be tested. With fewer,
    the state is OPEN if three annotators share at least ten questions. Otherwise the condition does not
    apply, and the state is HOLDS.
    """
    w = np.ones(question_sums.units.shape) if weights is None else weights.astype(np.float64)
    # A condition that does not apply must not prevent trust.
    if question_sums.apart.shape[2] < 3:
        return np.full(len(w), HOLDS)
    from scipy.special import stdtr

    d, n = question_sums.apart, question_sums.apart_units
    # All sums are of whole numbers, so the order of addition does not matter.
    total = partial(_sum_questions, w)
    units, there = total(n), total((n > 0).astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total(d) / units
        if limits.clustered:
            g, around = there, total(d * d) - 2 * mean * total(d * n) + mean**2 * total(n * n)
        else:
            g, around = units, total(question_sums.apart_squares) - units * mean**2
        error = np.sqrt(g / (g - 1) * np.maximum(around, 0)) / units
        t = (mean - limits.epsilon) / np.maximum(error, 1e-12)
    few, tested = g >= FEWEST_QUESTIONS, g >= FEWEST_FOR_T_TEST
    win = np.where(tested & (mean < limits.epsilon), stdtr(np.maximum(g - 1, 1), t), 1.0)
    lose = np.where(tested & (mean > limits.epsilon), stdtr(np.maximum(g - 1, 1), -t), 1.0)
    compared = tested.sum(axis=1)
    wins, losses = _count_rejected(win, tested, limits.q), _count_rejected(lose, tested, limits.q)
    half = compared / 2
    state = np.where(wins >= half, HOLDS, np.where(losses >= half, FAILS, OPEN))
    return np.where(compared >= 3, state, np.where(few.sum(axis=1) >= 3, OPEN, HOLDS))


def _count_rejected(p: FloatArray, tested: BoolArray, q: float) -> IntArray:
    """Return how many hypotheses Benjamini and Yekutieli's procedure rejects in each row."""
    k = p.shape[1]
    ranked = np.sort(np.where(tested, p, np.inf), axis=1)
    m = np.maximum(tested.sum(axis=1, keepdims=True), 1)
    harmonic = np.cumsum(1 / np.arange(1, k + 1))[m - 1]
    below = ranked <= q * np.arange(1, k + 1) / (m * harmonic)
    return np.where(below.any(axis=1), k - below[:, ::-1].argmax(axis=1), 0)
