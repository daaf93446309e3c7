"""A panel of judges as a document: how often its members agree, and the agreement of each with the reference."""

from collections.abc import Sequence

from judge.derive.pool import Pooled
from judge.document.blocks import COUNTS, Cell, Document, Section, Table, heads, interval_head
from judge.types import Measure


def as_document(
    pooled: Pooled,
    task: str,
    field: str,
    method: str,
    names: Sequence[str],
    word: str | None,
    measures: Sequence[Measure],
) -> Document:
    """Return the panel. `names` are the members and the panel, in the order of their agreement with `word`."""
    units = f"{int(pooled.only.sum()):,} units of {task}, field {field}"
    unanimous = f"{pooled.unanimous:,} of the {pooled.n_full:,} units that every member labelled"
    about = [("all agree on", unanimous)]
    if method == "majority":
        about.append(("tied, without a label", f"{pooled.n_tied:,} units"))
    sections = []
    if measures:
        rows: list[list[Cell]] = [[name, m, m] for name, m in zip(names, measures, strict=True)]
        head = interval_head(
            f"{measures[0].title} with {word}", (m.confidence for m in measures if m.low is not None)
        )
        table = Table("agreement", "", heads("text", "judge") + heads("brief", head) + COUNTS, rows)
        sections.append(Section("agreement", "Agreement with the reference", [table]))
    return Document(f"{method} of {len(names) - 1} judges on {units}", about, sections=sections)
