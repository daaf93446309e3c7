"""The document as text for a terminal, with control characters escaped. Only this module imports tabulate.

A terminal gets colours, unless the variable NO_COLOR is set. Other output has none.

Tables that are wider than the terminal are split into parts, and each part repeats the columns that name the rows. Output that is
not a terminal is never split, so that scripts see one table.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.console import emit_json, visible
from judge.document.blocks import (
    STATES,
    Block,
    Cases,
    Details,
    Document,
    Facts,
    Figure,
    Notes,
    Paragraph,
    Section,
    Table,
    VerdictBox,
    list_rows,
)
from judge.document.cells import UNDEFINED, count_naming, format_count, grid, number
from judge.notes import Note, general

GAP = 2
"""The number of spaces between two columns."""
MOST_NOTES = 3
"""The maximum number of different notes that one remark lists."""
LEAST, MOST = -0.4, 1.0
"""The lowest and the highest value of a dot plot."""
WIDTH, LEAST_WIDTH = 57, 22
"""The width of a dot plot: 40 characters for one unit, and on a narrow terminal at least 15."""


BOLD = "1"
TONES = {
    "trust": "1;32",
    "trust in part": "1;33",
    "undecided": "1;33",
    "do not trust": "1;31",
    "failed": "1;31",
    "fails": "1;31",
}
"""The style of each state, as the number of a terminal's escape sequence: bold and green, yellow or red."""


class _Painted(str):
    """A line with escape sequences, whose text has been made visible."""


@dataclass(frozen=True, slots=True)
class Screen:
    """What the output can show: `width` is the number of columns, or None if there is no limit."""

    width: int | None = None
    has_colour: bool = False

    @classmethod
    def of_stdout(cls) -> Screen:
        """Return what stdout can show."""
        if not sys.stdout.isatty():
            return cls()
        # The convention of no-color.org: any value but an empty one switches colours off.
        has_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(shutil.get_terminal_size().columns, has_colour)

    def paint(self, text: str, style: str = BOLD) -> str:
        """Return the text in a style, if the output has colours."""
        if not self.has_colour or not style or not text:
            return text
        return _Painted(f"\x1b[{style}m{visible(text)}\x1b[0m")


def show(*documents: Document) -> None:
    """Print the documents to stdout. If stdout is a terminal, its width limits the tables, and states have colours."""
    screen = Screen.of_stdout()
    print("\n\n".join(render(document, screen) for document in documents))


def render(document: Document, screen: Screen | None = None) -> str:
    """Return the document as text for a screen, by default one without limits and colours."""
    screen = screen or Screen()
    lines = [screen.paint(document.title)] if document.title else []
    for box in document.boxes:
        lines += _box(box, screen)
    if document.no_verdict:
        lines += ["", document.no_verdict]
    # A verdict comes first. What it is about follows below it.
    lines += [""] if document.boxes or document.no_verdict else []
    lines += [f"{name}: {value}" if name else value for name, value in document.about]
    # Tables share their remarks, so each of them is printed once, below the last table.
    remarks: dict[str, str] = {}
    for section in document.sections:
        for block in section.blocks:
            lines += _block(block, screen, remarks)
        if section.absent:
            lines += ["", f"{section.title}: {section.absent}"]
    if remarks:
        lines += ["", *(f"[{mark}] {_specify(text, document)}" for text, mark in remarks.items())]
    shown = [line if isinstance(line, _Painted) else visible(line) for line in [*lines, *document.reading]]
    return "\n".join(shown).lstrip("\n")


def _box(box: VerdictBox, screen: Screen) -> Iterator[str]:
    yield ""
    yield screen.paint(f"{STATES[box.state]} {box.state.upper()}: {box.sentence}", TONES[box.state])
    if box.evidence:
        yield f"  {box.evidence}"
    if box.figure:
        yield from _dots(box.figure.data["rows"], screen.width)
    if box.failed:
        yield screen.paint(f"  {box.failed_title}:")
        yield from (f"  - {text}" for text in box.failed)
    yield from (f"  note: {text}" for text in box.warnings)
    if box.steps:
        yield screen.paint("  What to do next:")
    for n, step in enumerate(box.steps, 1):
        yield f"  {n}. {step.text}"
        if step.command:
            yield f"     {step.command}"
    yield f"  {box.detail}"


def _specify(remark: str, document: Document) -> str:
    """Return the remark with its numbers and names: those of the note with the smallest number, or those of all notes.

    If there are too many different notes, return the remark as it is.
    """
    notes = dict.fromkeys(n for _, m in document.measures() for n in m.notes if general(n) == remark)
    if len(notes) < 2:
        return next(iter(notes), remark)
    counts = {n: n.parameters["n"] for n in notes if isinstance(n, Note) and "n" in n.parameters}
    if len(counts) < len(notes):
        return "; ".join(notes) if len(notes) <= MOST_NOTES else remark
    return f"{min(counts, key=lambda n: counts[n])} (the smallest of {len(counts)} such numbers)"


def _block(block: Block, screen: Screen, remarks: dict[str, str]) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield block.text
    elif isinstance(block, Notes):
        yield from (f"- {text}" for text in block.items)
    elif isinstance(block, Facts):
        yield from (
            "",
            screen.paint(f"{block.caption}:"),
            *(f"  {name}: {value}" for name, value in block.rows),
        )
    elif isinstance(block, Table):
        yield from () if block.boxed else _table(block, screen, remarks)
    elif isinstance(block, Figure) and block.is_text:
        yield from ("", screen.paint(f"{block.caption}:"), *_dots(block.data["rows"], screen.width))
    elif isinstance(block, Figure):
        # The text says in words what the drawing shows.
        yield from _table(block.table, screen, remarks) if block.table else ()
    elif isinstance(block, Cases):
        yield from ("", screen.paint(f"{block.caption}:"))
        for case in block.rows:
            yield f"{case.unit_id}: " + "; ".join(f"{label.who}: {label.label}" for label in case.labels)
            yield from (f"  {name}: {text}" for name, text in case.shown)
    elif isinstance(block, Details):
        for inner in block.blocks:
            yield from _block(inner, screen, remarks)


def _table(block: Table, screen: Screen, remarks: dict[str, str]) -> Iterator[str]:
    # A listing without rows still shows its columns.
    if not block.rows and block.caption:
        return
    narrow = any(column.kind == "compact" for column in block.columns)
    # Where only values are shown, another table of the document has the intervals and the remarks on them.
    cells = grid(block, {} if narrow else remarks)
    rows = cells.rows[: block.count_shown()]
    # The marks of a column are in a column of their own, so that the numbers before them are aligned.
    columns: list[list[tuple[str, str, list[str]]]] = []
    for i, head in enumerate(cells.heads):
        column = [(head, "right" if cells.numbers[i] else "left", [row[i].flat for row in rows])]
        marks = [f"[{row[i].marks}]" if row[i].marks else "" for row in rows]
        columns.append([*column, ("", "left", marks)] if any(marks) and not narrow else column)
    yield from ("", screen.paint(f"{block.caption}:")) if block.caption else ("",)
    for number_of_part, part in enumerate(_split(columns, count_naming(rows, cells.numbers), screen.width)):
        if number_of_part:
            yield ""
        heads, align, texts = zip(*part, strict=True)
        yield from _tabulate(heads, list(zip(*texts, strict=True)), align, screen)
    if rest := len(block.rows) - len(rows):
        yield f"- {format_count(rest, 'more row is', 'more rows are')} in --json"
    yield from (f"- {text}" for text in block.notes)


def _dots(rows: Sequence[Mapping[str, Any]], width: int | None) -> Iterator[str]:
    """Yield the lines of a dot plot: the scale, and a row for each value with its interval."""
    # Names come from files. They are escaped before their width is measured.
    labels = [visible(row["label"]).replace("\n", " ") for row in rows]
    wide = max(map(len, labels))
    room = WIDTH if width is None else min(WIDTH, max(LEAST_WIDTH, width - wide - len(UNDEFINED) - 6))
    scale = [" "] * room
    for value in (-0.4, 0.0, 0.4, 0.8):
        text, place = f"{value:g}", _place(value, room)
        scale[place : place + len(text)] = text
    yield f"  {'':{wide}}  {'':{len(UNDEFINED)}}  {''.join(scale).rstrip()}"
    for label, row in zip(labels, rows, strict=True):
        value_text = UNDEFINED if row["value"] is None else number(row["value"])
        yield f"  {label:{wide}}  {value_text:{len(UNDEFINED)}}  {_bar(row, room)}".rstrip()


def _place(value: float, room: int) -> int:
    # A coefficient can be as low as -1, but so rarely that the scale ends at -0.4.
    return round((min(max(value, LEAST), MOST) - LEAST) / (MOST - LEAST) * (room - 1))


def _bar(row: Mapping[str, Any], room: int) -> str:
    """Draw an interval on a scale of `room` characters as `├───●───┤`.

    Zero is marked by `┊`, or by `┼` if the interval crosses it.
    """
    cells = [" "] * room
    zero = _place(0.0, room)
    cells[zero] = "┊"
    if row["low"] is not None and row["high"] is not None:
        low, high = _place(row["low"], room), _place(row["high"], room)
        cells[low : high + 1] = ["─"] * (high + 1 - low)
        # An interval that crosses the mark cannot exclude agreement by chance.
        if low < zero < high:
            cells[zero] = "┼"
        cells[low], cells[high] = "├", "┤"
    if row["value"] is not None:
        cells[_place(row["value"], room)] = "●"
    return "".join(cells).rstrip()


def _split(
    columns: Sequence[list[tuple[str, str, list[str]]]], naming: int, width: int | None
) -> list[list[tuple[str, str, list[str]]]]:
    """Return the columns of each part of a table, so that each part is as wide as the terminal at most.

    A column is one or two columns of text, each with its head, its alignment and its cells. Every part begins with the
    first `naming` columns, which name the rows.
    """
    wide = [sum(max(map(len, [head, *cells])) + GAP for head, _, cells in column) for column in columns]
    parts: list[list[int]] = [[]]
    names = list(range(naming))
    for i in range(naming, len(columns)):
        used = sum(wide[j] for j in (*names, *parts[-1]))
        if width is not None and parts[-1] and used + wide[i] > width + GAP:
            parts.append([])
        parts[-1].append(i)
    return [[text for i in (*names, *part) for text in columns[i]] for part in parts]


def emit_rows(
    schema: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], as_json: bool = False
) -> None:
    """Print rows as a table with the given columns, or as JSON with all keys."""
    if as_json:
        emit_json(schema, {"rows": [dict(r) for r in rows]})
    else:
        show_blocks(list_rows(rows, columns))


def print_result(schema: str, content: Mapping[str, Any], shown: Document | str, as_json: bool) -> None:
    """Print the result of a command, either as a JSON document or as text."""
    if as_json:
        emit_json(schema, content)
    else:
        show(Document(shown) if isinstance(shown, str) else shown)


def show_blocks(*blocks: Block) -> None:
    """Print a few blocks that are not a document of their own, such as the listing of a command."""
    show(Document("", sections=[Section("rows", "", blocks)]))


def _tabulate(
    head: Sequence[str], rows: Sequence[Sequence[str]], align: Sequence[str], screen: Screen
) -> Iterator[str]:
    """Yield the lines of a table of texts, with control characters escaped. A cell that is only a state has its colour."""
    import tabulate

    # Otherwise a column would be wider than its head and its cells.
    tabulate.MIN_PADDING = 0
    # Column names can be labels or annotators from a file, which may contain any character.
    names, *body = ([visible(text).replace("\n", " ") for text in row] for row in (head, *rows))
    body = [[screen.paint(text, TONES.get(text, "")) for text in row] for row in body]
    # Without disable_numparse, tabulate would print the id 1e5 as another number.
    text = tabulate.tabulate(
        body, names, tablefmt="simple", disable_numparse=True, colalign=align if body else None
    )
    first, *rest = text.split("\n")
    yield screen.paint(first)
    yield from map(_Painted, rest)


def section_lines(section: Section) -> list[str]:
    """Return a section as lines: its title, and its blocks indented below it. Each text is one line."""
    lines = [line for block in section.blocks for line in _block(block, Screen(), {})]
    flat = "\n".join(lines).strip("\n").split("\n")
    return [visible(section.title), *(f"  {visible(line)}" for line in flat)]
