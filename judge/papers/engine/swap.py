"""Compare two judges (or two runs of a task) on the same units in every measure, or two systems on the same rows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from judge.errors import AdjudgeError, UsageError
from judge.labels.panel import Panel
from judge.labels.reference import ReferenceLabels, resolve
from judge.labels.scope import Scope, read_panel
from judge.papers.engine import chosen
from judge.papers.engine.paper import Paper, ScoreRequest
from judge.papers.engine.paper_study import PaperStudy
from judge.papers.engine.result import scores_of
from judge.papers.engine.shared_rows import differences
from judge.scores.columns import statuses, units
from judge.scores.compare import Difference, compare_all
from judge.scores.score import NOT_JUDGED, Score, score_values
from judge.stats import MISSING, measures
from judge.stats.bootstrap import IntervalOptions
from judge.store.export import read_stored_task
from judge.store.study import Store
from judge.types import Json, Measure

LABELS = Paper("labels", "Labels of one task", lambda study: [], ())
"""A pseudo-paper for measures that exist for any task, which are the shares of the labels."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the comparison: a run, a judge with all of its runs, or a system (without runs)."""

    name: str
    runs: tuple[chosen.Run, ...]
    is_run: bool

    @property
    def tasks(self) -> set[str]:
        """The tasks that this side has run."""
        return {run.task_id for run in self.runs}


@dataclass(frozen=True, slots=True)
class Swap:
    """The differences between two sides, by paper. The key `labels` has the shares of labels in the tasks that
    both sides have run.
    """

    first: Side
    second: Side
    dataset: str
    differences: Mapping[str, Sequence[Difference]]
    notes: Sequence[str]

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation."""
        rows = [
            {
                "paper": paper,
                "measure": d.first.measure,
                "first": d.first.as_json(),
                "second": d.second.as_json(),
                "difference": d.difference.as_json(),
                "p": d.p,
            }
            for paper, changes in self.differences.items()
            for d in changes
        ]
        sides = {
            name: {"name": side.name, "runs": [run.run_id for run in side.runs]}
            for name, side in (("first", self.first), ("second", self.second))
        }
        return {**sides, "dataset": self.dataset, "rows": rows, "notes": list(self.notes)}


def side(store: Store, name: str, runs: Sequence[chosen.Run]) -> Side:
    """Return the judge or run with this name. Raises UsageError if there is none."""
    judge_runs = tuple(run for run in runs if run.model == name)
    if judge_runs:
        return Side(name, judge_runs, False)
    [run] = chosen.find_named(store, [name], runs)
    return Side(run.run_id, (run,), True)


def swap(
    store: Store,
    papers: Mapping[str, Paper],
    first: str,
    second: str,
    request: ScoreRequest,
    *,
    reference: str | None = None,
    **options: Unpack[IntervalOptions],
) -> Swap:
    """Compare two judges in every measure that depends on tasks that both have run.

    A part of a paper is compared if both judges have runs of all its tasks. If a task was not run by both,
    `request.runs` can name a run of this task, whose labels are then used for both judges. Differences are
    computed on the units with a value on both sides, and the coverage is the share of these units.

    If `reference` is given (see `judge.labels`), the judges' agreement with the reference is also compared,
    on the units that both judges and the reference labelled. Raises UsageError if the judges have no task in
    common.
    """
    runs = chosen.list_runs(store)
    both = side(store, first, runs), side(store, second, runs)
    if both[0].name == both[1].name:
        raise UsageError(
            f"'{first}' and '{second}' are the same judge or run: name two different judges, or two runs of a task"
        )
    tasks = both[0].tasks & both[1].tasks
    if not tasks:
        tasks_of_both = " and ".join(f"{s.name} ({', '.join(sorted(s.tasks))})" for s in both)
        raise UsageError(f"the two judges have no task in common: {tasks_of_both}")
    shared = {run.task_id for run in chosen.find_named(store, request.runs, runs)}
    notes: list[str] = []
    changes: dict[str, list[Difference]] = {}
    for paper in papers.values():
        parts = [p for p in paper.parts if tasks & set(p.tasks) and set(p.tasks) <= tasks | shared]
        if not parts:
            continue
        # Two runs rarely cover the same units. Units that only one covers lower the coverage and are not missing steps.
        part_request = replace(request, partial=True, parts=tuple(p.name for p in parts))
        # The list stays empty if the paper raises an error, which `note_failure` turns into a note.
        each: list[list[Score]] = []
        with note_failure(paper, papers, notes):
            each = [_scores(store, paper, _request_side(s, part_request), notes) for s in both]
        if each and all(each):
            changes[paper.name] = compare_all(*each, **options)
    labels: list[Difference] = []
    dataset = ""
    for task in sorted(tasks):
        pair = [PaperStudy(store, LABELS, _request_side(s, replace(request, partial=True))) for s in both]
        dataset = pair[0].dataset
        labels += compare_all(*(_shares(study, task) for study in pair), **options)
    changes["labels"] = labels
    if reference is not None:
        changes[f"agreement with {reference}"] = _agreement(store, both, sorted(tasks), reference, **options)
    return Swap(*both, dataset, changes, notes)


def systems(
    store: Store,
    papers: Mapping[str, Paper],
    first: str,
    second: str,
    request: ScoreRequest,
    **options: Unpack[IntervalOptions],
) -> Swap:
    """Compare two systems by one judge's labels, in every paper for which both systems have scores.

    Rows and tests are the same as on a leaderboard (see `judge.papers.engine.shared_rows`). Raises UsageError if no paper can compare
    the systems.
    """
    if first == second:
        raise UsageError(f"'{first}' and '{second}' are the same system: name two different systems")
    notes: list[str] = []
    changes_of: dict[str, list[Difference]] = {}
    dataset = ""
    for paper in papers.values():
        sides: list[tuple[list[Score], PaperStudy]] = []
        with note_failure(paper, papers, notes):
            sides = [scores_of(store, paper, replace(request, system=name), None) for name in (first, second)]
        notes += [text for _, study in sides for text in study.notes if text not in notes]
        dataset = sides[0][1].dataset if sides else dataset
        if sides and (changes := differences(store, sides[0][0], sides[1][0], **options)):
            changes_of[paper.name] = changes
    if not changes_of:
        raise UsageError(
            f"none of the papers' scores can compare '{first}' and '{second}': {'; '.join(notes)}"
        )
    return Swap(Side(first, (), False), Side(second, (), False), dataset, changes_of, notes)


@contextmanager
def note_failure(paper: Paper, papers: Mapping[str, Paper], notes: list[str]) -> Iterator[None]:
    """Turn a paper's error into a note. If the paper is the only one, raise the error instead."""
    try:
        yield
    except AdjudgeError as error:
        if len(papers) == 1:
            raise
        # A study rarely has the data for all papers, so the other papers are still compared.
        notes.append(f"{paper.name} is not compared: {error}")


def _request_side(chosen_side: Side, request: ScoreRequest) -> ScoreRequest:
    """Return the request for one side's labels."""
    if chosen_side.is_run:
        return replace(request, runs=(chosen_side.runs[0].run_id, *request.runs), models=())
    return replace(request, models=(chosen_side.name,))


def _scores(store: Store, paper: Paper, request: ScoreRequest, notes: list[str]) -> list[Score]:
    study = PaperStudy(store, paper, request)
    scores = paper.compute_scores(study)
    notes += [text for text in study.notes if text not in notes]
    return scores


def _shares(study: PaperStudy, task: str) -> list[Score]:
    """Return the share of judged units that have each label of the task's first field."""
    table = study.labels(task)
    # A unit that one side was not asked about is not a difference between the two.
    table = table[table["status"] != NOT_JUDGED]
    who = units(table.drop(columns=["answer_unit"], errors="ignore"), task)
    known = table["label"].notna().to_numpy()
    status = statuses(table, known)
    domain = study.domain(task)
    return [
        score_values(
            f"{task}[{label}]", who, np.where(known, table["label"] == label, np.nan).astype(float), status
        )
        for label in domain
    ]


def _agreement(
    store: Store, both: tuple[Side, Side], tasks: Sequence[str], word: str, **options: Unpack[IntervalOptions]
) -> list[Difference]:
    """Compare how well two sides agree with a reference, for each field of these tasks except text fields.

    The newest run of each side is used.
    """
    reference_labels = ReferenceLabels(store, word)
    changes = []
    for task_id in tasks:
        # Runs come with the newest first.
        runs = [next(run for run in s.runs if run.task_id == task_id) for s in both]
        task = read_stored_task(store, runs[0].task)
        for field in task.fields:
            # No coefficient measures agreement on free text.
            if task.level(field) == "text" or not reference_labels.labels(field, task.name):
                continue
            scope = Scope(field, task.name, runs=tuple(run.run_id for run in runs))
            panel = read_panel(store, scope, distributions=False)
            reference = resolve(panel, word)
            if reference is not None:
                changes.append(
                    _compare_paired(
                        panel, [panel.shown[run.run_id] for run in runs], reference.name, **options
                    )
                )
    return changes


def _compare_paired(
    panel: Panel, judges: Sequence[str], reference: str, **options: Unpack[IntervalOptions]
) -> Difference:
    """Compare two judges' agreement with the reference, on the units that all three labelled.

    A judge's coverage is the number of these units, divided by the number of units that both this judge and
    the reference were asked about.
    """
    [compared] = panel.compare_judges(judges, reference, **options)
    every = (panel.table.select([*judges, reference]).codes != MISSING).all(axis=1)
    name = f"{panel.coefficient}[{panel.field}]"

    def of(judge: str) -> Measure:
        table = panel.table.subset(every).select([judge, reference])
        [measure] = measures(table, [panel.coefficient], level=panel.level, **options)
        n_asked = int((panel.asked_units[judge] & panel.asked_units[reference]).sum())
        return replace(measure, measure=name, coverage=int(every.sum()) / n_asked if n_asked else None)

    changed = replace(compared.difference, measure=f"{name}_difference")
    return Difference(of(judges[0]), of(judges[1]), changed)
