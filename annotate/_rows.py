"""Rows of a CSV, TSV or JSONL file as text, with the line that each begins on."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from judge.errors import BadInput
from judge.labels.values import number
from judge.types import Json

csv.field_size_limit(2**31 - 1)  # tables carry whole passages
MOST_DIGITS = 300  # the largest float has 309


def read_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """(line, the cells of `columns` in this order), an empty string for a missing cell.

    Raises BadInput for a file that cannot be read, for columns that are not there, ragged rows, and a
    JSON column that holds text in one row and numbers or true/false in another.
    """
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as e:
        raise BadInput(e.strerror or str(e), path=str(path)) from e
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise BadInput("not UTF-8: save the table as UTF-8", path=str(path), line=line) from e
    if not text.strip():
        raise BadInput("the file is empty", path=str(path))
    if path.suffix.lower() == ".json":
        raise BadInput("write one object a line and call it .jsonl", path=str(path))
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return _jsonl(text, str(path), columns)
    return _delimited(text, str(path), columns, tabs=path.suffix.lower() in (".tsv", ".tab"))


def columns_of(path: Path) -> list[str]:
    """The header of a CSV or TSV file. Raises BadInput for one that cannot be read or has a name twice."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = next((line for line in file if line.strip()), "")
    except OSError as e:
        raise BadInput(e.strerror or str(e), path=str(path)) from e
    except UnicodeDecodeError as e:
        raise BadInput("not UTF-8: save the table as UTF-8", path=str(path)) from e
    if not first:
        raise BadInput("the file is empty", path=str(path))
    names = next(csv.reader([first], delimiter=_delimiter(first, ("unit",))), [])
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInput("there are two columns of this name", path=str(path), line=1, field=twice[0])
    return names


def _delimited(text: str, path: str, columns: Sequence[str], tabs: bool) -> Iterator[tuple[int, list[str]]]:
    delimiter = "\t" if tabs else _delimiter(text, columns)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    head: list[str] | None = None
    places: list[int] = []
    line = 1
    try:
        for cells in reader:
            if head is None and cells:
                head = cells
                twice = [name for name in columns if head.count(name) > 1]
                if twice:
                    raise BadInput("there are two columns of this name", path=path, line=line, field=twice[0])
                _need(columns, head, path, line)
                places = [head.index(name) for name in columns]
            elif head is not None and cells:
                if len(cells) != len(head):
                    reason = f"this row has {len(cells)} cells, the header {len(head)}"
                    raise BadInput(reason, path=path, line=line)
                yield line, [cells[place] for place in places]
            line = reader.line_num + 1
    except csv.Error as e:
        raise BadInput(f"not CSV: {e} (a quote that is not closed?)", path=path, line=line) from e


def _delimiter(text: str, columns: Sequence[str]) -> str:
    """The comma, or what makes a header with more of the columns: some programs write semicolons."""
    first = text.lstrip("\r\n").replace("\r", "\n", 1).partition("\n")[0]

    def found(delimiter: str) -> int:
        return len(set(columns) & set(next(csv.reader([first], delimiter=delimiter), [])))

    return max((",", ";", "\t"), key=found)


def _jsonl(text: str, path: str, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    seen: dict[str, tuple[str, int]] = {}
    known: dict[str, None] = {}
    found: set[str] = set()
    rows: list[tuple[int, list[str]]] = []
    for line, part in enumerate(text.split("\n"), 1):
        if not part.strip():
            continue
        try:
            row = json.loads(part, parse_constant=_no_constant, parse_float=_float, parse_int=_int)
        except BadInput as e:
            raise BadInput(e.reason, path=path, line=line) from e
        except (ValueError, RecursionError) as e:
            raise BadInput(f"not JSON: {e}", path=path, line=line) from e
        if not isinstance(row, dict):
            raise BadInput("a row must be an object", path=path, line=line)
        known.update(dict.fromkeys(row))
        found.update(name for name in columns if name in row)
        rows.append((line, [_cell(row.get(name), name, seen, path, line) for name in columns]))
    # A column may be left out where it is empty, so only a column that no row has is missing.
    _need(columns, list(found) if len(found) == len(columns) else list(known), path, 0)
    return iter(rows)


def _cell(value: Json, column: str, seen: dict[str, tuple[str, int]], path: str, line: int) -> str:
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


def _need(columns: Sequence[str], there: Sequence[str], path: str, line: int) -> None:
    missing = [name for name in columns if name not in there]
    if missing:
        told = ", ".join(there[:30]) + (" ..." if len(there) > 30 else "")
        raise BadInput(f"no column '{missing[0]}'; there are: {told}", path=path, line=line)
