"""judge suite: everything that a paper's numbers need, done by one model, and then the numbers."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click

from judge.asking.scores import asked
from judge.cli.papers import Papers
from judge.cli.retrieve import retrieve
from judge.cli.run import exit_code, run
from judge.cli.scored import emit
from judge.cli.scoring import (
    by_option,
    how,
    interval_options,
    paper_options,
    rows_options,
    system_option,
)
from judge.console import db_option, note, output_options, pairs
from judge.errors import Exit
from judge.suites.paper import Paper
from judge.suites.papers import PAPERS
from judge.suites.steps import Incomplete, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from judge.prompts import Task
    from judge.providers.base import Provider
    from judge.runner import Plan
    from judge.store import Store
    from judge.suites.perform import Performed

ASKING = (
    "concurrency", "replicas", "patience", "retry", "max_tokens", "max_cost", "max_time", "prices", "max_output_tokens", "temperature", "no_temperature", "answers",
    "label_order", "rationale", "prompts", "same_model", "base_url", "settings", "timeout",
)  # fmt: skip
"""How the model is asked: options of judge run that a suite has too."""


@click.group(cls=Papers)
def suite() -> None:
    """Do all the runs that a paper's numbers need with one model, then print them.

    \b
    judge suite garage -m openai/gpt-5-mini
    judge suite raguard -m llamacpp/smollm2 -n 20 --sample 1
    judge suite mirage -m openai/llama --base-url http://127.0.0.1:8000/v1

    What the study has already is not asked for again, and the same command goes on where it stopped. Step by step
    it is judge answers generate, judge run and judge score.
    """


def _command(paper: Paper) -> click.Command:
    text = f"Do what {paper.title} needs, then print its numbers.\n\n\b\njudge suite {paper.name} -m openai/gpt-5-mini"

    @click.command(paper.name, help=text, short_help=paper.title)
    @click.option(
        "-m", "--model", required=True, help="The judge; also the system under test, unless --system says."
    )
    @system_option
    @rows_options
    @paper_options(paper)
    @interval_options
    @by_option
    @db_option
    @output_options
    def command(model: str, **options: Any) -> int:
        from judge.providers import base
        from judge.store import Store
        from judge.suites.result import score as scored

        settings = base.Settings(
            options["base_url"], options["timeout"], pairs(options["settings"], "--option")
        )
        provider = base.get(model, settings)
        wanted = asked(paper, {**options, "models": (model,)})
        with Store.open(options["db"], create=False) as store:

            def missing() -> Incomplete | None:
                try:
                    scored(store, paper, wanted, interval=None)
                except Incomplete as lacking:
                    return lacking
                return None

            done = asyncio.run(_perform(store, missing, provider, _plan(model, options), _loader(options)))
            for problem in done.problems:
                note(f"not kept: {problem}")
            if done.stopped is not None:
                code = exit_code(done.stopped)
                return code if code != Exit.DONE else Exit.INCOMPLETE
            found = scored(store, paper, wanted, by=options["by"], **how(options))
        emit(found, options["as_json"], options["as_csv"])
        return Exit.DONE

    command.params = [*command.params, *(p for p in run.params if p.name in ASKING)]
    return command


def _plan(model: str, options: dict[str, Any]) -> Plan:
    """How the model is asked; the task is each step's own."""
    from judge.prompts import load_task
    from judge.runner import Plan
    from judge.runner.prices import read_prices
    from judge.runner.requests import Sampling
    from judge.runner.retry import Patience

    sampling = Sampling(
        temperature=None if options["no_temperature"] else options["temperature"],
        max_output_tokens=options["max_output_tokens"],
        answers=options["answers"],
        label_order=options["label_order"],
    )
    return Plan(
        task=load_task("qa_answer"),
        model=model,
        sampling=sampling,
        concurrency=options["concurrency"],
        retry=options["retry"],
        max_tokens=options["max_tokens"],
        max_cost=options["max_cost"],
        max_time=options["max_time"],
        patience=Patience(outage=options.get("patience") or 1800.0),
        prices=read_prices(options["prices"]) if options["prices"] else None,
        same_model=options["same_model"],
    )


def _loader(options: dict[str, Any]) -> Callable[[str], Task]:
    """Reads a step's task, with the rationale asked for where it has labels."""
    from judge.prompts import load_task

    def load(name: str) -> Task:
        task = load_task(name, options["prompts"])
        labelled = any(question.labels for question in task.spec.questions)
        return task.thinking(options["rationale"]) if labelled else task

    return load


async def _perform(
    store: Store, missing: Any, provider: Provider, plan: Plan, load: Callable[[str], Task]
) -> Performed:
    """Open the provider when there is something to do, and do it."""
    from judge.cli.progress import Progress
    from judge.runner import open_patiently
    from judge.suites.perform import Performed, perform

    if missing() is None:
        return Performed()

    def found(step: Step) -> None:
        words = step.words(str(store.path))[2:]
        with contextlib.redirect_stdout(sys.stderr):
            retrieve.main(words, prog_name="judge retrieve", standalone_mode=False)

    def told(step: Step) -> None:
        note(f"suite: {step.why}")

    try:
        plan = await open_patiently(provider, plan)
        return await perform(store, missing, provider, plan, lambda: Progress(sys.stderr), found, told, load)
    finally:
        await provider.close()


suite.make = _command
for _paper in PAPERS.values():
    suite.add_command(_command(_paper))
