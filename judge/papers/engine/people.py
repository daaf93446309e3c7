"""Read human labels instead of the judge's labels, so that a paper's measures can be computed from them."""

import numpy as np
import pandas as pd

from judge.commands import command
from judge.labels.reference import ReferenceLabels
from judge.papers.engine.chosen import Run
from judge.papers.engine.reading import Reading
from judge.papers.engine.run_labels import LabelsWanted, RunLabels, UnitLabels
from judge.scores.score import NOT_JUDGED
from judge.store import Store
from judge.types import Status


class PeopleLabels:
    """Returns reference labels instead of the judge's labels. Outputs of the system under test are read as usual."""

    def __init__(
        self,
        reference_labels: ReferenceLabels | None,
        judges: RunLabels,
        reading: Reading,
        *,
        same_rows: bool = False,
    ) -> None:
        """Prepare to read these reference labels (None: no labels).

        `judges` reads the judge's labels for the same rows. `same_rows` is True if the caller compares both
        kinds of labels only on fully labelled answers. Short answers are more often fully labelled, but this
        does not bias such a comparison.
        """
        self.reference, self.judges, self.reading, self.same_rows = (
            reference_labels,
            judges,
            reading,
            same_rows,
        )
        self._task_read = ""
        self.refused: list[str] = []
        """The reasons why labels were left out: if only some answers or lists are fully labelled, these are
        mostly short, which would bias scores.
        """

    @property
    def last_run(self) -> Run | None:
        """The judge's run of the same task.

        Its relevant passages are used with the judge's labels and with human labels.
        """
        runs = [run_read.run for run_read in self.judges.runs_read if run_read.run.task_id == self._task_read]
        return runs[-1] if runs else None

    def read_labels(self, wanted: LabelsWanted) -> UnitLabels:
        """Return the human labels of the requested units.

        If units belong to a group (the parts of an answer, or the passages in a list), their labels are used
        only if the whole group is labelled. If fully labelled groups are likely to be unusually short, no
        labels are used, and the reason is added to `refused`.
        """
        self._task_read = wanted.task.task_id
        numbers = wanted.numbers
        none = np.full(len(numbers), None, dtype=object), np.full(len(numbers), NOT_JUDGED, dtype=object)
        # The reading without labels finds the measures that need no labels.
        if self.reference is None:
            return *none, np.ones(len(numbers), dtype=bool)
        name, given = self.reference.word, self.reference.read_by_number(wanted.field, wanted.task.name)
        labels, status = none
        labels[:] = [given.get(n) for n in numbers.tolist()]
        missing = np.array([label is None for label in labels], dtype=bool)
        status[~missing] = str(Status.OK)
        if wanted.together in wanted.units:
            groups = pd.Series(missing).groupby(wanted.units[wanted.together].to_numpy())
            whole = ~groups.transform("any").to_numpy()
            partly = int((~whole & ~missing).sum())
            # In questions that were drawn as a whole, few parts are missing, regardless of the length of answers.
            lacking = set(numbers[missing & ~groups.transform("all").to_numpy()].tolist())
            wholes = "answers" if wanted.together == "answer_unit" else "lists"
            # If all answers have the same number of parts, fully labelled answers are not shorter than the others.
            unequal = groups.size().nunique() > 1 and not self.same_rows
            if unequal and lacking - self._read_whole_draws(self.reference.store):
                # The more parts an answer has, the less likely it is that all are drawn, so short answers are overrepresented.
                self.refused.append(
                    f"{partly} labels by {name} on {wanted.task.task_id} belong to {wholes} that are only partly labelled. Fully "
                    f"labelled {wholes} tend to be short, which would bias the scores. Draw whole questions instead: "
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
                # One bad sentence makes an answer bad, but one good sentence does not make it good. Scores of partly labelled
                # answers would therefore be biased downwards.
                self.reading.note(
                    f"{partly} labels by {name} on {wanted.task.task_id} are left out, because the {wholes} that they belong to are "
                    "only partly labelled"
                )
            labels[~whole], status[~whole] = None, NOT_JUDGED
            missing = missing | ~whole
        return labels, status, missing

    def _read_whole_draws(self, store: Store) -> set[int]:
        """Return the numbers of the units that were drawn in samples of whole questions."""
        query = """
            SELECT u.rowid FROM batch_units AS d JOIN batches AS b USING (batch) JOIN units AS u USING (unit_id)
            WHERE d.role = 'sample' AND json_extract(b.options, '$.by_question') IS NOT NULL
            AND json_extract(b.options, '$.n') IS NULL
        """
        return {n for (n,) in store.conn.execute(query)}
