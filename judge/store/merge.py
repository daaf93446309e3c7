"""Several studies made one: what both have must be the same, and nothing is kept of a merge that finds otherwise.

Everything is set-based SQL on a new file beside the others, which are only read: memory stays flat whatever their size.
Rows of one id are one row; what differs in them is a conflict that is named. Runs of one identity become one run
(`judge.runner.identity` says what that is), whose judgements are joined unit by unit. Tables that this module knows
nothing of (those of people's labels among them) are carried over row by row: `_merge_rows`.
"""

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from judge.errors import BadInput, StudyError, UsageError, WriteFailed
from judge.store import _merge_rows as rows
from judge.store import _merge_runs as runs
from judge.store import label_sources
from judge.store.jobs import rebased
from judge.store.study import Store, explained, only_here
from judge.types import Json

COUNTED = ("items", "passages", "answers", "units", "tasks", "judgements", "batches")
MOST_NAMED = 100
"""Conflicts that are named one by one; the rest is counted."""


@dataclass(slots=True)
class Merged:
    """What a merge did: a row for each study with what it added, and what people should know."""

    path: str
    rows: list[dict[str, Json]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    n_conflicts: int = 0

    def differs(self, found: Iterator[str] | Sequence[str]) -> None:
        """Note conflicts."""
        for told in found:
            self.n_conflicts += 1
            if len(self.conflicts) < MOST_NAMED:
                self.conflicts.append(told)


def merge(paths: Sequence[Path], into: Path, *, same_model: bool = False) -> Merged:
    """Write a new study `into` with all that is in the studies `paths`; where they agree, the first counts.

    `same_model`: runs of one identity are joined whatever names servers gave their models. Raises UsageError for fewer
    than two studies or a file that is there, StudyError while another process merges into it and for one that cannot be read, WriteFailed where the disk is full. The result lists the conflicts: with any, no file is written.
    """
    _check(paths, into)
    for path in paths:
        # Brought up to date, so that all have the same columns.
        Store.open(path, create=False).close()
    busy = f"--into {into}: another process is merging into this file; wait for it or name another"
    with only_here(into.with_name(into.name + ".lock"), busy):
        return _merged(paths, into, same_model)


def _merged(paths: Sequence[Path], into: Path, same_model: bool) -> Merged:
    partial = into.with_name(into.name + ".part")
    _remove(partial)
    done = Merged(str(into))
    try:
        with closing(Store.open(partial)) as store:
            # The tables are ours. Only rows are copied, and nothing that another file defines.
            _fill(store, paths, done, same_model)
        if done.conflicts:
            return done
        _keep(partial)
        _name(partial, into)
    except WriteFailed as e:
        # It may have shown while a study was read, which is not what cannot be written.
        raise WriteFailed(
            f"--into {into}: {e.__cause__} (there or in the folder of temporary files), so nothing was written: free some "
            "space and give the command again"
        ) from e
    except FileExistsError as e:
        raise UsageError(f"--into {into}: there is such a file by now; name another") from e
    finally:
        _remove(partial)
    return done


def _check(paths: Sequence[Path], into: Path) -> None:
    if len(paths) < 2:
        raise UsageError("name two studies or more: judge studies merge A.db B.db --into C.db")
    if into.exists():
        raise UsageError(f"--into {into}: there is such a file; name a new one")
    if not into.parent.is_dir():
        raise UsageError(f"--into {into}: the folder {into.parent} does not exist")
    for at, path in enumerate(paths):
        if path.exists() and any(other.exists() and path.samefile(other) for other in paths[:at]):
            raise UsageError(f"{path}: the same study is named twice")


def _fill(store: Store, paths: Sequence[Path], done: Merged, same_model: bool) -> None:
    conn = store.conn
    with explained(store.path):
        # Until it is whole, nobody else sees this file, and a broken one is thrown away.
        conn.execute("PRAGMA foreign_keys = OFF")
        conn.execute("PRAGMA synchronous = OFF")
        conn.execute("PRAGMA journal_mode = OFF")
        conn.execute("PRAGMA cache_size = -64000")
        folders: dict[str, str] = {}
        with rows.without_triggers(conn):
            for number, path in enumerate(paths):
                with _attached(store, path):
                    _add(store, path, [str(p) for p in paths[:number]], done, same_model)
                    for job, folder in conn.execute("SELECT job_id, folder FROM src.jobs"):
                        folders.setdefault(job, rebased(folder, path, store.path))
            if not done.conflicts:
                # When all are there: the same job has the same folder in copies that lie elsewhere.
                conn.executemany(
                    "UPDATE jobs SET folder = ? WHERE job_id = ?", [(f, job) for job, f in folders.items()]
                )
                runs.finish(conn)
                label_sources.follow(conn)
                if n := len(label_sources.conflicts(conn)):
                    done.notes.append(
                        f"labels in conflict, because one person gave them differently in two ways: {n:,}; they count as "
                        f"unlabelled until somebody decides:\nannotate conflicts list -d {done.path}"
                    )
        if not done.conflicts and (broken := conn.execute("PRAGMA foreign_key_check").fetchone()):
            raise StudyError(f"{paths[-1]}: a row of '{broken[0]}' names a '{broken[2]}' that is not there")


@contextmanager
def _attached(store: Store, path: Path) -> Iterator[None]:
    with explained(path):
        store.conn.execute("ATTACH ? AS src", [str(path)])
        try:
            # One transaction over all of it: a study that a run is writing is read as it was at one moment.
            store.conn.execute("BEGIN")
            yield
            store.conn.execute("COMMIT")
        except BaseException:
            # Without a journal the new file is broken now, and SQLite may say so here instead of what went wrong.
            for statement in ("ROLLBACK", "DETACH src"):
                with suppress(sqlite3.DatabaseError):
                    store.conn.execute(statement)
            raise
        store.conn.execute("DETACH src")


def _add(store: Store, path: Path, before: Sequence[str], done: Merged, same_model: bool) -> None:
    conn = store.conn
    had = _counts(conn, "main")
    where = f"{path} and {' or '.join(before)}"
    done.differs(f"{told} ({where})" for told in rows.add_texts(conn))
    joined, notes, clashes = runs.map_runs(conn, same_model)
    done.differs(f"{told} ({where})" for told in clashes)
    done.notes += notes
    twice: Counter[str] = Counter()
    done.differs(f"{told} ({where})" for told in runs.add_judgements(conn, twice))
    done.differs(f"{told} ({where})" for told in rows.add_labels(conn))
    done.differs(f"{told} ({where})" for told in rows.add_splits(conn))
    done.differs(f"{told} ({where})" for told in rows.add_others(conn))
    if twice["same"]:
        done.notes.append(
            f"{path}: {twice['same']:,} units that another study had the same label of were judged anew there: "
            "the first study's answer counts"
        )
    now = _counts(conn, "main")
    has = _counts(conn, "src")
    done.rows.append(
        {"study": str(path), **{name: now[name] - had[name] for name in COUNTED}, "runs_joined": joined,
         "has": {name: has[name] for name in COUNTED}}
    )  # fmt: skip


def _counts(conn: rows.Connection, schema: str) -> dict[str, int]:
    known = rows.tables(conn, schema)
    return {
        name: conn.execute(f"SELECT count(*) FROM {schema}.{name}").fetchone()[0] if name in known else 0
        for name in COUNTED
    }


def _keep(partial: Path) -> None:
    """Everything of the file on the disk before it gets its name."""
    log = partial.with_name(partial.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise BadInput("the log of the new study is not empty", path=str(partial))
    with partial.open("rb") as file:
        os.fsync(file.fileno())


def _name(partial: Path, into: Path) -> None:
    """Give the file its name, never over one that somebody else has made meanwhile. Raises FileExistsError."""
    try:
        os.link(partial, into)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links (exFAT, some of the network)
        if into.exists():
            raise FileExistsError(into) from None
        partial.rename(into)


def _remove(partial: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        partial.with_name(partial.name + ending).unlink(missing_ok=True)
