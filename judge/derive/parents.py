"""The parents of a derived judge as arrays, and the labels that it is fitted on."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

import numpy as np

from judge.errors import UsageError
from judge.labels import masses, relation
from judge.labels.reference import ReferenceLabels
from judge.labels.words import DECIDED, MAJORITY
from judge.prompts.load import Task
from judge.stats import MISSING
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.store import Store
from judge.store.derived import Fitted
from judge.store.export import named_run, stored_task
from judge.types import GOLD, Json


@dataclass(frozen=True, eq=False)
class Found:
    """Labels of one field: `codes[u, r]` over `domain`, -1 for none; `probabilities[r][u, k]`, or None for a run
    without any. Probabilities sum to 1 over the domain (what was on no label is left out), rows of nan where none is stored.
    """

    domain: tuple[str, ...]
    codes: IntArray
    probabilities: tuple[FloatArray | None, ...]


@dataclass(frozen=True, eq=False)
class RunTable:
    """Some runs of one task on the units that any of them was asked about, sorted by id.

    `asked[u, r]`: run r was asked about unit u. `runs` are rows of the table `runs`.
    """

    store: Store
    task: Task
    runs: tuple[Mapping[str, Json], ...]
    units: Sequence[str]
    asked: BoolArray
    columns: Mapping[tuple[str, str], tuple[list[str], list[str], list[str | None]]]
    statuses: tuple[Mapping[str, str], ...]

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The parents."""
        return tuple(str(run["run_id"]) for run in self.runs)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Unit -> its row."""
        return {unit: at for at, unit in enumerate(self.units)}

    @cached_property
    def questions(self) -> tuple[IntArray, list[str]]:
        """The number of each unit's question, and the questions by number, sorted."""
        of = dict(self.store.conn.execute("SELECT unit_id, question_id FROM units").fetchall())
        own = list(map(of.__getitem__, self.units))
        names = sorted(set(own))
        number = dict(zip(names, range(len(names)), strict=True))
        return np.fromiter(map(number.__getitem__, own), np.int64, len(own)), names

    def labels(self, field: str, probabilities: bool = True) -> Found:
        """The labels of a field, without `probabilities` in half the time. Raises UsageError for a field without labels."""
        domain = self.task.domain(field)
        if not domain:
            raise UsageError(
                f"'{field}' of {self.task.name} has no list of labels: nothing can be derived of it"
            )
        code_of = {label: code for code, label in enumerate(domain)}
        codes = np.full(self.asked.shape, MISSING, dtype=np.int64)
        given: list[FloatArray | None] = []
        for r, run in enumerate(self.run_ids):
            units, values, texts = self._column(run, field)
            rows = self._rows(units)
            codes[rows, r] = np.fromiter(map(code_of.get, values, repeat(MISSING)), np.int64, len(values))
            if not probabilities or not any(texts):
                given.append(None)
                continue
            found = np.full((len(self.units), len(domain)), np.nan)
            found[rows] = masses.read(texts, domain)
            total = found.sum(axis=1, keepdims=True)
            given.append(np.divide(found, total, out=np.full_like(found, np.nan), where=total > 0))
        return Found(tuple(domain), codes, tuple(given))

    def _column(self, run: str, field: str) -> tuple[list[str], list[str], list[str | None]]:
        return self.columns.get((run, field)) or relation.column(self.store.conn, run, field)

    def _rows(self, units: list[str]) -> IntArray | slice:
        if len(units) == len(self.units):
            return slice(None)  # both are sorted
        return np.fromiter((self.places[u] for u in units), dtype=np.int64, count=len(units))


def read(store: Store, names: Sequence[str], field: str | None = None) -> RunTable:
    """The runs of these names (ids, ends of ids, or `last`), which must give `field` (default: the first) the same labels.

    Raises UsageError for a run that is not there or named twice, and for different labels.
    """
    runs = [named_run(store, name) for name in names]
    if len({run["run_id"] for run in runs}) < len(runs):
        raise UsageError("the same run is named twice")
    tasks = [stored_task(store, run["task"]) for run in runs]
    task = tasks[0]
    field = field or task.spec.questions[0].field
    for run, other in zip(runs, tasks, strict=True):
        if field not in other.fields or other.domain(field) != task.domain(field):
            raise UsageError(
                f"run {run['run_id']} ({other.name}) does not give '{field}' the labels of {task.name}"
            )
    columns, statuses, each = {}, [], []
    for run in runs:
        own = relation.column(store.conn, run["run_id"], field)
        missing = relation.unlabelled(store.conn, run["run_id"])
        columns[run["run_id"], field] = own
        statuses.append(missing)
        each.append(own[0] if not missing else sorted({*own[0], *missing}))
    units = each[0] if all(own == each[0] for own in each) else sorted({unit for own in each for unit in own})
    if not units:
        raise UsageError(f"{', '.join(names)}: no unit was judged")
    asked = np.ones((len(units), len(runs)), dtype=np.bool_)
    table = RunTable(store, task, tuple(runs), units, asked, columns, tuple(statuses))
    for r, judged in enumerate(each):
        if len(judged) < len(units):
            asked[:, r] = False
            asked[[table.places[unit] for unit in judged], r] = True
    return table


def newest(store: Store, task: Task, field: str) -> str:
    """The newest asked or imported run of a task (any version) with probabilities, else the newest at all.

    Raises UsageError when there is none.
    """
    query = (
        "SELECT r.run_id FROM runs AS r JOIN tasks AS t USING (task) WHERE t.task_id = ? "
        "AND r.derived_from IS NULL AND json_extract(r.options, '$.tried') IS NULL "
        "ORDER BY r.started DESC, r.run_id DESC"
    )
    runs = [str(run) for (run,) in store.conn.execute(query, [task.task_id])]
    if not runs:
        raise UsageError(f"{store.path}: no run of {task.task_id} yet; see judge run {task.task_id}")
    return next((run for run in runs if relation.has_distributions(store.conn, run, field)), runs[0])


@dataclass(frozen=True, eq=False)
class Truth:
    """What judges are held against on the units of a table: `codes[u]` over the domain, -1 for none."""

    word: str
    table: RunTable
    domain: tuple[str, ...]
    codes: IntArray

    def fitted(self, folds: Mapping[str, int | None], used: BoolArray | None = None) -> Fitted:
        """These labels (of the `used` units) as what something was fitted on; see `judge.store.derived.Fitted`."""
        some = self.codes != MISSING if used is None else used & (self.codes != MISSING)
        ends = [f"\t{label}\n" for label in self.domain]
        rows = np.flatnonzero(some)
        given = zip(rows.tolist(), self.codes[rows].tolist(), strict=True)
        lines = "".join([self.table.units[at] + ends[code] for at, code in given])
        return Fitted(self.word, int(some.sum()), hashlib.sha256(lines.encode()).hexdigest(), folds)

    def by_question(self, folds: int, some: BoolArray | None = None) -> IntArray:
        """A fold for each unit, 0 to folds - 1, the same for all units of a question, and -1 for questions without a
        label (among `some` units). By the hashes of the questions' ids, so that folds stay when units come in.
        """
        numbers, names = self.table.questions
        known = self.codes != MISSING if some is None else some & (self.codes != MISSING)
        labelled = np.unique(numbers[known]).tolist()
        order = sorted(labelled, key=lambda q: hashlib.sha256(names[q].encode()).digest())
        fold = np.full(len(names), -1, dtype=np.int64)
        # Dealt out like cards: folds are even.
        fold[order] = np.arange(len(order)) % min(folds, max(1, len(order)))
        return np.asarray(fold[numbers], dtype=np.int64)

    def folds(self, fold: IntArray) -> dict[str, int | None]:
        """Question -> fold, of `by_question`."""
        numbers, names = self.table.questions
        found, first = np.unique(numbers, return_index=True)
        return {names[q]: int(fold[at]) for q, at in zip(found, first, strict=True) if fold[at] >= 0}


def reference(store: Store, table: RunTable, field: str, word: str | None = None) -> Truth | None:
    """The labels of a reference on the table's units; without a word the first of decided, gold, majority that has some.

    None when there are none at all. Raises UsageError for a word or name that has none.
    """
    domain = tuple(table.task.domain(field))
    for name in [word] if word else (DECIDED, GOLD, MAJORITY):
        try:
            held = ReferenceLabels(store, name)
        except UsageError:
            if word:
                raise
            continue
        # Gold needs no table of everybody, which takes seconds where a study has millions of units.
        if held.word == GOLD:
            units, values, _ = relation.column(store.conn, GOLD, field)
        else:
            given = held.labels(field, table.task.name)
            units, values = list(given), list(given.values())
        codes = _codes(units, values, table, domain)
        if (codes != MISSING).any():
            return Truth(held.word, table, domain, codes)
        if word:
            raise UsageError(f"--reference {word}: no label of '{field}' on a unit of these runs")
    return None


def _codes(units: list[str], labels: list[str], table: RunTable, domain: Sequence[str]) -> IntArray:
    code_of = {label: code for code, label in enumerate(domain)}
    given = np.fromiter(map(code_of.get, labels, repeat(MISSING)), np.int64, len(labels))
    if units == table.units:
        return given
    place = table.places.get
    rows = np.fromiter(map(place, units, repeat(MISSING)), np.int64, len(units))
    codes = np.full(len(table.units), MISSING, dtype=np.int64)
    codes[rows[rows >= 0]] = given[rows >= 0]
    return codes
