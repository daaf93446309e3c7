"""Correct a paper's measures with human labels by PPI++ (Angelopoulos, Duchi & Zrnic 2023, arXiv 2311.01453).

Each measure gets three estimates: from the judge's labels, from human labels, and from both combined. To
obtain them, the paper's measures are computed three times: with the judge's labels, with human labels, and
without labels. If a measure is a mean over units, its values are then paired unit by unit. Values that do not
depend on labels, such as the value of an empty answer, need no correction.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from judge.labels.reference import ReferenceLabels
from judge.papers.engine.paper import Part
from judge.papers.engine.paper_study import PaperStudy
from judge.scores.score import NOT_JUDGED, SHARE, STATUSES, Score, mean
from judge.stats import Corrected, Estimand
from judge.stats.ratings import BoolArray, FloatArray
from judge.store import splits
from judge.store.derived import folds
from judge.store.export import read_stored_task
from judge.types import Json, Status

Weights = Mapping[int | str, float]


@dataclass(frozen=True, slots=True)
class Correction:
    """The corrected measures. `left_out` lists the measures that are not means over units and therefore cannot
    be corrected.
    """

    reference: str
    measures: dict[str, Corrected]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation. The key `lambda` has the weight of the judge's labels."""
        return {
            "reference": self.reference,
            "measures": [{"measure": name, **c.as_json()} for name, c in self.measures.items()],
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }


FITTED = "the judge was fitted on the labels of their questions"
SEALED = "they are in a sealed test, which was not opened for this judge"


def correct(
    study: PaperStudy, scores: Sequence[Score], reference_labels: ReferenceLabels, confidence: float
) -> Correction:
    """Return three estimates of each measure: the judge's (`scores`), the reference's, and both combined."""
    measures: dict[str, Corrected] = {}
    left_out: list[str] = []
    notes: list[str] = []
    for side in _sides(study, scores, reference_labels):
        estimands, without_mean, side_notes = pair_scores(*side)
        measures |= {estimand.measure: estimand.correct(confidence) for estimand in estimands}
        left_out += without_mean
        notes += side_notes
    others = (name for name in dict.fromkeys(left_out) if name not in measures)
    return Correction(reference_labels.word, measures, tuple(others), tuple(dict.fromkeys(notes)))


def _sides(
    study: PaperStudy, scores: Sequence[Score], reference_labels: ReferenceLabels
) -> Iterator[tuple[PaperStudy, Sequence[Score], ReferenceLabels, Weights]]:
    """Yield groups of scores to correct: (study, scores, reference labels, design weights).

    Usually there is one group without weights, which contains all parts of the paper. If the labelled units
    of a task were drawn with unequal probabilities, each task has its own group. Parts that use several tasks
    then form one more group, without weights.
    """
    request, parts = study.request, [p for p in study.paper.parts if study.part(p.name)]
    weighted = {
        task: task_weights
        for task in dict.fromkeys(p.tasks[0] for p in parts if len(p.tasks) == 1)
        if (task_weights := reference_labels.weights(study.load_task(task).spec.questions[0].field))
    }
    if not weighted or not any(score.value is mean for score in scores):
        yield study, scores, reference_labels, {}
        return
    groups: dict[str, list[Part]] = {}
    for part in parts:
        # The probability that a unit is labelled for both tasks differs from its probability for either task.
        groups.setdefault(part.tasks[0] if len(part.tasks) == 1 else "", []).append(part)
    for task, several in groups.items():
        only = replace(request, parts=tuple(p.name for p in several), partial=True)
        some = PaperStudy(study.store, study.paper, only, study.rows)
        yield some, study.paper.compute_scores(some), reference_labels, weighted.get(task, {})


def pair_scores(
    judge: PaperStudy, scores: Sequence[Score], reference_labels: ReferenceLabels, weights: Weights
) -> tuple[list[Estimand], list[str], list[str]]:
    """For each measure, pair the units' values from the judge's labels with their values from human labels.

    Only measures that are means over units and depend on labels are paired. Returns the pairs (as estimands),
    the measures that are not means over units, and notes. `weights` maps the labelled units to their design
    weights. Its keys are unit numbers or, if all units of a question have the same weight, questions.
    """
    # People label only a sample. Without `partial`, all other units would be recorded as missing.
    quiet = replace(judge.request, partial=True)
    people = judge.read_by_people(quiet, reference_labels)
    theirs = {score.measure: score for score in judge.paper.compute_scores(people)}
    # A value that does not depend on labels (a citation that can be looked up, an empty answer) has no error to correct.
    nobody = {score.measure: score for score in judge.paper.compute_scores(judge.read_by_people(quiet, None))}
    estimands, left_out, notes = [], [], list(people.notes)
    shut = ((_read_seen_questions(judge), FITTED), (_read_closed_questions(judge), SEALED))
    for score in scores:
        values = _align(score, theirs.get(score.measure))
        free = _align(score, nobody.get(score.measure))
        if values is None:
            left_out.append(score.measure)
            continue
        counted = _mask_counted(score, values)
        # A judge that was fitted on the labels of a question agrees with them too often, which would hide the judge's bias.
        for questions, reason in shut:
            out = counted & np.isin(score.units.questions, list(questions))[score.units.clusters]
            counted &= ~out
            text = f"{int(out.sum()):,} units are left out of the correction: {reason}"
            notes += [text] if out.any() and text not in notes else []
        judged = score.rows[counted, 0]
        known = np.zeros(len(judged), dtype=bool) if free is None else ~np.isnan(free[counted])
        # If no judged value depends on labels, the judge made no error to correct.
        if known.any() and known[~np.isnan(judged)].all():
            continue
        human = values[counted]
        has_labels = bool((~np.isnan(human) & ~known).any())
        # Labels that were left out are the reason only if no other labels remain.
        refused = "" if has_labels else "; ".join(people.refused)
        if not has_labels:
            # Otherwise the human estimate would be based only on values that need no label, such as empty answers.
            human = np.full(len(human), np.nan)
        if not refused and np.isnan(judged).all() and np.isnan(human).all():
            continue  # the measure already has a reason for the missing value
        own_weights, text = _weights(score, counted, ~np.isnan(human), known, weights)
        notes += [text] if text and text not in notes else []
        estimands.append(
            Estimand(
                score.measure,
                judged,
                human,
                score.units.clusters[counted],
                own_weights,
                score.binary,
                SHARE if score.binary else score.bounds,
                refused=refused,
            )
        )
    return estimands, left_out, notes


def _read_seen_questions(study: PaperStudy) -> set[str]:
    """Return the questions with labels on which any judge in this reading was fitted."""
    conn = study.store.conn
    every = (folds(conn, run_read.run.run_id).items() for run_read in study.judges.runs_read)
    # Cross-fitted questions have a fold: their labels come from a fit that excluded them.
    return {question for fold_of in every for question, fold in fold_of if fold is None}


def _read_closed_questions(study: PaperStudy) -> set[str]:
    """Return the questions in a sealed test that was not opened for at least one judge in this reading."""
    questions: set[str] = set()
    for run_read in study.judges.runs_read:
        home = splits.home(study.store, read_stored_task(study.store, run_read.run.task))
        questions |= splits.read_closed_questions(study.store, home, run_read.run.run_id)
    return questions


def _mask_counted(score: Score, human: FloatArray) -> BoolArray:
    """Return a mask of the units that the judge was asked about.

    Units for which the measure is undefined, such as an answer without citations, are excluded.
    """
    counted: BoolArray = np.ones(len(score.units), dtype=bool) if score.counted is None else score.counted
    judge = score.rows[:, 0]
    if score.status is None:
        return counted & ~(np.isnan(judge) & np.isnan(human))
    # A unit such as an answer without citations has no value on either side, so it does not belong to the measure.
    undefined = np.isnan(judge) & np.isnan(human) & (score.status == STATUSES.index(Status.OK))
    kept: BoolArray = counted & (score.status != STATUSES.index(NOT_JUDGED)) & ~undefined
    return kept


def _weights(
    score: Score, counted: BoolArray, labelled: BoolArray, known: BoolArray, weights: Weights
) -> tuple[FloatArray | None, str]:
    """Return the design weights of the units (None: all equal), and a note.

    The labelled units are weighted so that they also represent the units without labels. A unit whose value
    needs no label represents only itself.
    """
    design_weights = np.ones(len(labelled))
    note = ""
    if weights:
        ids = score.units.ids[counted]
        questions = score.units.questions[score.units.clusters[counted]]
        pairs = zip(ids, questions, strict=True)
        # A batch draws either units or whole questions, so weights are keyed by units or by questions.
        looked_up = np.array([weights.get(i, weights.get(q, np.nan)) for i, q in pairs], dtype=np.float64)
        if np.isnan(looked_up[labelled & ~known]).any():
            note = f"{score.measure} is computed without design weights, because some of its units have no weight or several weights"
        else:
            design_weights = looked_up
    sampled = labelled & ~known
    if known.any() and sampled.any():
        # The sample represents every unit whose value depends on labels, whether the judge labelled the unit or not.
        design_weights = np.where(
            known, 1.0, design_weights * float((~known).sum()) / float(design_weights[sampled].sum())
        )
    used = design_weights[labelled]
    # Weights are quotients, so nearly equal weights count as equal; equal weights change nothing.
    if not len(used) or np.ptp(used) <= 1e-9 * used.max():
        return None, note
    return design_weights, note


def _align(score: Score, other: Score | None) -> FloatArray | None:
    """Return the values of `other` in the order of the units of `score` (nan: no value).

    Return None if the scores cannot be aligned, for example because one of them is not a mean over units.
    """
    if other is None or score.value is not mean or other.value is not mean:
        return None
    single = score.rows.shape[1] == other.rows.shape[1] == 1
    if not single or not score.units.ids.is_unique or not other.units.ids.is_unique:
        return None
    theirs = pd.Series(other.rows[:, 0], index=other.units.ids)
    values: FloatArray = np.asarray(theirs.reindex(score.units.ids), dtype=np.float64)
    return values
