"""Replies that were received and cannot be committed yet, in a file beside the study that the next run takes in.

`STUDY.db.RUN.unsaved.jsonl` holds one judgement a line, with the request it rests on. It is written as soon as a
commit cannot be made (another program holds the study), so that a run that is killed meanwhile has lost nothing
either, and removed once the commit was made. Who writes it has it locked; nobody else takes it in.
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
    """The file of one run. `lost` says why something could not be written to it, None = it was."""

    def __init__(self, study: Path, run_id: str) -> None:
        study = study.resolve()
        self.path = study.with_name(f"{study.name}.{run_id}{SUFFIX}")
        self.lost: OSError | None = None
        self._file: IO[bytes] | None = None

    def put(self, entries: Iterable[Entry]) -> None:
        """Keep them, on the disk when it returns."""
        lines = [json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in entries]
        try:
            if self._file is None:
                self._file = self.path.open("ab")
                fcntl.flock(self._file, fcntl.LOCK_EX)
            # A reply may hold half a surrogate pair, which no file takes.
            self._file.write("".join(lines).encode("utf-8", "replace"))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self.lost = error

    def close(self, *, committed: bool) -> None:
        """Let go of the file, and remove it when everything in it is in the study."""
        if committed:
            self.path.unlink(missing_ok=True)
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError as error:
                self.lost = error


def take_in(store: Store) -> int:
    """Commit what earlier runs have left beside the study and remove the files; how many judgements that were.

    What is in the study already, and what speaks of runs or units that no longer are, is passed over; so is a line
    that was cut. Raises StudyError for a file that cannot be read or is none of ours.
    """
    study, taken = store.path.resolve(), 0
    for path in sorted(study.parent.glob(f"{glob.escape(study.name)}.*{SUFFIX}")):
        try:
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue  # a run is at it
                taken += _take(store, _entries(path, file))
                path.unlink(missing_ok=True)
        except OSError as error:
            raise StudyError(
                f"{path}: {error.strerror}; it holds received replies of {store.path}"
            ) from error
    return taken


def _entries(path: Path, file: IO[bytes]) -> list[Entry]:
    from pydantic import TypeAdapter

    reads = TypeAdapter(Entry)
    found = []
    for number, line in enumerate(file, 1):
        if not line.endswith(b"\n"):
            break  # it was being written when the run was killed: nobody had counted on it yet
        try:
            found.append(reads.validate_json(line))
        except ValueError as error:
            raise StudyError(
                f"{path}:{number}: not a judgement as a run sets it aside; move the file away to go on without it"
            ) from error
    return found


def _take(store: Store, entries: Sequence[Entry]) -> int:
    with store.transaction() as conn:
        known = "SELECT 1 FROM judgements WHERE (run_id, unit_id, repeat, attempt) = (?, ?, ?, ?)"
        there = "SELECT 1 FROM runs, units WHERE run_id = ? AND unit_id = ?"
        new = {
            key: entry
            for entry in entries
            for key in [_key(entry)]
            if conn.execute(there, key[:2]).fetchone() and not conn.execute(known, key).fetchone()
        }
        add_judgements(conn, list(new.values()), set())
    return len(new)


def _key(entry: Entry) -> tuple[str, str, int, int]:
    j = entry.judgement
    return j.run_id, j.unit_id, j.repeat, j.attempt
