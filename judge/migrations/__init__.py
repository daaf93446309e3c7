"""The schema of a study, as sqlite-utils migrations (set `judge`): each is a file of SQL here, and they are applied in the
order of their names. Never edit one that was in a released version: add `m002_NAME.sql`.

`m001_baseline.sql` has all tables of a new study. `from_0_2_0.sql` turns a study of adjudge 0.2.0, which had other
migrations, into one that has the baseline. Studies of earlier versions are refused.

The tables and their columns are described by docs/reference.py (the page "The study's schema"); the order of a study's
units is the rowid order of `units`, which is the order of import.
"""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
STEP_FROM_0_2_0 = "from_0_2_0.sql"
MIGRATIONS_OF_0_2_0 = {"judge": ("m001_study", "m011_outside"), "annotate": ("m001_batches", "m007_separate")}
"""Set -> the first and the last of its migrations in adjudge 0.2.0, and so of a study that 0.2.0 opened."""


def names(folder: Path) -> tuple[str, ...]:
    """The migrations of a folder, in order."""
    return tuple(sorted(file.stem for file in folder.glob("m*.sql")))


NAMES = names(FOLDER)
SET = "judge"
SETS = {SET: FOLDER, "annotate": FOLDER.parents[1] / "annotate" / "migrations"}
"""The folder of each set, in the order in which they are applied: what a study may hold is read off them."""


def is_current(conn: sqlite3.Connection) -> bool:
    """Whether nothing is left to migrate; plain SQL, because sqlite_utils is slow to import."""
    return applied(conn) == list(NAMES)


def unknown(conn: sqlite3.Connection, of: str, files: Sequence[str]) -> list[str]:
    """Migrations of a set that the file has and this version does not have: a newer version made the file."""
    if is_of_0_2_0(conn, of):
        return []
    return [name for name in applied(conn, of) if name not in files]


def is_of_0_2_0(conn: sqlite3.Connection, of: str) -> bool:
    """Whether adjudge 0.2.0 made the tables of a set, and no later version has opened the study."""
    found = applied(conn, of)
    return bool(found) and (found[0], found[-1]) == MIGRATIONS_OF_0_2_0[of]


def is_too_old(conn: sqlite3.Connection) -> bool:
    """Whether a version before 0.2.0 made the tables of some set. All sets are looked at, because 0.2.0, which can still
    migrate such a study, does not open one whose other set is migrated already."""
    for of, (first, _) in MIGRATIONS_OF_0_2_0.items():
        if applied(conn, of)[:1] == [first] and not is_of_0_2_0(conn, of):
            return True
    return False


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
        # Inside the transaction: another process may have taken the step since this one looked.
        if is_of_0_2_0(conn, of):
            execute(folder / STEP_FROM_0_2_0, db)
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
