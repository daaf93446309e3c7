"""Our own JSON Lines format, for export and import: one unit or one label per line."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from annotate.exchange.base import Export, Out, ReadOptions
from annotate.exchange.files import json_records
from annotate.exchange.formats._own import label_rows, responses
from annotate.exchange.proof import SHA_KEY, text_sha
from annotate.exchange.responses import Response

NAME = "jsonl"
HELP = "JSON Lines: one unit per line, or one label per line (--labels)"
WRITES, ENDING = "file", ".jsonl"


def write(export: Export, out: Out, options: Mapping[str, str]) -> None:
    """Write units as {"unit", "inputs", "text_sha256"}, or labels as rows of `_own.COLUMNS`."""
    with out.lines() as put:
        if export.labels:
            for row in label_rows(export):
                put(row)
        else:
            for unit in export.units():
                put({"unit": unit.unit_id, "inputs": unit.inputs, SHA_KEY: text_sha(unit.inputs)})


def read_responses(path: Path, reading: ReadOptions) -> Iterator[Response]:
    """Yield the labels in a file that `write` wrote, or in rows {"unit", "annotator", "FIELD": "label", ...}."""
    return responses(json_records(path, reading.bad), path, reading)
