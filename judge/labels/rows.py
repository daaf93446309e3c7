"""The rows of any table, each with the line it begins on: CSV with any delimiter, TSV, JSON, JSON Lines, Parquet.

Each may be packed with gzip. Cells of a delimited table are text; those of the others are what they are there.
"""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from judge import files
from judge.errors import BadInput
from judge.labels.values import number
from judge.types import Json

JSON = (".jsonl", ".ndjson", ".json")
DELIMITED = (".csv", *files.TABS)

Row = tuple[int, Sequence[Json]]


@dataclass(frozen=True)
class TableRows:
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


def table(path: Path, hint: Sequence[str] = ()) -> TableRows:
    """The table in a file.

    `hint` are columns that may be there: of delimiters that a header could be split at, the one that finds more of
    them is taken, then the one that finds more columns. Raises BadInput, some of it only when the rows are read.
    """
    found = _records(path, hint)
    columns, line = next(found)
    return TableRows(str(path), columns, line, found)


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


def _records(path: Path, hint: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """(columns, their line), then (line, cells) row by row."""
    with files.opened(path) as file:
        # A table of labels is small beside the texts, and one that is read in part only leaves no file open.
        handle = io.BytesIO(file.read())
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if files.is_parquet(handle):
        columns, rows = files.parquet(handle, path)
        yield columns, 0
        for line, row in rows:
            yield line, [row[name] for name in columns]
    elif ending in JSON or (ending not in DELIMITED and files.is_json(handle)):
        yield from _objects(handle, path, ending)
    else:
        yield from _delimited(handle, path, hint)


def _delimited(handle: IO[bytes], path: Path, hint: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    head: list[str] | None = None
    files.not_a_list(handle, path, "a table with a header")
    mark = files.delimiter(path, handle, hint)
    for line, cells in files.rows(handle, path, mark, files.stop):
        if not cells:
            continue
        if not all(map(files.is_text, cells)):
            raise BadInput("not UTF-8: save the file as UTF-8", path=str(path), line=line)
        if head is None:
            head = cells
            yield head, line
        elif len(cells) != len(head):
            reason = f"this row has {len(cells)} cells, the header {len(head)}"
            raise BadInput(reason, path=str(path), line=line)
        else:
            yield line, cells
    if head is None:
        raise BadInput("the file is empty", path=str(path))


def _objects(handle: IO[bytes], path: Path, ending: str) -> Iterator[tuple[Any, Any]]:
    rows: list[tuple[int, dict[str, Json]]] = []
    # A column may be left out where it is empty, so the columns are those that any row has.
    head: dict[str, None] = {}
    lines = ending in (".jsonl", ".ndjson")
    if lines:
        files.not_a_list(handle, path, "JSON Lines")
    listed = not lines and files.is_list(handle)
    found = files.json_list(handle, path) if listed else files.json_lines(handle, path, files.stop)
    for line, row in found:
        if not isinstance(row, dict):
            raise BadInput("a row must be an object", path=str(path), line=line)
        head.update(dict.fromkeys(row))
        rows.append((line, row))
    if not rows:
        raise BadInput("the list is empty" if listed else "the file is empty", path=str(path))
    names = list(head)
    yield names, 0
    for line, row in rows:
        yield line, [row.get(name) for name in names]


def _texts(
    found: TableRows, columns: Sequence[str], places: Sequence[int], objects: Sequence[str]
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
