"""Anchors: units that a judge labels at the start and again later, to test whether the judge has changed.

The replies to a set of anchors are stored as runs of the study. These runs are marked, so that listings, scores and reports
leave them out by default. Check 0 is the opening run, and each later check is a separate run. Each of these runs requests
`REPLIES` replies per anchor.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from judge.asking.run import Asking
from judge.errors import UsageError
from judge.improve import ladder
from judge.labels import relation
from judge.runner import open_patiently
from judge.runner.identity import matching_runs
from judge.runner.plan import Plan, RunReport
from judge.runner.run import run_task
from judge.stats.drift import as_codes, drift_power, noise_of
from judge.store import splits
from judge.store.runs import DRIFT, TRIED
from judge.store.selection import PAGE, list_selected, select
from judge.store.study import dumps
from judge.types import Json

if TYPE_CHECKING:
    from judge.prompts import Task
    from judge.runner.plan import RunDisplay
    from judge.store import Store

# With 100 anchors, of which 20 % changed, and 10 % noise, one reply per anchor detects the change in .57 of simulated checks.
# With three labels instead of two it is .72, and with three replies per anchor all checks detect it (benchmarks/drift.py).
REPLIES = 3
"""The number of replies per anchor, in the opening run and in each check."""
CHANGED = 0.2
"""The share of changed anchors for which the power is computed."""
SET, CHECK = "anchors", "check"
"""The run options that store the number of the set and the number of the check (0: the opening run)."""
RESUMED_FOR = timedelta(hours=24)
"""The maximum age of an interrupted check that is resumed. If the check is older, a new check is started."""
_FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AnchorDraw:
    """A set of anchors with their first replies.

    `power` is the probability that a check detects a change in the replies to a share `CHANGED` of the anchors.
    """

    number: int
    report: RunReport
    units: int
    labelled: int
    noise: float
    power: float

    def as_json(self) -> dict[str, Json]:
        """Return the result in the documented JSON form."""
        names = ("units", "labelled", "noise", "power")
        return {"set": self.number, "run": self.report.run_id, "replies": REPLIES} | {
            name: getattr(self, name) for name in names
        }


def draw(
    store: Store,
    asking: Asking,
    field: str,
    n: int,
    *,
    again: bool = False,
    progress: RunDisplay | None = None,
) -> AnchorDraw | RunReport:
    """Draw a set of `n` anchors, labelled units first, and request `REPLIES` replies for each.

    If the run did not finish, no set is created, and the report of the run is returned. Raises UsageError if the judge
    already has anchors and `again` is False.
    """
    plan = asking.plan
    numbers = sets_of(store, plan)
    there = [number for number in numbers if opening_run(store, asking, number) is not None]
    if there and not again:
        raise UsageError(
            f"{plan.model} already has anchors (set {there[-1]}): omit --anchors to check them, or draw new anchors with --again"
        )
    units, labelled = _choose_units(store, plan, field, n)
    number = max(numbers, default=0) + 1
    report = ask_about(store, asking, mark(number, 0), units, progress)
    if is_incomplete(report):
        return report
    rows = replies_of(store, report.run_id, field)
    codes = as_codes(list(rows.values()))
    noise = noise_of(codes) if rows else 0.0
    power = (
        drift_power(len(rows), noise, CHANGED, replies=REPLIES, labels=_n_labels(plan, field))
        if rows
        else 0.0
    )
    return AnchorDraw(number, report, len(rows), len(labelled & rows.keys()), noise, power)


def sets_of(store: Store, plan: Plan) -> list[int]:
    """Return the numbers that identify the anchor sets of a task and model, including incomplete sets."""
    query = (
        f"SELECT DISTINCT json_extract(options, '$.{SET}') FROM runs WHERE task = ? AND model = ? "
        f"AND json_extract(options, '$.{SET}') IS NOT NULL ORDER BY 1"
    )
    return [int(n) for (n,) in store.conn.execute(query, [plan.task.name, plan.model])]


def newest_run(store: Store, task: Task, model: str) -> str | None:
    """Return the opening run of a model's newest set of anchors, or None if there is no set.

    The run may have any settings.
    """
    query = (
        f"SELECT run_id FROM runs WHERE task = ? AND model = ? AND json_extract(options, '$.{CHECK}') = 0 "
        f"AND finished IS NOT NULL ORDER BY json_extract(options, '$.{SET}') DESC LIMIT 1"
    )
    row = store.conn.execute(query, [task.name, model]).fetchone()
    return None if row is None else str(row[0])


def mark(number: int, place: int) -> dict[str, Json]:
    """Return the options that mark a run as a check of an anchor set.

    `number` identifies the set. `place` is the number of the check.
    """
    # Without the mark, each check would count as another judge and would use up some of a verdict's error rate.
    return {TRIED: DRIFT, SET: number, CHECK: place}


def opening_run(store: Store, asking: Asking, number: int) -> str | None:
    """Return the opening run of a set, or None if it is unfinished or its settings differ from this plan."""
    plan = replace(asking.plan, extra={**asking.plan.extra, **mark(number, 0)})
    runs = matching_runs(store, plan, asking.provider)
    marks = ",".join("?" * len(runs))
    query = f"SELECT run_id FROM runs WHERE run_id IN ({marks}) AND finished IS NOT NULL"
    # An interrupted opening run has too few replies to compare later replies with.
    finished = [run for (run,) in store.conn.execute(query, runs)]
    return finished[0] if finished else None


def next_check(store: Store, plan: Plan, number: int) -> int:
    """Return the number of the next check.

    If the last check was interrupted and began less than a day ago, return its number, so that it is resumed.
    """
    query = (
        f"SELECT json_extract(options, '$.{CHECK}'), finished, started FROM runs WHERE task = ? AND model = ? "
        f"AND json_extract(options, '$.{SET}') = ? ORDER BY 1 DESC LIMIT 1"
    )
    place, finished, started = store.conn.execute(query, [plan.task.name, plan.model, number]).fetchone()
    # Replies from different days could come from different versions of a model.
    recent = (datetime.now(UTC) - RESUMED_FOR).isoformat() < started
    return int(place) if place and finished is None and recent else int(place) + 1


def _choose_units(store: Store, plan: Plan, field: str, n: int) -> tuple[list[str], set[str]]:
    """Return the units of a new set, labelled units first. Also return all units with a human or gold label.

    Labelled and other units are shuffled separately. Of several units with the same text, only the first can be chosen.
    """
    select(store, plan.task, plan.selection)
    # Units of a sealed test are excluded, because each check would be a look at the test.
    sealed = splits.read_closed_units(store, plan.task.task_id, "")
    units = [unit for unit in list_selected(store) if unit not in sealed]
    if not units:
        raise UsageError(
            f"{store.path}: no unit outside a sealed test has all inputs that {plan.task.name} needs"
        )
    labelled = relation.read_units_with_labels(store.conn, field)
    # Labelled units come first, because on these a check also shows the change in agreement with people. Shuffling by hash
    # needs no stored seed.
    units.sort(key=lambda unit: (unit not in labelled, hashlib.sha256(unit.encode()).digest()))
    # Identical requests share one reply, but the test assumes that anchors are independent. When each text occurred twice,
    # 29 of 100 simulated sets raised a false alarm in 52 checks.
    by_inputs: dict[str, str] = {}
    for start in range(0, len(units), PAGE):
        some = units[start : start + PAGE]
        inputs = ladder.inputs_of(store, plan.task, some)
        for unit in some:
            by_inputs.setdefault(dumps(dict(inputs[unit])), unit)
        if len(by_inputs) >= n:
            break
    return list(by_inputs.values())[:n], labelled


def ask_about(
    store: Store,
    asking: Asking,
    extra: Mapping[str, Json],
    units: Sequence[str],
    progress: RunDisplay | None,
) -> RunReport:
    """Request `REPLIES` replies for each unit, in a separate run. If this run already exists, it is resumed."""
    plan = replace(
        asking.plan,
        selection=ladder.select(store, units),
        repeats=REPLIES,
        extra={**asking.plan.extra, **extra},
        # Stored replies must not be reused, because they would hide a change.
        fresh=True,
        # If the model now reports a different name, this is the change to detect and not an error.
        same_model=True,
    )

    async def ask() -> RunReport:
        try:
            opened = await open_patiently(asking.provider, plan, store=store)
            return await run_task(store, opened, asking.provider, progress)
        finally:
            if progress is not None:
                progress.end()
            await asking.provider.close()

    # A separate lock, because a check may run while `judge run` uses the same model for other units.
    with store.run_lock(f"{plan.task.name} {plan.model} anchors"):
        return asyncio.run(ask())


def is_incomplete(report: RunReport) -> bool:
    """Return whether some anchors have no reply because of a limit, an interruption or an unreachable server."""
    return bool(report.stopped or report.interrupted or report.ending or report.pending)


def _n_labels(plan: Plan, field: str) -> int:
    # A field without a list of labels can have at least two values.
    return max(2, len(plan.task.domain(field)))


def replies_of(store: Store, run: str, field: str) -> dict[str, list[str]]:
    """Return the replies for each unit, except for units with a failed call.

    A reply is represented by its label. A reply without a label is represented by its status in parentheses.
    """
    # A refused or malformed reply is the judge's behaviour, but a failed call says nothing about the judge.
    statuses: dict[str, dict[int, str]] = {}
    query = "SELECT unit_id, repeat, status FROM latest_judgements WHERE run_id = ? ORDER BY unit_id, repeat"
    for unit, repeat, status in store.conn.execute(query, [run]):
        statuses.setdefault(unit, {})[repeat] = f"({status})"
    labels = [relation.values(store.conn, run, field, repeat=repeat) for repeat in range(REPLIES)]
    complete = {}
    for unit, of in statuses.items():
        replies = [labels[r].get(unit, of.get(r, f"({_FAILED})")) for r in range(REPLIES)]
        if f"({_FAILED})" not in replies:
            complete[unit] = replies
    return complete
