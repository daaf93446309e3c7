"""The differences between two judges or two systems as a document, and as rows of a file."""

from typing import Any

from judge.document.blocks import Cell, Document, Notes, Section, Table, heads
from judge.document.cells import interval
from judge.papers.engine.swap import Swap


def as_document(swap: Swap) -> Document:
    """Return every difference B - A with its interval, and the reasons for undefined differences."""
    rows: list[list[Cell]] = [
        [
            *(paper, d.first.measure, d.first.value, d.second.value, d.difference.value),
            *(interval(d.difference.low, d.difference.high), d.p),
            *(d.difference.n_units, d.difference.n_clusters, d.difference.coverage),
        ]
        for paper, some in swap.differences.items()
        for d in some
    ]
    columns = heads("text", "paper", "measure") + heads("number", "A", "B") + heads("difference", "B - A")
    columns += heads("text", "interval") + heads("p", "p") + heads("number", "units", "questions")
    undefined = [
        f"{d.first.measure}: {d.difference.reason}"
        for some in swap.differences.values()
        for d in some
        if d.difference.reason
    ]
    table = Table("differences", "", columns + heads("share", "coverage"), rows)
    notes = Notes(list(dict.fromkeys([*undefined, *swap.notes])))
    about = [("A", swap.first.name), ("B", swap.second.name)]
    return Document("", about, sections=[Section("differences", "Differences", [table, notes])])


def list_differences(swap: Swap) -> list[dict[str, Any]]:
    """Return the differences as rows for a CSV file, with unrounded numbers."""
    return [
        {
            "paper": paper,
            "measure": compared.first.measure,
            "A": compared.first.value,
            "B": compared.second.value,
            "B - A": d.value,
            "low": d.low,
            "high": d.high,
            "p": compared.p,
            "units": d.n_units,
            "questions": d.n_clusters,
            "coverage": d.coverage,
        }
        for paper, some in swap.differences.items()
        for compared in some
        for d in [compared.difference]
    ]
