"""People's labels where the judge's stand: a paper that reads them gives people's numbers."""

import numpy as np
import pandas as pd

from judge.commands import command
from judge.labels.reference import ReferenceLabels
from judge.scores.score import NOT_JUDGED
from judge.store import Store
from judge.suites.chosen import Run
from judge.suites.labelled import Found
from judge.suites.reading import Reading
from judge.suites.run_labels import LabelsWanted, RunLabels
from judge.types import Status


class PeopleLabels:
    """Labels of a reference in the judge's place. What the system under test answered is read as ever."""

    def __init__(self, held: ReferenceLabels | None, judges: RunLabels, reading: Reading) -> None:
        """`held` None: nobody's labels; `judges` are those of the reading with the judge's labels, of the same rows."""
        self.held, self.judges, self.reading = held, judges, reading
        self._task_read = ""
        self.refused: list[str] = []
        """Why labels were left out that would have given numbers of short answers, or of short lists, alone."""

    @property
    def last_run(self) -> Run | None:
        """The run that the judge's labels came from: it decides what else is read, as which passages are relevant."""
        runs = [read.run for read in self.judges.read if read.run.task_id == self._task_read]
        return runs[-1] if runs else None

    def of(self, wanted: LabelsWanted) -> Found:
        """People's labels. Parts of an answer, or passages of a list, count only when all of them are labelled."""
        self._task_read = wanted.task.task_id
        numbers = wanted.numbers
        none = np.full(len(numbers), None, dtype=object), np.full(len(numbers), NOT_JUDGED, dtype=object)
        if self.held is None:
            return *none, np.ones(len(numbers), dtype=bool)
        name, given = self.held.word, self.held.by_number(wanted.field, wanted.task.name)
        labels, status = none
        labels[:] = [given.get(n) for n in numbers.tolist()]
        missing = np.array([label is None for label in labels], dtype=bool)
        status[~missing] = str(Status.OK)
        if wanted.together in wanted.units:
            groups = pd.Series(missing).groupby(wanted.units[wanted.together].to_numpy())
            whole = ~groups.transform("any").to_numpy()
            partly = int((~whole & ~missing).sum())
            # Parts of drawn questions that have no label yet, or were skipped, are few, and do not go by length.
            lacking = set(numbers[missing & ~groups.transform("all").to_numpy()].tolist())
            what = "answers" if wanted.together == "answer_unit" else "lists"
            if groups.size().nunique() > 1 and lacking - self._drawn_whole(self.held.store):
                # The more parts, the more rarely all of them are drawn: what is labelled as a whole is short.
                self.refused.append(
                    f"{partly} labels of {name} on {wanted.task.task_id} are of {what} that are labelled in part, and {what} that "
                    f"are labelled as a whole are the short ones: draw whole questions: "
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
                # One bad sentence settles an answer, a good one does not: answers known in part would be the bad ones.
                self.reading.note(
                    f"{partly} labels of {name} on {wanted.task.task_id} are left out: not all parts of those {what} are labelled"
                )
            labels[~whole], status[~whole] = None, NOT_JUDGED
            missing = missing | ~whole
        return labels, status, missing

    def _drawn_whole(self, store: Store) -> set[int]:
        """The units, by number, of the questions that batches drew as a whole."""
        query = """
            SELECT u.rowid FROM batch_units AS d JOIN batches AS b USING (batch) JOIN units AS u USING (unit_id)
            WHERE d.role = 'sample' AND json_extract(b.options, '$.by_question') IS NOT NULL
            AND json_extract(b.options, '$.n') IS NULL
        """
        return {n for (n,) in store.conn.execute(query)}
