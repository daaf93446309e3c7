"""Store nuggets and their assignments (TREC RAG).

A nugget is a fact that a good answer to an item contains. An assignment says whether an answer supports a
nugget. Each pair of a nugget and an answer to its item is a unit of the kind `nugget`. This kind is separate
from `claim`, so that tasks and scores on the claims of answers exclude nuggets.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.store.export import find_task
from judge.store.imports import Adder, check_storable, error_at
from judge.store.rankings import Ids
from judge.store.runs import add_imported
from judge.store.study import Store
from judge.types import GOLD, AnnotatorKind, Answered, Judgement, Status, Vote, Where

TASK = "nugget_assignment"
IMPORTANCE = ("vital", "okay")
FAILED = "failed"
"""The value that the package `nuggetizer` writes if its model did not return an assignment."""
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class NuggetRow:
    """A nugget of an item and, optionally, its assignment.

    The assignment says whether the answer from `system` supports the nugget. `answer` is the text of this
    answer, or None if the text is unknown.
    """

    item: str
    text: str
    importance: str
    where: Where
    system: str | None = None
    assignment: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Assigner:
    """Who made the assignments.

    At most one of `judge` (its model) and `annotator` is set. If there are no assignments, neither is set.
    """

    judge: str | None = None
    annotator: str | None = None
    condition: str | None = None
    """The condition under which the answers were given, if a system has several conditions."""


class NuggetAdder(Adder[NuggetRow]):
    """Adds nuggets, and collects their assignments. `keep` stores the assignments."""

    adds = ("nuggets", "labels")

    def __init__(
        self, store: Store, dataset: str | None, assigner: Assigner, files: Mapping[str, str]
    ) -> None:
        """Start adding nuggets. `files` maps the path of each imported file to its sha256.

        If there is a judge, these files are stored as the origin of its run.
        """
        super().__init__(store.conn)
        self._files = files
        self._ids, self._assigner = Ids(store, dataset), assigner
        self._task = find_task(store, TASK)
        self._assigned: dict[str, tuple[str, Where]] = {}

    def add(self, row: NuggetRow) -> None:
        """Add one nugget. The whole row is checked before it is written."""
        check_storable(row, row.where)
        try:
            item = self._ids.item(row.item)
        except BadInput as error:
            raise error_at(row.where, error.reason, "id") from None
        if row.importance not in IMPORTANCE:
            raise error_at(row.where, f"'{row.importance}' must be vital or okay", "importance")
        query = "SELECT n, importance FROM nuggets WHERE item_id = ? AND text = ?"
        number, importance = self.conn.execute(query, [item, row.text]).fetchone() or (None, None)
        if importance not in (None, row.importance):
            problem = f"this nugget of '{row.item}' is {importance} in the study, but {row.importance} here"
            raise error_at(row.where, problem, "importance")
        if number is None:
            number = self._next(item, row)
        assigned = self._assignment(item, number, row)
        if importance is None:
            self.conn.execute(
                "INSERT INTO nuggets VALUES (?, ?, ?, ?, ?)",
                [item, number, row.text, row.importance, self.import_id],
            )
            self.counts["nuggets"] += 1
        elif assigned is None:
            self.counts["unchanged"] += 1
        # The assignments are kept until all rows are read, because a judge's assignments become one run,
        # whose identity is a hash of all of them.
        if assigned is not None:
            self._assigned[assigned] = (str(row.assignment), row.where)
        self.datasets.add(item.partition(":")[0])

    def _next(self, item: str, row: NuggetRow) -> int:
        """Return the number for a new nugget of the item.

        Raises BadInput if the item has nuggets from another import.
        """
        query = "SELECT count(*), count(nullif(import_id, ?)) FROM nuggets WHERE item_id = ?"
        count, from_others = self.conn.execute(query, [self.import_id, item]).fetchone()
        if from_others:
            # If an item had nuggets from two imports, they would be scored as one set, although nobody has
            # created this set.
            problem = f"'{row.item}' already has nuggets in the study, to which no further nuggets can be added; import the nuggets into another study"
            raise error_at(row.where, problem, "nugget")
        return int(count)

    def _assignment(self, item: str, number: int, row: NuggetRow) -> str | None:
        """Return the unit that the row's assignment belongs to.

        Return None if there is no assignment. Also return None if the answer is empty, because an empty
        answer scores 0.
        """
        if row.assignment is None:
            return None
        labels = self._task.domain(self._task.spec.questions[0].field)
        if row.assignment not in (*labels, FAILED):
            problem = f"'{row.assignment}' must be one of {', '.join(labels)}"
            raise error_at(row.where, problem, "assignment")
        if row.system is None:
            raise error_at(
                row.where, "the assignment does not name the system that gave the answer", "system"
            )
        if not (self._assigner.judge or self._assigner.annotator):
            raise UsageError(
                f"{row.where.path} has assignments; pass --judge MODEL or --annotator PERSON to say who made them"
            )
        answer_id, text = self._answer(item, row)
        # The texts are compared word by word, because differences in white space do not matter.
        if row.answer is not None and row.answer.split() != text.split():
            problem = f"this assignment is for a text that differs from the stored answer from '{row.system}'"
            raise error_at(row.where, problem, "answer_text")
        if not text.strip(_BLANK):
            return None
        unit = f"{answer_id}#n{number}"
        before, where = self._assigned.get(unit, (row.assignment, row.where))
        if before != row.assignment:
            problem = (
                f"this nugget already has an assignment for '{row.system}': {before} on line {where.line}"
            )
            raise error_at(row.where, problem, "assignment")
        return unit

    def _answer(self, item: str, row: NuggetRow) -> tuple[str, str]:
        """Return (answer id, text) for the row's answer.

        Return ("", "") if the study has no such answer, and the answer in the row is blank. In all other
        cases, raises BadInput unless the system has exactly one answer to the item.
        """
        query = "SELECT answer_id, text FROM answers WHERE item_id = ? AND system = ? AND condition = coalesce(?, condition)"
        answers = self.conn.execute(query, [item, row.system, self._assigner.condition]).fetchall()
        if not answers and row.answer is not None and not row.answer.strip():
            # For a missing answer, `nuggetizer` writes a record in which no nugget is supported.
            return "", ""
        if not answers:
            first = command("judge systems import", "ANSWERS")
            raise error_at(
                row.where,
                f"'{row.system}' has no answer to '{row.item}'; import answers first: {first}",
                "system",
            )
        if len(answers) > 1:
            raise error_at(
                row.where,
                f"'{row.system}' has several answers to '{row.item}'; choose one with --condition",
                "system",
            )
        return answers[0][0], answers[0][1]

    def keep(self, conn: sqlite3.Connection) -> None:
        """Create the units for all new nuggets and store the assignments, inside the import's transaction."""
        add_nugget_units(conn)
        if self._assigner.judge:
            self._keep_run(conn, self._assigner.judge)
            return
        field, name = self._task.spec.questions[0].field, str(self._assigner.annotator)
        kind = AnnotatorKind.GOLD if name == GOLD else AnnotatorKind.HUMAN
        for unit, (label, where) in self._assigned.items():
            # A missing label has a status only for a judge, not for a person.
            if label != FAILED:
                new = self.votes.select_new([(unit, Vote(field, label, name, kind))], where)
                self.votes.insert(new)
                self.votes.count_row()
                self.counts["unchanged"] += not new

    def _keep_run(self, conn: sqlite3.Connection, model: str) -> None:
        """Store the assignments as a run of the judge.

        Importing the same assignments again creates no second run.
        """
        field = self._task.spec.questions[0].field
        made = [
            Judgement("", unit, 0, 0, Status.OK, label, labels=(Answered(field, label),))
            if label != FAILED
            else Judgement("", unit, 0, 0, Status.FAILED, reason="the file says so")
            for unit, (label, _) in self._assigned.items()
        ]
        if not made:
            return
        content = [(j.unit_id, j.reply) for j in made]
        known = add_imported(conn, self._task, model, made, content, self._files)
        self.counts["unchanged" if known else "labels"] += len(made)


def add_nugget_units(conn: sqlite3.Connection, where: str = "1", values: Sequence[str] = ()) -> None:
    """Add the missing units for pairs of nuggets and answers.

    `where` is an SQL condition on answers `a` and nuggets `n`. An empty answer gets no units: it contains no
    nuggets, so it need not be judged.
    """
    conn.execute(
        "INSERT OR IGNORE INTO units (unit_id, kind, item_id, question_id, answer_id, span) "
        "SELECT a.answer_id || '#n' || n.n, 'nugget', i.item_id, i.question_id, a.answer_id, "
        "json_object('n', n.n, 'nugget', n.text) FROM answers AS a JOIN nuggets AS n USING (item_id) "
        f"JOIN items AS i USING (item_id) WHERE trim(a.text, ?) <> '' AND {where} ORDER BY a.rowid, n.n",
        [_BLANK, *values],
    )
