"""A batch that is labelled until the verdict is decided: one block after another, and closed when a look decides."""

from __future__ import annotations

from dataclasses import dataclass

from annotate.drawing.batch import extend_batch
from annotate.drawing.sequences import sequence_of
from annotate.leading.lead import close_batch
from annotate.report.rulings import rule
from annotate.report.subject import ReportOptions, load
from annotate.sitting.desk import batch_info
from judge.errors import UsageError
from judge.stats.looks import places_until
from judge.store import Store

FINISHED = "this part is finished"
"""What annotators read after every block, the last one too: that it was the last would tell them of the verdict."""


@dataclass(frozen=True)
class NextBlock:
    """What came after a block: `opened` new units (0: none), or `closed`. `told` is for the lead alone."""

    opened: int
    closed: bool
    told: tuple[str, ...]


def next_block(store: Store, name: str) -> NextBlock:
    """Open the next block of a batch whose block is complete, or close the batch where every judge of it is decided.

    Nothing happens before everybody has labelled or skipped what was handed out, so the command can be given at any time.
    Raises UsageError for a batch that was not drawn with --until-decided.
    """
    info = batch_info(store, name)
    until = info.plan.until
    if until is None:
        raise UsageError(
            f"batch '{name}' was not drawn with --until-decided: annotate batches extend {name} --to N"
        )
    field = info.task.spec.questions[0].field
    found = sequence_of(store, field, name)
    if info.closed or found is None:
        return NextBlock(0, info.closed is not None, (f"batch '{name}' is closed",))
    if waiting := len(found.units) - found.complete:
        return NextBlock(0, False, (f"{waiting:,} units from the first open one on are not complete yet",))
    rulings = rule(store, load(store, ReportOptions(task=info.task.name, field=field)))[0]
    told = [f"{ruling.judge}: {ruling.decision}; {ruling.because}" for ruling in rulings]
    mine = sum(len(b.units) for b in found.batches if b.name == name)
    place = next((p for p in places_until(found.end) if p > len(found.units)), None)
    undecided = any(ruling.decision == "undecided" for ruling in rulings) or not rulings
    if not undecided or place is None or mine >= until:
        close_batch(store, name)
        return NextBlock(
            0, True, (*told, "decided" if not undecided else "no look is left; the batch is closed undecided")
        )
    to = min(until, mine + place - len(found.units))
    done = extend_batch(store, name, to=to)
    people = max(1, info.plan.each)
    told.append(
        f"the next block: {done.units:,} units, {done.units * people:,} labels; the verdict is computed at {place:,} units"
    )
    return NextBlock(done.units, False, tuple(told))
