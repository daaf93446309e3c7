"""A study with people's labels where the judge's stand: a paper that reads it gives people's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from judge.labels.held import Held
from judge.prompts.load import Task
from judge.scores.score import NOT_JUDGED
from judge.suites.chosen import Run
from judge.suites.labelled import Found
from judge.suites.paper import Asked
from judge.suites.paper_study import PaperStudy
from judge.types import Status


class PeopleRows(PaperStudy):
    """The study with people's labels where the judge's stand. What the system under test answered stays."""

    of_people = True

    def __init__(self, judge: PaperStudy, asked: Asked, held: Held | None) -> None:
        """`judge` is the reading with the judge's labels, of the same rows; `held` None: nobody's labels."""
        super().__init__(judge.store, judge.paper, asked)
        self.share(judge)
        self.held = held
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
        none = np.full(len(numbers), None, dtype=object), np.full(len(numbers), NOT_JUDGED, dtype=object)
        if self.held is None:
            return *none, np.ones(len(numbers), dtype=bool)
        name, given = self.held.word, self.held.by_number(field, task.name)
        labels, status = none
        labels[:] = [given.get(n) for n in numbers.tolist()]
        missing = np.array([label is None for label in labels], dtype=bool)
        status[~missing] = str(Status.OK)
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
