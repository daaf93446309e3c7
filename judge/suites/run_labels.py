"""Read labels of a task from judges' runs: choose the run, and record a step for missing labels."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from judge.errors import UsageError
from judge.prompts.load import Task
from judge.run_options import IDENTITY, OF_TASK, in_words
from judge.scores.score import NOT_JUDGED
from judge.store.export import known_task, stored_task
from judge.suites import chosen
from judge.suites.labelled import EXAMPLE, UnitLabels, UnitNumbers, fitting, of_run
from judge.suites.queries import Rows
from judge.suites.reading import Reading
from judge.suites.steps import FALLBACK_MODEL, Step
from judge.types import Json, attributes


@dataclass(slots=True)
class RunRead:
    """A run that labels were read from, with the number of requested units by status."""

    run: chosen.Run
    counts: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Json]:
        """The documented shape."""
        return {
            "run": self.run.run_id,
            **attributes(self.run, "task", "model"),
            "settings": dict(self.run.settings),
            "units": sum(self.counts.values()),
            "counts": dict(self.counts),
        }


Asker = tuple[str, str]
"""Role (judge or system) and the judge's model: whose runs have equal settings in a score."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The runs that fit one part of a score, newest first; `fullest` are those with the most units of that part.

    Units that the task cannot take are in no run, so the fullest run may be complete although it lacks some units.
    """

    asker: Asker
    task: str
    runs: Sequence[chosen.Run]
    fullest: Sequence[chosen.Run]

    def describe(self) -> str:
        """The runs and their settings, for messages."""
        return f"{self.task}: " + ", ".join(f"{run.run_id} ({in_words(run.settings)})" for run in self.runs)


def _settings(runs: Sequence[chosen.Run]) -> list[str]:
    """List the distinct settings of runs in words, as returned by `comparable`."""
    return list(dict.fromkeys(map(comparable, runs)))


def comparable(run: chosen.Run) -> str:
    """Return the settings of a run in words, excluding those that the purpose of the run determines."""
    purpose = ("relevant", "examples")
    return in_words({name: value for name, value in run.settings.items() if name not in purpose})


def _common(each: Sequence[Sequence[str]]) -> list[str]:
    """Return the strings that are in all of these lists."""
    return [words for words in each[0] if all(words in words_of for words_of in each)]


@dataclass(frozen=True, slots=True)
class LabelsWanted:
    """The labels that a paper requests: for a field of a task, on `units`, which the condition `where` selects.

    `models`: the judges (empty: the only one); `purpose`: see `chosen.PURPOSE`; `together`: the column that names the whole
    (an answer, a list) whose units must all be labelled.
    """

    task: Task
    units: pd.DataFrame
    where: str
    field: str
    models: Sequence[str]
    purpose: Mapping[str, str]
    together: str
    begin: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    """Stored options with which a new run begins (for a model that has another name here)."""
    role: str = "judge"
    """`system`: the labels are outputs of the system under test."""

    @property
    def numbers(self) -> UnitNumbers:
        """The units' numbers."""
        numbers: UnitNumbers = self.units["unit_id"].to_numpy()
        return numbers


class RunLabels:
    """The runs that one reading of a paper may use; `runs_read` are those that labels were read from."""

    def __init__(self, rows: Rows, reading: Reading) -> None:
        self.rows, self.reading, self.request = rows, reading, reading.request
        self.runs_read: list[RunRead] = []
        self.parts: list[Candidates] = []
        self.runs = [r for r in chosen.all_runs(rows.store) if r.was_asked(self.request.settings)]
        self.pinned = chosen.named(rows.store, self.request.runs, self.runs)

    @property
    def last_run(self) -> chosen.Run | None:
        """The run that labels were read from last."""
        return self.runs_read[-1].run if self.runs_read else None

    def of(self, wanted: LabelsWanted) -> UnitLabels:
        """Return the judge's labels; record a step for missing ones."""
        task_id = wanted.task.task_id
        every = self.runs if wanted.role == "judge" else self.made_for(wanted.models[0], task_id)
        runs = chosen.candidates(every, self.pinned, task_id, wanted.models, wanted.purpose)
        labels = self.best(runs, wanted.numbers, wanted.field, wanted.role)
        if labels[2].any() and not self.request.partial:
            self._missing(wanted, runs, wanted.numbers[labels[2]])
        return labels

    def made_for(self, system: str, task_id: str) -> list[chosen.Run]:
        """Return the runs of a task whose labels are outputs of a system.

        A judge may have the same name as an imported system (--as). For such a system, only runs count that were imported, or
        that the user allowed a model to add.
        """
        is_imported = system in self.rows.imported
        runs = [run for run in self.runs if run.task_id == task_id and run.model == system]
        return [run for run in runs if run.imported or run.added or not is_imported]

    def task(self, task_id: str, purpose: Mapping[str, str]) -> Task:
        """Return the task of the matching run, else the version in the study, else the newest."""
        # Labels are read by the version of the task that they answer.
        used = next((run.task for run in self.runs if run.task_id == task_id and run.serves(purpose)), None)
        if used:
            return stored_task(self.rows.store, used)
        return known_task(self.rows.store, task_id, self.request.prompts)

    def best(
        self, runs: Sequence[chosen.Run], units: UnitNumbers, field: str, role: str = "judge"
    ) -> UnitLabels:
        """Return labels, statuses and a mask of units without a judgement, from the newest complete run, else the fullest.

        If runs with several settings fit, those with the settings in `request.equal` are read, unless --run names one.
        """
        candidates: list[tuple[chosen.Run, UnitLabels]] = []
        several = len(_settings(runs)) > 1
        for run in runs:
            candidates.append((run, self._labels_of(run, units, field)))
            # The newest run comes first, so the older ones of equal settings need not be read.
            if not several and not candidates[-1][1][2].any():
                break
        wanted = None
        if candidates:
            # A system has one set of runs, whatever its runs are called by; each judge has its own.
            asker = (role, candidates[0][0].model if role == "judge" else "")
            least = min(labels[2].sum() for _, labels in candidates)
            fullest = [run for run, labels in candidates if labels[2].sum() == least]
            self.parts.append(Candidates(asker, candidates[0][0].task_id, runs, fullest))
            wanted = self.request.equal.get(asker)
        fit = [(run, labels) for run, labels in candidates if wanted in (None, comparable(run))] or candidates
        best = min(fit, key=lambda candidate: candidate[1][2].sum(), default=None)
        if best is None:
            none = np.full(len(units), None, dtype=object)
            return none, np.full(len(units), NOT_JUDGED, dtype=object), np.ones(len(units), dtype=bool)
        # A unit that is shown as an example was not asked about.
        self.runs_read.append(RunRead(best[0], Counter(status for status in best[1][1] if status != EXAMPLE)))
        if "rationale" in best[0].options:
            self.reading.note(f"{best[0].task} was run with --rationale {best[0].options['rationale']}")
        return best[1]

    def equal_settings(self) -> dict[Asker, str]:
        """Return the settings, by role and model, of the newest set of runs that covers all parts, if several settings fit a part.

        A set of the fullest runs is preferred; a partial score may use another. Parts whose run is named with --run are not
        changed. The result is empty if at most one set fits. Raises UsageError, with the runs and their settings, if no set of
        runs with equal settings covers all parts.
        """
        settings_of: dict[Asker, str] = {}
        free = [part for part in self.parts if not all(run in self.pinned for run in part.runs)]
        for asker in dict.fromkeys(part.asker for part in free):
            parts = [part for part in free if part.asker == asker]
            if all(len(_settings(part.runs)) == 1 for part in parts):
                continue
            fullest = [_settings(part.fullest) for part in parts]
            common = _common(fullest)
            if not common and self.request.partial:
                common = _common([_settings(part.runs) for part in parts])
            if not common:
                choices = "; ".join(dict.fromkeys(part.describe() for part in parts))
                raise UsageError(
                    f"no runs with equal settings cover all parts: choose with --run RUN, once for each task; available: {choices}"
                )
            # The newest run comes first; other judges' runs say nothing of which setting is newest here.
            runs_of_asker = [run for part in parts for run in part.runs]
            order = _settings([run for run in self.runs if run in runs_of_asker])
            settings_of[asker] = min(common, key=order.index)
        return settings_of

    def settings_read(self) -> dict[Asker, dict[str, list[str]]]:
        """Return, by role and model, the settings of the runs that were read, in words, with the tasks of these runs."""
        run_ids = {source.run.run_id for source in self.runs_read}
        settings_of: dict[Asker, dict[str, list[str]]] = {}
        for part in self.parts:
            for run in part.runs:
                if run.run_id in run_ids:
                    tasks = settings_of.setdefault(part.asker, {}).setdefault(comparable(run), [])
                    tasks += [part.task] if part.task not in tasks else []
        return settings_of

    def others(self) -> list[str]:
        """List the runs that fit but were not read, with their settings."""
        run_ids = {source.run.run_id for source in self.runs_read}
        left = {run.run_id: run for part in self.parts for run in part.runs if run.run_id not in run_ids}
        return [f"{run.run_id} ({run.task}, {in_words(run.settings)})" for run in left.values()]

    def _labels_of(self, run: chosen.Run, units: UnitNumbers, field: str) -> UnitLabels:
        """Return a run's labels; units with a status of `request.retry` count as not judged yet."""
        labels, status, missing = of_run(self.rows.store, run, units, field)
        return labels, status, missing | np.isin(status, self.request.retry)

    def _missing(self, wanted: LabelsWanted, runs: Sequence[chosen.Run], missing: UnitNumbers) -> None:
        """Record the step that judges these units, and note how many of them the task cannot take."""
        task, purpose, where = wanted.task, wanted.purpose, wanted.where
        fit = fitting(self.rows.store, task, missing, shown=purpose.get("relevant"))
        if fit < len(missing):
            self.reading.note(
                f"{len(missing) - fit} units of {task.task_id} lack an input of the task "
                f"({', '.join(task.required_inputs)}) and are not judged"
            )
        if not fit:
            return
        # A derived run makes no calls: its parents label the missing units, and then it is derived again.
        made = [run.run_id for run in runs if run.derived]
        if made:
            self.reading.note(
                f"{fit} units of {task.task_id} are not in run {made[0]}, which was derived from other runs: judge them in those runs, "
                "then derive it again"
            )
        asked_runs = [run for run in runs if not run.derived]
        if made and not asked_runs:
            return
        runs = asked_runs
        # The judges that were requested, else those that have begun, else the one that the study suggests.
        judges = list(wanted.models) or list(dict.fromkeys(run.model for run in runs)) or [self.guess()]
        for model in judges:
            run = next((r for r in runs if r.model == model), None)
            begin = wanted.begin or self._settings_of_others(model)
            self.reading.need(
                Step(
                    "run",
                    f"{task.task_id} has {fit} units without a judgement by {model}",
                    task.name if run else task.task_id,
                    f"{where} AND {self.rows.scope}" if where else self.rows.scope,
                    model,
                    relevant=purpose.get("relevant"),
                    examples=purpose.get("examples"),
                    options=run.options if run else begin,
                )
            )

    def _settings_of_others(self, model: str) -> dict[str, Json]:
        """Return the options for a new run of a judge: those of its newest run for another part of this paper.

        The parts of a score should have equal settings. Options that belong to one task only (examples, recipe) are left out.
        """
        tasks = {task for part in self.reading.paper.parts for task in (*part.tasks, *part.instead)}
        run = next((r for r in self.runs if r.model == model and r.task_id in tasks and r.is_of_judge), None)
        if run is None or run.options.get("recipe"):
            return {}
        # Without these two, a judge with another name or server would be a different model.
        kept = {name for name in IDENTITY if name not in OF_TASK} | {"asked_as", "base_url"}
        return {name: value for name, value in run.options.items() if name in kept}

    def guess(self) -> str:
        """Return the model for a command: the requested judge, or the only one of the study."""
        if self.request.models:
            return self.request.models[0]
        models = list(dict.fromkeys(run.model for run in self.runs if not run.derived))
        return models[0] if len(models) == 1 else FALLBACK_MODEL
