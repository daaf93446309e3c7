"""A paper's numbers corrected by people's labels: judge only, people only, and PPI++ from both.

The paper is read twice, once with the judge's labels and once with people's. Its measures that are means over units
are then put side by side, unit by unit (Angelopoulos, Duchi & Zrnic 2023, PPI++, arXiv 2311.01453).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from judge.errors import UsageError
from judge.prompts.load import Task
from judge.scores.score import NOT_JUDGED, Score, mean
from judge.stats import Corrected, corrected_mean
from judge.stats.ratings import FloatArray
from judge.store.study import Store
from judge.suites.frames import frame
from judge.suites.labelled import Found, UnitNumbers, majority
from judge.suites.paper import Asked, Paper
from judge.suites.study import Study
from judge.types import Json, Status

MAJORITY = "majority"


@dataclass(frozen=True, slots=True)
class Correction:
    """Measures that are means over units, three ways; `left_out` are measures that are none."""

    reference: str
    found: dict[str, Corrected]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """The documented shape; lambda is the weight of the judge."""
        return {
            "reference": self.reference,
            "measures": [
                {
                    "measure": name,
                    "judge_only": c.judge_only.as_json(),
                    "human_only": c.human_only.as_json(),
                    "ppi": c.ppi.as_json(),
                    "lambda": c.lam,
                }
                for name, c in self.found.items()
            ],
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }


def corrected(
    store: Store, paper: Paper, asked: Asked, scores: Sequence[Score], reference: str, confidence: float
) -> Correction:
    """The judge's `scores` beside those that the labels of `reference` give, and both together.

    `reference` is gold, adjudicated, majority (of the people) or the name of an annotator. Raises UsageError when the
    study has no labels of it.
    """
    check(store, reference)
    study = People(store, paper, replace(asked, partial=True), reference)
    theirs = {score.measure: score for score in paper.read(study)}
    found, left_out = {}, []
    for score in scores:
        other = theirs.get(score.measure)
        values = None if other is None else _aligned(score, other)
        if values is None:
            left_out.append(score.measure)
            continue
        asked_units = np.ones(len(score.units), dtype=bool) if score.counted is None else score.counted
        found[score.measure] = corrected_mean(
            score.rows[asked_units, 0],
            values[asked_units],
            clusters=score.units.clusters[asked_units],
            confidence=confidence,
        )
    return Correction(reference, found, tuple(left_out), tuple(study.notes))


def check(store: Store, reference: str) -> None:
    """Raises UsageError when nobody of this name has labelled anything."""
    query = (
        "SELECT a.annotator_id FROM annotators AS a WHERE a.kind <> 'judge' AND EXISTS "
        "(SELECT 1 FROM labels AS l WHERE l.annotator_id = a.annotator_id) ORDER BY a.kind = 'human', 1"
    )
    there = [str(row[0]) for row in store.conn.execute(query)]
    people = store.conn.execute(
        "SELECT 1 FROM annotators AS a JOIN labels AS l USING (annotator_id) WHERE a.kind = 'human' LIMIT 1"
    ).fetchone()
    known = [*([MAJORITY] if people else []), *there]
    if reference not in known:
        shown = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
        raise UsageError(
            f"--correct-by {reference}: no labels of such an annotator; there are: {shown or 'none'}"
        )


class People(Study):
    """The study with people's labels where the judge's stand. What the system under test answered stays."""

    def __init__(self, store: Store, paper: Paper, asked: Asked, reference: str) -> None:
        super().__init__(store, paper, asked)
        self.reference = reference

    def _labelled(
        self,
        task: Task,
        units: pd.DataFrame,
        where: str,
        field: str,
        models: Sequence[str],
        own: Mapping[str, str],
    ) -> Found:
        """People's labels. A part of an answer counts only when all parts of that answer are labelled."""
        labels, status, missing = of_people(self.store, self.reference, units["unit_id"].to_numpy(), field)
        if "answer_unit" in units:
            whole = ~pd.Series(missing).groupby(units["answer_unit"].to_numpy()).transform("any").to_numpy()
            partly = int((~whole & ~missing).sum())
            if partly:
                # One bad sentence settles an answer, a good one does not: answers known in part would be the bad ones.
                self.note(
                    f"{partly} labels of {self.reference} on {task.task_id} are left out: not all parts of those answers are labelled"
                )
            labels[~whole], status[~whole] = None, NOT_JUDGED
            missing = missing | ~whole
        return labels, status, missing


def of_people(store: Store, reference: str, units: UnitNumbers, field: str) -> Found:
    """First labels of a field on these units: of one annotator, or what most people say; a tie is no label."""
    query = """
        SELECT u.rowid, l.annotator_id, l.value FROM labels AS l JOIN units AS u USING (unit_id)
        JOIN annotators AS a USING (annotator_id)
        WHERE l.field = ?1 AND l.layer = 'first' AND l.repeat = 0
          AND (a.annotator_id = ?2 OR (?2 = ?3 AND a.kind = 'human'))
    """
    rows = frame(store.conn, query, [field, reference, MAJORITY], "n annotator label")
    rows = rows[rows["n"].isin(units)]
    each = []
    for _, own in rows.groupby("annotator", sort=True):
        found = own.set_index("n")["label"].reindex(units)
        each.append(found.astype(object).where(found.notna(), None).to_numpy(dtype=object, copy=True))
    none = np.full(len(units), None, dtype=object)
    given = np.isin(units, rows["n"].to_numpy())
    status = np.where(given, str(Status.OK), NOT_JUDGED).astype(object)
    if len(each) <= 1:
        return (each[0] if each else none), status, ~given
    labels, status, _ = majority([(own, status, ~given) for own in each])
    return labels, status, ~given


def _aligned(score: Score, other: Score) -> FloatArray | None:
    """The other's value of each unit of a score, nan where it has none; None when the score is no mean over units."""
    single = score.value is mean and other.value is mean and score.rows.shape[1] == other.rows.shape[1] == 1
    if not single or not score.units.ids.is_unique or not other.units.ids.is_unique:
        return None
    theirs = pd.Series(other.rows[:, 0], index=other.units.ids)
    values: FloatArray = np.asarray(theirs.reindex(score.units.ids), dtype=np.float64)
    return values
