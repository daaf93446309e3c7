"""Read human labels in place of the judge's, so that a paper computes its measures from them."""

import numpy as np
import pandas as pd

from judge.commands import command
from judge.labels.reference import ReferenceLabels
from judge.scores.score import NOT_JUDGED
from judge.store import Store
from judge.suites.chosen import Run
from judge.suites.labelled import UnitLabels
from judge.suites.reading import Reading
from judge.suites.run_labels import LabelsWanted, RunLabels
from judge.types import Status


class PeopleLabels:
    """Reference labels in place of the judge's labels. The outputs of the system under test are read as usual."""

    def __init__(
        self,
        reference_labels: ReferenceLabels | None,
        judges: RunLabels,
        reading: Reading,
        *,
        same_rows: bool = False,
    ) -> None:
        """`reference_labels` None: no labels. `judges` belongs to the reading of the same rows with the judge's labels.

        `same_rows`: the caller compares both readings only on the fully labelled answers, so short ones cause no bias.
        """
        self.reference, self.judges, self.reading, self.same_rows = (
            reference_labels,
            judges,
            reading,
            same_rows,
        )
        self._task_read = ""
        self.refused: list[str] = []
        """Why labels were left out: they would have covered only short answers or short lists."""

    @property
    def last_run(self) -> Run | None:
        """The run with the judge's labels. It decides which passages are relevant, so that both sides use the same ones."""
        runs = [run_read.run for run_read in self.judges.runs_read if run_read.run.task_id == self._task_read]
        return runs[-1] if runs else None

    def of(self, wanted: LabelsWanted) -> UnitLabels:
        """Return human labels. Parts of an answer, or passages of a list, count only if all of them are labelled."""
        self._task_read = wanted.task.task_id
        numbers = wanted.numbers
        none = np.full(len(numbers), None, dtype=object), np.full(len(numbers), NOT_JUDGED, dtype=object)
        # The reading with nobody's labels finds the measures that need none.
        if self.reference is None:
            return *none, np.ones(len(numbers), dtype=bool)
        name, given = self.reference.word, self.reference.by_number(wanted.field, wanted.task.name)
        labels, status = none
        labels[:] = [given.get(n) for n in numbers.tolist()]
        missing = np.array([label is None for label in labels], dtype=bool)
        status[~missing] = str(Status.OK)
        if wanted.together in wanted.units:
            groups = pd.Series(missing).groupby(wanted.units[wanted.together].to_numpy())
            whole = ~groups.transform("any").to_numpy()
            partly = int((~whole & ~missing).sum())
            # Missing parts of questions that were drawn as a whole are few, and do not depend on length.
            lacking = set(numbers[missing & ~groups.transform("all").to_numpy()].tolist())
            wholes = "answers" if wanted.together == "answer_unit" else "lists"
            # Where all answers have equally many parts, a whole one is no shorter than the others.
            unequal = groups.size().nunique() > 1 and not self.same_rows
            if unequal and lacking - self._drawn_whole(self.reference.store):
                # The more parts an answer has, the more rarely all are drawn: fully labelled answers are the short ones.
                self.refused.append(
                    f"{partly} labels of {name} on {wanted.task.task_id} belong to {wholes} that are only partly labelled; the fully labelled "
                    f"{wholes} are the short ones, which would bias the scores: draw whole questions: "
                    + command(
                        "annotate batches new NAME",
                        wanted.task.task_id,
                        "--by-question",
                        "N",
                        "--annotators",
                        "A,B",
                    )
                )
                labels[:], status[:], missing[:] = None, NOT_JUDGED, True
                return labels, status, missing
            if partly:
                # One bad sentence decides an answer, a good one does not: partly labelled answers would count as bad.
                self.reading.note(
                    f"{partly} labels of {name} on {wanted.task.task_id} are left out, because not all parts of those {wholes} are labelled"
                )
            labels[~whole], status[~whole] = None, NOT_JUDGED
            missing = missing | ~whole
        return labels, status, missing

    def _drawn_whole(self, store: Store) -> set[int]:
        """Return the numbers of units that a batch sampled as part of a whole question."""
        query = """
            SELECT u.rowid FROM batch_units AS d JOIN batches AS b USING (batch) JOIN units AS u USING (unit_id)
            WHERE d.role = 'sample' AND json_extract(b.options, '$.by_question') IS NOT NULL
            AND json_extract(b.options, '$.n') IS NULL
        """
        return {n for (n,) in store.conn.execute(query)}
