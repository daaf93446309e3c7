"""Two judges (or runs of a task) on the same units, or two systems on the rows they share: the difference of every measure."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from judge.errors import AdjudgeError, UsageError
from judge.labels.panel import Panel
from judge.labels.reference import ReferenceLabels, resolve
from judge.labels.scope import Scope, read
from judge.scores.columns import statuses, units
from judge.scores.compare import Difference, compare_all
from judge.scores.score import NOT_JUDGED, Score, scored
from judge.stats import MISSING, measures
from judge.stats.bootstrap import How
from judge.store.export import stored_task
from judge.store.study import Store
from judge.suites import chosen
from judge.suites.board import differences
from judge.suites.chosen import Run
from judge.suites.paper import Asked, Paper, Part
from judge.suites.paper_study import PaperStudy
from judge.suites.result import scores_of
from judge.types import Json, Measure

LABELS = Paper("labels", "Labels of one task", lambda study: [], ())
"""What is compared of any task: the share of each label, and how often two runs agree."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: a run, a judge with all its runs, or a system (without any)."""

    name: str
    runs: tuple[Run, ...]
    is_run: bool

    @property
    def tasks(self) -> set[str]:
        """The tasks that it has run."""
        return {run.task_id for run in self.runs}


@dataclass(frozen=True, slots=True)
class Swap:
    """The differences by paper; `labels` are those of the tasks that both have run."""

    first: Side
    second: Side
    dataset: str
    differences: Mapping[str, Sequence[Difference]]
    notes: Sequence[str]

    def as_json(self) -> dict[str, Json]:
        """The documented shape."""
        rows = [
            {
                "paper": paper,
                "measure": d.first.measure,
                "first": d.first.as_json(),
                "second": d.second.as_json(),
                "difference": d.difference.as_json(),
                "p": d.p,
            }
            for paper, found in self.differences.items()
            for d in found
        ]
        sides = {
            name: {"name": side.name, "runs": [run.run_id for run in side.runs]}
            for name, side in (("first", self.first), ("second", self.second))
        }
        return {**sides, "dataset": self.dataset, "rows": rows, "notes": list(self.notes)}


def side(store: Store, name: str, runs: Sequence[Run]) -> Side:
    """What a name stands for: a judge of that name, else the run. Raises UsageError for neither."""
    own = tuple(run for run in runs if run.model == name)
    if own:
        return Side(name, own, False)
    [run] = chosen.named(store, [name], runs)
    return Side(run.run_id, (run,), True)


def swap(
    store: Store,
    papers: Mapping[str, Paper],
    first: str,
    second: str,
    asked: Asked,
    *,
    reference: str | None = None,
    **how: Unpack[How],
) -> Swap:
    """Compare every measure that rests on what the two have run; `asked.runs` are runs that both share for other tasks.

    A paper's part is compared when both have runs of all its tasks. What one of them has not judged has no
    value there: the difference rests on the units with a value in both, and its coverage says how many those are.
    `reference` (see `judge.labels`) adds how the two agree with it, on the units that all three labelled.
    Raises UsageError when they have nothing in common.
    """
    runs = chosen.all_runs(store)
    both = side(store, first, runs), side(store, second, runs)
    if both[0].name == both[1].name:
        raise UsageError(f"'{first}' and '{second}' are the same: name two judges, or two runs of a task")
    tasks = both[0].tasks & both[1].tasks
    if not tasks:
        told = " and ".join(f"{s.name} ({', '.join(sorted(s.tasks))})" for s in both)
        raise UsageError(f"no task was run by both: {told}")
    shared = {run.task_id for run in chosen.named(store, asked.runs, runs)}
    notes: list[str] = []
    found: dict[str, list[Difference]] = {}
    for paper in papers.values():
        parts = [p for p in paper.parts if _compared(p, tasks, shared)]
        if not parts:
            continue
        own = replace(asked, partial=True, parts=tuple(p.name for p in parts), options=_options(paper, asked))
        each: list[list[Score]] = []
        with _told(paper, papers, notes):
            each = [_scores(store, paper, _whose(s, own), notes) for s in both]
        if each and all(each):
            found[paper.name] = compare_all(*each, **how)
    labels: list[Difference] = []
    dataset = ""
    for task in sorted(tasks):
        pair = [PaperStudy(store, LABELS, _whose(s, replace(asked, partial=True, options={}))) for s in both]
        dataset = pair[0].dataset
        labels += compare_all(*(_shares(study, task) for study in pair), **how)
    found["labels"] = labels
    if reference is not None:
        found[f"agreement with {reference}"] = _agreement(store, both, sorted(tasks), reference, **how)
    return Swap(*both, dataset, found, notes)


def systems(
    store: Store, papers: Mapping[str, Paper], first: str, second: str, asked: Asked, **how: Unpack[How]
) -> Swap:
    """The same of two systems, with the labels of one judge: every paper that both have been scored for.

    Rows and test are the leaderboard's (see `judge.suites.board`). Raises UsageError when no paper compares them.
    """
    if first == second:
        raise UsageError(f"'{first}' and '{second}' are the same: name two systems")
    notes: list[str] = []
    found: dict[str, list[Difference]] = {}
    dataset = ""
    for paper in papers.values():
        own = replace(asked, options=_options(paper, asked))
        sides: list[tuple[list[Score], PaperStudy]] = []
        with _told(paper, papers, notes):
            sides = [scores_of(store, paper, replace(own, system=name), None) for name in (first, second)]
        notes += [text for _, study in sides for text in study.notes if text not in notes]
        dataset = sides[0][1].dataset if sides else dataset
        if sides and (changes := differences(store, sides[0][0], sides[1][0], **how)):
            found[paper.name] = changes
    if not found:
        raise UsageError(f"nothing compares '{first}' and '{second}': {'; '.join(notes)}")
    return Swap(Side(first, (), False), Side(second, (), False), dataset, found, notes)


@contextmanager
def _told(paper: Paper, papers: Mapping[str, Paper], notes: list[str]) -> Iterator[None]:
    """Why a paper is not compared is a note, or raised where no other is."""
    try:
        yield
    except AdjudgeError as error:
        if len(papers) == 1:
            raise
        notes.append(f"{paper.name} is not compared: {error}")


def _compared(part: Part, tasks: set[str], shared: set[str]) -> bool:
    return bool(set(part.tasks) & tasks) and set(part.tasks) <= tasks | shared


def _whose(one: Side, asked: Asked) -> Asked:
    """The same, of one side's labels."""
    if one.is_run:
        return replace(asked, runs=(one.runs[0].run_id, *asked.runs), models=())
    return replace(asked, models=(one.name,))


def _options(paper: Paper, asked: Asked) -> dict[str, str]:
    return {o.name: asked.options[o.name] for o in paper.options if o.name in asked.options}


def _scores(store: Store, paper: Paper, asked: Asked, notes: list[str]) -> list[Score]:
    study = PaperStudy(store, paper, asked)
    scores = paper.read(study)
    notes += [text for text in study.notes if text not in notes]
    return scores


def _shares(study: PaperStudy, task: str) -> list[Score]:
    """The share of each label of a task's first field among the units that were judged."""
    table = study.labels(task)
    table = table[table["status"] != NOT_JUDGED]
    who = units(table.drop(columns=["answer_unit"], errors="ignore"), task)
    known = table["label"].notna().to_numpy()
    status = statuses(table, known)
    domain = study.domain(task)
    return [
        scored(
            f"{task}[{label}]", who, np.where(known, table["label"] == label, np.nan).astype(float), status
        )
        for label in domain
    ]


def _agreement(
    store: Store, both: tuple[Side, Side], tasks: Sequence[str], word: str, **how: Unpack[How]
) -> list[Difference]:
    """How both agree with a reference on each coded field of these tasks, by the newest run of each."""
    held = ReferenceLabels(store, word)
    found = []
    for task_id in tasks:
        # Runs come with the newest first.
        runs = [next(run for run in s.runs if run.task_id == task_id) for s in both]
        task = stored_task(store, runs[0].task)
        for field in task.fields:
            if task.level(field) == "text" or not held.labels(field, task.name):
                continue
            scope = Scope(field, task.name, runs=tuple(run.run_id for run in runs))
            panel = read(store, scope, distributions=False)
            reference = resolve(panel, word)
            if reference is not None:
                found.append(_paired(panel, [panel.shown[run.run_id] for run in runs], reference.name, **how))
    return found


def _paired(panel: Panel, judges: Sequence[str], reference: str, **how: Unpack[How]) -> Difference:
    """On the units that all three labelled; the coverage of each is theirs of the units that it and the reference were asked."""
    [compared] = panel.compared(judges, reference, **how)
    every = (panel.table.select([*judges, reference]).codes != MISSING).all(axis=1)
    name = f"{panel.coefficient}[{panel.field}]"

    def of(judge: str) -> Measure:
        table = panel.table.subset(every).select([judge, reference])
        [found] = measures(table, [panel.coefficient], level=panel.level, **how)
        asked = int((panel.asked_units[judge] & panel.asked_units[reference]).sum())
        return replace(found, measure=name, coverage=int(every.sum()) / asked if asked else None)

    changed = replace(compared.difference, measure=f"{name}_difference")
    return Difference(of(judges[0]), of(judges[1]), changed)
