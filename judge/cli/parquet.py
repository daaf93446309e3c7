"""The labels of a run as Parquet: typed columns, written in row groups, so that memory stays flat.

Cells are data, not text for a spreadsheet: nothing is escaped. `FIELD.distribution` is a struct, a number a label and
one for `unassigned`; pyarrow is an optional package (`adjudge[parquet]`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from judge.errors import MissingExtra
from judge.prompts.load import Task
from judge.store.export import COLUMNS, FITTED

ROWS = 20_000
"""Rows to a row group: what is in memory at once."""
TYPES = {
    "repeat": "int32", "attempt": "int32", "input_tokens": "int64", "output_tokens": "int64", "latency": "float64",
    "cost_usd": "float64", FITTED: "bool",
}  # fmt: skip
"""Columns that are not text."""


def write(path: Path, rows: Iterator[dict[str, Any]], task: Task, fitted: bool) -> int:
    """Write the rows of `judged` into a file and return how many. Raises MissingExtra without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as e:
        raise MissingExtra("--to parquet needs pyarrow: pip install 'adjudge[parquet]'") from e
    schema, masses = _schema(pyarrow, task, fitted)
    count = 0
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while some := [_flat(row, masses) for row in islice(rows, ROWS)]:
            writer.write_table(pyarrow.Table.from_pylist(some, schema))
            count += len(some)
    return count


def _schema(pyarrow: Any, task: Task, fitted: bool) -> tuple[Any, dict[str, list[str]]]:
    """The columns, and the labels whose probabilities each field's struct holds."""
    kinds = {
        "int32": pyarrow.int32(),
        "int64": pyarrow.int64(),
        "float64": pyarrow.float64(),
        "bool": pyarrow.bool_(),
    }
    names = [*COLUMNS, *([FITTED] if fitted else [])]
    columns = [(name, kinds[TYPES[name]] if name in TYPES else pyarrow.string()) for name in names]
    masses: dict[str, list[str]] = {}
    for field in task.fields:
        columns.append((field, pyarrow.string()))
        domain = task.domain(field)
        if domain:
            masses[field] = [*domain, *(["unassigned"] if "unassigned" not in domain else [])]
            inner = [(label, pyarrow.float64()) for label in masses[field]]
            columns.append((f"{field}.distribution", pyarrow.struct(inner)))
    told = {b"adjudge": json.dumps({"task": task.name, "sha256": task.sha256}).encode()}
    return pyarrow.schema(columns, metadata=told), masses


def _flat(row: Mapping[str, Any], masses: Mapping[str, list[str]]) -> dict[str, Any]:
    flat = {name: value for name, value in row.items() if name not in ("labels", "distributions")}
    for field, label in row["labels"].items():
        flat[field] = label
        if field in masses:
            flat[f"{field}.distribution"] = row["distributions"].get(field)
    return flat
