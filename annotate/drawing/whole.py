"""A plain sample for somebody who names no numbers (`judge start`): which units, and how many whole questions of them.

Parts of answers (claims, sentences, citations) are drawn as whole questions: a number of answers needs all parts of each.

Units that came after a batch was drawn (another system, a grown export) are in no frame that it was drawn from. They are a frame of
their own, which has a verdict of its own, and get a plain batch of their own with the same share of units: so every unit of the
study has the same probability, and numbers over all of them need no weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from annotate.batch_plan import BatchPlan
from annotate.drawing.eligible import eligible, with_taken
from annotate.sitting.desk import batch_info
from annotate.sitting.unit import PARTS
from judge.commands import command
from judge.errors import UsageError
from judge.prompts.load import Task
from judge.store import Store

LEAST_SD = 2
"""Standard deviations by which the expected units of whole questions are above the sample that is wanted."""


@dataclass(frozen=True, slots=True)
class PlainDraw:
    """What to type after `annotate batches new NAME TASK`; `newer` units came after the batch `since`, from which its share was
    taken, unless that is more than a sample (`share` is then smaller)."""

    words: tuple[str, ...]
    newer: int = 0
    share: float = 1.0
    earlier_share: float = 1.0


def plain_draw(store: Store, task: Task, person: str, most: int, since: str | None) -> PlainDraw | None:
    """Return the draw of about `most` units, or, after a batch, of the units that came since. None where there are none.

    Raises UsageError where the frame of that batch has changed otherwise.
    """
    where = None if since is None else f"n > {_end_of_frame(store, task, since)}"
    frame = eligible(store, task, BatchPlan("", [person], n=1, where=where), None)
    if not len(frame):
        return None
    sizes = [n for _, _, n in frame.questions()] if task.spec.unit in PARTS else [1] * len(frame)
    wanted = enough(sizes, most)
    earlier = 1.0 if since is None else _share(store, since)
    if since is not None:
        wanted = min(wanted, max(1, round(earlier * len(sizes))))
    option = "--by-question" if task.spec.unit in PARTS else "-n"
    words = (option, str(wanted), *(("--where", where) if where else ()))
    return PlainDraw(words, len(frame) if since else 0, wanted / len(sizes), earlier)


def enough(sizes: Iterable[int], most: int) -> int:
    """Return how many questions of these sizes to draw so that they have `most` units, almost surely; all where they are few.

    The number follows from the sizes alone, never from the questions drawn: stopping at the question that completes the sample
    would prefer large ones.
    """
    known = list(sizes)
    mean = sum(known) / len(known)
    sd = math.sqrt(sum((n - mean) ** 2 for n in known) / len(known))
    return next(
        (k for k in range(1, len(known)) if k * mean - LEAST_SD * sd * math.sqrt(k) >= most - 1e-9),
        len(known),
    )


def _end_of_frame(store: Store, task: Task, batch: str) -> int:
    """The number in the study of the last unit that a batch could be drawn from: units are only ever added.

    Raises UsageError where the units up to there are not those of its frame.
    """
    plan = batch_info(store, batch).plan
    frame, taken = with_taken(store, task, plan, plan.run, batch)
    query = "SELECT count(DISTINCT unit_id) FROM batch_units WHERE batch = ? AND role <> 'sample'"
    [(checks,)] = store.conn.execute(query, [batch]).fetchall()
    units = [(candidate.place, candidate.unit_id) for candidate in frame]
    size: int = plan.frame + checks + len(frame.among(taken))
    frame.leave_out([unit for _, unit in units[size:]])
    if not 0 < size <= len(units) or frame.fingerprint() != plan.frame_id:
        raise UsageError(
            f"batch '{batch}': units that it was drawn from have changed, so that what came since cannot be told apart; "
            "draw from all that are left: "
            + command("annotate batches new NAME", task.task_id, "-n", size, "--annotators", "A,B")
        )
    return units[size - 1][0]


def _share(store: Store, batch: str) -> float:
    """The probability with which a batch drew its units."""
    query = "SELECT max(probability) FROM batch_units WHERE batch = ? AND role = 'sample'"
    return float(store.conn.execute(query, [batch]).fetchone()[0] or 1.0)
