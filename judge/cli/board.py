"""A leaderboard on stdout, and as a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.console import emit_json, note, table, visible
from judge.errors import BadInput

if TYPE_CHECKING:
    from judge.suites.board import Board, Cell, Row


def emit(found: Board, as_json: bool, as_csv: bool) -> None:
    """A leaderboard as JSON, CSV or a table."""
    from judge.suites.board_files import as_csv as csv_of

    if as_json:
        emit_json("board", found.as_json())
    elif as_csv:
        sys.stdout.write(csv_of(found))
    else:
        _print(found)


def check_target(path: Path | None) -> None:
    """Before anything is computed: the name says a format, and the place can be written. Raises UsageError, BadInput."""
    from judge.suites.board_files import writer_of

    if path is None:
        return
    writer_of(path)
    if path.exists() and not path.is_file():
        raise BadInput(f"-o {path}: not a file, and is not replaced")
    if not path.resolve().parent.is_dir():
        raise BadInput(f"-o {path}: there is no folder '{path.resolve().parent}'")


def write(found: Board, path: Path) -> None:
    """Write the file that the name asks for, whole or not at all."""
    from judge.suites.board_files import writer_of

    text = writer_of(path)(found)
    target = path.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        partial.write_text(text, "utf-8")
        partial.replace(target)
    except OSError as error:
        raise BadInput(f"-o {path}: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
    note(f"written: {path}")


def _print(found: Board) -> None:
    from judge.suites.board_files import legend, printed

    print(visible(found.paper.title))
    print(
        visible(
            f"data set {found.dataset}; {len(found.contenders)} {found.axis}s on the rows that all share\n"
        )
    )
    corrected = bool(found.corrections)
    stratified = any(row.stratum for row in found.rows)
    columns = [
        *(["stratum"] if stratified else []), "measure", found.axis, "value", "interval", "", "minus the best", "p (Holm)",
        "n shared", "own value", "n own", *(["corrected"] if corrected else []),
    ]  # fmt: skip
    lines = [
        [*([row.stratum or "all"] if stratified else []), *_line(found, row, cell, corrected)]
        for row in found.rows
        for cell in _ordered(row)
    ]
    print(table(columns, lines))
    for row in found.rows:
        reasons = dict.fromkeys(c.shared.reason for c in row.cells if c.shared.reason)
        for reason in reasons:
            print(visible(f"- {row.measure}{f' ({row.stratum})' if row.stratum else ''}: {reason}"))
    for text in legend(found):
        print(visible(f"- {text}"))
    others = printed(found)
    if others:
        print(
            "\nwhat the paper prints (another judge, other answers, other rows): --json, --csv and -o show it by measure"
        )


def _ordered(row: Row) -> list[Cell]:
    """The best first; as they were named where no side is better."""
    if not row.better:
        return list(row.cells)
    worst = float("-inf")
    return sorted(
        row.cells,
        key=lambda c: worst if c.shared.value is None else row.better * c.shared.value,
        reverse=True,
    )


def _line(found: Board, row: Row, cell: Cell, corrected: bool) -> list[Any]:
    from judge.suites.board_files import number, p_value

    m, a = cell.shared, cell.against
    span = "" if m.low is None or m.high is None else f"{m.low:.3f} … {m.high:.3f}"
    apart = ""
    if a is not None and a.difference is not None:
        apart = f"{a.difference:+.3f}" + ("" if a.low is None else f" ({a.low:+.3f} … {a.high:+.3f})")
    arrow = {1: " ↑", -1: " ↓", 0: ""}[row.better]
    values: list[Any] = [
        row.measure + arrow, cell.contender, "undefined" if m.value is None else f"{m.value:.3f}", span,
        {"best": "best", "tied": "=", "worse": "", "": ""}[cell.mark], apart,
        "" if cell.p_holm is None else p_value(cell.p_holm), m.n_units, number(cell.own.value), cell.own.n_units,
    ]  # fmt: skip
    if corrected:
        own = found.corrections.get(cell.contender)
        ppi = own.found[row.measure].ppi if own and not row.stratum and row.measure in own.found else None
        values.append(
            ""
            if ppi is None
            else number(ppi.value) + ("" if ppi.low is None else f" ({ppi.low:.3f} … {ppi.high:.3f})")
        )
    return values
