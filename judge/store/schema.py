"""Check that a study has exactly the tables, views and triggers that the migrations create.

SQLite runs the triggers and views in any file, including a file from somebody else. A foreign trigger on our
tables could change labels while they are written, and a view in place of a table could show labels that
differ from the stored ones. The expected definitions come from the migrations, which are applied to an empty
database; the definitions after each of them are collected.
"""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from functools import cache, lru_cache
from pathlib import Path

from judge import migrations
from judge.errors import StudyError

# Types are compared in lower case and names not at all, because SQLite accepts any case and runs a trigger of any name.
# Only the indexes that SQLite makes itself, for PRIMARY KEY and UNIQUE, have no definition.
_OBJECTS = "SELECT lower(type), name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
_UNIQUE = """
    SELECT i.name FROM sqlite_master AS t JOIN pragma_index_list(t.name) AS i
    WHERE lower(t.type) = 'table' AND i."unique" AND i.origin = 'c'
"""
_WORD = re.compile(r"'[^']*'|\w+|[^\s\w]")
_CONSTRAINTS = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"}
"""The first words of a table constraint. Such a definition is not a column."""
_APPLIED = "_sqlite_migrations"


def check(conn: sqlite3.Connection, path: Path) -> None:
    """Raise StudyError if our tables have a foreign trigger or unique index, or if a table or view was replaced.

    Extra tables, views, ordinary indexes and full-text tables are accepted.
    """
    ours, _ = _ours()
    objects = [(kind, name, name.lower(), on.lower(), sql) for kind, name, on, sql in conn.execute(_OBJECTS)]
    tables = {key for key, states in ours.items() if states["table"] or states["view"]} | {_APPLIED}
    # A deletion in our tables cascades to an extra table that references one of them, and runs its triggers.
    linked = {
        key for kind, name, key, _, sql in objects if _is_plain_table(kind, sql) and _refers(conn, name)
    }
    unique = {name for (name,) in conn.execute(_UNIQUE)}
    for kind, name, key, on, sql in objects:
        if _definition(kind, sql) in ours[key][kind] if key in ours else key == _APPLIED and kind == "table":
            continue
        if key in tables and kind in ("table", "view"):
            raise StudyError(
                f"{path}: its {kind} '{name}' is not the one that adjudge creates; a study from somebody else could show or "
                "store labels that differ from the real ones. Ask for the original study, or use a backup"
            )
        # A unique index makes INSERT OR IGNORE drop rows that it considers equal.
        changes = (kind == "trigger" and on in tables | linked) or (
            kind == "index" and on in ours and name in unique
        )
        if changes:
            raise StudyError(
                f"{path}: its {kind} '{name}' on '{on}' was not created by adjudge and could change labels while they are "
                f"written; if it is yours, remove it with SQLite's DROP {kind.upper()}"
            )


def check_complete(conn: sqlite3.Connection, path: Path) -> None:
    """Raise StudyError if a migrated study lacks one of our tables, views, triggers or indexes.

    The missing object is not created again. For example, while the trigger that keeps a log append-only was
    missing, rows could have been changed unnoticed.
    """
    names = {name.lower() for (name,) in conn.execute("SELECT name FROM sqlite_master")}
    _, last = _ours()
    for name, kind in last.items():
        if name.lower() not in names:
            raise StudyError(
                f"{path}: its {kind} '{name}' was removed, so its rows may have been changed unnoticed; ask for the original study, "
                "or use a backup"
            )


def distrust(conn: sqlite3.Connection) -> None:
    """Restrict the views, triggers and constraints of the file to functions without side effects.

    SQLite 3.38 to 3.40 (Debian 12) wrongly class their JSON functions as unsafe and could not open any study.
    With these versions, only `check` protects the study. Python's SQLite has no functions with side effects
    anyway.
    """
    if _json_is_usable():
        conn.execute("PRAGMA trusted_schema = OFF")


@cache
def _json_is_usable() -> bool:
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute("PRAGMA trusted_schema = OFF")
        made.execute("CREATE VIEW probe AS SELECT json_valid('1') AS is_json")
        try:
            made.execute("SELECT is_json FROM probe")
        except sqlite3.OperationalError:
            return False
    return True


@cache
def _ours() -> tuple[Mapping[str, Mapping[str, set[tuple[str, ...]]]], Mapping[str, str]]:
    """Return the definitions that the migrations create.

    The first mapping goes from name in lower case to kind to every definition that this object has had, from
    the first migration to the last. The second goes from name to kind after the last migration.
    """
    seen: dict[str, dict[str, set[tuple[str, ...]]]] = {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.execute("BEGIN")
        # After every step, because a study of an earlier version is checked before it is migrated.
        for of, folder in migrations.SETS.items():
            for name in migrations.NAMES[of]:
                migrations.execute(folder / f"{name}.sql", made)
                for kind, object_name, _, sql in made.execute(_OBJECTS):
                    states = seen.setdefault(object_name.lower(), defaultdict(set))
                    states[kind].add(_definition(kind, sql))
        last = {name: kind for kind, name, _, _ in made.execute(_OBJECTS)}
    return seen, last


# A program may open many studies, and almost all of their definitions are equal.
@lru_cache(maxsize=1024)
def _definition(kind: str, sql: str) -> tuple[str, ...]:
    """Return the tokens of a definition, without the quotes around names that SQLite adds when it renames a table.

    A table's constraints come last, sorted, because in studies made by adjudge 0.2.0 columns added by a
    migration come after them. The columns keep their order, because rows are inserted by position.
    """
    words = _WORD.findall(sql.replace('"', " "))
    if kind != "table":
        return tuple(words)
    outside: list[str] = []
    columns: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth -= word == ")"
        if depth == 0:
            outside.append(word)
        elif depth == 1 and word == ",":
            columns.append([])
        else:
            columns[-1].append(word)
        depth += word == "("
    constraints = [column for column in columns if column and column[0].upper() in _CONSTRAINTS]
    plain = [column for column in columns if column not in constraints]
    return (*outside, *map(" ".join, plain), *sorted(map(" ".join, constraints)))


def _is_plain_table(kind: str, sql: str) -> bool:
    return kind == "table" and re.match(r"\s*CREATE\s+VIRTUAL\b", sql, re.IGNORECASE) is None


def _refers(conn: sqlite3.Connection, table: str) -> bool:
    quoted = table.replace('"', '""')
    return conn.execute(f'PRAGMA foreign_key_list("{quoted}")').fetchone() is not None
