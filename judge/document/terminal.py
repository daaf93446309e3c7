"""The document as text for a terminal, with control characters escaped. Only this module imports tabulate.

Tables that are wider than the terminal are split into parts, and each part repeats the first column. Output that is
not a terminal is never split, so that scripts see one table.
"""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judge.console import emit_json, format_value, print_lines, visible
from judge.document.blocks import Block, Cases, Details, Document, Facts, Figure, Notes, Paragraph, Table
from judge.document.cells import grid

GAP = 2
"""The number of spaces between two columns."""


def show(document: Document) -> None:
    """Print the document to stdout. If stdout is a terminal, its width limits the tables."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print_lines(render(document, width))


def render(document: Document, width: int | None = None) -> str:
    """Return the document as text. `width` is the number of columns, or None if there is no limit."""
    lines = [document.title] if document.title else []
    lines += [f"{name}: {value}" if name else value for name, value in document.about]
    for box in document.boxes:
        lines += ["", f"{box.state.upper()}: {box.sentence}", f"  {box.detail}"]
        lines += [f"  note: {text}" for text in box.warnings]
    if document.no_verdict:
        lines += ["", document.no_verdict]
    for section in document.sections:
        for block in section.blocks:
            lines += _block(block, width)
        if section.absent:
            lines += ["", f"{section.title}: {section.absent}"]
    return "\n".join([*lines, *document.reading]).lstrip("\n")


def _block(block: Block, width: int | None) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield block.text
    elif isinstance(block, Notes):
        yield from (f"- {text}" for text in block.items)
    elif isinstance(block, Facts):
        yield from ("", f"{block.caption}:", *(f"  {name}: {value}" for name, value in block.rows))
    elif isinstance(block, Table):
        yield from _table(block, width)
    elif isinstance(block, Figure):
        # The text says in words what the drawing shows.
        yield from _table(block.table, width) if block.table else ()
    elif isinstance(block, Cases):
        yield from ("", f"{block.caption}:")
        for case in block.rows:
            yield f"{case.unit_id}: " + "; ".join(f"{label.who}: {label.label}" for label in case.labels)
            yield from (f"  {name}: {text}" for name, text in case.shown)
    elif isinstance(block, Details):
        for inner in block.blocks:
            yield from _block(inner, width)


def _table(block: Table, width: int | None) -> Iterator[str]:
    if not block.rows:
        return
    cells = grid(block)
    # Where only values are shown, another table of the document has the intervals and the remarks on them.
    rows = [
        [cell.flat + (f" [{cell.marks}]" if cell.marks and not cell.narrow else "") for cell in row]
        for row in cells.rows
    ]
    narrow = any(cell.narrow for row in cells.rows for cell in row)
    if block.caption:
        yield from ("", f"{block.caption}:")
    else:
        yield ""
    for number, columns in enumerate(_split(cells.heads, rows, width)):
        if number:
            yield ""
        head = [cells.heads[i] for i in columns]
        body = [[row[i] for i in columns] for row in rows]
        yield tabulate_text(head, body, ["right" if cells.numbers[i] else "left" for i in columns])
    yield from (f"  [{mark}] {text}" for mark, text in cells.remarks if not narrow)
    yield from (f"- {text}" for text in block.notes)


def _split(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[list[int]]:
    """Return the columns of each part of a table, so that each part is as wide as the terminal at most."""
    wide = [max(len(head), *(len(row[i]) for row in rows)) + GAP for i, head in enumerate(heads)]
    parts = [[0]]
    for i in range(1, len(heads)):
        used = sum(wide[j] for j in parts[-1])
        if width is not None and len(parts[-1]) > 1 and used + wide[i] > width + GAP:
            parts.append([0])
        parts[-1].append(i)
    return parts


def emit_rows(
    schema: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], as_json: bool = False
) -> None:
    """Print rows as a table with the given columns, or as JSON with all keys."""
    if as_json:
        emit_json(schema, {"rows": [dict(r) for r in rows]})
    else:
        print(table(columns, [[r.get(c) for c in columns] for r in rows]))


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a listing as a plain-text table. Columns of numbers are right-aligned."""
    body = [[format_value(v) for v in row] for row in rows]
    columns = list(zip(*rows, strict=True))
    align = ["right" if all(isinstance(v, int | float | None) for v in c) else "left" for c in columns]
    return tabulate_text(head, body, align)


def tabulate_text(head: Sequence[str], rows: Sequence[Sequence[str]], align: Sequence[str]) -> str:
    """Return texts as a table with control characters escaped."""
    from tabulate import tabulate

    # Column names can be labels or annotators from a file, which may contain any character.
    names, *body = ([visible(text).replace("\n", " ") for text in row] for row in (head, *rows))
    # Without disable_numparse, tabulate would print the id 1e5 as another number.
    return str(
        tabulate(body, names, tablefmt="simple", disable_numparse=True, colalign=align if body else None)
    )


def align_rows(rows: Sequence[Sequence[str]], align: Sequence[str]) -> list[str]:
    """Return rows without a head as lines with aligned columns."""
    from tabulate import tabulate

    lines = tabulate(rows, tablefmt="plain", disable_numparse=True, colalign=align)
    return [line.rstrip() for line in lines.split("\n")]
