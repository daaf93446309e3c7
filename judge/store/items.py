"""Store imported items. Each import is one transaction, and stored rows are never replaced."""

import hashlib
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from judge.errors import BadInput
from judge.files import stop
from judge.store.answers import AnswerAdder
from judge.store.corrections import ChangedValue, as_text
from judge.store.imports import Adder, ImportInfo, ImportReport, add_rows, check_storable, error_at
from judge.store.study import Store, content_sha, dumps
from judge.store.tool_scores import ToolScores
from judge.types import AnswerRow, Correct, Item, Passage, Row, Where

_READ = (
    "question_id", "question", "question_date", "claim", "reference_answers", "options", "correct", "pair_id", "polarity",
)  # fmt: skip
# Number of ids looked up by one statement: SQLite limits the number of placeholders.
_CHUNK = 500
# An original claim and a counter claim of the same pair form a unit as soon as both are stored.
_PAIR_UNITS = """
    INSERT INTO units (unit_id, kind, item_id, question_id, span)
    SELECT o.item_id || '~' || c.item_id, 'pair', o.item_id, o.question_id, json_object('counter', c.item_id)
    FROM items AS i JOIN items AS o ON o.dataset = i.dataset AND o.pair_id = i.pair_id
    JOIN items AS c ON c.dataset = i.dataset AND c.pair_id = i.pair_id
    WHERE i.item_id = ? AND o.polarity = 'original' AND c.polarity = 'counter'
      AND i.item_id IN (o.item_id, c.item_id)
"""


def add_items(
    store: Store,
    rows: Iterable[Row],
    info: ImportInfo,
    skipped: list[BadInput],
    bad: Callable[[BadInput], None] = stop,
    correct: Correct | None = None,
) -> ImportReport:
    """Store the items in `rows` in one transaction.

    A row that is identical to a stored one is counted as unchanged. A text or gold label that differs from the
    stored one is bad, or a correction; see `add_rows`. Everything else of its row is stored.
    """
    adder = _ItemAdder(store.conn)
    return add_rows(
        store, adder, rows, info, skipped, bad, lambda conn: adder.keep_scores(info.files), correct
    )


class _ItemAdder(Adder[Row]):
    """Adds items with their passages, answers and labels, and with scores from other tools."""

    adds = ("items", "passages", "answers", "empty", "labels")

    def __init__(self, conn: sqlite3.Connection) -> None:
        super().__init__(conn)
        self._answers = AnswerAdder(conn, self.import_id, ways="--system NAME or a column (system, model)")
        self._answers.votes.differing = self.differing
        self._scores = ToolScores(conn)

    def add(self, row: Row) -> None:
        """Add an item with its passages, answers and labels. If the row is bad, nothing is stored."""
        if not row.item.answers:
            self._add_item(row)
            return
        # An answer is checked against the passages of its own row, so these are written first. The savepoint
        # removes them again if an answer is bad.
        counts, n_differing = self.counts.copy(), len(self.differing)
        self.conn.execute("SAVEPOINT answers_of_row")
        try:
            self._add_item(row)
            for answer in row.item.answers:
                self._answers.add(AnswerRow(answer, row.where))
        except BadInput:
            self.conn.execute("ROLLBACK TO answers_of_row")
            # Not replaced by the copy: the votes count in the same object.
            self.counts.clear()
            self.counts.update(counts)
            del self.differing[n_differing:]
            raise
        finally:
            self.conn.execute("RELEASE answers_of_row")
        self._count_answers(counts)
        for answer in row.item.answers:
            self._scores.add("answer", f"{answer.item}@{answer.system}@{answer.condition}", answer.scores)

    def _count_answers(self, before: Counter[str]) -> None:
        """Add the counts for the answers in the row.

        A row counts as unchanged only if its item, its passages and its answers are all unchanged.
        """
        new = self._answers.counts
        for name in ("answers", "empty", "labels"):
            self.counts[name] += new[name]
        brought = any(self.counts[name] > before[name] for name in self.adds)
        self.counts["unchanged"] = before["unchanged"] + (not brought)
        new.clear()

    def keep_scores(self, files: Mapping[str, str]) -> None:
        """Store the scores from other tools as runs."""
        self.counts["labels"] += self._scores.keep(files)

    def _add_item(self, row: Row) -> None:
        item, where = row.item, row.where
        check_storable(item, where)
        if item.polarity not in (None, "original", "counter"):
            raise error_at(where, f"'{item.polarity}' must be original or counter", "polarity")
        passages = [(passage_id(item, p), p, passage_sha(p)) for p in item.passages]
        units = self._units([item.item_id, *(pid for pid, _, _ in passages)])
        n_differing, values = len(self.differing), dict(zip(_READ, _item_cells(item), strict=True))
        new_item = self._is_new("item", item.item_id, item.item_id, item_sha(item), values, units, where)
        new: dict[str, tuple[Passage, str]] = {}
        for pid, passage, sha in passages:
            # The same passage twice in a row is one passage.
            if pid in new:
                if new[pid][1] != sha:
                    raise error_at(
                        where, f"two passages of this row have the id '{passage.source_id}'", "passages"
                    )
            elif self._is_new("passage", pid, item.item_id, sha, _passage_values(passage), units, where):
                new[pid] = passage, sha
        votes = [(item.item_id, v) for v in item.votes]
        votes += [(pid, v) for pid, p, _ in passages for v in p.votes]
        # A vote in a row with another text was given for that text, and not for the study's.
        differing = {d.id for d in self.differing[n_differing:]}
        if item.item_id in differing:
            differing |= {unit for unit, _ in votes}
        # Before anything is written, because two labels that differ make the row bad.
        unlabelled = [*new, item.item_id] if new_item else [*new]
        labels = self.votes.select_new(votes, where, unlabelled=unlabelled, differing=differing)
        self.datasets.add(item.dataset)
        if new_item:
            self._insert_item(item)
        if new:
            self._insert_passages(new, item, 0 if new_item else self._next_position(item.item_id))
        if labels:
            self.votes.insert(labels)
        self._scores.add("item", item.item_id, item.scores)
        for pid, passage, _ in passages:
            self._scores.add("passage", pid, passage.scores)
        if not (new_item or new or labels or len(self.differing) > n_differing):
            self.counts["unchanged"] += 1

    def _units(self, unit_ids: list[str]) -> dict[str, tuple[str, str]]:
        """Return {unit: (kind, item)} for those of the given units that are in the study."""
        stored: dict[str, tuple[str, str]] = {}
        for start in range(0, len(unit_ids), _CHUNK):
            chunk = unit_ids[start : start + _CHUNK]
            # Placeholders, not json_each, which truncates an id at a NUL.
            query = (
                f"SELECT unit_id, kind, item_id FROM units WHERE unit_id IN ({','.join('?' * len(chunk))})"
            )
            stored.update((row[0], (row[1], row[2])) for row in self.conn.execute(query, chunk))
        return stored

    def _is_new(
        self,
        kind: str,
        unit_id: str,
        item_id: str,
        sha: str,
        values: Mapping[str, str | None],
        units: Mapping[str, tuple[str, str]],
        where: Where,
    ) -> bool:
        """Return whether the item or passage is new.

        If it is stored with different content, the differing `values` are added to `differing`. Raises BadInput if
        its id belongs to another unit, or if this import has stored it with different content.
        """
        unit = units.get(unit_id)
        if unit is None:
            return True
        if unit != (kind, item_id):
            raise error_at(
                where,
                f"the id '{unit_id}' of this {kind} already belongs to another unit (of the kind {unit[0]}, in '{unit[1]}'), because "
                "the parts of an id are joined with '/'; give one of them another id",
                "id",
            )
        stored_sha, import_id, *stored = self.conn.execute(
            f"SELECT content_sha, import_id, {', '.join(values)} FROM {kind}s WHERE {kind}_id = ?", [unit_id]
        ).fetchone()
        if stored_sha == sha:
            return False
        if import_id == self.import_id:
            raise error_at(where, f"'{unit_id}' occurs twice in this import, with different content", "id")
        self.differing += [
            ChangedValue(kind, unit_id, name, as_text(old), new, where, sha)
            for (name, new), old in zip(values.items(), stored, strict=True)
            if as_text(old) != new
        ]
        return False

    def _insert_item(self, item: Item) -> None:
        self.conn.execute(
            "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                item.item_id,
                item.dataset,
                *_item_cells(item),
                dumps(item.meta),
                item_sha(item),
                self.import_id,
            ],
        )
        self.conn.execute(
            "INSERT INTO units (unit_id, kind, item_id, question_id) VALUES (?, 'item', ?, ?)",
            [item.item_id, item.item_id, question_id(item)],
        )
        if item.pair_id is not None:
            self.conn.execute(_PAIR_UNITS, [item.item_id])
        self.counts["items"] += 1

    def _insert_passages(self, new: Mapping[str, tuple[Passage, str]], item: Item, position: int) -> None:
        question = question_id(item)
        self.conn.executemany(
            "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (pid, item.item_id, n, p.title, p.text, p.date, p.source, dumps(p.meta), sha, self.import_id)
                for n, (pid, (p, sha)) in enumerate(new.items(), position)
            ],
        )
        self.conn.executemany(
            "INSERT INTO units (unit_id, kind, item_id, question_id, passage_id) "
            "VALUES (?, 'passage', ?, ?, ?)",
            [(pid, item.item_id, question, pid) for pid in new],
        )
        self.counts["passages"] += len(new)

    def _next_position(self, item_id: str) -> int:
        query = "SELECT coalesce(max(position) + 1, 0) FROM passages WHERE item_id = ?"
        position: int = self.conn.execute(query, [item_id]).fetchone()[0]
        return position


def _item_cells(item: Item) -> list[str | None]:
    """Return the values of the columns `_READ`. Lists and objects are stored as JSON."""
    values = [getattr(item, name) for name in _READ[1:]]
    return [question_id(item), *(dumps(v) if isinstance(v, list | dict) else v for v in values)]


def _passage_values(passage: Passage) -> dict[str, str | None]:
    return {name: getattr(passage, name) for name in ("text", "title", "date", "source")}


def question_id(item: Item) -> str:
    """Return the id of the cluster to which the item's units belong.

    The cluster is the question within the data set or, if the item has no question id, the item itself.
    """
    return item.item_id if item.question_id is None else f"{item.dataset}:{item.question_id}"


def passage_id(item: Item, passage: Passage) -> str:
    """Return the id `ITEM/PASSAGE`. If the passage has no id, PASSAGE is 16 hex digits of the sha256 of its text."""
    if passage.source_id:
        return f"{item.item_id}/{passage.source_id}"
    # The same text with composed or decomposed accents is one passage.
    text = unicodedata.normalize("NFC", passage.text)
    return f"{item.item_id}/{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def item_sha(item: Item) -> str:
    """Return the hash of the item's fields that a prompt or a score can read.

    `meta` is excluded, because neither a prompt nor a score reads it.
    """
    return content_sha([getattr(item, name) for name in _READ])


def passage_sha(passage: Passage) -> str:
    """Return the hash of the passage's fields that a prompt can read."""
    return content_sha([passage.text, passage.title, passage.date, passage.source])
