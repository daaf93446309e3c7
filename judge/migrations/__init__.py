"""The schema of a study, as sqlite-utils migrations (set `judge`): each is a file of SQL here, and they are applied in the
order of their names. Never edit one that has shipped.

The tables and their columns are described by docs/reference.py (the page "The study's schema"); the order of a study's
units is the rowid order of `units`, which is the order of import.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def names(folder: Path) -> tuple[str, ...]:
    """The migrations of a folder, in order."""
    return tuple(sorted(file.stem for file in folder.glob("m*.sql")))


NAMES = names(FOLDER)
SET = "judge"


def is_current(conn: sqlite3.Connection) -> bool:
    """Whether nothing is left to migrate; plain SQL, because sqlite_utils is slow to import."""
    return applied(conn) == list(NAMES)


def unknown(conn: sqlite3.Connection) -> list[str]:
    """Migrations of this set that the file has and this version has not: it was made by a newer one."""
    return [name for name in applied(conn) if name not in NAMES]


def applied(conn: sqlite3.Connection, of: str = SET) -> list[str]:
    """Names of the migrations of a set that the file has, in order; empty for a new file."""
    exists = conn.execute("SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'").fetchone()
    if not exists:
        return []
    query = "SELECT name FROM _sqlite_migrations WHERE migration_set = ? ORDER BY rowid"
    return [row[0] for row in conn.execute(query, [of])]


def migrate(conn: sqlite3.Connection) -> None:
    """Bring a study up to date."""
    perform(conn, SET, FOLDER, NAMES)


def perform(conn: sqlite3.Connection, of: str, folder: Path, files: Sequence[str]) -> None:
    """Apply the files of a set that are missing in one transaction: a kill or a second process finds all or nothing."""
    from sqlite_utils import Database, Migrations

    migrations = Migrations(of)
    for name in files:
        step: Callable[[Any], None] = partial(execute, folder / f"{name}.sql")
        migrations(name=name)(step)
    db = Database(conn)
    conn.execute("BEGIN IMMEDIATE")
    try:
        migrations.apply(db)
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def execute(file: Path, db: Any) -> None:
    """The statements of a file, with an empty line between them."""
    for statement in file.read_text("utf-8").split("\n\n"):
        db.execute(statement)
