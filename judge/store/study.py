"""Opening a study: connection, pragmas, migrations, and SQLite's errors in our words."""

from __future__ import annotations

import fcntl
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
from judge.errors import StudyError, WriteFailed
from judge.store import schema
from judge.types import Json

MOST_AT_ONCE = 32
BUSY_SECONDS = 30.0
FEW_PAGES = -4000
"""Pages kept in memory while a study is read through, in SQLite's way: 4,000 kB."""
LOOKS, LOOK_SECONDS = 5, 0.02
"""How often a run lock that is held is tried again, and after how long."""
_log = logging.getLogger(__name__)


def now() -> str:
    """The time as stored: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Made once: json.dumps with options of its own makes an encoder for every call.
_STORED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_CANONICAL = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def dumps(value: Json) -> str:
    """JSON as stored: readable Unicode, no spaces, keys as given. Raises ValueError for NaN."""
    return _STORED.encode(value)


def canonical(value: Json) -> str:
    """JSON for hashing: sorted keys, no spaces."""
    return _CANONICAL.encode(value)


class Store:
    """One connection to one study. Not shared between threads; `clone` opens another."""

    def __init__(self, conn: sqlite3.Connection, path: Path) -> None:
        self.conn, self.path = conn, path

    @classmethod
    def open(cls, path: Path | str, *, create: bool = True) -> Store:
        """Open a study and migrate it; `create=False` refuses a file that is not there or empty.

        Raises StudyError when the file is missing, is no study, or was made by a newer version.
        """
        path = Path(path)
        if not create and not path.exists():
            raise StudyError(
                f"{path}: no such study; import something first (judge items import) or name another with -d"
            )
        if not create and path.is_file() and not path.stat().st_size:
            raise StudyError(
                f"{path}: an empty file, no study; import something first (judge items import) "
                "or name another with -d"
            )
        if not path.parent.is_dir():
            raise StudyError(f"{path}: the folder {path.parent} does not exist")
        with explained(path):
            conn = _connect(path) if create or _is_writable(path) else _connect_read_only(path)
            try:
                _prepare(conn, path)
            except BaseException:
                conn.close()
                raise
        return cls(conn, path)

    def clone(self) -> Store:
        """Another connection to the same study, for another thread; no migration is looked for."""
        with explained(self.path):
            return Store(_connect(self.path), self.path)

    @contextmanager
    def run_lock(self, what: str, busy: str | None = None) -> Iterator[None]:
        """Hold the only run of `what` on this study; it goes with the process, however that ends.

        The lock lies beside the study, where every process that can reach the study finds it. Raises
        StudyError, with the text `busy` where it is given, when another process holds it: two of them would ask
        everything twice.
        """
        busy = busy or f"{self.path}: another process is running {what}; wait for it or stop it"
        with only_here(self._lock_path(what), busy):
            yield

    def is_running(self, what: str) -> bool:
        """Whether some process holds the run lock of `what`."""
        try:
            file = os.open(self._lock_path(what), os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def _lock_path(self, what: str) -> Path:
        study = self.path.resolve()
        name = hashlib.sha256(what.encode()).hexdigest()[:12]
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
        """A look through much of the study: few of its pages are kept in memory, because none is read again."""
        before = self.conn.execute("PRAGMA cache_size").fetchone()[0]
        self.conn.execute(f"PRAGMA cache_size = {FEW_PAGES}")
        try:
            yield
        finally:
            self.conn.execute(f"PRAGMA cache_size = {before}")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One write transaction: all of it or nothing. Raises WriteFailed or StudyError."""
        with explained(self.path):
            self.conn.execute("BEGIN IMMEDIATE")
            try:
                yield self.conn
                self.conn.execute("COMMIT")
            except BaseException:
                if self.conn.in_transaction:
                    self.conn.execute("ROLLBACK")
                raise


def insert_rows(
    conn: sqlite3.Connection, statement: str, rows: Sequence[Sequence[object]], many: int = MOST_AT_ONCE
) -> None:
    """Run an `INSERT ... VALUES ?` for all rows, many to a step, inside the caller's transaction.

    `executemany` lets go of the interpreter's lock and takes it again for every row; beside a busy event
    loop it waits for it each time.
    """
    at = 0
    while at < len(rows):
        # Powers of two, so that few different statements are compiled, and each only once.
        while many > len(rows) - at:
            many //= 2
        marks = ",".join(["(" + ",".join("?" * len(rows[at])) + ")"] * many)
        conn.execute(statement.replace("?", marks, 1), list(chain.from_iterable(rows[at : at + many])))
        at += many


@contextmanager
def only_here(path: Path, busy: str) -> Iterator[None]:
    """Hold the lock file; it goes with the process, however that ends. Raises StudyError, with `busy` where it is held."""
    try:
        file = _locked(path)
    except BlockingIOError as e:
        raise StudyError(busy) from e
    except OSError as e:
        raise StudyError(f"cannot lock {path}: {e.strerror}") from e
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(file)


def _locked(path: Path) -> int:
    """An open file that only this process has locked. Raises BlockingIOError when another one has."""
    tries = LOOKS
    while True:
        # Another user's file cannot be opened for writing, and need not be.
        file = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
        try:
            tries -= 1
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who held it before has removed it: another process may already lock one of that name anew.
            if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
                return file
        except BlockingIOError:
            if not tries:
                os.close(file)
                raise
            time.sleep(LOOK_SECONDS)  # perhaps somebody has only looked whether it is locked
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _connect(path: Path) -> sqlite3.Connection:
    conn = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        schema.distrust(conn)
        conn.execute("PRAGMA foreign_keys = ON")
        # FULL: a commit that was acknowledged survives a power cut, not only a crash of the process.
        conn.execute("PRAGMA synchronous = FULL")
        # Hashes fall on pages anywhere: the longer the log, the more of their changes meet on one page
        # before that is copied into the file. 32 MB at most.
        conn.execute("PRAGMA wal_autocheckpoint = 8000")
        # 32 MB of pages: an import of many rows goes back to pages that the 2 MB of the default have let go.
        conn.execute("PRAGMA cache_size = -32000")
    except BaseException:
        conn.close()
        raise
    return conn


def _is_writable(path: Path) -> bool:
    """Whether the study and its folder, where SQLite keeps its log, take changes."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """A connection that shows and never writes: nobody can change what nobody can write.

    Raises StudyError when the last changes are still in the log, which cannot be taken up there.
    """
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StudyError(
            f"{path}: its last changes are in {log.name}, which cannot be taken up here; copy both elsewhere"
        )
    uri = f"{path.absolute().as_uri()}?immutable=1"
    conn = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    schema.distrust(conn)
    conn.execute("PRAGMA query_only = ON")
    return conn


def _prepare(conn: sqlite3.Connection, path: Path) -> None:
    # One look at the tables: another process may be making this very study at the same time.
    tables = [row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if tables and not migrations.applied(conn):
        raise StudyError(f"{path}: an SQLite file, but no study (it has a table '{tables[0]}')")
    if migrations.is_too_old(conn):
        raise StudyError(
            f"{path}: made by an adjudge before 0.2.0; let adjudge 0.2.0 bring it up to date first: "
            f"annotate batches list -d {path}"
        )
    schema.check(conn, path)
    if newer := migrations.unknown(conn):
        raise StudyError(f"{path}: made by a newer adjudge ({newer[0]}); upgrade to read it")
    if conn.execute("PRAGMA query_only").fetchone()[0]:
        if not migrations.is_current(conn):
            raise StudyError(
                f"{path}: made by an older adjudge, on a disk that cannot be written; copy it elsewhere"
            )
    else:
        _keep_a_log(conn)
        if not migrations.is_current(conn):
            for line in migrations.migrate(conn):
                # Printed by whichever command opens the study first, because it changes what all of them read.
                _log.warning("%s", line)
    schema.check_complete(conn, path)


def _keep_a_log(conn: sqlite3.Connection) -> None:
    """Turn the journal into a log. SQLite lets nobody wait who meets another that turns it: each could wait for the other."""
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
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours: full and vanished disks are WriteFailed, the rest StudyError."""
    try:
        yield
    except sqlite3.OperationalError as e:
        text = str(e)
        if "full" in text or "disk I/O" in text:
            raise WriteFailed(
                f"{path}: {text}: the last batch is not in it; free some space and run the same command",
                passing=True,
            ) from e
        if "locked" in text or "busy" in text:
            raise StudyError(
                f"{path}: another program has held the study for too long; try again when it is done",
                passing=True,
            ) from e
        if "readonly" in text or "unable to open" in text:
            raise StudyError(f"{path}: {text}; a study and its folder must be writable") from e
        raise
    except sqlite3.DatabaseError as e:
        if "not a database" in str(e):
            raise StudyError(f"{path}: {e}; name the study with -d (judge items import makes one)") from e
        if "malformed" in str(e) or "corrupt" in str(e):
            raise StudyError(f"{path}: {e}; go back to a copy of the study, or try SQLite's .recover") from e
        raise
