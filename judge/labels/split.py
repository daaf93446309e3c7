"""Learn, tune and sealed test: which questions of a task something may be learnt from, chosen on, and proved on.

    split = draw(store, task)                 # once; frozen in the study (judge split TASK)
    split = find(store, task)                 # None before; `required` raises instead
    split.units("learn"), split.units("tune") # unit ids, as often as one likes
    look = split.open("improve", [run, ...], reference="decided")   # logged, and then:
    split.units("test", look)                 # test at look.level

One split for all versions of a task: a new version must not move a question from the test to what is learnt from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from judge.errors import UsageError
from judge.labels.reference import resolve
from judge.prompts.load import Task
from judge.stats import MISSING, Ratings
from judge.stats.paired import difference_spread, kappa_sums
from judge.stats.parts import assumed_spread, detectable, spread_parts
from judge.stats.ratings import BoolArray, IntArray
from judge.store import splits
from judge.store.splits import PARTS, Drawn, Look
from judge.store.study import Store, now

if TYPE_CHECKING:
    from judge.labels.panel import Panel

SHARES = (0.2, 0.2, 0.6)
FEWEST = 10
"""Questions with labels below which there is nothing to split."""
FEWEST_SEEN = 10
"""Questions below which the spread of two judges' difference is assumed, not measured."""


@dataclass(frozen=True, eq=False)
class Split:
    """The split of a task in a study."""

    store: Store
    drawn: Drawn
    planned: Mapping[str, str] | None = None
    """The parts of a split that is not kept (`draw` with keep=False)."""

    @property
    def task_id(self) -> str:
        """The task, without a version."""
        return self.drawn.task_id

    @cached_property
    def parts(self) -> Mapping[str, str]:
        """Question -> learn, tune or test; a question that was imported later is in none, unless it has the words of one."""
        return splits.questions(self.store, self.task_id) if self.planned is None else self.planned

    @property
    def looks(self) -> list[Look]:
        """All looks at the test so far."""
        return splits.looks(self.store, self.task_id)

    def questions(self, *parts: str) -> set[str]:
        """The questions of some parts."""
        return {question for question, part in self.parts.items() if part in parts}

    def mask(self, panel: Panel, *parts: str) -> BoolArray:
        """Which units of a panel's table belong to questions of these parts [U]."""
        return np.asarray(np.isin(self._numbers(panel), [PARTS.index(part) for part in parts]))

    def _numbers(self, panel: Panel) -> IntArray:
        """The place in PARTS of each unit's part, -1 for none [U]."""
        named = self.named(panel.ratings)
        parts = [PARTS.index(self.parts[name]) if name in self.parts else MISSING for name in named]
        return np.asarray(np.array(parts, dtype=np.int64)[panel.ratings.clusters])

    def named(self, table: Ratings) -> list[str]:
        """The question of each cluster of a table read from the study."""
        some = np.empty(table.n_clusters, dtype=np.int64)
        some[table.clusters] = np.arange(table.n_units)  # any unit of a question tells which one it is
        return [self.question_of[table.units[at]] for at in some.tolist()]

    @cached_property
    def question_of(self) -> Mapping[str, str]:
        """Unit -> its question, of every unit in the study."""
        return dict(self.store.conn.execute("SELECT unit_id, question_id FROM units"))

    def units(self, part: str, look: Look | None = None) -> set[str]:
        """The units of a part, of every kind. Raises UsageError for the sealed test without the look that opened it."""
        if part == "test" and look not in self.looks:
            raise UsageError(
                f"the test of {self.task_id} is sealed: a look at it is logged before it is read"
            )
        own = self.questions(part)
        query = "SELECT unit_id, question_id FROM units"
        return {unit for unit, question in self.store.conn.execute(query) if question in own}

    def open(
        self, purpose: str, runs: Sequence[str], reference: str, question: Iterable[object] = ()
    ) -> Look:
        """Log the next look at the sealed test: call it before any number of the test is computed or shown.

        `purpose` says what for (`compare`, `improve`), `runs` are ids. Look k is tested at .05 / 2^k. `question` is all
        that the answer depends on: what was asked before of the same runs and labels is the same look, not another one.
        """
        return splits.look(self.store, self.task_id, purpose, runs, reference, _hashed(question))

    @property
    def told(self) -> str:
        """How often the test has been looked at, for every report."""
        return f"the sealed test of {self.task_id} {splits.looked(self.store, self.task_id)}"


def _hashed(question: Iterable[object]) -> str:
    """Of texts, numbers and arrays, in order; empty for nothing."""
    told, some = sha256(), False
    for part in question:
        data = part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode()
        told.update(b"%d\n" % len(data) + data)
        some = True
    return told.hexdigest()[:12] if some else ""


def find(store: Store, task: Task | str) -> Split | None:
    """The split of a task (or a task's id without version), or of one whose field has the same labels; None before it is
    drawn."""
    name = task if isinstance(task, str) else splits.home(store, task)
    found = splits.drawn(store, name)
    return None if found is None else Split(store, found)


def required(store: Store, task: Task) -> Split:
    """The split of a task. Raises UsageError, with the command that draws one, when there is none."""
    found = find(store, task)
    if found is None:
        raise UsageError(
            f"{store.path}: {task.task_id} is not split: judge split {task.task_id} -d {store.path}"
        )
    return found


def draw(
    store: Store,
    task: Task,
    panel: Panel,
    reference: str | None = None,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
    *,
    keep: bool = True,
) -> Split:
    """Split the questions that have units of the task and freeze it; stratified by the labels of the reference.

    `panel` is the task's field as `judge.labels.scope.read` gives it. Questions without a label are split as well, a
    stratum of their own; questions with an item of the same words go together. Raises UsageError when there is a split,
    nobody's labels to hold against, or under 10 questions with labels.
    """
    if find(store, task) is not None:
        raise UsageError(f"{store.path}: {task.task_id} has been split already, and a split is frozen")
    if panel.numeric:
        raise UsageError(
            f"'{panel.field}' has numbers, and a split is stratified by labels: name a field that has some"
        )
    held = resolve(panel, reference)
    if held is None:
        raise UsageError(f"'{panel.field}' has no gold and no people's labels: nothing a test could rest on")
    kin = splits.kin(store, task)
    groups = sorted({own for own, _ in kin.values()})
    made = Drawn(task.task_id, panel.field, held.word, tuple(shares), seed, now() if keep else "")
    planned: dict[str, str] = {}
    found = Split(store, made, planned)
    counts = _counted(found, panel, held.name, {q: own for q, (own, _) in kin.items()}, groups)
    n_labelled = int(counts.any(axis=1).sum())
    if n_labelled < FEWEST:
        raise UsageError(
            f"{store.path}: {n_labelled} questions have labels of '{panel.field}' by {held.word}; "
            f"a split needs {FEWEST}, and a test that shows +.1 about 400 units"
        )
    parts = spread_parts(_strata(counts), shares, seed)
    part_of = {group: PARTS[part] for group, part in zip(groups, parts.tolist(), strict=True)}
    planned.update((q, part_of[own]) for q, (own, _) in kin.items())
    if keep:
        splits.keep(store, made, planned)
    return found


def _counted(
    split: Split, panel: Panel, name: str, group_of: Mapping[str, str], groups: Sequence[str]
) -> IntArray:
    """How often a column gives each code in each group of questions [groups, codes]."""
    table, codes, k = panel.table, panel.labels_of(name), len(panel.domain)
    place = {group: at for at, group in enumerate(groups)}
    own = np.array([place.get(group_of.get(q, ""), MISSING) for q in split.named(table)], dtype=np.int64)
    row = own[table.clusters]
    known = (codes != MISSING) & (row != MISSING)
    counts = np.bincount(row[known] * k + codes[known], minlength=len(groups) * k)
    return np.asarray(counts.reshape(-1, k))


def _strata(counts: IntArray) -> list[tuple[int, int]]:
    """Where a group of questions is put in order: by the rarest label that it has, then by how many labels it has."""
    every = counts.sum(axis=0)
    order = np.lexsort((np.arange(len(every)), every))
    rank = np.empty(len(every), dtype=np.int64)
    rank[order] = np.arange(len(every)) - int((every == 0).sum())
    rarest = np.where(counts > 0, rank, (every > 0).sum()).min(axis=1)
    bits = np.frexp(counts.sum(axis=1))[1]
    return list(zip(rarest.tolist(), bits.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Content:
    """What is in one part: questions in all, and those with labels, their units, and the labels' counts."""

    part: str
    n_questions: int
    n_labelled_questions: int
    n_units: int
    labels: Mapping[str, int]


def content(split: Split, panel: Panel) -> list[Content]:
    """The parts with their labels, as counts: no number here says how any judge does."""
    held = resolve(panel, split.drawn.reference)
    assert held is not None
    codes = panel.labels_of(held.name)
    found = []
    for part in PARTS:
        here = np.flatnonzero(split.mask(panel, part) & (codes != MISSING))
        counts = np.bincount(codes[here], minlength=len(panel.domain)).tolist()
        labels = dict(zip(panel.domain, counts, strict=True))
        n_labelled = len(np.unique(panel.table.clusters[here]))
        found.append(Content(part, len(split.questions(part)), n_labelled, len(here), labels))
    return found


@dataclass(frozen=True, slots=True)
class Power:
    """The difference of kappa that the next look at the test finds with a chance of 80 %; None: no test is possible.

    `why` says what the spread of the difference was taken from.
    """

    difference: float | None
    level: float
    n_units: int
    n_questions: int
    why: str
    units_for_tenth: int | None


def power(split: Split, panel: Panel) -> Power:
    """What the next look at the sealed test can show, from the open parts alone.

    The spread of a paired difference between two judges comes from the runs on learn and tune (the widest pair:
    a promise must hold for any two), and is assumed where there are no two with 10 questions.
    """
    parts = {c.part: c for c in content(split, panel)}
    test = parts["test"]
    level = splits.level_of(len(split.looks) + 1)
    n, questions = test.n_units, test.n_labelled_questions
    if questions < 2:
        return Power(None, level, n, questions, "the test has labels on fewer than 2 questions", None)
    measured = _measured(split, panel)
    if measured is not None:
        spread, seen, pairs = measured
        why = f"the widest of {pairs} pair{'s' if pairs > 1 else ''} of runs on {seen} questions of learn and tune"
    else:
        counts = np.array([sum(p.labels[v] for p in parts.values()) for v in panel.domain], dtype=np.float64)
        chance = float(((counts / counts.sum()) ** 2).sum())
        if chance > 1 - 1e-9:
            return Power(None, level, n, questions, "the reference gives one label only", None)
        spread = assumed_spread(n, questions, chance)
        why = "assumed: two judges of which just one is right on 25 % of the units, intraclass correlation .1"
    found = detectable(spread, questions, level)
    # The detectable difference shrinks with the root of the questions.
    tenth = int(np.ceil(n * (found / 0.1) ** 2))
    return Power(found, level, n, questions, why, tenth)


def _measured(split: Split, panel: Panel) -> tuple[float, int, int] | None:
    """The widest spread of two runs' difference on the open parts, on how many questions, of how many pairs."""
    held = resolve(panel, split.drawn.reference)
    assert held is not None
    if panel.numeric:
        return None
    table = panel.table.subset(split.mask(panel, "learn", "tune"))
    truth = table.column(held.name)
    spreads: list[tuple[float, int]] = []
    for one, other in combinations([j for j in panel.judges if j != held.name], 2):
        first, second = table.column(one), table.column(other)
        both = (truth != MISSING) & (first != MISSING) & (second != MISSING)
        clusters = table.clusters[both]
        if len(np.unique(clusters)) < FEWEST_SEEN:
            continue
        sums = [
            kappa_sums(codes[both], truth[both], clusters, len(panel.domain)) for codes in (first, second)
        ]
        if (spread := difference_spread(sums[0], sums[1])) is not None and spread > 1e-9:
            spreads.append((spread, len(sums[0])))
    return (*max(spreads), len(spreads)) if spreads else None
