"""Write a leaderboard as an HTML page with dot plots, as Markdown, as LaTeX (booktabs) or as CSV."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from judge import markdown
from judge.console import csv_cell
from judge.files import format_of
from judge.resources import page, text_page
from judge.scores.published import Published
from judge.suites.board import ALPHA, Board, BoardRow, Cell, get_corrected_value
from judge.suites.paper import KnownAs
from judge.suites.result import is_of
from judge.types import Measure

MOST_MEASURES = 7
"""Maximum number of measures per table in LaTeX and in the terminal. With the column of names, a table then has
eight columns.
"""
HEAD_WIDTH = 10
"""Maximum number of characters per line in the header of a LaTeX column."""
ROWS = "n is the number of rows from which a value is computed"
MARKS = {"best": "best", "tied": "tied with the best", "worse": "worse than the best", "": ""}
COLUMNS = (
    "stratum", "measure", "better", "contender", "value", "low", "high", "n_shared", "questions_shared",
    "own_value", "own_low", "own_high", "n_own", "own_coverage", "mark", "difference_to_best", "difference_low",
    "difference_high", "p", "p_holm", "corrected", "corrected_low", "corrected_high", "reason",
)  # fmt: skip
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "…": r"\ldots{}", "–": "--", "·": r"$\cdot$",
}  # fmt: skip


def formats() -> dict[str, Callable[[Board], str]]:
    """Return the writer for each file extension."""
    return {".html": as_html, ".md": as_markdown, ".tex": as_latex, ".csv": as_csv}


def writer_of(path: Path) -> Callable[[Board], str]:
    """Return the writer for the file's extension. Raises UsageError if `formats` does not list the extension."""
    known = formats()
    return known[format_of(path, {ending: ending for ending in known})]


def columns_of(board: Board) -> list[BoardRow]:
    """Return the rows that are shown as columns in a wide table: the main measures, each followed by its strata."""
    main = [row for row in board.rows if board.paper.is_main(row.measure)]
    order = list(dict.fromkeys(row.measure for row in main))
    return sorted(main, key=lambda row: order.index(row.measure))


ARROWS = {1: " ↑", -1: " ↓", 0: ""}


def head(board: Board, row: BoardRow) -> str:
    """Return the readable name of a column, with an arrow that shows whether higher or lower values are better."""
    name = board.paper.readable(row.measure)
    return name + (f" · {row.stratum}" if row.stratum else "") + ARROWS[row.better]


def number(value: float | None) -> str:
    """Format a value with three decimal places; None becomes a dash."""
    # An empty cell would look like an omission.
    return "–" if value is None else f"{value:.3f}"


def p_value(value: float) -> str:
    """Format a p value with three decimal places, or as "<0.001"."""
    # A p value is never 0.
    return f"{value:.3f}" if value >= 0.0005 else "<0.001"


def counts(cell: Cell) -> str:
    """Return a text with the number of shared rows and the number of the contender's own rows."""
    # A system that is scored alone has no shared rows (see `make_single`).
    if cell.shared is cell.own_rows:
        return f"n {cell.own_rows.n_units}"
    return f"n {cell.shared.n_units} of {cell.own_rows.n_units}"


def get_corrected(board: Board, row: BoardRow, cell: Cell) -> Measure | None:
    """Return the contender's value on its own rows, corrected with human labels (see `get_corrected_value`)."""
    return get_corrected_value(board.corrections, row, cell.contender)


def legend(board: Board) -> list[str]:
    """Return the explanation of the marks, and all notes."""
    interval = f"intervals at {board.confidence:.0%}".replace("%", " %")
    if len(board.contenders) > 1:
        lines = [
            *_describe_marks(board, "marked"),
            f"{interval}; intervals of differences are t intervals for a single comparison, so they may disagree with an exact or "
            "adjusted p value",
        ]
    else:
        lines = [f"{ROWS}; {interval}"]
    for name, correction in board.corrections.items():
        lines.append(
            f"{name}: {sum(c.ppi.value is not None for c in correction.measures.values())} measures are corrected with "
            f"reference labels ({correction.reference}; PPI++), on its own rows"
        )
    return [*lines, *_describe_order(board), *board.notes, *reasons(board)]


def _describe_order(board: Board) -> list[str]:
    """For each measure, explain whether corrected values or the judge's values order the systems."""
    if not board.corrections or len(board.contenders) < 2 or board.axis != "system":
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


def _describe_marks(board: Board, best: str) -> list[str]:
    """Explain the marks of a comparison. `best` says how the best value is marked."""
    return [
        f"values are computed on the rows for which all {len(board.contenders)} {board.axis}s have a value; n is the number of "
        "these rows, and of the contender's own rows",
        f"the best is {best}; = means no significant difference from the best (paired t-test on jackknife "
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


def list_compared(board: Board) -> list[BoardRow]:
    """Return the columns in which at least one contender is tested against the best."""
    return [row for row in columns_of(board) if any(cell.p_holm is not None for cell in row.cells)]


def difference(cell: Cell) -> str:
    """Format the difference from the best with its interval; return an empty string if there is none."""
    a = cell.against
    if a is None or a.difference is None:
        return ""
    return f"{a.difference:+.3f}" + ("" if a.low is None else f" ({a.low:+.3f} … {a.high:+.3f})")


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
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    for values in cells_of(board):
        # Names of systems come from files. A spreadsheet would run =HYPERLINK(...) when the CSV is opened.
        lines.writerow(["" if v is None else csv_cell(v) for v in values])
    return out.getvalue()


def cells_of(board: Board) -> Iterator[list[Any]]:
    """Yield the values of COLUMNS for each stratum, measure and contender. An undefined value is None."""
    for row in board.rows:
        for cell in row.cells:
            a, ppi = cell.against, get_corrected(board, row, cell)
            values: list[Any] = [
                row.stratum, row.measure, {1: "greater", -1: "smaller", 0: ""}[row.better], cell.contender,
                cell.shared.value, cell.shared.low, cell.shared.high, cell.shared.n_units, cell.shared.n_clusters,
                cell.own_rows.value, cell.own_rows.low, cell.own_rows.high, cell.own_rows.n_units, cell.own_rows.coverage, cell.mark,
                *((a.difference, a.low, a.high, a.p) if a else (None,) * 4), cell.p_holm,
                *((ppi.value, ppi.low, ppi.high) if ppi else (None,) * 3), cell.shared.reason or (a and a.reason) or "",
            ]  # fmt: skip
            yield values


def as_markdown(board: Board) -> str:
    """Write the board as a Markdown table, with contenders as rows and measures as columns."""
    columns = columns_of(board)
    return text_page(
        "board.md",
        markdown.text,
        board=board,
        columns=columns,
        heads=[head(board, c) for c in columns],
        printed=list_printed(board),
        legend=legend(board),
        readings=_readings(board),
        # Digits, points and signs need no escape, and an escaped minus would be read as two signs.
        number=lambda value: Markup(number(value)),
        span=lambda measure: Markup(span(measure)),
        counts=counts,
        corrected=get_corrected,
        compared=list_compared(board),
        known=list_known_names(board),
        p_value=p_value,
        difference=lambda cell: Markup(difference(cell)),
    )


def span(m: Measure) -> str:
    """Format the interval in brackets; return an empty string if there is none."""
    return "" if m.low is None or m.high is None else f" ({m.low:.3f} … {m.high:.3f})"


def as_latex(board: Board) -> str:
    """Write a LaTeX table* (requires `\\usepackage{booktabs}`). The best value is bold, and ties are marked.

    A board with many measures is split into several tabulars of at most eight columns, one below the other.
    """
    columns = columns_of(board)
    parts = []
    for at in range(0, len(columns), MOST_MEASURES):
        here = slice(at, at + MOST_MEASURES)
        others = [(system, values[here], by) for system, values, by, _ in list_printed(board)]
        parts.append((columns[here], [row for row in others if any(v is not None for v in row[1])]))
    tested = list_compared(board)
    people = dict.fromkeys(c.reference for c in board.corrections.values())
    texts = [
        # The table has no intervals, so the caption does not describe any.
        *(_describe_marks(board, "in bold") if len(board.contenders) > 1 else [ROWS]),
        *(f"corrected with reference labels ({who}; PPI++), on own rows" for who in people),
    ]
    sentences = [board.paper.title, *(text[:1].upper() + text[1:] for text in texts)]
    return text_page(
        "board.tex",
        latex,
        board=board,
        parts=parts,
        caption=". ".join(sentences) + ".",
        stacked=lambda row: Markup(_break_lines(head(board, row))),
        number=number,
        corrected=get_corrected,
        tests=[tested[at : at + MOST_MEASURES] for at in range(0, len(tested), MOST_MEASURES)],
        p_value=p_value,
        known=list_known_names(board),
    )


def latex(text: str) -> str:
    """Escape text for pdflatex. A character that is missing from the fonts of pdflatex is replaced with its
    code point.
    """
    out = []
    for sign in " ".join(text.split()):
        # pdflatex stops at a character that its fonts lack, and names of systems come from files.
        out.append(_LATEX.get(sign) or (sign if " " <= sign <= "ÿ" else rf"\texttt{{U+{ord(sign):04X}}}"))
    return "".join(out)


def _break_lines(text: str) -> str:
    """Break a long name into lines, between words or before a bracket or `@`, to keep its column narrow."""
    lines = [""]
    for part in re.split(r"(?<=[ ])|(?=[@\[])", text):
        if lines[-1] and len(lines[-1]) + len(part) > HEAD_WIDTH:
            lines.append("")
        lines[-1] += part
    # The braces keep TeX from reading a bracket behind the line's end as its height.
    stacked = r" \\ {}".join(latex(line) for line in lines)
    return rf"\shortstack[r]{{{stacked}}}" if len(lines) > 1 else stacked


LEFT, WIDTH, STEP = 180.0, 290.0, 26.0


def axis(row: BoardRow) -> tuple[float, float] | None:
    """Return the axis limits for the plot of a measure, or None if there is nothing to plot."""
    shown = [(c.shared.value, c.shared.low, c.shared.high, c.own_rows.value) for c in row.cells]
    known = [value for values in shown for value in values if value is not None]
    # An axis that starts at the smallest value would make small differences look large.
    return (min(0.0, *known), max(1.0, *known)) if known else None


def as_html(board: Board) -> str:
    """Write the board as a self-contained HTML page, with all text escaped."""
    return page(
        "board.html",
        board=board,
        columns=columns_of(board),
        printed=list_printed(board),
        axis=axis,
        step=STEP,
        legend=legend(board),
        readings=_readings(board),
        # The arrow stays beside the last word.
        heads=[re.sub(r" (?=[↑↓])", "\u00a0", head(board, c)) for c in columns_of(board)],
        titles=[head(board, c) for c in columns_of(board)],
        compared=list_compared(board),
        known=list_known_names(board),
        number=number,
        span=span,
        corrected=get_corrected,
        counts=counts,
        marks=MARKS,
        p_value=p_value,
        short=_shorten,
        left=LEFT,
        width=WIDTH,
    )


def _shorten(name: str) -> str:
    return name if len(name) <= 22 else name[:21] + "…"


def _readings(board: Board) -> str:
    readings: Mapping[str, str] = board.readings
    return "readings: " + (
        ", ".join(f"{name} {value}" for name, value in readings.items() if value) or "none"
    )
