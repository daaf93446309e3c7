"""Find the batches that accept no more labels from a person: they are closed, or a lead stopped the person in them.

Labels that come in without their batch are checked, too. Otherwise, such an import would bypass the lead's decision.
"""

import sqlite3
from typing import NamedTuple

from judge.commands import command
from judge.prompts.load import parse_task


class ClosedBatch(NamedTuple):
    """A batch that accepts no more labels from a person. `stopped` is the reason if a lead stopped the person."""

    name: str
    fields: tuple[str, ...]
    units: frozenset[str]
    stopped: str | None

    def describe(self, person: str, unit: str) -> str:
        """Return the reason why a label by the person for the unit is refused, and what the lead can do."""
        if self.stopped is not None:
            return f"{person} was stopped in batch '{self.name}' ({self.stopped})"
        undo = command("annotate batches close", self.name, "--undo")
        return (
            f"'{unit}' is assigned to {person} in batch '{self.name}', which is closed; to reopen it: {undo}"
        )


class ClosedBatches:
    """Finds closed batches, and remembers those of each person."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._of_person: dict[str, list[ClosedBatch]] = {}

    def find(self, person: str, unit: str, field: str) -> ClosedBatch | None:
        """Return a batch that accepts no more labels from this person for a field of a unit, or None."""
        if person not in self._of_person:
            self._of_person[person] = self._read_closed(person)
        of_person = self._of_person[person]
        return next((b for b in of_person if field in b.fields and unit in b.units), None)

    def _read_closed(self, person: str) -> list[ClosedBatch]:
        closed_batches = []
        query = (
            "SELECT b.batch, t.task, t.template, s.why FROM batches AS b JOIN tasks AS t ON t.task = b.task "
            "LEFT JOIN stopped AS s ON s.batch = b.batch AND s.annotator_id = ?1 WHERE b.closed IS NOT NULL OR s.why IS NOT NULL"
        )
        # A stopped person may label no unit of the batch. A closed batch concerns the units that the person was assigned.
        of_batch = "SELECT unit_id FROM batch_units WHERE batch = ?1 AND ?2 <> ''"
        assigned = "SELECT unit_id FROM assignments WHERE batch = ?1 AND annotator_id = ?2 AND role <> 'adjudication'"
        for name, task, template, why in self._conn.execute(query, [person]).fetchall():
            fields = tuple(parse_task(template, f"{task}.md").fields)
            rows = self._conn.execute(assigned if why is None else of_batch, [name, person])
            closed_batches.append(ClosedBatch(name, fields, frozenset(unit for (unit,) in rows), why))
        return closed_batches
