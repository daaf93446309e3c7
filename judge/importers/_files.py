"""Users' files as records: one at a time, each with its line, and errors that say where.

Every function streams; at most one record is in memory. A file that cannot be read on (broken
gzip, broken JSON array, gone) raises BadInput, because what follows is unknown; a bad line goes to
`bad` and reading continues when `bad` returns.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import ijson

from judge.errors import BadInput
from judge.importers._json import Noting, Shallow, loads, refuse_noted
from judge.importers.base import Bad, Row
from judge.types import Item, Where

LONGEST = 64 * 2**20
"""Bytes of the longest line (and characters of the longest CSV cell) that is read."""


@dataclass(slots=True)
class Records:
    """The records of one file; `word` says what their numbers count: line or element."""

    path: Path
    word: str
    rows: Iterator[tuple[int, Any]]


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of `path`, unpacked when it is gzip, after the byte order mark if there is one."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            handle = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw
            if handle.read(3) != codecs.BOM_UTF8:
                handle.seek(0)
            yield handle
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"cannot be read: {why}", path=str(path)) from error


def is_array(path: Path) -> bool:
    """True when the file is one JSON array rather than lines of JSON objects."""
    with opened(path) as handle:
        return handle.read(4096).lstrip()[:1] == b"["


def json_records(path: Path, bad: Bad) -> Records:
    """JSON Lines or one JSON array, whichever the file is."""
    if is_array(path):
        return Records(path, "element", _some(path, json_elements(path), bad))
    return Records(path, "line", json_lines(path, bad))


def _some(path: Path, rows: Iterator[tuple[int, Any]], bad: Bad) -> Iterator[tuple[int, Any]]:
    number = 0
    for number, value in rows:
        yield number, value
    if not number:
        bad(BadInput("the list is empty", path=str(path)))


def json_lines(path: Path, bad: Bad) -> Iterator[tuple[int, Any]]:
    """(line, value) of a JSON Lines file; blank lines are skipped, an empty file is bad."""
    found = False
    for number, line in _lines(path, bad):
        if line.isspace():
            continue
        found = True
        try:
            value = loads(line)
        except (ValueError, RecursionError) as error:
            bad(BadInput(f"not UTF-8 JSON: {error}", path=str(path), line=number))
        else:
            yield number, value
    if not found:
        bad(BadInput("the file is empty", path=str(path)))


def _lines(path: Path, bad: Bad) -> Iterator[tuple[int, bytes]]:
    with opened(path) as handle:
        number = 0
        while line := handle.readline(LONGEST):
            number += 1
            if len(line) == LONGEST and not line.endswith(b"\n"):
                while line and not line.endswith(b"\n"):
                    line = handle.readline(LONGEST)
                bad(BadInput(f"a line of over {LONGEST >> 20} MB", path=str(path), line=number))
                continue
            yield number, line


def json_elements(path: Path, prefix: str = "item") -> Iterator[tuple[int, Any]]:
    """(1-based position, value) of the elements of the array at `prefix` of a JSON file.

    Raises BadInput, with the element, where the JSON ends or breaks.
    """
    return _parsed(path, lambda handle: ijson.items(handle, prefix, use_float=True, map_type=Noting))


def json_pairs(path: Path, prefix: str = "") -> Iterator[tuple[int, tuple[str, Any]]]:
    """(1-based position, (key, value)) of the object at `prefix` of a JSON file; raises the same."""

    def parse(handle: IO[bytes]) -> Iterator[tuple[str, Any]]:
        names = Noting()
        for name, value in ijson.kvitems(handle, prefix, use_float=True, map_type=Noting):
            names[name] = None
            refuse_noted(names)
            yield name, value

    return _parsed(path, parse)


def _parsed(path: Path, parse: Callable[[IO[bytes]], Iterable[Any]]) -> Iterator[tuple[int, Any]]:
    number = 0
    with opened(path) as handle:
        try:
            for value in parse(cast("IO[bytes]", Shallow(handle, str(path)))):
                refuse_noted(value)
                number += 1
                yield number, value
        except (ijson.JSONError, ValueError) as error:
            first = str(error).split("\n")[0]
            reason = f"element {number + 1}: not UTF-8 JSON: {first}"
            raise BadInput(reason, path=str(path), line=number + 1) from error


def csv_records(path: Path, bad: Bad, need: Iterable[str] = ()) -> tuple[list[str], Records]:
    """(columns, rows as dicts) of a CSV file with a header (`.tsv`: tab-separated).

    Cells are text; a record's line is the one it starts on. Raises BadInput (line 1) when a
    column of `need` is missing or a name stands twice.
    """
    rows = _csv_rows(path, bad)
    _, header = next(rows, (0, []))
    if not header:
        raise BadInput("the file is empty", path=str(path))
    for place, name in enumerate(header, 1):
        if not name.strip():
            raise BadInput(f"column {place} has no name", path=str(path), line=1)
        if header.count(name) > 1:
            raise BadInput("two columns have this name", path=str(path), line=1, field=name)
    for name in need:
        if name not in header:
            there = ", ".join(header)
            raise BadInput(f"no such column; there are: {there}", path=str(path), line=1, field=name)
    return header, Records(path, "line", _csv_dicts(path, header, rows, bad))


def _csv_rows(path: Path, bad: Bad) -> Iterator[tuple[int, list[str] | None]]:
    """(line, cells); None for a record that is no CSV and has been reported."""
    csv.field_size_limit(LONGEST)
    delimiter = "\t" if ".tsv" in path.suffixes else ","
    with opened(path) as handle:
        # Undecodable bytes pass as lone surrogates, so that they can be reported with their row.
        text = io.TextIOWrapper(handle, encoding="utf-8", errors="surrogateescape", newline="")
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        while True:
            start = reader.line_num + 1
            cells: list[str] | None
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                bad(BadInput(f"not CSV: {error}", path=str(path), line=start))
                cells = None
            yield start, cells


def _csv_dicts(
    path: Path, header: list[str], rows: Iterator[tuple[int, list[str] | None]], bad: Bad
) -> Iterator[tuple[int, Any]]:
    found = False
    for number, cells in rows:
        found = found or cells != []
        if not cells:
            continue
        wrong = next((n for n, c in zip(header, cells, strict=False) if not _is_utf8(c)), None)
        if wrong is not None:
            bad(BadInput("not UTF-8", path=str(path), line=number, field=wrong))
        elif len(cells) != len(header):
            reason = f"{len(cells)} cells under {len(header)} columns"
            bad(BadInput(reason, path=str(path), line=number))
        else:
            yield number, dict(zip(header, cells, strict=True))
    if not found:
        bad(BadInput("no rows under the header", path=str(path)))


def _is_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def placed(error: BadInput, path: Path, number: int, word: str = "line") -> BadInput:
    """The same error with the file and the number of its record, unless it says where already."""
    if error.path:
        return error
    reason = error.reason if word == "line" else f"{word} {number}: {error.reason}"
    return BadInput(reason, path=str(path), line=number, field=error.field)


def each(records: Records, build: Callable[[Any], Iterable[Item]], bad: Bad) -> Iterator[Row]:
    """Rows of the items that `build` makes of each record; its BadInput goes to `bad`, placed."""
    for number, record in records.rows:
        try:
            items = list(build(record))
        except BadInput as error:
            bad(placed(error, records.path, number, records.word))
            continue
        for item in items:
            yield Row(item, Where(str(records.path), number))
