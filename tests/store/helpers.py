"""Items into a study and back out of it."""

import functools
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from judge.errors import BadInput
from judge.importers import base
from judge.importers.importing import import_files
from judge.store import Store
from judge.store.imports import ImportInfo, ImportReport
from judge.store.items import add_items
from judge.types import AnnotatorKind, Item, Passage, Row, Vote, Where


@functools.cache
def _nothing() -> bytes:
    with Store.open(":memory:") as store:
        return store.conn.serialize()


def empty() -> Store:
    """A new study in memory, without the time that its migrations take."""
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.deserialize(_nothing())
    conn.execute("PRAGMA foreign_keys = ON")
    return Store(conn, Path(":memory:"))


@contextmanager
def without_trigger(conn: sqlite3.Connection, name: str) -> Iterator[None]:
    """A change that a trigger of ours forbids, as somebody makes it who does not want it to be seen."""
    [definition] = conn.execute("SELECT sql FROM sqlite_master WHERE name = ?", [name]).fetchone()
    conn.execute(f"DROP TRIGGER {name}")
    yield
    conn.execute(definition)


def add(store: Store, items: Sequence[Item], *, skip: bool = False) -> ImportReport:
    """Store items as if they stood on the lines of a file `rows.jsonl`."""
    skipped: list[BadInput] = []

    def bad(error: BadInput) -> None:
        if not skip:
            raise error
        skipped.append(error)

    rows = (Row(item, Where("rows.jsonl", n)) for n, item in enumerate(items, 1))
    return add_items(store, rows, ImportInfo("test", {"rows.jsonl": "0" * 64}), skipped, bad)


def import_jsonl(db: Path, *paths: Path, skip_bad: bool = False) -> list[tuple[list[str], ImportReport]]:
    """`judge items import jsonl PATHS`."""
    return import_files(db, "jsonl", base.get("jsonl"), paths, base.Options(), skip_bad)


def dump(store: Store) -> list[str]:
    """Everything in the study, as SQL, times included."""
    return list(store.conn.iterdump())


def stored(conn: sqlite3.Connection) -> list[Item]:
    """Every item as it was given to the store, in order."""
    items = []
    for row in _dicts(conn, "SELECT * FROM items ORDER BY rowid"):
        dataset, item_id = row["dataset"], row["item_id"]
        own_question = row["question_id"] == item_id
        items.append(
            Item(
                source_id=item_id.removeprefix(f"{dataset}:"),
                dataset=dataset,
                question_id=None if own_question else row["question_id"].removeprefix(f"{dataset}:"),
                question=row["question"],
                question_date=row["question_date"],
                claim=row["claim"],
                reference_answers=_loads(row["reference_answers"]),
                options=_loads(row["options"]),
                correct=row["correct"],
                pair_id=row["pair_id"],
                polarity=row["polarity"],
                meta=_loads(row["meta"]),
                votes=_votes(conn, item_id),
                passages=[_passage(conn, p) for p in _passages(conn, item_id)],
            )
        )
    return items


def _passages(conn: sqlite3.Connection, item_id: str) -> Iterable[dict[str, str]]:
    return _dicts(conn, "SELECT * FROM passages WHERE item_id = ? ORDER BY position", item_id)


def _passage(conn: sqlite3.Connection, row: dict[str, str]) -> Passage:
    return Passage(
        text=row["text"],
        source_id=row["passage_id"].removeprefix(f"{row['item_id']}/"),
        title=row["title"],
        date=row["date"],
        source=row["source"],
        meta=_loads(row["meta"]),
        votes=_votes(conn, row["passage_id"]),
    )


def _votes(conn: sqlite3.Connection, unit_id: str) -> list[Vote]:
    query = (
        "SELECT l.field, l.value, l.annotator_id, a.kind, l.rationale FROM labels AS l "
        "JOIN annotators AS a USING (annotator_id) WHERE l.unit_id = ? ORDER BY l.annotator_id, l.field"
    )
    rows = conn.execute(query, [unit_id])
    return [Vote(field, value, who, AnnotatorKind(kind), reason) for field, value, who, kind, reason in rows]


def _dicts(conn: sqlite3.Connection, query: str, *values: str) -> list[dict[str, str]]:
    cursor = conn.execute(query, values)
    names = [c[0] for c in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _loads(text: str | None) -> object:
    return None if text is None else json.loads(text)
