"""Read a run's label probabilities as `judge.scores.urag.Choices`, and choose the questions for calibration."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from judge.errors import BadInput, UsageError
from judge.scores import urag
from judge.scores.columns import statuses
from judge.scores.score import NO_ANSWER, Units
from judge.stats.ratings import BoolArray, FloatArray
from judge.store import label_rows
from judge.suites.chosen import Run
from judge.suites.frames import frame
from judge.suites.paper_study import PaperStudy


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
) -> urag.Choices:
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
    return urag.Choices.build(
        Units.build(table[name], table["question_id"]),
        tuple(letters),
        logits,
        [answer if answer in letters else None for answer in given],
        there,
        statuses(_failures(table, letters, known), known & table["label"].notna().to_numpy()),
    )


def _failures(table: pd.DataFrame, letters: Sequence[str], known: BoolArray) -> pd.DataFrame:
    """Return the table with the system's failures marked as "no answer".

    Failures are empty replies, and replies that name no option and have no probabilities.
    """
    label = table["label"]
    # A reply without a valid option is a failure of the system; a missing label is a failure of the judge.
    none = label.notna() & ~label.astype(str).str.strip().isin(letters) & ~known
    return table.assign(status=table["status"].astype(object).mask(none, NO_ANSWER)) if none.any() else table


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


def halves(study: PaperStudy, all_choices: urag.Choices, split: Mapping[str, str] | None) -> BoolArray:
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
        mask = urag.halves(list(questions))
        study.note("calibrated on half of the questions, drawn with seed 0")
    _refuse_empty(mask)
    if not all_choices.restrict(mask).known.any():
        raise BadInput(
            f"no question has both label probabilities and a true label, so calibration is impossible: {NONE}"
        )
    return np.asarray(mask, dtype=bool)


NONE = "use a model that returns token probabilities (openai, llamacpp) with --answers auto or codes"


def alpha_of(study: PaperStudy) -> float:
    """Return the value of --alpha. Raises UsageError if the value is not between 0 and 1."""
    alpha = study.number("alpha")
    if not 0 < alpha < 1:
        raise UsageError(f"--alpha must be between 0 and 1, not {alpha:g}")
    return alpha
