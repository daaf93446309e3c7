"""Correct a paper's measures with human labels: from the judge only, from people only, and from both (PPI++).

The paper is read three times: with the judge's labels, with human labels, and without labels. The measures that are
means over units are then paired unit by unit (Angelopoulos, Duchi & Zrnic 2023, PPI++, arXiv 2311.01453). Values that
are known without any label (a citation that can be looked up, an empty answer) need no correction.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from judge.labels.reference import ReferenceLabels
from judge.scores.score import NOT_JUDGED, SHARE, STATUSES, Score, mean
from judge.stats import Corrected, Estimand
from judge.stats.ratings import BoolArray, FloatArray
from judge.store import splits
from judge.store.derived import folds
from judge.store.export import stored_task
from judge.suites.paper import Part
from judge.suites.paper_study import PaperStudy
from judge.types import Json, Status

Weights = Mapping[int | str, float]


@dataclass(frozen=True, slots=True)
class Sides:
    """The measures of two readings of a paper as estimands; `left_out` lists measures that are not means over units."""

    estimands: Sequence[Estimand]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Correction:
    """Measures that are means over units, computed in three ways; `left_out` lists the measures that are not."""

    reference: str
    measures: dict[str, Corrected]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """The documented shape; lambda is the weight of the judge."""
        return {
            "reference": self.reference,
            "measures": [{"measure": name, **c.as_json()} for name, c in self.measures.items()],
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }


FITTED = "the judge was fitted on labels of their questions"
SEALED = "they are in a sealed test, which was not opened for this judge"


def corrected(
    study: PaperStudy, scores: Sequence[Score], reference_labels: ReferenceLabels, confidence: float
) -> Correction:
    """Return the judge's `scores`, the scores from the reference labels, and both combined."""
    each = [beside(*side) for side in _sides(study, scores, reference_labels)]
    measures = {
        estimand.measure: estimand.corrected(confidence) for sides in each for estimand in sides.estimands
    }
    left_out = dict.fromkeys(name for sides in each for name in sides.left_out if name not in measures)
    notes = dict.fromkeys(note for sides in each for note in sides.notes)
    return Correction(reference_labels.word, measures, tuple(left_out), tuple(notes))


def _sides(
    study: PaperStudy, scores: Sequence[Score], reference_labels: ReferenceLabels
) -> Iterator[tuple[PaperStudy, Sequence[Score], ReferenceLabels, Weights]]:
    """Yield the whole reading, or its parts by task if the units labelled for a task were drawn with unequal probabilities.

    A part that rests on labels of two tasks has no weights.
    """
    request, parts = study.request, [p for p in study.paper.parts if study.part(p.name)]
    weighted = {
        task: task_weights
        for task in dict.fromkeys(p.tasks[0] for p in parts if len(p.tasks) == 1)
        if (task_weights := reference_labels.weights(study.loaded(task).spec.questions[0].field))
    }
    if not weighted or not any(score.value is mean for score in scores):
        yield study, scores, reference_labels, {}
        return
    groups: dict[str, list[Part]] = {}
    for part in parts:
        # The probability of a unit to be labelled for two tasks is not that of either task.
        groups.setdefault(part.tasks[0] if len(part.tasks) == 1 else "", []).append(part)
    for task, several in groups.items():
        only = replace(request, parts=tuple(p.name for p in several), partial=True)
        some = PaperStudy(study.store, study.paper, only, study.rows)
        yield some, study.paper.compute_scores(some), reference_labels, weighted.get(task, {})


def beside(
    judge: PaperStudy, scores: Sequence[Score], reference_labels: ReferenceLabels, weights: Weights
) -> Sides:
    """Pair the judge's `scores` with the scores from human labels, for all measures that are means and rest on labels.

    `weights`: the design weight of a labelled unit, keyed by the unit's number, or of all units of a question, keyed by
    its name.
    """
    # People label a sample. Without `partial`, every other unit would be a missing step.
    quiet = replace(judge.request, partial=True)
    people = judge.by_people(quiet, reference_labels)
    theirs = {score.measure: score for score in judge.paper.compute_scores(people)}
    # What needs no label at all (a citation that can be looked up, an empty answer) has no error to correct.
    nobody = {score.measure: score for score in judge.paper.compute_scores(judge.by_people(quiet, None))}
    estimands, left_out, notes = [], [], list(people.notes)
    shut = ((_seen(judge), FITTED), (_closed(judge), SEALED))
    for score in scores:
        values = _aligned(score, theirs.get(score.measure))
        free = _aligned(score, nobody.get(score.measure))
        if values is None:
            left_out.append(score.measure)
            continue
        counted = _counted(score, values)
        # A judge that was fitted on a question agrees with its labels too often, which would hide its bias.
        for questions, why in shut:
            out = counted & np.isin(score.units.questions, list(questions))[score.units.clusters]
            counted &= ~out
            text = f"{int(out.sum()):,} units are left out of the correction: {why}"
            notes += [text] if out.any() and text not in notes else []
        judged = score.rows[counted, 0]
        known = np.zeros(len(judged), dtype=bool) if free is None else ~np.isnan(free[counted])
        # Where every judged value is known without labels, the judge made no error to correct.
        if known.any() and known[~np.isnan(judged)].all():
            continue
        human = values[counted]
        has_labels = bool((~np.isnan(human) & ~known).any())
        # A refusal is the reason only where it left no label at all.
        refused = "" if has_labels else "; ".join(people.refused)
        if not has_labels:
            # Otherwise people's number would rest on the values that need no label, such as empty answers.
            human = np.full(len(human), np.nan)
        if not refused and np.isnan(judged).all() and np.isnan(human).all():
            continue  # the paper itself says why
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
    return Sides(estimands, tuple(left_out), tuple(notes))


def _seen(study: PaperStudy) -> set[str]:
    """Return the questions with labels that a judge of this reading was fitted on."""
    conn = study.store.conn
    every = (folds(conn, run_read.run.run_id).items() for run_read in study.judges.runs_read)
    # A question with a fold was labelled by a fit without it (cross-fitting).
    return {question for fold_of in every for question, fold in fold_of if fold is None}


def _closed(study: PaperStudy) -> set[str]:
    """Return the questions of a sealed test that was not opened for every judge of this reading."""
    questions: set[str] = set()
    for run_read in study.judges.runs_read:
        home = splits.home(study.store, stored_task(study.store, run_read.run.task))
        questions |= splits.closed_questions(study.store, home, run_read.run.run_id)
    return questions


def _counted(score: Score, human: FloatArray) -> BoolArray:
    """Return a mask of the units that the judge was asked about, excluding units whose labels define no value."""
    counted: BoolArray = np.ones(len(score.units), dtype=bool) if score.counted is None else score.counted
    judge = score.rows[:, 0]
    if score.status is None:
        return counted & ~(np.isnan(judge) & np.isnan(human))
    # Neither side can have a value here (an answer without citations): it is no unit of the measure.
    undefined = np.isnan(judge) & np.isnan(human) & (score.status == STATUSES.index(Status.OK))
    kept: BoolArray = counted & (score.status != STATUSES.index(NOT_JUDGED)) & ~undefined
    return kept


def _weights(
    score: Score, counted: BoolArray, labelled: BoolArray, known: BoolArray, weights: Weights
) -> tuple[FloatArray | None, str]:
    """Return the design weight of each labelled unit (None: all equal), and a note.

    A unit whose value is known without labels represents only itself; the others represent the units whose value is not.
    """
    design_weights = np.ones(len(labelled))
    note = ""
    if weights:
        ids = score.units.ids[counted]
        questions = score.units.questions[score.units.clusters[counted]]
        pairs = zip(ids, questions, strict=True)
        # A batch draws units or whole questions, so a weight is of either.
        looked_up = np.array([weights.get(i, weights.get(q, np.nan)) for i, q in pairs], dtype=np.float64)
        if np.isnan(looked_up[labelled & ~known]).any():
            note = f"{score.measure} is not weighted, because some of its units have no weight or several weights"
        else:
            design_weights = looked_up
    sampled = labelled & ~known
    if known.any() and sampled.any():
        # Judged or not, a unit that takes labels is one that the sample stands for.
        design_weights = np.where(
            known, 1.0, design_weights * float((~known).sum()) / float(design_weights[sampled].sum())
        )
    used = design_weights[labelled]
    # Weights come out of divisions: nearly equal ones are equal, and change nothing.
    if not len(used) or np.ptp(used) <= 1e-9 * used.max():
        return None, note
    return design_weights, note


def _aligned(score: Score, other: Score | None) -> FloatArray | None:
    """Return the other score's value of each unit (nan: no value); None if one of the two scores is not a mean over units."""
    if other is None or score.value is not mean or other.value is not mean:
        return None
    single = score.rows.shape[1] == other.rows.shape[1] == 1
    if not single or not score.units.ids.is_unique or not other.units.ids.is_unique:
        return None
    theirs = pd.Series(other.rows[:, 0], index=other.units.ids)
    values: FloatArray = np.asarray(theirs.reindex(score.units.ids), dtype=np.float64)
    return values
