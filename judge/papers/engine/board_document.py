"""A leaderboard as a document that every writer can write, and as CSV with one row per value."""

from collections.abc import Iterator, Sequence
from typing import Any

from judge.document.blocks import (
    Block,
    Details,
    Document,
    Figure,
    Notes,
    Paragraph,
    Section,
    Table,
    Value,
    dot,
    dot_plot,
    heads,
    level_text,
)
from judge.document.blocks import Cell as Shown
from judge.document.cells import interval, with_interval
from judge.document.csv import csv_line
from judge.papers.engine.board import ALPHA, Board, BoardRow, Cell, get_corrected_value
from judge.papers.engine.paper import KnownAs
from judge.papers.engine.published import Published
from judge.papers.engine.reading import Lacking
from judge.papers.engine.result import is_of

MOST_COLUMNS = 8
"""The maximum number of measures in the table of main measures, unless the user named the measures."""
NAMED = "measure"
"""The option of a paper that names the measures to compute."""
ARROWS = {1: " ↑", -1: " ↓", 0: ""}
COLUMNS = (
    "stratum", "measure", "better", "contender", "value", "low", "high", "n_shared", "questions_shared",
    "own_value", "own_low", "own_high", "n_own", "own_coverage", "mark", "difference_to_best", "difference_low",
    "difference_high", "p", "p_holm", "corrected", "corrected_low", "corrected_high", "reason",
)  # fmt: skip


def as_document(board: Board) -> Document:
    """Return the leaderboard: the main values, differences from the best, figures, every value, and how they were made."""
    columns = columns_of(board)
    readings = ", ".join(f"{name} {value}" for name, value in board.readings.items() if value)
    about = [
        ("data set", board.dataset),
        (f"{board.axis}s", f"{len(board.contenders)}, compared on the rows that they all share"),
    ]
    if readings:
        about.append(("readings", readings))
    sections = [
        Section("values", "Values", [_values(board, columns), *_corrected(board, columns)]),
        Section("differences", "Differences from the best", _differences(board)),
        Section("measures", "Each measure", [f for row in columns if (f := _figure(board, row))]),
        Section("every", "Every value", [Details("All measures with the number of rows", [_every(board)])]),
        Section("published", "Published values", _published(board, columns)),
        Section("made", "How these numbers were made", _made(board)),
    ]
    return Document(board.paper.title, about, sections=sections)


def columns_of(board: Board) -> list[BoardRow]:
    """Return the rows that are shown as columns in a wide table: the main measures, each followed by its strata."""
    main = _list_main(board)
    order = main[: _count_shown(board)]
    shown = (row for row in board.rows if row.measure in order)
    return sorted(shown, key=lambda row: order.index(row.measure))


def _list_main(board: Board) -> list[str]:
    return list(dict.fromkeys(row.measure for row in board.rows if board.paper.is_main(row.measure)))


def _count_shown(board: Board) -> int:
    """Return how many main measures have a column. A wide table is hard to read, but measures that the user named are all shown."""
    main = len(_list_main(board))
    return main if board.readings.get(NAMED) else min(main, MOST_COLUMNS)


def _head(board: Board, row: BoardRow) -> str:
    """Return the readable name of a column, with an arrow that shows whether higher or lower values are better."""
    name = board.paper.readable(row.measure)
    return name + (f" · {row.stratum}" if row.stratum else "") + ARROWS[row.better]


def _values(board: Board, columns: Sequence[BoardRow]) -> Table:
    """Return the table of main measures, with the contender first that is best by the first of them."""
    ranked = [row for row in columns if row.better]
    order = [cell.contender for cell in sort_cells(board, ranked[0])] if ranked else list(board.contenders)
    rows: list[list[Shown]] = []
    for name in order:
        n = list(board.contenders).index(name)
        rows.append([name, *(_value(board, row, row.cells[n]) for row in columns)])
    columns_shown = heads("text", board.axis) + heads("compact", *(_head(board, row) for row in columns))
    left = len(_list_main(board)) - _count_shown(board)
    notes = (
        [f"{left} more main measures are in the table of every value, in CSV and in JSON."] if left else []
    )
    return Table("values", "Main measures", columns_shown, rows, notes)


def _value(board: Board, row: BoardRow, cell: Cell) -> Value:
    """Return the value on the shared rows, with the numbers of shared rows and of the contender's own rows."""
    below = [f"n {cell.shared.n_units} of {cell.own_rows.n_units}"]
    if corrected := get_corrected_value(board.corrections, row, cell.contender):
        below.append(f"corrected {with_interval(corrected)}")
    # If corrected values order the contenders, the marks are in their table.
    return Value(cell.shared, "" if row.by_corrected else cell.mark, below)


def _corrected(board: Board, columns: Sequence[BoardRow]) -> list[Table]:
    """Return the table of the values that are corrected with human labels, or nothing if there is none."""
    rows: list[list[Shown]] = []
    shown = [
        row
        for row in columns
        if any(get_corrected_value(board.corrections, row, cell.contender) for cell in row.cells)
    ]
    for n, name in enumerate(board.contenders):
        cells: list[Shown] = [name]
        for row in shown:
            corrected = get_corrected_value(board.corrections, row, name)
            mark = row.cells[n].mark if row.by_corrected else ""
            cells.append("" if corrected is None else Value(corrected, mark))
        rows.append(cells)
    head = heads("text", board.axis) + heads("brief", *(_head(board, row) for row in shown))
    return [Table("corrected", "Corrected with human labels", head, rows)] if shown else []


def _differences(board: Board) -> list[Block]:
    """Return the tested differences, best contender first for each measure, or nothing if none was tested."""
    stratified = any(row.stratum for row in board.rows)
    rows: list[list[Shown]] = [
        [
            *([row.stratum or "all"] if stratified else []),
            row.measure + ARROWS[row.better],
            cell.contender,
            cell.against.difference,
            interval(cell.against.low, cell.against.high),
            cell.p_holm,
        ]
        for row in board.rows
        for cell in sort_cells(board, row)
        if cell.p_holm is not None and cell.against is not None
    ]
    columns = (
        heads("text", *(["stratum"] if stratified else []), "measure", board.axis)
        + heads("difference", "minus the best")
        + heads("text", "interval")
        + heads("p", "p (Holm)")
    )
    caption = "Paired tests against the best, adjusted by Holm's method for the contenders of a measure"
    return [Table("differences", caption, columns, rows)] if rows else []


def _every(board: Board) -> Table:
    """Return all measures, one row per contender, sorted from best to worst."""
    stratified, people = any(row.stratum for row in board.rows), bool(board.corrections)
    rows: list[list[Shown]] = []
    for row in board.rows:
        for cell in sort_cells(board, row):
            corrected = get_corrected_value(board.corrections, row, cell.contender)
            rows.append(
                [
                    *([row.stratum or "all"] if stratified else []),
                    row.measure + ARROWS[row.better],
                    cell.contender,
                    Value(cell.shared, "" if row.by_corrected else cell.mark),
                    cell.shared.n_units,
                    cell.own_rows.value,
                    cell.own_rows.n_units,
                    # Without human labels, the column would be empty.
                    *([with_interval(corrected) if corrected else ""] if people else []),
                ]
            )
    columns = (
        heads("text", *(["stratum"] if stratified else []), "measure", board.axis)
        + heads("brief", f"value ({level_text(board.confidence)} interval)")
        + heads("number", "n shared", "own value", "n own")
        + heads("text", *(["corrected"] if people else []))
    )
    return Table("every_value", "All measures", columns, rows)


def sort_cells(board: Board, row: BoardRow) -> list[Cell]:
    """Return the cells sorted from best to worst.

    The cells keep their order if the measure does not define a best value, as for coverage.
    """
    # For coverage, for example, neither high nor low values are better, so no system is first.
    if not row.better:
        return list(row.cells)
    worst = float("-inf")

    def goodness(cell: Cell) -> float:
        corrected = get_corrected_value(board.corrections, row, cell.contender)
        shown = corrected if row.by_corrected else cell.shared
        # A system whose value is undefined comes last.
        return worst if shown is None or shown.value is None else row.better * shown.value

    return sorted(row.cells, key=goodness, reverse=True)


def _figure(board: Board, row: BoardRow) -> Figure | None:
    """Return a dot plot of a measure, or None if there is nothing to plot."""
    title = _head(board, row)
    if all(cell.shared.value is None for cell in row.cells):
        return None
    rows = [dot(cell.contender, cell.shared, cell.own_rows.value, cell.mark) for cell in row.cells]
    text = (
        "A dot is the value with its interval. A filled dot is the best value or tied with it. "
        "A small upright line is the value on all of the contender's own rows."
    )
    key = f"{row.measure}-{row.stratum}" if row.stratum else row.measure
    return dot_plot(f"measure-{key}", title, text, rows)


def _published(board: Board, columns: Sequence[BoardRow]) -> list[Block]:
    """Return the published values and other names of the measures."""
    blocks: list[Block] = []
    printed = list_printed(board)
    # The papers print only some of the measures.
    shown = [n for n in range(len(columns)) if any(values[n] is not None for _, values, _, _ in printed)]
    if printed:
        names = [_head(board, columns[n]) for n in shown]
        rows: list[list[Shown]] = [
            [name, *(values[n] for n in shown), by, where] for name, values, by, where in printed
        ]
        head = heads("text", "system") + heads("number", *names) + heads("text", "labelled by", "where")
        caption = "Published by the paper, from another judge, other answers and other rows"
        blocks.append(Table("published", caption, head, rows))
    if known := list_known_names(board):
        names_rows = [[name, known_as.name, known_as.source] for name, known_as in known]
        head = heads("text", "measure", "known as", "source")
        blocks.append(Table("names", "Names elsewhere", head, names_rows))
    return blocks


def _made(board: Board) -> list[Block]:
    runs = [
        f"{run['contender']}: run {run['run']}, {run['task']} by {run['model']}: "
        + ", ".join(f"{n} {status}" for status, n in run["counts"].items())
        for run in board.runs
    ]
    return [Notes([*legend(board), *runs]), *describe_lacking(board.lacking)]


def describe_lacking(lacking: Sequence[Lacking]) -> list[Block]:
    """Return the missing outputs of systems, each followed by the command that adds it."""
    blocks: list[Block] = []
    for gap in lacking:
        problem = (
            "no ranking of its own" if gap.condition == "ranking" else f"no output under '{gap.condition}'"
        )
        # The command is on a separate line, so that it can be copied.
        blocks += [Notes([f"missing: {gap.system} has {problem}; to add it:"]), Paragraph(gap.add)]
    return blocks


def legend(board: Board) -> list[str]:
    """Return the explanation of the marks, and all notes."""
    interval_level = f"intervals at {level_text(board.confidence)}"
    lines = [
        *_describe_marks(board),
        f"{interval_level}; intervals of differences are t intervals for a single comparison, so they may disagree with an exact or "
        "adjusted p value",
    ]
    for name, correction in board.corrections.items():
        lines.append(
            f"{name}: {sum(c.ppi.value is not None for c in correction.measures.values())} measures are corrected with "
            f"reference labels ({correction.reference}; PPI++), on its own rows"
        )
    return [*lines, *_describe_order(board), *board.notes, *reasons(board)]


def _describe_order(board: Board) -> list[str]:
    """For each measure, explain whether corrected values or the judge's values order the systems."""
    if not board.corrections or board.axis != "system":
        return []
    who = ", ".join(dict.fromkeys(c.reference for c in board.corrections.values()))
    ordered = [row for row in board.rows if row.better and not row.stratum]
    by_corrected = [board.paper.readable(row.measure) for row in ordered if row.by_corrected]
    others = [board.paper.readable(row.measure) for row in ordered if not row.by_corrected]
    lines = []
    if by_corrected:
        lines.append(
            f"{_several(by_corrected)}: ordered and marked by the corrected values (reference: {who}; own rows), without p "
            "values; = means that the interval overlaps the interval of the best"
        )
    if others:
        lines.append(
            f"{_several(others)}: ordered, marked and tested by the judge's values, because not every system has a corrected "
            "value"
        )
    return lines


def _describe_marks(board: Board) -> list[str]:
    """Explain the marks of a comparison."""
    return [
        f"values are computed on the rows for which all {len(board.contenders)} {board.axis}s have a value; n is the number of "
        "these rows, and of the contender's own rows",
        "* marks the best; = means no significant difference from the best (paired t-test on jackknife "
        "pseudo-values, clustered by question, or McNemar's exact test if each question has one 0/1 outcome; Holm's "
        f"correction per measure, level {ALPHA:g})",
    ]


def reasons(board: Board) -> list[str]:
    """Return one line for each reason why measures are not compared or have no value.

    Each line contains the names of the measures and the reason.
    """
    of: dict[str, list[str]] = {}
    for row in board.rows:
        name = f"{board.paper.readable(row.measure)}{f' ({row.stratum})' if row.stratum else ''}"
        for reason in dict.fromkeys(c.shared.reason for c in row.cells if c.shared.reason):
            of.setdefault(reason, []).append(name)
    return [f"{_several(names)}: {reason}" for reason, names in of.items()]


def _several(names: Sequence[str]) -> str:
    """List up to three names. If there are more, list the first two and the number of the other names."""
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2} other measures"


def list_known_names(board: Board) -> list[tuple[str, KnownAs]]:
    """List the measures that are also known by another name, each with its other name."""
    every = board.paper.known
    names = dict.fromkeys(row.measure for row in board.rows if row.measure in every)
    return [(board.paper.readable(name), every[name]) for name in names]


def list_printed(board: Board) -> list[tuple[str, list[float | None], str, str]]:
    """Return one tuple for each published row of results: (system, values, annotator, source).

    The values are in the order of the board's columns. A value that was not published is None.
    """
    rows: dict[tuple[str, str, str], list[Published]] = {}
    for p in board.published:
        rows.setdefault((p.system, p.by, p.where), []).append(p)
    rows_shown = []
    for (system, by, where), numbers in rows.items():
        each = (
            # No paper publishes strata that match ours.
            None if c.stratum else [p.value for p in numbers if is_of(p, c.measure)]
            for c in columns_of(board)
        )
        values = [some[0] if some else None for some in each]
        if any(v is not None for v in values):
            rows_shown.append((system, values, by, where))
    return rows_shown


def as_csv(board: Board) -> str:
    """Write the board as CSV, with one row per stratum, measure and contender."""
    return csv_line(COLUMNS) + "".join(map(csv_line, cells_of(board)))


def cells_of(board: Board) -> Iterator[list[Any]]:
    """Yield the values of COLUMNS for each stratum, measure and contender. An undefined value is None."""
    for row in board.rows:
        for cell in row.cells:
            a, ppi = cell.against, get_corrected_value(board.corrections, row, cell.contender)
            values: list[Any] = [
                row.stratum, row.measure, {1: "greater", -1: "smaller", 0: ""}[row.better], cell.contender,
                cell.shared.value, cell.shared.low, cell.shared.high, cell.shared.n_units, cell.shared.n_clusters,
                cell.own_rows.value, cell.own_rows.low, cell.own_rows.high, cell.own_rows.n_units, cell.own_rows.coverage, cell.mark,
                *((a.difference, a.low, a.high, a.p) if a else (None,) * 4), cell.p_holm,
                *((ppi.value, ppi.low, ppi.high) if ppi else (None,) * 3), cell.shared.reason or (a and a.reason) or "",
            ]  # fmt: skip
            yield values
