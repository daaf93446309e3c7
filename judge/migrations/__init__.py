"""The schema of a study.

Two sets of sqlite-utils migrations define the schema: `judge` (in this folder) and `annotate` (in
`annotate/migrations`).

Each migration is an SQL file. Migrations are applied in the order of their names. Never edit a migration that
was in a released version; add a new file `mNNN_NAME.sql` instead. Every study has the tables of both sets,
and both sets are applied in one transaction. If the process is killed, the study is therefore either
unchanged, so that the older version can still open it, or completely migrated.

`m001_baseline.sql` creates all tables of a new study. adjudge 0.2.0 had other migrations; `from_0_2_0.sql`
converts its studies to the baseline. Studies from earlier versions are rejected.

The tables and columns are documented on the page "The study's schema" (docs/reference.py). The units of a
study are ordered by their rowid in `units`, which is the order of import.
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
"""Maps each set to its first and last migrations in adjudge 0.2.0.

Every study that was opened by 0.2.0 has both migrations.
"""


def names(folder: Path) -> tuple[str, ...]:
    """Return the names of the migrations in a folder, in order."""
    return tuple(sorted(file.stem for file in folder.glob("m*.sql")))


SETS = {"judge": FOLDER, "annotate": FOLDER.parents[1] / "annotate" / "migrations"}
"""Maps each set to its folder, in the order in which the sets are applied."""
NAMES = {of: names(folder) for of, folder in SETS.items()}
SOURCES = "m002_sources"
"""The migration in `annotate` that records where the labels in a study from 0.2.0 came from.

This can change the labels' status.
"""
MOST_LISTED = 20
"""The maximum number of changed labels that are listed. The table `label_changes` contains all of them."""


def is_current(conn: sqlite3.Connection) -> bool:
    """Return whether all migrations have been applied."""
    # sqlite_utils imports pandas, which costs every command a quarter of a second.
    return all(list_applied(conn, of) == list(expected) for of, expected in NAMES.items())


def unknown(conn: sqlite3.Connection) -> list[str]:
    """Return the names of the migrations in a study's file that this version of adjudge does not know.

    There are such migrations only if a newer version created the file.
    """
    return [
        name
        for of, expected in NAMES.items()
        # The migrations of 0.2.0 have other names, but they are older, not newer.
        if not is_of_0_2_0(conn, of)
        for name in list_applied(conn, of)
        if name not in expected
    ]


def is_of_0_2_0(conn: sqlite3.Connection, of: str) -> bool:
    """Return whether adjudge 0.2.0 created the tables in a set, and no later version has opened the study
    since.
    """
    names = list_applied(conn, of)
    # A study from an earlier version has the same first migration, but a different last migration.
    return bool(names) and (names[0], names[-1]) == MIGRATIONS_OF_0_2_0[of]


def is_too_old(conn: sqlite3.Connection) -> bool:
    """Return whether a version before 0.2.0 created the tables in one of the sets.

    All sets are checked before any set is migrated. Once a newer version has migrated one set, 0.2.0 can no
    longer migrate the study.
    """
    for of, (first, _) in MIGRATIONS_OF_0_2_0.items():
        if list_applied(conn, of)[:1] == [first] and not is_of_0_2_0(conn, of):
            return True
    return False


def list_applied(conn: sqlite3.Connection, of: str = "judge") -> list[str]:
    """Return the names of a set's migrations that were applied to the file, in order. A new file has none."""
    exists = conn.execute("SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'").fetchone()
    if not exists:
        return []
    query = "SELECT name FROM _sqlite_migrations WHERE migration_set = ? ORDER BY rowid"
    return [row[0] for row in conn.execute(query, [of])]


def migrate(conn: sqlite3.Connection) -> list[str]:
    """Apply the missing migrations in both sets. One transaction ensures that no study is migrated partially.

    Returns messages for the user. After the migration of a study from 0.2.0, they list the labels that
    changed.
    """
    from sqlite_utils import Database, Migrations

    db = Database(conn)
    conn.execute("BEGIN IMMEDIATE")
    try:
        # This is read inside the transaction, because another process may have migrated the study in the
        # meantime.
        before = list_applied(conn, "annotate")
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
        lines.append(f"{who}'s label for '{field}' of '{unit}' was {before} in 0.2.0 and is now {after}")
    if rows:
        left = len(rows) - MOST_LISTED
        more = f" ({left} more are listed in the table label_changes)" if left > 0 else ""
        lines.append(
            f"because label sources are now recorded, {len(rows)} labels have a different status{more}; to "
            "list conflicting labels:\n" + command("annotate conflicts list")
        )
    return lines


def execute(file: Path, db: Any) -> None:
    """Execute the statements in a file, which are separated by empty lines."""
    # `executescript` is not used, because it commits the open transaction first.
    for statement in file.read_text("utf-8").split("\n\n"):
        db.execute(statement)
