"""A table of labels from any source, with one row per unit, question and annotator. Its columns are
recognised by common names, or specified by options.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from annotate.exchange.base import ReadOptions
from annotate.exchange.formats._own import COLUMNS, check_spans, parse_weight, responses
from annotate.exchange.proof import SHA_KEY
from annotate.exchange.responses import Response
from judge.errors import BadInput
from judge.labels.columns import NAMES, find_column
from judge.labels.rows import columns_of, read_rows, table
from judge.labels.tables import WEIGHT
from judge.types import Where

NAME = "table"
HELP = "a table of labels (CSV, TSV, JSON, JSONL, Parquet): one row per unit, question and annotator"
OPTIONS = {
    "unit": "column with the unit's id",
    "label": "column with the label",
    "annotator": "column with the annotator",
    "field": "column with the question",
}


def read_responses(path: Path, reading: ReadOptions) -> Iterator[Response]:
    """Yield the response in each row. Rows with an empty label are skipped."""
    present = columns_of(path)
    # Labels that `annotate export --labels` wrote state whether they are blind, and on which text they were given.
    if not reading.options and set(COLUMNS) <= set(present):
        yield from responses(_own_rows(path, reading), path, reading, _spans)
        return
    columns = {key: reading.options.get(key) or _usual(key, present) for key in OPTIONS}
    if reading.as_person:
        del columns["annotator"]
    if reading.field:
        del columns["field"]
    label = reading.options.get("label", "label")
    if path.suffix.lower() in (".csv", ".tsv") and label not in present and {"unit", SHA_KEY} <= set(present):
        reason = "this is a sheet that `annotate export` wrote: pass --from csv"
        raise BadInput(reason, path=str(path), line=1, field=label)
    # Labels that an earlier `annotate export --labels` wrote contain their design weights. Two columns of this
    # name cannot be told apart.
    if (
        list(table(path, list(columns.values())).columns).count(WEIGHT) == 1
        and WEIGHT not in columns.values()
    ):
        columns[WEIGHT] = WEIGHT
    for line, cells in read_rows(path, list(columns.values())):
        row = dict(zip(columns, cells, strict=True))
        who, name = row.get("annotator") or reading.as_person, row.get("field") or reading.field
        if not row["label"]:
            continue
        if who and name:
            where = Where(str(path), line)
            yield Response(row["unit"], who, {name: row["label"]}, where=where, weight=parse_weight(row))
        else:
            reading.bad(BadInput("a row needs an annotator and a field", path=str(path), line=line))


def _usual(role: str, present: Sequence[str]) -> str:
    """Return the name of the column with a role, such as "annotator".

    The column is recognised by common names. If the table has none of these names, return our own name for
    the column.
    """
    return role if role in present or role not in NAMES else find_column(present, role) or role


def _own_rows(path: Path, reading: ReadOptions) -> Iterator[tuple[int, Mapping[str, Any]]]:
    source = table(path, COLUMNS)
    fixed = {"annotator": reading.as_person, "field": reading.field}
    fixed = {column: value for column, value in fixed.items() if value}
    for line, cells in source.rows:
        yield line, dict(zip(source.columns, cells, strict=True)) | fixed


def _spans(value: Any) -> list[tuple[str, int, int]] | None:
    """Return the evidence of a row: JSON text in a delimited table, lists in JSON, and objects in Parquet."""
    if isinstance(value, str) and value:
        try:
            value = json.loads(value)
        except ValueError as e:
            raise BadInput("must be a list of [input, start, end]", field="spans") from e
    if isinstance(value, list):
        value = [list(span.values()) if isinstance(span, dict) else span for span in value]
    return check_spans(value)
