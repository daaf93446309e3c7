"""The rows of any table, each with the line it begins on: CSV with any delimiter, TSV, JSON, JSON Lines, Parquet.

Each may be packed with gzip. Cells of a delimited table are text; those of the others are what they are there.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from judge.errors import BadInput, MissingExtra
from judge.labels.values import number
from judge.strict import whole_object
from judge.types import Json

csv.field_size_limit(2**31 - 1)  # tables carry whole passages
MOST_DIGITS = 300  # the largest float has 309
DELIMITERS = ",;\t|"
FORMATS = "CSV, TSV, JSON, JSON Lines or Parquet"

Row = tuple[int, Sequence[Json]]


@dataclass(frozen=True)
class Rows:
    """The columns of a table, the line that names them (0: none does), and (line, cells) of each row.

    The line of a row of Parquet is its number.
    """

    path: str
    columns: Sequence[str]
    line: int
    rows: Iterator[Row]

    def places(self, names: Sequence[str]) -> list[int]:
        """Where these columns are. Raises BadInput for one that is not there, or twice."""
        for name in names:
            if name not in self.columns:
                told = ", ".join(self.columns[:30]) + (" ..." if len(self.columns) > 30 else "")
                raise BadInput(f"no column '{name}'; there are: {told}", path=self.path, line=self.line)
            if self.columns.count(name) > 1:
                raise BadInput(
                    "there are two columns of this name", path=self.path, line=self.line, field=name
                )
        return [self.columns.index(name) for name in names]


def table(path: Path, hint: Sequence[str] = ()) -> Rows:
    """The table in a file.

    `hint` are columns that may be there: of delimiters that a header could be split at, the one that finds more of
    them is taken, then the one that finds more columns. Raises BadInput, some of it only when the rows are read.
    """
    data = _unpacked(path)
    if data[:4] == b"PAR1":
        return _parquet(data, str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise BadInput("not UTF-8: save the table as UTF-8", path=str(path), line=line) from e
    if not text.strip():
        raise BadInput("the file is empty", path=str(path))
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending in (".jsonl", ".ndjson"):
        return _objects(_lines(text), str(path))
    if ending == ".json":
        return _objects(_elements(text) if text.lstrip()[0] == "[" else _lines(text), str(path))
    return _delimited(text, str(path), "\t" if ending in (".tsv", ".tab") else _delimiter(text, hint))


def read_rows(
    path: Path, columns: Sequence[str], objects: Sequence[str] = ()
) -> Iterator[tuple[int, list[str]]]:
    """(line, the cells of `columns` in this order) as text, an empty string for a missing cell.

    Cells of `objects` may be objects, which come as JSON text.

    Raises BadInput for a file that cannot be read, for columns that are not there, ragged rows, and a
    column that holds text in one row and numbers or true/false in another.
    """
    found = table(path, columns)
    return _texts(found, columns, found.places(columns), objects)


def columns_of(path: Path) -> list[str]:
    """The names of a table's columns. Raises BadInput for one that cannot be read or has a name twice."""
    found = table(path, ("unit",))
    found.places(found.columns)
    return list(found.columns)


def _unpacked(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as e:
        raise BadInput(f"cannot be read: {getattr(e, 'strerror', None) or e}", path=str(path)) from e


def _delimited(text: str, path: str, delimiter: str) -> Rows:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)

    def rows() -> Iterator[Row]:
        line = 1
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error as e:
            raise BadInput(f"not CSV: {e} (a quote that is not closed?)", path=path, line=line) from e

    def even() -> Iterator[Row]:
        for number_, cells in found:
            if len(cells) != len(head):
                reason = f"this row has {len(cells)} cells, the header {len(head)}"
                raise BadInput(reason, path=path, line=number_)
            yield number_, cells

    found = rows()
    line, first = next(found)
    head = [str(name) for name in first]
    return Rows(path, head, line, even())


def _delimiter(text: str, hint: Sequence[str]) -> str:
    first = text.lstrip("\r\n").replace("\r", "\n", 1).partition("\n")[0]

    def found(delimiter: str) -> tuple[int, int]:
        names = next(csv.reader([first], delimiter=delimiter), [])
        return len(set(hint) & set(names)), len(names)

    return max(DELIMITERS, key=found)


def _lines(text: str) -> Iterator[tuple[int, Callable[[], Json]]]:
    for line, part in enumerate(text.split("\n"), 1):
        if part.strip():
            yield line, lambda part=part: _DECODER.decode(part)  # type: ignore[misc]


def _elements(text: str) -> Iterator[tuple[int, Callable[[], Json]]]:
    """The elements of one JSON list, each with the line it begins on."""
    at, line, counted = text.index("[") + 1, 1, 0

    def skip(marks: str) -> None:
        nonlocal at
        while at < len(text) and text[at] in marks:
            at += 1

    def element() -> Json:
        nonlocal at
        value, at = _DECODER.raw_decode(text, at)
        skip(" \t\r\n")
        if text[at : at + 1] not in (",", "]"):
            raise ValueError("a list goes on with a comma or ends with ]")
        if text[at] == ",":
            at += 1
            skip(" \t\r\n")
            if text[at : at + 1] == "]":
                raise ValueError("a comma before the ]")
        return value

    skip(" \t\r\n")
    while text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        yield line, element
    if text[at + 1 :].strip():
        raise BadInput("there is more after the list", line=line + text.count("\n", counted, at))


def _objects(parts: Iterable[tuple[int, Callable[[], Json]]], path: str) -> Rows:
    rows: list[tuple[int, dict[str, Json]]] = []
    # A column may be left out where it is empty, so the columns are those that any row has.
    head: dict[str, None] = {}
    line = 1
    try:
        for line, load in parts:
            row = load()
            if not isinstance(row, dict):
                raise BadInput("a row must be an object", line=line)
            head.update(dict.fromkeys(row))
            rows.append((line, row))
    except BadInput as e:
        raise BadInput(e.reason, path=path, line=e.line or line, field=e.field) from e
    except (ValueError, RecursionError) as e:
        told = "nested too deeply" if isinstance(e, RecursionError) else e
        raise BadInput(f"not JSON: {told}", path=path, line=line) from e
    if not rows:
        raise BadInput("the list is empty", path=path)
    names = list(head)
    return Rows(path, names, 0, ((line, [row.get(name) for name in names]) for line, row in rows))


def _parquet(data: bytes, path: str) -> Rows:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as e:
        raise MissingExtra(f"{path}: Parquet needs pyarrow: pip install 'adjudge[parquet]'") from e
    try:
        found = pyarrow.parquet.read_table(pyarrow.BufferReader(data))
    except (pyarrow.ArrowException, OSError) as e:
        reason = str(e).split("\n")[0]
        raise BadInput(f"not Parquet: {reason}", path=path) from e
    columns = [column.to_pylist() for column in found.columns]
    return Rows(path, found.column_names, 0, enumerate(zip(*columns, strict=True), 1))


def _texts(
    found: Rows, columns: Sequence[str], places: Sequence[int], objects: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    seen: dict[str, tuple[str, int]] = {}
    for line, cells in found.rows:
        yield (
            line,
            [
                json.dumps(cells[at])
                if name in objects and isinstance(cells[at], dict)
                else _text(cells[at], name, seen, found.path, line)
                for name, at in zip(columns, places, strict=True)
            ],
        )


def _text(value: Json, column: str, seen: dict[str, tuple[str, int]], path: str, line: int) -> str:
    if value is None or value == "":
        return ""
    kinds = {str: "text", bool: "true/false", int: "a number", float: "a number"}
    kind = kinds.get(type(value))
    if kind is None:
        raise BadInput("a cell is text, a number or true/false", path=path, line=line, field=column)
    known, first = seen.setdefault(column, (kind, line))
    if kind != known:
        reason = f"{json.dumps(value)} is {kind}, but line {first} has {known}: write all alike"
        raise BadInput(reason, path=path, line=line, field=column)
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int) else number(repr(value))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise BadInput(f"the number {_short(text)} is too large to compute with")
    return value


def _int(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise BadInput(f"the number {_short(text)} has {len(text):,} digits: quote it if it is a name")
    return int(text)


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:20]}..."


_DECODER = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_float, parse_int=_int, object_pairs_hook=whole_object
)
