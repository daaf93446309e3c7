"""Choose the size of a simple random draw for `judge start`: a number of units, or of whole questions.

A study can grow after a batch has been drawn, e.g. when a user imports another system or a longer export. The
new units are not in the batch's frame, so they form a new frame. A separate batch with a separate verdict is
drawn from it. This batch is a simple random draw, and samples at most the same share of units as the earlier
batch.
"""

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
"""The number of standard deviations by which the expected number of units in the drawn questions exceeds the
requested number.
"""


@dataclass(frozen=True, slots=True)
class PlainDraw:
    """The arguments after `annotate batches new NAME TASK`.

    `newer` is the number of units that were imported after the earlier batch. `share` is the share of units
    that are drawn. It is at most the share of the earlier batch (`earlier_share`).
    """

    words: tuple[str, ...]
    newer: int = 0
    share: float = 1.0
    earlier_share: float = 1.0


def find_plain_draw(store: Store, task: Task, person: str, most: int, since: str | None) -> PlainDraw | None:
    """Return a simple random draw of about `most` units, or None if there are no units to draw.

    If `since` names a batch, only units that were imported after this batch are drawn. Raises UsageError if
    the frame of this batch has changed in any other way.
    """
    where = None if since is None else f"n > {_end_of_frame(store, task, since)}"
    frame = eligible(store, task, BatchPlan("", [person], n=1, where=where), None)
    if not len(frame):
        return None
    # Parts of answers are drawn as whole questions, because a measure of an answer needs all of its parts.
    sizes = [n for _, _, n in frame.questions()] if task.spec.unit in PARTS else [1] * len(frame)
    n = enough(sizes, most)
    earlier = 1.0 if since is None else _share(store, since)
    if since is not None:
        # With the share of the earlier batch, all units of the study have the same probability, so estimates
        # need no weights.
        n = min(n, max(1, round(earlier * len(sizes))))
    option = "--by-question" if task.spec.unit in PARTS else "-n"
    words = (option, str(n), *(("--where", where) if where else ()))
    return PlainDraw(words, len(frame) if since else 0, n / len(sizes), earlier)


def enough(sizes: Iterable[int], most: int) -> int:
    """Return how many questions to draw so that together they almost certainly have at least `most` units.

    If there are too few questions, return the number of all questions.
    """
    # The number must not depend on the drawn questions: stopping at the question that completes the sample would prefer
    # large questions.
    known = list(sizes)
    mean = sum(known) / len(known)
    sd = math.sqrt(sum((n - mean) ** 2 for n in known) / len(known))
    return next(
        (k for k in range(1, len(known)) if k * mean - LEAST_SD * sd * math.sqrt(k) >= most - 1e-9),
        len(known),
    )


def _end_of_frame(store: Store, task: Task, batch: str) -> int:
    """Return the position in the study of the last unit in a batch's frame.

    Raises UsageError if the units up to this position are no longer the units of the frame.
    """
    # Units are only ever added to a study, so a frame consists of its first units, unless a condition now
    # selects other units.
    plan = batch_info(store, batch).plan
    frame, taken = with_taken(store, task, plan, plan.run, batch)
    query = "SELECT count(DISTINCT unit_id) FROM batch_units WHERE batch = ? AND role <> 'sample'"
    [(checks,)] = store.conn.execute(query, [batch]).fetchall()
    units = [(candidate.place, candidate.unit_id) for candidate in frame]
    size: int = plan.frame + checks + len(frame.among(taken))
    frame.leave_out([unit for _, unit in units[size:]])
    if not 0 < size <= len(units) or frame.fingerprint() != plan.frame_id:
        raise UsageError(
            f"batch '{batch}': the units from which it was drawn have changed, so newer units cannot be distinguished; "
            "to draw from all remaining units: "
            + command("annotate batches new NAME", task.task_id, "-n", size, "--annotators", "A,B")
        )
    return units[size - 1][0]


def _share(store: Store, batch: str) -> float:
    """Return the inclusion probability of a batch's units."""
    query = "SELECT max(probability) FROM batch_units WHERE batch = ? AND role = 'sample'"
    return float(store.conn.execute(query, [batch]).fetchone()[0] or 1.0)
