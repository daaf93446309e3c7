"""Count what became of the rows of an import of labels. Every import of labels uses these five outcomes."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from judge.types import Json


class RowOutcome(StrEnum):
    """What became of a row. A row is one person's record of one unit: a line of a file, a vote of an item, or an
    annotation on a server.
    """

    STORED = "stored"
    ALREADY_THERE = "already_there"
    CONFLICT = "conflict"
    """The row is stored, but contradicts the same person's label from another source."""
    QUARANTINED = "quarantined"
    LEFT_OUT = "left_out"


Outcome = tuple[RowOutcome, str]
"""An outcome with its reason, which is "" for a row that was stored."""
NOUNS = {"stored": "stored", "already_there": "already there", "conflict": "in conflict", "quarantined": "quarantined",
         "left_out": "left out"}  # fmt: skip
"""The words for each outcome of a row."""
REJECTED: Outcome = (RowOutcome.LEFT_OUT, "rejected by a lead, and not given since")


@dataclass(slots=True)
class RowCounts:
    """The number of rows by outcome. The numbers add up to the rows that were read."""

    rows: Counter[RowOutcome] = field(default_factory=Counter)
    reasons: dict[RowOutcome, Counter[str]] = field(default_factory=dict)
    """The number of rows that were not stored, by outcome and reason."""

    def count(self, outcome: RowOutcome, reason: str = "", rows: int = 1) -> None:
        """Count rows with the same outcome and reason."""
        self.rows[outcome] += rows
        if reason:
            self.reasons.setdefault(outcome, Counter())[reason] += rows

    def count_all(self, outcomes: Iterable[Outcome]) -> None:
        """Count one row for each of these outcomes."""
        for outcome, reason in outcomes:
            self.count(outcome, reason)

    def rows_as_json(self) -> dict[str, Json]:
        """Return the five counts, and the reasons for rows that were not stored."""
        counts: dict[str, Json] = {outcome: self.rows[outcome] for outcome in RowOutcome}
        reasons = {str(outcome): dict(each) for outcome, each in self.reasons.items()}
        return {"read": self.rows.total(), **counts, "reasons": reasons}

    def describe_counts(self, *, preview: bool = False) -> list[str]:
        """Return the five counts, and the reasons, one line per outcome. A preview says what would be stored."""
        would = "would be " if preview else ""
        counts = ", ".join(f"{self.rows[outcome]} {would}{NOUNS[outcome]}" for outcome in RowOutcome)
        lines = [f"{self.rows.total()} rows read: {counts}"]
        for outcome, reasons in self.reasons.items():
            listed = ", ".join(f"{reason} {n}" for reason, n in reasons.items())
            lines.append(f"{NOUNS[outcome]}: {listed}")
        return lines
