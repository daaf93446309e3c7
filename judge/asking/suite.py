"""Use one model to create all the data that a paper's scores need, for `judge suite` and `Study.suite`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from judge.asking.run import Stop, make_plan, provider_of, task_of
from judge.errors import UsageError
from judge.papers.engine.paper import Paper, ScoreRequest
from judge.papers.engine.steps import Incomplete, Step
from judge.run_options import IDENTITY, OF_LABELS, OF_TASK, REPORTED, RunOptions
from judge.store import Store
from judge.types import Status

if TYPE_CHECKING:
    from judge.papers.engine.perform import Performed
    from judge.papers.engine.result import Result
    from judge.providers.base import Provider
    from judge.runner.plan import Plan, RunDisplay

ASKING = (
    *("concurrency", "patience", "retry", "max", "temperature", "answers", "rationale", "asked_as"),
    *("prompts", "base_url", "settings"),
)
"""The options of a run that a suite supports.

To use other options, start the run with `judge run`; the suite then reuses it.

The paper determines the units and the examples. A suite has no recipe, because a recipe is for a single task.
"""


@dataclass(frozen=True, slots=True)
class SuiteDone:
    """The result of `suite`: the steps that were performed, the score of each system, and the request.

    If a run stopped early, there are no scores.
    """

    performed: Performed
    results: Sequence[Result]
    request: ScoreRequest

    @property
    def has_every_label(self) -> bool:
        """Whether every judged unit has a label. Units that lack an input of their task were not judged."""
        ended_without = {str(status) for status in Status} - {str(Status.OK)}
        runs = [run for result in self.results for run in result.runs]
        return bool(self.results) and not any(ended_without & set(run["counts"]) for run in runs)


def suite(
    store: Store,
    paper: Paper,
    request: ScoreRequest,
    systems: Sequence[str],
    model: str,
    options: RunOptions,
    given: Collection[str],
    watch: Callable[[], RunDisplay],
    report_line: Callable[[str], None] = lambda text: None,
    stop: Stop | None = None,
    **score: Any,
) -> SuiteDone:
    """Create the missing data for the scores of these systems, and compute the scores. The model is the judge.

    If no system is named, the model is also the system that is scored. `given` lists the options that the user set. A
    run is resumed only if it has the same values for these options; it keeps its own values of all other options. `score`
    contains keyword arguments for `judge.papers.engine.result.score`. Raises the errors of `Provider.open`.
    """
    from judge.papers.engine.result import score as scored
    from judge.runner.generate import check_origin

    provider = provider_of(model, options)
    wanted = replace(
        request,
        models=(options.asked_as or model,),
        settings=_settings(options, given, provider),
        prompts=options.prompts,
        retry=(),
    )
    each = [replace(wanted, system=system) for system in systems or (None,)]

    def missing(is_first: bool) -> Incomplete | None:
        steps: list[Step] = []
        for each_request in each:
            try:
                scored(
                    store,
                    paper,
                    # Only at first: a unit that fails again would be asked about without end.
                    replace(each_request, retry=options.retry) if is_first else each_request,
                    # Only the missing steps count here, so no interval is computed.
                    interval=None,
                )
            except Incomplete as lacking:
                steps += lacking.steps
        return Incomplete(paper.name, steps) if steps else None

    def plan_of(step: Step) -> Plan:
        return _plan(store, step, model, options)

    # Only the limits of this plan are used, so any task will do.
    plain = replace(options, rationale=None, prompts=None, recipe=None)
    limits = make_plan("qa_answer", model, plain, store)
    done = asyncio.run(_perform(store, missing, provider, limits, plan_of, watch, report_line, stop))
    if done.stopped is not None:
        return SuiteDone(done, (), wanted)
    results = [scored(store, paper, each_request, **score) for each_request in each]
    if any(gap.system in wanted.models for result in results for gap in result.lacking):
        check_origin(store, wanted.models[0], request.also_generate)
    return SuiteDone(done, results, wanted)


def _settings(options: RunOptions, given: Collection[str], provider: Provider) -> Mapping[str, Any]:
    """Return the settings by which an earlier run is recognised and resumed.

    They are the settings that the user set and that are part of a run's identity.
    """
    apart = ("asked_as", "prompts", "settings", *OF_TASK)
    settings = {name: getattr(options, name) for name in IDENTITY if name in given and name not in apart}
    if "settings" in given:
        # As typed they may be limits or keys; what the provider reports is what changes an answer.
        facts = provider.describe()
        settings |= {name: facts.get(name) for name in REPORTED}
    return settings


def _plan(store: Store, step: Step, model: str, options: RunOptions) -> Plan:
    """Return the plan of a step.

    If the step resumes a run, the plan has the settings of that run. Otherwise, the plan has the given options.
    """
    step_options = replace(options, relevant=None, examples=None, recipe=None)
    typed, began = step.model_and_options
    # Outputs of a system that is called otherwise than its model, and is no judge.
    name = step.model if typed == model != step.model else options.asked_as
    step_options = replace(step_options, asked_as=name)
    if step.options:
        # Without its recipe the run would be another run, and its judgements so far would not count.
        if began.recipe is not None:
            raise UsageError(
                f"{step.why}: its run used a recipe, which a suite does not support; resume the run with: {step.command(store.path)}"
            )
        kept = {
            name: getattr(began, name) for name in IDENTITY if name not in ("settings", "prompts", *OF_TASK)
        }
        step_options = replace(step_options, **{**kept, "asked_as": name})
    spec = task_of(store, step.task, step_options.prompts).spec
    # A task without labels would refuse an option about labels that the other steps take.
    if spec.raw or not any(question.labels for question in spec.questions):
        step_options = replace(step_options, **{name: getattr(RunOptions(), name) for name in OF_LABELS})
    return make_plan(step.task, model, step_options, store)


async def _perform(
    store: Store,
    missing: Callable[[bool], Incomplete | None],
    provider: Provider,
    limits: Plan,
    plan_of: Callable[[Step], Plan],
    watch: Callable[[], RunDisplay],
    report_line: Callable[[str], None],
    stop: Stop | None,
) -> Performed:
    """Perform the missing steps. The provider is opened only if steps are missing."""
    from judge.papers.engine.perform import Performed, perform
    from judge.runner import open_patiently

    if stop is not None:
        stop.bind()
    # Stored labels can be scored without a server.
    if missing(True) is None:
        return Performed()
    try:
        limits = await open_patiently(provider, limits, store=store)
        return await perform(store, missing, provider, plan_of, limits, watch, report_line)
    finally:
        await provider.close()
