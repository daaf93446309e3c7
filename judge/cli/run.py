"""judge run: label every unit a task fits, with one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from judge.asking import run as asking
from judge.asking.jobs import run_in_batches
from judge.asking.run import Asking, Ran, RunOptions
from judge.cli.asked import dry_run, finish, watching
from judge.cli.models import ModelName, allow_options, provider_options
from judge.cli.panel import run_panel
from judge.cli.tasks import prompts_option
from judge.console import TO_READ, TO_WRITE, Duration, db_option, json_option, note, notes
from judge.errors import UsageError
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
@click.option("-n", "limit", type=click.IntRange(1), help="The first N units only.")
@click.option(
    "--where", help="Only units for which this SQL condition on unit_texts holds, as in \"dataset = 'mine'\"."
)
@click.option(
    "--sample", type=int, metavar="SEED", help="Take units in a seeded random order (with -n: a sample)."
)
@click.option(
    "--relevant",
    help="For tasks about relevant passages: answer, answer+related, marked, or RUN:answer by a judge's run.",
)
@click.option(
    "--examples",
    metavar="ITEM,ITEM",
    help="Show these items of the study, with their gold labels, as few-shot examples; they are not asked about.",
)
@click.option("--repeats", default=1, type=click.IntRange(1), help="Ask this often.")
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    help="Calls at once to each server, from the first call on (default: at most 100, growing from what the study last "
    "sustained there).",
)
@click.option(
    "--replicas",
    metavar="URL,URL",
    callback=lambda ctx, param, value: tuple(filter(None, (value or "").replace(" ", "").split(","))),
    help="More servers with the same model: calls are spread, dead ones dropped and taken back.",
)
@click.option(
    "--patience",
    type=Duration(),
    default="30m",
    metavar="TIME",
    help="Wait this long for a server that has gone, or for a study that cannot be written.",
)
@click.option(
    "--retry",
    multiple=True,
    type=click.Choice(["unparsed", "failed", "refused", "truncated"]),
    help="Ask again where an earlier answer ended so (failed ones are always asked again).",
)
@click.option(
    "--max-tokens", type=click.IntRange(1), help="Never use more than this many tokens (in and out)."
)
@click.option(
    "--max-cost", type=click.FloatRange(0, min_open=True), help="Never spend more than this many US dollars."
)
@click.option(
    "--max-time", type=Duration(), metavar="TIME", help="Send nothing more after this long: 2h, 30m or 90s."
)
@click.option(
    "--prices", type=TO_READ, help="JSON file of prices by model; default: list prices of the vendors."
)
@click.option("--max-output-tokens", default=512, type=click.IntRange(1), help="Longest reply.")
@click.option("--temperature", default=0.0, type=click.FloatRange(0), help="Sampling temperature.")
@click.option("--no-temperature", is_flag=True, help="Leave the temperature to the provider.")
@click.option("--seed", type=int, help="Sampling seed, for providers that take one.")
@click.option(
    "--answers",
    type=click.Choice(["auto", "codes", "words", "json"]),
    default="auto",
    help="One letter or the label itself, with label probabilities; or JSON. auto: letters where the model gives "
    "probabilities.",
)
@click.option(
    "--rationale",
    type=click.Choice(["none", "before", "after"]),
    help="Reasoning before or after the labels (default: as the task's file says); with letters, before is two calls.",
)
@click.option("--label-order", default="declared", help="declared, reversed or shuffled:SEED.")
@click.option(
    "--orders",
    default=1,
    type=click.IntRange(1),
    metavar="K",
    help="Show the labels in K orders, a call each, and average their probabilities.",
)
@click.option(
    "--guidelines/--no-guidelines",
    show_default=False,
    help="Show the model the guidelines that people are given (default: not).",
)
@click.option(
    "--as", "asked_as", metavar="NAME", help="Call this judge NAME: another one than the model's others."
)
@click.option(
    "--same-model", is_flag=True, help="This address has the run's model, whatever name it gives it."
)
@click.option(
    "--recipe",
    type=TO_READ,
    help="Ask as judge improve found it best: mode, order, examples, calibration. A panel's names its models itself.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    help="Ask from this process, or from workers on a Ray cluster (RAY_ADDRESS; without it one is started here).",
)
@click.option("--workers", default=2, type=click.IntRange(1), help="With ray: how many, each with the model.")
@click.option("--worker-cpus", default=0.1, type=click.FloatRange(0), help="With ray: CPUs each takes.")
@click.option("--worker-gpus", default=0.0, type=click.FloatRange(0), help="With ray: GPUs each takes.")
@click.option(
    "--worker-command",
    metavar="COMMAND",
    help="With ray: a server that each worker starts and asks, as in 'vllm serve MODEL --port {port}'.",
)
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
@provider_options
@allow_options
@prompts_option
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
    given = asking.RunOptions.of(options)
    if given.recipe is not None and (code := run_panel(task_name, model, given, options)) is not None:
        return code
    if model is None:
        context = click.get_current_context()
        raise click.MissingParameter(
            ctx=context, param=next(own for own in context.command.params if own.name == "model")
        )
    asked = asking.prepare(task_name, model, given)
    notes(asked.notes)
    with Store.open(options["db"], create=False) as store:
        asked = asking.in_study(store, asked, given)
        if options["dry_run"]:
            return dry_run(store, asked.plan, asked.provider, options["as_json"])
        if options["batch"]:
            ran = in_batches(store, asked, given, options)
        else:
            with watching(asked.plan, options) as progress:
                ran = asking.run(store, asked, progress)
        then = asking.what_next(store, ran)
    if ran.calibrated is not None:
        note(f"calibrated by the recipe: run {ran.calibrated}")
    return finish(ran.plan, ran.report, options, then)


def of_run(*names: str, but: Sequence[str] = ()) -> Callable[[F], F]:
    """Gives a command these options of `judge run`, by the same names (none named: all of them, but for some)."""
    chosen = [p for p in run.params if (p.name in names if names else p.name not in but)]

    def give(function: F) -> F:
        known = getattr(function, "__click_params__", [])
        # click keeps them in the order of decorators, the last one first.
        function.__click_params__ = [*known, *reversed(chosen)]  # type: ignore[attr-defined]
        return function

    return give


def in_batches(store: Store, asked: Asking, given: RunOptions, options: dict[str, Any]) -> Ran:
    """The run in the provider's batches. Raises UsageError for options that go with single calls."""
    if options["log_json"]:
        raise UsageError("--log-json goes with single calls: leave it out, or --batch")
    return run_in_batches(store, asked, given, options["poll"], note)
