"""Any table of labels, whose columns are recognised or named: one row a unit, question and annotator."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from annotate.exchange.base import ReadOptions
from annotate.exchange.proof import SHA_KEY
from annotate.exchange.responses import Response
from judge.errors import BadInput
from judge.labels.columns import NAMES, recognised
from judge.labels.rows import columns_of, read_rows, table
from judge.labels.tables import WEIGHT
from judge.types import Where

NAME = "table"
HELP = "a table of labels (CSV, TSV, JSON, JSONL, Parquet): one row a unit, question and annotator"
OPTIONS = {
    "unit": "column with the unit's id",
    "label": "column with the label",
    "annotator": "column with who labelled",
    "field": "column with the question",
}


def read(path: Path, reading: ReadOptions) -> Iterator[Response]:
    """Yield the labels, row by row. A row with an empty label is skipped."""
    there = columns_of(path)
    columns = {key: reading.options.get(key) or _usual(key, there) for key in OPTIONS}
    if reading.as_person:
        del columns["annotator"]
    if reading.field:
        del columns["field"]
    _hint(path, reading.options.get("label", "label"))
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
            yield Response(row["unit"], who, {name: row["label"]}, where=where, weight=_weight(row))
        else:
            reading.bad(BadInput("a row needs an annotator and a field", path=str(path), line=line))


def _usual(role: str, there: Sequence[str]) -> str:
    """Return the column with this role by its usual names, or our own name, which the table then lacks."""
    return role if role in there or role not in NAMES else recognised(there, role) or role


def _weight(row: Mapping[str, str | None]) -> float | None:
    """Return the design weight that `annotate export --labels` writes; None where the column says something else."""
    try:
        weight = float(row.get(WEIGHT) or "nan")
    except ValueError:
        return None
    return weight if 0 < weight < math.inf else None


def _hint(path: Path, label: str) -> None:
    """Refuse a sheet that adjudge exported: its answers are in columns named after the questions."""
    if path.suffix.lower() not in (".csv", ".tsv"):
        return
    there = columns_of(path)
    if label not in there and {"unit", SHA_KEY} <= set(there):
        raise BadInput(
            "this is a sheet that `annotate export` wrote: say --from csv",
            path=str(path),
            line=1,
            field=label,
        )
