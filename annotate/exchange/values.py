"""Read the values of a foreign record: text, numbers, times and evidence. All formats use these functions.

A missing value is None or an empty string. Every function raises BadInput, which names the field, for a value of
another type.
"""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from judge.errors import BadInput

BOOLEANS = {"true": True, "false": False, "1": True, "0": False, True: True, False: False}
"""Maps true and false, as JSON, Parquet and CSV have them."""


def stamp(moment: datetime) -> str:
    """Return a time in the format of the study: in UTC, with milliseconds. A time without a zone is taken as UTC."""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_of(value: Any, name: str) -> str:
    """Return a string or number as a string. Raises BadInput if it is missing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise BadInput("must be text", field=name)
    return str(value)


def read_text(row: Mapping[str, Any], name: str) -> str | None:
    """Return a string or number of a record as a string, or None if it is missing."""
    return None if row.get(name) in (None, "") else text_of(row[name], name)


def read_number(row: Mapping[str, Any], name: str) -> float | None:
    """Return a number of a record, or None if it is missing. In CSV, a number is text."""
    value = row.get(name)
    try:
        # True is an int in Python.
        number = None if value in (None, "") else float("nothing" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError) as e:
        raise BadInput("must be a number", field=name) from e
    # Python reads a number of 400 digits in CSV as infinite, which JSON and thus the quarantine cannot contain.
    if number is not None and not math.isfinite(number):
        raise BadInput("must be a finite number", field=name)
    return number


def read_whole(row: Mapping[str, Any], name: str) -> int:
    """Return an integer of a record, or 0 if it is missing."""
    value = read_number(row, name) or 0
    if value != value // 1:
        raise BadInput("must be a whole number", field=name)
    return int(value)


def read_boolean(row: Mapping[str, Any], name: str) -> bool | None:
    """Return true or false, or None if it is missing."""
    value = row.get(name)
    if value in (None, ""):
        return None
    if not isinstance(value, str | int) or value not in BOOLEANS:
        raise BadInput("must be true or false", field=name)
    return BOOLEANS[value]


def read_time(row: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these times that the record has, in the format of the study, or None.

    A time is in seconds since 1970, or in the format ISO 8601.
    """
    name = next((n for n in names if row.get(n) is not None), None)
    if name is None:
        return None
    value = row[name]
    try:
        if isinstance(value, str):
            return stamp(datetime.fromisoformat(value))
        return stamp(datetime.fromtimestamp(read_number(row, name) or 0, UTC))
    except (OverflowError, ValueError, OSError) as e:
        raise BadInput(f"{value!r} is not a time", field=name) from e


def read_list(row: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list of a record, which is empty if it is missing. In CSV, a list is JSON text."""
    value = row.get(name)
    if isinstance(value, str) and value:
        try:
            value = json.loads(value)
        # json.loads raises RecursionError for lists that are nested too deeply.
        except (ValueError, RecursionError) as e:
            raise BadInput("must be a list", field=name) from e
    if value in (None, ""):
        return []
    if not isinstance(value, list):
        raise BadInput("must be a list", field=name)
    return value


def read_spans(row: Mapping[str, Any], name: str) -> Iterator[tuple[Any, Any]]:
    """Yield (start, end) of each span in one text. A span is an object, or a list [start, end, label]."""
    for span in read_list(row, name):
        match span:
            case {"start": start, "end": end} | {"start_offset": start, "end_offset": end}:
                yield start, end
            case [start, end, _]:
                yield start, end
            case _:
                raise BadInput("must be a list of spans with start and end", field=name)
