"""Read users' files record by record. Each record has a line or number, and each error names its place.

`judge.files` reads bytes, and this module turns them into records. All functions stream the file, so at most
one record is in memory. Parquet is the exception. A bad record is passed to `bad`, and reading continues if
`bad` returns. If the file cannot be read any further, BadInput is raised.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import ijson

from judge import files
from judge.errors import BadInput, UsageError
from judge.files import BadObject, open_input
from judge.importers.base import Bad, Row
from judge.importers.guess import MissingFields
from judge.types import Item, Where

T = TypeVar("T")
DEEPEST = 200
"""Maximum nesting depth of lists and objects.

ijson stores the path of each level, so its memory use grows with the square of the depth.
"""
LONGEST_NUMBER = 4000
"""Maximum number of digits in a number.

Python refuses to convert more than 4,300 digits to an integer, and ijson's C parser crashes on longer
numbers.
"""
_LONG = re.compile(rb"[0-9]{%d}" % (LONGEST_NUMBER + 1))
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_REST = re.compile(rb'(?:[^"\\]+|\\.)*', re.DOTALL)
# `bytes.translate` deletes all other bytes in one step, so that the loop in Python processes only brackets
# and quotes.
_PLAIN = bytes(set(range(256)) - set(b"[]{}"))


class Noting(dict[str, Any]):
    """A dictionary that records an invalid key in `wrong` instead of raising an error.

    ijson fills this dictionary. Its C parser would turn an exception that is raised during parsing into a
    SystemError.
    """

    wrong: str | None = None

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self:
            self.wrong = files.twice(name)
        elif not name.strip():
            self.wrong = files.NAMELESS
        super().__setitem__(name, value)


def refuse_noted(value: Any) -> None:
    """Raise BadObject if an object in the value, at any depth, has an invalid key (see `Noting`)."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, Noting) and part.wrong:
            raise BadObject(part.wrong)
        if isinstance(part, dict | list | tuple):
            parts = part.values() if isinstance(part, dict) else part
            left += [part for part in parts if isinstance(part, dict | list)]


class Shallow:
    """A file whose bytes are checked while they are read.

    Raises BadInput if lists and objects are nested deeper than `DEEPEST`, or if a number is too long.
    """

    def __init__(self, handle: IO[bytes], path: str) -> None:
        self._handle, self._path = handle, path
        self._depth = 0
        self._in_string = self._escaped = False
        # A number may continue in the next block of bytes, so the number of digits at the end of this block
        # is kept.
        self._digits = b""

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, and check them."""
        data = self._handle.read(size)
        self._follow(data)
        return data

    def _follow(self, data: bytes) -> None:
        at = 0
        if self._in_string:
            rest = _REST.match(data, int(self._escaped))
            at = rest.end() if rest else 0
            self._escaped = data[at:] == b"\\"
            if at >= len(data) or self._escaped:
                return
            self._in_string, at = False, at + 1
        outside = _STRING.sub(b"", data[at:])
        begun = outside.find(b'"')
        if begun >= 0:
            # The string that begins here ends in a later block. An escape sequence may be split between two
            # blocks.
            self._in_string = True
            slashes = len(outside) - len(outside.rstrip(b"\\"))
            self._escaped = slashes % 2 == 1
            outside = outside[:begun]
        outside = self._digits + outside
        if _LONG.search(outside):
            raise BadInput(f"a number has more than {LONGEST_NUMBER:,} digits", path=self._path)
        self._digits = outside[len(outside.rstrip(b"0123456789")) :]
        for mark in outside.translate(None, _PLAIN):
            self._depth += 1 if mark in b"[{" else -1
            if self._depth > DEEPEST:
                reason = f"lists and objects are nested more than {DEEPEST} levels deep"
                raise BadInput(reason, path=self._path)


@dataclass(slots=True)
class Records:
    """The records in a file. `word` is the noun for a numbered record: line, element or row."""

    path: Path
    word: str
    rows: Iterator[tuple[int, Any]]


def check_file(path: Path) -> None:
    """Raise UsageError if a path is not a file."""
    if not path.is_file():
        raise UsageError(
            f"{path}: {'this is a folder; pass the files in it' if path.is_dir() else 'there is no such file'}"
        )


def is_array(path: Path) -> bool:
    """Return whether the file is a JSON array, not JSON Lines."""
    with open_input(path) as handle:
        return files.is_list(handle)


def _is_one_object(path: Path) -> bool:
    """Return whether the file is a single JSON object that spans several lines, such as one downloaded record."""
    with open_input(path) as handle:
        # The first line of a pretty-printed object is a single brace. A line of JSON Lines is always a
        # complete object.
        return handle.readline(4096).strip() == b"{"


def json_records(path: Path, bad: Bad) -> Records:
    """Return the records in a file.

    The file may be JSON Lines, a JSON array, a single object that spans several lines, or Parquet.
    """
    if _is_parquet(path):
        return Records(path, "row", _require_rows(path, _parquet(path), bad, "the table is empty"))
    # This is tested before JSON Lines, because the first line of such a file is not valid JSON.
    if _is_one_object(path):
        return Records(path, "element", json_elements(path, ""))
    if is_array(path):
        return Records(path, "element", _require_rows(path, json_elements(path), bad, "the list is empty"))
    return Records(path, "line", _json_lines(path, bad))


def _require_rows(
    path: Path, rows: Iterator[tuple[int, Any]], bad: Bad, empty: str
) -> Iterator[tuple[int, Any]]:
    """Yield the rows. A file without rows is reported to `bad`."""
    number = 0
    for number, value in rows:
        yield number, value
    if not number:
        bad(BadInput(empty, path=str(path)))


def _json_lines(path: Path, bad: Bad) -> Iterator[tuple[int, Any]]:
    """Yield the lines. A file without lines is reported to `bad`.

    A file with only bad lines is not reported, because each bad line has already been reported.
    """
    count = 0

    def counted(error: BadInput) -> None:
        nonlocal count
        count += 1
        bad(error)

    with open_input(path) as handle:
        for number, value in files.json_lines(handle, path, counted):
            count += 1
            yield number, value
    if not count:
        bad(BadInput("the file is empty", path=str(path)))


def json_elements(path: Path, prefix: str = "item", *, lines: bool = False) -> Iterator[tuple[int, Any]]:
    """Yield (1-based position, value) for the elements of the array at `prefix` in a JSON file.

    With `lines`, the file may contain several JSON values, one after the other. Raises a BadInput that names
    the element if the JSON is malformed or incomplete.
    """

    def parse(handle: Shallow) -> Iterable[Any]:
        elements: Iterable[Any] = ijson.items(
            # ijson's default, Decimal, is not a JSON type, so later steps could not use it.
            handle,
            prefix,
            use_float=True,
            map_type=Noting,
            multiple_values=lines,
        )
        return elements

    return _parse_records(path, parse)


def json_pairs(path: Path) -> Iterator[tuple[int, tuple[str, Any]]]:
    """Yield (1-based position, (key, value)) for the keys of a JSON object. Raises the same errors as
    `json_elements`.
    """

    def parse(handle: Shallow) -> Iterator[tuple[str, Any]]:
        names = Noting()
        for name, value in ijson.kvitems(handle, "", use_float=True, map_type=Noting):
            names[name] = None
            refuse_noted(names)
            yield name, value

    return _parse_records(path, parse)


def json_events(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield the parser's (path, event, value) for a JSON file.

    Iteration stops at the first error. The importer reports the error when it reads the file.
    """
    with open_input(path) as handle:
        try:
            # Each event contains its path, so without a limit on depth, memory use would grow with the square
            # of the depth.
            yield from ijson.parse(Shallow(handle, str(path)), multiple_values=True)
        except (ijson.JSONError, ValueError, BadInput):
            return


def _parse_records(path: Path, parse: Callable[[Shallow], Iterable[Any]]) -> Iterator[tuple[int, Any]]:
    number = 0
    with open_input(path) as handle:
        try:
            for value in parse(Shallow(handle, str(path))):
                refuse_noted(value)
                number += 1
                yield number, value
        except (ijson.JSONError, ValueError) as error:
            first = str(error).split("\n")[0]
            problem = first if isinstance(error, BadObject) else f"not UTF-8 JSON: {first}"
            reason = f"element {number + 1}: {problem}"
            raise BadInput(reason, path=str(path), line=number + 1) from error


def csv_records(
    path: Path, bad: Bad, need: Iterable[str] = (), hint: Iterable[str] = ()
) -> tuple[list[str], Records]:
    """Return (columns, rows as dicts) for a delimited table with a header, or for Parquet.

    Cells are strings or, in Parquet, typed values. A record's line is the line on which the record starts.
    `hint` lists possible columns, which help to detect the delimiter. If the first column has no name, it is
    the index that pandas writes, and is omitted. Raises BadInput (line 1) if a column in `need` is missing or
    two columns have the same name.
    """
    need = list(need)
    if _is_parquet(path):
        with open_input(path) as handle:
            header, rows = files.parquet(handle, path)
        records = Records(path, "row", _require_rows(path, rows, bad, "no rows in the table"))
    else:
        cells = _cells(path, [*need, *hint], bad)
        _, first = next(cells, (0, []))
        header = first or []
        records = Records(path, "line", _dicts(path, header, cells, bad))
    _check(path, header, need)
    return [name for name in header if name.strip()], records


def table_or_json(path: Path, bad: Bad, need: Iterable[str] = ()) -> tuple[Records, bool]:
    """Return (records, whether the file is a table).

    A file with the suffix .csv or .tsv is a table, which must have the columns in `need`. Any other file is
    JSON or Parquet.
    """
    # `.csv.gz` is also a table, so all suffixes are compared.
    is_table = any(ending in path.suffixes for ending in (".csv", ".tsv"))
    return csv_records(path, bad, need)[1] if is_table else json_records(path, bad), is_table


def _check(path: Path, header: list[str], need: list[str]) -> None:
    if not header:
        raise BadInput("the file is empty", path=str(path))
    for place, name in enumerate(header, 1):
        if not files.is_text(name):
            raise BadInput(
                f"the name of column {place} is not UTF-8; save the file as UTF-8", path=str(path), line=1
            )
        # pandas writes its index as a first column without a name. If any other column has no name, the
        # header is malformed.
        if not name.strip() and place > 1:
            raise BadInput(f"column {place} has no name", path=str(path), line=1)
    if (double := files.find_duplicate(header)) is not None:
        raise BadInput("two columns have this name", path=str(path), line=1, field=double)
    for name in need:
        if name not in header:
            there = ", ".join(header)
            raise BadInput(
                f"there is no such column; available columns: {there}", path=str(path), line=1, field=name
            )


def _is_parquet(path: Path) -> bool:
    with open_input(path) as handle:
        return files.is_parquet(handle)


def _parquet(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with open_input(path) as handle:
        yield from files.parquet(handle, path)[1]


def _cells(path: Path, hint: list[str], bad: Bad) -> Iterator[tuple[int, list[str] | None]]:
    with open_input(path) as handle:
        files.refuse_list(handle, path, "a table with a header")
        yield from files.rows(handle, path, files.delimiter(path, handle, hint), bad)


def _dicts(
    path: Path, header: list[str], rows: Iterator[tuple[int, list[str] | None]], bad: Bad
) -> Iterator[tuple[int, Any]]:
    any_row = False
    for number, cells in rows:
        # A bad row counts as a row, so that the file is not also reported as empty.
        any_row = any_row or cells != []
        if not cells:
            continue
        wrong = next((n for n, c in zip(header, cells, strict=False) if not files.is_text(c)), None)
        if wrong is not None:
            bad(BadInput("not UTF-8", path=str(path), line=number, field=wrong))
        elif len(cells) != len(header):
            reason = f"this row has {len(cells)} cells, but the header has {len(header)}"
            bad(BadInput(reason, path=str(path), line=number))
        else:
            yield number, {name: cell for name, cell in zip(header, cells, strict=True) if name.strip()}
    if not any_row:
        bad(BadInput("there are no rows under the header", path=str(path)))


def add_place(error: BadInput, path: Path, number: int, word: str = "line") -> BadInput:
    """Add the file and the record's number to the error, unless the error already names a file."""
    if error.path:
        return error
    reason = error.reason if word == "line" else f"{word} {number}: {error.reason}"
    where: dict[str, Any] = {"path": str(path), "line": number, "field": error.field}
    if isinstance(error, MissingFields):
        return MissingFields(reason, error.maps, **where)
    return BadInput(reason, **where)


def build_all(records: Records, build: Callable[[Any], Iterable[T]], bad: Bad) -> Iterator[tuple[T, Where]]:
    """Call `build` for each record, and yield (result, place) for each result that it returns.

    If `build` raises BadInput, add the record's place to the error and pass the error to `bad`.
    """
    for number, record in records.rows:
        try:
            # All results are built before the first one is yielded, so that a bad record yields nothing.
            parts = list(build(record))
        except BadInput as error:
            bad(add_place(error, records.path, number, records.word))
            continue
        for part in parts:
            yield part, Where(str(records.path), number)


def build_each(records: Records, build: Callable[[Any], Iterable[Item]], bad: Bad) -> Iterator[Row]:
    """Yield one row for each item that `build` makes from the records.

    `build` may return several items for a record. Errors are handled as in `build_all`.
    """
    return (Row(item, where) for item, where in build_all(records, build, bad))
