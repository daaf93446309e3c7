"""Read and write rows of labels in our own format, which is the same in JSON Lines, CSV and Parquet."""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from annotate.exchange.base import Export, ReadOptions
from annotate.exchange.proof import SHA_KEY, compare_hash, compare_inputs, text_sha
from annotate.exchange.responses import Response, text_of
from annotate.store import ADJUDICATED
from judge.errors import BadInput
from judge.types import Where

COLUMNS = ("unit", "question", "field", "annotator", "label", "layer", "repeat", "role", "blind", "seconds",
           "flag", "note", "spans", "at", "stratum", "weight", "sources", SHA_KEY)  # fmt: skip
"""The columns of an export of labels, including evidence, time and sources."""
# CSV contains text, but JSON and Parquet contain booleans.
BLIND = {"true": True, "false": False, "1": True, "0": False, True: True, False: False}


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
                     "sources": list(r.sources.get(name, ()))}
                )  # fmt: skip
            for name, value in r.revised.items():
                rows.append({"field": name, "label": value, "layer": "revised", "blind": False})
        if not rows:
            rows.append(
                {"field": None, "label": None, "layer": "skipped" if r.skipped else None, "blind": r.blind}
            )
        for row in rows:
            merged: dict[str, Any] = {"sources": []} | about | row
            yield {column: merged[column] for column in COLUMNS}


def responses(
    rows: Iterator[tuple[int, Mapping[str, Any]]],
    path: Path,
    reading: ReadOptions,
    spans: Callable[[Any], Any],
) -> Iterator[Response]:
    """Yield the responses in rows of our own format. The function `spans` parses the evidence column.

    If a row has no `field`, each column that is named after a question contains the answer to that question.
    """
    fields = [q.field for q in reading.task.spec.questions] if reading.task else []

    def read_row(row: Mapping[str, Any], where: Where) -> Iterator[Response]:
        # A revised label was given after the judge was shown, and a lead's decision is not a person's label, so
        # neither may be imported as a first label.
        if row.get("layer") != "revised" and row.get("annotator") != ADJUDICATED:
            yield _response(row, where, reading, fields, spans)

    return reading.read_each(path, rows, read_row)


def _response(
    row: Mapping[str, Any], where: Where, reading: ReadOptions, fields: list[str], spans: Callable[[Any], Any]
) -> Response:
    def text(key: str) -> str:
        value = row.get(key)
        return "" if value is None else text_of(value, key)

    name = text("field") or reading.field or ""
    if text("label"):
        if not name:
            raise BadInput("the question is missing; set one for all rows with --field", field="field")
        answers = {name: text("label")}
    else:
        answers = {} if name else {f: text(f) for f in fields if text(f)}
    blind = row.get("blind")
    if blind not in (None, "") and blind not in BLIND:
        raise BadInput("must be true or false", field="blind")
    return Response(
        unit=text("unit"),
        annotator=text("annotator") or reading.as_person or "",
        answers=answers,
        spans=spans(row.get("spans")),
        skipped=row.get("layer") == "skipped",
        flag=text("flag") or None,
        note=text("note") or None,
        seconds=_number(row.get("seconds"), "seconds"),
        at=text("at") or None,
        blind=None if blind in (None, "") else BLIND[blind],
        repeat=parse_whole(_number(row.get("repeat"), "repeat"), "repeat"),
        where=where,
        weight=parse_weight(row),
        differs=_describe_difference(row, reading),
    )


def _describe_difference(row: Mapping[str, Any], reading: ReadOptions) -> str | None:
    inputs = reading.inputs(str(row.get("unit") or ""))
    differences = [compare_inputs(row.get("inputs"), inputs), compare_hash(row.get(SHA_KEY), inputs)]
    # A non-empty text sorts last, so this selects the reason if one of the two checks found a difference.
    return max((f for f in differences if f is not None), default=None)


def _number(value: Any, name: str) -> float | None:
    if value in (None, ""):
        return None
    try:
        return float(value)
    except (TypeError, ValueError) as e:
        raise BadInput("must be a number", field=name) from e


def parse_weight(row: Mapping[str, Any]) -> float | None:
    """Return the design weight in a row, or None if the column does not contain a weight."""
    try:
        weight = float(row.get("weight") or "nan")
    except (TypeError, ValueError):
        return None
    return weight if 0 < weight < math.inf else None


def parse_whole(value: float | None, name: str) -> int:
    """Return a number as an integer, or 0 for None. Raises BadInput if the number is not whole."""
    if value is not None and value != value // 1:
        raise BadInput("must be a whole number", field=name)
    return int(value or 0)


def check_spans(value: Any) -> list[tuple[str, int, int]] | None:
    """Return the evidence in a row as [[input, start, end], ...], or None if the row has no evidence. Raises
    BadInput if the evidence is malformed.
    """
    if value in (None, "", []):
        return None
    checked = []
    for span in value if isinstance(value, list) else [None]:
        match span:
            case [str(name), int(start), int(end)] if not isinstance(start, bool) and not isinstance(
                end, bool
            ):
                checked.append((name, start, end))
            case _:
                raise BadInput("must be a list of [input, start, end]", field="spans")
    return checked
