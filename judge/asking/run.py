"""Execute runs for `judge run` and Python: build a plan and a provider from options, and run the plan.

options = RunOptions(limit=100, max=("2usd",))
asking = prepare("stance", "openai/gpt-5-mini", options)
with Store.open("study.db", create=False) as store:
    done = run(store, complete_asking(store, asking, options))
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.commands import command
from judge.errors import UsageError
from judge.permissions import Allowed, check_server
from judge.run_options import RunOptions, get_typed, limits_of, list_decided, order_of
from judge.types import PARTS_OF_ANSWERS

if TYPE_CHECKING:
    from judge.improve.recipe import Recipe
    from judge.prompts import Task
    from judge.providers.base import Provider
    from judge.runner.estimate import Forecast
    from judge.runner.plan import Plan, RunDisplay, RunReport
    from judge.store import Store


SAMPLE, SAMPLE_QUESTIONS = 100, 50
"""Number of units (or of whole questions) that the suggested command draws for human annotation."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A prepared run with its plan and provider.

    `recipe` is the recipe given with --recipe, and `notes` are messages for the user.
    """

    plan: Plan
    provider: Provider
    recipe: Recipe | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a run. If the recipe has a calibration, `calibrated` is the calibrated run that was derived."""

    plan: Plan
    report: RunReport
    calibrated: str | None = None


class Stop:
    """Cancels a run in another thread's event loop. No more requests are sent, and replies already received are stored."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def bind(self) -> None:
        """Store the running event loop and task, so that they can be cancelled later."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()

    def __call__(self) -> None:
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            # Ctrl-C reaches the main thread, while the loop of the run is in another one.
            self._loop.call_soon_threadsafe(self._task.cancel)


def prepare(task_name: str, model: str | None, options: RunOptions, store: Store | None = None) -> Asking:
    """Prepare the run that the options describe. `store` is as in `task_of`. Raises UsageError or TaskError."""
    from judge.store.export import newer_version

    if not isinstance(model, str):
        raise UsageError(f"model={model!r}: must have the form vendor/model")
    plan = make_plan(task_name, model, options, store)
    recipe: Recipe | None = None
    notes: list[str] = []
    if options.recipe is not None:
        plan, recipe, notes = with_recipe(plan, options.recipe, options)
    # A study keeps the version of a task that it began with, until its user names another.
    kept = newer_version(task_name, plan.task)
    notes += [] if kept is None else [kept]
    return Asking(plan, provider_of(model, options), recipe, tuple(notes))


def use_settings_of(
    store: Store, run: str | None, model: str | None, options: RunOptions
) -> tuple[str, RunOptions]:
    """Return the model and the options. If a stored run is named, its settings are used.

    Options that the user sets override the settings of the run. The server, the limits and the units are never taken
    from the run, because the study may come from somebody else. Raises UsageError if neither a model nor a run is
    named.
    """
    from judge.permissions import remove_servers
    from judge.run_options import WRITTEN, from_stored, get_given
    from judge.store.export import find_named_run

    if run is None:
        if model is None:
            raise UsageError("specify a model with -m VENDOR/MODEL, or a stored run with --run RUN")
        return model, options
    row = find_named_run(store, run)
    typed_model, stored = from_stored(str(row["model"]), json.loads(str(row["options"])))
    # Options that no run stores, as limits and units, are always the user's.
    changed = set(get_given(options)) | {name for name, written in WRITTEN.items() if not written.stored}
    kept = {name: getattr(options, name) for name in {*changed, "base_url"} - {"asked_as", "settings"}}
    settings = remove_servers(typed_model.partition("/")[0], stored.settings)
    # A study from elsewhere must not choose an environment variable that is read: it could name any key.
    settings = {name: text for name, text in settings.items() if "env:" not in text}
    kept["settings"] = {**settings, **options.settings}
    kept["asked_as"] = options.asked_as or stored.asked_as
    return model or typed_model, dataclasses.replace(stored, **kept)


def task_of(store: Store | None, name: str, folder: Path | None) -> Task:
    """Return the named task. If `store` is given, the version in the study is preferred, as in `find_task`.

    Raises UsageError or TaskError.
    """
    from judge.prompts import load_task
    from judge.store.export import find_task

    return load_task(name, folder) if store is None else find_task(store, name, folder)


def _condition(store: Store | None, options: RunOptions) -> str | None:
    """Return the SQL condition of --where and --units-of. Raises UsageError if the study has no such batch."""
    from judge.labels.batches import check_batch
    from judge.store.label_rows import quote

    if options.units_of is None:
        return options.where
    if store is None:
        raise UsageError(f"--units-of {options.units_of}: a batch is in a study, but there is none")
    check_batch(store, options.units_of, "--units-of names a batch of people")
    of_batch = f"unit_id IN (SELECT unit_id FROM batch_units WHERE batch = {quote(options.units_of)})"
    return of_batch if options.where is None else f"({options.where}\n) AND {of_batch}"


def make_plan(task_name: str, model: str, options: RunOptions, store: Store | None = None) -> Plan:
    """Return the plan that the options describe. `store` is as in `task_of`. Raises UsageError or TaskError."""
    from judge.runner import Plan
    from judge.runner.prices import read_prices
    from judge.runner.requests import Sampling
    from judge.runner.retry import Patience
    from judge.store.selection import Selection

    task = task_of(store, task_name, options.prompts).thinking(options.rationale)
    if options.guidelines:
        task = task.with_guidelines()
    name = options.asked_as
    if name is not None and (not name.strip() or not name.isprintable()):
        raise UsageError("--as must be a name that consists of printable characters")
    limits = limits_of(options.max)
    order, orders = order_of(options.label_order)
    return Plan(
        task=task,
        model=name or model,
        asked_as=model if name else None,
        typed=get_typed(options),
        same_model=options.same_model,
        selection=Selection(_condition(store, options), options.limit, options.sample),
        sampling=Sampling(
            temperature=options.temperature,
            seed=options.seed,
            max_output_tokens=options.max_output_tokens,
            answers=options.answers,
            label_order=order,
            orders=orders,
        ),
        repeats=options.repeats,
        concurrency=options.concurrency,
        retry=options.retry,
        max_tokens=limits.tokens,
        max_cost=limits.cost,
        max_time=limits.seconds,
        patience=Patience(outage=options.patience),
        prices=read_prices(options.prices) if options.prices else None,
    )


def provider_of(model: str, options: RunOptions, source: Path | None = None) -> Provider:
    """Return the provider for `vendor/model`, without opening it.

    `source` is the file that sets the server and the provider options, or None if the user sets them. Raises UsageError for
    invalid options, and for options that a file is not allowed to set.
    """
    from judge.providers import base
    from judge.providers.replicas import make_replicas

    vendor, allowed = model.partition("/")[0], Allowed.from_values(options.allow)
    url, *replicas = options.base_url or (None,)
    # A file from somebody else must not choose the server that receives a key.
    given = check_server(source, vendor, url, options.settings, allowed)
    return make_replicas(model, base.Settings(url, options.timeout, given, tuple(map(str, replicas))))


def estimate_run(store: Store, asking: Asking) -> Forecast:
    """Estimate the cost of a run without judging any unit."""
    from judge.runner.estimate import estimate

    try:
        return estimate(store, asking.plan, asking.provider)
    finally:
        asyncio.run(asking.provider.close())


def refuse_beside_recipe(given: Sequence[str]) -> None:
    """Raise UsageError if the user set any of the options that a recipe sets."""
    if given:
        raise UsageError(
            f"{', '.join(given)}: cannot be combined with --recipe, which sets this option; omit one of them"
        )


def with_recipe(plan: Plan, path: Path, options: RunOptions) -> tuple[Plan, Recipe, list[str]]:
    """Apply a recipe to the plan. Return the plan, the recipe and notes for the user.

    Raises UsageError if an option is also set by the recipe, or if the recipe is for another task.
    """
    from judge.improve.recipe import read_recipe

    refuse_beside_recipe(list_decided(options))
    recipe = read_recipe(path)
    proved_with, notes = recipe.made.get("model"), []
    # A bias fitted on one model's probabilities may do harm on another's, but the user may know better: a note.
    if recipe.calibration is not None and proved_with not in (None, plan.model):
        notes.append(
            f"the recipe's calibration was fitted on probabilities from {proved_with}, not from {plan.model}"
        )
    return recipe.apply_to(plan), recipe, notes


def complete_asking(store: Store, asking: Asking, options: RunOptions) -> Asking:
    """Add few-shot examples and relevant passages from the study to the plan. Raises UsageError if they do not fit the task."""
    plan = asking.plan
    if options.examples:
        from judge.runner.examples import showing

        plan = dataclasses.replace(plan, task=showing(store, plan.task, options.examples.split(",")))
    if options.relevant:
        plan = with_relevant(store, plan, options.relevant)
    return dataclasses.replace(asking, plan=plan)


def with_relevant(store: Store, plan: Plan, text: str) -> Plan:
    """Return the plan with these relevant passages added. Its run is separate from the run without them.

    Raises UsageError if the task does not show relevant passages.
    """
    from judge.runner.contexts import relevant

    if "relevant_passages" not in plan.task.input_names:
        raise UsageError(
            f"--relevant requires the task grounding_relevant, because {plan.task.name} does not show relevant passages"
        )
    passages = relevant(store, text)
    selection = dataclasses.replace(plan.selection, relevant=passages.passages)
    return dataclasses.replace(plan, selection=selection, extra={**plan.extra, "relevant": passages.name})


def run(store: Store, asking: Asking, progress: RunDisplay | None = None, stop: Stop | None = None) -> Ran:
    """Run the missing units under the lock of this run, and calibrate the labels if the recipe has a calibration.

    If an error ended the run early, the report contains the error. Raises StudyError if another process executes the same
    run, and the errors of `Provider.open`.
    """
    from judge.store.selection import check_any

    plan = asking.plan
    # Before the server is asked what it can do, which costs tokens too.
    check_any(store, plan.task, plan.selection)
    with store.run_lock(f"{plan.task.name} {plan.model}"):
        asking = add_earlier_cost(store, asking)
        return finish_run(store, asking, asyncio.run(_execute(store, asking, progress, stop)))


def add_earlier_cost(store: Store, asking: Asking) -> Asking:
    """Add the cost of earlier invocations to the plan, so that the limits apply to the whole run."""
    from judge.runner.identity import matching_runs
    from judge.store.runs import read_use

    plan = asking.plan
    if plan.max_tokens is None and plan.max_cost is None:
        return asking
    run_ids = matching_runs(store, plan, asking.provider, asking.provider.describe().get("base_url"))
    return dataclasses.replace(
        asking,
        plan=dataclasses.replace(plan, before=read_use(store.conn, run_ids[0]) if run_ids else (0, 0.0)),
    )


def finish_run(store: Store, asking: Asking, report: RunReport) -> Ran:
    """Return the result of the run, calibrated if its recipe has a calibration. The caller must hold the lock of the run."""
    calibrated = None
    # Without a label there is nothing to calibrate.
    if asking.recipe is not None and asking.recipe.calibration and report.labelled:
        from judge.improve.apply import store_calibrated as put_right

        calibrated = put_right(store, report.run_id, asking.recipe)
    return Ran(asking.plan, report, calibrated)


async def _execute(store: Store, asking: Asking, progress: RunDisplay | None, stop: Stop | None) -> RunReport:
    """Open the provider, run the plan, and close the provider."""
    from judge.runner import RunReport, run_task
    from judge.runner.opening import open_or_finished

    if stop is not None:
        stop.bind()
    try:
        opened = await open_or_finished(store, asking.provider, asking.plan, progress)
        return (
            opened
            if isinstance(opened, RunReport)
            else await run_task(store, opened, asking.provider, progress)
        )
    finally:
        if progress is not None:
            progress.end()
        await asking.provider.close()


def suggest_command(store: Store, ran: Ran) -> str:
    """Return the command to suggest after a run.

    If the task's field has human or gold labels, the command writes a report. Otherwise, it draws a batch of units for
    people to label.
    """
    from judge.store.label_rows import labellers

    task = ran.plan.task
    field = next((q.field for q in task.spec.questions if q.labels), None)
    if field is not None and labellers(store.conn, field):
        return command("annotate report", "--field", field, "-o", "report.html")
    # Measures of answers need labels on all parts of an answer, so whole questions are drawn.
    kind, is_part = task.spec.unit, task.spec.unit in PARTS_OF_ANSWERS
    counted = "count(DISTINCT question_id)" if is_part else "count(*)"
    [(there,)] = store.conn.execute(f"SELECT {counted} FROM units WHERE kind = ?", [kind]).fetchall()
    most = min(there, SAMPLE_QUESTIONS if is_part else SAMPLE)
    how_many = ("--by-question" if is_part else "-n", most)
    return command("annotate batches new pilot", task.task_id, *how_many, "--annotators", "me")
