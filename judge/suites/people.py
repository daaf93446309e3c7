"""A study with people's labels where the judge's stand: a paper that reads it gives people's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from judge.errors import UsageError
from judge.prompts.load import Task
from judge.scores.score import NOT_JUDGED
from judge.store.study import Store
from judge.suites.chosen import Run
from judge.suites.frames import frame
from judge.suites.labelled import Found, UnitNumbers, majority
from judge.suites.paper import Asked
from judge.suites.study import Study
from judge.types import Status

MAJORITY = "majority"
NOBODY = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """Whose labels correct the judge's: gold, adjudicated, majority (of the people) or the name of an annotator.

    `given`: field -> labels by the unit's number, known before; labels of other fields are read from the study. `weights`:
    for how many units a labelled unit stands, by its number, or the units of a question, by its name.
    """

    name: str
    given: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    weights: Mapping[int | str, float] | None = None


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

    def __init__(self, judge: Study, asked: Asked, reference: Reference) -> None:
        """`judge` is the reading with the judge's labels, of the same rows."""
        super().__init__(judge.store, judge.paper, asked)
        self.share(judge)
        self.reference = reference
        self._judge = judge
        self._task_read = ""

    @property
    def last_run(self) -> Run | None:
        """The run that the judge's labels came from: it decides what else is read, as which passages are relevant."""
        runs = [read.run for read in self._judge.read if read.run.task_id == self._task_read]
        return runs[-1] if runs else None

    def _labelled(
        self,
        task: Task,
        units: pd.DataFrame,
        where: str,
        field: str,
        models: Sequence[str],
        own: Mapping[str, str],
        together: str,
    ) -> Found:
        """People's labels. Parts of an answer, or passages of a list, count only when all of them are labelled."""
        self._task_read = task.task_id
        numbers = units["unit_id"].to_numpy()
        name = self.reference.name
        if name == NOBODY:
            return _nothing(numbers)
        given = self.reference.given.get(field)
        found = of_people(self.store, name, numbers, field) if given is None else self._given(numbers, given)
        labels, status, missing = found
        if together in units:
            groups = units[together].to_numpy()
            whole = ~pd.Series(missing).groupby(groups).transform("any").to_numpy()
            partly = int((~whole & ~missing).sum())
            if partly:
                # One bad sentence settles an answer, a good one does not: answers known in part would be the bad ones.
                what = "those answers" if together == "answer_unit" else "those lists"
                self.note(
                    f"{partly} labels of {name} on {task.task_id} are left out: not all parts of {what} are labelled"
                )
            labels[~whole], status[~whole] = None, NOT_JUDGED
            missing = missing | ~whole
        return labels, status, missing

    def _given(self, units: UnitNumbers, labels: Mapping[int, str]) -> Found:
        found = np.array([labels.get(n) for n in units.tolist()], dtype=object)
        missing = np.array([label is None for label in found], dtype=bool)
        return found, np.where(missing, NOT_JUDGED, str(Status.OK)).astype(object), missing


def _nothing(units: UnitNumbers) -> Found:
    n = len(units)
    return np.full(n, None, dtype=object), np.full(n, NOT_JUDGED, dtype=object), np.ones(n, dtype=bool)


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
