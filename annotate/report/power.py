"""What a verdict hangs on: how many labels more would decide, and what it would be with other limits; drawn and as tables."""

from __future__ import annotations

from collections.abc import Sequence

from annotate.report.cells import counted
from annotate.report.model import Block, Cell, Figure, Ruling, Section, Table, heads
from annotate.report.subject import Subject


def power(rulings: Sequence[Ruling]) -> list[Section]:
    """One curve for each judge that is undecided; no section where there is none."""
    blocks: list[Block] = [_curve(i, ruling) for i, ruling in enumerate((r for r in rulings if r.chances), 1)]
    return [Section("power", "How many labels more", blocks)] if blocks else []


def _curve(number: int, ruling: Ruling) -> Figure:
    columns = heads("number", "more units", "more questions")
    columns += heads("share", "decided", "trust", "do not trust")
    rows: list[list[Cell]] = [
        [c.more_units, c.more_clusters, c.decided, c.trusted, c.distrusted] for c in ruling.chances
    ]
    note = "Over all truths that the labels at hand leave open, not at the value that they show."
    caption = f"Chance of a verdict on {ruling.judge} with more labels"
    table = Table(f"power_{number}", caption, columns, rows, (note,))
    first, last = ruling.chances[0], ruling.chances[-1]
    text = (
        f"Curve of the chance that the verdict on {ruling.judge} is decided: {first.decided:.0%} with {first.more_units:,} "
        f"more units, {last.decided:.0%} with {last.more_units:,}, of which trust {last.trusted:.0%} and do not trust "
        f"{last.distrusted:.0%}."
    )
    data = {
        "units": [c.more_units for c in ruling.chances],
        "decided": [c.decided for c in ruling.chances],
        "trusted": [c.trusted for c in ruling.chances],
        "distrusted": [c.distrusted for c in ruling.chances],
    }
    return Figure(f"power_{number}_figure", caption, text, "power", data, table)


def limits(subject: Subject, rulings: Sequence[Ruling]) -> list[Section]:
    """The verdict over margin and epsilon, or over the threshold, where it is asked for."""
    blocks: list[Block] = [_over(subject, i, ruling) for i, ruling in enumerate(rulings, 1) if ruling.curve]
    return [Section("curve", "The verdict with other limits", blocks)] if blocks else []


def _over(subject: Subject, number: int, ruling: Ruling) -> Figure:
    """Rows for the margin (or the threshold), columns for epsilon where it acts."""
    asked = subject.asked
    by_margin = ruling.curve[0].threshold is None
    what = "margin" if by_margin else "threshold"
    rows = list(dict.fromkeys(p.margin if by_margin else p.threshold for p in ruling.curve))
    across = list(dict.fromkeys(p.epsilon for p in ruling.curve))
    told = {(p.margin if by_margin else p.threshold, p.epsilon): p.decision for p in ruling.curve}
    cells = [[told[row, e] for e in across] for row in rows]
    across_heads = ["verdict" if e is None else f"epsilon {e:g}" for e in across]
    evidence = ruling.conditions[0]
    over = "margin and epsilon" if across != [None] else what
    caption = f"The verdict on {ruling.judge} over {over}"
    n = f"{counted(evidence.n_units, 'unit')} of {counted(evidence.n_clusters, 'question')}"
    note = (
        f"The same {n} put to the same rule. A limit that is chosen after looking here is no test any more."
    )
    table = Table(
        f"curve_{number}",
        caption,
        heads("text", what, *across_heads),
        [[f"{row:g}", *line] for row, line in zip(rows, cells, strict=True)],
        (note,),
    )
    own = asked.margin if by_margin else asked.threshold
    same = {d: sum(line.count(d) for line in cells) for d in dict.fromkeys(d for line in cells for d in line)}
    counts = ", ".join(f"{d} at {k} of {counted(len(ruling.curve), 'point')}" for d, k in same.items())
    here = f"{what} {own:g}" + (f" and epsilon {asked.epsilon:g}" if across != [None] else "")
    text = f"Grid of the verdict over {over}: {counts}; {ruling.decision} at {here}, as asked for."
    data = {
        "rows": [f"{row:g}" for row in rows],
        "columns": ["" if e is None else f"{e:g}" for e in across],
        "cells": cells,
        "asked": [rows.index(own), 0 if across == [None] else across.index(asked.epsilon)],
        "up": what,
        "across": "" if across == [None] else "epsilon",
    }
    return Figure(f"curve_{number}_figure", caption, text, "decisions", data, table)
