"""The schema of a study, as two sets of sqlite-utils migrations: `judge` (here) and `annotate` (`annotate/migrations`).

Each migration is a file of SQL, and they are applied in the order of their names. Never edit one that was in a released
version: add `mNNN_NAME.sql`. Every study has the tables of both sets, and one transaction brings both up to date: a kill at
any moment leaves the study as it was, which the older version still opens, or the migrated one.

`m001_baseline.sql` has all tables of a new study. `from_0_2_0.sql` turns a study of adjudge 0.2.0, which had other
migrations, into one that has the baseline. Studies of earlier versions are refused.

The tables and their columns are described by docs/reference.py (the page "The study's schema"); the order of a study's
units is the rowid order of `units`, which is the order of import.
"""

import json
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from judge.commands import command

FOLDER = Path(__file__).parent
STEP_FROM_0_2_0 = "from_0_2_0.sql"
MIGRATIONS_OF_0_2_0 = {"judge": ("m001_study", "m011_outside"), "annotate": ("m001_batches", "m007_separate")}
"""Set -> the first and the last of its migrations in adjudge 0.2.0, and so of a study that 0.2.0 opened."""


def names(folder: Path) -> tuple[str, ...]:
    """Return the migrations of a folder, in order."""
    return tuple(sorted(file.stem for file in folder.glob("m*.sql")))


SETS = {"judge": FOLDER, "annotate": FOLDER.parents[1] / "annotate" / "migrations"}
"""The folder of each set, in the order in which they are applied."""
NAMES = {of: names(folder) for of, folder in SETS.items()}
SOURCES = "m002_sources"
"""The migration of `annotate` that records where the labels of a study of 0.2.0 come from, which can change their status."""
MOST_LISTED = 20
"""Number of labels that are listed one by one; the table `label_changes` has all."""


def is_current(conn: sqlite3.Connection) -> bool:
    """Return whether nothing is left to migrate."""
    # sqlite_utils imports pandas, which costs every command a quarter of a second.
    return all(applied(conn, of) == list(expected) for of, expected in NAMES.items())


def unknown(conn: sqlite3.Connection) -> list[str]:
    """Return migrations that the file has and this version does not have: a newer version made the file."""
    return [
        name
        for of, expected in NAMES.items()
        # The migrations of 0.2.0 have other names, and are older and no newer ones.
        if not is_of_0_2_0(conn, of)
        for name in applied(conn, of)
        if name not in expected
    ]


def is_of_0_2_0(conn: sqlite3.Connection, of: str) -> bool:
    """Return whether adjudge 0.2.0 made the tables of a set, and no later version has opened the study."""
    names = applied(conn, of)
    # A study of an earlier version has the same first migration, and another last one.
    return bool(names) and (names[0], names[-1]) == MIGRATIONS_OF_0_2_0[of]


def is_too_old(conn: sqlite3.Connection) -> bool:
    """Return whether a version before 0.2.0 made the tables of some set.

    All sets are inspected: 0.2.0 can still migrate such a study, but it does not open one whose other set is already migrated.
    """
    for of, (first, _) in MIGRATIONS_OF_0_2_0.items():
        if applied(conn, of)[:1] == [first] and not is_of_0_2_0(conn, of):
            return True
    return False


def applied(conn: sqlite3.Connection, of: str = "judge") -> list[str]:
    """Return the names of a set's migrations that the file has, in order; empty for a new file."""
    exists = conn.execute("SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'").fetchone()
    if not exists:
        return []
    query = "SELECT name FROM _sqlite_migrations WHERE migration_set = ? ORDER BY rowid"
    return [row[0] for row in conn.execute(query, [of])]


def migrate(conn: sqlite3.Connection) -> list[str]:
    """Bring both sets up to date in one transaction: a kill or a second process leaves all or nothing.

    Returns a line for each label of a study of 0.2.0 whose status changes, for the user.
    """
    from sqlite_utils import Database, Migrations

    db = Database(conn)
    conn.execute("BEGIN IMMEDIATE")
    try:
        # Read inside the transaction: another process may have migrated the study in the meantime.
        before = applied(conn, "annotate")
        for of, folder in SETS.items():
            migrations = Migrations(of)
            for name in NAMES[of]:
                step: Callable[[Any], None] = partial(execute, folder / f"{name}.sql")
                migrations(name=name)(step)
            if is_of_0_2_0(conn, of):
                execute(folder / STEP_FROM_0_2_0, db)
            migrations.apply(db)
        # A new study has no labels whose status could change.
        changes = _changes(conn) if before and SOURCES not in before else []
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise
    return changes


def _changes(conn: sqlite3.Connection) -> list[str]:
    query = "SELECT unit_id, field, annotator_id, before, after FROM label_changes ORDER BY unit_id, annotator_id, field"
    rows = conn.execute(query).fetchall()
    lines = []
    for unit, field, who, *sides in rows[:MOST_LISTED]:
        before, after = (", ".join(json.loads(side).values()) or "unlabelled" for side in sides)
        lines.append(f"label '{field}' of '{unit}' by {who}: {before} in 0.2.0, {after} now")
    if rows:
        left = len(rows) - MOST_LISTED
        more = f" ({left} more are in the table label_changes)" if left > 0 else ""
        lines.append(
            f"{len(rows)} labels have another status now that sources are recorded{more}:\n"
            + command("annotate conflicts list")
        )
    return lines


def execute(file: Path, db: Any) -> None:
    """Execute the statements of a file, which are separated by an empty line."""
    # Not `executescript`, which commits the open transaction first.
    for statement in file.read_text("utf-8").split("\n\n"):
        db.execute(statement)
