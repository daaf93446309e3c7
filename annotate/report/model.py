"""The report as data: sections of paragraphs, tables, figures and cases, for all renderers.

All strings are plain text. Each renderer escapes them for its format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from judge.stats.bootstrap import IntervalSettings
from judge.stats.outlook import Chance
from judge.stats.verdict_rows import Condition, Decision, LabelRow
from judge.types import Json, Measure

Kind = Literal["text", "number", "share", "p", "brief", "n"]
Cell = str | int | float | Measure | None
NUMBERS = "key_numbers"
"""The key of the table in `summary` whose rows also appear in the boxes of the verdicts."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, and how its cells are shown (`kind`).

    For a Measure, the kind `brief` shows the value and the interval, and `n` shows the coverage and the
    numbers of units and questions. `share` shows a number as a percentage, and `p` shows a p-value.
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
    levels = {level_text(level) for level in confidences} or {level_text(IntervalSettings().confidence)}
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
                if isinstance(cell, Measure) and id(cell) not in seen:
                    seen.add(id(cell))
                    yield cell

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
class Facts:
    """Pairs of a name and a value, one pair per line."""

    key: str
    caption: str
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure that is drawn from the data in `table`. Renderers that cannot draw show the table instead.

    `draw` is the name of a function in `plots`, and `data` contains its arguments. `text` describes the
    figure in words.
    """

    key: str
    caption: str
    text: str
    draw: str
    data: Mapping[str, Json]
    table: Table


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


Block = Paragraph | Facts | Table | Figure | Cases


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
        for block in self.blocks:
            if isinstance(block, Table):
                yield block
            elif isinstance(block, Figure):
                yield block.table


@dataclass(frozen=True)
class Ruling:
    """The verdict on one judge: the sentence, the rule that was applied, and the numbers.

    `draw` describes how many units the verdict is based on, and how they were drawn. `next_place` is the number of
    labelled units at which the rule will be applied again. `numbers` is the table of agreements beside the verdict.
    The section `summary` shows the agreements for all judges.
    """

    judge: str
    decision: Decision
    sentence: str
    rule: str
    because: str
    draw: str = ""
    next_place: int | None = None
    more_units: int | None = None
    more_questions: int | None = None
    ceiling_known: bool = False
    measures: Sequence[Measure] = ()
    warnings: Sequence[str] = ()
    conditions: Sequence[Condition] = ()
    labels: Sequence[LabelRow] = ()
    chances: Sequence[Chance] = ()
    numbers: Table | None = None
    conflicts: int = 0
    """The number of labels in conflict. While any label is in conflict, the verdict is undecided."""
    is_tested: bool = True
    """Whether the units were drawn for this judge. If not, its numbers are only estimates."""
    no_labels: bool = False
    """Whether the judge has no label for any of the units that others labelled."""
    confidence: float = IntervalSettings().confidence
    """The confidence level of the intervals that the verdict uses."""
    shared_by: str = ""
    """The tests that share the error rate of 5 %, in words, such as 'several looks at the units'. Empty for a single test."""

    @property
    def detail(self) -> str:
        """The reason for the verdict, with the numbers of units and questions.

        If the sentence already contains the reason, only these numbers are given.
        """
        reason, _, units = self.because.partition(" (n = ")
        if not units or reason.lower() not in self.sentence.lower():
            return self.because
        return f"n = {units.replace(')', '', 1)}"


@dataclass(frozen=True, eq=False)
class Document:
    """The whole report.

    `about` describes the report in (name, value) pairs, and `rulings` has one verdict per judge. `reading` contains
    sentences on how to read the numbers.
    """

    title: str
    about: Sequence[tuple[str, str]]
    rulings: Sequence[Ruling]
    no_ruling: str
    sections: Sequence[Section]
    facts: Mapping[str, Json] = field(default_factory=dict)
    reading: Sequence[str] = ()

    def measures(self) -> list[tuple[str, Measure]]:
        """Return each Measure in the report once, as (key of its section, Measure)."""
        # Compare by identity, because measures with the same numbers can be in two sections.
        by_identity: dict[int, tuple[str, Measure]] = {}
        for ruling in self.rulings:
            for m in ruling.measures:
                by_identity.setdefault(id(m), ("verdict", m))
        for section in self.sections:
            for m in (m for t in section.tables() for m in t.measures()):
                by_identity.setdefault(id(m), (section.key, m))
        return list(by_identity.values())
