"""The options and the result of an import of responses."""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, NamedTuple

from annotate.exchange.responses import Response
from annotate.sitting.events import ASSISTED, BLIND, UNDECLARED, Kind
from annotate.store import check_human, ensure_adjudicated, ensure_human
from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.store.row_counts import Outcome, RowCounts, RowOutcome
from judge.types import Json

Blindness = Literal["blind", "assisted"]
COUNTED = {Kind.SKIP: "skips", Kind.SPAN: "spans", Kind.NOTE: "notes", Kind.FLAG: "flags"}
"""The attribute of ImportResult that counts each kind of event other than a label."""
MOST_LISTED = 10
"""The largest number of annotators that a message names. An import from a crowdsourcing platform can have
hundreds of annotators.
"""


@dataclass(frozen=True)
class ImportOptions:
    """The options of an import.

    `blind` declares whether the annotators worked without suggestions from a judge or anybody else, for
    files that do not say this. In a batch, only labels that are known to be blind count in headline numbers.

    With `latest`, a later answer by the same person replaces the earlier answer, and the log keeps both.
    Without `latest`, different answers are a conflict.

    `people` maps names in the file to annotators. `labels` maps, for each field, values in the file to
    labels.
    """

    format: str
    files: Sequence[Path] = ()
    blind: Blindness | None = None
    latest: bool = False
    people: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    new_people: bool = False
    """Whether to accept people who are not annotators of the batch, or who are not in the study."""


OLDER = (RowOutcome.LEFT_OUT, "older than the stored answer")


def combine(labels: Sequence[Outcome]) -> Outcome:
    """Return the outcome of a row from the outcomes of its labels. A row that was stored in part counts as stored."""
    if not labels:
        return RowOutcome.LEFT_OUT, "no answer"
    order = [RowOutcome.CONFLICT, RowOutcome.STORED, RowOutcome.ALREADY_THERE, RowOutcome.LEFT_OUT]
    return min(labels, key=lambda label: order.index(label[0]))


class Retracted(NamedTuple):
    """A record that no longer exists at its source."""

    annotator: str
    unit: str
    source: str
    repeat: int = 0


@dataclass(slots=True)
class ImportResult(RowCounts):
    """The result of an import, in counts.

    `new` counts labels by annotator, and `replaced` counts the new labels that replaced an earlier one.
    `declared` counts stored labels that the import newly declares as blind or assisted. `older` counts
    answers that a later answer had already replaced. `confirmed` counts labels that were already stored for
    the same person from another source. `left_out` counts parts of responses that only a batch can store.
    """

    new: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    confirmed: int = 0
    declared: int = 0
    replaced: int = 0
    older: int = 0
    conflicts: int = 0
    """The number of labels that contradict the same person's label from another source. None of these labels
    counts until a lead resolves the conflict.
    """
    retracted: int = 0
    """The number of labels that were undone because their record was withdrawn."""
    unproven: int = 0
    """The number of records that contain neither their text nor a hash of it."""
    people: list[str] = field(default_factory=list)
    """People who were unknown to the study."""
    units: set[str] = field(default_factory=set)
    skips: int = 0
    spans: int = 0
    notes: int = 0
    flags: int = 0
    joined: Counter[str] = field(default_factory=Counter)
    """The number of units that each annotator labelled without an assignment. These units are now assigned."""
    left_out: Counter[str] = field(default_factory=Counter)
    blind: Counter[str] = field(default_factory=Counter)
    """The number of new or newly declared labels by blindness: blind, assisted, undeclared."""
    weights: dict[str, set[float]] = field(default_factory=dict)
    """The design weights in the file, by field. They are collected only in an import without a batch."""

    @property
    def quarantined(self) -> int:
        """The number of rows in the quarantine: their text, unit, annotator or editor is in doubt."""
        return self.rows[RowOutcome.QUARANTINED]

    def add(self, other: "ImportResult") -> None:
        """Add the counts of another import."""
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, set | Counter):
                mine.update(theirs)
            elif isinstance(mine, dict):
                for key, value in theirs.items():
                    mine.setdefault(key, type(value)()).update(value)
            else:
                setattr(self, each.name, mine + theirs)

    @property
    def changed(self) -> bool:
        """Whether anything was stored."""
        others = [getattr(self, name) for name in COUNTED.values()]
        return any((self.quarantined, self.retracted, self.new, self.confirmed, self.declared, *others))

    def as_json(self) -> dict[str, Json]:
        """Return the result as the documented JSON object, with the number of units in place of the units
        themselves.
        """
        counts = {name: getattr(self, name) for name in self.__slots__ if name != "weights"}
        # Scripts read the key "held", so it must not change.
        return {k: dict(v) if isinstance(v, Counter) else v for k, v in counts.items()} | {
            "units": len(self.units), "held": self.quarantined, "rows": self.rows_as_json(),
            "remarks": dict(self.reasons.get(RowOutcome.LEFT_OUT, {})),
        }  # fmt: skip

    def describe_rows(self) -> list[str]:
        """Return the five counts with the reasons, one line per outcome, and how to list the quarantined rows."""
        lines = self.describe_counts()
        if self.quarantined:
            lines.append(
                f"quarantined rows are not used in any result; to list them: {command('annotate quarantine list')}"
            )
        return lines

    def notes_for_people(self, batch: str | None) -> list[str]:
        """Return the counts of rows, and additional notes on the import, one per line."""
        lines = self.describe_rows()
        others = [f"{n} {noun}" for noun in COUNTED.values() if (n := getattr(self, noun))]
        if others:
            lines.append(f"also new: {', '.join(others)}")
        if self.replaced or self.older:
            lines.append(
                f"{self.replaced} labels replaced an earlier answer; {self.older} were older than the stored answer"
            )
        if self.people:
            lines.append(f"new people: {', '.join(self.people)}")
        if self.joined:
            lines.append(
                f"units that were labelled without an assignment and are now assigned: {format_briefly(self.joined)}"
            )
        if self.left_out:
            listed = ", ".join(f"{n} {noun}" for noun, n in self.left_out.items())
            lines.append(f"{listed} were left out, because only a batch stores them (--batch)")
        if self.unproven and batch:
            lines.append(
                f"{self.unproven} records contain neither their text nor its hash, so they may refer to a different text"
            )
        if self.declared:
            lines.append(f"{self.declared} stored labels are now declared blind or assisted")
        if self.confirmed:
            lines.append(
                f"{self.confirmed} labels were already stored from another source; both sources are kept"
            )
        if self.conflicts:
            lines.append(
                f"{self.conflicts} labels contradict the same person's label in another source. Their units count as unlabelled "
                f"until you resolve the conflicts:\n{command('annotate conflicts list')}"
            )
        if self.blind[UNDECLARED]:
            lines.append(
                f"{self.blind[UNDECLARED]} labels are not known to be blind: they are in the layer 'undeclared' and not used in headline numbers; "
                "import them again with --blind (nobody saw a suggestion while labelling) or --assisted"
            )
        if self.blind[ASSISTED]:
            lines.append(
                f"{self.blind[ASSISTED]} labels are not blind: they are in the layer 'assisted' and not used in headline numbers"
            )
        return lines


def format_briefly(counts: Counter[str]) -> str:
    """Return the first MOST_LISTED names with their counts; "none" if there are no names."""
    listed = ", ".join(f"{who} {n}" for who, n in list(counts.items())[:MOST_LISTED])
    more = len(counts) - MOST_LISTED
    return f"{listed} and {more} more people ({counts.total()} in all)" if more > 0 else listed or "none"


def kind_of(response: Response, name: str, how: ImportOptions) -> str:
    """Return whether the answer to a field is blind, assisted or undeclared.

    It is assisted if the file or the import's options say so. Otherwise, it is blind if either of them says
    so, and undeclared if neither says anything.
    """
    blind_in_file = response.is_blind(name)
    # --blind only fills a gap: it cannot undo what the file itself says.
    if blind_in_file is False or how.blind == ASSISTED:
        return ASSISTED
    return BLIND if blind_in_file or how.blind else UNDECLARED


def conflict(response: Response, name: str, there: str, here: str) -> BadInput:
    """Return the error for a person who gave two different answers in the same source."""
    message = (
        f"{response.annotator} labelled '{response.unit}' as '{there}' in the study and as '{here}' in the file; "
        "correct one of the two, or use the later label with --latest"
    )
    return BadInput(message, field=name)


def check_person(conn: sqlite3.Connection, who: str) -> None:
    """Raise BadInput if a name is not valid for a person."""
    try:
        check_human(conn, who)
    except UsageError as e:
        raise BadInput(str(e), field="annotator") from e


def ensure_annotator(conn: sqlite3.Connection, response: Response) -> None:
    """Add the annotator of a checked response to the study."""
    if response.role == "adjudication":
        ensure_adjudicated(conn)
    else:
        check_person(conn, response.annotator)
        ensure_human(conn, [response.annotator])
