"""Write files for other tools, either completely or not at all, and read files from other tools.

Every error in a file that is read contains the line number.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from judge import files
from judge.errors import BadInput, UsageError, WriteFailed
from judge.types import Json

MARK = ".adjudge-export"
"""The marker file in every folder that we write. Only a folder with this file is replaced."""


class Out:
    """An output file or folder that appears only when it is complete.

        with Out(path, "folder") as out, out.open("tasks.jsonl") as file: ...

    While it is being written, the output has a temporary name next to `path`. No partial output remains after
    an error.

    Raises UsageError if something else exists at the path, and WriteFailed if the disk is full.
    """

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind = path, kind
        self.rows: dict[str, int] = {}
        """The number of rows of each file, by file name. `lines` counts the rows; a format that uses `open`
        must count them itself.
        """
        # The temporary path is next to the target, because a rename is atomic only within one file system. Its
        # random part separates exports that run at the same time.
        self._part = path.parent / f".{path.name}.{secrets.token_hex(4)}.part"

    def __enter__(self) -> Out:
        if not self.path.name:
            raise UsageError(f"-o {self.path}: must include the name of a file or folder")
        if not self.path.parent.is_dir():
            raise UsageError(f"-o {self.path}: the folder {self.path.parent} does not exist")
        if self.path.exists() and not self.path.is_file() and not self.path.is_dir():
            raise UsageError(
                f"-o {self.path} is a device or a pipe; choose a regular file, which can be replaced as a whole"
            )
        if self.kind == "file" and self.path.is_dir():
            raise UsageError(f"-o {self.path} is a folder, but this format is a single file")
        if self.kind == "folder" and self.path.exists():
            if not self.path.is_dir():
                raise UsageError(f"-o {self.path} is a file, but this format is a folder of files")
            if any(self.path.iterdir()) and not (self.path / MARK).exists():
                raise UsageError(f"-o {self.path} contains other files; choose a new folder")
        if self.kind == "folder":
            with self.convert_errors():
                self._part.mkdir()
                (self._part / MARK).write_text("annotate export wrote this folder and may replace it\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                with self.convert_errors():
                    self._flush()
        finally:
            if self._part.is_dir():
                shutil.rmtree(self._part, ignore_errors=True)
            else:
                with suppress(OSError):
                    self._part.unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._part.exists():
            raise WriteFailed(f"{self.path}: the format wrote no file")
        if self.kind == "folder" and self.path.is_dir():
            # A folder cannot be replaced in one step, so the old one is renamed first, and renamed back if
            # the second step fails.
            aside = self._part.with_suffix(".old")
            self.path.rename(aside)
            try:
                self._part.rename(self.path)
            except BaseException:
                aside.rename(self.path)
                raise
            shutil.rmtree(aside, ignore_errors=True)
        else:
            self._part.replace(self.path)

    def place(self, name: str = "") -> Path:
        """Return the temporary path of a file in the output folder, or of the output file itself."""
        if self.kind == "file":
            return self._part
        target = self._part / name
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    @contextmanager
    def convert_errors(self) -> Iterator[None]:
        """Convert disk errors to WriteFailed."""
        try:
            yield
        except OSError as e:
            raise WriteFailed(f"{self.path}: {e.strerror or e}; nothing was written") from e

    @contextmanager
    def open(self, name: str = "") -> Iterator[IO[str]]:
        """Open a text file in the output folder, or the output file itself. The file is on disk when the `with`
        block ends.
        """
        with self.convert_errors(), self.place(name).open("w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            # Otherwise the file could get its name before its content is on the disk.
            os.fsync(file.fileno())

    @contextmanager
    def lines(self, name: str = "") -> Iterator[Callable[[Json], None]]:
        """Open a JSON Lines file, and yield a function that writes one row to it."""
        key = name or self.path.name
        self.rows[key] = 0
        with self.open(name) as file:

            def put(row: Json) -> None:
                # Python would otherwise write NaN, which is not valid JSON and which other programs reject.
                file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
                self.rows[key] += 1

            yield put

    def write_json(self, name: str, document: Json) -> None:
        """Write a complete JSON document, indented so that people can read it."""
        with self.open(name) as file:
            file.write(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n")


def json_records(
    path: Path, bad: Callable[[BadInput], None], data: IO[bytes] | None = None
) -> Iterator[tuple[int, dict[str, Json]]]:
    """Yield (line number, object) from a JSON Lines file, or from a file with a single JSON array of objects.

    If `data` is given, it is read instead of `path`, and `path` is only the name used in errors. `data` is an
    open file without a path, such as a member of an archive.

    Calls `bad` for a line that is not a JSON object. Raises BadInput if the file cannot be read, is empty, or
    contains an unterminated array.
    """
    with _handle(path, data) as file:
        at = file.tell()
        if not file.read(4096).strip():
            raise BadInput("the file is empty", path=str(path))
        file.seek(at)
        listed = files.is_list(file)
        rows = files.json_list(file, path) if listed else files.json_lines(file, path, bad)
        for line, row in rows:
            if isinstance(row, dict):
                yield line, row
            else:
                bad(BadInput("a row must be a JSON object", path=str(path), line=line))


@contextmanager
def _handle(path: Path, data: IO[bytes] | None) -> Iterator[IO[bytes]]:
    if data is None:
        with files.open_input(path) as file:
            yield file
        return
    with data:
        files.skip_byte_order_mark(data)
        yield data
