"""Read the parents of a derived judge as arrays, and the reference labels that the judge is fitted on."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

import numpy as np

from judge.commands import command
from judge.errors import UsageError
from judge.labels import masses, relation
from judge.labels.reference import ReferenceLabels
from judge.labels.words import DECIDED, MAJORITY
from judge.prompts.load import Task
from judge.stats import MISSING, BoolArray, FloatArray, IntArray
from judge.store import Store
from judge.store.derived import Fitted
from judge.store.export import find_named_run, read_stored_task
from judge.types import GOLD, Json


@dataclass(frozen=True, eq=False)
class ParentLabels:
    """Labels of one field in several runs.

    `codes[u, r]` is the index in `domain` of the label that run r gave to unit u, or -1 if there is none.
    `probabilities[r][u, k]` is the probability of label k. It is nan for a unit without probabilities, and
    `probabilities[r]` is None for a run without probabilities. A model can also assign probability to other outputs, so
    the probabilities of each unit are scaled to add up to 1.
    """

    domain: tuple[str, ...]
    codes: IntArray
    probabilities: tuple[FloatArray | None, ...]


@dataclass(frozen=True, eq=False)
class RunTable:
    """Several runs of one task, on all units that any of them has judged. Units are sorted by id.

    `judged[u, r]` is True if run r has judged unit u. `runs` contains rows of the database table `runs`.
    """

    store: Store
    task: Task
    runs: tuple[Mapping[str, Json], ...]
    units: Sequence[str]
    judged: BoolArray
    columns: Mapping[tuple[str, str], tuple[list[str], list[str], list[str | None]]]
    statuses: tuple[Mapping[str, str], ...]

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The ids of the runs."""
        return tuple(str(run["run_id"]) for run in self.runs)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Maps each unit to its row."""
        return {unit: at for at, unit in enumerate(self.units)}

    @cached_property
    def questions(self) -> tuple[IntArray, list[str]]:
        """Return the index of each unit's question, and the sorted list of questions that the indices refer to."""
        question_of = dict(self.store.conn.execute("SELECT unit_id, question_id FROM units").fetchall())
        question_ids = list(map(question_of.__getitem__, self.units))
        names = sorted(set(question_ids))
        number = dict(zip(names, range(len(names)), strict=True))
        return np.fromiter(map(number.__getitem__, question_ids), np.int64, len(question_ids)), names

    def labels(self, field: str, probabilities: bool = True) -> ParentLabels:
        """Return the labels for a field. If `probabilities` is False, only the labels are read, which takes half the time.

        Raises UsageError if the field has no list of labels.
        """
        domain = self.task.domain(field)
        if not domain:
            raise UsageError(
                f"'{field}' of {self.task.name} has no list of labels, so nothing can be derived from it"
            )
        code_of = {label: code for code, label in enumerate(domain)}
        codes = np.full(self.judged.shape, MISSING, dtype=np.int64)
        by_run: list[FloatArray | None] = []
        for r, run in enumerate(self.run_ids):
            units, values, texts = self._column(run, field)
            rows = self._rows(units)
            codes[rows, r] = np.fromiter(map(code_of.get, values, repeat(MISSING)), np.int64, len(values))
            # Parsing the stored JSON takes half of the time of reading a column.
            if not probabilities or not any(texts):
                by_run.append(None)
                continue
            table = np.full((len(self.units), len(domain)), np.nan)
            table[rows] = masses.read_distributions(texts, domain)
            # Runs differ in the mass outside their labels, so only probabilities within the labels can be averaged.
            total = table.sum(axis=1, keepdims=True)
            by_run.append(np.divide(table, total, out=np.full_like(table, np.nan), where=total > 0))
        return ParentLabels(tuple(domain), codes, tuple(by_run))

    def _column(self, run: str, field: str) -> tuple[list[str], list[str], list[str | None]]:
        return self.columns.get((run, field)) or relation.column(self.store.conn, run, field)

    def _rows(self, units: list[str]) -> IntArray | slice:
        if len(units) == len(self.units):
            # Both are sorted, so equal lengths mean equal units.
            return slice(None)
        return np.fromiter((self.places[u] for u in units), dtype=np.int64, count=len(units))


def read_runs(store: Store, names: Sequence[str], field: str | None = None) -> RunTable:
    """Return the runs with these names (ids, ends of ids, or `last`), which must have the same labels for `field`.

    `field` defaults to the first field. Raises UsageError if a run is missing or named twice, or if the labels differ.
    """
    runs = [find_named_run(store, name) for name in names]
    ids = [run["run_id"] for run in runs]
    if twice := [run for at, run in enumerate(ids) if run in ids[:at]]:
        raise UsageError(f"run {twice[0]} is named twice")
    tasks = [read_stored_task(store, run["task"]) for run in runs]
    task = tasks[0]
    field = field or task.spec.questions[0].field
    for run, other in zip(runs, tasks, strict=True):
        # Versions of a task may be combined: only their labels have to be the same.
        if field not in other.fields or other.domain(field) != task.domain(field):
            raise UsageError(
                f"run {run['run_id']} ({other.name}) has no field '{field}' with the same labels as in {task.name}"
            )
    columns, statuses, judged_units = {}, [], []
    for run in runs:
        stored = relation.column(store.conn, run["run_id"], field)
        missing = relation.read_unlabelled(store.conn, run["run_id"])
        columns[run["run_id"], field] = stored
        statuses.append(missing)
        judged_units.append(stored[0] if not missing else sorted({*stored[0], *missing}))
    units = (
        judged_units[0]
        if all(stored == judged_units[0] for stored in judged_units)
        else sorted({unit for stored in judged_units for unit in stored})
    )
    if not units:
        raise UsageError(f"{', '.join(names)}: these runs have not judged any unit")
    is_judged = np.ones((len(units), len(runs)), dtype=np.bool_)
    table = RunTable(store, task, tuple(runs), units, is_judged, columns, tuple(statuses))
    for r, units_of_run in enumerate(judged_units):
        if len(units_of_run) < len(units):
            is_judged[:, r] = False
            is_judged[[table.places[unit] for unit in units_of_run], r] = True
    return table


def newest(store: Store, task: Task, field: str) -> str:
    """Return the newest judged or imported run of a task with probabilities or, if there is none, the newest run.

    Runs of all versions of the task are considered.

    Raises UsageError if the task has no run.
    """
    query = (
        "SELECT r.run_id FROM runs AS r JOIN tasks AS t USING (task) WHERE t.task_id = ? "
        "AND r.derived_from IS NULL AND json_extract(r.options, '$.tried') IS NULL "
        "ORDER BY r.started DESC, r.run_id DESC"
    )
    # Runs that a search started (`tried`) are left out, because a user who names no run does not mean these.
    runs = [str(run) for (run,) in store.conn.execute(query, [task.task_id])]
    if not runs:
        raise UsageError(
            f"{store.path}: there is no run of {task.task_id}; to start one: {command('judge run', task.task_id, '-m', 'MODEL')}"
        )
    return next((run for run in runs if relation.has_distributions(store.conn, run, field)), runs[0])


@dataclass(frozen=True, eq=False)
class Truth:
    """The reference labels on the units of a table. `codes[u]` is an index into the domain, or -1 if unit u has no label."""

    word: str
    table: RunTable
    domain: tuple[str, ...]
    codes: IntArray

    def describe_fit(self, folds: Mapping[str, int | None], used: BoolArray | None = None) -> Fitted:
        """Return a record of the labels that a fit used (see `judge.store.derived.Fitted`).

        If `used` is given, only the labels of these units are recorded.
        """
        selected = self.codes != MISSING if used is None else used & (self.codes != MISSING)
        ends = [f"\t{label}\n" for label in self.domain]
        rows = np.flatnonzero(selected)
        labelled = zip(rows.tolist(), self.codes[rows].tolist(), strict=True)
        lines = "".join([self.table.units[at] + ends[code] for at, code in labelled])
        return Fitted(self.word, int(selected.sum()), hashlib.sha256(lines.encode()).hexdigest(), folds)

    def deal_folds(self, folds: int, some: BoolArray | None = None) -> IntArray:
        """Assign each unit a fold from 0 to folds - 1. All units of a question get the same fold.

        Questions without a label get the fold -1. If the mask `some` is given, labels of units outside it are ignored.
        """
        numbers, names = self.table.questions
        labelled_units = self.codes != MISSING if some is None else some & (self.codes != MISSING)
        labelled = np.unique(numbers[labelled_units]).tolist()
        # Sorted by the hash of the question's id, so that added units change few folds.
        order = sorted(labelled, key=lambda q: hashlib.sha256(names[q].encode()).digest())
        fold = np.full(len(names), -1, dtype=np.int64)
        # Assigned in turn, so that folds have equal sizes.
        fold[order] = np.arange(len(order)) % min(folds, max(1, len(order)))
        return np.asarray(fold[numbers], dtype=np.int64)

    def folds(self, fold: IntArray) -> dict[str, int | None]:
        """Return the fold of each question, given the folds of units from `deal_folds`."""
        numbers, names = self.table.questions
        numbers_present, first = np.unique(numbers, return_index=True)
        return {
            names[q]: int(fold[at]) for q, at in zip(numbers_present, first, strict=True) if fold[at] >= 0
        }


def reference(store: Store, table: RunTable, field: str, word: str | None = None) -> Truth | None:
    """Return the reference labels on the table's units, or None if there are none.

    `word` is the name of the reference. If it is None, the references decided, gold and majority are tried in this
    order, and the first one with labels is used. Raises UsageError if `word` is given and this reference has no labels.
    """
    domain = tuple(table.task.domain(field))
    for name in [word] if word else (DECIDED, GOLD, MAJORITY):
        try:
            labels_of_word = ReferenceLabels(store, name)
        except UsageError:
            if word:
                raise
            continue
        # Gold labels are read directly, because a table of all annotators takes seconds for millions of units.
        if labels_of_word.word == GOLD:
            units, values, _ = relation.column(store.conn, GOLD, field)
        else:
            by_unit = labels_of_word.labels(field, table.task.name)
            units, values = list(by_unit), list(by_unit.values())
        codes = _codes(units, values, table, domain)
        if (codes != MISSING).any():
            return Truth(labels_of_word.word, table, domain, codes)
        if word:
            raise UsageError(
                f"--reference {word}: this reference has no labels for '{field}' on the units of these runs"
            )
    return None


def _codes(units: list[str], labels: list[str], table: RunTable, domain: Sequence[str]) -> IntArray:
    code_of = {label: code for code, label in enumerate(domain)}
    label_codes = np.fromiter(map(code_of.get, labels, repeat(MISSING)), np.int64, len(labels))
    if units == table.units:
        return label_codes
    place = table.places.get
    rows = np.fromiter(map(place, units, repeat(MISSING)), np.int64, len(units))
    codes = np.full(len(table.units), MISSING, dtype=np.int64)
    codes[rows[rows >= 0]] = label_codes[rows >= 0]
    return codes
