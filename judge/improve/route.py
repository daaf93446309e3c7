"""Routing: select the units that a judge may label alone. People label the other units.

    found = route(store, task, "stance", ["01K9ZX3M"], agree=0.9)     # writes nothing except a look at a sealed test
    run_id, known = keep(found)                                       # the derived judge of the accepted units

A route promises a minimum agreement between the accepted labels and a reference. A judge's label is accepted
if its confidence reaches a threshold. A route is found along a path: each step lowers a threshold, so that
more units are accepted.

The path is computed on questions that are not used to test the promise. If the task is split, these are the
questions in learn and tune, otherwise a fifth of the labelled questions. A second judge B may label units
that the first judge A does not label. The path then first lowers the threshold of A to a planned value, and
afterwards lowers the threshold of B. The steps are tested in sequence, each on all units that are accepted up
to that step.
"""

import hashlib
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import compress

import numpy as np

from judge import derive
from judge.errors import UsageError
from judge.labels.batches import design
from judge.labels.scope import Scope, read_panel
from judge.labels.split import Split
from judge.stats import MISSING
from judge.stats.metrics import measures
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.stats.selective import (
    STEPS,
    PathStep,
    find_accepting_step,
    first_share,
    first_units,
    follow,
    path_of,
)
from judge.store.derived import read_seen_units
from judge.store.label_rows import labellers
from judge.store.splits import Look
from judge.store.study import Store
from judge.types import GOLD, AnnotatorKind, Json, Measure, attributes

ORDER_SHARE = 5
"""If the task is not split, one in `ORDER_SHARE` labelled questions is used to fix the order of thresholds."""


@dataclass(frozen=True, slots=True)
class PathPlace:
    """A step of the path, which lowers the threshold of one judge (0: A, 1: B).

    `threshold` is the new threshold. `n_accepted` is the number of units that are accepted after this step.
    """

    judge: int
    threshold: float
    n_accepted: int
    coverage: float


@dataclass(frozen=True, eq=False)
class Route:
    """A route and the results of its tests.

    `at` is the last step at which the promise holds, or None if it never holds. For the unit in row u of the
    table, `reached[u]` is the first step that accepts it. `tested[u]` is True if the unit's label was used in
    the tests.
    """

    table: derive.RunTable
    labels: derive.ParentLabels
    field: str
    truth: derive.Truth
    agree: float
    confidence: float
    level: float
    look: Look | None
    places: Sequence[PathPlace]
    steps: Sequence[PathStep]
    at: int | None
    reached: IntArray
    which: IntArray
    """For each unit, the judge whose threshold accepts it first: 0 or 1."""
    tested: BoolArray
    ordered: BoolArray
    people: Sequence[Measure]
    notes: Sequence[str]

    @property
    def accepted(self) -> BoolArray:
        """The units that the judges label alone."""
        if self.at is None:
            return np.zeros(len(self.reached), dtype=np.bool_)
        return np.asarray(self.reached <= self.at)

    @property
    def thresholds(self) -> list[float | None]:
        """The lowest confidence at which each judge's labels are accepted, or None if they are never accepted."""
        if self.at is None:
            return [None] * len(self.table.runs)
        holding = self.places[: self.at + 1]
        thresholds = [[p.threshold for p in holding if p.judge == j] for j in range(len(self.table.runs))]
        return [min(each) if each else None for each in thresholds]

    @property
    def n_units(self) -> int:
        """The number of units that the first judge was asked about."""
        return int(self.table.judged[:, 0].sum())


def route(
    store: Store,
    field: str,
    runs: Sequence[str],
    *,
    agree: float = 0.9,
    confidence: float = 0.95,
    reference: str | None = None,
    split: Split | None = None,
) -> Route:
    """Find the largest set of units that the judges can label alone.

    `runs` names judge A, or A and B. The promise is that the share of their labels in this set that
    agree with the reference is at least `agree`. The promise holds with probability `confidence` over random
    draws of the labelled questions.

    If the task is split, the promise is tested on its sealed test, and a look at the test is logged first.
    The test then uses the level of the look if this level is stricter than `confidence` requires.

    Raises UsageError if `agree` or `confidence` is not between 0 and 1, if the field has no labels, or if
    there are fewer than 10 labelled questions to test the promise on.
    """
    if not 0 < agree < 1 or not 0 < confidence < 1:
        raise UsageError("--agree and --confidence must be between 0 and 1, for example 0.9 and 0.95")
    if len(runs) > 2:
        raise UsageError("a route can have at most two judges: --run A --then B")
    table = derive.read_runs(store, runs, field)
    labels = table.labels(field)
    truth = derive.reference(store, table, field, reference)
    if truth is None:
        raise UsageError(
            f"no unit of these runs has a gold or human label for '{field}', so the guarantee cannot be tested"
        )
    judged = table.judged[:, 0]
    sure = np.column_stack([confidences(labels, j) for j in range(len(runs))])
    sure[~judged] = np.nan
    numbers, names = table.questions
    labelled = (truth.codes != MISSING) & judged
    # A judge agrees too often with labels that it was fitted on, so they cannot test the promise.
    labelled &= ~mask_fitted(store, table)
    chosen = design(
        store, field, frozenset(compress(table.units, labelled.tolist())), people=truth.word != GOLD
    )
    honest = labelled
    # Only units that were drawn with equal probability can test the promise; other units may be easier than those it covers.
    if len(chosen.honest) < labelled.sum():
        honest = labelled & among(table, chosen.honest)
    notes = list(chosen.notes)
    ordered, tested = _sides(honest, numbers, names, split)
    n_tested = len(np.unique(numbers[tested]))
    # Ten questions without an error confirm an agreement of at most 74 % (0.05 ** (1 / 10)), so fewer are useless.
    if n_tested < 10:
        raise UsageError(
            f"only {n_tested} questions with labels from {truth.word} can test the guarantee; a test needs at least 10, and "
            f"a guarantee of {agree:.0%} needs at least {_least(agree, 1 - confidence)}"
            + "".join(f"; {text}" for text in notes)
        )
    # The path is computed from units that are not tested; otherwise it would be fitted to the test.
    free = np.asarray(judged & ~honest) | ordered
    look = None
    if split is not None:
        # A different promise or path is a different look, and open labels and unlabelled units determine the path.
        question = [field, agree, confidence, list(table.run_ids), list(table.units), sure, labels.codes]
        question += [np.where(ordered | tested, truth.codes, MISSING), ordered, tested]
        look = split.open("route", [str(r) for r in table.run_ids], truth.word, question)
    # A sealed test spends its error rate over all looks, so a later look is stricter.
    level = min(1 - confidence, look.level) if look else 1 - confidence
    places, reached, which = _path(sure, numbers, free, ordered, tested, labels, truth, agree, level, notes)
    given = np.where(which == 1, labels.codes[:, -1], labels.codes[:, 0])
    steps = follow(
        (given != truth.codes)[tested],
        reached[tested],
        numbers[tested],
        len(places),
        agree,
        level,
    )
    total = int(judged.sum())
    counts = np.cumsum(np.bincount(reached[judged], minlength=len(places) + 1))[: len(places)]
    path_places = [
        PathPlace(j, threshold, int(n), float(n / total))
        for (j, threshold), n in zip(places, counts.tolist(), strict=True)
    ]
    holding = [i for i, step in enumerate(steps) if step.holds]
    people, more = _people(store, field, table, agree)
    lost = int((judged & (labels.codes[:, 0] == MISSING)).sum())
    if lost:
        notes.append(f"{lost:,} units are never accepted, because the first judge gave them no label")
    if split is not None:
        notes.append(split.look_note)
    if truth.word != GOLD:
        notes.append(f"the guarantee applies to units with a label from {truth.word}")
    return Route(
        table, labels, field, truth, agree, confidence, level, look, path_places, steps, holding[-1] if holding else None,
        reached, which, tested, ordered, people, [*notes, *more],
    )  # fmt: skip


def _least(agree: float, level: float) -> int:
    """Return the smallest number of questions that a test at this level needs to confirm a promise.

    This is the smallest n with agree^n <= level. It is enough if each question has one unit and no label is
    wrong.
    """
    return int(np.ceil(np.log(level) / np.log(agree)))


def confidences(labels: derive.ParentLabels, run: int) -> FloatArray:
    """Return the probability that a judge assigns to its own label.

    Without probabilities, the value is 1 for every label. Either all units are then accepted, or none.
    """
    codes, given = labels.codes[:, run], labels.probabilities[run]
    if given is None:
        return np.where(codes == MISSING, np.nan, 1.0)
    confidences = given[np.arange(len(codes)), np.maximum(codes, 0)]
    return np.asarray(np.where(codes == MISSING, np.nan, confidences))


def mask_fitted(store: Store, table: derive.RunTable) -> BoolArray:
    """Return a mask of the units whose questions have labels on which a run was fitted."""
    return among(table, set().union(*(read_seen_units(store.conn, run) for run in table.run_ids)))


def among(table: derive.RunTable, units: Set[str]) -> BoolArray:
    """Return a mask of the units of the table that are in this set."""
    return np.fromiter(map(units.__contains__, table.units), np.bool_, len(table.units))


def _sides(
    honest: BoolArray, numbers: IntArray, names: Sequence[str], split: Split | None
) -> tuple[BoolArray, BoolArray]:
    """Return two masks of labelled units: those that determine the path, and those that test the promise.

    If the task is split, the first mask selects the units in learn and tune, and the second selects those in
    the sealed test.
    """
    if split is not None:
        part = [split.parts.get(name, "") for name in names]
        opened = np.array([p in ("learn", "tune") for p in part])
        test = np.array([p == "test" for p in part])
        return honest & opened[numbers], honest & test[numbers]
    labelled_questions = np.unique(numbers[honest]).tolist()
    # Questions are chosen by hash, so that the choice is independent of other draws and of the order of rows.
    order = sorted(labelled_questions, key=lambda q: hashlib.sha256(f"route\0{names[q]}".encode()).digest())
    first = np.zeros(len(names), dtype=np.bool_)
    first[order[: len(order) // ORDER_SHARE]] = True
    return honest & first[numbers], honest & ~first[numbers]


def _path(
    sure: FloatArray,
    numbers: IntArray,
    free: BoolArray,
    ordered: BoolArray,
    tested: BoolArray,
    labels: derive.ParentLabels,
    truth: derive.Truth,
    agree: float,
    level: float,
    notes: list[str],
) -> tuple[list[tuple[int, float]], IntArray, IntArray]:
    """Compute the path without the labels that are used in the tests.

    Returns the steps (judge, threshold), the first step that accepts each unit, and the judge whose label is
    accepted in this step.
    """

    def confidences_of(mask: BoolArray, j: int) -> FloatArray:
        return np.asarray(sure[mask & ~np.isnan(sure[:, j]), j])

    known = ordered & ~np.isnan(sure[:, 0])
    begin = first_share(
        first_units(agree, level),
        sure[known, 0],
        numbers[known],
        len(np.unique(numbers[tested])),
    )
    first = path_of(confidences_of(free, 0), begin)
    reached, which = find_accepting_step(sure[:, 0], first), np.zeros(len(sure), dtype=np.int64)
    if len(first) == 1:
        without = labels.probabilities[0] is None
        reason = (
            "the judge returns no probabilities"
            if without
            else "the test has too few questions for several steps"
        )
        notes.append(f"{reason}, so all units that the first judge labelled form one step")
    places = [(0, t) for t in first]
    if sure.shape[1] == 1:
        return places, reached, which
    planned = _plan_step(first, sure[:, 0], labels.codes[:, 0], truth, ordered, agree)
    places = places[: planned + 1]
    left = np.isnan(sure[:, 0]) | (sure[:, 0] < first[planned])
    # Units accepted from A are in every later test, so the first step of B may have few units.
    second = path_of(confidences_of(free & left, 1), 1 / STEPS)
    later = find_accepting_step(sure[:, 1], second)
    beyond = len(places) + len(second)
    reached = np.where(left, np.minimum(len(places) + later, beyond), np.minimum(reached, beyond))
    which = np.where(left, 1, 0)
    notes.append(
        f"this path was planned on questions that do not test the guarantee: A down to {first[planned]:.3g}, then B"
        if first[planned] > -np.inf
        else "this path was planned on questions that do not test the guarantee: A for all units"
    )
    return [*places, *((1, t) for t in second)], reached, which


def _plan_step(
    path: Sequence[float],
    sure: FloatArray,
    codes: IntArray,
    truth: derive.Truth,
    ordered: BoolArray,
    agree: float,
) -> int:
    """Return the step at which the path stops lowering judge A's threshold and starts lowering judge B's.

    This is the last step at which A makes at most half of the allowed errors. The errors are counted on
    labels that are not used in the tests. If there is no such step, return the first step.
    """
    best = 0
    # The other half of the allowed errors is reserved for B.
    for step, threshold in enumerate(path):
        here = ordered & (np.nan_to_num(sure, nan=-np.inf) >= threshold) & (codes != MISSING)
        if here.any() and float((codes[here] == truth.codes[here]).mean()) >= (1 + agree) / 2:
            best = step
    return best


def _people(
    store: Store, field: str, table: derive.RunTable, agree: float
) -> tuple[list[Measure], list[str]]:
    """Return the agreement among people, and a note if the promise exceeds it."""
    unknown = "human-human agreement is unknown: no unit has labels from two people"
    people = [name for name, kind in labellers(store.conn, field).items() if kind == AnnotatorKind.HUMAN]
    if len(people) < 2:
        return [], [unknown]
    try:
        panel = read_panel(
            store, Scope(field, table.task.name, annotators=tuple(people)), distributions=False
        )
    except UsageError:
        return [], [unknown]
    if len(panel.people) < 2:
        return [], [unknown]
    agreement = measures(
        panel.among_people, ["percent", "krippendorff_alpha"], level=panel.level, field=field, replicates=1000
    )
    percent = agreement[0].value
    notes = []
    # Human-human agreement limits what can be promised; at kappa .67, people agree on .835 of the units.
    if percent is not None and percent < agree:
        notes.append(
            f"people agree with each other on only {percent:.1%} of the units, so a guarantee of {agree:.0%} demands more from the judge than from people"
        )
    return agreement, notes


MOST_STEPS = 200
"""Maximum number of path steps that are stored with the run, for the plot in the report."""


def keep(result: Route) -> tuple[str, bool]:
    """Store the accepted units as a derived run. Return the run's id, and whether the study already had this run.

    Raises UsageError if the promise does not hold at any step.
    """
    if result.at is None:
        raise UsageError("the guarantee does not hold at any threshold, so there is no route to store")
    table, labels = result.table, result.labels
    codes = np.where(result.which == 1, labels.codes[:, -1], labels.codes[:, 0])
    probabilities = None
    if all(p is not None for p in labels.probabilities):
        each = [p for p in labels.probabilities if p is not None]
        probabilities = np.where((result.which == 1)[:, None], each[-1], each[0])
    numbers, names = table.questions
    # With two judges, the labels of the ordering questions planned the path. With one they are not read.
    used = result.tested | (result.ordered if len(table.runs) > 1 else np.zeros_like(result.ordered))
    shown: list[Json] = [_finite(t) for t in result.thresholds]
    return derive.keep(
        table.store,
        table,
        "routed",
        "threshold",
        {result.field: derive.Made(codes, probabilities)},
        parameters={
            **attributes(result, "agree", "confidence", "level"),
            "reference": result.truth.word,
            "thresholds": shown,
            "believed": [t is not None for t in result.thresholds],
            "coverage": result.places[result.at].coverage,
            "look": result.look.look if result.look else None,
        },
        fitted=result.truth.describe_fit({names[q]: None for q in np.unique(numbers[used]).tolist()}, used),
        only=result.accepted,
        curve=_curve(result),
    )


def _finite(threshold: float | None) -> float | None:
    """Return the threshold as JSON. Minus infinity, the threshold of a step that accepts every unit, becomes None."""
    # JSON has no infinity.
    return None if threshold == -np.inf else threshold


def _curve(result: Route) -> list[list[Json]]:
    """Return the path for a report: up to MOST_STEPS evenly spaced steps, and the chosen one."""
    every = max(1, -(-len(result.places) // MOST_STEPS))
    return [
        [round(p.coverage, 6), s.accepted, s.wrong, s.agreement, s.holds]
        for n, (p, s) in enumerate(zip(result.places, result.steps, strict=True))
        if n % every == 0 or n == result.at
    ]


def as_json(result: Route, kept: str | None) -> dict[str, Json]:
    """Return the documented JSON representation."""
    at = result.at
    return {
        "field": result.field,
        "runs": list(result.table.run_ids),
        "reference": result.truth.word,
        **attributes(result, "agree", "confidence", "level"),
        "look": result.look.look if result.look else None,
        "holds": at is not None,
        "run": kept,
        "thresholds": [_finite(t) for t in result.thresholds],
        "coverage": None if at is None else result.places[at].coverage,
        "accepted": None if at is None else result.places[at].n_accepted,
        "units": result.n_units,
        "tested_units": int(result.tested.sum()),
        "tested_questions": len(np.unique(result.table.questions[0][result.tested])),
        "steps": [
            {
                "run": result.table.run_ids[p.judge],
                "threshold": _finite(p.threshold),
                "coverage": p.coverage,
                "accepted": p.n_accepted,
                "tested": s.accepted,
                **attributes(s, "questions", "wrong", "agreement", "p", "holds"),
            }
            for p, s in zip(result.places, result.steps, strict=True)
        ],
        "people": [m.as_json() for m in result.people],
        "notes": list(result.notes),
    }
