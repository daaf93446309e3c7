"""Check that a study has the tables, views and triggers that the migrations create, and no triggers from
elsewhere.

SQLite executes the triggers and views in every file, including an untrusted one. A trigger that adjudge did
not create could change the labels in our tables while they are written, and a view that replaces a table
could show labels that differ from the stored labels. The expected definitions are collected by applying the
migrations to an empty database, one after the other.
"""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache, lru_cache
from pathlib import Path

from judge import migrations
from judge.errors import StudyError

# Types are compared in lower case, and triggers with any name are compared, because SQLite accepts types in
# any case and runs triggers with any name. Only the indexes that SQLite makes itself, for PRIMARY KEY and
# UNIQUE, have no definition. A definition is cast, because SQLite also reads one that is stored as a blob.
_OBJECTS = "SELECT lower(type), name, tbl_name, CAST(sql AS TEXT) FROM sqlite_master WHERE sql IS NOT NULL"
# An index that is more than a list of columns affects every row that is written. UNIQUE makes INSERT OR IGNORE drop
# rows that it considers equal. Expressions (cid -2) and conditions are computed, however much memory they need, and
# a collation that Python does not have is an error.
_ACTIVE_INDEXES = """
    SELECT DISTINCT i.name
    FROM sqlite_master AS t JOIN pragma_index_list(t.name) AS i JOIN pragma_index_xinfo(i.name) AS x
    WHERE lower(t.type) = 'table' AND i.origin = 'c'
        AND (i."unique" OR i.partial OR x.cid = -2 OR x.coll NOT IN ('BINARY', 'NOCASE', 'RTRIM'))
"""
# Only ASCII's spaces separate words. SQLite reads a no-break space as a letter of a name.
_WORD = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|\w+|[^\s\w]""", re.ASCII)
_QUOTED_NAME = re.compile(r'"([a-z0-9_]+)"')
_CONSTRAINTS = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"}
"""The first words of table constraints, which distinguish them from columns."""
_APPLIED = "_sqlite_migrations"


def check(conn: sqlite3.Connection, path: Path) -> None:
    """Raise StudyError if the study was changed in a way that could alter labels or show wrong ones.

    Such changes are a replaced table or view of adjudge, and a trigger that adjudge did not create on its tables.
    The same applies to an index that is unique, has a condition, or contains more than columns. Additional tables,
    views, ordinary indexes and full-text tables are accepted.
    """
    ours, _ = _ours(_steps())
    objects = [(kind, name, name.lower(), on.lower(), sql) for kind, name, on, sql in conn.execute(_OBJECTS)]
    tables = {key for key, states in ours.items() if states["table"] or states["view"]} | {_APPLIED}
    # A deletion in our tables cascades to an extra table that references one of them, and runs its triggers.
    linked = {
        key for kind, name, key, _, sql in objects if _is_plain_table(kind, sql) and _refers(conn, name)
    }
    active = {name for (name,) in conn.execute(_ACTIVE_INDEXES)}
    for kind, name, key, on, sql in objects:
        if _definition(kind, sql) in ours[key][kind] if key in ours else key == _APPLIED and kind == "table":
            continue
        if key in tables and kind in ("table", "view"):
            raise StudyError(
                f"{path}: the {kind} '{name}' differs from the definition that adjudge creates, so it could "
                "show or store wrong labels; ask for the original study, or use a backup"
            )
        changes = (kind == "trigger" and on in tables | linked) or (
            kind == "index" and on in ours and name in active
        )
        if changes:
            raise StudyError(
                f"{path}: the {kind} '{name}' on '{on}' was not created by adjudge and could change labels "
                f"while they are written; if you have added it, remove it with SQLite's DROP {kind.upper()}"
            )


def check_complete(conn: sqlite3.Connection, path: Path) -> None:
    """Raise StudyError if a migrated study lacks one of our tables, views, triggers or indexes.

    A missing object is not created again, because it may have been missing while data were written. For
    example, without the trigger that makes a log append-only, rows could have been changed.
    """
    # Another object with the same name is not enough, and neither is the definition of an older version.
    there = {(kind, name.lower(), _definition(kind, sql)) for kind, name, _, sql in conn.execute(_OBJECTS)}
    _, last = _ours(_steps())
    for kind, name, definition in last:
        if (kind, name, definition) not in there:
            raise StudyError(
                f"{path}: the {kind} '{name}' was removed or changed, so rows may have been changed unnoticed; "
                "ask for the original study, or use a backup"
            )


def distrust(conn: sqlite3.Connection) -> None:
    """Allow only functions without side effects in the file's views, triggers and constraints.

    SQLite 3.38 to 3.40 (Debian 12) wrongly treats its JSON functions as unsafe. With this restriction, these
    versions could not open any study. It is therefore not set for these versions, and the study is protected
    only by `check`. This is acceptable, because Python's SQLite has no functions with side effects.
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


def _steps() -> tuple[Path, ...]:
    """Return the files of all migrations, in the order in which they are applied."""
    return tuple(
        folder / f"{name}.sql" for of, folder in migrations.SETS.items() for name in migrations.NAMES[of]
    )


@cache
def _ours(
    steps: tuple[Path, ...],
) -> tuple[Mapping[str, Mapping[str, set[tuple[str, ...]]]], Sequence[tuple[str, str, tuple[str, ...]]]]:
    """Return the definitions that the migrations create.

    The first result is {name in lower case: {kind: definitions}}. It contains the object's definitions after
    each migration. The second result has (kind, name in lower case, definition) after the last migration.
    """
    seen: dict[str, dict[str, set[tuple[str, ...]]]] = {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.execute("BEGIN")
        # After every step, because a study of an earlier version is checked before it is migrated.
        for step in steps:
            migrations.execute(step, made)
            for kind, object_name, _, sql in made.execute(_OBJECTS):
                states = seen.setdefault(object_name.lower(), defaultdict(set))
                states[kind].add(_definition(kind, sql))
        last = [(kind, name.lower(), _definition(kind, sql)) for kind, name, _, sql in made.execute(_OBJECTS)]
    return seen, last


# A program may open many studies, and almost all of their definitions are equal.
@lru_cache(maxsize=1024)
def _definition(kind: str, sql: str) -> tuple[str, ...]:
    """Return the tokens in a definition, in a form in which two definitions can be compared.

    Quotes around names are removed, because SQLite adds them when it renames a table. All other quoted words
    keep their quotes, because `"NULL"` is a text and `"RAISE(ABORT, 'no')"` calls nothing: SQLite reads a
    quoted word that is not a name as a text. Keywords are in upper case in the migrations. A table's constraints are
    sorted and put last, because a migration added columns after the constraints in studies from adjudge
    0.2.0. Columns keep their order, because rows are inserted by position.
    """
    words = [_QUOTED_NAME.sub(r"\1", word) if word[0] == '"' else word for word in _WORD.findall(sql)]
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
