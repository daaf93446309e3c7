"""judge run --estimate: estimate the cost and time of a run before any paid call."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import click

from judge.asking.run import Asking, estimate_run
from judge.console import emit_json, note, print_lines
from judge.errors import Exit
from judge.store import Store
from judge.types import Message

estimate_option = click.option(
    "--estimate",
    "is_estimate",
    is_flag=True,
    help="Print cost, time and the first prompt, without calling the model.",
)


def estimate(store: Store, prepared: Asking, as_json: bool) -> int:
    """Print the estimated cost and the first prompt of the run, without judging any unit."""
    plan = prepared.plan
    # The prompt is rendered first, because the estimate closes the provider.
    messages = _first_prompt(store, prepared)
    forecast = estimate_run(store, prepared)
    if as_json:
        document = dataclasses.asdict(dataclasses.replace(forecast, price=None))
        document["price"] = None if forecast.price is None else forecast.price.as_json()
        document["basis"] = list(forecast.basis)
        document["first_prompt"] = [{"role": m.role, "content": m.content} for m in messages]
        emit_json("estimate", {"task": plan.task.name, "model": plan.model, **document})
    else:
        _print(plan.task.name, plan.model, forecast)
        for message in messages:
            print_lines(f"\n--- {message.role}\n{message.content}")
    if forecast.left_out:
        inputs = ", ".join(plan.task.required_inputs)
        note(
            f"note: {forecast.left_out} units were left out, because they lack an input ({inputs}) or are few-shot examples"
        )
    return Exit.DONE


def _first_prompt(store: Store, prepared: Asking) -> Sequence[Message]:
    """Return the messages for the plan's first unit, or an empty tuple if there is no unit."""
    from judge.runner.requests import Asker
    from judge.store import selection

    plan = prepared.plan
    selection.select(store, plan.task, plan.selection)
    unit = next(iter(selection.pending(store, plan.task, run_id="")), None)
    asker = Asker(plan.task, plan.model, prepared.provider, plan.sampling)
    return () if unit is None else asker.request(unit, 0)[0].messages


def _print(task: str, model: str, e: Any) -> None:
    print(f"{task} with {model}: {e.calls:,} calls for {e.units:,} units")
    print(
        f"tokens: about {e.input_tokens:,} in, {e.output_tokens:,} out (at most {e.most_output_tokens:,} out)"
    )
    if e.price is None:
        print("cost: no price is known for this model; to set a price, use --prices FILE")
    # A model in this process costs nothing, and a server may have a price of 0.
    elif e.most == 0:
        print(f"cost: free of charge ({e.price.source})")
    else:
        batch = "no batch price" if e.batch is None else f"as a batch {_money(e.batch)}"
        # Not every vendor charges less for a prompt that it has cached.
        saved = "" if e.cached == e.online else f", with a cached prompt prefix {_money(e.cached)}"
        most = "" if e.most is None else f"; at most {_money(e.most)} if no call has to be repeated"
        print(f"cost: online {_money(e.online)}{saved}; {batch}{most} ({e.price.source})")
    print(f"time: about {_words(e.seconds)}, assuming {e.bound_by}")
    for line in e.basis:
        print(f"- {line}")


def _money(dollars: float) -> str:
    """Format an amount in dollars with two decimals, or with four decimals if it is below $1."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"


def _words(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        # 90 minutes are easier to read than 1.5 hours.
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"
