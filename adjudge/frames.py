"""Convert rows to DataFrames and back. pandas is imported only when a DataFrame is requested.

In a frame, undefined and missing values are NaN or <NA>, counts are `Int64`, and times are strings. In rows,
missing cells are None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judge.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from judge.types import Measure

MEASURES = (
    *("field", "measure", "weights", "level", "annotators", "value", "low", "high", "confidence"),
    *("n_units", "n_clusters", "coverage", "reason", "notes"),
)
_WHOLE = ("n_units", "n_clusters", "repeat", "attempt", "input_tokens", "output_tokens")
_REAL = ("value", "low", "high", "confidence", "coverage", "latency", "cost_usd")


def frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], **attributes: Any) -> pd.DataFrame:
    """Return rows as a frame with exactly these columns. `attributes` are stored in the frame's `attrs`.

    A column `value` that contains labels stays text. If it contains measures, it is numeric, and undefined values are NaN.
    """
    import pandas as pd

    listed = list(rows)
    made = {}
    for name in columns:
        cells = [row.get(name) for row in listed]
        if name in _WHOLE:
            # Int64 supports missing values. With int64, a missing count would turn all counts into floats.
            made[name] = pd.Series(cells, dtype="Int64")
        elif name in _REAL and not any(isinstance(cell, str) for cell in cells):
            made[name] = pd.Series([float("nan") if c is None else float(c) for c in cells], dtype="float64")
        else:
            made[name] = pd.Series(cells, dtype=object)
    table = pd.DataFrame(made, columns=list(columns))
    table.attrs.update(attributes)
    return table


def measures(rows: Iterable[Measure], **attributes: Any) -> pd.DataFrame:
    """Return measures as a frame: one row per measure, with n, coverage and the reason for a missing value."""
    return frame((m.as_json() for m in rows), MEASURES, **attributes)


def rows_of(data: Any) -> tuple[list[dict[str, Any]], list[str] | None]:
    """Return the rows and the column names of a DataFrame or of a mapping {column: values}.

    For an iterable of mappings, return the rows and None. Missing cells are None. Raises UsageError for other
    types.
    """
    # A frame is recognised by its methods, so that rows of dictionaries do not require pandas.
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        return _rows_of_frame(data)
    if isinstance(data, Mapping):
        import pandas as pd

        # A value without a length is the cell of a single row.
        lengths = {name: len(values) for name, values in data.items() if hasattr(values, "__len__")}
        # A text has a length, too: each of its letters would be a row.
        if any(isinstance(values, str) for values in data.values()) or len(lengths) < len(data):
            raise UsageError(
                "a mapping must be {column: values}; to pass a single row, put it in a list: [row]"
            )
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {n}" for name, n in lengths.items())
            raise UsageError(f"the columns of a mapping have different lengths: {listed}")
        return _rows_of_frame(
            # dtype=object keeps numbers, text and None side by side as they are.
            pd.DataFrame({name: pd.Series(list(v), dtype=object) for name, v in data.items()})
        )
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise UsageError(
            f"{type(data).__name__}: data must be a DataFrame, {{column: values}}, a list of rows, or a file path"
        )
    rows = list(data)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise UsageError(f"row {number} must be a mapping, not {type(row).__name__}")
    return [{name: to_plain(value) for name, value in row.items()} for row in rows], None


def _rows_of_frame(data: Any) -> tuple[list[dict[str, Any]], list[str]]:
    columns = list(data.columns)
    cells = [_cells(data.iloc[:, n]) for n in range(len(columns))]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]
    return rows, columns


def _cells(column: Any) -> list[Any]:
    """Convert the values of a column to JSON types."""
    values = [to_plain(value) for value in column]
    # JSON has no infinite numbers, but log scores do. They become text, as in a CSV file.
    values = [str(v) if isinstance(v, float) and math.isinf(v) else v for v in values]
    floats = [v for v in values if isinstance(v, float)]
    # pandas turns whole numbers with missing values into floats, but the ids 1.0 and 1 would be different.
    if str(column.dtype) == "float64" and len(floats) < len(values) and all(v.is_integer() for v in floats):
        return [int(v) if isinstance(v, float) else v for v in values]
    return values


def to_plain(value: Any) -> Any:
    """Convert a value to JSON types.

    Arrays become lists, times become ISO 8601 strings, and missing values become None.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        # NaN is the only number that differs from itself.
        return None if value != value else value
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set):
        return [to_plain(v) for v in value]
    if hasattr(value, "tolist"):  # numpy
        return to_plain(value.tolist())
    # Checked by name, because pandas may not be imported.
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "isoformat"):
        text = value.isoformat()
        # pandas has no date type: it stores a day as a time at midnight.
        return text.removesuffix("T00:00:00")
    return str(value)
