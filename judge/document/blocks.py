"""A document as data: sections of paragraphs, tables, figures and cases, for all writers.

All strings are plain text. Each writer escapes them for its format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judge.console import format_value
from judge.types import CONFIDENCE, Json, Measure

Kind = Literal["text", "number", "share", "p", "difference", "brief", "compact", "n"]
Mark = Literal["best", "tied", "worse", ""]


@dataclass(frozen=True, slots=True)
class Value:
    """A measure in a comparison. `mark` says how it compares with the others, and `below` has lines of details."""

    measure: Measure
    mark: Mark = ""
    below: Sequence[str] = ()


Cell = str | int | float | Measure | Value | None


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, and how its cells are shown (`kind`).

    For a Measure, the kind `brief` shows the value and the interval, and `n` shows the coverage and the
    numbers of units and questions. `compact` shows the value only where space is scarce: in LaTeX and in a terminal.
    `share` shows a number as a percentage, `p` shows a p-value, and `difference` shows a number with its sign.
    """

    title: str
    kind: Kind = "text"


def level_text(confidence: float) -> str:
    """Return a confidence level as a percentage, with enough digits to distinguish it from 100 %."""
    text = f"{100 * confidence:.4g}"
    return f"{100 * confidence:.6g} %" if text == "100" else f"{text} %"


def interval_head(name: str, confidences: Iterable[float]) -> str:
    """Return the header for a column of values with intervals.

    The header includes the confidence level if all intervals have the same level.
    """
    levels = {level_text(level) for level in confidences} or {level_text(CONFIDENCE)}
    # If the levels in a column differ, `cells.grid` writes each level beside its interval.
    return f"{name} ({levels.pop()} interval)" if len(levels) == 1 else f"{name} (interval with its level)"


def heads(kind: Kind, *titles: str) -> list[Column]:
    """Return a column of this kind for each title."""
    return [Column(title, kind) for title in titles]


COUNTS = heads("n", "")
"""The columns for the units, questions and coverage of the Measure in the row."""


def make_value_columns(confidences: Iterable[float]) -> list[Column]:
    """Return the columns for a table with one Measure per row: its name, its value, and its counts."""
    return heads("text", "measure") + heads("brief", interval_head("value", confidences)) + COUNTS


@dataclass(frozen=True, eq=False)
class Table:
    """A table: columns, and rows of cells. The first cell of a row is the row's name.

    The first `fold` rows are always shown. Renderers that cannot fold omit the other rows and print a note; JSON and CSV
    have all rows.
    """

    key: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    fold: int | None = None
    boxed: bool = False
    """Whether the boxes of the verdicts show the rows already. Pages leave such a table out."""

    def drop_undefined(self) -> Table:
        """Return the table without rows that contain only undefined measures. A note lists the omitted rows
        and the reasons.
        """
        by_reason: dict[str, list[str]] = {}
        for row in filter(_is_undefined, self.rows):
            reason = next(c.reason for c in row if isinstance(c, Measure)) or "no unit"
            by_reason.setdefault(reason, []).append(str(row[0]))
        notes = [f"Left out ({reason}): {', '.join(names)}." for reason, names in by_reason.items()]
        rows = [row for row in self.rows if not _is_undefined(row)]
        return replace(self, rows=rows, notes=(*self.notes, *notes)) if notes else self

    def measures(self) -> Iterator[Measure]:
        """Yield each Measure in the table once, row by row."""
        # A Measure is in two cells of its row: as value with interval, and as counts.
        seen: set[int] = set()
        for row in self.rows:
            for cell in row:
                measure = cell.measure if isinstance(cell, Value) else cell
                if isinstance(measure, Measure) and id(measure) not in seen:
                    seen.add(id(measure))
                    yield measure

    def count_shown(self) -> int:
        """Return the number of rows that a renderer without folding shows."""
        # Two more rows take no more space than the note on the omitted rows.
        return len(self.rows) if self.fold is None or len(self.rows) <= self.fold + 2 else self.fold

    def note_omitted(self) -> list[str]:
        """Return a note on how many rows a renderer without folding omits, or no note if it omits none."""
        rest = len(self.rows) - self.count_shown()
        if not rest:
            return []
        return [f"{rest:,} more row{' is' if rest == 1 else 's are'} in the HTML, JSON and CSV report."]


def list_rows(rows: Sequence[Mapping[str, Any]], names: Sequence[str], caption: str = "") -> Table:
    """Return dictionaries as a table with the columns `names`.

    A column that has only numbers is a column of numbers; any other value is shown as text.
    """
    columns = [
        Column(name, "number" if all(_is_number(row.get(name)) for row in rows) else "text") for name in names
    ]
    cells = [
        [value if _is_number(value := row.get(name)) else format_value(value) for name in names]
        for row in rows
    ]
    return Table("rows", caption, columns, cells)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def list_measures(key: str, caption: str, measures: Sequence[Measure], notes: Sequence[str] = ()) -> Table:
    """Return a table with one Measure per row: its name, its value with the interval, and its counts."""
    columns = make_value_columns(m.confidence for m in measures if m.low is not None)
    return Table(key, caption, columns, [[m.title, m, m] for m in measures], notes)


def _is_undefined(row: Sequence[Cell]) -> bool:
    measures = [cell for cell in row if isinstance(cell, Measure)]
    # A row with another number, such as how many units a person labelled, is still informative.
    others = [cell for cell in row[1:] if not isinstance(cell, Measure)]
    return bool(measures) and all(m.value is None and not m.n_units for m in measures) and not any(others)


@dataclass(frozen=True)
class Paragraph:
    """Running text. The kind `quote` is for third-party text such as guidelines, which is shown line by line."""

    text: str
    style: Literal["plain", "note", "quote"] = "plain"


@dataclass(frozen=True)
class Notes:
    """Remarks, one below the other."""

    items: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Pairs of a name and a value, one pair per line."""

    key: str
    caption: str
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure that is drawn from the data in `table`. Renderers that cannot draw show the table instead.

    `draw` is the name of a function in `plots`, and `data` contains its arguments. `text` describes the
    figure in words. `table` is None if a table of the same section has the numbers already.
    """

    key: str
    caption: str
    text: str
    draw: str
    data: Mapping[str, Json]
    table: Table | None = None
    is_text: bool = False
    """Whether a terminal draws the figure with characters. Otherwise it shows the table."""


@dataclass(frozen=True)
class CaseLabel:
    """One label for a case: the annotator, the label, its probability in words, and the rationale."""

    who: str
    label: str
    how_sure: str = ""
    rationale: str = ""


@dataclass(frozen=True)
class Disagreement:
    """A unit on which the judge and the reference differ.

    `shown` contains the inputs that the judge saw. `link` is the address of the unit on a page written by
    `annotate view`, or empty if there is no such page.
    """

    unit_id: str
    shown: Sequence[tuple[str, str]]
    labels: Sequence[CaseLabel]
    link: str = ""


@dataclass(frozen=True)
class Cases:
    """A list of units with their texts."""

    key: str
    caption: str
    rows: Sequence[Disagreement]


@dataclass(frozen=True, eq=False)
class Details:
    """Blocks for readers who want every number. Pages fold them, and LaTeX leaves them out."""

    title: str
    blocks: Sequence[Block]


Block = Paragraph | Notes | Facts | Table | Figure | Cases | Details


@dataclass(frozen=True, eq=False)
class Section:
    """A heading with its blocks. `cites` lists the keys of the cited works in `works.toml`.

    A section without content has no blocks, and `absent` states the reason.
    """

    key: str
    title: str
    blocks: Sequence[Block] = ()
    cites: Sequence[str] = ()
    absent: str = ""
    is_method: bool = False
    """Whether the section says how the numbers were made. Pages fold these sections, and show them last."""
    leading: bool = False
    """Whether the section belongs to the top of a page, below the verdicts and without a heading."""

    @property
    def only_drawn(self) -> bool:
        """Whether the section consists of drawings whose numbers are in another section."""
        return bool(self.blocks) and all(isinstance(b, Figure) and b.table is None for b in self.blocks)

    def drop_undefined(self) -> Section:
        """Return the section without table rows that contain only undefined measures.

        A table that would have no rows left is replaced by a note.
        """
        blocks: list[Block] = []
        for block in self.blocks:
            if not isinstance(block, Table):
                blocks.append(block)
            elif (table := block.drop_undefined()).rows or not block.rows:
                blocks.append(table)
            else:
                blocks.append(
                    Paragraph(f"{table.caption}: {' '.join(table.notes[len(block.notes) :])}", "note")
                )
        return replace(self, blocks=blocks)

    def tables(self) -> Iterator[Table]:
        """Yield the section's tables, including those that figures are drawn from."""
        yield from _list_tables(self.blocks)


def dot(label: str, measure: Measure | None, second: float | None = None, mark: Mark = "") -> dict[str, Json]:
    """Return a row of a dot plot. `second` is another value, and `mark` compares the value with the other rows."""
    interval = {name: getattr(measure, name, None) for name in ("value", "low", "high")}
    return {"label": label, **interval, "own": second, "mark": mark}


def dot_plot(key: str, caption: str, text: str, rows: Sequence[Json], is_text: bool = False) -> Figure:
    """Return a plot of values with their intervals on one scale. The rows are made by `dot`."""
    return Figure(key, caption, text, "dots", {"rows": list(rows)}, is_text=is_text)


def _list_tables(blocks: Sequence[Block]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Figure) and block.table is not None:
            yield block.table
        elif isinstance(block, Details):
            yield from _list_tables(block.blocks)


@dataclass(frozen=True)
class NextStep:
    """What the reader can do next, with the command for it (empty if there is none)."""

    text: str
    command: str = ""


@dataclass(frozen=True, eq=False)
class VerdictBox:
    """A verdict in a box at the top of the document.

    `name` says what the verdict is about, such as a judge. `state` is one of the keys of `STATES`. `sentence` is the verdict,
    `evidence` says what it rests on, and `detail` has the numbers. `rule` is the rule that
    was applied; several boxes with one rule show it once. `numbers` is a small table in the box. `rows` has the cells that
    the CSV lists, `facts` the keys for JSON, and `measures` the measures behind the verdict.
    """

    name: str
    state: str
    sentence: str
    detail: str
    evidence: str = ""
    rule: str = ""
    numbers: Table | None = None
    warnings: Sequence[str] = ()
    rows: Sequence[tuple[str, Cell]] = ()
    facts: Mapping[str, Json] = field(default_factory=dict)
    measures: Sequence[Measure] = ()
    figure: Figure | None = None
    """The most important measures as a drawing."""
    failed: Sequence[str] = ()
    """What keeps the verdict from being better, one sentence for each."""
    steps: Sequence[NextStep] = ()

    @property
    def failed_title(self) -> str:
        """The title of `failed`: a condition fails only if it is shown to fail."""
        return "What fails" if self.state == "do not trust" else "What is not shown yet"


STATES = {"trust": "✓", "trust in part": "◐", "do not trust": "✕", "undecided": "?"}
"""The sign of each state of a verdict, so that states do not differ by colour only."""


@dataclass(frozen=True, eq=False)
class Document:
    """A whole document.

    `about` describes it in (name, value) pairs. `boxes` has the verdicts, and `no_verdict` says why there is none.
    `facts` are the keys of the JSON document. `reading` contains sentences on how to read the numbers. `made_by` names the
    program and the command.
    """

    title: str
    about: Sequence[tuple[str, str]] = ()
    boxes: Sequence[VerdictBox] = ()
    no_verdict: str = ""
    sections: Sequence[Section] = ()
    facts: Mapping[str, Json] = field(default_factory=dict)
    reading: Sequence[str] = ()
    made_by: str = ""

    def __post_init__(self) -> None:
        """Leave out the sections that have neither content nor a reason for its absence."""
        object.__setattr__(self, "sections", [s for s in self.sections if s.blocks or s.absent])

    def measures(self) -> list[tuple[str, Measure]]:
        """Return each Measure in the document once, as (key of its section, Measure)."""
        # Compare by identity, because measures with the same numbers can be in two sections.
        by_identity: dict[int, tuple[str, Measure]] = {}
        for box in self.boxes:
            for m in box.measures:
                by_identity.setdefault(id(m), ("verdict", m))
        for section in self.sections:
            for m in (m for t in section.tables() for m in t.measures()):
                by_identity.setdefault(id(m), (section.key, m))
        return list(by_identity.values())
