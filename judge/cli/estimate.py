"""judge run --estimate: estimate the cost and time of a run before any paid call."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import click

from judge.asking.run import Asking, estimate_run
from judge.console import emit_json, note, print_lines
from judge.document.terminal import show
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
    from judge.runner.estimate_document import as_document

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
        show(as_document(plan.task.name, plan.model, forecast))
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
