"""Format tables as text: values with their intervals, counts in separate columns, and footnote marks for remarks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from judge.document.blocks import Cell, Kind, Mark, Table, Value, level_text
from judge.notes import general
from judge.types import Json, Measure

UNDEFINED = "undefined"


@dataclass(frozen=True)
class Shown:
    """A cell as text: a value, its interval if it has one, and the marks that refer to remarks on it.

    `compared` says how the value compares with the others of its column, and `below` has lines of details. `narrow` is
    true if only the value is shown where space is scarce.
    """

    text: str
    interval: str = ""
    marks: str = ""
    compared: Mark = ""
    below: tuple[str, ...] = ()
    narrow: bool = False

    @property
    def value(self) -> str:
        """The value with a sign: a star after the best, and = after a value that is tied with it."""
        return self.text + {"best": "*", "tied": " =", "worse": "", "": ""}[self.compared]

    @property
    def flat(self) -> str:
        """The value and the interval as one string."""
        return f"{self.value} ({self.interval})" if self.interval and not self.narrow else self.value


@dataclass(frozen=True)
class Grid:
    """A table as text: column heads, rows of `Shown` cells, and remarks. Marks in the cells refer to the remarks."""

    heads: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[Shown, ...], ...]
    remarks: tuple[tuple[str, str], ...]

    @property
    def dense(self) -> bool:
        """Whether each interval is written below its value, because some row has more than two intervals."""
        return any(sum(bool(cell.interval) for cell in row) > 2 for row in self.rows)


def grid(table: Table, remarks: dict[str, str] | None = None) -> Grid:
    """Return the table as all renderers show it. Measures become text, and their counts become separate columns.

    `remarks` maps remarks to their marks. Tables that share it use the same mark for a remark.
    """
    remarks = {} if remarks is None else remarks
    for text in (t for m in table.measures() for t in _remarks(m)):
        remarks.setdefault(text, _mark(len(remarks)))
    # Without clusters, a column of questions would repeat the column of units.
    clustered = any(m.n_clusters not in (None, m.n_units) for m in table.measures())
    heads: list[str] = []
    numbers: list[bool] = []
    for column in table.columns:
        titles = [column.title]
        if column.kind == "n":
            titles = ["units", "questions", "coverage"] if clustered else ["units", "coverage"]
        heads += titles
        numbers += [column.kind != "text"] * len(titles)
    mixed = [_has_several_levels(table, place) for place in range(len(table.columns))]
    rows = []
    for row in table.rows:
        cells: list[Shown] = []
        for column, cell, with_level in zip(table.columns, row, mixed, strict=True):
            cells += _format_cell(column.kind, cell, clustered, remarks, with_level=with_level)
        rows.append(tuple(cells))
    return Grid(
        tuple(heads), tuple(numbers), tuple(rows), tuple((mark, text) for text, mark in remarks.items())
    )


def count_naming(rows: Sequence[Sequence[Shown]], numbers: Sequence[bool]) -> int:
    """Return how many of the first columns name a row. A part of a table that is split repeats these columns.

    Usually the first column is enough. If two rows have the same text in it, the next columns of text are needed, too.
    """
    texts = numbers.index(True) if True in numbers else len(numbers)
    for n in range(1, texts):
        if len({tuple(cell.text for cell in row[:n]) for row in rows}) == len(rows):
            return n
    # Without names that tell the rows apart, their order does.
    return 1


def _has_several_levels(table: Table, place: int) -> bool:
    """Return whether the intervals in this column have different confidence levels."""
    measures = (_measure(row[place]) for row in table.rows)
    return len({level_text(m.confidence) for m in measures if m is not None and m.low is not None}) > 1


def _format_cell(
    kind: Kind, cell: Cell, clustered: bool, remarks: Mapping[str, str], *, with_level: bool
) -> list[Shown]:
    if kind == "n":
        counts = (
            [number(cell.n_units), number(cell.n_clusters), share(cell.coverage)]
            if isinstance(cell, Measure)
            else [""] * 3
        )
        return [Shown(text) for text in (counts if clustered else [counts[0], counts[2]])]
    if isinstance(cell, Value):
        (shown,) = _format_cell(kind, cell.measure, clustered, remarks, with_level=with_level)
        return [replace(shown, compared=cell.mark, below=tuple(cell.below), narrow=kind == "compact")]
    if isinstance(cell, Measure):
        marks = " ".join(
            sorted((remarks[text] for text in _remarks(cell)), key=lambda mark: (len(mark), mark))
        )
        value, span = brief(cell)
        if with_level and span:
            span = f"{level_text(cell.confidence)}: {span}"
        return [Shown(value, span, marks)]
    if isinstance(cell, str):
        return [Shown(cell)]
    if cell is not None and kind in ("share", "p"):
        return [Shown(share(cell) if kind == "share" else p_value(cell))]
    if cell is not None and kind == "difference":
        return [Shown(difference(cell))]
    return [Shown(number(cell))]


def _measure(cell: Cell) -> Measure | None:
    measure = cell.measure if isinstance(cell, Value) else cell
    return measure if isinstance(measure, Measure) else None


def _remarks(measure: Measure) -> tuple[str, ...]:
    reason = (f"{UNDEFINED}: {measure.reason}",) if measure.reason else ()
    return reason + tuple(general(note) for note in measure.notes)


def _mark(i: int) -> str:
    """Return the mark with index `i`: a to z, then aa, ab and so on."""
    letter = chr(ord("a") + i % 26)
    return letter if i < 26 else _mark(i // 26 - 1) + letter


def brief(measure: Measure) -> tuple[str, str]:
    """Return the value (or "undefined") and the interval (or an empty string) as text."""
    if measure.value is None:
        return UNDEFINED, ""
    return number(measure.value), interval(measure.low, measure.high)


def with_interval(measure: Measure) -> str:
    """Return the value with its interval in brackets."""
    return Shown(*brief(measure)).flat


def number(value: float | None) -> str:
    """Format a count with thousands separators, or a fraction with three decimal places. None becomes an empty string."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    # With `z`, a small negative number that is rounded to zero loses its sign.
    return f"{value:z.3f}"


def difference(value: float) -> str:
    """Format a difference with its sign and three decimal places. A difference that is rounded to zero has none."""
    shown = f"{value:+.3f}"
    return "0.000" if float(shown) == 0 else shown


def interval(low: float | None, high: float | None) -> str:
    """Format the bounds of an interval, or return an empty string if there is none."""
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def format_count(n: int, singular: str, plural: str = "") -> str:
    """Format a count with its noun: 1 unit, 1,234 units."""
    return f"{n:,} {singular if n == 1 else plural or f'{singular}s'}"


def format_stored(value: Json, none: str = "") -> str:
    """Format a stored value: text unchanged, anything else as JSON."""
    if value is None:
        return none
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def share(value: float | None) -> str:
    """Format a share as a percentage."""
    if value is None:
        return ""
    # 100 % must mean all and 0 % none: 9,999 of 10,000 would be rounded to 100.0 %.
    if 0 < value < 1:
        return f"{min(99.9, max(0.1, value * 100)):.1f} %"
    return f"{value * 100:.0f} %"


def format_dollars(dollars: float) -> str:
    """Format an amount in dollars with two decimal places, or with four if it is below $1."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"


def format_duration(seconds: float) -> str:
    """Format a duration in its largest unit: 40 s, 12 min, 3.5 h, 2 d."""
    if seconds < 60:
        return f"{max(seconds, 0):.0f} s"
    # 80 minutes are easier to read than 1.3 hours.
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} d"


def draw_share(part: int, whole: int, width: int = 10) -> str:
    """Draw a share as a bar of `width` characters."""
    full = width * part // whole if whole else 0
    return "█" * full + "░" * (width - full)


def p_value(value: float) -> str:
    """Format a p-value with three decimal places. A p-value below 0.001 becomes `< 0.001`."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
