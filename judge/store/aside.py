"""Save replies that cannot be committed yet in a file next to the study. The next run imports them.

`STUDY.db.RUN.unsaved.jsonl` has one judgement per line, with its request. The file is written when a commit
fails, for example because another program has locked the study. If the run is then killed, no paid reply is
lost. The file is removed after the next successful commit. The writing process holds a lock on the file, so
no other process reads it.
"""

import fcntl
import glob
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO

from judge.errors import StudyError
from judge.store.judgements import Entry, add_judgements
from judge.store.study import Store

SUFFIX = ".unsaved.jsonl"


class Aside:
    """The file of one run. `lost` is the error if writing to the file has failed, otherwise None."""

    def __init__(self, study: Path, run_id: str) -> None:
        study = study.resolve()
        self.path = study.with_name(f"{study.name}.{run_id}{SUFFIX}")
        self.lost: OSError | None = None
        self._file: IO[bytes] | None = None

    def write(self, entries: Iterable[Entry]) -> None:
        """Write the entries, and flush them to disk."""
        lines = [json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in entries]
        try:
            if self._file is None:
                self._file = self.path.open("ab")
                fcntl.flock(self._file, fcntl.LOCK_EX)
            # A reply may contain a lone surrogate, which UTF-8 cannot encode.
            self._file.write("".join(lines).encode("utf-8", "replace"))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self.lost = error

    def close(self, *, committed: bool) -> None:
        """Close the file, and remove it if everything in it has been committed."""
        if committed:
            self.path.unlink(missing_ok=True)
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError as error:
                self.lost = error


def take_in(store: Store) -> int:
    """Commit the judgements in the files that earlier runs have left next to the study, and remove the files.

    Returns the number of judgements. Judgements that are already stored, judgements for runs or units that no
    longer exist, and a truncated last line are skipped. Raises StudyError if a file cannot be read or was not
    written by adjudge.
    """
    study, taken = store.path.resolve(), 0
    for path in sorted(study.parent.glob(f"{glob.escape(study.name)}.*{SUFFIX}")):
        try:
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    # Its run is still working.
                    continue
                taken += _take(store, _entries(path, file))
                path.unlink(missing_ok=True)
        except OSError as error:
            raise StudyError(
                f"{path}: {error.strerror}; this file contains replies for {store.path} that are not stored "
                "yet"
            ) from error
    return taken


def _entries(path: Path, file: IO[bytes]) -> list[Entry]:
    from pydantic import TypeAdapter

    adapter = TypeAdapter(Entry)
    entries = []
    for number, line in enumerate(file, 1):
        if not line.endswith(b"\n"):
            # The run was killed while it wrote this line: `write` had not returned.
            break
        try:
            entries.append(adapter.validate_json(line))
        except ValueError as error:
            raise StudyError(
                f"{path}:{number}: this line cannot be read as a judgement that is waiting to be saved; to continue without this file, "
                "move it to another folder"
            ) from error
    return entries


def _take(store: Store, entries: Sequence[Entry]) -> int:
    with store.transaction() as conn:
        is_judged = "SELECT 1 FROM judgements WHERE (run_id, unit_id, repeat, attempt) = (?, ?, ?, ?)"
        is_stored = "SELECT 1 FROM runs, units WHERE run_id = ? AND unit_id = ?"
        new = {
            key: entry
            for entry in entries
            for key in [_key(entry)]
            if conn.execute(is_stored, key[:2]).fetchone() and not conn.execute(is_judged, key).fetchone()
        }
        add_judgements(conn, list(new.values()), set())
    return len(new)


def _key(entry: Entry) -> tuple[str, str, int, int]:
    j = entry.judgement
    return j.run_id, j.unit_id, j.repeat, j.attempt
