"""Listed passages as passages of their own item: what a retriever finds for a claim can then be labelled with it.

A list may hold passages of other items. A unit is a passage with its item, so such an entry is no unit yet:
`attach` gives the item a copy, known by its content. The list itself stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from judge.store.imports import Adder, ImportInfo, ImportReport, add_rows
from judge.store.study import Store, dumps

LISTED = (
    "FROM rankings AS r JOIN passages AS p ON p.passage_id = r.passage_id "
    "LEFT JOIN passages AS o ON o.item_id = r.item_id AND o.content_sha = p.content_sha"
)
"""Entries `r` of rankings, the listed passage `p`, and the item's own copy `o` (null: none)."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A passage that an item's list holds and the item has not."""

    item_id: str
    passage_id: str


def attach(store: Store, ranking: tuple[str, str], k: int, dataset: str | None = None) -> ImportReport:
    """Give every item a copy of the first k passages of its list that it has not, in one transaction.

    Gold labels are not copied: they speak of the passage with its first item.
    """
    info = ImportInfo("rankings attach", {}, dataset, {"ranking": " ".join(ranking), "k": str(k)})
    return add_rows(store, _CopyAdder(store.conn), _missing(store, ranking, k, dataset), info, [])


def _missing(store: Store, ranking: tuple[str, str], k: int, dataset: str | None) -> Iterator[Listed]:
    query = (
        f"SELECT r.item_id, min(r.passage_id) {LISTED} WHERE r.name = ? AND r.stage = ? AND r.rank <= ? "
        "AND o.passage_id IS NULL AND (? IS NULL OR r.item_id IN (SELECT item_id FROM items WHERE dataset = ?)) "
        "GROUP BY r.item_id, p.content_sha ORDER BY r.item_id, min(r.rank)"
    )
    values = [*ranking, k, dataset, dataset]
    # Read whole first: what is added would else change what is read.
    yield from [Listed(*row) for row in store.conn.execute(query, values).fetchall()]


class _CopyAdder(Adder[Listed]):
    adds = ("passages",)

    def add(self, row: Listed) -> None:
        """Copy one passage."""
        title, text, date, source, sha = self.conn.execute(
            "SELECT title, text, date, source, content_sha FROM passages WHERE passage_id = ?",
            [row.passage_id],
        ).fetchone()
        own = f"{row.item_id}/{sha[:16]}"
        position = "(SELECT coalesce(max(position) + 1, 0) FROM passages WHERE item_id = ?2)"
        meta = dumps({"copy_of": row.passage_id})
        self.conn.execute(
            f"INSERT INTO passages VALUES (?1, ?2, {position}, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            [own, row.item_id, title, text, date, source, meta, sha, self.import_id],
        )
        self.conn.execute(
            "INSERT INTO units (unit_id, kind, item_id, question_id, passage_id) "
            "SELECT ?1, 'passage', item_id, question_id, ?1 FROM items WHERE item_id = ?2",
            [own, row.item_id],
        )
        self.counts["passages"] += 1
        self.datasets.add(row.item_id.partition(":")[0])
