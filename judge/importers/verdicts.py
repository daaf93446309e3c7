"""Import outputs about one document at a time (RAGuard's oracle) as a run of `verdict_document`. The run's
model is the system.

An answer belongs to an item and a condition, so outputs for single passages are not answers. Their rows are
checked while the answers in the same file are imported, and they are stored in the same transaction.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from judge.errors import BadInput, UsageError
from judge.importers.base import Bad
from judge.importers.conditions import CONDITIONS, DOCUMENT, is_known, known
from judge.store.export import known_task
from judge.store.imports import at
from judge.store.listing import formats_of
from judge.store.rankings import Ids
from judge.store.runs import IMPORTED, add_imported
from judge.store.study import Store
from judge.types import Answered, AnswerRow, Judgement, Status

TASK = "verdict_document"


class Verdicts:
    """Separates outputs about one document from imported answers, and checks names of conditions.

    `paper` is the paper whose conditions apply. If it is None, the paper of the data set's format is used, if
    there is one.
    """

    def __init__(self, store: Store, dataset: str | None, paper: str | None) -> None:
        if paper is not None and paper not in CONDITIONS:
            raise UsageError(f"--paper {paper}: papers with named conditions are {', '.join(CONDITIONS)}")
        self._store, self._paper, self._given = store, paper, dataset
        self._ids: Ids | None = None
        self._task = known_task(store, TASK)
        self._field = self._task.spec.questions[0].field
        # The released files write a verdict as True and as TRUE.
        self._words = {label.lower(): label for label in self._task.domain(self._field)}
        there = [str(row[0]) for row in store.conn.execute("SELECT DISTINCT dataset FROM items")]
        self._dataset = dataset or (there[0] if len(there) == 1 else None)
        self.datasets: set[str] = set()
        self.counts: Counter[str] = Counter()
        self._of: dict[str, dict[str, Judgement]] = {}
        self._formats: dict[str, set[str]] = {}

    def apart(self, rows: Iterable[AnswerRow], bad: Bad) -> Iterator[AnswerRow]:
        """Yield the rows that are answers, and collect the others for `keep`. Bad rows are passed to `bad`."""
        for row in rows:
            try:
                is_about_document = self._take(row)
            except BadInput as error:
                bad(error if error.path else at(row.where, error.reason, error.field or "document"))
                continue
            if not is_about_document:
                yield row

    def _take(self, row: AnswerRow) -> bool:
        answer = row.answer
        if answer.document is None:
            dataset = self._dataset or answer.item.partition(":")[0]
            paper = self._paper or next(iter(self._papers(dataset)), None)
            if (
                # Human answers and inserted distractors are no conditions of a paper's protocol.
                paper is not None
                and answer.system != "human"
                and not answer.condition.startswith("distractor:")
            ):
                self._check(paper, answer.condition, row)
            return False
        self._ids = self._ids or Ids(self._store, self._given)
        item = self._ids.item(answer.item)
        self.datasets.add(item.partition(":")[0])
        unit = self._ids.passage(answer.document, item)
        judgements = self._of.setdefault(answer.system, {})
        word = self._words.get(answer.text.strip().lower())
        # Any other word is an output outside the options; the score decides how it counts.
        labels = (Answered(self._field, word),) if word else ()
        status = Status.OK if word else Status.UNPARSED
        reason = None if word else "outside the options"
        made = Judgement("", unit, 0, 0, status, answer.text, reason, labels)
        before = judgements.setdefault(unit, made)
        if before.reply != answer.text:
            raise at(
                row.where,
                f"a second output of '{answer.system}' for document '{answer.document}'; if there are several systems, "
                "name them in a column: "
                "system, model, or --system-column COLUMN",
                "document",
            )
        return True

    def _papers(self, dataset: str) -> list[str]:
        """Return the papers with named conditions that match this data set's formats."""
        if dataset not in self._formats:
            self._formats[dataset] = formats_of(self._store, dataset)
        return sorted(self._formats[dataset] & CONDITIONS.keys())

    @staticmethod
    def _check(paper: str, condition: str, row: AnswerRow) -> None:
        if CONDITIONS[paper].get(condition) == DOCUMENT and paper == "raguard":
            raise at(
                row.where,
                f"outputs under '{condition}' are about one document each; name the document in a column document",
                "document",
            )
        if not is_known(paper, condition):
            raise at(
                row.where,
                f"no condition '{condition}' in {paper}; available: {known(paper)}; "
                "if another column has the condition, pass --map condition=COLUMN",
                "condition",
            )

    def keep(self, conn: sqlite3.Connection, files: Mapping[str, str]) -> None:
        """Store a run for each system, inside the transaction of the answers. `counts` contains the number of
        new outputs.

        `files` are the imported files, with their hashes. Raises BadInput if the study has a different output
        for one of the documents.
        """
        # A run for each system, because a score names systems by the model of a run.
        for system, judgements in self._of.items():
            known = self._known(system, judgements)
            self.counts["unchanged"] += len(known)
            new = {unit: judgement for unit, judgement in judgements.items() if unit not in known}
            if not new:
                continue
            content = [(unit, judgement.reply) for unit, judgement in new.items()]
            add_imported(conn, self._task, system, list(new.values()), content, files)
            self.counts["verdicts"] += len(new)

    def _known(self, system: str, judgements: dict[str, Judgement]) -> set[str]:
        """Return the units whose output is already stored. Raises BadInput if a stored output differs."""
        query = (
            "SELECT j.unit_id, j.reply FROM judgements AS j JOIN runs AS r USING (run_id) WHERE r.model = ? AND r.task GLOB ? "
            f"AND json_extract(r.options, '$.{IMPORTED}') IS NOT NULL"
        )
        known = set()
        for unit, reply in self._store.conn.execute(query, [system, f"{TASK}.v*"]):
            if unit not in judgements:
                continue
            if judgements[unit].reply != reply:
                raise BadInput(
                    f"the study has a different output by '{system}' for '{unit}', and stored outputs are never replaced; give the system another name"
                )
            known.add(unit)
        return known
