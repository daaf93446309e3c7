"""Coverage against agreement of routed judges: what each step of a route would have accepted, and which was taken."""

from __future__ import annotations

from annotate.report.model import Block, Cell, Figure, Section, Table, heads
from annotate.report.subject import Subject
from judge.store import Store
from judge.store.derived import stored

MOST_ROWS = 20
"""Of the table beside the drawing, which has every step."""


def routed(store: Store, subject: Subject) -> list[Section]:
    """A drawing for each judge that is a route's; nothing where there is none."""
    blocks: list[Block] = []
    for judge in subject.panel.judges:
        made = stored(store.conn, subject.run_ids[judge]) if judge in subject.run_ids else None
        if made and made["kind"] == "routed" and made.get("curve"):
            blocks.append(_figure(judge, made["curve"], made["parameters"], len(blocks) + 1))
    return [Section("routed", "How much a routed judge may decide alone", blocks)] if blocks else []


def _figure(
    judge: str, curve: list[list[float | None]], parameters: dict[str, float | str], i: int
) -> Figure:
    """`curve`: [coverage, units that tested it, wrong ones, agreement, whether it holds] of each step."""
    agree, chosen = float(parameters["agree"]), float(parameters["coverage"])
    known = [step for step in curve if step[1]]
    # Evenly along the path, and always the step that was taken.
    every = max(1, -(-len(known) // MOST_ROWS))
    taken = min(known, key=lambda step: abs((step[0] or 0.0) - chosen))
    rows: list[list[Cell]] = [
        [
            f"{step[0]:.1%}" + (" (taken)" if step is taken else ""),
            int(step[1] or 0),
            int(step[2] or 0),
            step[3],
            "holds" if step[4] else "does not hold",
        ]
        for n, step in enumerate(known)
        if n % every == 0 or step is taken
    ]
    columns = heads("text", "share of units accepted") + heads("number", "tested units", "wrong")
    columns += heads("share", "agreement") + heads("text", "promise")
    text = (
        f"Agreement with {parameters['reference']} on the tested units against the share of all units that a step accepts, from "
        f"the surest on. Asked for was an agreement of {agree:.0%} with a confidence of {float(parameters['confidence']):.0%}; the last "
        f"step of the path that still holds accepts {chosen:.1%}."
    )
    data = {"steps": known, "agree": agree, "chosen": chosen}
    table = Table(f"routed_{i}_steps", "The steps as a table", columns, rows)
    return Figure(f"routed_{i}", f"Coverage and agreement of {judge}", text, "route", data, table)
