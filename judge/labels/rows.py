"""Read the rows of a table and their line numbers.

The file may be CSV (with any delimiter), TSV, JSON, JSON Lines or Parquet. Any of these files may be compressed with
gzip. Cells of a delimited table are strings; cells of the other formats keep their types.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from judge import files
from judge.document.csv import remove_guard
from judge.errors import BadInput
from judge.labels.values import number
from judge.types import Json

JSON = (".jsonl", ".ndjson", ".json")
DELIMITED = (".csv", *files.TABS)

NOT_UTF_8 = (
    "not UTF-8, although other lines of the file are: save the file again with one encoding (LibreOffice: 'Edit filter "
    "settings'; Excel: 'CSV UTF-8')"
)
"""The error for a damaged line of a table in UTF-8."""

Row = tuple[int, Sequence[Json]]


@dataclass(frozen=True)
class TableRows:
    """A table: its columns, the line number of its header (0 if there is none), and (line, cells) for each row.

    For Parquet, the line is the row number.
    """

    path: str
    columns: Sequence[str]
    line: int
    rows: Iterator[Row]

    def places(self, names: Sequence[str]) -> list[int]:
        """Return the positions of these columns. Raises BadInput for a missing or duplicate column."""
        for name in names:
            if name not in self.columns:
                listed = ", ".join(self.columns[:30]) + (" ..." if len(self.columns) > 30 else "")
                raise BadInput(f"no column '{name}'; available: {listed}", path=self.path, line=self.line)
            if self.columns.count(name) > 1:
                raise BadInput("two columns have this name", path=self.path, line=self.line, field=name)
        return [self.columns.index(name) for name in names]


def table(path: Path, hint: Sequence[str] = ()) -> TableRows:
    """Return the table that a file contains.

    `hint` lists the expected columns. The delimiter is the one that splits the header into the most expected
    columns or, in a tie, into the most columns. Raises BadInput if the file is not a table; some errors are
    raised only when the rows are read.
    """
    records = _records(path, hint)
    columns, line = next(records)
    return TableRows(str(path), columns, line, records)


def read_rows(
    path: Path, columns: Sequence[str], objects: Sequence[str] = ()
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) for each row, with the cells of `columns` as strings, in this order. A missing cell
    is an empty string.

    Cells in the columns `objects` may be objects, which are returned as JSON strings. Raises BadInput if the
    file cannot be read, if a column is missing, if rows differ in length, or if a column mixes text with
    numbers or true/false.
    """
    source = table(path, columns)
    return _texts(source, columns, source.places(columns), objects)


def columns_of(path: Path) -> list[str]:
    """Return the names of a table's columns. Raises BadInput for an unreadable table or a duplicate name."""
    source = table(path, ("unit",))
    source.places(source.columns)
    return list(source.columns)


def _records(path: Path, hint: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Yield the columns and their line number first, then (line, cells) for each row."""
    with files.open_input(path) as handle:
        ending = Path(path.name.removesuffix(".gz")).suffix.lower()
        if files.is_parquet(handle):
            columns, rows = files.parquet(handle, path)
            yield columns, 0
            for line, row in rows:
                yield line, [row[name] for name in columns]
        elif ending in JSON or (ending not in DELIMITED and files.is_json(handle)):
            yield from _objects(handle, path, ending)
        else:
            yield from _read_delimited(handle, path, hint)


def _read_delimited(handle: IO[bytes], path: Path, hint: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    head: list[str] | None = None
    # The first line of a JSON list in a file called .csv would otherwise be read as the header.
    files.refuse_list(handle, path, "a table with a header")
    mark = files.delimiter(path, handle, hint)
    for line, cells in files.rows(handle, path, mark, files.stop):
        if not cells:
            continue
        if not all(map(files.is_text, cells)):
            raise BadInput(NOT_UTF_8, path=str(path), line=line)
        if head is None:
            head = cells
            yield head, line
        elif len(cells) != len(head):
            reason = f"this row has {len(cells)} cells, but the header has {len(head)}"
            raise BadInput(reason, path=str(path), line=line)
        else:
            # Our own exports put an apostrophe before a text that a spreadsheet would run.
            yield line, list(map(remove_guard, cells))
    if head is None:
        raise BadInput("the file is empty", path=str(path))


def _objects(handle: IO[bytes], path: Path, ending: str) -> Iterator[tuple[Any, Any]]:
    lines = ending in (".jsonl", ".ndjson")
    if lines:
        files.refuse_list(handle, path, "JSON Lines")
    listed = not lines and files.is_list(handle)
    start = handle.tell()

    def parse() -> Iterator[tuple[int, dict[str, Json]]]:
        handle.seek(start)
        parsed = files.json_list(handle, path) if listed else files.json_lines(handle, path, files.stop)
        for line, row in parsed:
            if not isinstance(row, dict):
                raise BadInput("a row must be an object", path=str(path), line=line)
            yield line, row

    # An empty column may be left out of a row, so the columns are those of all rows together. The file is parsed twice,
    # because a million rows as objects need a gigabyte.
    head: dict[str, None] = {}
    empty = True
    for _, row in parse():
        empty = False
        head.update(dict.fromkeys(row))
    if empty:
        raise BadInput("the list is empty" if listed else "the file is empty", path=str(path))
    names = list(head)
    yield names, 0
    for line, row in parse():
        yield line, [row.get(name) for name in names]


def _texts(
    source: TableRows, columns: Sequence[str], places: Sequence[int], objects: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    seen: dict[str, tuple[str, int]] = {}
    for line, cells in source.rows:
        yield (
            line,
            [
                json.dumps(cells[at])
                if name in objects and isinstance(cells[at], dict)
                else _text(cells[at], name, seen, source.path, line)
                for name, at in zip(columns, places, strict=True)
            ],
        )


def _text(value: Json, column: str, seen: dict[str, tuple[str, int]], path: str, line: int) -> str:
    if value is None or value == "":
        return ""
    kinds = {str: "text", bool: "true/false", int: "a number", float: "a number"}
    kind = kinds.get(type(value))
    if kind is None:
        raise BadInput("a cell must be a string, a number or true/false", path=path, line=line, field=column)
    # 1 and "1" in one column would become two labels.
    known, first = seen.setdefault(column, (kind, line))
    if kind != known:
        reason = f"{json.dumps(value)} is {kind}, but line {first} has {known}; use the same type in all rows of this column"
        raise BadInput(reason, path=path, line=line, field=column)
    if isinstance(value, str):
        return value
    # 1.0 in one row and 1 in another are one number, and must not become two labels.
    return json.dumps(value) if isinstance(value, bool | int) else number(repr(value))
