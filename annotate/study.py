"""The labels of one field of a study as a table: people, judge runs, gold and adjudicated labels side by side.

found = load_field(store, "stance")     # all who labelled it
found.ratings                           # judge.stats.Ratings, units in the order of the study
found.of_kind("human"), found.kinds     # who is what
fields_of(store)                        # what there is to load
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from annotate._columns import Column, canonical, probabilities, tabulate
from annotate.sheet import NUMERIC, Sheet, alike
from judge.errors import BadInput, UsageError
from judge.prompts import load_task
from judge.prompts.load import Task
from judge.stats import MISSING, Ratings
from judge.stats.ratings import FloatArray
from judge.store import Store
from judge.store.export import stored_task
from judge.types import AnnotatorKind

__all__ = ["NUMERIC", "FieldOf", "Labelled", "fields_of", "load_field", "shown_names"]

ORDER = [AnnotatorKind.HUMAN, AnnotatorKind.JUDGE, AnnotatorKind.ADJUDICATED, AnnotatorKind.GOLD]


@dataclass(frozen=True, eq=False, kw_only=True)
class Labelled(Sheet):
    """Who gave which label of one field to which unit of a study.

    `ratings` has the annotators people first, then judge runs, adjudicated labels and gold; a judge run
    goes by its name of `shown` (run id -> "model · task · end of the id"), everybody else by the name in
    the study. `task` is None when no task of the study defines the field; the domain is then the labels
    found. `distributions[name][u, k]` is the probability of `domain[k]`, rows of nan where none is
    stored; rows sum to 1 minus the mass of tokens that stand for no label. `outside[name]` counts labels
    that are not in the domain: they are in no measure.
    """

    task: Task | None
    domain: tuple[str, ...]
    shown: Mapping[str, str]
    distributions: Mapping[str, FloatArray]
    outside: Mapping[str, Mapping[str, int]]


class FieldOf(NamedTuple):
    """One field with labels. `task` is the newest task that defines it, None when no task of the study does."""

    field: str
    task: str | None
    n_units: int
    annotators: list[str]


def fields_of(store: Store) -> list[FieldOf]:
    """Every labelled field, with who labelled it (run ids for judges).

    A field that tasks define with different labels comes once for each of those definitions.
    """
    tasks = _tasks(store)
    found: dict[str, list[str]] = {}
    for field, annotator in store.conn.execute(
        "SELECT DISTINCT field, annotator_id FROM labels ORDER BY field, annotator_id"
    ):
        found.setdefault(field, []).append(annotator)
    units = dict(store.conn.execute("SELECT field, count(DISTINCT unit_id) FROM labels GROUP BY field"))
    rows = []
    for field, annotators in found.items():
        names: list[str | None] = [group[0].name for group in _definitions(tasks, field)]
        rows += [FieldOf(field, name, units[field], annotators) for name in names or [None]]
    return rows


def load_field(
    store: Store,
    field: str,
    *,
    task: str | None = None,
    runs: Iterable[str] = (),
    annotators: Iterable[str] | None = None,
    repeat: int = 0,
    layer: str = "first",
    level: str | None = None,
    order: Sequence[str] | None = None,
    distributions: bool = True,
) -> Labelled:
    """Everybody's labels of `field`; every unit that one of them labelled or was asked about is a row.

    `task` (`stance`, `stance.v1`) says whose labels are the domain; it is needed only where tasks
    of the study differ. Without `runs` all judge runs of that field take part, without `annotators`
    everybody else; `annotators` alone means just these, and may name runs as well. A run is named by
    its id, the start or end of it, or `last`. `level` and `order` (the domain) replace the task's. `distributions=False`
    leaves those out, which takes a third less time.

    Raises UsageError for names that are not in the study, for a text field and when nobody labelled the
    field, BadInput for a number that is none.
    """
    chosen, comparable, notes = _definition(store, field, task)
    names, shown, kinds = _annotators(store, field, comparable, list(runs), annotators)
    if not names:
        known = ", ".join(sorted({row.field for row in fields_of(store)})) or "none yet"
        raise UsageError(f"{store.path}: nobody labelled '{field}'; fields with labels: {known}")
    level = level or (chosen.level(field) if chosen else "nominal")
    if level == "text":
        coded = ", ".join(sorted({row.field for row in fields_of(store)} - {field})) or "none yet"
        raise UsageError(
            f"'{field}' is text: agreement is not computed on it; name another field with --field "
            f"(fields with labels: {coded})"
        )
    columns = [Column.read(store, name, field, repeat, layer, kinds[name], distributions) for name in names]
    rank = {uid: n for n, uid in store.conn.execute("SELECT rowid, unit_id FROM units")}
    units = sorted({u for c in columns for u in (*c.labels, *c.asked)}, key=rank.__getitem__)
    if not units:
        raise BadInput(f"{store.path}: there is no label of '{field}' with repeat {repeat}, layer '{layer}'")
    values = {value for c in columns for value in c.labels.values()}
    domain: list[str]
    if level in NUMERIC:
        domain = sorted({canonical(v, field) for v in values}, key=float) or ["0"]
    else:
        domain = list(order or (chosen.domain(field) if chosen else sorted(values)))
    if chosen is None and order is None:
        notes.append(f"no task of the study defines '{field}': its labels are those found, level {level}")
        notes += alike(domain)
    table = tabulate(columns, units, domain, field if level in NUMERIC else None)
    table_names = [shown.get(name, name) for name in names]
    ratings = Ratings.from_codes(
        table.codes, domain, table_names, clusters=_questions(store, units), units=units
    )
    outside = {n: dict(o) for n, o in zip(table_names, table.outside, strict=True) if o}
    for name, strange in outside.items():
        told = ", ".join(f"'{v}' ({n})" for v, n in list(strange.items())[:5])
        notes.append(f"labels of '{name}' that are not among the labels of '{field}', left out: {told}")
    scores = None
    if level in NUMERIC:
        numbers = np.array([float(v) for v in domain])
        scores = np.where(table.codes == MISSING, np.nan, numbers[table.codes])
    return Labelled(
        field=field,
        task=chosen,
        domain=ratings.domain,
        level=level,
        ratings=ratings,
        asked=table.asked,
        kinds={shown.get(n, n): kinds[n] for n in names},
        shown={run: name for run, name in shown.items() if run in names},
        distributions={
            shown.get(c.annotator, c.annotator): probabilities(c, units, domain)
            for c in columns
            if distributions and c.distributions and level not in NUMERIC
        },
        outside=outside,
        notes=tuple(notes),
        scores=scores,
    )


def shown_names(runs: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """A short unique name for each (run id, model, task); the end of it finds the run again."""
    rows = list(runs)
    size = 4
    while len({run[-size:] for run, _, _ in rows}) < len(rows):
        size += 1
    return {run: f"{model} · {task} · {run[-size:]}" for run, model, task in rows}


def _tasks(store: Store) -> list[Task]:
    """The tasks of the study, newest version first."""
    names = store.conn.execute("SELECT task FROM tasks ORDER BY task_id, version DESC")
    return [stored_task(store, name) for (name,) in names.fetchall()]


def _definitions(tasks: Iterable[Task], field: str) -> list[list[Task]]:
    """The tasks that define the field, those with the same labels and level together."""
    groups: dict[tuple[str, ...], list[Task]] = {}
    for task in tasks:
        if field in task.fields:
            groups.setdefault((task.level(field), *task.domain(field)), []).append(task)
    return list(groups.values())


def _definition(store: Store, field: str, name: str | None) -> tuple[Task | None, set[str], list[str]]:
    """The task whose labels are the domain, the tasks whose runs are comparable, and notes."""
    groups = _definitions(_tasks(store), field)
    if name is None:
        if len(groups) > 1:
            told = "; ".join(f"{g[0].name}: {', '.join(g[0].domain(field)) or 'no labels'}" for g in groups)
            raise UsageError(
                f"'{field}' has different labels in the tasks of this study ({told}): add --task"
            )
        if not groups:
            return None, set(), []
        return groups[0][0], {task.name for task in groups[0]}, []
    for group in groups:
        chosen = [task for task in group if name in (task.name, task.task_id)]
        if chosen:
            left = [task.name for other in groups if other is not group for task in other]
            notes = [f"runs of {', '.join(left)} are left out: other labels of '{field}'"] if left else []
            return chosen[0], {task.name for task in group}, notes
    task = load_task(name)
    if field not in task.fields:
        raise UsageError(f"task {task.name} has no field '{field}'; it has {', '.join(task.fields)}")
    wanted = (task.level(field), task.domain(field))
    same = [t.name for g in groups for t in g if (t.level(field), t.domain(field)) == wanted]
    return task, set(same), []


def _annotators(
    store: Store, field: str, tasks: set[str], runs: list[str], wanted: Iterable[str] | None
) -> tuple[list[str], dict[str, str], dict[str, AnnotatorKind]]:
    """The ids of who takes part, in order; the shown names of runs; everybody's kind."""
    query = (
        "SELECT annotator_id, kind FROM annotators AS a WHERE kind <> 'judge' AND EXISTS "
        "(SELECT 1 FROM labels AS l WHERE l.annotator_id = a.annotator_id AND l.field = ?) ORDER BY 1"
    )
    kinds = {name: AnnotatorKind(kind) for name, kind in store.conn.execute(query, [field])}
    people = sorted(kinds, key=lambda name: (ORDER.index(kinds[name]), name))
    judged = store.conn.execute(
        "SELECT run_id, model, task FROM runs AS r WHERE EXISTS "
        "(SELECT 1 FROM judgements AS j WHERE j.run_id = r.run_id) ORDER BY started, run_id"
    ).fetchall()
    shown = shown_names(judged)
    all_runs = [run for run, _, task in judged if task in tasks]
    chosen = [_find(name, judged, all_runs, people) for name in runs]
    if wanted is None:
        named, chosen = people, chosen or all_runs
    else:
        named = []
        for name in wanted:
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
    """The id of the one run that `name` stands for."""
    if name == "last" and comparable:
        return comparable[-1]
    end = name.rpartition(" · ")[2].upper()
    found = [(run, task) for run, _, task in judged if run.startswith(end) or run.endswith(end)]
    if len(found) != 1:
        runs = [f"{run} ({task}, {model})" for run, model, task in judged]
        known = ", ".join([*people, *runs]) or "nobody yet"
        what = "several runs are" if found else "no annotator and no run is"
        raise UsageError(f"{what} called '{name}'; there are: {known}")
    run, task = found[0]
    if run not in comparable:
        raise UsageError(f"run {run} ({task}) did not ask for this field with these labels")
    return run


def _questions(store: Store, units: Sequence[str]) -> list[str]:
    question = dict(store.conn.execute("SELECT unit_id, question_id FROM units"))
    return [question[unit] for unit in units]
