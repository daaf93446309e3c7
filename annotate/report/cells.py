"""A table spelled out in text: values with their intervals, counts in columns of their own, remarks as marks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from annotate.report.model import Cell, Kind, Table
from judge.notes import general
from judge.types import Json, Measure

UNDEFINED = "undefined"


@dataclass(frozen=True)
class Shown:
    """A cell as text: a value, its interval where it has one, and the marks of its remarks."""

    text: str
    interval: str = ""
    marks: str = ""

    @property
    def flat(self) -> str:
        """Value and interval in one."""
        return f"{self.text} ({self.interval})" if self.interval else self.text


@dataclass(frozen=True)
class Grid:
    """A table spelled out: heads, rows of Shown, and what the marks stand for."""

    heads: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[Shown, ...], ...]
    remarks: tuple[tuple[str, str], ...]

    @property
    def dense(self) -> bool:
        """Whether rows hold so many intervals that they go below the values."""
        return any(sum(bool(cell.interval) for cell in row) > 2 for row in self.rows)


def grid(table: Table) -> Grid:
    """The table as every renderer shows it: Measures become text, counts columns of their own."""
    remarks = {
        text: _mark(i)
        for i, text in enumerate(dict.fromkeys(t for m in table.measures() for t in _remarks(m)))
    }
    clustered = any(m.n_clusters not in (None, m.n_units) for m in table.measures())
    heads: list[str] = []
    numbers: list[bool] = []
    for column in table.columns:
        titles = [column.title]
        if column.kind == "n":
            titles = ["units", "questions", "coverage"] if clustered else ["units", "coverage"]
        heads += titles
        numbers += [column.kind != "text"] * len(titles)
    rows = []
    for row in table.rows:
        cells: list[Shown] = []
        for column, cell in zip(table.columns, row, strict=True):
            cells += _shown(column.kind, cell, clustered, remarks)
        rows.append(tuple(cells))
    return Grid(
        tuple(heads), tuple(numbers), tuple(rows), tuple((mark, text) for text, mark in remarks.items())
    )


def _shown(kind: Kind, cell: Cell, clustered: bool, remarks: Mapping[str, str]) -> list[Shown]:
    if kind == "n":
        counts = (
            [number(cell.n_units), number(cell.n_clusters), share(cell.coverage)]
            if isinstance(cell, Measure)
            else [""] * 3
        )
        return [Shown(text) for text in (counts if clustered else [counts[0], counts[2]])]
    if isinstance(cell, Measure):
        marks = " ".join(remarks[text] for text in _remarks(cell))
        return [Shown(*brief(cell), marks)]
    if isinstance(cell, str):
        return [Shown(cell)]
    if cell is not None and kind in ("share", "p"):
        return [Shown(share(cell) if kind == "share" else p_value(cell))]
    return [Shown(number(cell))]


def _remarks(measure: Measure) -> tuple[str, ...]:
    reason = (f"{UNDEFINED}: {measure.reason}",) if measure.reason else ()
    return reason + tuple(general(note) for note in measure.notes)


def _mark(i: int) -> str:
    """a ... z, then aa, ab ..."""
    letter = chr(ord("a") + i % 26)
    return letter if i < 26 else _mark(i // 26 - 1) + letter


def brief(measure: Measure) -> tuple[str, str]:
    """The value, or the word undefined, and the interval, or nothing."""
    if measure.value is None:
        return UNDEFINED, ""
    if measure.low is None or measure.high is None:
        return number(measure.value), ""
    return number(measure.value), f"{number(measure.low)} to {number(measure.high)}"


def number(value: float | None) -> str:
    """A count with thousands separators, a fraction with three digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:.3f}"
    return "0.000" if text == "-0.000" else text


def counted(n: int, one: str, many: str = "") -> str:
    """A count with its noun: 1 unit, 1,234 units."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def in_a_cell(value: Json, none: str = "") -> str:
    """A stored value as text: text as it is, anything else as JSON."""
    if value is None:
        return none
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def share(value: float | None) -> str:
    """A share of one in per cent; only all of them are 100 %, and only none are 0 %."""
    if value is None:
        return ""
    if 0 < value < 1:
        return f"{min(99.9, max(0.1, value * 100)):.1f} %"
    return f"{value * 100:.0f} %"


def p_value(value: float) -> str:
    """Three digits, or that it is smaller than they can show."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
