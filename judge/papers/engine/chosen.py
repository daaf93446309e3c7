"""Choose the runs that a score reads: the runs that the user names or, if none are named, the judge's newest
complete run.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.errors import UsageError
from judge.run_options import OF_LABELS, REPORTED, from_stored, settings_of
from judge.store.export import find_named_run
from judge.store.runs import ADDED, IMPORTED, TRIED
from judge.store.study import Store
from judge.types import Json

PURPOSE = ("context", "system", "relevant", "shown")
"""The options that define the purpose of a run, besides its task, model and sampling. Runs that differ in these
options are not interchangeable.
"""
EXAMPLES = "examples"
"""The option that names the examples. It defines the purpose of a run only if the paper prescribes the
examples; if not, it is a setting.
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the study."""

    run_id: str
    task: str
    task_id: str
    model: str
    options: Mapping[str, Json]
    rationale: str | None = None
    """Whether the rationale comes before or after the answer ("none": no rationale); None for a task that asks for text."""

    @property
    def derived(self) -> bool:
        """Whether the run was derived from other runs without model calls. Such a run is read only if --run names it."""
        return "derived" in self.options

    @property
    def is_of_judge(self) -> bool:
        """Whether a judge labelled units in this study.

        False for outputs of a system, and for runs that were imported, derived, or created by a search.
        """
        return not (self.derived or self.tried or self.imported or "context" in self.options)

    @property
    def imported(self) -> bool:
        """Whether the labels came from a file."""
        return IMPORTED in self.options

    @property
    def added(self) -> bool:
        """Whether the labels are outputs that a model added to the imported outputs of a system (--also-generate)."""
        return ADDED in self.options

    @property
    def tried(self) -> bool:
        """Whether `judge improve` created the run during a search. Such a run is read only if --run names it."""
        return TRIED in self.options

    def serves(self, purpose: Mapping[str, str]) -> bool:
        """Return whether the run has this purpose (see `PURPOSE`).

        If `purpose` has an entry for the examples, the run must have shown the same examples. An empty string
        means no examples.
        """
        if EXAMPLES in purpose and (self.options.get(EXAMPLES) or "") != purpose[EXAMPLES]:
            return False
        # Options that the purpose does not name must be unset: with other passages, the question would be different.
        return all(self.options.get(name) == purpose.get(name) for name in PURPOSE)

    @property
    def examples(self) -> list[str]:
        """The items that the run shows as few-shot examples. They are not judged."""
        return [item for item in str(self.options.get(EXAMPLES) or "").split(",") if item]

    @property
    def settings(self) -> Mapping[str, Json]:
        """The settings that can differ between runs of one task and model (see `judge.run_options.settings_of`)."""
        return settings_of(self.model, self.options)

    def was_asked(self, settings: Mapping[str, Json]) -> bool:
        """Return whether the run has these settings, including the values that the provider reports.

        If the task has no labels, options that affect only labels are ignored. The requested answer mode
        `auto` matches every run.
        """
        _, options = from_stored(self.model, self.options)
        for name, value in settings.items():
            if name in REPORTED:
                same = self.options.get(name) == value
            elif name == "rationale":
                # The task file may set the rationale; a task that asks for text has no rationale.
                same = self.rationale in (None, value)
            elif name == "answers":
                # A raw task is always answered in free text.
                same = value in ("auto", self.options.get("mode")) or self.options.get("mode") == "text"
            else:
                same = getattr(options, name) == value or (self.rationale is None and name in OF_LABELS)
            if not same:
                return False
        return True


def list_runs(store: Store) -> list[Run]:
    """List all runs, newest first."""
    query = """
        SELECT r.run_id, r.task, t.task_id, r.model, r.options,
               iif(json_array_length(t.front_matter, '$.questions[0].labels') > 0,
                   coalesce(json_extract(r.options, '$.rationale'), json_extract(t.front_matter, '$.rationale')), NULL)
        FROM runs AS r JOIN tasks AS t ON t.task = r.task
        ORDER BY r.started DESC, r.run_id DESC
    """
    return [
        Run(run_id, task, task_id, model, json.loads(options), rationale)
        for run_id, task, task_id, model, options, rationale in store.conn.execute(query)
    ]


def judges(store: Store, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the names given with `--run` into models (including panels) and runs.

    Raises UsageError for a name that is neither a model nor a run.
    """
    runs = list_runs(store) if names else []
    known = {run.model for run in runs}
    # A model without a run is recognised by the slash in its name. The score then lists the runs that are needed.
    models = tuple(name for name in names if name in known or "/" in name)
    others = [name for name in names if name not in models]
    return models, tuple(run.run_id for run in find_named(store, others, runs))


def find_named(store: Store, names: Sequence[str], runs: Sequence[Run]) -> list[Run]:
    """Return the runs that `--run` names, in order. Raises UsageError if a name matches no run or several runs."""
    by_id = {run.run_id: run for run in runs}
    return [
        by_id.get(name) or by_id[str(find_named_run(store, name)["run_id"])] for name in dict.fromkeys(names)
    ]


def candidates(
    runs: Sequence[Run],
    pinned: Sequence[Run],
    task_id: str,
    models: Sequence[str],
    purpose: Mapping[str, str],
) -> list[Run]:
    """Return the runs of a task from which a score may read labels, newest first.

    If the user has named runs of this task (`pinned`), only these are returned. Raises UsageError if several
    judges have run the task and the user has not named a judge.
    """
    fit = [run for run in runs if run.task_id == task_id and run.serves(purpose)]
    chosen = [run for run in pinned if run in fit]
    # A run that the user names takes precedence over the rules below, even a tried or derived run.
    if chosen:
        return chosen
    # A search tries many prompts on the same labels, so the score of the best one is biased upwards.
    fit = [run for run in fit if not run.tried]
    if models:
        return [run for run in fit if run.model in models]
    # A calibrated, pooled or routed run never replaces its parents unless it is named.
    fit = [run for run in fit if not run.derived]
    judges = list(dict.fromkeys(run.model for run in fit))
    if len(judges) > 1:
        raise UsageError(
            f"several judges have run {task_id}: choose one with --run; available: {', '.join(judges)}"
        )
    return fit
