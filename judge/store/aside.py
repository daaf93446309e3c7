"""Save replies that cannot be committed yet in a file. The next run imports them.

The file is next to the study or, if that disk is full too, in a folder of this user on another device.

`STUDY.db.RUN.unsaved.jsonl` has one judgement per line, with its request. The file is written when a commit
fails, for example because another program has locked the study. If the run is then killed, no paid reply is
lost. The file is removed after the next successful commit. The writing process holds a lock on the file, so
no other process reads it.
"""

import fcntl
import glob
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO

from judge.errors import StudyError
from judge.store.judgements import Entry, add_judgements
from judge.store.study import Store

SUFFIX = ".unsaved.jsonl"


class Aside:
    """The file of one run. `lost` is the error if no place had room for all entries, otherwise None."""

    def __init__(self, study: Path, run_id: str) -> None:
        self._paths = [folder / f"{name}.{run_id}{SUFFIX}" for folder, name in find_places(study.resolve())]
        self.path = self._paths[0]
        self.lost: OSError | None = None
        self._unwritten: list[bytes] = []
        self._files: dict[Path, IO[bytes]] = {}

    def write(self, entries: Iterable[Entry] = ()) -> None:
        """Write the entries, and those that did not fit before, and flush them to disk.

        If they do not fit, they stay in memory until the next call.
        """
        # A reply may contain a lone surrogate, which UTF-8 cannot encode.
        self._unwritten += [
            (json.dumps(asdict(entry), ensure_ascii=False) + "\n").encode("utf-8", "replace")
            for entry in entries
        ]
        if not self._unwritten:
            return
        for path in self._paths:
            try:
                self._append(path, b"".join(self._unwritten))
            except OSError as error:
                self.lost = error
            else:
                self.path, self.lost, self._unwritten = path, None, []
                return

    def _append(self, path: Path, lines: bytes) -> None:
        """Append the lines. If they do not fit, the file has the same content as before."""
        if path not in self._files:
            # Others must not read the replies in a shared folder, and a link must not send them elsewhere.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            self._files[path] = os.fdopen(os.open(path, flags, 0o600), "ab", buffering=0)
            fcntl.flock(self._files[path], fcntl.LOCK_EX)
        file = self._files[path]
        size = os.fstat(file.fileno()).st_size
        try:
            left = memoryview(lines)
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except OSError:
            os.ftruncate(file.fileno(), size)
            raise

    def close(self, *, committed: bool) -> None:
        """Close the files, and remove them if everything in them has been committed."""
        for path, file in self._files.items():
            try:
                is_empty = not os.fstat(file.fileno()).st_size
                if committed or is_empty:
                    path.unlink(missing_ok=True)
                file.close()
            except OSError as error:
                self.lost = error
        self._files.clear()


def find_places(study: Path) -> list[tuple[Path, str]]:
    """Return the folders for a study's files and the beginnings of their names. The first folder is the study's.

    The others are on other devices. Their names contain a hash of the study's path.
    """
    places, devices = [(study.parent, study.name)], {study.parent.stat().st_dev}
    name = f"adjudge-{hashlib.sha256(os.fsencode(study)).hexdigest()[:16]}"
    for folder in (Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/dev/shm"), Path.home()):
        if os.access(folder, os.W_OK) and (device := folder.stat().st_dev) not in devices:
            devices.add(device)
            places.append((folder, name))
    return places


def take_in(store: Store) -> int:
    """Commit the judgements in the files that earlier runs have left, and remove the files.

    Returns the number of judgements. Judgements that are already stored, judgements for runs or units that no
    longer exist, and a truncated last line are skipped. Raises StudyError if a file cannot be read or was not
    written by adjudge.
    """
    taken = 0
    paths = [
        path
        for folder, name in find_places(store.path.resolve())
        for path in sorted(folder.glob(f"{glob.escape(name)}.*{SUFFIX}"))
    ]
    for path in paths:
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                # Any user may write into a folder for temporary files.
                if (
                    os.fstat(file.fileno()).st_uid != os.geteuid()
                    and path.parent != store.path.resolve().parent
                ):
                    continue
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
