"""Read a panel from a study: people, judge runs, decisions and gold side by side, on the labels that a task

declares.

panel = read(store, Scope(field="stance"))     # all annotators
panel.ratings                                  # judge.stats.Ratings, units in the order of the study
fields_of(store)                               # the fields that can be read
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np

from judge.errors import BadInput, UsageError
from judge.labels import masses, relation
from judge.labels.batches import Members, fix_families, members, weights
from judge.labels.panel import Panel
from judge.labels.values import NUMERIC, alike, canonical
from judge.notes import Note
from judge.prompts.load import Task
from judge.stats import MISSING, Ratings
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.store import Store, splits
from judge.store.derived import seen
from judge.store.export import known_task, stored_task
from judge.store.origin import origins
from judge.store.runs import tried
from judge.store.splits import Look
from judge.types import AnnotatorKind

ORDER = [AnnotatorKind.HUMAN, AnnotatorKind.JUDGE, AnnotatorKind.ADJUDICATED, AnnotatorKind.GOLD]


@dataclass(frozen=True)
class Scope:
    """Which labels to read: one field as a task declares it, on the units of a batch, by these runs and

    annotators.

    `task` (`stance`, `stance.v2`) is needed only if tasks of the study differ. Without `runs`, all judge runs
    of the field
    are read; without `annotators`, everybody else. `annotators` alone means only these, and may include runs.
    A run is named
    by its model (or `--as` name), its id, the start or end of the id, or `last`. `level` and `order` (the
    domain) replace
    those of the task.
    """

    field: str
    task: str | None = None
    batch: str | None = None
    runs: tuple[str, ...] = ()
    annotators: tuple[str, ...] | None = None
    level: str | None = None
    order: tuple[str, ...] | None = None
    repeat: int = 0
    layer: str = "first"


class FieldOf(NamedTuple):
    """A labelled field. `task` is the newest task that defines it, None if no task of the study does."""

    field: str
    task: str | None
    n_units: int
    annotators: list[str]


def fields_of(store: Store) -> list[FieldOf]:
    """Return every labelled field with its annotators (run ids for judges).

    A field that tasks define with different labels is listed once for each definition.
    """
    tasks = _tasks(store)
    units = relation.unit_counts(store.conn)
    rows = []
    for name, annotators in relation.fields(store.conn).items():
        names: list[str | None] = [group[0].name for group in _definitions(tasks, name)]
        rows += [FieldOf(name, task, units[name], annotators) for task in names or [None]]
    return rows


def all_in_conflict(store: Store, field: str | None = None) -> str:
    """Return the sentence on labels in conflict (of a field) for a message; "" if there are none."""
    by_person = [n for name, n in relation.conflict_counts(store.conn).items() if field in (None, name)]
    people = sorted({annotator for counts in by_person for annotator in counts})
    return (
        str(Note("in_conflict", n=sum(sum(counts.values()) for counts in by_person), who=tuple(people)))
        if by_person
        else ""
    )


def read(
    store: Store, scope: Scope, *, distributions: bool = True, text: bool = False, opened: bool = False
) -> Panel:
    """Return everybody's labels of the field. A row is a unit that one of them labelled or was asked to

    label.

    People without a label that counts are left out. `distributions=False` skips the distributions and saves a
    third of the
    time. `text` also accepts a text field; its domain is the labels that occur. A batch restricts human
    labels to its own
    people and units. Judges keep all of theirs, because human labels correct the estimate from those.

    Beside other people's labels, a run's labels on the sealed test of the task are left out until a look at
    the test is
    logged for that run: otherwise a number on them could be seen without spending a part of the error rate.
    `opened` keeps
    them, for callers that log a look themselves or mask the test.

    Raises UsageError for unknown names, for a text field and for a field without labels; BadInput for a
    number that is not
    one.
    """
    name = scope.field
    chosen, comparable, notes = _definition(store, name, scope.task)
    names, shown, kinds = _annotators(store, name, comparable, list(scope.runs), scope.annotators)
    if not names:
        known = ", ".join(sorted({row.field for row in fields_of(store)})) or "none yet"
        raise UsageError(f"{store.path}: nobody labelled '{name}'; fields with labels: {known}")
    level = scope.level or (chosen.level(name) if chosen else "nominal")
    if level == "text" and not text:
        coded = ", ".join(sorted({row.field for row in fields_of(store)} - {name})) or "none yet"
        raise UsageError(
            f"'{name}' is text: agreement is not computed on it; name another field with --field "
            f"(fields with labels: {coded})"
        )
    batch = members(store, scope.batch) if scope.batch is not None else None
    columns = [_Column.read(store, n, scope, kinds[n], batch) for n in names]
    closed = 0
    if chosen is not None and not opened and any(kinds[n] is not AnnotatorKind.JUDGE for n in names):
        closed = _close(store, chosen, [c for c in columns if kinds[c.annotator] is AnnotatorKind.JUDGE])
    columns = [c for c in columns if len(c.asked) or kinds[c.annotator] is not AnnotatorKind.HUMAN]
    drawn = relation.rows_of(store.conn, batch.units) if batch is not None else None
    if drawn is not None and not any(np.isin(drawn, c.asked).any() for c in columns):
        raise UsageError(f"no unit of the batch has a label of '{name}'")
    names = [c.annotator for c in columns]
    rows = _Rows.of(store, columns)
    units = rows.units
    if not units:
        raise BadInput(
            f"{store.path}: there is no label of '{name}' with repeat {scope.repeat}, layer '{scope.layer}'"
        )
    values = {c.values[at] for c in columns for at in np.unique(c.codes).tolist()}
    if not values and (conflicts_text := all_in_conflict(store, name)):
        raise BadInput(f"{store.path}: no label of '{name}' can be used: {conflicts_text}")
    domain: list[str]
    if level in NUMERIC:
        domain = sorted({canonical(v, name) for v in values}, key=float) or ["0"]
    elif level == "text":
        domain = sorted(values)
    else:
        domain = list(scope.order or (chosen.domain(name) if chosen else sorted(values)))
    if chosen is None and scope.order is None:
        notes.append(Note("no_task", field=name, level=level))
        notes += alike(domain)
    codes, asked, strangers = _tabulate(columns, rows, domain, name if level in NUMERIC else None)
    table_names = [shown.get(n, n) for n in names]
    outside = {n: dict(o) for n, o in zip(table_names, strangers, strict=True) if o}
    for annotator, unknown_labels in outside.items():
        notes.append(Note("outside", who=annotator, field=name, labels=tuple(unknown_labels.items())[:5]))
    notes += [Note("origin", who=shown[run], told=text) for run, text in origins(store.conn, names).items()]
    looks: dict[str, Look] = {}
    if chosen is not None and (sealed := _sealed(store, chosen, rows, closed)):
        notes += sealed
        logged = splits.looks(store, splits.home(store, chosen))
        looks = {shown[run]: look for run in names if run in shown for look in logged if run in look.runs}
    probabilities = {
        c.annotator: _probabilities(store, c, scope, rows, domain)
        for c in columns
        if distributions and kinds[c.annotator] is AnnotatorKind.JUDGE and level not in NUMERIC
    }
    if {AnnotatorKind.HUMAN, AnnotatorKind.JUDGE} <= {kinds[n] for n in names}:
        fix_families(store, name)
    conflicts = {c.annotator: c.n_in_conflict for c in columns if c.n_in_conflict}
    if conflicts:
        notes.append(Note("in_conflict", n=sum(conflicts.values()), who=tuple(conflicts)))
    notes += [Note("fitted_on", who=shown[c.annotator], n=c.n_seen) for c in columns if c.n_seen]
    return Panel(
        field=name,
        task=chosen,
        level=level,
        ratings=Ratings.from_codes(codes, domain, table_names, clusters=rows.question, units=units),
        asked=asked,
        kinds={shown.get(n, n): kinds[n] for n in names},
        shown={run: n for run, n in shown.items() if run in names},
        distributions={
            shown.get(name, name): table for name, table in probabilities.items() if table is not None
        },
        outside=outside,
        notes=tuple(notes),
        inside=None if drawn is None else np.isin(rows.rowids, drawn),
        weights=weights(store, scope.batch, name),
        layers={n: own for n, own in relation.layers(store.conn, name).items() if n in kinds},
        looks=looks,
        conflicts=conflicts,
    )


def _close(store: Store, task: Task, judges: Sequence[_Column]) -> int:
    """Remove the labels of runs on a sealed test that no look has opened for them.

    Returns the number of such runs.
    """
    n, home = 0, splits.home(store, task)
    for column in judges:
        units = relation.rows_of(store.conn, splits.closed(store, home, column.annotator))
        if np.isin(units, column.asked).any():
            column.leave_out(units)
            n += 1
    return n


def _sealed(store: Store, task: Task, rows: _Rows, closed: int) -> list[Note]:
    """Return the notes on the sealed test to which some of these units belong; none without a split."""
    home = splits.home(store, task)
    if splits.drawn(store, home) is None:
        return []
    parts = splits.questions(store, home)
    test = np.array([parts.get(question) == "test" for question in rows.questions], dtype=np.bool_)
    n = int(test[rows.question].sum())
    if not n:
        return []
    looked = splits.looked(store, home)
    notes = [Note("sealed", n=n, task=home, looked=looked)]
    return [*notes, Note("closed", n=closed, task=home)] if closed else notes


@dataclass(eq=False)
class _Column:
    """One annotator's labels as stored.

    Units are identified by their rowid in the study, ascending: a million unit ids would be as many strings
    for each column
    in memory. `codes[i]` is the position in `values` of the label of the unit `labelled[i]`; `asked` are all
    units that the
    annotator was asked to label.
    """

    annotator: str
    labelled: IntArray
    codes: IntArray
    values: list[str]
    asked: IntArray
    n_seen: int = 0
    """Units left out because this derived judge was fitted on labels of their questions."""
    n_in_conflict: int = 0
    """Units whose sources have different labels of this person: asked, but unlabelled until a lead resolves it."""

    def leave_out(self, units: IntArray) -> None:
        """Remove these units, as if the annotator had never been asked to label them."""
        kept = ~np.isin(self.labelled, units)
        self.labelled, self.codes = self.labelled[kept], self.codes[kept]
        self.asked = np.setdiff1d(self.asked, units)

    @classmethod
    def read(
        cls, store: Store, annotator: str, scope: Scope, kind: AnnotatorKind, batch: Members | None
    ) -> _Column:
        """Read one annotator's labels. For a judge, `asked` is every unit that it has judged."""
        conn = store.conn
        labelled, codes, values = relation.codes(conn, annotator, scope.field, scope.layer, scope.repeat)
        if kind is AnnotatorKind.JUDGE:
            asked = np.union1d(relation.judged_rows(conn, annotator, scope.repeat), labelled)
            column = cls(annotator, labelled, codes, values, asked)
            fitted = relation.rows_of(conn, seen(conn, annotator))
            column.n_seen = int(np.isin(asked, fitted).sum())
            column.leave_out(fitted)
            return column
        unresolved: set[str] = set()
        if scope.layer == "first":
            unresolved = relation.in_conflict(conn, annotator, scope.field, scope.repeat)
        if batch is not None:
            selected_units = (
                batch.units if kind is not AnnotatorKind.HUMAN or annotator in batch.people else frozenset()
            )
            selected = np.isin(labelled, relation.rows_of(conn, selected_units))
            labelled, codes = labelled[selected], codes[selected]
            unresolved = unresolved.intersection(selected_units)
        asked = np.union1d(relation.rows_of(conn, unresolved), labelled)
        return cls(annotator, labelled, codes, values, asked, n_in_conflict=len(unresolved))


@dataclass(frozen=True, eq=False)
class _Rows:
    """The units of a table in the order of their import.

    `units`, their `rowids`, and for each unit the number of its `question` among the sorted `questions`.
    """

    units: list[str]
    rowids: IntArray
    question: IntArray
    questions: list[str]

    @classmethod
    def of(cls, store: Store, columns: Sequence[_Column]) -> _Rows:
        """Return every unit that any of the columns labelled or was asked to label."""
        rowids = np.unique(np.concatenate([np.empty(0, np.int64), *(column.asked for column in columns)]))
        units: list[str] = []
        question_numbers = array("q")
        first: dict[str, int] = {}
        remaining = iter(rowids.tolist())
        next_rowid = next(remaining, None)
        for rowid, unit, question in store.conn.execute(
            "SELECT rowid, unit_id, question_id FROM units ORDER BY rowid"
        ):
            if rowid == next_rowid:
                units.append(unit)
                question_numbers.append(first.setdefault(question, len(first)))
                next_rowid = next(remaining, None)
        questions = sorted(first)
        number = np.empty(len(first), np.int64)
        number[[first[question] for question in questions]] = np.arange(len(first))
        return cls(units, rowids, number[np.array(question_numbers, np.int64)], questions)

    def places(self, rowids: IntArray) -> IntArray:
        """Return the row numbers of these units in the table."""
        return np.searchsorted(self.rowids, rowids)


def _tabulate(
    columns: Sequence[_Column], rows: _Rows, domain: Sequence[str], name: str | None
) -> tuple[IntArray, BoolArray, list[Counter[str]]]:
    """Return codes over the domain, asked-for marks, and labels outside the domain.

    With `name`, labels are numbers.
    """
    code_of = {label: code for code, label in enumerate(domain)}
    codes = np.full((len(rows.units), len(columns)), MISSING, dtype=np.int64)
    asked = np.zeros(codes.shape, dtype=np.bool_)
    outside: list[Counter[str]] = []
    for j, column in enumerate(columns):
        asked[rows.places(column.asked), j] = True
        code = np.array([code_of.get(canonical(v, name), MISSING) for v in column.values], dtype=np.int64)
        row_numbers, label_codes = rows.places(column.labelled), code[column.codes]
        codes[row_numbers, j] = label_codes
        # No measure can use a label outside the domain, so the unit does not count as asked either.
        asked[row_numbers[label_codes == MISSING], j] = False
        unknown_codes = column.codes[label_codes == MISSING].tolist()
        outside.append(Counter(column.values[at] for at in unknown_codes))
    return codes, asked, outside


def _probabilities(
    store: Store, column: _Column, scope: Scope, rows: _Rows, domain: Sequence[str]
) -> FloatArray | None:
    """Return the stored distributions of a column, units x labels, nan rows if missing; None without any."""
    table = np.full((len(rows.units), len(domain)), np.nan)
    any_stored = False
    for rowids, texts in relation.distributions(
        store.conn, column.annotator, scope.field, scope.layer, scope.repeat
    ):
        kept = np.isin(rowids, column.labelled)
        if kept.any():
            any_stored = True
            table[rows.places(rowids[kept])] = masses.read(list(compress(texts, kept.tolist())), domain)
    return table if any_stored else None


def shown_names(runs: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return a short unique name for each (run id, model, task); its last part identifies the run."""
    rows = list(runs)
    size = 4
    while len({run[-size:] for run, _, _ in rows}) < len(rows):
        size += 1
    return {run: f"{model} · {task} · {run[-size:]}" for run, model, task in rows}


def _tasks(store: Store) -> list[Task]:
    """Return the tasks of the study, newest version first."""
    names = store.conn.execute("SELECT task FROM tasks ORDER BY task_id, version DESC")
    return [stored_task(store, name) for (name,) in names.fetchall()]


def _definitions(tasks: Iterable[Task], field: str) -> list[list[Task]]:
    """Return the tasks that define the field, grouped by equal labels and level."""
    groups: dict[tuple[str, ...], list[Task]] = {}
    for task in tasks:
        if field in task.fields:
            groups.setdefault((task.level(field), *task.domain(field)), []).append(task)
    return list(groups.values())


def _definition(store: Store, field: str, name: str | None) -> tuple[Task | None, set[str], list[Note]]:
    """Return the task whose labels are the domain, the names of the tasks with comparable runs, and notes."""
    groups = _definitions(_tasks(store), field)
    if name is None:
        if len(groups) > 1:
            definitions = "; ".join(
                f"{g[0].name}: {', '.join(g[0].domain(field)) or 'no labels'}" for g in groups
            )
            raise UsageError(
                f"'{field}' has different labels in the tasks of this study ({definitions}); choose one with --task"
            )
        if not groups:
            return None, set(), []
        return groups[0][0], {task.name for task in groups[0]}, []
    for group in groups:
        chosen = [task for task in group if name in (task.name, task.task_id)]
        if chosen:
            other_tasks = [task.name for other in groups if other is not group for task in other]
            notes = [Note("other_labels", field=field, tasks=tuple(other_tasks))] if other_tasks else []
            return chosen[0], {task.name for task in group}, notes
    task = known_task(store, name)
    if field not in task.fields:
        raise UsageError(f"task {task.name} has no field '{field}'; it has {', '.join(task.fields)}")
    definition = (task.level(field), task.domain(field))
    comparable = [t.name for g in groups for t in g if (t.level(field), t.domain(field)) == definition]
    return task, set(comparable), []


def _annotators(
    store: Store, field: str, tasks: set[str], runs: list[str], requested: Iterable[str] | None
) -> tuple[list[str], dict[str, str], dict[str, AnnotatorKind]]:
    """Return the ids of the annotators in order, the shown names of runs, and the kind of each annotator."""
    kinds = {name: AnnotatorKind(kind) for name, kind in relation.labellers(store.conn, field).items()}
    people = sorted(kinds, key=lambda name: (ORDER.index(kinds[name]), name))
    judged = store.conn.execute(
        "SELECT run_id, model, task FROM runs AS r WHERE EXISTS "
        "(SELECT 1 FROM judgements AS j WHERE j.run_id = r.run_id) ORDER BY started, run_id"
    ).fetchall()
    shown = shown_names(judged)
    all_runs = [run for run, _, task in judged if task in tasks]
    chosen = [_find(name, judged, all_runs, people) for name in runs]
    if requested is None:
        only_tried = tried(store.conn)
        named, chosen = people, chosen or [run for run in all_runs if run not in only_tried] or all_runs
    else:
        named = []
        for name in requested:
            if name in kinds:
                named.append(name)
            else:
                chosen.append(_find(name, judged, all_runs, people))
    chosen = list(dict.fromkeys(chosen))
    kinds.update(dict.fromkeys(chosen, AnnotatorKind.JUDGE))
    names = [
        n for kind in ORDER for n in (chosen if kind is AnnotatorKind.JUDGE else named) if kinds[n] is kind
    ]
    return list(dict.fromkeys(names)), shown, kinds


def _find(
    name: str, judged: Sequence[tuple[str, str, str]], comparable: Sequence[str], people: Sequence[str]
) -> str:
    """Return the id of the single run that `name` refers to."""
    if name == "last" and comparable:
        return comparable[-1]
    # As in `judge.store.export.named_run`, but a model may also have runs of other tasks.
    matches = [(run, task) for run, model, task in judged if model == name and run in comparable]
    end = name.rpartition(" · ")[2].upper()
    matches = matches or [
        (run, task) for run, _, task in judged if end in (run[: len(end)], run[-len(end) :])
    ]
    if len(matches) != 1:
        runs = [f"{run} ({task}, {model})" for run, model, task in judged]
        available = ", ".join([*people, *runs]) or "nobody yet"
        problem = "several runs are" if matches else "no annotator and no run is"
        raise UsageError(f"{problem} called '{name}'; there are: {available}")
    run, task = matches[0]
    if run not in comparable:
        raise UsageError(
            f"run {run} ({task}) has no such field with these labels; name a run of another task"
        )
    return run
