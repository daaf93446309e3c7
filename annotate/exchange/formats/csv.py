"""Our own CSV format, for export and import.

A file contains either one label per row, or a sheet to fill in: one unit per row, with an empty column for each
question.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from annotate.exchange.base import Export, Out, ReadOptions
from annotate.exchange.formats._own import COLUMNS, label_rows, read_table
from annotate.exchange.proof import SHA_KEY, text_sha
from annotate.exchange.responses import Response
from judge.document.csv import guard_formula

NAME = "csv"
HELP = "CSV: a sheet to fill in with one unit per row, or one label per row (--labels)"
WRITES, ENDING = "file", ".csv"


def write(export: Export, out: Out, options: Mapping[str, str]) -> None:
    """Write units (the inputs, then an empty column for each question and for a note), or rows of labels."""
    name = out.path.name
    out.rows[name] = 0
    with out.open() as file:
        writer = csv.writer(file, lineterminator="\n")
        if export.labels:
            writer.writerow(COLUMNS)
            for row in label_rows(export):
                writer.writerow([_cell(row[c]) for c in COLUMNS])
                out.rows[name] += 1
            return
        names = export.task.input_names
        fields = [q.field for q in export.task.spec.questions]
        writer.writerow(["unit", SHA_KEY, *names, *fields, "note"])
        for unit in export.units():
            shown = [unit.unit_id, text_sha(unit.inputs), *(unit.inputs.get(n) for n in names)]
            writer.writerow([*map(_cell, shown), *("" for _ in fields), ""])
            out.rows[name] += 1


def _cell(value: Any) -> str:
    if value is None:
        return ""
    # The column contains JSON, so that all our files are read by one parser.
    if isinstance(value, bool):
        return "true" if value else "false"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
    # Passages, ids and notes are untrusted. An import removes the apostrophe again.
    return guard_formula(text)


def read_responses(path: Path, reading: ReadOptions) -> Iterator[Response]:
    """Yield labels from rows with the columns `field` and `label`, or from a filled-in sheet with a column
    for each question.
    """
    return read_table(path, reading)
