"""A page of many rows, such as units or answers, each with its texts and labels.

`html.render_rows` writes the page. The page's script draws the list and the current row. All texts are stored as JSON and
are put on the page as text nodes, so markup in them is never interpreted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.console import visible
from judge.types import AnnotatorKind

PART_OF_ROWS, PART_OF_TEXTS = 100, 200
"""The numbers of rows and of texts in one part of the data. A part is parsed when a row in it is shown."""
FIRST_PARTS = ("rows", "row-0", "text-0")
"""The parts of the data that the first row needs."""
SUMMARY = 120
"""The maximum number of characters of a row's text in the list."""

HIGHLIGHT, EVIDENCE, QUOTE = "h", "e", "q"
MEANING = {
    HIGHLIGHT: "a word of the question or of a reference answer, which alone does not mean relevance",
    EVIDENCE: "marked by a person",
    QUOTE: "quoted by a judge",
}
Segment = str | tuple[str, str]
"""A piece of plain text, or a pair of a piece and its mark (a key of MEANING)."""


@dataclass(frozen=True, slots=True)
class RowLabel:
    """A label in a row: who gave it to which question, with its probability, its source and the reason."""

    who: str
    kind: AnnotatorKind
    question: str
    value: str
    confidence: float | None = None
    source: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RowText:
    """A text in a row, such as a passage. `about` adds to its title, and `pieces` are its marked and unmarked parts."""

    title: str
    about: str
    pieces: Sequence[Segment]

    def plain(self) -> str:
        """Return the text without its marks."""
        return "".join(piece if isinstance(piece, str) else piece[0] for piece in self.pieces)


@dataclass(slots=True)
class PageRow:
    """A row of a page.

    `summary` is the text in the list, and `facts` the texts below the title. `filters` has the values of the row for each
    filter, and `numbers` the value for each order; the lowest is first, and a row without a value is last.
    """

    row_id: str
    summary: str = ""
    facts: list[str] = field(default_factory=list)
    texts: list[RowText] = field(default_factory=list)
    labels: list[RowLabel] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    filters: dict[str, list[str]] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of a page: its title, its values with the number of rows of each, and the values of every row."""

    title: str
    counts: Mapping[str, int]
    rows: Sequence[Sequence[int]]
    """For each row, the places of its values in `counts`."""


@dataclass(frozen=True, eq=False)
class RowsPage:
    """A page of rows. `noun` says what a row is, `order` names the order of `rows`, and `notes` are shown at the top."""

    title: str
    noun: str
    rows: Sequence[PageRow]
    order: str
    notes: Sequence[str] = ()

    def filters(self) -> list[Filter]:
        """Return the filters, in the order in which the rows first name them.

        A filter whose only value belongs to every row is left out, because it would not change the page.
        """
        titles = dict.fromkeys(title for row in self.rows for title in row.filters)
        made = (_make_filter(title, [row.filters.get(title, ()) for row in self.rows]) for title in titles)
        return [f for f in made if len(f.counts) > 1 or not all(f.rows)]

    def orders(self) -> list[str]:
        """Return the titles of the orders other than the order of the page."""
        return list(dict.fromkeys(title for row in self.rows for title in row.numbers))

    def meanings(self) -> dict[str, str]:
        """Return the meaning of each mark that the page has."""
        used = {
            p[1] for row in self.rows for text in row.texts for p in text.pieces if not isinstance(p, str)
        }
        return {mark: meaning for mark, meaning in MEANING.items() if mark in used}

    def data(self) -> dict[str, str]:
        """Return the data of the page as a map from the name of each part to its JSON.

        The part `rows` has what the list, the filters and the orders need. The other parts are read when they are needed.
        """
        texts: dict[str, int] = {}
        rows = [_encode_row(row, texts) for row in self.rows]
        # The first part of the texts has all texts of the first row.
        texts_of_part = max(PART_OF_TEXTS, *(len(row.texts) for row in self.rows[:1]), 1)
        index = {
            "noun": self.noun,
            "parts": {"row": PART_OF_ROWS, "text": texts_of_part},
            "rows": [[row.row_id, row.summary[:SUMMARY]] for row in self.rows],
            "filters": {f.title: {"values": list(f.counts), "rows": f.rows} for f in self.filters()},
            "orders": {name: [row.numbers.get(name) for row in self.rows] for name in self.orders()},
        }
        # Each text is stored once, although all passages of an item have the same claim.
        lists = _split("row", rows, PART_OF_ROWS), _split("text", list(texts), texts_of_part)
        return {"rows": _json(index), **{name: text for parts in lists for name, text in parts}}


def _make_filter(title: str, values: Sequence[Sequence[str]]) -> Filter:
    counts: dict[str, int] = {}
    for of_row in values:
        for value in dict.fromkeys(of_row):
            counts[value] = counts.get(value, 0) + 1
    ordered = dict(sorted(counts.items()))
    places = {value: n for n, value in enumerate(ordered)}
    return Filter(title, ordered, [[places[value] for value in dict.fromkeys(of_row)] for of_row in values])


def _encode_row(row: PageRow, texts: dict[str, int]) -> str:
    """Return the parts of a row that only the current row shows, as JSON. Texts are replaced by their place in `texts`."""
    shown = []
    for text in row.texts:
        place = texts.setdefault(_json(text.pieces), len(texts))
        shown.append([text.title, text.about, place])
    labels = [
        [x.who, x.kind, x.question, x.value, _round(x.confidence), x.source, x.reason] for x in row.labels
    ]
    return _json({"facts": row.facts, "labels": labels, "notes": row.notes, "texts": shown})


def _round(confidence: float | None) -> float | None:
    return None if confidence is None else round(confidence, 4)


def _split(name: str, values: Sequence[str], size: int) -> Iterator[tuple[str, str]]:
    for n, start in enumerate(range(0, len(values), size)):
        yield f"{name}-{n}", f"[{','.join(values[start : start + size])}]"


def _json(value: Any) -> str:
    """Return JSON that is safe inside a <script> element, with control and direction characters made visible."""
    # Such characters could make a text look different from what was labelled.
    text = json.dumps(_clean(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A text with `</script>` would otherwise end the element that contains the data.
    return text.replace("<", "\\u003c")


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible(key): _clean(of_key) for key, of_key in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    return value
