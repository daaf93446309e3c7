"""judge suite: everything that a paper's numbers need, done by one model, and then the numbers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from judge.asking.run import RunOptions, make_plan, provider_of
from judge.asking.scores import asked
from judge.cli.asked import exit_code
from judge.cli.progress import Progress
from judge.cli.run import of_run
from judge.cli.scored import emit
from judge.cli.scoring import (
    Papers,
    by_option,
    how,
    interval_options,
    paper_options,
    rows_options,
    system_option,
)
from judge.console import db_option, note, notes, output_options
from judge.errors import Exit
from judge.providers.base import Provider
from judge.store import Store
from judge.suites.paper import Paper
from judge.suites.papers import PAPERS
from judge.suites.steps import Incomplete

if TYPE_CHECKING:
    from judge.prompts import Task
    from judge.runner import Plan
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
    @of_run(*ASKING)
    def command(model: str, **options: Any) -> int:
        from judge.suites.result import score as scored

        # How the model is asked; tasks and units are those of each step.
        own = RunOptions.of({name: options[name] for name in ASKING if name != "rationale"})
        provider, plan = provider_of(model, own), make_plan("qa_answer", model, own)
        wanted = asked(paper, {**options, "models": (model,)})
        with Store.open(options["db"], create=False) as store:

            def missing() -> Incomplete | None:
                try:
                    scored(store, paper, wanted, interval=None)
                except Incomplete as lacking:
                    return lacking
                return None

            done = asyncio.run(_perform(store, missing, provider, plan, _loader(options)))
            notes(done.problems, "not kept")
            if done.stopped is not None:
                code = exit_code(done.stopped)
                return code if code != Exit.DONE else Exit.INCOMPLETE
            found = scored(store, paper, wanted, by=options["by"], **how(options))
        emit(found, options["as_json"], options["as_csv"])
        return Exit.DONE

    return command


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
    from judge.runner import open_patiently
    from judge.suites.perform import Performed, perform

    if missing() is None:
        return Performed()

    def told(text: str) -> None:
        note(f"suite: {text}")

    try:
        plan = await open_patiently(provider, plan, store=store)
        return await perform(store, missing, provider, plan, lambda: Progress(sys.stderr), told, load)
    finally:
        await provider.close()


suite.make = _command
for _paper in PAPERS.values():
    suite.add_command(_command(_paper))
