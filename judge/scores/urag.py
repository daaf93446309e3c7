"""URAG: how uncertain is a system? Uncertainty is measured by the number of options in conformal sets.

Nguyen et al., "URAG: A Benchmark for Uncertainty Quantification in Retrieval-Augmented Large Language Models",
2026 (arXiv 2603.19281). The sets come from `judge.stats.conformal`: `exact` (default) guarantees the requested
coverage, and `urag_repo` reproduces the paper's code. URAG's CR is the coverage rate, not a measure of bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from judge.errors import BadInput
from judge.scores.columns import column, encode_labels, flags, mask_unanswered
from judge.scores.compare import divide_by
from judge.scores.score import Score, StatusArray, Units, score_values
from judge.stats import reliability
from judge.stats.conformal import Convention, members, note_few_questions, thresholds
from judge.stats.conformal import Score as ConformalScore
from judge.stats.patterns import n_present
from judge.stats.ratings import BoolArray, FloatArray, IntArray

SCORES: tuple[ConformalScore, ...] = ("lac", "aps")
NO_DISTRIBUTION = "no probabilities, or no correct answer"


@dataclass(frozen=True, eq=False)
class Choices:
    """A system's answers to multiple-choice questions. Create an instance with `build`.

    `probabilities[u, k]` is the probability of option k for question u, or 0 if this question has no option k.
    A row of nan means that the probabilities are unknown. `available[u, k]` marks the options that exist.
    `correct[u]` is the correct option, or -1 if it is unknown.
    """

    units: Units
    letters: tuple[str, ...]
    probabilities: FloatArray
    available: BoolArray
    correct: IntArray
    status: StatusArray | None = None

    @classmethod
    def build(
        cls,
        units: Units,
        letters: Sequence[str],
        log_probabilities: ArrayLike,
        correct: Sequence[str | None],
        available: ArrayLike | None = None,
        status: StatusArray | None = None,
    ) -> Choices:
        """Build the choices from log-probabilities of the letters at the answer position, `[units, letters]`.

        The probability of option k is exp(l_k) / sum_j exp(l_j), where j runs over the options of the
        question. A log-probability of nan means unknown, and -inf means impossible. If a question has an
        option with an unknown value, the question has no probabilities. By default, every letter is an option
        of every question. Raises BadInput if a shape is wrong, if a correct letter is not an option of its
        question, or if a row has only -inf.
        """
        logits = np.asarray(log_probabilities, dtype=np.float64)
        if logits.shape != (len(units), len(letters)):
            raise BadInput(f"{len(units)} units and {len(letters)} letters, but the shape is {logits.shape}")
        there = np.ones(logits.shape, dtype=bool) if available is None else np.asarray(available, dtype=bool)
        if there.shape != logits.shape:
            raise BadInput(f"available must have the shape {logits.shape}, not {there.shape}")
        position = {letter: float(k) for k, letter in enumerate(letters)}
        known = encode_labels(pd.Series(correct, dtype=object), position, "the correct option")
        codes = np.where(np.isnan(known), -1, known).astype(np.int64)
        absent = (codes >= 0) & ~there[np.arange(len(codes)), codes]
        if absent.any():
            u = int(absent.argmax())
            raise BadInput(f"question '{units.ids[u]}' has no option '{letters[codes[u]]}'")
        return cls(units, tuple(letters), softmax(logits, there), there, codes, status)

    @property
    def known(self) -> BoolArray:
        """A mask of the questions with probabilities and a correct answer."""
        known: BoolArray = ~np.isnan(self.probabilities).any(axis=1) & (self.correct >= 0)
        return known

    def restrict(self, mask: BoolArray) -> Choices:
        """Return the questions that the mask selects."""
        return Choices(
            self.units.take(mask),
            self.letters,
            self.probabilities[mask],
            self.available[mask],
            self.correct[mask],
            None if self.status is None else self.status[mask],
        )


@dataclass(frozen=True, eq=False)
class Sets:
    """Conformal sets `[units, letters]` of the test questions that have probabilities. For other questions, all
    values are false.

    `limits_lac` and `limits_aps` have the threshold of each letter. The thresholds are equal unless each letter
    was calibrated separately.
    """

    lac: BoolArray
    aps: BoolArray
    limits_lac: FloatArray
    limits_aps: FloatArray


def softmax(logits: FloatArray, available: BoolArray) -> FloatArray:
    """Return the probabilities of the available options, with 0 for other letters. Rows with an unknown value
    are nan.
    """
    # The model also puts mass on letters that the question does not have; URAG renormalises over its own options.
    kept = np.where(available, logits, -np.inf)
    if np.isneginf(kept).all(axis=1).any():
        raise BadInput("a question has no option with a probability above 0")
    # An unknown value makes the whole row nan.
    return reliability.softmax(kept)


def halves(questions: Sequence[Any]) -> BoolArray:
    """Return a mask of the units for calibration: all units of a random half of the questions."""
    codes, distinct = pd.factorize(np.asarray(questions), sort=True)
    # A fixed seed, so that a score is the same each time it is computed.
    chosen = np.random.default_rng(0).permutation(len(distinct)) < round(0.5 * len(distinct))
    return np.asarray(chosen[codes], dtype=bool)


def sets(
    calibration: Choices,
    test: Choices,
    *,
    alpha: float = 0.1,
    convention: Convention = "exact",
    by_class: bool = False,
) -> Sets:
    """Return the conformal sets by LAC and by APS. `calibration` may contain the choices of another system.

    With `by_class`, each letter is calibrated on the questions for which it is the correct option (see
    `judge.stats.conformal.thresholds`).
    """
    if calibration.letters != test.letters:
        raise BadInput("calibration and test must have the same option letters")
    shared = set(calibration.units.questions[calibration.units.clusters]) & set(
        test.units.questions[test.units.clusters]
    )
    # The guarantee holds only for exchangeable questions. A question that also calibrates is covered by construction.
    if shared:
        raise BadInput(f"question '{min(map(str, shared))}' is in both halves: split by question")
    fit, used = calibration.restrict(calibration.known), test.known
    if not len(fit.units):
        raise BadInput("no calibration question has probabilities and a correct answer")
    sets_by_score, limits = [], []
    for score in SCORES:
        limit = thresholds(fit.probabilities, fit.correct, score, alpha, convention, by_class=by_class)
        kept = np.zeros(test.available.shape, dtype=bool)
        # An option that a question does not have is in no set, not even in a full one.
        kept[used] = members(test.probabilities[used], limit, score, convention) & test.available[used]
        sets_by_score.append(kept)
        limits.append(limit)
    return Sets(sets_by_score[0], sets_by_score[1], limits[0], limits[1])


def scores(
    calibration: Choices,
    test: Choices,
    *,
    alpha: float = 0.1,
    convention: Convention = "exact",
    by_class: bool = False,
) -> list[Score]:
    """Return the accuracy, and the coverage and set size by LAC, by APS and as the mean of both (section 4.4).

    accuracy    share of questions whose most probable option is the correct one. In a tie, the first letter
                counts. A question that the system did not answer counts as wrong
    coverage    share of sets that contain the correct option
    set_size    mean number of options in a set
    empty_sets  share of empty sets (never with APS under `urag_repo`, which uses the top option instead)
    """
    made = sets(calibration, test, alpha=alpha, convention=convention, by_class=by_class)
    known, rows = test.known, np.arange(len(test.units))
    n_cal = int(calibration.known.sum())
    fit = calibration.restrict(calibration.known)
    # A question of a judge's own labels has several units; a question of multiple choice is one.
    n_questions = n_present(fit.units.clusters)
    one_each = n_present(calibration.units.clusters) == len(calibration.units)
    noun = "questions" if one_each else "units"
    fitted = f"{n_cal} questions" if one_each else f"{n_cal} units of {n_questions} questions"
    notes = [f"alpha {alpha:g}, {convention} quantile, calibrated on {fitted}"]
    lost = len(calibration.units) - n_cal
    if lost:
        notes.append(f"{lost} calibration {noun} left out: {NO_DISTRIBUTION}")
    if by_class:
        notes.append("each label is calibrated on the units whose true label it is")
        notes += note_few_questions(fit.units.clusters, fit.correct, test.letters, alpha)
    elif np.isinf(made.limits_lac).any():
        notes.append(f"{n_cal} calibration {noun} are too few for alpha {alpha:g}: every set is full")
    elif convention == "exact":
        # The other convention's quantile has no such guarantee, and its sets are not full if units are few.
        notes += note_few_questions(fit.units.clusters, fit.correct, alpha=alpha)

    def score(measure: str, values: FloatArray) -> Score:
        kept = np.where(known, values, np.nan)
        return score_values(
            measure, test.units, kept, test.status, reason=NO_DISTRIBUTION, notes=tuple(notes)
        )

    failed = np.zeros(len(known), dtype=bool)
    if test.status is not None:
        failed = mask_unanswered(test.status) & ~known & (test.correct >= 0)
    # argmax would return the place of a nan.
    filled = np.where(np.isnan(test.probabilities), -1.0, test.probabilities)
    correct = np.maximum(test.correct, 0)
    covered = [kept[rows, correct].astype(np.float64) for kept in (made.lac, made.aps)]
    size = [kept.sum(axis=1).astype(np.float64) for kept in (made.lac, made.aps)]
    right = np.where(failed, 0.0, np.where(known, filled.argmax(axis=1) == test.correct, np.nan))
    status = None if test.status is None else np.where(failed, 0, test.status).astype(np.int8)
    failure_notes = (
        (f"{int(failed.sum())} questions without an answer count as wrong",) if failed.any() else ()
    )
    return [
        score_values(
            "accuracy", test.units, right, status, reason=NO_DISTRIBUTION, notes=(*notes, *failure_notes)
        ),
        score("coverage_lac", covered[0]),
        score("coverage_aps", covered[1]),
        score("coverage", (covered[0] + covered[1]) / 2),
        score("set_size_lac", size[0]),
        score("set_size_aps", size[1]),
        score("set_size", (size[0] + size[1]) / 2),
        score("empty_sets_lac", (size[0] == 0).astype(np.float64)),
        score("empty_sets_aps", (size[1] == 0).astype(np.float64)),
    ]


def per_class(scores: Sequence[Score], test: Choices) -> dict[str, list[Score]]:
    """Return every score for each letter, computed over the questions whose correct option is that letter."""
    return {
        letter: [score.restrict(test.correct == k) for score in scores]
        for k, letter in enumerate(test.letters)
    }


def ratios(scores: Sequence[Score], baseline: Sequence[Score]) -> list[Score]:
    """Return the ratio of each score to the same score without retrieval, on the questions answered both with
    and without it (section 4.4).
    """
    base = {score.measure: score for score in baseline}
    return [divide_by(f"{s.measure}_ratio", s, base[s.measure]) for s in scores if s.measure in base]


def split_by_alone(scores: Sequence[Score], alone: Score) -> dict[str, list[Score]]:
    """Return each score for three groups of questions: those that the model alone answers correctly, answers
    wrongly, or does not answer (section 6.2).

    `alone` is the accuracy of the model without retrieval.
    """
    result: dict[str, list[Score]] = {"alone_right": [], "alone_wrong": [], "alone_unknown": []}
    for score in scores:
        where = alone.units.ids.get_indexer(score.units.ids)
        right = np.where(where >= 0, alone.rows[where, 0], np.nan)
        for name, mask in (("right", right == 1), ("wrong", right == 0), ("unknown", np.isnan(right))):
            result[f"alone_{name}"].append(score.restrict(mask))
    return result


def distractors(table: pd.DataFrame) -> list[Score]:
    """Return the share of valid questions in each iteration of generating distractors (table 1).

    `table` has question_id, iteration (from 1) and valid (bool or None). A question is valid if the check found
    that a distractor is entailed by the correct answer, which makes the question challenging. For questions
    that are not valid, distractors are generated again.

    valid_share@i   share of the questions tried in iteration i that are valid
    valid_after@i   share of all questions that are valid after at most i iterations
    """
    number = column(table, "iteration", "distractors").to_numpy(dtype=np.int64)
    question = column(table, "question_id", "distractors")
    valid = flags(column(table, "valid", "distractors"), "valid")
    if table.duplicated(["question_id", "iteration"]).any():
        raise BadInput("a question has two rows for one iteration")
    everyone = Units.build(question.drop_duplicates())
    of = everyone.ids.get_indexer(pd.Index(question.to_numpy()))
    options = []
    for i in sorted(set(number.tolist())):
        now, so_far = number == i, number <= i
        tried = everyone.parts_of(everyone.ids[of[now]], of[now])
        options.append(score_values(f"valid_share@{i}", tried, valid[now], reason="not checked"))
        good, open_ = np.zeros(len(everyone), dtype=bool), np.zeros(len(everyone), dtype=bool)
        good[of[so_far & (valid == 1)]] = True
        open_[of[so_far & np.isnan(valid)]] = True
        # A question with an option that was not checked may be valid: it counts as unknown, not as failed.
        after = np.where(good, 1.0, np.where(open_, np.nan, 0.0))
        options.append(replace(score_values(f"valid_after@{i}", everyone, after), why="not checked"))
    return options
