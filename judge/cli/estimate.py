"""judge estimate: what a run would take, before a call is paid."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from judge.asking.estimate import estimated
from judge.asking.run import in_study, prepare
from judge.cli.run import of_run
from judge.console import emit_json, note
from judge.run_options import RunOptions
from judge.store import Store


@click.command()
@of_run(but=("max_tokens", "max_cost", "max_time", "dry_run", "same_model", "allow_host", "allow_env"))
@click.option("--rpm", type=click.IntRange(1), help="Requests a minute that your account may send.")
@click.option("--tpm", type=click.IntRange(1), help="Tokens a minute that your account may use.")
@click.option(
    "--latency",
    type=click.FloatRange(0, min_open=True),
    help="Seconds a call takes; default: as measured, or 1.",
)
@click.option(
    "--count",
    "counted",
    type=click.IntRange(1, 100),
    help="Let the vendor count the tokens of this many prompts.",
)
def estimate(task_name: str, model: str, **options: Any) -> None:
    """Say what `judge run TASK -m MODEL` would take: calls, tokens, money and time. Nothing is judged.

    \b
    judge estimate stance -m openai/gpt-5-mini
    judge estimate stance -m anthropic/claude-haiku-4-5 --rpm 4000 --tpm 2000000
    """
    from judge.runner.estimate import Throughput
    from judge.runner.rate import MOST

    # Tokens are counted from this process, whoever asks later.
    given = dataclasses.replace(RunOptions.of(options), engine="local")
    with Store.open(options["db"], create=False) as store:
        # The plan is that of `judge run`, recipe, examples and relevant passages included.
        prepared = in_study(store, prepare(task_name, model, given, store), given)
        plan = prepared.plan
        pace = Throughput(plan.concurrency or MOST, options["latency"], options["rpm"], options["tpm"])
        estimates = estimated(store, prepared, pace, options["counted"] or 0)
    document = dataclasses.asdict(dataclasses.replace(estimates, price=None))
    document["price"] = None if estimates.price is None else estimates.price.as_json()
    document["basis"] = list(estimates.basis)
    if options["as_json"]:
        emit_json("estimate", {"task": plan.task.name, "model": plan.model, **document})
    else:
        _print(plan.task.name, plan.model, estimates)
    if estimates.left_out:
        note(f"note: {estimates.left_out} units were left out: they lack an input, or are few-shot examples")


def _print(task: str, model: str, e: Any) -> None:
    print(f"{task} with {model}: {e.calls:,} calls for {e.units:,} units")
    print(
        f"tokens: about {e.input_tokens:,} in, {e.output_tokens:,} out (at most {e.most_output_tokens:,} out)"
    )
    if e.price is None:
        print("cost: no price is known for this model (--prices FILE says one)")
    elif e.most == 0:
        print(f"cost: nothing but time ({e.price.source})")
    else:
        batch = "no batch price" if e.batch is None else f"as a batch {_money(e.batch)}"
        saved = "" if e.cached == e.online else f", with the beginning cached {_money(e.cached)}"
        print(f"cost: online {_money(e.online)}{saved}; {batch}; at most {_money(e.most)} ({e.price.source})")
    print(f"time: about {_words(e.seconds)}, by {e.bound_by}")
    for line in e.basis:
        print(f"- {line}")


def _money(dollars: float) -> str:
    """Cents from a dollar on; below, as much as says something."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"


def _words(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"
