"""Open a study for annotation, and check the names of annotators."""

import sqlite3
from pathlib import Path

from judge.errors import UsageError
from judge.joiners import drop_needed
from judge.store import Store

ADJUDICATED = "adjudicated"
RESERVED = ("gold", ADJUDICATED, "decided", "majority", "people", "all")
"""The reserved names, which cannot be names of people."""


def open_study(path: Path | str) -> Store:
    """Open an existing study. Raises StudyError if it cannot be opened."""
    return Store.open(path, create=False)


def check_name(name: str) -> None:
    """Raise UsageError if a person's name is reserved or malformed."""
    # Options list several annotators in one word, separated by commas.
    printable = drop_needed(name).isprintable()
    if name in RESERVED or name != name.strip() or not printable or not name or "," in name:
        raise UsageError(
            f"'{name}' cannot be an annotator's name: use one line without commas, and none of the reserved names {', '.join(RESERVED)}"
        )


def ensure_human(conn: sqlite3.Connection, names: list[str]) -> None:
    """Add people to the study as human annotators. Raises UsageError for an invalid name, and for the name of a
    judge.
    """
    for name in names:
        if not check_human(conn, name):
            conn.execute("INSERT INTO annotators VALUES (?, 'human', '{}')", [name])


def ensure_adjudicated(conn: sqlite3.Connection) -> None:
    """Add the annotator of a lead's decisions to the study."""
    conn.execute("INSERT OR IGNORE INTO annotators VALUES (?, 'adjudicated', '{}')", [ADJUDICATED])


def check_human(conn: sqlite3.Connection, name: str) -> bool:
    """Return whether a person with this name exists. Raises UsageError under the same conditions as
    `ensure_human`.
    """
    row = conn.execute("SELECT kind FROM annotators WHERE annotator_id = ?", [name]).fetchone()
    if row is None:
        check_name(name)
    elif row[0] != "human":
        raise UsageError(
            f"this study already has '{row[0]}' labels under the name '{name}'; choose another name for the person"
        )
    return row is not None
