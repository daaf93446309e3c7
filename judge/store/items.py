"""Items in: ids, one transaction per import, nothing replaced, everything counted."""

from __future__ import annotations

import hashlib
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ulid import ULID

from judge.errors import BadInput
from judge.store.study import Store, canonical, dumps, now
from judge.types import Item, Json, Passage, Row, Vote, Where


@dataclass(frozen=True, slots=True)
class ImportInfo:
    """What is stored of an import beside its rows."""

    format: str
    files: Mapping[str, str]
    """Path as typed -> sha256 of the file."""
    dataset: str | None = None
    maps: Mapping[str, str] = field(default_factory=dict)
    label_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class ImportReport:
    """What an import did: `counts` has items, passages, labels (new) and unchanged (items seen again)."""

    import_id: str
    counts: Counter[str]
    datasets: list[str]
    label_counts: dict[str, Counter[str]]
    skipped: list[BadInput]


def add_items(
    store: Store,
    rows: Iterable[Row],
    info: ImportInfo,
    skipped: list[BadInput],
    bad: Callable[[BadInput], None],
) -> ImportReport:
    """Store everything `rows` yields in one transaction.

    A row that was imported before and is the same changes nothing. A row whose text changed under
    the same id, or whose gold label differs from the stored one, goes to `bad`; when that raises,
    nothing of the import is kept. `skipped` is the list that `bad` fills when it does not raise.
    """
    adder = _Adder(store.conn, str(ULID()))
    with store.transaction() as conn:
        conn.execute(
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
        counts = adder.counts
        if counts["items"] + counts["passages"] + counts["labels"] == 0:
            # Importing the same file again leaves no trace, so that it changes nothing at all.
            conn.execute("DELETE FROM imports WHERE import_id = ?", [adder.import_id])
        else:
            conn.execute(
                "UPDATE imports SET counts = ?, skipped = ? WHERE import_id = ?",
                [dumps(counts), dumps([str(s) for s in skipped]), adder.import_id],
            )
    return ImportReport(adder.import_id, counts, sorted(adder.datasets), adder.label_counts, skipped)


class _Adder:
    """Adds rows one by one inside the import's transaction."""

    def __init__(self, conn: sqlite3.Connection, import_id: str) -> None:
        self.conn, self.import_id = conn, import_id
        self.counts: Counter[str] = Counter(items=0, passages=0, labels=0, unchanged=0)
        self.label_counts: dict[str, Counter[str]] = {}
        self.datasets: set[str] = set()
        self._annotators: set[str] = set()

    def add(self, row: Row) -> None:
        """Check the whole row first, write it after: a bad row leaves nothing behind."""
        item, where = row.item, row.where
        passages = [(passage_id(item, p), p) for p in item.passages]
        new_item = self._is_new("items", "item_id", item.item_id, item_sha(item), where)
        new_passages: dict[str, Passage] = {}
        for pid, passage in passages:
            if pid in new_passages:
                if passage_sha(new_passages[pid]) != passage_sha(passage):
                    raise _at(
                        where, f"two passages of this row have the id '{passage.source_id}'", "passages"
                    )
            elif self._is_new("passages", "passage_id", pid, passage_sha(passage), where):
                new_passages[pid] = passage
        labelled = [(item.item_id, item.votes)] + [(pid, p.votes) for pid, p in passages]
        labels = [(u, v) for u, votes in labelled for v in votes if self._is_new_label(u, v, where)]
        self.datasets.add(item.dataset)
        if new_item:
            self._insert_item(item)
        position = 0 if new_item else self._next_position(item.item_id)
        for pid, passage in new_passages.items():
            self._insert_passage(pid, passage, item, position)
            position += 1
        for unit_id, vote in labels:
            self._insert_label(unit_id, vote)
        if not (new_item or new_passages or labels):
            self.counts["unchanged"] += 1

    def _is_new(self, table: str, key: str, value: str, sha: str, where: Where) -> bool:
        found = self.conn.execute(f"SELECT content_sha FROM {table} WHERE {key} = ?", [value]).fetchone()
        if found is None:
            return True
        if found[0] != sha:
            raise _at(
                where,
                f"'{value}' is in the study with other content; nothing is replaced: import the changed "
                "rows under new ids, or as another data set (--dataset)",
                "id",
            )
        return False

    def _is_new_label(self, unit_id: str, vote: Vote, where: Where) -> bool:
        found = self.conn.execute(
            "SELECT value FROM labels WHERE annotator_id = ? AND field = ? AND unit_id = ? "
            "AND layer = 'first' AND repeat = 0",
            [vote.annotator, vote.field, unit_id],
        ).fetchone()
        if found is None:
            return True
        if found[0] != vote.value:
            raise _at(
                where,
                f"{vote.annotator} has labelled '{unit_id}' {found[0]!r} before, and {vote.value!r} here",
                vote.field,
            )
        return False

    def _insert_item(self, item: Item) -> None:
        self.conn.execute(
            "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                item.item_id,
                item.dataset,
                question_id(item),
                item.question,
                item.question_date,
                item.claim,
                None if item.reference_answers is None else dumps(item.reference_answers),
                None if item.options is None else dumps(item.options),
                item.correct,
                item.pair_id,
                item.polarity,
                dumps(item.meta),
                item_sha(item),
                self.import_id,
            ],
        )
        self.conn.execute(
            "INSERT INTO units VALUES (?, 'item', ?, ?, NULL)",
            [item.item_id, item.item_id, question_id(item)],
        )
        self.counts["items"] += 1

    def _insert_passage(self, pid: str, passage: Passage, item: Item, position: int) -> None:
        self.conn.execute(
            "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                pid,
                item.item_id,
                position,
                passage.title,
                passage.text,
                passage.date,
                passage.source,
                dumps(passage.meta),
                passage_sha(passage),
                self.import_id,
            ],
        )
        self.conn.execute(
            "INSERT INTO units VALUES (?, 'passage', ?, ?, ?)", [pid, item.item_id, question_id(item), pid]
        )
        self.counts["passages"] += 1

    def _insert_label(self, unit_id: str, vote: Vote) -> None:
        if vote.annotator not in self._annotators:
            self.conn.execute(
                "INSERT OR IGNORE INTO annotators VALUES (?, ?, '{}')", [vote.annotator, str(vote.kind)]
            )
            self._annotators.add(vote.annotator)
        self.conn.execute(
            "INSERT OR IGNORE INTO labels (unit_id, field, annotator_id, value, rationale) "
            "VALUES (?, ?, ?, ?, ?)",
            [unit_id, vote.field, vote.annotator, vote.value, vote.rationale],
        )
        self.counts["labels"] += 1
        self.label_counts.setdefault(vote.field, Counter())[vote.value] += 1

    def _next_position(self, item_id: str) -> int:
        query = "SELECT coalesce(max(position) + 1, 0) FROM passages WHERE item_id = ?"
        position: int = self.conn.execute(query, [item_id]).fetchone()[0]
        return position


def _at(where: Where, reason: str, field_name: str) -> BadInput:
    return BadInput(reason, path=where.path, line=where.line, field=field_name)


def question_id(item: Item) -> str:
    """The cluster of the item's units: its question within the data set, else the item itself."""
    return item.item_id if item.question_id is None else f"{item.dataset}:{item.question_id}"


def passage_id(item: Item, passage: Passage) -> str:
    """`item/source_pid`, or the first 16 hex digits of the sha256 of the NFC text."""
    if passage.source_id:
        return f"{item.item_id}/{passage.source_id}"
    text = unicodedata.normalize("NFC", passage.text)
    return f"{item.item_id}/{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def item_sha(item: Item) -> str:
    """Hash of what a prompt or a score can read of the item (not meta, which neither can)."""
    return _sha(
        [
            item.question_id,
            item.question,
            item.question_date,
            item.claim,
            item.reference_answers,
            item.options,
            item.correct,
            item.pair_id,
            item.polarity,
        ]
    )


def passage_sha(passage: Passage) -> str:
    """Hash of what a prompt can read of the passage."""
    return _sha([passage.text, passage.title, passage.date, passage.source])


def _sha(parts: list[Json]) -> str:
    return hashlib.sha256(canonical(parts).encode("utf-8", "surrogatepass")).hexdigest()
