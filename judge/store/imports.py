"""Store an import in one transaction, with its metadata and labels. Reject values that cannot be stored."""

import json
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import ClassVar, Generic, TypeVar

from ulid import ULID

from judge.errors import BadInput
from judge.files import stop
from judge.store import corrections, label_rows, label_sources
from judge.store.closed_batches import ClosedBatches
from judge.store.corrections import ChangedValue
from judge.store.row_counts import REJECTED, Outcome, RowCounts, RowOutcome
from judge.store.study import Store, dumps, get_time
from judge.types import AnnotatorKind, Correct, Json, Vote, Where

T = TypeVar("T")
STORED: Outcome = (RowOutcome.STORED, "")


@dataclass(frozen=True, slots=True)
class ImportInfo:
    """The metadata of an import. They are stored in the table `imports`."""

    format: str
    files: Mapping[str, str]
    """Maps each path, as typed, to the sha256 of the file."""
    dataset: str | None = None
    maps: Mapping[str, str] = field(default_factory=dict)
    label_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class ImportReport:
    """The result of an import.

    `counts` contains the number of new rows by table, and the number of `unchanged` rows.
    """

    import_id: str
    counts: Counter[str]
    datasets: list[str]
    label_counts: dict[str, Counter[str]]
    skipped: list[BadInput]
    corrections: list[ChangedValue] = field(default_factory=list)
    """The stored values that were corrected or, if the user has not confirmed the change, that would be."""
    outdated: Counter[str] = field(default_factory=Counter)
    """The number of units whose text a correction changed, and of labels on them that no longer count."""
    votes: RowCounts = field(default_factory=RowCounts)
    """What became of the votes and gold labels of the rows."""
    confirmed: bool = True
    """False if there were corrections to confirm, so that nothing of the file was stored."""


def describe_corrections(reports: Sequence[ImportReport]) -> list[str]:
    """Return sentences about the corrections of these imports, or an empty list if there are none."""
    done = [c for report in reports for c in report.corrections]
    if not done:
        return []
    kinds = Counter(c.kind for c in done)
    outdated = sum((report.outdated for report in reports), Counter[str]())
    stored = all(report.confirmed for report in reports)
    would = "" if stored else "would "
    lines = [
        f"{'corrected' if stored else 'would be corrected'}: "
        + ", ".join(f"{kinds[k]:,} {noun}" for k, noun in _NOUNS.items() if kinds[k])
    ]
    if outdated["people"] + outdated["judges"]:
        lines.append(
            f"the text of {outdated['units']:,} units {would}change{'d' if stored else ''}: {outdated['people']:,} labels by "
            f"people and {outdated['judges']:,} by judges {'do' if stored else 'would'} not count until these units are "
            "labelled again"
        )
    return lines


_NOUNS = {
    "item": "values of items",
    "passage": "values of passages",
    "gold": "gold labels",
    "ranking": "ranked lists",
}


class _Unconfirmed(Exception):
    """Raised to roll back an import whose corrections the user has not confirmed."""


class Adder(ABC, Generic[T]):
    """Adds the rows of an import inside its transaction.

    `adds` lists the kinds of rows that are counted. `counts` contains the number of new rows of each kind,
    and the number of `unchanged` rows. `import_id` is stored as the origin of the rows. It is the id of a new
    import or of a run.
    """

    adds: ClassVar[tuple[str, ...]]

    def __init__(self, conn: sqlite3.Connection, import_id: str | None = None) -> None:
        self.conn, self.import_id = conn, import_id or str(ULID())
        self.counts: Counter[str] = Counter(dict.fromkeys((*self.adds, "unchanged"), 0))
        self.label_counts: dict[str, Counter[str]] = {}
        self.datasets: set[str] = set()
        self.differing: list[ChangedValue] = []
        """The values in which the file differs from the study. An adder stores everything else of a row."""
        self.votes = Votes(conn, self.counts, self.label_counts, f"items:{self.import_id}", self.differing)

    @abstractmethod
    def add(self, row: T) -> None:
        """Add one row. The whole row is checked before it is written, so nothing is written if BadInput is raised."""


def add_rows(
    store: Store,
    adder: Adder[T],
    rows: Iterable[T],
    info: ImportInfo,
    skipped: list[BadInput],
    bad: Callable[[BadInput], None] = stop,
    beside: Callable[[sqlite3.Connection], None] = lambda conn: None,
    correct: Correct | None = None,
) -> ImportReport:
    """Store the rows in one transaction. An import that adds no new rows is not recorded.

    `beside` is called in the same transaction, to store data that came with the rows. The error for a bad row
    is passed to `bad`. If `bad` raises the error, the whole import is rolled back. Otherwise `bad` adds the
    error to `skipped`.

    A value that differs from the stored one is bad, too, unless `correct` is given. With `apply`, it replaces the
    stored value. With `show`, nothing is stored if there is such a value, and the report lists what would change.
    """
    report = ImportReport(
        adder.import_id, adder.counts, [], adder.label_counts, skipped, votes=adder.votes.rows
    )
    try:
        _add_all(store, adder, rows, info, skipped, bad, beside, correct, report)
    except _Unconfirmed:
        report.confirmed = False
    report.datasets = sorted(adder.datasets)
    return report


def _add_all(
    store: Store,
    adder: Adder[T],
    rows: Iterable[T],
    info: ImportInfo,
    skipped: list[BadInput],
    bad: Callable[[BadInput], None],
    beside: Callable[[sqlite3.Connection], None],
    correct: Correct | None,
    report: ImportReport,
) -> None:
    with store.transaction() as conn:
        conn.execute(
            # First, because every row refers to its import.
            "INSERT INTO imports VALUES (?, ?, ?, ?, ?, ?, '{}', '[]', ?)",
            [
                adder.import_id,
                info.format,
                info.dataset,
                dumps(dict(info.files)),
                dumps(dict(info.maps)),
                dumps({k: dict(v) for k, v in info.label_maps.items()}),
                get_time(),
            ],
        )
        for row in rows:
            before = len(adder.differing)
            try:
                adder.add(row)
            except BadInput as e:
                # A skipped row corrects nothing.
                del adder.differing[before:]
                adder.votes.skip_row()
                bad(e)
            adder.votes.count_row()
        beside(conn)
        n_gold = sum(d.kind == "gold" for d in adder.differing)
        if adder.differing and correct is None:
            corrections.refuse(adder.differing, bad)
            adder.votes.rows.count(RowOutcome.LEFT_OUT, "differs from the stored gold label", n_gold)
        elif adder.differing:
            adder.votes.rows.count(RowOutcome.STORED, rows=n_gold)
            report.corrections = list({(c.kind, c.id, c.field): c for c in adder.differing}.values())
            report.outdated = corrections.apply(conn, adder.differing, f"items:{adder.import_id}")
            adder.counts["corrected"] = len(report.corrections)
        # The same file imported twice must leave the study as it was, down to the times.
        if sum(n for name, n in adder.counts.items() if name != "unchanged") == 0:
            conn.execute("DELETE FROM imports WHERE import_id = ?", [adder.import_id])
        else:
            conn.execute(
                "UPDATE imports SET counts = ?, skipped = ? WHERE import_id = ?",
                [dumps(adder.counts), dumps([str(s) for s in skipped]), adder.import_id],
            )
        if report.corrections and correct == "show":
            raise _Unconfirmed


OTHER_TEXT = "its text differs from the study's; a vote for the new text can be imported after the correction"
"""Why a vote of a row with another text is left out."""
SAME_AS_OLD = "equals the vote for the text before its correction; a vote that was given again needs its time, as an imported label"
"""Why a vote of a row is left out that may be copied from the file before the correction."""


class Votes:
    """Adds the gold and human labels of one import, and counts them in the adder's counters."""

    def __init__(
        self,
        conn: sqlite3.Connection,
        counts: Counter[str],
        label_counts: dict[str, Counter[str]],
        source: str,
        differing: list[ChangedValue],
    ) -> None:
        self.conn, self.counts, self.label_counts, self.differing = conn, counts, label_counts, differing
        self._source = source
        self._annotators: dict[str, str] = {}
        self._closed = ClosedBatches(conn)
        self.rows = RowCounts()
        """What became of the votes of all rows so far. Votes that correct stored gold are counted at the end."""
        self._outcomes: list[Outcome] = []
        """The outcomes of the votes of the current row."""

    def count_row(self) -> None:
        """Count the votes of the row that was added last."""
        self.rows.count_all(self._outcomes)
        self._outcomes = []

    def skip_row(self) -> None:
        """Count the votes of the current row as left out, because nothing of the row is stored."""
        self._outcomes = [(RowOutcome.LEFT_OUT, "the row was skipped")] * len(self._outcomes)

    def select_new(
        self,
        votes: list[tuple[str, Vote]],
        where: Where,
        unlabelled: Container[str] = (),
        differing: Container[str] = (),
    ) -> dict[tuple[str, str, str], Vote]:
        """Return the votes that are not stored yet.

        `unlabelled` contains the new units. They cannot have stored labels, so no lookup is needed for them.
        `differing` contains the units whose text in the row differs from the study's. Their votes and new
        gold labels are left out.
        Raises BadInput if an annotator has two different labels for the same field and unit.
        """
        new: dict[tuple[str, str, str], Vote] = {}
        # If an error is raised, all votes of the row are left out.
        self._outcomes = [(RowOutcome.LEFT_OUT, "")] * len(votes)
        outcomes: list[Outcome] = []
        for unit_id, vote in votes:
            key = (unit_id, vote.field, vote.annotator)
            known = new[key].value if key in new else None
            if known is None and unit_id not in unlabelled:
                known = self._stored(*key, vote.kind)
            # A stored gold label can be corrected together with the text.
            if unit_id in differing and (known is None or vote.kind != AnnotatorKind.GOLD):
                outcomes.append((RowOutcome.LEFT_OUT, OTHER_TEXT))
                continue
            is_person = vote.kind != AnnotatorKind.GOLD
            if known is None and is_person and self._read_vote(*key, outdated=True) == vote.value:
                outcomes.append((RowOutcome.LEFT_OUT, SAME_AS_OLD))
            elif known is None:
                self._check(vote, where)
                outcome = self._find_outcome(unit_id, vote, where) if unit_id not in unlabelled else STORED
                outcomes.append(outcome)
                if outcome != REJECTED:
                    new[key] = vote
            # Gold of an earlier import can be corrected, but only on purpose.
            elif known != vote.value and key not in new and self._is_earlier_gold(vote, unit_id):
                gold = ("gold", unit_id, vote.field, known, vote.value, where)
                self.differing.append(ChangedValue(*gold))
            # Neither label replaces the other: which one is right is not for an import to decide.
            elif known != vote.value:
                raise error_at(
                    where,
                    f"{vote.annotator} has labelled '{unit_id}' as {vote.value!r} here, but as {known!r} earlier",
                    vote.field,
                )
            else:
                outcomes.append((RowOutcome.ALREADY_THERE, ""))
        self._outcomes = outcomes
        return new

    def _find_outcome(self, unit_id: str, vote: Vote, where: Where) -> Outcome:
        """Return the outcome of a new vote. The checks are those of every import of labels (`annotate.exchange.gate`).

        Raises BadInput for a vote on a unit of a batch that accepts no more labels from the annotator.
        """
        if vote.kind == AnnotatorKind.GOLD:
            return STORED
        key = (self.conn, unit_id, vote.field, vote.annotator, 0)
        if label_sources.is_rejected(*key, vote.value, None):
            return REJECTED
        others = [s for s in label_sources.read_labels(*key) if s.layer != label_rows.OLD_TEXT]
        batch = self._closed.find(vote.annotator, unit_id, vote.field)
        if batch is not None and vote.value not in {s.value for s in others}:
            raise error_at(where, batch.describe(vote.annotator, unit_id), vote.field)
        contradicts = any(s.value != vote.value for s in others)
        return (RowOutcome.CONFLICT, "") if contradicts else STORED

    def _stored(self, unit_id: str, field_name: str, annotator: str, kind: AnnotatorKind) -> str | None:
        """Return the label that an earlier import of items has stored, or None."""
        if kind == AnnotatorKind.GOLD:
            query = f"SELECT {label_rows.single_label('?', '?', '?')}"
            value = self.conn.execute(query, [annotator, field_name, unit_id]).fetchone()[0]
        else:
            # The same person may have labelled the unit in a batch: that is another source, and no conflict
            # of this file. A vote for the text before a correction says nothing about the text of this row.
            value = self._read_vote(unit_id, field_name, annotator)
        return None if value is None else str(value)

    def _read_vote(
        self, unit_id: str, field_name: str, annotator: str, *, outdated: bool = False
    ) -> str | None:
        return label_sources.read_item_vote(self.conn, unit_id, field_name, annotator, outdated=outdated)

    def _is_earlier_gold(self, vote: Vote, unit_id: str) -> bool:
        if vote.kind != AnnotatorKind.GOLD:
            return False
        query = f"SELECT {label_rows.single_label('?', '?', '?', 'sources')}"
        stored = self.conn.execute(query, [vote.annotator, vote.field, unit_id]).fetchone()[0]
        return bool(self._source not in json.loads(stored))

    def _check(self, vote: Vote, where: Where) -> None:
        """Raise BadInput if the study has an annotator with this name but of another kind, such as a run."""
        if vote.annotator not in self._annotators:
            # Two annotators of one name and different kinds would share their labels.
            query = "SELECT kind FROM annotators WHERE annotator_id = ?"
            row = self.conn.execute(query, [vote.annotator]).fetchone()
            if row is None:
                return
            self._annotators[vote.annotator] = row[0]
        if self._annotators[vote.annotator] != str(vote.kind):
            raise error_at(
                where,
                f"the study already has an annotator '{vote.annotator}' of another kind "
                f"({self._annotators[vote.annotator]}, not {vote.kind}); use a different name",
                vote.field,
            )

    def insert(self, votes: Mapping[tuple[str, str, str], Vote]) -> None:
        """Store these votes. They must be votes that `select_new` has returned."""
        for vote in votes.values():
            if vote.annotator not in self._annotators:
                self.conn.execute(
                    "INSERT INTO annotators VALUES (?, ?, '{}')", [vote.annotator, str(vote.kind)]
                )
                self._annotators[vote.annotator] = str(vote.kind)
            self.label_counts.setdefault(vote.field, Counter())[vote.value] += 1
        rows = [
            (v.kind, (unit_id, v.field, v.annotator, v.value, v.rationale))
            for (unit_id, _, _), v in votes.items()
        ]
        gold = [row for kind, row in rows if kind == AnnotatorKind.GOLD]
        label_rows.add_gold(self.conn, gold, self._source)
        people = [row for kind, row in rows if kind != AnnotatorKind.GOLD]
        label_sources.add_first(self.conn, people, self._source)
        self.counts["labels"] += len(votes)


def check_storable(row: object, where: Where) -> None:
    """Raise BadInput if the row contains a value that SQLite cannot store, such as a lone surrogate or NaN."""
    try:
        _CHECK.encode(row).encode()
    except UnicodeEncodeError as e:
        raise error_at(
            where,
            "contains an incomplete character (a lone surrogate), which cannot be stored; correct the "
            "file's encoding",
            "",
        ) from e
    except (ValueError, TypeError) as e:
        raise error_at(where, f"cannot be stored as JSON: {e}", "") from e


def _parts(value: object) -> dict[str, Json]:
    if not is_dataclass(value):
        raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


_CHECK = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_parts)


def error_at(where: Where, reason: str, field_name: str) -> BadInput:
    """Return a BadInput that names the row's file and line."""
    return BadInput(reason, path=where.path, line=where.line, field=field_name)
