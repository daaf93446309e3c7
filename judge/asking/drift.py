"""Compare new replies to a set of anchors (see `judge.asking.anchors`) with the first replies and with human labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from judge.asking import anchors
from judge.asking.anchors import REPLIES
from judge.asking.run import Asking
from judge.commands import command
from judge.errors import UsageError
from judge.labels import relation
from judge.labels.reference import resolve
from judge.labels.scope import Scope, read_panel
from judge.runner.plan import Plan, RunReport
from judge.stats.drift import LEVEL, as_codes, drift_p, noise_of
from judge.stats.paired import agreement_of, paired_difference, pseudo_values
from judge.types import Json, Measure

if TYPE_CHECKING:
    from judge.runner.plan import RunDisplay
    from judge.store import Store


@dataclass(frozen=True, slots=True)
class DriftCheck:
    """One check of a set of anchors. `p` is None if no anchor has all of its replies.

    `changed` lists the anchors whose most frequent label has changed, as (unit, label before, label now). `first` and `now`
    are the agreement with the reference at the start and now, and `difference` is `now` minus `first`.
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
        """Whether the test shows that the judge has changed."""
        return self.p is not None and self.p <= LEVEL

    def as_json(self) -> dict[str, Json]:
        """Return the result in the documented JSON form."""
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


def check(
    store: Store,
    asking: Asking,
    field: str,
    *,
    reference: str | None = None,
    progress: RunDisplay | None = None,
) -> DriftCheck | RunReport:
    """Request labels for the newest set of anchors again, and compare them with the first replies.

    If the run did not finish, return its report instead. Raises UsageError if the judge has no anchors with these settings.
    """
    plan = asking.plan
    sets = [
        (number, run)
        for number in anchors.sets_of(store, plan)
        if (run := anchors.opening_run(store, asking, number))
    ]
    if not sets:
        raise UsageError(
            f"{plan.model} has no anchors for {plan.task.name} with these settings; to draw anchors: "
            + command(
                "judge drift", plan.task.task_id, "-m", asking.plan.asked_as or plan.model, "--anchors", 100
            )
        )
    number, opening = sets[-1]
    mode = store.conn.execute("SELECT json_extract(options, '$.mode') FROM runs WHERE run_id = ?", [opening])
    # Both sides need the same answer mode: a server that stops returning probabilities would look like a changed judge.
    sampling = replace(plan.sampling, answers=str(mode.fetchone()[0]))
    asking = replace(asking, plan=replace(plan, sampling=sampling))
    units = sorted(relation.read_judged_units(store.conn, opening))
    place = anchors.next_check(store, plan, number)
    report = anchors.ask_about(store, asking, anchors.mark(number, place), units, progress)
    if anchors.is_incomplete(report):
        return report
    return _compare_replies(store, plan, field, (number, place), opening, report, reference)


def _compare_replies(
    store: Store,
    plan: Plan,
    field: str,
    place: tuple[int, int],
    opening: str,
    report: RunReport,
    wanted: str | None,
) -> DriftCheck:
    before, after = (anchors.replies_of(store, run, field) for run in (opening, report.run_id))
    # The test permutes replies within an anchor, so it needs all replies of both sides.
    units = [unit for unit in before if unit in after]
    n_anchors = len(relation.read_judged_units(store.conn, opening))
    codes = as_codes([before[u] + after[u] for u in units]).reshape(len(units), 2 * REPLIES)
    first, now = codes[:, :REPLIES], codes[:, REPLIES:]
    apart = [[a != b for a in before[u] for b in after[u]] for u in units]
    usual = [(u, _usual(before[u]), _usual(after[u])) for u in units]
    truth, word = _truth(store, plan, field, opening, wanted)
    names = {
        name: tuple(_get_reported_models(store, run, name) for run in (opening, report.run_id))
        for name in _NAMES
    }
    # A new name or fingerprint may explain a change, but does not prove one.
    notes = [
        f"the server's {name.replace('_', ' ')} was {_list(a)} and is now {_list(b)}"
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


def _get_reported_models(store: Store, run: str, column: str) -> list[str]:
    query = f"SELECT DISTINCT {column} FROM judgements WHERE run_id = ? AND {column} IS NOT NULL ORDER BY 1"
    return [str(name) for (name,) in store.conn.execute(query, [run])]


def _list(names: Sequence[str]) -> str:
    return " or ".join(f"'{name}'" for name in names[:3]) or "not given"


def _usual(replies: Sequence[str]) -> str:
    """Return the most frequent reply. If several are equally frequent, return the first of them."""
    counts = Counter(replies)
    return max(replies, key=lambda reply: counts[reply])


def _truth(
    store: Store, plan: Plan, field: str, run: str, wanted: str | None
) -> tuple[dict[str, str], str | None]:
    """Return the reference label of each anchor, and the name of the reference. Both are empty if no anchor has such a label."""
    panel = read_panel(store, Scope(field, plan.task.name, runs=(run,)), distributions=False)
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
    """Return the agreement at the start, the agreement now, and their difference.

    Agreement is the share of replies that agree with the reference. The interval of the difference is clustered by question.
    """
    units = [unit for unit in before if unit in truth]
    base = Measure("agreement", None, len(units), field=field)
    if not units:
        none = "no anchor has a human or gold label" if word is None else f"no anchor has a label from {word}"
        lost = replace(base, reason=none)
        return lost, lost, replace(lost, measure="agreement_difference")
    question = dict(store.conn.execute("SELECT unit_id, question_id FROM units"))
    # Units of one question are not independent, so the sums are made by question.
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
    # No question differs, so there is no spread: the interval is the value itself.
    if test.difference is not None and low is None:
        low = high = test.difference
    changed = replace(
        base, measure="agreement_difference", value=test.difference, low=low, high=high, reason=test.reason
    )
    return first, now, changed
