"""Write the labels of a run to a file: JSONL, CSV, Parquet (typed columns) or qrels (`query 0 document
grade`).

Parquet is written in row groups, so that memory use stays constant. Its cells are not escaped, because
spreadsheets do not open Parquet. `FIELD.distribution` is a struct with a number for each label and for
`unassigned`. Writing Parquet requires pyarrow, an optional package (`adjudge[parquet]`).

The ids in qrels are those of the source data.
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from judge.console import json_text, note
from judge.document.csv import csv_line
from judge.errors import BadInput, MissingExtra
from judge.files import whole_file
from judge.prompts.load import Task
from judge.scores.grades import find_graded_field, grades_of
from judge.store.derived import folds
from judge.store.export import COLUMNS, FITTED, read_judged
from judge.store.span_labels import COLUMNS as SPAN_COLUMNS
from judge.store.study import Store

ROWS = 20_000
"""Number of rows in a row group. All rows of a group are in memory at once."""
TYPES = {
    "repeat": "int32", "attempt": "int32", "input_tokens": "int64", "output_tokens": "int64", "latency": "float64",
    "cost_usd": "float64", FITTED: "bool",
}  # fmt: skip
"""Columns that are not text."""


def write_parquet(output: Path, store: Store, run: dict[str, Any], task: Task) -> int:
    """Write a run's labels to a Parquet file and return the number of rows. Raises MissingExtra if pyarrow is missing."""
    fitted = None in folds(store.conn, run["run_id"]).values()
    with whole_file(output.resolve()) as partial:
        return _write_parquet(partial, read_judged(store, run, task), task, fitted)


def _write_parquet(path: Path, rows: Iterator[dict[str, Any]], task: Task, fitted: bool) -> int:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as e:
        raise MissingExtra("--to parquet needs pyarrow: pip install 'adjudge[parquet]'") from e
    # The schema is fixed before the first row, because row groups are written one by one.
    schema, masses = _schema(pyarrow, task, fitted)
    count = 0
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while some := [_flatten(row, masses) for row in islice(rows, ROWS)]:
            writer.write_table(pyarrow.Table.from_pylist(some, schema))
            count += len(some)
    return count


def _schema(pyarrow: Any, task: Task, fitted: bool) -> tuple[Any, dict[str, list[str]]]:
    """Return the columns and, for each field, the labels in its struct of probabilities."""
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
            # `unassigned` is the probability of the tokens that belong to no label.
            masses[field] = [*domain, *(["unassigned"] if "unassigned" not in domain else [])]
            inner = [(label, pyarrow.float64()) for label in masses[field]]
            columns.append((f"{field}.distribution", pyarrow.struct(inner)))
    # The file alone shows which text of the task the labels belong to.
    metadata = {b"adjudge": json.dumps({"task": task.name, "sha256": task.sha256}).encode()}
    return pyarrow.schema(columns, metadata=metadata), masses


def _flatten(row: Mapping[str, Any], masses: Mapping[str, list[str]]) -> dict[str, Any]:
    flat = {name: value for name, value in row.items() if name not in ("labels", "distributions")}
    for field, label in row["labels"].items():
        flat[field] = label
        # Free text has no label probabilities.
        if field in masses:
            flat[f"{field}.distribution"] = row["distributions"].get(field)
    return flat


def qrels(
    rows: Iterator[dict[str, Any]], task: Task, field: str | None, given: Mapping[str, str]
) -> Iterator[str]:
    """Yield one line for each passage with a label.

    After the last line, print a note with the field and the number of passages without a label.

    The second column, which programs ignore, is `fitted_on` if the judge was fitted on labels for the
    question, and 0 otherwise.

    Raises UsageError if the field has no grades, and BadInput if a unit is not a passage or an id contains
    white space.
    """
    field = field or find_graded_field(task, given)
    grades = grades_of(task, field, given)
    return _lines(rows, field, grades)


def _lines(rows: Iterator[dict[str, Any]], field: str, grades: Mapping[str, int]) -> Iterator[str]:
    without = fitted = 0
    for row in rows:
        # TREC tools take one grade for each pair.
        if row["repeat"]:
            continue
        if row["passage_id"] is None:
            raise BadInput(f"'{row['unit_id']}' is not a passage: qrels grade the passages of questions")
        label = row["labels"][field]
        if label is None:
            without += 1
            continue
        # TREC tools use the ids of the source, without the name of our data set.
        query = str(row["item_id"]).partition(":")[2]
        document = str(row["passage_id"]).removeprefix(f"{row['item_id']}/")
        for name in (query, document):
            # White space separates the columns.
            if name.split() != [name]:
                raise BadInput(f"the id '{name}' contains white space, which separates the columns of qrels")
        seen = bool(row.get(FITTED))
        fitted += seen
        yield f"{query} {FITTED if seen else 0} {document} {grades[label]}\n"
    # The counts are complete only after the last row, because rows are streamed.
    if fitted:
        note(
            f"{fitted} lines have {FITTED} in the second column: the judge was fitted on labels of their questions, so "
            "agreement on them proves nothing"
        )
    note(f"grades: {field}" + (f"; {without} passages have no label and are left out" if without else ""))


def text_lines(rows: Iterator[dict[str, Any]], form: str, fields: list[str]) -> Iterator[str]:
    """Yield the rows that `read_judged` returns as lines of JSONL or CSV. CSV begins with the column names."""
    if form == "jsonl":
        yield from (json_text(row) + "\n" for row in rows)
        return
    # The first row shows whether there is the column of a run that was fitted on labels.
    first = next(rows, None)
    rows = itertools.chain([] if first is None else [first], rows)
    columns = (*COLUMNS, *([FITTED] if first is not None and FITTED in first else []))
    head = [*columns, *(name for f in fields for name in (f, f"{f}.distribution"))]
    yield from map(csv_line, itertools.chain([head], (_cells(row, columns, fields) for row in rows)))


def span_lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield the column names and then the rows of `span_labels`, as lines of CSV."""
    yield from map(csv_line, itertools.chain([SPAN_COLUMNS], (row.values() for row in rows)))


def _cells(row: dict[str, Any], columns: tuple[str, ...], fields: list[str]) -> list[Any]:
    cells = [row[name] for name in columns]
    for field in fields:
        masses = row["distributions"].get(field)
        cells += [row["labels"][field], None if masses is None else json_text(masses)]
    return cells
