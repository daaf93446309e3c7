"""Print a leaderboard, and write it to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judge.cli.score_options import get_interval_settings
from judge.cli.score_output import print_lacking, write
from judge.console import emit_json, print_lines
from judge.document.terminal import table
from judge.gates import decide

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judge.store import Store
    from judge.suites.board import Axis, Board, BoardRow, Cell
    from judge.suites.paper import Paper, ScoreRequest


def make(
    store: Store,
    paper: Paper,
    wanted: ScoreRequest,
    names: Sequence[str],
    axis: Axis,
    options: Mapping[str, Any],
) -> None:
    """Print the leaderboard that the options of `judge score` or `judge suite` request, and write its files."""
    from judge.suites.board import board

    leaderboard = board(
        store,
        paper,
        wanted,
        names,
        axis=axis,
        # If the judges themselves are compared, there is no mean of them to compute.
        judges=options["judges"] if axis == "system" else None,
        by=options["by"],
        # Other papers have a --reference of their own, which is already part of the request.
        reference=options["reference"] if paper.corrects else None,
        **get_interval_settings(options),
    )
    if options["as_json"]:
        emit_json("board", leaderboard.as_json())
    else:
        _print(leaderboard)
    write(options["output"].pages, "board", leaderboard.as_json(), leaderboard)
    # A leaderboard has no gates, so this refuses .xml files: a build would take a missing test for a passed
    # one.
    decide(f"judge score {paper.name}", [], options["output"])


def names_of(store: Store, paper: Paper, wanted: ScoreRequest, systems: Sequence[str]) -> list[str]:
    """Return the systems named by --system; `all` selects every system that the paper can score."""
    from judge.suites.board import list_systems

    return list_systems(store, paper, wanted) if tuple(systems) == ("all",) else list(systems)


def _print(board: Board) -> None:
    from judge.suites.board_files import columns_of, head, legend, list_known_names, list_printed, number

    print_lines(board.paper.title)
    print_lines(
        f"data set {board.dataset}; {len(board.contenders)} {board.axis}s, compared on the rows that they all share\n"
    )
    _print_values(board)
    # Without human labels, the column would be empty.
    people = bool(board.corrections)
    stratified = any(row.stratum for row in board.rows)
    columns = [
        *(["stratum"] if stratified else []), "measure", board.axis, "value", "interval", "",
        "n shared", "own value", "n own", *(["corrected"] if people else []),
    ]  # fmt: skip
    lines = [
        [*([row.stratum or "all"] if stratified else []), *_line(board, row, cell, people)]
        for row in board.rows
        for cell in _sort_cells(board, row)
    ]
    print(table(columns, lines))
    _print_differences(board, stratified)
    for text in legend(board):
        print_lines(f"- {text}")
    for name, known_as in list_known_names(board):
        print_lines(f"- {name} is known as {known_as.name} ({known_as.source})")
    print_lacking(board.lacking)
    others = list_printed(board)
    if others:
        print("\nvalues published in the paper, from another judge, other answers and other rows")
        heads = [head(board, c) for c in columns_of(board)]
        # The papers print only some of the measures.
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


def _print_values(board: Board) -> None:
    """Print a table with one row per contender and one column per measure, followed by the notes.

    A star marks the best value of each measure.
    """
    from judge.suites.board_files import MOST_MEASURES, columns_of, head, number

    columns = columns_of(board)
    # Several tables are printed, because the measures do not fit into one line of a terminal.
    for at in range(0, len(columns), MOST_MEASURES):
        part = columns[at : at + MOST_MEASURES]
        rows = [
            [
                name,
                *(number(c.cells[n].shared.value) + ("*" if c.cells[n].mark == "best" else "") for c in part),
            ]
            for n, name in enumerate(board.contenders)
        ]
        print(table([board.axis, *(head(board, c) for c in part)], rows) + "\n")


def _print_differences(board: Board, stratified: bool) -> None:
    """Print the differences from the best contender with their p values, if they were tested."""
    from judge.suites.board_files import ARROWS, difference, p_value

    columns = [*(["stratum"] if stratified else []), "measure", board.axis, "minus the best", "p (Holm)"]
    lines = [
        [
            *([row.stratum or "all"] if stratified else []),
            row.measure + ARROWS[row.better],
            cell.contender,
            difference(cell),
            p_value(cell.p_holm),
        ]
        for row in board.rows
        for cell in _sort_cells(board, row)
        if cell.p_holm is not None
    ]
    if lines:
        print("\ndifferences from the best")
        print(table(columns, lines))


def _sort_cells(board: Board, row: BoardRow) -> list[Cell]:
    """Return the cells sorted from best to worst.

    The cells keep their order if the measure does not define a best value, as for coverage.
    """
    # For coverage, for example, neither high nor low values are better, so no system is first.
    if not row.better:
        return list(row.cells)
    from judge.suites.board_files import get_corrected

    worst = float("-inf")

    def goodness(cell: Cell) -> float:
        shown = get_corrected(board, row, cell) if row.by_corrected else cell.shared
        # A system whose value is undefined comes last.
        return worst if shown is None or shown.value is None else row.better * shown.value

    return sorted(row.cells, key=goodness, reverse=True)


def _line(board: Board, row: BoardRow, cell: Cell, people: bool) -> list[Any]:
    from judge.suites.board_files import get_corrected, number, span

    m = cell.shared
    arrow = {1: " ↑", -1: " ↓", 0: ""}[row.better]
    values: list[Any] = [
        row.measure + arrow, cell.contender, m.shown, m.interval,
        {"best": "best", "tied": "=", "worse": "", "": ""}[cell.mark], m.n_units, number(cell.own_rows.value), cell.own_rows.n_units,
    ]  # fmt: skip
    if people:
        ppi = get_corrected(board, row, cell)
        values.append("" if ppi is None else number(ppi.value) + span(ppi))
    return values
