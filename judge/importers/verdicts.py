"""Import a system's verdicts on single documents (RAGuard's oracle) as a run of `verdict_document`.

The run's model is the system. A verdict is not stored as an answer, because an answer belongs to an item and
a condition, not to a passage. The verdicts are checked while the answers in the same file are imported, and
are stored in the same transaction.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from judge.errors import BadInput, UsageError
from judge.free_text import read_alone
from judge.importers.base import Bad
from judge.importers.conditions import CONDITIONS, DOCUMENT, is_known, list_conditions
from judge.store.export import find_task
from judge.store.imports import error_at
from judge.store.listing import formats_of
from judge.store.rankings import Ids
from judge.store.runs import IMPORTED, add_imported
from judge.store.study import Store
from judge.types import Answered, AnswerRow, Judgement, Status

TASK = "verdict_document"


class Verdicts:
    """Separates the outputs about single documents in a file from the answers, and checks condition names.

    `paper` is the paper that defines the condition names. If it is None, the data set's format determines the
    paper. Names are not checked if the format does not belong to a paper.
    """

    def __init__(self, store: Store, dataset: str | None, paper: str | None) -> None:
        if paper is not None and paper not in CONDITIONS:
            raise UsageError(f"--paper {paper}: unknown paper; available papers: {', '.join(CONDITIONS)}")
        self._store, self._paper, self._given = store, paper, dataset
        self._ids: Ids | None = None
        self._task = find_task(store, TASK)
        self._field = self._task.spec.questions[0].field
        self._labels = self._task.domain(self._field)
        there = [str(row[0]) for row in store.conn.execute("SELECT DISTINCT dataset FROM items")]
        self._dataset = dataset or (there[0] if len(there) == 1 else None)
        self.datasets: set[str] = set()
        self.counts: Counter[str] = Counter()
        self._of: dict[str, dict[str, Judgement]] = {}
        self._formats: dict[str, set[str]] = {}

    def apart(self, rows: Iterable[AnswerRow], bad: Bad) -> Iterator[AnswerRow]:
        """Yield the rows with answers, and set aside the outputs about single documents for `keep`.

        Bad rows are passed to `bad`.
        """
        for row in rows:
            try:
                is_about_document = self._take(row)
            except BadInput as error:
                bad(error if error.path else error_at(row.where, error.reason, error.field or "document"))
                continue
            if not is_about_document:
                yield row

    def _take(self, row: AnswerRow) -> bool:
        answer = row.answer
        if answer.document is None:
            dataset = self._dataset or answer.item.partition(":")[0]
            paper = self._paper or next(iter(self._papers(dataset)), None)
            if (
                # Human answers and inserted distractors are not conditions in a paper's protocol.
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
        word = read_alone(answer.text, self._labels)
        # Any other output is outside the options, and the score determines how it counts.
        labels = (Answered(self._field, word),) if word else ()
        status = Status.OK if word else Status.UNPARSED
        reason = None if word else "outside the options"
        made = Judgement("", unit, 0, 0, status, answer.text, reason, labels)
        before = judgements.setdefault(unit, made)
        if before.reply != answer.text:
            raise error_at(
                row.where,
                f"there is already an output from '{answer.system}' for document '{answer.document}'; if "
                "there are several systems, name them in a column called system or model, or pass "
                "--system-column COLUMN",
                "document",
            )
        return True

    def _papers(self, dataset: str) -> list[str]:
        """Return the papers for this data set's formats, if they define condition names."""
        if dataset not in self._formats:
            self._formats[dataset] = formats_of(self._store, dataset)
        return sorted(self._formats[dataset] & CONDITIONS.keys())

    @staticmethod
    def _check(paper: str, condition: str, row: AnswerRow) -> None:
        if CONDITIONS[paper].get(condition) == DOCUMENT and paper == "raguard":
            raise error_at(
                row.where,
                f"each output under '{condition}' is about one document; add a column 'document' with its id",
                "document",
            )
        if not is_known(paper, condition):
            raise error_at(
                row.where,
                f"{paper} has no condition '{condition}'; available conditions: {list_conditions(paper)}; if another "
                "column has the condition, pass --map condition=COLUMN",
                "condition",
            )

    def keep(self, conn: sqlite3.Connection, files: Mapping[str, str]) -> None:
        """Store one run per system, inside the transaction of the answers. Add the number of new outputs to
        `counts`.

        `files` maps the imported files to their hashes. Raises BadInput if the study has a different output
        for one of the documents.
        """
        # Each system gets its own run, because scores identify a system by the run's model.
        for system, judgements in self._of.items():
            known = self._find_stored(system, judgements)
            self.counts["unchanged"] += len(known)
            new = {unit: judgement for unit, judgement in judgements.items() if unit not in known}
            if not new:
                continue
            content = [(unit, judgement.reply) for unit, judgement in new.items()]
            add_imported(conn, self._task, system, list(new.values()), content, files)
            self.counts["verdicts"] += len(new)

    def _find_stored(self, system: str, judgements: dict[str, Judgement]) -> set[str]:
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
                    f"the study has a different output from '{system}' for '{unit}', and stored outputs are never replaced; give the system another name"
                )
            known.add(unit)
        return known
