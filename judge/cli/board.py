"""A leaderboard on stdout, and as a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.cli.scored import say_lacking
from judge.cli.scoring import how
from judge.console import emit_json, note, say, table
from judge.errors import BadInput
from judge.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judge.store import Store
    from judge.suites.board import Axis, Board, BoardRow, Cell
    from judge.suites.paper import Asked, Paper


def make(
    store: Store, paper: Paper, wanted: Asked, names: Sequence[str], axis: Axis, options: Mapping[str, Any]
) -> None:
    """Print the leaderboard that the options of `judge score` or `judge suite` ask for, and write its file."""
    from judge.suites.board import board

    leaderboard = board(
        store,
        paper,
        wanted,
        names,
        axis=axis,
        judges=options.get("judges") if axis == "system" else None,
        by=options["by"],
        reference=options.get("reference") if paper.corrects else None,
        batch=options.get("batch"),
        **how(options),
    )
    emit(leaderboard, options["as_json"], options["as_csv"])
    if options.get("output") is not None:
        write(leaderboard, options["output"])


def names_of(store: Store, paper: Paper, wanted: Asked, systems: Sequence[str]) -> list[str]:
    """The systems that --system names; `all` stands for every system that the paper can score."""
    from judge.suites.board import all_systems

    return all_systems(store, paper, wanted) if tuple(systems) == ("all",) else list(systems)


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
    try:
        with whole_file(path.resolve(), f".{os.getpid()}") as partial:
            partial.write_text(text, "utf-8")
    except OSError as error:
        raise BadInput(f"-o {path}: {error.strerror}") from error
    note(f"written: {path}")


def _print(found: Board) -> None:
    from judge.suites.board_files import columns_of, head, legend, number, printed

    say(found.paper.title)
    say(f"data set {found.dataset}; {len(found.contenders)} {found.axis}s on the rows that all share\n")
    _print_values(found)
    people = bool(found.corrections)
    stratified = any(row.stratum for row in found.rows)
    columns = [
        *(["stratum"] if stratified else []), "measure", found.axis, "value", "interval", "", "minus the best", "p (Holm)",
        "n shared", "own value", "n own", *(["corrected"] if people else []),
    ]  # fmt: skip
    lines = [
        [*([row.stratum or "all"] if stratified else []), *_line(found, row, cell, people)]
        for row in found.rows
        for cell in _ordered(row)
    ]
    print(table(columns, lines))
    for text in legend(found):
        say(f"- {text}")
    say_lacking(found.lacking)
    others = printed(found)
    if others:
        print("\nwhat the paper prints: another judge, other answers, other rows")
        heads = [head(c) for c in columns_of(found)]
        shown_columns = [
            n for n in range(len(heads)) if any(values[n] is not None for _, values, _, _ in others)
        ]
        print(
            table(
                ["system", *(heads[n] for n in shown_columns), "labelled by", "where"],
                [
                    [name, *("" if (v := values[n]) is None else number(v) for n in shown_columns), by, where]
                    for name, values, by, where in others
                ],
            )
        )


def _print_values(found: Board) -> None:
    """One line a contender, one column a measure; the best of each has a star. What the values rest on follows below."""
    from judge.suites.board_files import MOST_MEASURES, columns_of, head, number

    columns = columns_of(found)
    for at in range(0, len(columns), MOST_MEASURES):
        part = columns[at : at + MOST_MEASURES]
        rows = [
            [
                name,
                *(number(c.cells[n].shared.value) + ("*" if c.cells[n].mark == "best" else "") for c in part),
            ]
            for n, name in enumerate(found.contenders)
        ]
        print(table([found.axis, *map(head, part)], rows) + "\n")


def _ordered(row: BoardRow) -> list[Cell]:
    """The best first; as they were named where no side is better."""
    if not row.better:
        return list(row.cells)
    worst = float("-inf")
    return sorted(
        row.cells,
        key=lambda c: worst if c.shared.value is None else row.better * c.shared.value,
        reverse=True,
    )


def _line(found: Board, row: BoardRow, cell: Cell, people: bool) -> list[Any]:
    from judge.suites.board_files import corrected, number, p_value, span

    m, a = cell.shared, cell.against
    apart = ""
    if a is not None and a.difference is not None:
        apart = f"{a.difference:+.3f}" + ("" if a.low is None else f" ({a.low:+.3f} … {a.high:+.3f})")
    arrow = {1: " ↑", -1: " ↓", 0: ""}[row.better]
    values: list[Any] = [
        row.measure + arrow, cell.contender, m.shown, m.interval,
        {"best": "best", "tied": "=", "worse": "", "": ""}[cell.mark], apart,
        "" if cell.p_holm is None else p_value(cell.p_holm), m.n_units, number(cell.own.value), cell.own.n_units,
    ]  # fmt: skip
    if people:
        ppi = corrected(found, row, cell)
        values.append("" if ppi is None else number(ppi.value) + span(ppi))
    return values
