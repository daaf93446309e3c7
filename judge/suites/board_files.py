"""A leaderboard as a file: a page with dot plots, Markdown, LaTeX (booktabs), CSV."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge import markdown
from judge.files import format_of
from judge.resources import page
from judge.scores.published import Published
from judge.suites.board import ALPHA, Board, BoardRow, Cell
from judge.suites.result import is_of
from judge.types import Measure

MOST_MEASURES = 7
"""Measures that stand beside each other in LaTeX, and on a terminal: with the name that is eight columns."""
HEAD_WIDTH = 10
"""Characters of a line in the head of a LaTeX column."""
MARKS = {"best": "best", "tied": "tied with the best", "worse": "worse than the best", "": ""}
COLUMNS = (
    "stratum", "measure", "better", "contender", "value", "low", "high", "n_shared", "questions_shared",
    "own_value", "own_low", "own_high", "n_own", "own_coverage", "mark", "difference_to_best", "difference_low",
    "difference_high", "p", "p_holm", "corrected", "corrected_low", "corrected_high", "reason",
)  # fmt: skip
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def formats() -> dict[str, Callable[[Board], str]]:
    """Ending of a file's name -> what writes it."""
    return {".html": as_html, ".md": as_markdown, ".tex": as_latex, ".csv": as_csv}


def writer_of(path: Path) -> Callable[[Board], str]:
    """What writes a file of this name. Raises UsageError for an ending that is none of `formats`."""
    known = formats()
    return known[format_of(path, {ending: ending for ending in known})]


def columns_of(found: Board) -> list[BoardRow]:
    """The rows that a wide table has as columns: the paper's main measures, each with its strata beside it."""
    main = [row for row in found.rows if found.paper.is_main(row.measure)]
    order = list(dict.fromkeys(row.measure for row in main))
    return sorted(main, key=lambda row: order.index(row.measure))


def head(row: BoardRow) -> str:
    """The name of a column, with the side that is better."""
    arrow = {1: " ↑", -1: " ↓", 0: ""}[row.better]
    return row.measure + (f" · {row.stratum}" if row.stratum else "") + arrow


def number(value: float | None) -> str:
    """Three digits, or a dash."""
    return "–" if value is None else f"{value:.3f}"


def p_value(value: float) -> str:
    """Three digits, never 0."""
    return f"{value:.3f}" if value >= 0.0005 else "<0.001"


def counts(cell: Cell) -> str:
    """How many rows the value rests on, and of how many of its own."""
    if cell.shared is cell.own:
        return f"n {cell.own.n_units}"
    return f"n {cell.shared.n_units} of {cell.own.n_units}"


def corrected(found: Board, row: BoardRow, cell: Cell) -> Measure | None:
    """The contender's value on its own rows, corrected by people's labels; None in a stratum, and where there is none."""
    own = found.corrections.get(cell.contender)
    if own is None or row.stratum or row.measure not in own.found:
        return None
    ppi = own.found[row.measure].ppi
    return None if ppi.value is None else ppi


def legend(found: Board) -> list[str]:
    """What the marks mean, and what else is to be said once."""
    interval = f"intervals at {found.confidence:.0%}".replace("%", " %")
    told = [f"n is the number of rows behind a value; {interval}"]
    if len(found.contenders) > 1:
        told = _marks_told(found, interval)
    for name, correction in found.corrections.items():
        told.append(
            f"{name}: corrected by labels of {correction.reference} (PPI++), on its own rows: "
            f"{sum(c.ppi.value is not None for c in correction.found.values())} measures"
        )
    return [*told, *found.notes, *reasons(found)]


def _marks_told(found: Board, interval: str) -> list[str]:
    """What the marks of a comparison mean."""
    return [
        f"values are on the rows that all {len(found.contenders)} {found.axis}s have a value for; n is that number, and of "
        "how many of the contender's own",
        f"the best is marked (bold in files); =: no difference to it is shown (paired t-test by question of jackknife pseudo-values, "
        f"McNemar's exact test where each question has one 0/1 outcome; Holm per measure, {ALPHA:g})",
        f"{interval}; those of differences are t intervals of one comparison, so that with an exact or "
        "adjusted p value one of the two may show a difference and the other none",
    ]


def reasons(found: Board) -> list[str]:
    """Why measures are compared for none or have no value on the shared rows: a line a reason."""
    of: dict[str, list[str]] = {}
    for row in found.rows:
        name = f"{row.measure}{f' ({row.stratum})' if row.stratum else ''}"
        for reason in dict.fromkeys(c.shared.reason for c in row.cells if c.shared.reason):
            of.setdefault(reason, []).append(name)
    return [f"{_several(names)}: {reason}" for reason, names in of.items()]


def _several(names: Sequence[str], most: int = 3) -> str:
    """A few names, or the first ones and how many more there are."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} other measures"


def printed(found: Board) -> list[tuple[str, list[float | None], str, str]]:
    """The papers' own rows: (system, value of each column, who labelled, where): another judge's, other rows."""
    rows: dict[tuple[str, str, str], list[Published]] = {}
    for p in found.published:
        rows.setdefault((p.system, p.by, p.where), []).append(p)
    told = []
    for (system, by, where), own in rows.items():
        each = (
            None if c.stratum else [p.value for p in own if is_of(p, c.measure)] for c in columns_of(found)
        )
        values = [some[0] if some else None for some in each]
        if any(v is not None for v in values):
            told.append((system, values, by, where))
    return told


def as_csv(found: Board) -> str:
    """One line a stratum, measure and contender."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    for values in cells_of(found):
        lines.writerow(["" if v is None else _guarded(v) for v in values])
    return out.getvalue()


def cells_of(found: Board) -> Iterator[list[Any]]:
    """The values of COLUMNS for each stratum, measure and contender; None for what is undefined."""
    for row in found.rows:
        for cell in row.cells:
            a, ppi = cell.against, corrected(found, row, cell)
            values: list[Any] = [
                row.stratum, row.measure, {1: "greater", -1: "smaller", 0: ""}[row.better], cell.contender,
                cell.shared.value, cell.shared.low, cell.shared.high, cell.shared.n_units, cell.shared.n_clusters,
                cell.own.value, cell.own.low, cell.own.high, cell.own.n_units, cell.own.coverage, cell.mark,
                *((a.difference, a.low, a.high, a.p) if a else (None,) * 4), cell.p_holm,
                *((ppi.value, ppi.low, ppi.high) if ppi else (None,) * 3), cell.shared.reason or (a and a.reason) or "",
            ]  # fmt: skip
            yield values


def _guarded(value: Any) -> Any:
    """A name that a spreadsheet would take for a formula gets an apostrophe; numbers stay numbers."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def as_markdown(found: Board) -> str:
    """Contenders as lines, measures as columns."""
    columns = columns_of(found)
    rows = [[found.axis, *(markdown.text(head(c)) for c in columns)]]
    for n, name in enumerate(found.contenders):
        rows.append([markdown.text(name), *(_md_cell(found, c, c.cells[n]) for c in columns)])
    for system, values, by, _ in printed(found):
        rows.append(
            [
                f"*{markdown.text(system)} (paper: {markdown.text(by)})*",
                *("" if v is None else number(v) for v in values),
            ]
        )
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    lines.insert(1, "|" + "---|" * (len(columns) + 1))
    told = [
        f"# {markdown.text(found.paper.title)}",
        "",
        f"Data set {markdown.text(found.dataset)}; {markdown.text(_readings(found))}",
        "",
    ]
    return "\n".join([*told, *lines, "", *(f"- {markdown.text(line)}" for line in legend(found)), ""])


def _md_cell(found: Board, row: BoardRow, cell: Cell) -> str:
    value = number(cell.shared.value)
    shown = f"**{value}**" if cell.mark == "best" else f"{value} =" if cell.mark == "tied" else value
    ppi = corrected(found, row, cell)
    told = "" if ppi is None else f"<br>corrected {number(ppi.value)}{span(ppi)}"
    return f"{shown}{span(cell.shared)}<br>{counts(cell)}{told}"


def span(m: Measure) -> str:
    """The interval in brackets, or nothing."""
    return "" if m.low is None or m.high is None else f" ({m.low:.3f} … {m.high:.3f})"


def as_latex(found: Board) -> str:
    """A table* with booktabs: `\\usepackage{booktabs}`; the best bold, ties marked. Many measures stand in parts below
    each other, so that no part has more than eight columns."""
    columns = columns_of(found)
    parts = [columns[n : n + MOST_MEASURES] for n in range(0, len(columns), MOST_MEASURES)]
    tables = [line for part in parts for line in [*_tex_part(found, part), r"\par\medskip"]]
    people = dict.fromkeys(c.reference for c in found.corrections.values())
    texts = [*legend(found)[:2], *(f"corrected by labels of {who} (PPI++), on own rows" for who in people)]
    told = ". ".join(latex(text[:1].upper() + text[1:]) for text in texts)
    caption = rf"\caption{{{latex(found.paper.title)}. {told}.}}"
    begin = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table*}",
        r"\centering",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
    ]
    return "\n".join([*begin, *tables[:-1], caption, r"\end{table*}", ""])


def _tex_part(found: Board, columns: Sequence[BoardRow]) -> list[str]:
    """One tabular: a line a contender, then the rows shared, the corrected values and the paper's own."""
    lines = [
        r"\begin{tabular}{l" + "r" * len(columns) + "}",
        r"\toprule",
        " & ".join([latex(found.axis), *(_tex_head(head(c)) for c in columns)]) + r" \\",
        r"\midrule",
    ]
    for n, name in enumerate(found.contenders):
        lines.append(" & ".join([latex(name), *(_tex_cell(c.cells[n]) for c in columns)]) + r" \\")
    shared = [str(c.cells[0].shared.n_units) for c in columns]
    lines += [
        r"\midrule",
        " & ".join(["rows shared" if len(found.contenders) > 1 else "rows", *shared]) + r" \\",
    ]
    if found.corrections:
        lines.append(r"\midrule")
    for n, name in enumerate(found.contenders if found.corrections else ()):
        each = [corrected(found, c, c.cells[n]) for c in columns]
        cells = ["" if m is None else latex(number(m.value)) for m in each]
        lines.append(" & ".join([rf"{latex(name)}, corrected", *cells]) + r" \\")
    at = [next(n for n, row in enumerate(columns_of(found)) if row is c) for c in columns]
    others = [(system, [values[n] for n in at], by) for system, values, by, _ in printed(found)]
    others = [other for other in others if any(v is not None for v in other[1])]
    if others:
        lines.append(r"\midrule")
    for system, values, by in others:
        cells = ["" if v is None else number(v) for v in values]
        lines.append(" & ".join([rf"\emph{{{latex(system)}}} ({latex(by)})", *cells]) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def latex(text: str) -> str:
    """Text that pdflatex sets as it stands; a character that its fonts lack as its number."""
    marks = {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "…": r"\ldots{}", "–": "--", "·": r"$\cdot$"}
    out = []
    for sign in " ".join(text.split()):
        known = marks.get(sign) or _LATEX.get(sign)
        out.append(known or (sign if " " <= sign <= "ÿ" else rf"\texttt{{U+{ord(sign):04X}}}"))
    return "".join(out)


def _tex_head(text: str) -> str:
    """A name over several lines, broken before a depth or a bracket and after an underscore: long names need wide columns."""
    lines = [""]
    for part in re.split(r"(?<=[_ ])|(?=[@\[])", text):
        if lines[-1] and len(lines[-1]) + len(part) > HEAD_WIDTH:
            lines.append("")
        lines[-1] += part
    # The braces keep TeX from reading a bracket behind the line's end as its height.
    stacked = r" \\ {}".join(latex(line) for line in lines)
    return rf"\shortstack[r]{{{stacked}}}" if len(lines) > 1 else stacked


def _tex_cell(cell: Cell) -> str:
    value = latex(number(cell.shared.value))
    if cell.mark == "best":
        return rf"\textbf{{{value}}}"
    return value + (r"$^{=}$" if cell.mark == "tied" else "")


@dataclass(frozen=True, slots=True)
class BoardDot:
    """One contender in a drawing: places in pixels, None where there is no value."""

    name: str
    y: float
    x: float | None
    low: float | None
    high: float | None
    mark: str
    label: str
    own: float | None


@dataclass(frozen=True, slots=True)
class Plot:
    """One measure: dots on an axis from `ticks[0]` to `ticks[-1]`."""

    title: str
    height: float
    dots: Sequence[BoardDot]
    ticks: Sequence[tuple[float, str]]


LEFT, WIDTH, STEP = 180.0, 290.0, 26.0


def plots(found: Board) -> Iterator[Plot]:
    """A drawing for each column of the table."""
    for row in columns_of(found):
        known = [
            v
            for c in row.cells
            for v in (c.shared.value, c.shared.low, c.shared.high, c.own.value)
            if v is not None
        ]
        if not known:
            continue
        low, high = min([0.0, *known]), max([1.0, *known])

        def place(value: float | None, low: float = low, high: float = high) -> float | None:
            return None if value is None else LEFT + WIDTH * (value - low) / (high - low)

        dots = [
            BoardDot(
                c.contender,
                20 + STEP * n,
                place(c.shared.value),
                place(c.shared.low),
                place(c.shared.high),
                c.mark,
                f"{c.contender}: {number(c.shared.value)}{span(c.shared)}, {counts(c)}"
                + (f", {MARKS[c.mark]}" if c.mark else ""),
                None if c.shared is c.own else place(c.own.value),
            )
            for n, c in enumerate(row.cells)
        ]
        ticks = [(LEFT + WIDTH * n / 4, f"{low + (high - low) * n / 4:.2f}") for n in range(5)]
        yield Plot(head(row), 40 + STEP * len(row.cells), dots, ticks)


def as_html(found: Board) -> str:
    """A page that needs nothing from elsewhere; all text is escaped."""
    return page(
        "board.html",
        board=found,
        columns=columns_of(found),
        printed=printed(found),
        plots=list(plots(found)),
        legend=legend(found),
        readings=_readings(found),
        head=head,
        number=number,
        span=span,
        corrected=corrected,
        counts=counts,
        marks=MARKS,
        p_value=p_value,
        short=_short,
        left=LEFT,
        width=WIDTH,
    )


def _short(name: str) -> str:
    return name if len(name) <= 22 else name[:21] + "…"


def _readings(found: Board) -> str:
    own: Mapping[str, str] = found.readings
    return "readings: " + (", ".join(f"{name} {value}" for name, value in own.items() if value) or "none")
