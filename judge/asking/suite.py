"""Use one model to create all the data that a paper's scores need, for `judge suite` and `Study.suite`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from judge.asking.run import Stop, make_plan, provider_of, task_of
from judge.commands import command
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
    from judge.runner.estimate import Forecast
    from judge.runner.plan import Plan, RunDisplay

ASKING = (
    *("concurrency", "patience", "retry", "max", "temperature", "answers", "rationale", "asked_as"),
    *("max_output_tokens", "prompts", "base_url", "settings"),
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
    wanted = _requested(request, model, options, given, provider)
    each = [replace(wanted, system=system) for system in systems or (None,)]

    def missing(is_first: bool) -> Incomplete | None:
        # Only at first: a unit that fails again would be asked about without end.
        retry = options.retry if is_first else ()
        return _missing(store, paper, [replace(each_request, retry=retry) for each_request in each])

    def plan_of(step: Step) -> Plan:
        return _plan(store, step, model, options)

    # Only the limits of this plan are used, so any task will do.
    plain = replace(options, rationale=None, prompts=None, recipe=None)
    limits = make_plan("qa_answer", model, plain, store)

    def check_probabilities(opened: Provider) -> None:
        _check_probabilities(paper, request, opened, options, model)

    done = asyncio.run(
        _perform(store, missing, provider, limits, plan_of, watch, report_line, stop, check_probabilities)
    )
    if done.stopped is not None:
        return SuiteDone(done, (), wanted)
    results = [scored(store, paper, each_request, **score) for each_request in each]
    if any(gap.system in wanted.models for result in results for gap in result.lacking):
        check_origin(store, wanted.models[0], request.also_generate)
    return SuiteDone(done, results, wanted)


def estimate_suite(
    store: Store,
    paper: Paper,
    request: ScoreRequest,
    systems: Sequence[str],
    model: str,
    options: RunOptions,
    given: Collection[str],
) -> list[tuple[Step, Forecast | None]]:
    """Return the steps that `suite` would perform first, each with an estimate (None: the step calls no model).

    No model is called. Later steps depend on the results of these steps, so they are not known yet.
    """
    from judge.papers.engine.perform import prepare
    from judge.runner.estimate import estimate
    from judge.runner.plan import Plan as RunPlan

    provider = provider_of(model, options)
    wanted = _requested(request, model, options, given, provider)
    lacking = _missing(
        store, paper, [replace(wanted, system=system, retry=options.retry) for system in systems or (None,)]
    )
    result: list[tuple[Step, Forecast | None]] = []
    try:
        for step in lacking.steps if lacking is not None else ():
            forecast = None
            if step.kind in ("run", "generate"):
                prepared = prepare(store, step, _plan(store, step, model, options))
                plan = prepared if isinstance(prepared, RunPlan) else prepared.with_contexts()
                forecast = estimate(store, plan, provider)
            result.append((step, forecast))
    finally:
        asyncio.run(provider.close())
    return result


def _requested(
    request: ScoreRequest, model: str, options: RunOptions, given: Collection[str], provider: Provider
) -> ScoreRequest:
    """Return the request with this model as the judge, and with the settings by which its runs are recognised."""
    return replace(
        request,
        models=(options.asked_as or model,),
        settings=_settings(options, given, provider),
        prompts=options.prompts,
        retry=(),
    )


def _missing(store: Store, paper: Paper, requests: Sequence[ScoreRequest]) -> Incomplete | None:
    """Return the missing steps of all requests, or None if nothing is missing."""
    from judge.papers.engine.result import score as scored

    steps: list[Step] = []
    for request in requests:
        try:
            # Only the missing steps count here, so no interval is computed.
            scored(store, paper, request, interval=None)
        except Incomplete as lacking:
            steps += lacking.steps
    return Incomplete(paper.name, steps) if steps else None


def _check_probabilities(
    paper: Paper, request: ScoreRequest, provider: Provider, options: RunOptions, model: str
) -> None:
    """Raise UsageError if the requested parts need label probabilities, and the server does not return them.

    The message names the parts that can be computed without them.
    """
    needing = [
        part.name
        for part in paper.parts
        if part.probabilities and (not request.parts or part.name in request.parts)
    ]
    if not needing or (provider.label_codes and options.answers in ("auto", "codes")):
        return
    others = [part.name for part in paper.parts if not part.probabilities]
    rest = command(
        f"judge suite {paper.name}", "-m", model, *(w for name in others for w in ("--part", name))
    )
    raise UsageError(
        f"{model} returns no probabilities of the options, which these parts need: {', '.join(needing)}. No unit was judged. "
        f"Without probabilities, only {', '.join(others)} can be computed: {rest}"
    )


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
    check_probabilities: Callable[[Provider], None],
) -> Performed:
    """Perform the missing steps. The provider is opened only if steps are missing.

    `check_probabilities` raises UsageError if the paper needs probabilities that the open provider does not return.
    """
    from judge.papers.engine.perform import Performed, perform
    from judge.runner import open_patiently

    if stop is not None:
        stop.bind()
    # Stored labels can be scored without a server.
    if missing(True) is None:
        return Performed()
    try:
        limits = await open_patiently(provider, limits, store=store)
        # The provider has been probed by now, and no unit has been judged.
        check_probabilities(provider)
        return await perform(store, missing, provider, plan_of, limits, watch, report_line)
    finally:
        await provider.close()
