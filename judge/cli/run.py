"""judge run: label every unit a task fits, with one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from judge.asking import run as asking
from judge.asking.jobs import run_in_batches
from judge.asking.run import Asking, Ran
from judge.cli.asked import dry_run, finish, watching
from judge.cli.models import ModelName
from judge.cli.options import options_of, with_params
from judge.cli.panel import run_panel
from judge.console import TO_WRITE, Duration, db_option, json_option, note, notes
from judge.errors import UsageError
from judge.run_options import RunOptions, names_of
from judge.store import Store

F = TypeVar("F", bound=Callable[..., Any])


@click.command()
@click.argument("task_name", metavar="TASK")
@click.option(
    "-m",
    "--model",
    type=ModelName(),
    metavar="TEXT",
    help="vendor/model, for example openai/gpt-5-mini or llamacpp/smollm2.",
)
@options_of(but=("prompts", "base_url", "settings", "timeout", "allow_host", "allow_env"))
@click.option(
    "--log-json",
    type=TO_WRITE,
    help="Append what happens to this file, one JSON object a line (counts and errors, no texts).",
)
@click.option("--dry-run", is_flag=True, help="Show units, tokens and the first prompt; call nothing.")
@click.option(
    "--batch", is_flag=True, help="Ask in the provider's batches: half the price, an answer within a day."
)
@click.option(
    "--poll",
    type=Duration(),
    default="60s",
    metavar="TIME",
    help="With --batch: look this often how the batches stand.",
)
@options_of("base_url", "settings", "timeout", "prompts", "allow_host", "allow_env")
@db_option
@json_option
def run(task_name: str, model: str | None, **options: Any) -> int:
    """Label every unit of the study that TASK fits and that this run has not labelled.

    \b
    judge run stance -m openai/gpt-5-mini
    judge run stance -m llamacpp/smollm2 -n 100
    judge run ./mytask.v1.md -m openai/llama --base-url http://127.0.0.1:8000/v1
    judge run stance -m anthropic/claude-haiku-5 --batch --max-cost 20

    The same command goes on where it stopped, whatever stopped it, and asks for nothing twice.
    """
    given = RunOptions.of(options)
    if given.recipe is not None and (code := run_panel(task_name, model, given, options)) is not None:
        return code
    if model is None:
        context = click.get_current_context()
        raise click.MissingParameter(
            ctx=context, param=next(own for own in context.command.params if own.name == "model")
        )
    with Store.open(options["db"], create=False) as store:
        prepared = asking.prepare(task_name, model, given, store)
        notes(prepared.notes)
        prepared = asking.in_study(store, prepared, given)
        if options["dry_run"]:
            return dry_run(store, prepared.plan, prepared.provider, options["as_json"])
        if options["batch"]:
            ran = in_batches(store, prepared, given, options)
        else:
            with watching(prepared.plan, options) as progress:
                ran = asking.run(store, prepared, progress)
        then = asking.what_next(store, ran)
    if ran.calibrated is not None:
        note(f"calibrated by the recipe: run {ran.calibrated}")
    return finish(ran.plan, ran.report, options, then)


def of_run(*names: str, but: Sequence[str] = ()) -> Callable[[F], F]:
    """Gives a command these options of `judge run`: by name, or all of a part of `judge.run_options`.

    Without names all of them, but for some.
    """
    wanted = set(names) | set(names_of(*names))
    chosen = [p for p in run.params if (p.name in wanted if names else p.name not in but)]
    return with_params(chosen)


def in_batches(store: Store, asked: Asking, given: RunOptions, options: dict[str, Any]) -> Ran:
    """The run in the provider's batches. Raises UsageError for options that go with single calls."""
    if options["log_json"]:
        raise UsageError("--log-json goes with single calls: leave it out, or --batch")
    return run_in_batches(store, asked, given, options["poll"], note)
