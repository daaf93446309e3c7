"""Perform a score's missing steps until the score can be computed."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from judge.errors import AdjudgeError, UsageError
from judge.papers.engine.steps import Incomplete, Step
from judge.providers.base import Provider
from judge.retrieve import rank_by_bm25
from judge.runner import Plan, RunReport, contexts, run_task, second
from judge.runner.contexts import relevant
from judge.runner.examples import showing
from judge.runner.generate import Generation, generate
from judge.runner.plan import RunDisplay
from judge.store.answers import add_claims
from judge.store.export import read_stored_task
from judge.store.rankings import attach
from judge.store.runs import ADDED, mark_added
from judge.store.selection import Selection
from judge.store.study import Store


@dataclass(slots=True)
class Performed:
    """The performed steps, each with its report (None: no model was called). If a run ended early, `stopped` is
    its report.
    """

    steps: list[tuple[Step, RunReport | None]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    stopped: RunReport | None = None


async def perform(
    store: Store,
    missing: Callable[[bool], Incomplete | None],
    provider: Provider,
    plan_of: Callable[[Step], Plan],
    limits: Plan,
    watch: Callable[[], RunDisplay],
    report_line: Callable[[str], None] = lambda text: None,
) -> Performed:
    """Perform the missing steps, and repeat this until no step is missing. The provider must be open.

    `missing` returns an object with the missing steps, or None if no step is missing. It is called with True
    the first time and with False afterwards, because statuses in `--retry` are retried only once. `plan_of`
    creates the plan for a step, and the plan `limits` contains the limits for all steps together.
    `report_line` is called with a description of each step before it is performed.

    Returns early if a run stops because of an interruption, a limit or an unreachable server. Raises
    AdjudgeError if a step is still missing after it was performed.
    """
    done = Performed()
    # Statuses are retried only once, because a unit that fails every time would cause an endless loop.
    while (lacking := missing(not done.steps)) is not None:
        # A step that has no effect would be performed, and paid for, in an endless loop.
        again = {step for step, _ in done.steps} & set(lacking.steps)
        if again:
            raise AdjudgeError(
                f"these steps were performed, but the study still lacks their results: {'; '.join(step.why for step in again)}"
            )
        for step in lacking.steps:
            report_line(step.why)
            report = None
            if step.kind in ("run", "generate"):
                # The limits apply to the whole suite, so each step gets what the earlier steps have left.
                left = limits.subtract_reports(r for _, r in done.steps if r is not None)
                plan = _limit_plan(plan_of(step), left)
                report = await _ask(store, step, provider, plan, watch, done.problems)
            else:
                _perform_without_model(store, step, report_line)
            done.steps.append((step, report))
            if report is not None and (report.stopped or report.interrupted or report.error):
                done.stopped = report
                return done
    return done


def _limit_plan(plan: Plan, limits: Plan) -> Plan:
    """Return the plan with the limits that remain, and with the cost of the start-up probes."""
    names = ("max_tokens", "max_cost", "max_time", "opened")
    return replace(plan, **{name: getattr(limits, name) for name in names})


def _perform_without_model(store: Store, step: Step, report_line: Callable[[str], None]) -> None:
    """Perform a step without model calls: rank passages, copy listed passages, or create claims from a run."""
    if step.kind == "retrieve":
        if empty := rank_by_bm25(store, dataset=step.dataset).empty:
            report_line(f"{empty} items share no word with any passage, so they have no ranked list")
    elif step.kind == "attach" and step.ranking is not None and step.k is not None:
        attach(store, step.ranking, step.k, step.dataset)
    else:
        run = store.conn.execute("SELECT task FROM runs WHERE run_id = ?", [step.run_id]).fetchone()
        lists = [q.field for q in read_stored_task(store, run[0]).spec.questions if q.many]
        add_claims(store, str(step.run_id), lists[0])


def prepare(store: Store, step: Step, plan: Plan) -> Plan | Generation:
    """Return what a step with model calls does: the plan of a labelling task, or the generation of outputs.

    `plan` has the model, the task and the limits. Raises UsageError if the step needs another model.
    """
    # The user's key and limits are for one model.
    if step.model != plan.model:
        raise UsageError(
            f"{step.why}: this step needs a model other than {plan.model}; run it separately: {step.command(store.path)}"
        )
    step_plan, task = replace(plan, selection=Selection(step.where)), plan.task
    _, options = step.model_and_options
    examples = options.examples.split(",") if options.examples else []
    if options.relevant is not None:
        relevant_passages = relevant(store, options.relevant)
        chosen = replace(step_plan.selection, relevant=relevant_passages.passages)
        step_plan = replace(
            step_plan, selection=chosen, extra={**step_plan.extra, "relevant": relevant_passages.name}
        )
    if step.kind == "run":
        return replace(step_plan, task=showing(store, task, examples)) if examples else step_plan
    name, stage = step.ranking or (None, None)
    given = contexts.parse(store, str(step.condition), ranking=name, stage=stage)
    passages = contexts.contexts(store, given)
    if examples:
        step_plan = replace(step_plan, task=showing(store, task, examples, passages))
    shown = second.read_probabilities(store, step.shown) if step.shown is not None else None
    condition = given.name + (shown.mark if shown else "")
    return Generation(step_plan, step.system or plan.model, condition, passages, shown=shown)


async def _ask(
    store: Store,
    step: Step,
    provider: Provider,
    plan: Plan,
    watch: Callable[[], RunDisplay],
    problems: list[str],
) -> RunReport:
    """Perform a step with model calls: run a labelling task, or generate outputs of the system under test."""
    prepared = prepare(store, step, plan)
    progress = watch()
    try:
        if isinstance(prepared, Plan):
            with store.run_lock(f"{plan.task.name} {plan.model}"):
                report = await run_task(store, prepared, provider, progress)
                if step.options.get(ADDED):
                    # This may have resumed a judge's run under the system's name, which lacks the mark so far.
                    mark_added(store, report.run_id)
                return report
        with store.run_lock(f"{plan.task.name} {plan.model} {prepared.condition} {prepared.system}"):
            report, kept = await generate(store, prepared, provider, progress)
        problems += kept.problems
        return report
    finally:
        progress.end()
