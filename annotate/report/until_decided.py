"""Batches that are labelled in blocks until the verdict is decided, and are then closed."""

from __future__ import annotations

from dataclasses import dataclass

from annotate.drawing.extend import extend_batch
from annotate.drawing.sequences import sequences_of
from annotate.leading.lead import close_batch
from annotate.leading.progress import show_batch
from annotate.report.model import Ruling
from annotate.report.rulings import rule
from annotate.report.subject import ReportOptions, load
from annotate.sitting.desk import batch_info
from judge.commands import command
from judge.document.cells import format_duration
from judge.errors import UsageError
from judge.stats.looks import places_until
from judge.store import Store

FINISHED = "this part is finished"
"""The message after every block. The last block has the same message; another one would reveal the verdict to annotators."""


@dataclass(frozen=True)
class NextBlock:
    """The result of `next_block`: how many units were opened, and whether the batch is closed. Only the lead sees `messages`."""

    opened: int
    closed: bool
    messages: tuple[str, ...]


def next_block(store: Store, name: str) -> NextBlock:
    """Open the next block of a batch if the current block is complete, or close the batch.

    The batch is closed if the verdict on every judge is decided, or if no more units can be opened. While assigned units
    are neither labelled nor skipped, nothing happens, so the command is safe at any time. Raises UsageError if the batch was
    not drawn with --until-decided.
    """
    info = batch_info(store, name)
    until = info.plan.until
    if until is None:
        raise UsageError(
            f"batch '{name}' was not drawn with --until-decided; to add units: {command('annotate batches extend', name, '--to', 'N')}"
        )
    field = info.task.spec.questions[0].field
    of_judges = sequences_of(store, field, name)
    if info.closed or not of_judges:
        return NextBlock(0, info.closed is not None, (f"batch '{name}' is closed",))
    # The next look is the nearest one of the judges that the batch tests.
    sequence = min(of_judges, key=lambda s: len(s.units))
    ruled = rule(store, load(store, ReportOptions(task=info.task.name, field=field)))[0]
    rulings = [ruling for ruling in ruled if ruling.is_tested]
    messages = [f"{ruling.judge}: {ruling.decision}. {_describe_limit(ruling)}" for ruling in rulings]
    # The verdict uses an unbroken sequence of complete units from the first one, so an open unit blocks all later ones.
    if waiting := len(sequence.units) - sequence.complete:
        messages.append(f"{waiting:,} units, starting with the first open unit, are not complete yet")
        return NextBlock(0, False, tuple(messages))
    size = sum(len(b.units) for b in sequence.batches if b.name == name)
    place = next((p for p in places_until(sequence.end) if p > len(sequence.units)), None)
    undecided = any(ruling.decision == "undecided" for ruling in rulings) or not rulings
    if not undecided or place is None or size >= until:
        close_batch(store, name)
        return NextBlock(
            0,
            True,
            (
                *messages,
                "decided" if not undecided else "no look is left, so the batch is closed without a decision",
            ),
        )
    # The numbers of units at the looks refer to the whole sequence, which may have begun in an earlier batch.
    to = min(until, size + place - len(sequence.units))
    done = extend_batch(store, name, to=to)
    people = max(1, info.plan.each)
    messages.append(
        f"the next block: {done.units:,} units, {done.units * people:,} labels{_hours(store, name, done.units)}; the verdict is "
        f"computed at {place:,} units"
    )
    return NextBlock(done.units, False, tuple(messages))


def move_on(store: Store, name: str) -> str:
    """Open the next block if the current one is complete. Return the message for the annotator.

    The message is empty if the batch was not drawn with --until-decided. This function is called after a session, a file,
    a pack or Label Studio has added labels.
    """
    info = batch_info(store, name)
    if info.plan.until is None:
        return ""
    # A pack contains one person's part. The next block opens in the study, where all parts are merged.
    if not info.packed_for:
        next_block(store, name)
    return FINISHED


def _describe_limit(ruling: Ruling) -> str:
    """Describe the interval for the condition that decides the verdict, and the limit that it must meet."""
    deciding = next((c for c in ruling.conditions if c.name in ("non_inferiority", "threshold")), None)
    if deciding is None or deciding.value is None or deciding.low is None or deciding.high is None:
        return ruling.because
    quantity = (
        "agreement with people minus the agreement between people"
        if deciding.name == "non_inferiority"
        else "agreement"
    )
    return (
        f"{quantity[:1].upper()}{quantity[1:]} is {deciding.value:.3f}, at this look between {deciding.low:.3f} and {deciding.high:.3f}; "
        f"trust requires the whole interval to be above {deciding.limit:g}, and distrust requires it to be below"
    )


def _hours(store: Store, name: str, units: int) -> str:
    """Describe how long each person needs for `units` units at the slowest pace so far. Empty if no pace is known."""
    paces = [p["units_per_hour"] for p in show_batch(store, name)["annotators"] if p["units_per_hour"]]
    return (
        f", about {format_duration(3600 * units / min(paces))} for each person at the slowest pace so far"
        if paces
        else ""
    )
