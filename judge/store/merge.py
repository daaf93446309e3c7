"""Merge several studies into a new study. If the studies conflict, no file is written.

SQL copies the studies into a new file, so memory use does not grow with their size. The studies themselves
are not changed. Rows with the same id become one row, and a difference between such rows is a conflict. Runs
with the same identity (`judge.store.runs.identity`) become one run, whose judgements are merged unit by unit.
Tables without special rules, such as annotate's, are copied row by row; see `_merge_rows`.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from judge.commands import command
from judge.errors import StudyError, UsageError, WriteFailed
from judge.store import _merge_rows as rows
from judge.store import _merge_runs as runs
from judge.store import label_sources
from judge.store.jobs import rebase
from judge.store.locks import lock_file
from judge.store.new_files import flush_to_disk, name_new_file, remove_partial
from judge.store.study import Store, explain_errors
from judge.types import Json

COUNTED = ("items", "passages", "answers", "units", "tasks", "judgements", "batches")
MOST_NAMED = 100
"""The maximum number of conflicts that are listed. Any further conflicts are only counted."""


@dataclass(slots=True)
class Merged:
    """The result of a merge.

    `rows` has one row for each study, with the counts of what was added from it. `conflicts` lists the first
    conflicts, and `n_conflicts` counts all of them.
    """

    path: str
    rows: list[dict[str, Json]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    n_conflicts: int = 0

    def add_conflicts(self, conflicts: Iterable[str], where: str) -> None:
        """Count every conflict, but store only the first ones in the list.

        `where` names the studies. It is appended to each listed conflict.
        """
        for conflict in conflicts:
            self.n_conflicts += 1
            if len(self.conflicts) < MOST_NAMED:
                self.conflicts.append(f"{conflict} ({where})")


def merge(paths: Sequence[Path], into: Path, *, same_model: bool = False) -> Merged:
    """Write the contents of the studies `paths` to the new study `into`.

    With `same_model`, runs with the same identity are joined even if their servers reported different model
    names. If there are conflicts, the result lists them, and no file is written.

    Raises UsageError if there are fewer than two studies or the new file exists. Raises StudyError if a study
    cannot be read, or if another process is merging into the same file. Raises WriteFailed if the disk is
    full.
    """
    _check(paths, into)
    for path in paths:
        # The study is migrated first, so that all studies have the same columns.
        Store.open(path, create=False).close()
    busy = f"--into {into}: another process is merging into this file; wait until it has finished, or choose another file"
    # Two merges into the same file would write the same partial file.
    with lock_file(into.with_name(into.name + ".lock"), busy):
        return _merge(paths, into, same_model)


def _merge(paths: Sequence[Path], into: Path, same_model: bool) -> Merged:
    partial = into.with_name(into.name + ".part")
    remove_partial(partial)
    done = Merged(str(into))
    try:
        with closing(Store.open(partial)) as store:
            # The tables are created by our migrations and only rows are copied, so that no trigger or view
            # from another file is included.
            _fill(store, paths, done, same_model)
        if done.conflicts:
            return done
        flush_to_disk(partial)
        name_new_file(partial, into)
    except WriteFailed as e:
        # The error may name the study that was being read, but the file that cannot be written is the new
        # one.
        raise WriteFailed(
            f"--into {into}: {e.__cause__} (in the folder of this file or of temporary files), so nothing "
            "was written; free some space and run the command again"
        ) from e
    except FileExistsError as e:
        raise UsageError(
            f"--into {into}: another process has created this file in the meantime; choose another file"
        ) from e
    finally:
        remove_partial(partial)
    return done


def _check(paths: Sequence[Path], into: Path) -> None:
    if len(paths) < 2:
        raise UsageError(
            f"at least two studies are needed: {command('judge studies merge A.db B.db --into C.db')}"
        )
    if into.exists():
        raise UsageError(f"--into {into}: the file already exists; choose another file")
    if not into.parent.is_dir():
        raise UsageError(f"--into {into}: the folder {into.parent} does not exist")
    for at, path in enumerate(paths):
        if path.exists() and any(other.exists() and path.samefile(other) for other in paths[:at]):
            raise UsageError(f"{path}: this study is named twice")


def _fill(store: Store, paths: Sequence[Path], done: Merged, same_model: bool) -> None:
    conn = store.conn
    with explain_errors(store.path):
        # Nobody reads this file before it is complete, and an incomplete file is deleted, so safe settings
        # would only cost time.
        conn.execute("PRAGMA foreign_keys = OFF")
        conn.execute("PRAGMA synchronous = OFF")
        conn.execute("PRAGMA journal_mode = OFF")
        conn.execute("PRAGMA cache_size = -64000")
        folders: dict[str, str] = {}
        with rows.suspend_triggers(conn):
            for number, path in enumerate(paths):
                with _attach(store, path):
                    _add(store, path, [str(p) for p in paths[:number]], done, same_model)
                    for job, folder in conn.execute("SELECT job_id, folder FROM src.jobs"):
                        folders.setdefault(job, rebase(folder, path, store.path))
            if not done.conflicts:
                # The folders are set after all studies are copied, because copies of a job in several places
                # must get the same folder.
                conn.executemany(
                    "UPDATE jobs SET folder = ? WHERE job_id = ?", [(f, job) for job, f in folders.items()]
                )
                runs.finish(conn)
                for path in paths:
                    with _attach(store, path):
                        label_sources.keep_current(conn)
                label_sources.follow_rulings(conn)
                label_sources.follow(conn)
                if n := len(label_sources.conflicts(conn)):
                    done.notes.append(
                        f"{n:,} labels are in conflict, because two sources have different labels by the same person; "
                        f"they are not used until a lead resolves the conflicts:\n{command('annotate conflicts list', study=done.path)}"
                    )
        if not done.conflicts:
            # A label from one study may be older than a correction in another. The triggers, which are back, reopen its unit.
            conn.execute("INSERT INTO corrected_seats SELECT unit_id FROM corrected_seats")
        # Foreign keys were off while rows were copied, so they are checked once at the end.
        if not done.conflicts and (broken := conn.execute("PRAGMA foreign_key_check").fetchone()):
            raise StudyError(
                f"{paths[-1]}: a row of '{broken[0]}' refers to a missing row of '{broken[2]}'; use another copy of the study"
            )


@contextmanager
def _attach(store: Store, path: Path) -> Iterator[None]:
    with explain_errors(path):
        store.conn.execute("ATTACH ? AS src", [str(path)])
        try:
            # All reads are in one transaction, so that a study is read as of one moment even if a run is
            # writing to it.
            store.conn.execute("BEGIN")
            yield
            store.conn.execute("COMMIT")
        except BaseException:
            # Without a journal, the new file is corrupt after an error. SQLite may report this here, which
            # would hide the first error.
            for statement in ("ROLLBACK", "DETACH src"):
                with suppress(sqlite3.DatabaseError):
                    store.conn.execute(statement)
            raise
        store.conn.execute("DETACH src")


def _add(store: Store, path: Path, before: Sequence[str], done: Merged, same_model: bool) -> None:
    conn = store.conn
    had = _counts(conn, "main")
    where = f"{path} and {' or '.join(before)}"
    done.add_conflicts(rows.add_texts(conn), where)
    # Runs are added before the rows that refer to them, because their ids may change.
    joined, notes, clashes = runs.map_runs(conn, same_model)
    done.add_conflicts(clashes, where)
    done.notes += notes
    twice: Counter[str] = Counter()
    done.add_conflicts(runs.add_judgements(conn, twice), where)
    for add in (rows.add_labels, rows.add_splits, rows.add_others):
        done.add_conflicts(add(conn), where)
    if twice["same"]:
        done.notes.append(
            f"{path}: for {twice['same']:,} units, two studies have a judgement with the same label; "
            "the judgement of the first study is used"
        )
    now = _counts(conn, "main")
    has = _counts(conn, "src")
    done.rows.append(
        {"study": str(path), **{name: now[name] - had[name] for name in COUNTED}, "runs_joined": joined,
         "has": {name: has[name] for name in COUNTED}}
    )  # fmt: skip


def _counts(conn: sqlite3.Connection, schema: str) -> dict[str, int]:
    known = rows.tables(conn, schema)
    return {
        name: conn.execute(f"SELECT count(*) FROM {schema}.{name}").fetchone()[0] if name in known else 0
        for name in COUNTED
    }
