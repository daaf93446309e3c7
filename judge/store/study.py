"""Open a study: connect, set pragmas and migrate. Translate SQLite's errors to StudyError or WriteFailed."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from judge import migrations
from judge.commands import command
from judge.errors import StudyError
from judge.sqlite_errors import explain
from judge.store import schema
from judge.store.locks import is_locked, lock_file
from judge.types import Json

MOST_AT_ONCE = 32
BUSY_SECONDS = 30.0
FEW_PAGES = -4000
"""SQLite's cache size while a whole study is read once.

A negative number is in kilobytes, so this is 4,000 kB.
"""
LOOK_SECONDS = 0.02
"""The number of seconds between attempts to switch a locked study's journal mode."""
_log = logging.getLogger(__name__)


def get_time() -> str:
    """Return the current time in the stored format: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# The encoder is built once, because json.dumps with non-default options builds a new encoder for every call.
_STORED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_CANONICAL = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def dumps(value: Json) -> str:
    """Return JSON in the stored format: Unicode without escapes, no spaces, keys in the given order.

    Raises ValueError for NaN.
    """
    return _STORED.encode(value)


def canonical(value: Json) -> str:
    """Return JSON for hashing, with sorted keys and no spaces."""
    return _CANONICAL.encode(value)


def content_sha(parts: Json) -> str:
    """Return a hash of a row's content, to compare the row with a stored row that has the same id.

    Equal hashes mean that it is the same row. Different hashes are an error.
    """
    # Lone surrogates must be hashable, because `check_storable` rejects them later, with their place.
    return hashlib.sha256(canonical(parts).encode("utf-8", "surrogatepass")).hexdigest()


class Store:
    """A connection to a study. Threads must not share a connection; `clone` opens another one."""

    def __init__(self, conn: sqlite3.Connection, path: Path) -> None:
        self.conn, self.path = conn, path

    @classmethod
    def open(cls, path: Path | str, *, create: bool = True) -> Store:
        """Open a study and migrate it. With `create=False`, do not create a missing or empty file.

        Raises StudyError if the file is not a study, was created by a newer version or, with `create=False`,
        is missing or empty.
        """
        path = Path(path)
        if not create and not path.exists():
            raise StudyError(
                f"{path}: there is no such study; name another study with -d, or import something: "
                + command("judge items import FORMAT FILE", study=path)
            )
        if not create and path.is_file() and not path.stat().st_size:
            raise StudyError(
                f"{path}: the file is empty, so it is not a study; name another study with -d, or import something: "
                + command("judge items import FORMAT FILE", study=path)
            )
        # SQLite reports a missing folder only as "unable to open database file".
        if not path.parent.is_dir():
            raise StudyError(f"{path}: the folder {path.parent} does not exist")
        with explain_errors(path):
            conn = _connect(path) if create else connect(path)
            try:
                _prepare(conn, path)
            except BaseException:
                conn.close()
                raise
        return cls(conn, path)

    def clone(self) -> Store:
        """Return another connection to the same study, for another thread.

        The new connection does not check for migrations.
        """
        with explain_errors(self.path):
            return Store(_connect(self.path), self.path)

    @contextmanager
    def run_lock(self, activity: str, busy: str | None = None) -> Iterator[None]:
        """Lock this study, so that only one process runs `activity`.

        The operating system releases the lock if the process dies. The lock file is next to the study, where
        every process that can open the study finds it. Without the lock, two processes would pay for every
        request twice. Raises StudyError if another process holds the lock. The message of the error is
        `busy`, if it is given.
        """
        # This is a lock of the operating system, so a killed process does not leave a lock behind.
        busy = (
            busy
            or f"{self.path}: another process is running {activity}; wait until it has finished, or stop it"
        )
        with lock_file(self._lock_path(activity), busy):
            yield

    def is_running(self, activity: str) -> bool:
        """Return whether a process holds the lock for `activity`."""
        return is_locked(self._lock_path(activity))

    def _lock_path(self, activity: str) -> Path:
        # The path is resolved, so that a link to the study has the same lock file.
        study = self.path.resolve()
        # A model's name may contain slashes, and may be too long for a file name.
        name = hashlib.sha256(activity.encode()).hexdigest()[:12]
        return study.with_name(f"{study.name}.{name}.lock")

    def close(self) -> None:
        """Close the connection."""
        self.conn.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextmanager
    def reading_once(self) -> Iterator[None]:
        """Use a small page cache while the caller reads much of the study only once.

        A larger cache would not help, because no page is read twice.
        """
        before = self.conn.execute("PRAGMA cache_size").fetchone()[0]
        self.conn.execute(f"PRAGMA cache_size = {FEW_PAGES}")
        try:
            yield
        finally:
            self.conn.execute(f"PRAGMA cache_size = {before}")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a write transaction, which is either committed or rolled back as a whole.

        Raises WriteFailed if the disk is full or no longer available, and StudyError for other SQLite errors.
        """
        with explain_errors(self.path):
            # IMMEDIATE acquires the write lock now. A deferred transaction acquires it at the first write; if
            # another process has written since the first read, it fails immediately with "database is
            # locked", whatever the busy time-out.
            self.conn.execute("BEGIN IMMEDIATE")
            try:
                yield self.conn
                self.conn.execute("COMMIT")
            except BaseException:
                # SQLite has already rolled back by itself after some errors, such as a full disk.
                if self.conn.in_transaction:
                    self.conn.execute("ROLLBACK")
                raise


def insert_rows(conn: sqlite3.Connection, statement: str, rows: Sequence[Sequence[object]]) -> None:
    """Run an `INSERT ... VALUES ?` statement for all rows, inside the caller's transaction.

    Each statement inserts several rows. `executemany` would be slower while an event loop is busy, because it
    releases the interpreter's lock for every row and must then wait to acquire it again.
    """
    at, many = 0, MOST_AT_ONCE
    while at < len(rows):
        # The numbers of rows are powers of two, so that only a few different statements are compiled, each
        # only once.
        while many > len(rows) - at:
            many //= 2
        marks = ",".join(["(" + ",".join("?" * len(rows[at])) + ")"] * many)
        conn.execute(statement.replace("?", marks, 1), list(chain.from_iterable(rows[at : at + many])))
        at += many


def connect(path: Path) -> sqlite3.Connection:
    """Connect to an existing file, without a check and without a migration. On a read-only disk, only read it."""
    return _connect(path) if _is_writable(path) else _connect_read_only(path)


def _connect(path: Path) -> sqlite3.Connection:
    conn = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        schema.distrust(conn)
        # SQLite ignores foreign keys in every connection that does not enable them.
        conn.execute("PRAGMA foreign_keys = ON")
        # With FULL, a commit survives a power failure, not only a crash of the process.
        conn.execute("PRAGMA synchronous = FULL")
        # Hashes are spread over all pages. With a longer log, a page collects more changes before it is
        # copied to the file. 8,000 pages are at most 32 MB.
        conn.execute("PRAGMA wal_autocheckpoint = 8000")
        # The cache is 32 MB, because a large import returns to pages that the default cache of 2 MB has
        # already dropped.
        conn.execute("PRAGMA cache_size = -32000")
    except BaseException:
        conn.close()
        raise
    return conn


def _is_writable(path: Path) -> bool:
    """Return whether the study and its folder are writable. SQLite writes its log in the folder."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """Open a study on a read-only disk.

    `immutable` is safe, because nobody can write to the disk. Raises StudyError if the last changes are still
    in the write-ahead log. SQLite cannot apply the log on a read-only disk.
    """
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StudyError(
            f"{path}: the last changes are in {log.name}, which cannot be applied on a read-only disk; copy "
            "both files to another folder"
        )
    # Otherwise SQLite would create the files of its write-ahead log, which the disk refuses.
    uri = f"{path.absolute().as_uri()}?immutable=1"
    conn = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    schema.distrust(conn)
    conn.execute("PRAGMA query_only = ON")
    return conn


def _prepare(conn: sqlite3.Connection, path: Path) -> None:
    # All tables are read in a single query, because another process may be creating this study at the same
    # time.
    tables = [row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    # This is checked first, so that a database of another program does not get our tables.
    if tables and not migrations.list_applied(conn):
        raise StudyError(
            f"{path}: this is an SQLite file, but not a study (it has a table '{tables[0]}'); name another file with -d"
        )
    if migrations.is_too_old(conn):
        raise StudyError(
            f"{path}: created by a version of adjudge before 0.2.0; migrate it with adjudge 0.2.0 first: "
            + command("annotate batches show", study=path)
        )
    # The schema is checked before the migration, whose statements could run a foreign trigger.
    schema.check(conn, path)
    if newer := migrations.unknown(conn):
        raise StudyError(
            f"{path}: created by a newer version of adjudge ({newer[0]}); upgrade adjudge to open it"
        )
    if conn.execute("PRAGMA query_only").fetchone()[0]:
        if not migrations.is_current(conn):
            raise StudyError(
                f"{path}: created by an older version of adjudge, and cannot be migrated on a read-only "
                "disk; copy the study to another folder"
            )
    else:
        # With a write-ahead log, `annotate` can read while a run writes. Otherwise, they would wait for each
        # other.
        _switch_to_wal(conn)
        if not migrations.is_current(conn):
            for line in migrations.migrate(conn):
                # This is a warning, because the first command that opens the study migrates it, which changes
                # what all commands read.
                _log.warning("%s", line)
    schema.check_complete(conn, path)


def _switch_to_wal(conn: sqlite3.Connection) -> None:
    """Switch the journal to a write-ahead log.

    SQLite ignores the busy time-out for this switch, because two connections that switch at the same time
    could wait for each other. It raises "locked" immediately, so this function retries.
    """
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            conn.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as e:
            if "locked" not in str(e) or time.monotonic() > end:
                raise
            time.sleep(LOOK_SECONDS)


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Translate SQLite's errors.

    Raises WriteFailed if the disk is full or no longer available, and StudyError for all other errors.
    """
    try:
        yield
    except sqlite3.IntegrityError:
        # A violated constraint is a bug in adjudge. Every other SQLite error is caused by the file.
        raise
    except sqlite3.DatabaseError as e:
        raise explain(e, path) from e
