"""URAG: how uncertain is a system of its multiple-choice answers? Uncertainty is measured by the size of conformal sets.

Nguyen et al., "URAG: A Benchmark for Uncertainty Quantification in Retrieval-Augmented Large Language Models",
2026 (arXiv 2603.19281). The sets come from `judge.stats.conformal`: `exact` (default) guarantees the requested
coverage, and `urag_repo` reproduces the paper's code. URAG's CR is the coverage rate, not a measure of bias.

The system under test answers the task `urag_choice` with and without passages. Conformal sets are computed from
the system's probabilities for the option letters, renormalised over the options of each question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.papers.engine.chosen import Run
from judge.papers.engine.frames import frame
from judge.papers.engine.paper_study import PaperStudy
from judge.runner import second
from judge.runner.second import ShownProbabilities
from judge.scores.columns import column, encode_labels, flags, mask_unanswered, statuses
from judge.scores.compare import divide_by, score_pair
from judge.scores.score import NO_ANSWER, Score, StatusArray, Units, score_values
from judge.stats import reliability
from judge.stats.conformal import Convention, members, note_few_questions, thresholds
from judge.stats.conformal import Score as ConformalScore
from judge.stats.patterns import n_present
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.store import label_rows
from judge.types import Status

TASK, FIELD = "urag_choice", "choice"


_SHOWN = ("accuracy", "coverage", "set_size")


AWARE_TASK = "urag_aware"


# A second pass is compared by these two. Coverage has a target, so its change is neither good nor bad.
_CHANGES = ("accuracy", "set_size")


Questions = Mapping[str, tuple[tuple[str, ...], str | None]]
"""Maps each item to the letters of its options and the correct letter (None: unknown)."""


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    questions = _questions(study)
    split = _read_split(study)
    # Before any model call, which may cost money.
    check_halves(list(questions), split)
    context = study.option("context")
    first = _read_choices(study, context, questions)
    calibrator = None if first is None else _calibrator(study, context, questions, first[0])
    alone = None
    if study.part("ratio", "alone"):
        alone = first if context == "none" else _read_choices(study, "none", questions)
    study.check()
    if first is None or calibrator is None:
        return [] if alone is None else _score_alone(study, alone[0], split)
    answered, run = first
    again = _read_swapped(study, context, questions, answered, run)
    study.check()
    # All readings use the same halves, so that ratios and changes compare the same questions.
    mask = halves(study, answered, split)
    study.note(f"context {context}; probabilities are renormalised over the options of each question")
    all_scores = _scores(study, mask, calibrator, answered)
    result = list(all_scores) if study.part("sets") else _brief(all_scores)[: study.part("accuracy")]
    brief = _brief(all_scores)
    if study.part("classes"):
        for letter, some in per_class(brief, answered.restrict(~mask)).items():
            result += [score.rename(f"{score.measure}[{letter}]") for score in some]
    if alone is not None:
        base = _scores(study, mask, alone[0], alone[0])
        if study.part("ratio"):
            result += [score.rename(f"{score.measure}_without") for score in _brief(base)]
            result += ratios(brief, base)
        if study.part("alone"):
            # Questions are split by whether the answer without passages is correct.
            [right] = [score for score in base if score.measure == "accuracy"]
            for name, some in split_by_alone(brief, right).items():
                result += [score.rename(f"{score.measure}[{name}]") for score in some]
    if again is not None:
        result += [] if study.part("sets") else brief
        # The second pass counts as a separate system, so its sets are calibrated on its own answers.
        result += _changes(study, brief, _brief(_scores(study, mask, again, again)))
    return result


def _scores(study: PaperStudy, mask: BoolArray, calibration: Choices, test: Choices) -> list[Score]:
    """Return the measures on the test half of the questions. The sets are calibrated on the other half, which
    `mask` selects.
    """
    convention: Convention = study.option("convention")  # type: ignore[assignment]
    return scores(
        calibration.restrict(mask), test.restrict(~mask), alpha=alpha_of(study), convention=convention
    )


def _brief(scores: list[Score]) -> list[Score]:
    return [score for score in scores if score.measure in _SHOWN]


def _calibrator(study: PaperStudy, context: str, questions: Questions, answered: Choices) -> Choices:
    """Return the answers on which conformal sets are calibrated.

    These are the answers of the system named by --calibrate-on or, by default, of the system under test.
    """
    other = study.option("calibrate-on")
    if not other or other == study.get_tested():
        return answered
    # The other system gets a separate reading, so that its answers never fill gaps of this system.
    request = replace(study.request, system=other, models=(), runs=())
    sub = type(study)(study.store, study.paper, request, study.rows)
    theirs = _read_choices(sub, context, questions)
    if theirs is None:
        raise UsageError(f"--calibrate-on {other}: this system has no answers under the context '{context}'")
    study.steps += sub.steps
    study.judges.runs_read += sub.judges.runs_read
    study.note(f"calibrated on the answers of {other}")
    return theirs[0]


def _score_alone(study: PaperStudy, alone: Choices, split: dict[str, str] | None) -> list[Score]:
    """Return the measures of a system whose only outputs are those without passages.

    Measures that need outputs with passages have no value.
    """
    base = _scores(study, halves(study, alone, split), alone, alone)
    reason = f"no outputs under {study.lacking[0].condition}"
    dropped = [score.drop_values(reason) for score in base]
    result = dropped if study.part("sets") else _brief(dropped)[: study.part("accuracy")]
    if study.part("ratio"):
        brief = _brief(base)
        result += [score.rename(f"{score.measure}_without") for score in brief]
        result += [score.drop_values(reason) for score in ratios(brief, brief)]
    return result


def _read_swapped(
    study: PaperStudy,
    context: str,
    questions: Questions,
    first: Choices,
    run: Run | None,
) -> Choices | None:
    """Return the system's answers in a second pass, in which each prompt shows probabilities for the options.

    These are the system's own probabilities, unchanged or swapped. Return None if no second pass was
    requested, or if it has no answers yet.
    """
    kind = study.option("aware")
    if kind == "none":
        if study.insists("aware"):
            raise UsageError("--part aware requires --aware self or --aware wrong")
        return None
    if not study.part("aware"):
        return None
    if run is not None:
        shown = second.read_probabilities(study.store, f"{run.run_id}:{kind}")
        source = f"the probabilities of run {run.run_id}"
        if kind != "self":
            # The paper does not say which option is swapped with the highest one. We take the lowest, or optionally the second.
            other = "second" if kind == "wrong-second" else "least"
            source += f", with the probabilities of the most and the {other} probable option swapped for every question"
    else:
        shown = second.ShownProbabilities(f":{_kind(study)}", {})
        source = "the probabilities that were shown for the imported answers"
    study.note(
        f"{_kind(study)}-aware: the second pass shows {source}; sets are calibrated on the answers of the second pass"
    )
    again = _read_choices(study, context, questions, shown, first)
    return None if again is None else again[0]


def _kind(study: PaperStudy) -> str:
    """Return the name of the second pass in measures and conditions: "self" or "wrong"."""
    return study.option("aware").partition("-")[0]


def _changes(study: PaperStudy, first: list[Score], again: list[Score]) -> list[Score]:
    """Return the measures of the second pass, and their changes from the first pass.

    The changes are computed for accuracy and set size, on the questions that are in both passes.
    """
    name = f"{_kind(study)}_aware"
    plain = {score.measure: score for score in first}
    named = [score.rename(f"{score.measure}_{name}") for score in again]
    return named + [
        score_pair(f"{score.measure}_{name}_change", plain[score.measure], score, lambda a, b: b - a)
        for score in again
        if score.measure in _CHANGES
    ]


def _ranking(study: PaperStudy, context: str) -> tuple[str, str] | None:
    """Return the ranking whose top passages the context shows. If there is no ranking, record a step and return
    None.
    """
    return study.ranking(study.option("ranking") or None) if context.startswith("top:") else None


def _questions(study: PaperStudy) -> Questions:
    """Return the option letters of each item, and the correct letter."""
    query = (
        "SELECT item_id, options, correct FROM items WHERE options IS NOT NULL AND item_id IN "
        f"(SELECT item_id FROM unit_texts WHERE kind = 'item' AND {study.rows.scope})"
    )
    letters_of = {
        item: (tuple(json.loads(options)), correct)
        for item, options, correct in study.store.conn.execute(query)
    }
    if not any(correct for _, correct in letters_of.values()):
        raise BadInput(
            f"no item in '{study.dataset}' has options with a correct one; to import such items: "
            + command("judge items import urag FILE")
        )
    return letters_of


def _read_choices(
    study: PaperStudy,
    context: str,
    questions: Questions,
    shown: ShownProbabilities | None = None,
    first: Choices | None = None,
) -> tuple[Choices, Run | None] | None:
    """Return the system's choices and the run that they come from.

    Return None if the system has no outputs under this context. If `shown` is given, the choices are those of
    the second pass, and `first` contains the choices of the first pass.
    """
    ranking = _ranking(study, context)
    before = len(study.judges.runs_read)
    task = TASK if shown is None else AWARE_TASK
    table = study.read_generated(task, context, ranking, only="options IS NOT NULL", shown=shown)
    if table is None:
        return None
    if first is not None and first.status is not None:
        # A question that failed in the first pass has no probabilities to show, so it also fails in the second.
        failed = first.units.ids[mask_unanswered(first.status) & ~first.known]
        table.loc[table["item_id"].isin(failed) & table["label"].isna(), "status"] = NO_ANSWER
    letters = sorted({letter for options, _ in questions.values() for letter in options})
    run = last_run(study, before)
    system_choices = choices(
        study,
        table,
        run,
        FIELD,
        letters,
        {item: correct for item, (_, correct) in questions.items()},
        {item: options for item, (options, _) in questions.items()},
        imported=_read_probabilities(study, context, ranking, shown.mark if shown else ""),
    )
    outside = table["label"].isna() & (table["status"] == Status.UNPARSED).to_numpy() & ~system_choices.known
    if outside.any():
        study.note(
            f"{int(outside.sum())} of {len(table)} answers under '{context}' name no option and count as wrong"
        )
    return system_choices, run


def _read_probabilities(
    study: PaperStudy, context: str, ranking: tuple[str, str] | None, mark: str
) -> dict[str, dict[str, float]]:
    """Return, for each item, the probabilities that were imported with the system's answer under this context."""
    query = (
        "SELECT item_id, json_extract(meta, '$.probabilities') FROM answers WHERE system = ? AND condition = ? "
        "AND json_type(meta, '$.probabilities') = 'object'"
    )
    of = study.find_stored(study.get_tested(), context + mark, ranking)
    if of is None:
        return {}
    rows = study.store.conn.execute(query, [of.system, of.condition])
    return {str(item): json.loads(text) for item, text in rows}


def _read_split(study: PaperStudy) -> dict[str, str] | None:
    """Return "calibration" or "test" for each item, as marked in the imported file. Return None if the file has
    no marks.
    """
    part_of = study.rows.meta("split").dropna()
    named = {str(item): str(value) for item, value in part_of.items() if value in ("calibration", "test")}
    return named or None


SCORES: tuple[ConformalScore, ...] = ("lac", "aps")


NO_DISTRIBUTION = "no probabilities, or no correct answer"
NO_PROBABILITIES = (
    "no calibration question has option probabilities; use a model that returns token probabilities (openai, llamacpp) "
    "with --answers auto or codes, or import probabilities"
)


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
    named: IntArray | None = None
    """The option that each answer names in its text, or -1. It is used if an answer has no probabilities."""

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
            None if self.named is None else self.named[mask],
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


def random_half(questions: Sequence[Any]) -> BoolArray:
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
    there = bool(calibration.known.any())
    # Without any probabilities, only the accuracy of the named options can be computed.
    nothing = np.zeros(test.available.shape, dtype=bool)
    made = Sets(nothing, nothing, np.zeros(1), np.zeros(1))
    if there:
        made = sets(calibration, test, alpha=alpha, convention=convention, by_class=by_class)
    known, rows = test.known, np.arange(len(test.units))
    n_cal = int(calibration.known.sum())
    fit = calibration.restrict(calibration.known)
    # A question of a judge's own labels has several units; a question of multiple choice is one.
    n_questions = n_present(fit.units.clusters)
    one_each = n_present(calibration.units.clusters) == len(calibration.units)
    noun = "questions" if one_each else "units"
    fitted = f"{n_cal} questions" if one_each else f"{n_cal} units of {n_questions} questions"
    notes = [f"alpha {alpha:g}, {convention} quantile, calibrated on {fitted}"] if there else []
    lost = len(calibration.units) - n_cal
    if lost and there:
        notes.append(f"{lost} calibration {noun} left out: {NO_DISTRIBUTION}")
    if by_class:
        notes.append("each label is calibrated on the units whose true label it is")
        notes += note_few_questions(fit.units.clusters, fit.correct, test.letters, alpha)
    elif there and np.isinf(made.limits_lac).any():
        notes.append(f"{n_cal} calibration {noun} are too few for alpha {alpha:g}: every set is full")
    elif there and convention == "exact":
        # The other convention's quantile has no such guarantee, and its sets are not full if units are few.
        notes += note_few_questions(fit.units.clusters, fit.correct, alpha=alpha)

    def score(measure: str, values: FloatArray) -> Score:
        kept = np.where(known & there, values, np.nan)
        made_score = score_values(
            measure, test.units, kept, test.status, reason=NO_DISTRIBUTION, notes=tuple(notes)
        )
        return made_score if there else made_score.drop_values(NO_PROBABILITIES)

    failed = np.zeros(len(known), dtype=bool)
    if test.status is not None:
        failed = mask_unanswered(test.status) & ~known & (test.correct >= 0)
    # argmax would return the place of a nan.
    filled = np.where(np.isnan(test.probabilities), -1.0, test.probabilities)
    correct = np.maximum(test.correct, 0)
    covered = [kept[rows, correct].astype(np.float64) for kept in (made.lac, made.aps)]
    size = [kept.sum(axis=1).astype(np.float64) for kept in (made.lac, made.aps)]
    right = np.where(failed, 0.0, np.where(known, filled.argmax(axis=1) == test.correct, np.nan))
    if test.named is not None:
        # An answer without probabilities still names an option.
        by_text = ~known & (test.named >= 0) & (test.correct >= 0)
        right = np.where(by_text, test.named == test.correct, right)
    status = None if test.status is None else np.where(np.isnan(right), test.status, 0).astype(np.int8)
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


def choices(
    study: PaperStudy,
    table: pd.DataFrame,
    run: Run | None,
    field: str,
    letters: Sequence[str],
    correct: Mapping[str, str | None],
    available: Mapping[str, Sequence[str]] | None = None,
    name: str = "item_id",
    imported: Mapping[str, Mapping[str, float]] | None = None,
) -> Choices:
    """Convert a table of labels to choices, with the probabilities of the labels.

    The probabilities come from the run or, without a run, from `imported`. They are renormalised over the
    labels in `available` (None: all letters). If none of these labels has a probability above 0, the unit has
    no probabilities. The keys of `correct`, `available` and `imported` are values of the column `name`.
    """
    there = np.ones((len(table), len(letters)), dtype=bool)
    if available is not None:
        there = np.array(
            # The shape is explicit, because the number of columns cannot be inferred from a table without rows.
            [[letter in available.get(unit, ()) for letter in letters] for unit in table[name]],
            dtype=bool,
        ).reshape(len(table), len(letters))
    logits = _logits(study, table, run, field, letters)
    # Imported probabilities belong to imported answers. A run has its own probabilities.
    if run is None and imported:
        rows = [[imported.get(unit, {}).get(letter, np.nan) for letter in letters] for unit in table[name]]
        with np.errstate(divide="ignore"):
            logits = np.log(np.array(rows, dtype=np.float64).reshape(len(table), len(letters)))
    empty = np.isneginf(np.where(there, logits, -np.inf)).all(axis=1)
    logits[empty] = np.nan
    # An option outside the task's labels has no stored probability, so the others cannot be renormalised either.
    logits[(there & np.isnan(logits)).any(axis=1)] = np.nan
    given = [correct.get(unit) for unit in table[name]]
    known: BoolArray = np.asarray(~np.isnan(np.where(there, logits, 0.0)).any(axis=1), dtype=bool)
    # The softmax is undefined for a question without available options.
    there[~there.any(axis=1)] = True
    position = {letter: k for k, letter in enumerate(letters)}
    made = Choices.build(
        Units.build(table[name], table["question_id"]),
        tuple(letters),
        logits,
        [answer if answer in letters else None for answer in given],
        there,
        statuses(table, known & table["label"].notna().to_numpy()),
    )
    named = np.asarray(table["label"].map(position).fillna(-1), dtype=np.int64)
    return replace(made, named=named)


def _logits(
    study: PaperStudy, table: pd.DataFrame, run: Run | None, field: str, letters: Sequence[str]
) -> FloatArray:
    """Return the natural logarithms of the stored probabilities, `[units, letters]`, with nan where no value is
    stored.
    """
    masses_of_units = np.full((len(table), len(letters)), np.nan)
    if run is None:
        return masses_of_units
    query = (
        f"SELECT u.rowid, l.distribution FROM {label_rows.FIRST} JOIN units AS u USING (unit_id) WHERE l.annotator_id = ? "
        "AND l.field = ? AND l.distribution IS NOT NULL"
    )
    rows = frame(study.store.conn, query, [run.run_id, field], "n distribution")
    place = {int(n): i for i, n in enumerate(table["unit_id"])}
    for n, text in zip(rows["n"], rows["distribution"], strict=True):
        row = place.get(int(n))
        if row is not None:
            masses = json.loads(text)
            masses_of_units[row] = [masses.get(letter, np.nan) for letter in letters]
    # The logarithm of probability 0 is -inf, which is a valid value here.
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(masses_of_units)
    return logs


def last_run(study: PaperStudy, before: int) -> Run | None:
    """Return the run that labels were read from most recently.

    `before` is the length of `runs_read` before the labels were requested. Return None if no run was added
    since then.
    """
    return study.judges.runs_read[-1].run if len(study.judges.runs_read) > before else None


def check_halves(items: Sequence[str], split: Mapping[str, str] | None) -> None:
    """Check that the split in an imported file has questions for calibration and for the test.

    This is called before any model is called. Raises UsageError if one of the two sides is empty.
    """
    if split is None:
        return
    of = [split.get(item) for item in items]
    _refuse_empty(np.array([part == "calibration" for part in of], dtype=bool))


def _refuse_empty(mask: BoolArray) -> None:
    for half, name in ((mask, "calibration"), (~mask, "test")):
        if not half.any():
            raise UsageError(
                f"there are no {name} questions; mark at least one question for calibration and one for testing, or import at least two questions without marks (half of them are then used for calibration)"
            )


def halves(study: PaperStudy, all_choices: Choices, split: Mapping[str, str] | None) -> BoolArray:
    """Return a mask of the calibration units.

    These are the units that the file marks for calibration or, if it marks none, a random half of the
    questions.

    Raises UsageError if one side is empty.
    """
    if split:
        half_of = np.array([split.get(unit) for unit in all_choices.units.ids], dtype=object)
        mask = half_of == "calibration"
        study.note("the questions for calibration and for testing are chosen as marked in the file")
    else:
        questions = all_choices.units.questions[all_choices.units.clusters]
        mask = random_half(list(questions))
        study.note("calibrated on half of the questions, drawn with seed 0")
    _refuse_empty(mask)
    return np.asarray(mask, dtype=bool)


def alpha_of(study: PaperStudy) -> float:
    """Return the value of --alpha. Raises UsageError if the value is not between 0 and 1."""
    alpha = study.number("alpha")
    if not 0 < alpha < 1:
        raise UsageError(f"--alpha must be between 0 and 1, not {alpha:g}")
    return alpha
