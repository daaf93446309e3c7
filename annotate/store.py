"""A study opened for people's work, and the names that people can have."""

import sqlite3
from pathlib import Path

from judge.errors import UsageError
from judge.store import Store

ADJUDICATED = "adjudicated"
RESERVED = ("gold", ADJUDICATED, "decided", "majority", "people", "all")
"""Names that mean something else where annotators are named."""


def open_study(path: Path | str) -> Store:
    """Open a study that is there. Raises StudyError."""
    return Store.open(path, create=False)


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
