"""Read a task's labels from judges' runs: choose a run, and record a step for missing labels."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from judge.errors import UsageError
from judge.labels import reader
from judge.papers.engine import chosen
from judge.papers.engine.frames import frame
from judge.papers.engine.queries import Rows
from judge.papers.engine.reading import Reading
from judge.papers.engine.steps import FALLBACK_MODEL, Step
from judge.prompts.load import Task
from judge.run_options import IDENTITY, OF_TASK, describe
from judge.runner.contexts import relevant
from judge.scores.score import NOT_JUDGED, TIED
from judge.store import selection
from judge.store.export import find_task, read_stored_task
from judge.store.study import Store
from judge.types import Json, Status, attributes

EXAMPLE = "example"
"""The status of a unit whose item is shown by the run as a few-shot example. Such a unit is not scored."""
UnitNumbers = np.ndarray[Any, Any]
UnitLabels = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""The labels and statuses of units, and a mask of the units without a judgement."""


def read_run_labels(store: Store, run: chosen.Run, units: UnitNumbers, field: str) -> UnitLabels:
    """Return a run's labels for a field on these units, from the latest attempt in the first repeat.

    If the run shows an item as an example, all units of this item have the status `EXAMPLE`.
    """
    labels = np.full(len(units), None, dtype=object)
    status = np.full(len(units), NOT_JUDGED, dtype=object)
    index = pd.Index(units)
    # Only these units are read: a run has the labels of all systems, and a leaderboard reads it once for each system.
    given = reader.read_labels(store.conn, run.run_id, field, units)
    place = index.get_indexer(pd.Index(given.rowids))
    labels[place] = np.array(given.values, dtype=object)[given.codes]
    status[place] = str(Status.OK)
    # A label implies the status ok, so statuses are read only for other units.
    for unit, ended in reader.read_statuses(store.conn, run.run_id, units[status == NOT_JUDGED], TIED):
        status[index.get_loc(unit)] = ended
    if run.examples:
        marks = ",".join("?" * len(run.examples))
        shown = f"SELECT n FROM unit_texts WHERE item_id IN ({marks})"
        place = index.get_indexer(pd.Index(frame(store.conn, shown, run.examples, "n")["n"]))
        labels[place[place >= 0]], status[place[place >= 0]] = None, EXAMPLE
    return labels, status, status == NOT_JUDGED


def fitting(
    store: Store,
    task: Task,
    units: UnitNumbers,
    given: Mapping[str, Sequence[str]] | None = None,
    shown: str | None = None,
    probabilities: Mapping[str, str] | None = None,
) -> int:
    """Count the units that have all inputs of the task, and can therefore be judged in it.

    `given` maps items to their contexts. If it is not None, items without a context are not counted. If the
    task shows relevant passages, `shown` says where their relevance comes from (see `judge.runner.contexts`).
    If the task shows probabilities for the options, `probabilities` contains those from the system's first
    pass.
    """
    conn = store.conn
    conn.execute("DROP TABLE IF EXISTS temp.unjudged")
    # A temporary table: SQLite limits the number of values in one statement.
    conn.execute("CREATE TEMP TABLE unjudged (n INTEGER PRIMARY KEY)")
    conn.executemany("INSERT INTO temp.unjudged VALUES (?)", ((int(n),) for n in units))
    passages = relevant(store, shown).passages if shown is not None else None
    only = selection.Selection(
        "n IN (SELECT n FROM temp.unjudged)", contexts=given, relevant=passages, shown=probabilities
    )
    return selection.select(store, task, only)[0]


def add_labels(units: pd.DataFrame, labels: UnitLabels) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Add labels and statuses to the units, and drop the units of items that are shown as examples.

    Return the remaining units, and a mask of the units without a judgement. The new columns have dtype object,
    which keeps a missing label as None.
    """
    for name, values in zip(("label", "status"), labels, strict=False):
        units[name] = pd.Series(values, index=units.index, dtype=object)
    rows = (units["status"] != EXAMPLE).to_numpy()
    return units[rows].reset_index(drop=True), labels[2][rows]


@dataclass(slots=True)
class RunRead:
    """A run that labels were read from, with the number of requested units by status."""

    run: chosen.Run
    counts: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation."""
        return {
            "run": self.run.run_id,
            **attributes(self.run, "task", "model"),
            "settings": dict(self.run.settings),
            "units": sum(self.counts.values()),
            "counts": dict(self.counts),
        }


Asker = tuple[str, str]
"""A role (judge or system) and, for a judge, its model. In a score, all runs of the same asker must have equal
settings.
"""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The runs that can be used for one part of a score, newest first.

    `fullest` lists the runs that contain the most units of this part. Even a complete run may lack some
    units, because units without an input of the task are never judged.
    """

    asker: Asker
    task: str
    runs: Sequence[chosen.Run]
    fullest: Sequence[chosen.Run]

    def describe(self) -> str:
        """Describe the runs and their settings for a message."""
        return f"{self.task}: " + ", ".join(f"{run.run_id} ({describe(run.settings)})" for run in self.runs)


def _settings(runs: Sequence[chosen.Run]) -> list[str]:
    """List the distinct settings of the runs, as described by `comparable`."""
    return list(dict.fromkeys(map(comparable, runs)))


def comparable(run: chosen.Run) -> str:
    """Describe a run's settings in words, except settings that are determined by the run's purpose."""
    purpose = ("relevant", "examples")
    return describe({name: value for name, value in run.settings.items() if name not in purpose})


def _common(each: Sequence[Sequence[str]]) -> list[str]:
    """Return the strings that all of these lists contain."""
    return [words for words in each[0] if all(words in words_of for words_of in each)]


@dataclass(frozen=True, slots=True)
class LabelsWanted:
    """A paper's request for the labels of some units, for one field of a task.

    `where` is the SQL condition that selects the units. `models` lists the judges (empty: the only judge in
    the study). For `purpose`, see `chosen.PURPOSE`. `together` is the column that groups units, such as the
    parts of an answer. Human labels in a group are used only if the whole group is labelled.
    """

    task: Task
    units: pd.DataFrame
    where: str
    field: str
    models: Sequence[str]
    purpose: Mapping[str, str]
    together: str
    begin: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    """Options to store with a new run, such as the model's real name if the study uses another name for it."""
    role: str = "judge"
    """The value "judge", or "system" if the labels are outputs of the system under test."""

    @property
    def numbers(self) -> UnitNumbers:
        """The numbers of the units."""
        numbers: UnitNumbers = self.units["unit_id"].to_numpy()
        return numbers


class RunLabels:
    """The runs that a reading of a paper can use. `runs_read` lists the runs that labels were read from."""

    def __init__(self, rows: Rows, reading: Reading) -> None:
        self.rows, self.reading, self.request = rows, reading, reading.request
        self.runs_read: list[RunRead] = []
        self.parts: list[Candidates] = []
        self.runs = [r for r in chosen.list_runs(rows.store) if r.was_asked(self.request.settings)]
        self.pinned = chosen.find_named(rows.store, self.request.runs, self.runs)

    @property
    def last_run(self) -> chosen.Run | None:
        """The run that labels were read from most recently."""
        return self.runs_read[-1].run if self.runs_read else None

    def read_labels(self, wanted: LabelsWanted) -> UnitLabels:
        """Return the judge's labels. If labels are missing, record a step that adds them."""
        task_id = wanted.task.task_id
        every = self.runs if wanted.role == "judge" else self.find_runs(wanted.models[0], task_id)
        runs = chosen.candidates(every, self.pinned, task_id, wanted.models, wanted.purpose)
        labels = self.best(runs, wanted.numbers, wanted.field, wanted.role)
        if labels[2].any() and not self.request.partial:
            self._missing(wanted, runs, wanted.numbers[labels[2]])
        return labels

    def find_runs(self, system: str, task_id: str) -> list[chosen.Run]:
        """Return the runs of a task whose labels are outputs of this system.

        If outputs of the system were imported, a judge with the same name (--as) is not the system. In this
        case, only imported runs and runs added with --also-generate are returned.
        """
        is_imported = system in self.rows.imported
        runs = [run for run in self.runs if run.task_id == task_id and run.model == system]
        return [run for run in runs if run.imported or run.added or not is_imported]

    def task(self, task_id: str, purpose: Mapping[str, str]) -> Task:
        """Return the task in the version that was used by the newest run with this purpose.

        Without such a run, return the study's version or, if there is none, the newest version.
        """
        # Labels must be read with the version of the task that they were given for.
        used = next((run.task for run in self.runs if run.task_id == task_id and run.serves(purpose)), None)
        if used:
            return read_stored_task(self.rows.store, used)
        return find_task(self.rows.store, task_id, self.request.prompts)

    def best(
        self, runs: Sequence[chosen.Run], units: UnitNumbers, field: str, role: str = "judge"
    ) -> UnitLabels:
        """Return labels, statuses and a mask of units without a judgement, all from one run.

        The newest complete run is used or, if no run is complete, the run with the most units. If the runs
        have different settings, those with the settings in `request.equal` take precedence.
        """
        candidates: list[tuple[chosen.Run, UnitLabels]] = []
        several = len(_settings(runs)) > 1
        for run in runs:
            candidates.append((run, self._labels_of(run, units, field)))
            # Runs are sorted with the newest first, so older runs with equal settings need not be read.
            if not several and not candidates[-1][1][2].any():
                break
        wanted = None
        if candidates:
            # All runs of a system must have equal settings, whatever their models; each judge may have its own settings.
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
        """Choose the settings that all parts of a score use, and return them by role and model.

        For each part, the runs with the most units are considered. Among the settings that all parts have in
        common, the newest are chosen. A partial score may fall back on the settings of runs with fewer units.
        Parts whose runs are all named with --run are not considered.

        If the settings of the runs do not differ within any part, there is no choice, and the role and model
        are omitted.

        Raises UsageError, which lists the runs and their settings, if the parts have no settings in common.
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
                    f"no set of runs with the same settings covers all parts: name a run for each task with --run RUN; available: {choices}"
                )
            # Only the runs of this asker determine which of its settings is the newest.
            runs_of_asker = [run for part in parts for run in part.runs]
            order = _settings([run for run in self.runs if run in runs_of_asker])
            settings_of[asker] = min(common, key=order.index)
        return settings_of

    def settings_read(self) -> dict[Asker, dict[str, list[str]]]:
        """Return the settings of the runs that were read: {(role, model): {settings in words: tasks}}."""
        run_ids = {source.run.run_id for source in self.runs_read}
        settings_of: dict[Asker, dict[str, list[str]]] = {}
        for part in self.parts:
            for run in part.runs:
                if run.run_id in run_ids:
                    tasks = settings_of.setdefault(part.asker, {}).setdefault(comparable(run), [])
                    tasks += [part.task] if part.task not in tasks else []
        return settings_of

    def list_others(self) -> list[str]:
        """Describe, with their settings, the runs that could have been used but were not read."""
        run_ids = {source.run.run_id for source in self.runs_read}
        left = {run.run_id: run for part in self.parts for run in part.runs if run.run_id not in run_ids}
        return [f"{run.run_id} ({run.task}, {describe(run.settings)})" for run in left.values()]

    def _labels_of(self, run: chosen.Run, units: UnitNumbers, field: str) -> UnitLabels:
        """Return a run's labels. Units with a status in `request.retry` are treated as unjudged."""
        labels, status, missing = read_run_labels(self.rows.store, run, units, field)
        return labels, status, missing | np.isin(status, self.request.retry)

    def _missing(self, wanted: LabelsWanted, runs: Sequence[chosen.Run], missing: UnitNumbers) -> None:
        """Record a step that judges these units, and add a note on the units without an input of the task."""
        task, purpose, where = wanted.task, wanted.purpose, wanted.where
        fit = fitting(self.rows.store, task, missing, shown=purpose.get("relevant"))
        if fit < len(missing):
            self.reading.note(
                f"{len(missing) - fit} units of {task.task_id} are not judged, because they lack an input of the task "
                f"({', '.join(task.required_inputs)})"
            )
        if not fit:
            return
        # A derived run makes no calls. Its parents must label the missing units first.
        made = [run.run_id for run in runs if run.derived]
        if made:
            self.reading.note(
                f"{fit} units of {task.task_id} are not in run {made[0]}, which was derived from other runs: judge them in those runs, "
                "then derive this run again"
            )
        asked_runs = [run for run in runs if not run.derived]
        if made and not asked_runs:
            return
        runs = asked_runs
        # The requested judges, otherwise the judges that have started, otherwise the most likely judge.
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
        """Return the options for a judge's new run.

        They are copied from the judge's newest run for this paper, because the parts of a score should have
        equal settings. Options that only apply to one task (examples, recipe) are left out.
        """
        tasks = {task for part in self.reading.paper.parts for task in (*part.tasks, *part.instead)}
        run = next((r for r in self.runs if r.model == model and r.task_id in tasks and r.is_of_judge), None)
        if run is None or run.options.get("recipe"):
            return {}
        # Without these two, a judge with another name or server would be a different model.
        kept = {name for name in IDENTITY if name not in OF_TASK} | {"asked_as", "base_url"}
        return {name: value for name, value in run.options.items() if name in kept}

    def guess(self) -> str:
        """Return the model for a printed command: the requested judge or the study's only judge.

        Return a default model if no judge is requested, and the study has no judge or several judges.
        """
        if self.request.models:
            return self.request.models[0]
        models = list(dict.fromkeys(run.model for run in self.runs if not run.derived))
        return models[0] if len(models) == 1 else FALLBACK_MODEL
