"""judge answers generate: let the system under test answer the items in the study."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import click

from judge.asking.run import Asking, make_plan, provider_of
from judge.cli.estimate import estimate, estimate_option
from judge.cli.models import model_option
from judge.cli.options import options_of
from judge.cli.progress import Progress
from judge.cli.run_result import exit_code
from judge.cli.score_options import also_generate_option
from judge.commands import command
from judge.console import db_option, emit_json, json_option, note, notes
from judge.errors import Exit
from judge.providers.base import Provider
from judge.run_options import RunOptions
from judge.store import Store

if TYPE_CHECKING:
    from judge.runner import RunReport
    from judge.runner.generate import Generation, Kept


@click.command()
@click.argument("task_name", metavar="TASK")
@model_option()
@options_of(
    *("limit", "where", "examples", "concurrency", "max", "max_output_tokens", "temperature", "seed"),
    *("asked_as", "base_url", "settings", "timeout"),
)
@estimate_option
@db_option
@json_option
@click.option(
    "--context",
    required=True,
    help="Passages to show: none, all, oracle, fixed5, top:K or misleading. Add +noise:N "
    "to include N noise passages.",
)
@click.option("--ranking", help="With top:K: name of the ranking, if the study has several rankings.")
@click.option("--stage", help="With top:K: stage of the ranking, if the ranking has several stages.")
@click.option(
    "--shown",
    help="For urag_aware: probabilities to show, as RUN:self, RUN:wrong or RUN:wrong-second.",
)
@click.option("--system", help="Name of the system under test (default: the model).")
@also_generate_option
def generate(task_name: str, model: str, **options: Any) -> int:
    """Answer items with a model, and store the answers.

    \b
    judge answers generate qa_answer -m openai/gpt-5-mini --context none
    judge answers generate verdict -m openai/gpt-5-mini --context top:5
    judge answers generate multiple_choice -m llamacpp/smollm2 --context oracle+noise:10

    TASK is a task that labels items, such as qa_answer, verdict or multiple_choice. Like judge run, the
    command starts a run. To resume, run it again. No request is sent twice.

    The context is stored as the condition of the answers. --shown starts a second pass, in which the model
    sees the option probabilities of an earlier run. With 'self', the probabilities are unchanged. With
    'wrong', the highest and the lowest probability are swapped. With 'wrong-second', the two highest are
    swapped.
    """
    from judge.runner import contexts, second
    from judge.runner.generate import Generation, check, check_not_imported, check_origin

    given = RunOptions.from_options(options)
    provider = provider_of(model, given)
    with Store.open(options["db"], create=False) as store:
        plan = make_plan(task_name, model, given, store)
        context = contexts.parse(
            store,
            options["context"],
            ranking=options["ranking"],
            stage=options["stage"],
        )
        system = options["system"] or plan.model
        # A model's output must not be scored as that of an imported system, unless the user allows it.
        check_origin(store, system, options["also_generate"])
        shown = second.read_probabilities(store, options["shown"]) if options["shown"] else None
        # A second pass has its own condition, so that it does not replace the first answers.
        condition = context.name + (shown.mark if shown else "")
        check(plan.task, system, condition, shown)
        check_not_imported(store, system, condition)
        passages = contexts.contexts(store, context)
        if options["examples"]:
            from judge.runner.examples import showing

            # The examples are shown with passages of the same context as the questions.
            task = showing(store, plan.task, options["examples"].split(","), passages)
            plan = dataclasses.replace(plan, task=task)
        generation = Generation(plan, system, condition, passages, shown=shown)
        if options["is_estimate"]:
            return estimate(store, Asking(generation.with_contexts(), provider), options["as_json"])
        # One model may answer under two conditions at the same time: these are different runs.
        with store.run_lock(f"{plan.task.name} {plan.model} {condition} {system}"):
            report, kept = asyncio.run(_execute(store, generation, provider))
    return _finish(generation, report, kept, options)


async def _execute(store: Store, generation: Generation, provider: Provider) -> tuple[RunReport, Kept]:
    from judge.runner import open_patiently
    from judge.runner.generate import generate as make

    progress = Progress(sys.stderr)
    try:
        plan = await open_patiently(provider, generation.plan, store=store)
        return await make(store, dataclasses.replace(generation, plan=plan), provider, progress)
    finally:
        progress.end()
        await provider.close()


def _finish(generation: Generation, report: RunReport, kept: Kept, options: dict[str, Any]) -> int:
    document = {
        **report.as_json(generation.plan),
        "system": generation.system,
        "condition": generation.condition,
        **dataclasses.asdict(kept),
    }
    if options["as_json"]:
        emit_json("answers_generate", document)
    else:
        print(f"run {report.run_id}: {generation.plan.task.name} with {generation.plan.model}")
        print(
            f"{report.labelled} of {report.units} items have an answer, {kept.new} of them new; "
            f"system '{generation.system}', condition '{generation.condition}'"
        )
        if kept.answers:
            print(f"next: {command('judge answers show')}")
    notes(kept.problems, "not kept")
    if report.left_out:
        note(
            f"note: {report.left_out} items were left out, because they have no passage for this context or lack an input of the task"
        )
    code = exit_code(report)
    # All calls may have succeeded although an answer could not be stored.
    return Exit.ERROR if kept.problems and code == Exit.DONE else code
