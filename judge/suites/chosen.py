"""Which runs a score reads: those named, else the latest complete one of the judge."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.errors import UsageError
from judge.run_options import OF_LABELS, REPORTED, of_stored, settings_of
from judge.store.export import named_run
from judge.store.runs import ADDED, IMPORTED, TRIED
from judge.store.study import Store
from judge.types import Json

OWN = ("context", "system", "relevant", "shown")
"""What makes a run one of its own beside task, model and sampling: a run with other values serves another purpose."""
EXAMPLES = "examples"
"""A setting like others, but where a paper says which examples are shown: then a run with others serves another purpose."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the study."""

    run_id: str
    task: str
    task_id: str
    model: str
    options: Mapping[str, Json]
    rationale: str | None = None
    """What it was asked for beside labels: none, before or after; None for a task that asks for text."""

    @property
    def derived(self) -> bool:
        """Made from other runs without a call: it is read where it is named."""
        return "derived" in self.options

    @property
    def is_of_judge(self) -> bool:
        """A model labelled units here, for itself: no output of a system, nothing derived, tried or imported."""
        return not (self.derived or self.tried or self.imported or "context" in self.options)

    @property
    def imported(self) -> bool:
        """Its labels came in a file."""
        return IMPORTED in self.options

    @property
    def added(self) -> bool:
        """Its labels are outputs that a user let a model add to a system with imported ones."""
        return ADDED in self.options

    @property
    def tried(self) -> bool:
        """Asked by a search alone: it is read where it is named."""
        return TRIED in self.options

    def serves(self, own: Mapping[str, str]) -> bool:
        """Made for this: the same context and system of generated answers, the same relevant passages.

        Where `own` names examples (an empty text: none), those are the same, too.
        """
        if EXAMPLES in own and (self.options.get(EXAMPLES) or "") != own[EXAMPLES]:
            return False
        return all(self.options.get(name) == own.get(name) for name in OWN)

    @property
    def examples(self) -> list[str]:
        """The items that it shows as few-shot examples, which it asks nothing about."""
        return [item for item in str(self.options.get(EXAMPLES) or "").split(",") if item]

    @property
    def settings(self) -> Mapping[str, Json]:
        """What sets it apart from other runs of its task and model: see `judge.run_options.settings_of`."""
        return settings_of(self.model, self.options)

    def was_asked(self, settings: Mapping[str, Json]) -> bool:
        """Whether it was asked with these settings: options by name, and what the provider reports of its own.

        An option that means nothing for a task without labels is not compared. The answer mode is that in which the run
        began, whatever was typed.
        """
        _, options = of_stored(self.model, self.options)
        for name, value in settings.items():
            if name in REPORTED:
                same = self.options.get(name) == value
            elif name == "answers":
                # A raw task is answered in free text, whatever was typed.
                same = value in ("auto", self.options.get("mode")) or self.options.get("mode") == "text"
            else:
                same = getattr(options, name) == value or (self.rationale is None and name in OF_LABELS)
            if not same:
                return False
        return True


def all_runs(store: Store) -> list[Run]:
    """Every run, the newest first."""
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


def named(store: Store, names: Sequence[str], runs: Sequence[Run]) -> list[Run]:
    """The runs that `--run` names, in order. Raises UsageError for none, or several of one name."""
    by_id = {run.run_id: run for run in runs}
    return [by_id.get(name) or by_id[str(named_run(store, name)["run_id"])] for name in dict.fromkeys(names)]


def candidates(
    runs: Sequence[Run], pinned: Sequence[Run], task_id: str, models: Sequence[str], own: Mapping[str, str]
) -> list[Run]:
    """The runs of a task to choose from, the newest first; those named are the only ones.

    Raises UsageError when several judges have run the task and nothing says whose labels are meant.
    """
    fit = [run for run in runs if run.task_id == task_id and run.serves(own)]
    chosen = [run for run in pinned if run in fit]
    if chosen:
        return chosen
    fit = [run for run in fit if not run.tried]
    if models:
        return [run for run in fit if run.model in models]
    # Nothing that was calibrated, pooled or routed steps into its parents' place unasked.
    fit = [run for run in fit if not run.derived]
    judges = list(dict.fromkeys(run.model for run in fit))
    if len(judges) > 1:
        raise UsageError(f"several judges have run {task_id}: choose with -m; there are: {', '.join(judges)}")
    return fit
