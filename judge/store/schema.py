"""Whether the tables, views and triggers of a study are those that the migrations make.

SQLite runs the triggers and views of a file that somebody else made. A trigger on our tables could change labels while
they are written, and a view in the place of a table could show others than are stored. What is ours is read off the
migrations: they are applied to an empty database, and what is there after each of them is known.
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

# SQLite reads the type in any case, and runs a trigger whatever its name is. Only the indexes that it makes by itself, for
# PRIMARY KEY and UNIQUE, have no definition.
_OBJECTS = "SELECT lower(type), name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
_UNIQUE = """
    SELECT i.name FROM sqlite_master AS t JOIN pragma_index_list(t.name) AS i
    WHERE lower(t.type) = 'table' AND i."unique" AND i.origin = 'c'
"""
_WORD = re.compile(r"'[^']*'|\w+|[^\s\w]")
_CONSTRAINTS = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"}
"""How a constraint of a whole table begins."""
_APPLIED = "_sqlite_migrations"


def check(conn: sqlite3.Connection, path: Path) -> None:
    """Raise StudyError, with the name, for a foreign trigger or unique index on our tables and for a replaced table or view.

    Extra tables, views, indexes and full-text tables are fine.
    """
    ours, _ = _ours()
    found = [(kind, name, name.lower(), on.lower(), sql) for kind, name, on, sql in conn.execute(_OBJECTS)]
    tables = {key for key, states in ours.items() if states["table"] or states["view"]} | {_APPLIED}
    # Deletions of ours reach an extra table that refers to one of ours, and so its triggers.
    linked = {key for kind, name, key, _, sql in found if _is_plain_table(kind, sql) and _refers(conn, name)}
    unique = {name for (name,) in conn.execute(_UNIQUE)}
    for kind, name, key, on, sql in found:
        if _definition(kind, sql) in ours[key][kind] if key in ours else key == _APPLIED and kind == "table":
            continue
        if key in tables and kind in ("table", "view"):
            raise StudyError(
                f"{path}: its {kind} '{name}' is not the one that adjudge makes; a study from somebody else could show or "
                "keep other labels than those that are given. Ask for the study as it was made, or use a backup"
            )
        # A unique index makes SQLite drop rows that it calls the same.
        changes = (kind == "trigger" and on in tables | linked) or (
            kind == "index" and on in ours and name in unique
        )
        if changes:
            raise StudyError(
                f"{path}: its {kind} '{name}' on '{on}' is not one of adjudge's and could change labels while they are "
                f"written; if it is yours, remove it with SQLite's DROP {kind.upper()}"
            )


def check_complete(conn: sqlite3.Connection, path: Path) -> None:
    """Raise StudyError, with the name, for a table, view, trigger or index of ours that a migrated study lacks.

    Making it again would not bring back what was changed unseen while, say, the trigger that keeps a log append-only was gone.
    """
    there = {name.lower() for (name,) in conn.execute("SELECT name FROM sqlite_master")}
    _, last = _ours()
    for name, kind in last.items():
        if name.lower() not in there:
            raise StudyError(
                f"{path}: its {kind} '{name}' was removed, so that its rows could be changed unseen since; ask for the study "
                "as it was made, or use a backup"
            )


def distrust(conn: sqlite3.Connection) -> None:
    """Let the views, triggers and constraints of the file call only functions without side effects.

    SQLite 3.38 to 3.40 (Debian 12) wrongly count their JSON functions among the others and would not open any study.
    There only `check` protects; the functions without side effects are then all that Python's SQLite has, anyway.
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
    """What the migrations make.

    First: name in lower case -> kind -> the definitions that an object of ours has had, from the first migration to the
    last. Second: name -> kind of what is there after the last.
    """
    seen: dict[str, dict[str, set[tuple[str, ...]]]] = {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.execute("BEGIN")
        for of, folder in migrations.SETS.items():
            for name in migrations.NAMES[of]:
                migrations.execute(folder / f"{name}.sql", made)
                for kind, object_name, _, sql in made.execute(_OBJECTS):
                    states = seen.setdefault(object_name.lower(), defaultdict(set))
                    states[kind].add(_definition(kind, sql))
        last = {name: kind for kind, name, _, _ in made.execute(_OBJECTS)}
    return seen, last


# A program may open many studies, and nearly all of their definitions are the same.
@lru_cache(maxsize=1024)
def _definition(kind: str, sql: str) -> tuple[str, ...]:
    """The words of a definition without quotes around names, which SQLite adds when it renames a table.

    A table's constraints come last, sorted: in studies of 0.2.0 columns that a migration added stand behind them. The columns
    keep their order, because rows are inserted by it.
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
    own = [column for column in columns if column not in constraints]
    return (*outside, *map(" ".join, own), *sorted(map(" ".join, constraints)))


def _is_plain_table(kind: str, sql: str) -> bool:
    return kind == "table" and re.match(r"\s*CREATE\s+VIRTUAL\b", sql, re.IGNORECASE) is None


def _refers(conn: sqlite3.Connection, table: str) -> bool:
    quoted = table.replace('"', '""')
    return conn.execute(f'PRAGMA foreign_key_list("{quoted}")').fetchone() is not None
