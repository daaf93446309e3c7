"""The document as JSON, in the schema adjudge/report/1."""

from __future__ import annotations

from dataclasses import asdict
from typing import assert_never

from annotate.report.cells import grid
from annotate.report.model import Block, Cases, Cell, Document, Facts, Figure, Paragraph, Section, Table
from judge.console import json_text
from judge.stats.verdict_text import group_by_state
from judge.types import Json, Measure, attributes


def render(document: Document) -> str:
    """Return the document as JSON text.

    Its `measures` list every number that can have an interval. Tables refer to an entry by its position in the list.
    """
    return json_text(as_json(document), indent=2) + "\n"


def as_json(document: Document) -> dict[str, Json]:
    """Return the document as JSON types, in the schema that the documentation describes."""
    measures = document.measures()
    # Tables contain the same objects as the list, so each is found by its identity.
    place = {id(m): i for i, (_, m) in enumerate(measures)}
    return {
        "schema": "adjudge/report/1",
        "title": document.title,
        **document.facts,
        "reading": list(document.reading),
        "verdicts": [
            {
                **attributes(r, "judge", "decision", "sentence", "rule", "because", "draw", "next_place"),
                **attributes(r, "more_units", "more_questions", "ceiling_known", "is_tested"),
                "conditions": [asdict(c) for c in r.conditions],
                "labels": [asdict(row) for row in r.labels],
                **group_by_state(r.labels),
                "power": [asdict(c) for c in r.chances],
                "warnings": list(r.warnings),
                "measures": [place[id(m)] for m in r.measures],
            }
            for r in document.rulings
        ],
        "no_verdict": document.no_ruling or None,
        "measures": [{**m.as_json(), "section": section} for section, m in measures],
        "sections": [_section(s, place) for s in document.sections],
    }


def _section(section: Section, place: dict[int, int]) -> dict[str, Json]:
    blocks = [_block(b, place) for b in section.blocks]
    return {**attributes(section, "key", "title"), "absent": section.absent or None, "blocks": blocks}


def _block(block: Block, place: dict[int, int]) -> dict[str, Json]:
    if isinstance(block, Paragraph):
        return {"kind": "paragraph", **attributes(block, "style", "text")}
    if isinstance(block, Facts):
        return {"kind": "facts", **attributes(block, "key", "caption"), "rows": [list(r) for r in block.rows]}
    if isinstance(block, Figure):
        table = _table(block.table, place)
        return {"kind": "figure", **attributes(block, "key", "caption", "text"), "table": table}
    if isinstance(block, Table):
        return _table(block, place)
    if isinstance(block, Cases):
        rows = [
            {"unit": c.unit_id, "shown": dict(c.shown), "said": [asdict(s) for s in c.labels]}
            for c in block.rows
        ]
        return {"kind": "cases", **attributes(block, "key", "caption"), "rows": rows}
    assert_never(block)


def _table(table: Table, place: dict[int, int]) -> dict[str, Json]:
    # A Measure already has its counts.
    kept = [i for i, column in enumerate(table.columns) if column.kind != "n"]
    return {
        "kind": "table",
        **attributes(table, "key", "caption"),
        "columns": [table.columns[i].title for i in kept],
        "rows": [[_cell(row[i], place) for i in kept] for row in table.rows],
        "notes": list(table.notes),
        "remarks": [text for _, text in grid(table).remarks],
    }


def _cell(cell: Cell, place: dict[int, int]) -> Json:
    return {"measure": place[id(cell)]} if isinstance(cell, Measure) else cell
