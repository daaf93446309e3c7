"""All tables in the document as one CSV table with one row per cell, for R, pandas or a spreadsheet.

The columns `section, table, row, column` identify the cell, and `text` contains its text. If the cell is a
Measure, the columns from `measure` to `notes` contain its numbers with full precision. `annotators` and
`notes` are JSON lists. The head of the report is the table `about`, and the verdicts are the table `verdict`.
A text outside the tables has a row of its own, with `note`, `text`, `quote` or `drawing` in `column`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from judge.console import format_value, json_text, visible
from judge.document.blocks import Cases, Cell, Document, Facts, Figure, Notes, Paragraph, Section, Value
from judge.document.cells import number, with_interval
from judge.types import Json, Measure

COLUMNS = (
    "section",
    "table",
    "row",
    "column",
    "text",
    "measure",
    "annotators",
    "value",
    "low",
    "high",
    "confidence",
    "n_units",
    "n_clusters",
    "coverage",
    "reason",
    "notes",
)
# With hundreds of people, their names in every row would make up most of the file. The JSON report names them all.
NAMED = 8


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""The characters with which a formula can start."""
_DIGITS = r"[+-]?\d[\d,]*(\.\d+)?([eE][+-]?\d+)?"
# A number in our format, alone or with its interval. Nothing may follow it that could be a formula.
_NUMBER = re.compile(rf"{_DIGITS}( \({_DIGITS} to {_DIGITS}\))?", re.ASCII)


def render(document: Document) -> str:
    """Return the document as CSV."""
    lines = (csv_line(row.get(name) for name in COLUMNS) for row in _rows(document))
    return csv_line(COLUMNS) + "".join(lines)


def _text_row(section: str, table: str, row: Json, column: str, text: str) -> dict[str, Json]:
    """Return a row with a text and without a Measure."""
    return dict(zip(COLUMNS, (section, table, row, column, text), strict=False))


def _rows(document: Document) -> Iterator[dict[str, Json]]:
    for name, text in document.about:
        yield _text_row("about", "about", name, "value", text)
    for box in document.boxes:
        for column, value in box.rows:
            yield {
                "section": "verdict",
                "table": "verdict",
                "row": box.name,
                "column": column,
                **_cell(value),
            }
    if document.no_verdict:
        yield _text_row("verdict", "verdict", "", "none", document.no_verdict)
    for section in document.sections:
        yield from _section(section)
    for place, sentence in enumerate(document.reading, 1):
        yield _text_row("reading", "", place, "note", sentence)


def _section(section: Section) -> Iterator[dict[str, Json]]:
    key = section.key
    if section.absent:
        yield _text_row(key, "", "", "absent", section.absent)
    for place, block in enumerate(section.blocks, 1):
        if isinstance(block, Paragraph):
            yield _text_row(key, "", place, "text" if block.style == "plain" else block.style, block.text)
        elif isinstance(block, Notes):
            for number_of_note, text in enumerate(block.items, 1):
                yield _text_row(key, "", f"{place}.{number_of_note}", "note", text)
        elif isinstance(block, Figure):
            yield _text_row(key, block.table.key if block.table else block.key, "", "drawing", block.text)
        elif isinstance(block, Facts):
            for name, value in block.rows:
                yield _text_row(key, block.key, name, "value", value)
        elif isinstance(block, Cases):
            for case in block.rows:
                values = [*case.shown, *((s.who, s.label) for s in case.labels)]
                values += [(f"{s.who}, how sure", s.how_sure) for s in case.labels if s.how_sure]
                values += [(f"{s.who} says why", s.rationale) for s in case.labels if s.rationale]
                yield from (_text_row(key, block.key, case.unit_id, name, value) for name, value in values)
    for table in section.tables():
        for note in table.notes:
            yield _text_row(key, table.key, "", "note", note)
        for row in table.rows:
            # The first cell names the row.
            for column, cell in list(zip(table.columns, row, strict=True))[1:]:
                if column.kind != "n":
                    location = {"table": table.key, "row": _cell(row[0])["text"], "column": column.title}
                    yield {"section": key, **location, **_cell(cell)}


def _cell(cell: Cell) -> dict[str, Json]:
    if isinstance(cell, Value):
        return _cell(cell.measure)
    if not isinstance(cell, Measure):
        return {
            "text": cell if isinstance(cell, str) else number(cell).replace(",", ""),
            "value": None if isinstance(cell, str) else cell,
        }
    document = cell.as_json()
    names = document["annotators"] or []
    # A JSON list, because a name may contain any separator.
    document["annotators"] = f"{len(names):,} annotators" if len(names) > NAMED else _format_values(names)
    document["notes"] = _format_values(document["notes"])
    return {
        "text": with_interval(cell),
        **{name: document[name] for name in COLUMNS if name in document},
    }


def _format_values(values: list[str]) -> str:
    return json_text(values) if values else ""


def guard_formula(text: str) -> str:
    """Return the text, with an apostrophe before it if a spreadsheet would run it as a formula.

    Numbers such as -0.1, also with an interval, are unchanged.
    """
    # Labels, names and texts from others may be formulas, which Excel would run when it opens the file.
    is_formula = text[:1] in _FORMULA and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def remove_guard(cell: str) -> str:
    """Return the text that `guard_formula` had made into this cell."""
    return cell[1:] if cell[:1] == "'" and guard_formula(cell[1:]) == cell else cell


def csv_cell(value: Any) -> Any:
    """Return a value that is safe in a spreadsheet (`guard_formula`) and in a terminal (control characters are escaped)."""
    return visible(guard_formula(value)) if isinstance(value, str) else value


def csv_line(values: Iterable[Any]) -> str:
    """Return values as a line of CSV. None becomes an empty cell."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([csv_cell(value) for value in values])
    return out.getvalue()


def csv_text(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return the given columns of the rows as CSV with a header, with the numbers as tables show them."""
    return csv_line(columns) + "".join(
        csv_line(format_value(row.get(name)) for name in columns) for row in rows
    )
