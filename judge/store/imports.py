"""Store an import: its row in `imports`, its transaction and its labels. Refuse values that cannot be stored."""

import json
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import ClassVar, Generic, TypeVar

from ulid import ULID

from judge.errors import BadInput
from judge.files import stop
from judge.store import label_rows, label_sources
from judge.store.study import Store, dumps, now
from judge.types import AnnotatorKind, Json, Vote, Where

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ImportInfo:
    """The metadata of an import, stored beside its rows."""

    format: str
    files: Mapping[str, str]
    """Maps the path as typed to the sha256 of the file."""
    dataset: str | None = None
    maps: Mapping[str, str] = field(default_factory=dict)
    label_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class ImportReport:
    """The result of an import: the number of new rows by table, and the number of `unchanged` rows."""

    import_id: str
    counts: Counter[str]
    datasets: list[str]
    label_counts: dict[str, Counter[str]]
    skipped: list[BadInput]


class Adder(ABC, Generic[T]):
    """Adds rows one by one inside the import's transaction; all `counts` except `unchanged` count new rows.

    `adds` are the names of the counts. `import_id` is the origin of the rows: a new import or a run.
    """

    adds: ClassVar[tuple[str, ...]]

    def __init__(self, conn: sqlite3.Connection, import_id: str | None = None) -> None:
        self.conn, self.import_id = conn, import_id or str(ULID())
        self.counts: Counter[str] = Counter(dict.fromkeys((*self.adds, "unchanged"), 0))
        self.label_counts: dict[str, Counter[str]] = {}
        self.datasets: set[str] = set()
        self.votes = Votes(conn, self.counts, self.label_counts, f"items:{self.import_id}")

    @abstractmethod
    def add(self, row: T) -> None:
        """Check the whole row first, then write it. Raises BadInput without having written anything."""


def add_rows(
    store: Store,
    adder: Adder[T],
    rows: Iterable[T],
    info: ImportInfo,
    skipped: list[BadInput],
    bad: Callable[[BadInput], None] = stop,
    beside: Callable[[sqlite3.Connection], None] = lambda conn: None,
) -> ImportReport:
    """Store everything that `rows` yields in one transaction; an import that adds nothing leaves no trace.

    `beside` stores data that came with the rows but is not a row, in the same transaction. A row that cannot
    be used is passed to `bad`; if `bad` raises, the whole import is rolled back. If it does not raise, it
    adds the row to the list `skipped`.
    """
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
                now(),
            ],
        )
        for row in rows:
            try:
                adder.add(row)
            except BadInput as e:
                bad(e)
        beside(conn)
        # The same file imported twice must leave the study as it was, down to the times.
        if sum(n for name, n in adder.counts.items() if name != "unchanged") == 0:
            conn.execute("DELETE FROM imports WHERE import_id = ?", [adder.import_id])
        else:
            conn.execute(
                "UPDATE imports SET counts = ?, skipped = ? WHERE import_id = ?",
                [dumps(adder.counts), dumps([str(s) for s in skipped]), adder.import_id],
            )
    return ImportReport(adder.import_id, adder.counts, sorted(adder.datasets), adder.label_counts, skipped)


class Votes:
    """The gold and human labels of one import, counted in the adder's counters."""

    def __init__(
        self,
        conn: sqlite3.Connection,
        counts: Counter[str],
        label_counts: dict[str, Counter[str]],
        source: str,
    ) -> None:
        self.conn, self.counts, self.label_counts = conn, counts, label_counts
        self._source = source
        self._annotators: dict[str, str] = {}

    def new(
        self, votes: list[tuple[str, Vote]], where: Where, unlabelled: Container[str] = ()
    ) -> dict[tuple[str, str, str], Vote]:
        """Return the votes that are not stored yet. Raises BadInput if an annotator has two labels for the
        same field of a unit.

        `unlabelled` are new units: they have no labels, so they need no lookup.
        """
        new: dict[tuple[str, str, str], Vote] = {}
        for unit_id, vote in votes:
            key = (unit_id, vote.field, vote.annotator)
            known = new[key].value if key in new else None
            if known is None and unit_id not in unlabelled:
                known = self._stored(*key, vote.kind)
            if known is None:
                self._check(vote, where)
                new[key] = vote
            # Neither label replaces the other: which one is right is not for an import to decide.
            elif known != vote.value:
                raise at(
                    where,
                    f"{vote.annotator} labelled '{unit_id}' {known!r} earlier and {vote.value!r} here",
                    vote.field,
                )
        return new

    def _stored(self, unit_id: str, field_name: str, annotator: str, kind: AnnotatorKind) -> str | None:
        """Return the label that was imported with the items earlier."""
        if kind == AnnotatorKind.GOLD:
            query = f"SELECT {label_rows.single_label('?', '?', '?')}"
            value = self.conn.execute(query, [annotator, field_name, unit_id]).fetchone()[0]
        else:
            # The same person may have labelled the unit in a batch: that is another source, and no conflict
            # of this file.
            value = label_sources.of_items(self.conn, unit_id, field_name, annotator)
        return None if value is None else str(value)

    def _check(self, vote: Vote, where: Where) -> None:
        """Raise BadInput if the name already belongs to an annotator of another kind, such as a run."""
        if vote.annotator not in self._annotators:
            # Two annotators of one name and different kinds would share their labels.
            query = "SELECT kind FROM annotators WHERE annotator_id = ?"
            row = self.conn.execute(query, [vote.annotator]).fetchone()
            if row is None:
                return
            self._annotators[vote.annotator] = row[0]
        if self._annotators[vote.annotator] != str(vote.kind):
            raise at(
                where,
                f"the annotator '{vote.annotator}' is a {self._annotators[vote.annotator]} in this study, "
                f"and a {vote.kind} here; give one of them another name",
                vote.field,
            )

    def insert(self, votes: Mapping[tuple[str, str, str], Vote]) -> None:
        """Store the votes that `new` has returned."""
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
    """Raise BadInput if the row contains something that SQLite cannot store: lone surrogates or NaN."""
    try:
        _CHECK.encode(row).encode()
    except UnicodeEncodeError as e:
        raise at(
            where,
            "contains a lone surrogate (half of a character), which cannot be stored; correct the file's encoding",
            "",
        ) from e
    except (ValueError, TypeError) as e:
        raise at(where, f"cannot be stored as JSON: {e}", "") from e


def _parts(value: object) -> dict[str, Json]:
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} is not JSON")
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


_CHECK = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_parts)


def at(where: Where, reason: str, field_name: str) -> BadInput:
    """Return a BadInput error that names the row's file and line."""
    return BadInput(reason, path=where.path, line=where.line, field=field_name)
