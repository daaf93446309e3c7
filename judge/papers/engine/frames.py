"""Read query results as DataFrames. Equal strings share one object, to save memory when there are a million rows."""

import gc
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

_PAGE = 50_000


def frame(
    conn: sqlite3.Connection, query: str, values: Sequence[Any] | dict[str, Any], columns: str
) -> pd.DataFrame:
    """Return the rows of a query as a table. `names` contains the column names, separated by spaces. Columns
    named `n` or `..._n` contain integers.
    """
    names = columns.split()
    whole = [name == "n" or name.endswith("_n") for name in names]
    parts: list[list[Any]] = [[] for _ in names]
    seen: dict[Any, Any] = {}
    cursor = conn.execute(query, values)
    # Rows are tuples of strings and numbers, which form no cycles. The garbage collector took a sixth of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        while page := cursor.fetchmany(_PAGE):
            for part, column, number in zip(parts, zip(*page, strict=True), whole, strict=True):
                part.append(np.array(column, dtype=np.int64) if number else _share_objects(column, seen))
    finally:
        if collecting:
            gc.enable()
    return pd.DataFrame(
        {
            # Columns have dtype object, because pandas would otherwise convert strings to its own type, and None to nan.
            name: pd.Series(np.concatenate(part) if part else [], dtype=np.int64 if number else object)
            for name, part, number in zip(names, parts, whole, strict=True)
        }
    )


def _share_objects(column: Sequence[Any], seen: dict[Any, Any]) -> np.ndarray[Any, Any]:
    """Replace equal strings with one shared object. This saves memory, because the same question id occurs in
    many rows.
    """
    objects = np.empty(len(column), dtype=object)
    objects[:] = list(map(seen.setdefault, column, column))
    return objects
