"""The split of a task's questions into three parts: learn, tune and the sealed test.

A judge is fitted on learn, selected on tune, and tested on the sealed test. Each use of the sealed test is
called a look. It must be logged before the units of the test can be read.

    split = draw(store, task)                  # draw a split once and store it (judge split TASK)
    split = find(store, task)                  # None if there is no split; `require_split` raises an error
    split.units("learn"), split.units("tune")  # unit ids; may be read at any time
    look = split.open("improve", [run, ...], reference="decided")   # log a look
    split.units("test", look)                  # results on these units are tested at the level look.level
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from judge.commands import command
from judge.errors import UsageError
from judge.labels.reference import resolve
from judge.prompts.load import Task
from judge.stats import MISSING, BoolArray, IntArray, Ratings
from judge.stats.paired import difference_spread, kappa_sums
from judge.stats.parts import assumed_spread, detectable, spread_parts
from judge.store import splits
from judge.store.splits import PARTS, Drawn, Look
from judge.store.study import Store, get_time

if TYPE_CHECKING:
    from judge.labels.panel import Panel

# The test gets most of the questions: it takes about 400 units to detect a difference of .1.
SHARES = (0.2, 0.2, 0.6)
FEWEST = 10
"""The minimum number of labelled questions for a split."""
# With fewer questions, the spread of the difference between two judges is assumed, not measured.
FEWEST_SEEN = 10


@dataclass(frozen=True, eq=False)
class Split:
    """A task's split in a study."""

    store: Store
    drawn: Drawn
    planned: Mapping[str, str] | None = None
    """The parts of a split that is not stored (`draw` with keep=False)."""

    @property
    def task_id(self) -> str:
        """The task's id without a version."""
        return self.drawn.task_id

    @cached_property
    def parts(self) -> Mapping[str, str]:
        """The part of each question: learn, tune or test.

        A question that was imported after the split was drawn is missing here, unless its text is the same as
        that of a question in the split.
        """
        return splits.questions(self.store, self.task_id) if self.planned is None else self.planned

    @property
    def looks(self) -> list[Look]:
        """All completed looks (logged uses of the sealed test)."""
        return splits.looks(self.store, self.task_id)

    def questions(self, *parts: str) -> set[str]:
        """Return the questions in these parts."""
        return {question for question, part in self.parts.items() if part in parts}

    def mask(self, panel: Panel, *parts: str) -> BoolArray:
        """Return a mask of the units in the panel's table whose questions are in these parts."""
        return np.asarray(np.isin(self._numbers(panel), [PARTS.index(part) for part in parts]))

    def _numbers(self, panel: Panel) -> IntArray:
        """Return the number of each unit's part: its position in PARTS, or -1 if the unit is in no part."""
        named = self.name_clusters(panel.ratings)
        parts = [PARTS.index(self.parts[name]) if name in self.parts else MISSING for name in named]
        return np.asarray(np.array(parts, dtype=np.int64)[panel.ratings.clusters])

    def name_clusters(self, table: Ratings) -> list[str]:
        """Return each cluster's question. The table must have been read from the study."""
        any_unit = np.empty(table.n_clusters, dtype=np.int64)
        # Any unit of a cluster identifies its question.
        any_unit[table.clusters] = np.arange(table.n_units)
        return [self.question_of[unit] for unit in table.ids(any_unit.tolist())]

    @cached_property
    def question_of(self) -> Mapping[str, str]:
        """Every unit in the study, mapped to its question."""
        return dict(self.store.conn.execute("SELECT unit_id, question_id FROM units"))

    def units(self, part: str, look: Look | None = None) -> set[str]:
        """Return all units, of any kind, whose questions are in this part.

        Raises UsageError if the part is the sealed test and no look is given.
        """
        if part == "test" and look not in self.looks:
            raise UsageError(
                f"the test part of {self.task_id} is sealed; to read it, call Split.open, which logs the access"
            )
        selected = self.questions(part)
        return {unit for unit, question in self.question_of.items() if question in selected}

    def open(
        self, purpose: str, runs: Sequence[str], reference: str, question: Iterable[object] = ()
    ) -> Look:
        """Log the next look at the sealed test. Call this before any result on the test is computed or shown.

        `purpose` is `compare` or `improve`; `runs` lists run ids. Look k is tested at the level .05 / 2^k.
        `question` contains everything on which the result depends.
        """
        # The same question about the same runs and labels reveals nothing new, so it is the same look and has no
        # cost.
        return splits.look(self.store, self.task_id, purpose, runs, reference, _hash_parts(question))

    @property
    def look_note(self) -> str:
        """A sentence for reports that states the number of completed looks at the test."""
        return f"the sealed test of {self.task_id} {splits.describe_looks(self.store, self.task_id)}"


def _hash_parts(question: Iterable[object]) -> str:
    """Return a hash of these strings, numbers and arrays, in order, or an empty string if there are none."""
    digest, has_parts = sha256(), False
    for part in question:
        data = part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode()
        # The length separates the parts. Otherwise two different questions could have the same hash and share a look.
        digest.update(b"%d\n" % len(data) + data)
        has_parts = True
    return digest.hexdigest()[:12] if has_parts else ""


def find(store: Store, task: Task | str) -> Split | None:
    """Return the split of a task, or of a task with the same labels. Return None if no split has been drawn.

    The task can be given by its id without a version.
    """
    # All versions of a task share one split. Otherwise a new version could move a question from the test to learn.
    name = task if isinstance(task, str) else splits.home(store, task)
    stored = splits.read_split(store, name)
    return None if stored is None else Split(store, stored)


def require_split(store: Store, task: Task) -> Split:
    """Return the split of a task.

    Raises UsageError, which names the command that draws a split, if there is none.
    """
    split = find(store, task)
    if split is None:
        raise UsageError(
            f"{store.path}: {task.task_id} has not been split; split it: {command('judge split', task.task_id, study=store.path)}"
        )
    return split


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
    """Split the task's questions into the parts learn, tune and test.

    If `keep` is True, the split is stored permanently. The split is stratified by the reference labels;
    questions without a label form a separate stratum. `panel` contains the labels for the task's field (see
    `judge.labels.scope.read_panel`). Questions with the same text (question and claim, as far as the task
    shows them) are put into the same part.

    Raises UsageError if the task has already been split, if there is no reference, or if there are fewer than
    10 labelled questions.
    """
    if find(store, task) is not None:
        raise UsageError(
            f"{store.path}: {task.task_id} has already been split, and a split cannot be changed"
        )
    if panel.numeric:
        raise UsageError(
            f"'{panel.field}' is numeric, but a split is stratified by labels; choose a field with labels"
        )
    chosen_reference = resolve(panel, reference)
    if chosen_reference is None:
        raise UsageError(
            f"'{panel.field}' has neither gold nor human labels, so there is nothing to test against"
        )
    # Questions with the same text in two parts would leak the test into learn.
    kin = splits.kin(store, task)
    groups = sorted({group for group, _ in kin.values()})
    drawn = Drawn(
        task.task_id, panel.field, chosen_reference.word, tuple(shares), seed, get_time() if keep else ""
    )
    planned: dict[str, str] = {}
    split = Split(store, drawn, planned)
    counts = _count_codes(
        split, panel, chosen_reference.name, {q: group for q, (group, _) in kin.items()}, groups
    )
    n_labelled = int(counts.any(axis=1).sum())
    if n_labelled < FEWEST:
        raise UsageError(
            f"{store.path}: {n_labelled} questions have labels for '{panel.field}' from {chosen_reference.word}; "
            f"a split needs at least {FEWEST}, and detecting a difference of .1 takes about 400 units"
        )
    # Random folds mislead: one classifier had kappa .51 by random folds and .22 when whole questions were held out.
    parts = spread_parts(_strata(counts), shares, seed)
    part_of = {group: PARTS[part] for group, part in zip(groups, parts.tolist(), strict=True)}
    planned.update((q, part_of[group]) for q, (group, _) in kin.items())
    if keep:
        splits.keep(store, drawn, planned)
    return split


def _count_codes(
    split: Split, panel: Panel, name: str, group_of: Mapping[str, str], groups: Sequence[str]
) -> IntArray:
    """Count how often each label occurs in each group of questions.

    The labels are those in the column `name` of the panel. The result is an array of groups x labels.
    """
    table, codes, k = panel.table, panel.labels_of(name), len(panel.domain)
    place = {group: at for at, group in enumerate(groups)}
    group_number = np.array(
        [place.get(group_of.get(q, ""), MISSING) for q in split.name_clusters(table)], dtype=np.int64
    )
    row = group_number[table.clusters]
    counted = (codes != MISSING) & (row != MISSING)
    counts = np.bincount(row[counted] * k + codes[counted], minlength=len(groups) * k)
    return np.asarray(counts.reshape(-1, k))


def _strata(counts: IntArray) -> list[tuple[int, int]]:
    """Return the stratum of each group of questions.

    Two groups are in the same stratum if they have the same rarest label and a similar number of labels. Two
    numbers are similar if they have equally many binary digits.
    """
    every = counts.sum(axis=0)
    # The rarest label comes first: it has the fewest questions, so chance would distribute it most unevenly over the
    # parts.
    order = np.lexsort((np.arange(len(every)), every))
    rank = np.empty(len(every), dtype=np.int64)
    rank[order] = np.arange(len(every)) - int((every == 0).sum())
    rarest = np.where(counts > 0, rank, (every > 0).sum()).min(axis=1)
    bits = np.frexp(counts.sum(axis=1))[1]
    return list(zip(rarest.tolist(), bits.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Content:
    """The contents of one part: how many questions, labelled questions and labelled units it has, and how often
    each label occurs.
    """

    part: str
    n_questions: int
    n_labelled_questions: int
    n_units: int
    labels: Mapping[str, int]


def content(split: Split, panel: Panel) -> list[Content]:
    """Return the contents of each part. These are only counts."""
    # No number here may depend on a judge, because it would reveal something about the sealed test.
    chosen_reference = resolve(panel, split.drawn.reference)
    assert chosen_reference is not None
    codes = panel.labels_of(chosen_reference.name)
    contents = []
    for part in PARTS:
        in_part = np.flatnonzero(split.mask(panel, part) & (codes != MISSING))
        counts = np.bincount(codes[in_part], minlength=len(panel.domain)).tolist()
        labels = dict(zip(panel.domain, counts, strict=True))
        n_labelled = len(np.unique(panel.table.clusters[in_part]))
        contents.append(Content(part, len(split.questions(part)), n_labelled, len(in_part), labels))
    return contents


@dataclass(frozen=True, slots=True)
class Power:
    """The smallest difference in kappa that the next look at the sealed test can detect.

    It is detected with a probability of 80 %. `difference` is None if no test is possible. `why` states how
    the spread of the difference was determined.
    """

    difference: float | None
    level: float
    n_units: int
    n_questions: int
    why: str
    units_for_tenth: int | None


def power(split: Split, panel: Panel) -> Power:
    """Compute the smallest difference that the next look at the sealed test can detect, without reading the
    test's results.

    The standard deviation of a paired difference is measured on the runs' labels in learn and tune. If they
    have fewer than 10 questions, a standard deviation is assumed.
    """
    parts = {c.part: c for c in content(split, panel)}
    test = parts["test"]
    level = splits.level_of(len(split.looks) + 1)
    n, questions = test.n_units, test.n_labelled_questions
    if questions < 2:
        return Power(None, level, n, questions, "the test has labels on fewer than 2 questions", None)
    measured = _measure_spread(split, panel)
    if measured is not None:
        spread, seen, pairs = measured
        reason = f"the largest spread among {pairs} pair{'s' if pairs > 1 else ''} of runs, on {seen} questions of learn and tune"
    else:
        counts = np.array([sum(p.labels[v] for p in parts.values()) for v in panel.domain], dtype=np.float64)
        chance = float(((counts / counts.sum()) ** 2).sum())
        if chance > 1 - 1e-9:
            return Power(None, level, n, questions, "all reference labels are the same", None)
        spread = assumed_spread(n, questions, chance)
        reason = "assumed: exactly one of two judges is right on 25 % of the units, with an intraclass correlation of .1"
    difference = detectable(spread, questions, level)
    # The detectable difference shrinks with the square root of the number of questions.
    tenth = int(np.ceil(n * (difference / 0.1) ** 2))
    return Power(difference, level, n, questions, reason, tenth)


def _measure_spread(split: Split, panel: Panel) -> tuple[float, int, int] | None:
    """Return the largest standard deviation of the difference between two runs on learn and tune.

    The second result is the number of questions that this pair of runs shares, and the third is the number of
    pairs that were measured. Return None if no pair can be measured.
    """
    chosen_reference = resolve(panel, split.drawn.reference)
    assert chosen_reference is not None
    if panel.numeric:
        return None
    table = panel.table.subset(split.mask(panel, "learn", "tune"))
    truth = table.column(chosen_reference.name)
    spreads: list[tuple[float, int]] = []
    for judge, rival in combinations([j for j in panel.judges if j != chosen_reference.name], 2):
        first, second = table.column(judge), table.column(rival)
        shared = (truth != MISSING) & (first != MISSING) & (second != MISSING)
        clusters = table.clusters[shared]
        if len(np.unique(clusters)) < FEWEST_SEEN:
            continue
        sums = [
            kappa_sums(codes[shared], truth[shared], clusters, len(panel.domain)) for codes in (first, second)
        ]
        if (spread := difference_spread(sums[0], sums[1])) is not None and spread > 1e-9:
            spreads.append((spread, len(sums[0])))
    # The widest pair counts, because the power must hold for any two runs.
    return (*max(spreads), len(spreads)) if spreads else None
