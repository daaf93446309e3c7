"""Anchors: units about which a judge is asked at the beginning and again later, to see whether it is still the same judge.

A set of anchors and its replies are runs of the study, marked so that no listing, score or report reads them by itself:
check 0 is the beginning, and each later check is a run of its own. No stored answer of an identical request is taken. Each
check asks `REPLIES` times as the beginning does. With one reply a check, 20 % changed anchors of 100 are found in .57 (two
labels) or .72 (three) of the simulated checks at a reply noise of 10 %; with three replies in all (benchmarks/drift.py).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from judge.asking.run import Asking
from judge.errors import UsageError
from judge.improve import ladder
from judge.labels import relation
from judge.labels.reference import resolve
from judge.labels.scope import Scope, read
from judge.runner import open_patiently
from judge.runner.identity import own_runs
from judge.runner.plan import Plan, RunReport
from judge.runner.run import run_task
from judge.stats.drift import LEVEL, as_codes, drift_p, drift_power, noise_of
from judge.stats.paired import agreement_of, paired_difference, pseudo_values
from judge.store import splits
from judge.store.runs import TRIED
from judge.store.selection import select, selected_units
from judge.types import Json, Measure

if TYPE_CHECKING:
    from judge.runner.plan import RunDisplay
    from judge.store import Store

REPLIES = 3
"""Replies for each anchor, at the beginning and at each check."""
CHANGED = 0.2
"""The share of changed anchors for which the power is computed."""
PURPOSE = "drift"
SET, CHECK = "anchors", "check"
"""Options of a run: the number of its set, and of the check (0: the beginning)."""
RESUMED_FOR = timedelta(hours=24)
"""A check that was interrupted is resumed for so long; later replies would be another day's."""
_FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AnchorDraw:
    """Anchors with their replies of the beginning. `power`: how surely a check finds `CHANGED` of them changed."""

    number: int
    report: RunReport
    units: int
    labelled: int
    noise: float
    power: float

    def as_json(self) -> dict[str, Json]:
        """The documented shape."""
        names = ("units", "labelled", "noise", "power")
        return {"set": self.number, "run": self.report.run_id, "replies": REPLIES} | {
            name: getattr(self, name) for name in names
        }


@dataclass(frozen=True, slots=True)
class DriftCheck:
    """One check of a set. `p` is None where no anchor has all its replies.

    `changed` are the anchors whose usual label is another one now: (unit, label before, label now). `first` and `now` are the agreements with
    the reference, `difference` is now minus first.
    """

    number: int
    check: int
    report: RunReport
    units: int
    left_out: int
    p: float | None
    apart: tuple[float, float]
    changed: Sequence[tuple[str, str, str]]
    reference: str | None
    first: Measure
    now: Measure
    difference: Measure
    names: Mapping[str, tuple[Sequence[str], Sequence[str]]]
    notes: Sequence[str] = ()

    @property
    def is_changed(self) -> bool:
        """Whether the test shows that the judge is another one."""
        return self.p is not None and self.p <= LEVEL

    def as_json(self) -> dict[str, Json]:
        """The documented shape."""
        return {
            "set": self.number,
            "check": self.check,
            "run": self.report.run_id,
            "changed": None if self.p is None else self.is_changed,
            "p": self.p,
            "level": LEVEL,
            "units": self.units,
            "left_out": self.left_out,
            "noise": self.apart[0],
            "apart": self.apart[1],
            "changed_units": [{"unit": u, "first": a, "now": b} for u, a, b in self.changed],
            "reference": self.reference,
            "agreement": {
                "first": self.first.as_json(),
                "now": self.now.as_json(),
                "difference": self.difference.as_json(),
            },
            **{name: {"first": list(a), "now": list(b)} for name, (a, b) in self.names.items()},
            "notes": list(self.notes),
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
    """Draw a set of `n` anchors, those with labels by people first, and ask about each `REPLIES` times.

    Returns the report where the run did not come to its end: then there is no set. Raises UsageError where the judge
    has anchors already, unless `again`.
    """
    plan = asking.plan
    numbers = _sets(store, plan)
    there = [number for number in numbers if _opening(store, asking, number) is not None]
    if there and not again:
        raise UsageError(
            f"{plan.model} has anchors already (set {there[-1]}): leave --anchors out to check them, or draw new ones with --again"
        )
    units, labelled = _chosen(store, plan, field, n)
    number = max(numbers, default=0) + 1
    report = _ask(store, asking, _extra(number, 0), units, progress)
    if _is_incomplete(report):
        return report
    rows = _replies(store, report.run_id, field)
    codes = as_codes(list(rows.values()))
    noise = noise_of(codes) if rows else 0.0
    power = (
        drift_power(len(rows), noise, CHANGED, replies=REPLIES, labels=_n_labels(plan, field))
        if rows
        else 0.0
    )
    return AnchorDraw(number, report, len(rows), len(labelled & rows.keys()), noise, power)


def check(
    store: Store,
    asking: Asking,
    field: str,
    *,
    reference: str | None = None,
    progress: RunDisplay | None = None,
) -> DriftCheck | RunReport:
    """Ask about the newest set of anchors again and compare.

    Returns the report where the run did not come to its end. Raises UsageError where the judge has no anchors with these settings.
    """
    plan = asking.plan
    found = [(number, run) for number in _sets(store, plan) if (run := _opening(store, asking, number))]
    if not found:
        raise UsageError(
            f"{plan.model} has no anchors for {plan.task.name} with these settings: judge drift {plan.task.task_id} "
            f"-m {asking.plan.asked_as or plan.model} --anchors 100 draws them"
        )
    number, opening = found[-1]
    mode = store.conn.execute("SELECT json_extract(options, '$.mode') FROM runs WHERE run_id = ?", [opening])
    # Both sides are asked in one way, whatever the server says of label probabilities today.
    sampling = replace(plan.sampling, answers=str(mode.fetchone()[0]))
    asking = replace(asking, plan=replace(plan, sampling=sampling))
    units = sorted(relation.judged(store.conn, opening))
    place = _next_check(store, plan, number)
    report = _ask(store, asking, _extra(number, place), units, progress)
    if _is_incomplete(report):
        return report
    return _compared(store, plan, field, (number, place), opening, report, reference)


def _sets(store: Store, plan: Plan) -> list[int]:
    """The numbers of the sets of a task and model, complete or not."""
    query = (
        f"SELECT DISTINCT json_extract(options, '$.{SET}') FROM runs WHERE task = ? AND model = ? "
        f"AND json_extract(options, '$.{SET}') IS NOT NULL ORDER BY 1"
    )
    return [int(n) for (n,) in store.conn.execute(query, [plan.task.name, plan.model])]


def _extra(number: int, place: int) -> dict[str, Json]:
    return {TRIED: PURPOSE, SET: number, CHECK: place}


def _opening(store: Store, asking: Asking, number: int) -> str | None:
    """The complete run of the beginning of a set, where it was asked with the settings of this plan."""
    plan = replace(asking.plan, extra={**asking.plan.extra, **_extra(number, 0)})
    runs = own_runs(store, plan, asking.provider)
    marks = ",".join("?" * len(runs))
    query = f"SELECT run_id FROM runs WHERE run_id IN ({marks}) AND finished IS NOT NULL"
    found = [run for (run,) in store.conn.execute(query, runs)]
    return found[0] if found else None


def _next_check(store: Store, plan: Plan, number: int) -> int:
    """The number of the check: a new one, or one that was interrupted less than a day ago."""
    query = (
        f"SELECT json_extract(options, '$.{CHECK}'), finished, started FROM runs WHERE task = ? AND model = ? "
        f"AND json_extract(options, '$.{SET}') = ? ORDER BY 1 DESC LIMIT 1"
    )
    place, finished, started = store.conn.execute(query, [plan.task.name, plan.model, number]).fetchone()
    recent = (datetime.now(UTC) - RESUMED_FOR).isoformat() < started
    return int(place) if place and finished is None and recent else int(place) + 1


def _chosen(store: Store, plan: Plan, field: str, n: int) -> tuple[list[str], set[str]]:
    """The units of a new set, and all units that people or gold labelled: those come first, in a shuffled order each.

    Units of a sealed test are left out: how the judge stands to people there may be looked at once only.
    """
    select(store, plan.task, plan.selection)
    sealed = splits.closed(store, plan.task.task_id, "")
    units = [unit for unit in selected_units(store) if unit not in sealed]
    if not units:
        raise UsageError(f"{store.path}: no unit that {plan.task.name} can show (outside a sealed test)")
    labelled = relation.labelled_by_people(store.conn, field)
    units.sort(key=lambda unit: (unit not in labelled, hashlib.sha256(unit.encode()).digest()))
    return units[:n], labelled


def _ask(
    store: Store,
    asking: Asking,
    extra: Mapping[str, Json],
    units: Sequence[str],
    progress: RunDisplay | None,
) -> RunReport:
    plan = replace(
        asking.plan,
        selection=ladder.select(store, units),
        repeats=REPLIES,
        extra={**asking.plan.extra, **extra},
        fresh=True,
        # A model that has another name today is what is looked for, no error.
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

    with store.run_lock(f"{plan.task.name} {plan.model} anchors"):
        return asyncio.run(ask())


def _is_incomplete(report: RunReport) -> bool:
    return bool(report.stopped or report.interrupted or report.ending or report.pending)


def _n_labels(plan: Plan, field: str) -> int:
    return max(2, len(plan.task.domain(field)))


def _replies(store: Store, run: str, field: str) -> dict[str, list[str]]:
    """Unit -> its replies: a label, or in brackets how a reply without one ended. Units with a failed call are left out.

    A refused or unreadable reply is the judge's own; a failed call is not.
    """
    statuses: dict[str, dict[int, str]] = {}
    query = "SELECT unit_id, repeat, status FROM latest_judgements WHERE run_id = ? ORDER BY unit_id, repeat"
    for unit, repeat, status in store.conn.execute(query, [run]):
        statuses.setdefault(unit, {})[repeat] = f"({status})"
    labels = [relation.values(store.conn, run, field, repeat=repeat) for repeat in range(REPLIES)]
    found = {}
    for unit, of in statuses.items():
        replies = [labels[r].get(unit, of.get(r, f"({_FAILED})")) for r in range(REPLIES)]
        if f"({_FAILED})" not in replies:
            found[unit] = replies
    return found


def _compared(
    store: Store,
    plan: Plan,
    field: str,
    place: tuple[int, int],
    opening: str,
    report: RunReport,
    wanted: str | None,
) -> DriftCheck:
    before, after = (_replies(store, run, field) for run in (opening, report.run_id))
    units = [unit for unit in before if unit in after]
    n_anchors = len(relation.judged(store.conn, opening))
    codes = as_codes([before[u] + after[u] for u in units]).reshape(len(units), 2 * REPLIES)
    first, now = codes[:, :REPLIES], codes[:, REPLIES:]
    apart = [[a != b for a in before[u] for b in after[u]] for u in units]
    usual = [(u, _usual(before[u]), _usual(after[u])) for u in units]
    truth, word = _truth(store, plan, field, opening, wanted)
    names = {name: tuple(_said(store, run, name) for run in (opening, report.run_id)) for name in _NAMES}
    notes = [
        f"the server's {name.replace('_', ' ')} was {_list(a)}, and is {_list(b)} now"
        for name, (a, b) in names.items()
        if a != b
    ]
    return DriftCheck(
        *place,
        report,
        len(units),
        n_anchors - len(units),
        drift_p(first, now) if units else None,
        (noise_of(first), float(np.mean(apart)) if units else 0.0),
        [(u, a, b) for u, a, b in usual if a != b],
        word,
        *_agreements(store, field, {u: before[u] for u in units}, after, truth, word),
        names={name: (a, b) for name, (a, b) in names.items()},
        notes=notes,
    )


_NAMES = ("resolved_model", "system_fingerprint")


def _said(store: Store, run: str, column: str) -> list[str]:
    query = f"SELECT DISTINCT {column} FROM judgements WHERE run_id = ? AND {column} IS NOT NULL ORDER BY 1"
    return [str(name) for (name,) in store.conn.execute(query, [run])]


def _list(names: Sequence[str]) -> str:
    return " or ".join(f"'{name}'" for name in names[:3]) or "not given"


def _usual(replies: Sequence[str]) -> str:
    """The most frequent reply, of several the first."""
    counts = Counter(replies)
    return max(replies, key=lambda reply: counts[reply])


def _truth(
    store: Store, plan: Plan, field: str, run: str, wanted: str | None
) -> tuple[dict[str, str], str | None]:
    """Unit -> the reference's label, and what the reference is called; nothing where nobody labelled the anchors."""
    panel = read(store, Scope(field, plan.task.name, runs=(run,)), distributions=False)
    reference = resolve(panel, wanted)
    if reference is None:
        return {}, None
    labels = panel.labels_of(reference.name)
    units = zip(panel.table.units, labels.tolist(), strict=True)
    return {str(unit): panel.domain[code] for unit, code in units if code >= 0}, reference.text


def _agreements(
    store: Store,
    field: str,
    before: Mapping[str, Sequence[str]],
    after: Mapping[str, Sequence[str]],
    truth: Mapping[str, str],
    word: str | None,
) -> tuple[Measure, Measure, Measure]:
    """The share of replies that agree with the reference, first and now, and the difference with its interval by question."""
    units = [unit for unit in before if unit in truth]
    base = Measure("agreement", None, len(units), field=field)
    if not units:
        none = (
            "no anchor has a label by people or gold" if word is None else f"no anchor has a label by {word}"
        )
        lost = replace(base, reason=none)
        return lost, lost, replace(lost, measure="agreement_difference")
    question = dict(store.conn.execute("SELECT unit_id, question_id FROM units"))
    places = {name: n for n, name in enumerate(sorted({question[unit] for unit in units}))}
    sums = np.zeros((2, len(places), 2))
    for unit in units:
        for side, replies in enumerate((before[unit], after[unit])):
            right = float(np.mean([reply == truth[unit] for reply in replies]))
            sums[side, places[question[unit]]] += (right, 1)
    pseudo = [pseudo_values(side, agreement_of) for side in sums]
    test = paired_difference(pseudo[0], pseudo[1], most=1.0)
    base = replace(base, n_clusters=len(places), coverage=len(units) / len(before))
    first, now = (replace(base, value=float(value)) for value, _ in pseudo)
    low, high = test.low, test.high
    if test.difference is not None and low is None:
        low = high = test.difference
    changed = replace(
        base, measure="agreement_difference", value=test.difference, low=low, high=high, reason=test.reason
    )
    return first, now, changed
