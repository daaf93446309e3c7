"""How many labels more would decide: the chance of each decision by the number of further units, drawn and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from annotate.report.model import Block, Cell, Column, Figure, Ruling, Section, Table


def power(rulings: Sequence[Ruling]) -> list[Section]:
    """One curve for each judge that is undecided; no section where there is none."""
    blocks: list[Block] = [_curve(i, ruling) for i, ruling in enumerate((r for r in rulings if r.chances), 1)]
    return [Section("power", "How many labels more", blocks)] if blocks else []


def _curve(number: int, ruling: Ruling) -> Figure:
    columns = [Column("more units", "number"), Column("more questions", "number")]
    columns += [Column(head, "share") for head in ("decided", "trust", "do not trust")]
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
