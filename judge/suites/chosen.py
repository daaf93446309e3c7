"""Choose the runs that a score reads: the named ones, else the newest complete one of the judge."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.errors import UsageError
from judge.run_options import OF_LABELS, REPORTED, of_stored, settings_of
from judge.store.export import named_run
from judge.store.runs import ADDED, IMPORTED, TRIED
from judge.store.study import Store
from judge.types import Json

PURPOSE = ("context", "system", "relevant", "shown")
"""Options that define the purpose of a run, beside task, model and sampling. A run with other values serves another purpose."""
EXAMPLES = "examples"
"""An ordinary setting, unless a paper defines which examples are shown: then a run with other examples has another purpose."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the study."""

    run_id: str
    task: str
    task_id: str
    model: str
    options: Mapping[str, Json]
    rationale: str | None = None
    """When the rationale was requested: none, before or after; None for a task that asks for text."""

    @property
    def derived(self) -> bool:
        """Whether the run was made from other runs without a model call. It is read only if --run names it."""
        return "derived" in self.options

    @property
    def is_of_judge(self) -> bool:
        """Whether a judge labelled units here: the run is not the output of a system, and was not derived, tried or imported."""
        return not (self.derived or self.tried or self.imported or "context" in self.options)

    @property
    def imported(self) -> bool:
        """Whether the labels came from a file."""
        return IMPORTED in self.options

    @property
    def added(self) -> bool:
        """Whether the labels are outputs that a user allowed a model to add to a system with imported ones."""
        return ADDED in self.options

    @property
    def tried(self) -> bool:
        """Whether a search of `judge improve` made the run. It is read only if --run names it."""
        return TRIED in self.options

    def serves(self, purpose: Mapping[str, str]) -> bool:
        """Return whether the run was made for this purpose (see `PURPOSE`).

        If `purpose` names examples (an empty string: no examples), the run must have shown the same ones.
        """
        if EXAMPLES in purpose and (self.options.get(EXAMPLES) or "") != purpose[EXAMPLES]:
            return False
        # What the purpose does not name must be absent: other passages make another question.
        return all(self.options.get(name) == purpose.get(name) for name in PURPOSE)

    @property
    def examples(self) -> list[str]:
        """The items that the run shows as few-shot examples. They are not judged."""
        return [item for item in str(self.options.get(EXAMPLES) or "").split(",") if item]

    @property
    def settings(self) -> Mapping[str, Json]:
        """The settings in which runs of one task and model can differ (see `judge.run_options.settings_of`)."""
        return settings_of(self.model, self.options)

    def was_asked(self, settings: Mapping[str, Json]) -> bool:
        """Return whether the run has these settings: options by name, and the values that the provider reports.

        Options without effect on a task without labels are not compared. The answer mode is the one in which the run
        began, not the one that was typed.
        """
        _, options = of_stored(self.model, self.options)
        for name, value in settings.items():
            if name in REPORTED:
                same = self.options.get(name) == value
            elif name == "rationale":
                # A task's file may ask for one; a task that asks for text has none.
                same = self.rationale in (None, value)
            elif name == "answers":
                # A raw task is answered in free text, whatever was typed.
                same = value in ("auto", self.options.get("mode")) or self.options.get("mode") == "text"
            else:
                same = getattr(options, name) == value or (self.rationale is None and name in OF_LABELS)
            if not same:
                return False
        return True


def all_runs(store: Store) -> list[Run]:
    """List all runs, the newest first."""
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
    """Divide the names given with `--run` into models (including panels) and runs.

    A model without a run is recognised by the slash in its name; the score then lists the runs to make. Raises UsageError
    for a name that is neither.
    """
    runs = all_runs(store) if names else []
    known = {run.model for run in runs}
    # A model without a run is recognised by its slash. The score then lists the runs to make.
    models = tuple(name for name in names if name in known or "/" in name)
    others = [name for name in names if name not in models]
    return models, tuple(run.run_id for run in named(store, others, runs))


def named(store: Store, names: Sequence[str], runs: Sequence[Run]) -> list[Run]:
    """Return the runs that `--run` names, in order. Raises UsageError if a name matches no run, or several."""
    by_id = {run.run_id: run for run in runs}
    return [by_id.get(name) or by_id[str(named_run(store, name)["run_id"])] for name in dict.fromkeys(names)]


def candidates(
    runs: Sequence[Run],
    pinned: Sequence[Run],
    task_id: str,
    models: Sequence[str],
    purpose: Mapping[str, str],
) -> list[Run]:
    """Return the runs of a task to choose from, the newest first; named runs are the only candidates.

    Raises UsageError if several judges have run the task and the request does not name one.
    """
    fit = [run for run in runs if run.task_id == task_id and run.serves(purpose)]
    chosen = [run for run in pinned if run in fit]
    # What the user named goes before every rule below, also a tried or a derived run.
    if chosen:
        return chosen
    # A search tries many prompts on the same labels. The best of ten looks better than it is.
    fit = [run for run in fit if not run.tried]
    if models:
        return [run for run in fit if run.model in models]
    # A calibrated, pooled or routed run never replaces its parents unless it is named.
    fit = [run for run in fit if not run.derived]
    judges = list(dict.fromkeys(run.model for run in fit))
    if len(judges) > 1:
        raise UsageError(
            f"several judges have run {task_id}: choose with --run; available: {', '.join(judges)}"
        )
    return fit
