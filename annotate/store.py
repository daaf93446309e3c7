"""A study opened for people's work: judge's store with the tables of the human half."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

from annotate import migrations
from judge.errors import UsageError
from judge.store import Store
from judge.store.study import explained

ADJUDICATED = "adjudicated"
RESERVED = ("gold", ADJUDICATED, "decided", "majority", "people", "all")
"""Names that mean something else where annotators are named."""


MOST_LISTED = 20
"""Labels that are listed one by one; the table `label_changes` has all."""


def open_study(path: Path | str, told: Callable[[str], None] = lambda line: None) -> Store:
    """Open a study that is there, with the tables of batches and events; `told` gets a line for each label of a study of
    0.2.0 whose status changes by that. Raises StudyError."""
    store = Store.open(path, create=False)
    try:
        with explained(store.path):
            if migrations.ensure(store.conn, store.path):
                _tell_changes(store, told)
    except BaseException:
        store.close()
        raise
    return store


def _tell_changes(store: Store, told: Callable[[str], None]) -> None:
    query = "SELECT unit_id, field, annotator_id, before, after FROM label_changes ORDER BY unit_id, annotator_id, field"
    rows = store.conn.execute(query).fetchall()
    for unit, field, who, *sides in rows[:MOST_LISTED]:
        before, after = (", ".join(json.loads(side).values()) or "unlabelled" for side in sides)
        told(f"label '{field}' of '{unit}' by {who}: {before} in 0.2.0, {after} now")
    if rows:
        more = (
            f" ({len(rows) - MOST_LISTED} more are in the table label_changes)"
            if len(rows) > MOST_LISTED
            else ""
        )
        told(
            f"{len(rows)} labels have another status now that sources are recorded{more}:\nannotate conflicts list"
        )


def check_name(name: str) -> None:
    """Raises UsageError for a name that a person cannot have, because it would be read as something else."""
    if name in RESERVED or name != name.strip() or not name.isprintable() or not name or "," in name:
        raise UsageError(
            f"'{name}' cannot be an annotator's name: one line without commas, and none of {', '.join(RESERVED)}"
        )


def ensure_human(conn: sqlite3.Connection, names: list[str]) -> None:
    """Make annotators of kind human. Raises UsageError for a bad name or one that is somebody else's."""
    for name in names:
        if not check_human(conn, name):
            conn.execute("INSERT INTO annotators VALUES (?, 'human', '{}')", [name])


def check_human(conn: sqlite3.Connection, name: str) -> bool:
    """Whether a person of this name is there. Raises UsageError as `ensure_human`."""
    found = conn.execute("SELECT kind FROM annotators WHERE annotator_id = ?", [name]).fetchone()
    if found is None:
        check_name(name)
    elif found[0] != "human":
        raise UsageError(f"'{name}' is a {found[0]} in this study; people need another name")
    return found is not None
