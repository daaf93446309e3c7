"""Read and write rows of labels in our own format, which is the same in JSON Lines, CSV and Parquet."""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from annotate.exchange.base import Export, ReadOptions
from annotate.exchange.proof import SHA_KEY, TextOfRecord, text_sha
from annotate.exchange.responses import Response
from annotate.exchange.values import read_boolean, read_list, read_number, read_text, read_whole
from annotate.store import ADJUDICATED
from judge.errors import BadInput
from judge.labels.rows import table
from judge.types import Where

COLUMNS = ("unit", "question", "field", "annotator", "label", "layer", "repeat", "role", "blind", "seconds",
           "flag", "note", "spans", "at", "stratum", "weight", "sources", SHA_KEY)  # fmt: skip
"""The columns of an export of labels, including evidence, time and sources."""


def label_rows(export: Export) -> Iterator[dict[str, Any]]:
    """Yield one row per label.

    A unit that was skipped, or that has only a note, a flag or evidence, gets one row without a label.
    """
    shas = {unit.unit_id: text_sha(unit.inputs) for unit in export.units()}
    for r in export.responses():
        about = {
            "unit": r.unit, "question": r.question, "annotator": r.annotator, "repeat": r.repeat, "role": r.role,
            "seconds": r.seconds, "flag": r.flag, "note": r.note, "spans": [list(s) for s in r.spans or ()],
            "at": r.at, "stratum": r.stratum, "weight": r.weight,
            SHA_KEY: shas.get(r.unit),
        }  # fmt: skip
        rows = []
        if not r.skipped:
            for name, value in r.answers.items():
                layer = r.layers.get(name, "first")
                rows.append(
                    {"field": name, "label": value, "layer": layer, "blind": r.is_blind(name),
                     "sources": list(r.sources.get(name, ())), "at": r.times.get((name, False), r.at)}
                )  # fmt: skip
            for name, value in r.revised.items():
                at = r.times.get((name, True), r.at)
                rows.append({"field": name, "label": value, "layer": "revised", "blind": False, "at": at})
        if not rows:
            rows.append(
                {"field": None, "label": None, "layer": "skipped" if r.skipped else None, "blind": r.blind}
            )
        for row in rows:
            merged: dict[str, Any] = {"sources": []} | about | row
            yield {column: merged[column] for column in COLUMNS}


def responses(
    rows: Iterable[tuple[int, Mapping[str, Any]]], path: Path, reading: ReadOptions
) -> Iterator[Response]:
    """Yield the responses in rows of our own format.

    If a row has no `field`, each column that is named after a question contains the answer to that question.
    """
    fields = [q.field for q in reading.task.spec.questions] if reading.task else []

    def read_row(row: Mapping[str, Any], where: Where) -> Iterator[Response]:
        yield _response(row, where, reading, fields)

    return reading.read_each(path, rows, read_row)


def read_table(path: Path, reading: ReadOptions) -> Iterator[Response]:
    """Yield the responses in a table of our own format: a filled-in sheet, or one label per row."""
    source = table(path, COLUMNS)
    source.places(["unit"])
    rows = ((line, dict(zip(source.columns, cells, strict=True))) for line, cells in source.rows)
    yield from responses(rows, path, reading)


def _response(row: Mapping[str, Any], where: Where, reading: ReadOptions, fields: list[str]) -> Response:
    name, label = reading.field or read_text(row, "field"), read_text(row, "label")
    if label and not name:
        raise BadInput("the question is missing; set one for all rows with --field", field="field")
    given = {name: label} if name else {f: read_text(row, f) for f in fields}
    answers = {str(f): value for f, value in given.items() if value}
    layer, who = read_text(row, "layer"), read_text(row, "annotator") or ""
    role = "adjudication" if who == ADJUDICATED else read_text(row, "role") or "sample"
    # Whoever is named for all rows did not make the lead's decisions.
    if reading.as_person and role != "adjudication":
        who = reading.as_person
    blind = read_boolean(row, "blind")
    return Response(
        unit=read_text(row, "unit") or "",
        annotator=who,
        answers={} if layer == "revised" else answers,
        revised=answers if layer == "revised" else {},
        role=role,
        spans=None if layer == "revised" else parse_spans(row) or None,
        skipped=layer == "skipped",
        flag=read_text(row, "flag"),
        note=read_text(row, "note"),
        seconds=read_number(row, "seconds"),
        at=read_text(row, "at"),
        # The lead sees the labels of others, so the column `blind` says nothing about a decision.
        blind=layer in (None, "first") if role == "adjudication" else blind,
        repeat=read_whole(row, "repeat"),
        where=where,
        weight=parse_weight(row),
        shown=_shown(row, reading),
    )


def _shown(row: Mapping[str, Any], reading: ReadOptions) -> TextOfRecord:
    # In rows of labels, the column `question` has the id of the question, and not its text.
    columns = {name: value for name, value in row.items() if name not in COLUMNS or "label" not in row}
    return TextOfRecord(
        reading.inputs_in(row.get("inputs") or columns, row.get("unit")), sha=row.get(SHA_KEY)
    )


def parse_weight(row: Mapping[str, Any]) -> float | None:
    """Return the design weight in a row, or None if the column does not contain a weight."""
    try:
        weight = float(row.get("weight") or "nan")
    except (TypeError, ValueError):
        return None
    return weight if 0 < weight < math.inf else None


def parse_spans(row: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Return the evidence in a row as [[input, start, end], ...]. In Parquet, each span is an object.

    Raises BadInput if the evidence is malformed.
    """
    checked = []
    for span in read_list(row, "spans"):
        match list(span.values()) if isinstance(span, dict) else span:
            case [str(name), int(start), int(end)] if not {type(start), type(end)} & {bool}:
                checked.append((name, start, end))
            case _:
                raise BadInput("must be a list of [input, start, end]", field="spans")
    return checked
