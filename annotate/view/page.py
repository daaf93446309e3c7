"""The page as one HTML file with its style, script and data. Its security policy prevents it from loading anything.

All texts are stored as JSON. The script puts them on the page as text nodes, so markup in them is never interpreted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annotate.view.units import Segment, ShownLabel, ShownUnit, View
from judge.console import visible
from judge.document.html import read_style, security_policy
from judge.types import Json

FOLDER = Path(__file__).parent


def as_html(view: View) -> str:
    """Return the view as an HTML page."""
    style, script, rest = read_style(FOLDER / "page.css"), _read_file("page.js"), _read_file("page.html")
    values = {"POLICY": security_policy(style, script), "STYLE": style, "DATA": _data(view), "SCRIPT": script}
    # Parts are inserted once, from left to right, so that data that looks like a placeholder is not replaced.
    page = ""
    for name, value in values.items():
        before, rest = rest.split(f"[[{name}]]", 1)
        page += before + value
    return page + rest


def _read_file(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _data(view: View) -> str:
    """Return the view as JSON that is safe inside a <script> element: no text in it can end the element."""
    texts: dict[str, int] = {}
    document = {
        "task": visible(view.task.name),
        "title": visible(view.task.spec.title),
        "fields": [visible(name) for name in view.task.fields],
        "who": {visible(who): [visible(name), kind] for who, (name, kind) in view.who.items()},
        "withheld": view.withheld,
        "units": [_unit(unit, texts) for unit in view.units],
    }
    # Each text is stored once, although all passages of an item have the same claim.
    document["texts"] = [json.loads(text) for text in texts]
    # A text with `</script>` would otherwise end the element that contains the data.
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )


def _unit(unit: ShownUnit, texts: dict[str, int]) -> Mapping[str, Json]:
    """Return one unit in the form that the page's script reads, without empty values."""
    shown = []
    for name, about, pieces in unit.texts:
        text = json.dumps([_piece(piece) for piece in pieces])
        shown.append([name, visible(about), texts.setdefault(text, len(texts))])
    row: dict[str, Any] = {
        "id": visible(unit.unit_id),
        "question": visible(unit.question),
        "dataset": visible(unit.dataset),
        "system": None if unit.system is None else visible(unit.system),
        "waits": unit.waits,
        "texts": shown,
        "labels": [_label(label) for label in unit.labels],
        "lost": [[visible(part) for part in each] for each in unit.lost],
        "remarks": [[visible(part) for part in each] for each in unit.remarks],
    }
    return {name: value for name, value in row.items() if value not in (None, False, [])}


# Control and direction characters could make the text look different from what was labelled, so they are made visible.
def _piece(piece: Segment) -> Json:
    return visible(piece) if isinstance(piece, str) else [visible(piece[0]), piece[1]]


def _label(label: ShownLabel) -> Mapping[str, Json]:
    row: dict[str, Json] = {
        "field": visible(label.field),
        "who": visible(label.who),
        "value": visible(label.value),
        "confidence": None if label.confidence is None else round(label.confidence, 4),
        "layer": None if label.layer == "first" else label.layer,
        "repeat": label.repeat or None,
        "why": None if label.rationale is None else visible(label.rationale),
        "from": label.derived_from,
        "source": None if label.source is None else visible(label.source),
    }
    return {name: value for name, value in row.items() if value is not None}
