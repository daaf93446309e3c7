"""Copy a study to a new file while other commands use it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from judge import migrations
from judge.errors import StudyError, UsageError
from judge.store.new_files import flush_to_disk, name_new_file, remove_partial
from judge.store.study import connect, explain_errors


def back_up(study: Path, into: Path) -> int:
    """Copy everything that is committed in a study to the new file `into`. Return its size in bytes.

    The study is not migrated, so the copy can still be opened by the version of adjudge that wrote it.

    Raises UsageError if `into` exists or its folder does not. Raises StudyError if the file is not a study, or if
    the copy is damaged. Raises WriteFailed if the disk is full.
    """
    if not study.is_file():
        raise StudyError(f"{study}: there is no such study; name another study with -d")
    if into.exists():
        raise UsageError(f"{into}: the file already exists; choose another file")
    if not into.parent.is_dir():
        raise UsageError(f"{into}: the folder {into.parent} does not exist")
    # The process id is part of the name, so that two backups never write the same partial file.
    partial = into.with_name(f"{into.name}.{os.getpid()}.part")
    try:
        with explain_errors(study), closing(connect(study)) as source:
            if not migrations.list_applied(source):
                raise StudyError(
                    f"{study}: this is an SQLite file, but not a study; name another study with -d"
                )
            # An error of the copy names the copy.
            with explain_errors(into):
                _copy(source, partial)
        flush_to_disk(partial)
        name_new_file(partial, into)
    except FileExistsError as e:
        raise UsageError(f"{into}: the file already exists; choose another file") from e
    finally:
        remove_partial(partial)
    return into.stat().st_size


def _copy(source: sqlite3.Connection, partial: Path) -> None:
    with closing(sqlite3.connect(partial)) as copy:
        # All pages in one step: SQLite starts again from the first page whenever another process writes in between.
        source.backup(copy)
        # The copy is one file. A write-ahead log would be a second one, which is easily forgotten.
        copy.execute("PRAGMA journal_mode = DELETE")
        (result,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise StudyError(f"the copy is damaged, as the study itself may be: SQLite reports {result}")
