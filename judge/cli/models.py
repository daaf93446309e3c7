"""judge models: list the vendors, and test whether a model responds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judge import plugins
from judge.asking.run import provider_of
from judge.cli.options import options_of
from judge.commands import command
from judge.console import json_option
from judge.document.terminal import emit_rows, print_result
from judge.errors import Unreachable, UsageError
from judge.providers import base
from judge.providers.base import Provider
from judge.run_options import RunOptions
from judge.types import Unit

if TYPE_CHECKING:
    from judge.runner.requests import Asker

F = TypeVar("F", bound=Callable[..., Any])
Result = TypeVar("Result")


class ModelName(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """The name of a model, in the form vendor/model.

    If it is missing, the error gives the command that lists the vendors.
    """

    name = "vendor/model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text unchanged. Only the vendor can check whether a model exists."""
        return str(value)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Return the message for a missing model.

        It names a model that is always available, and the command that lists the vendors.
        """
        return f"To try the command without a model, use -m scripted/hash; to list the vendors: {command('judge models show')}"


def model_option(*, required: bool = True) -> Callable[[F], F]:
    """Return the option -m of a command that calls a model."""
    return click.option(
        "-m",
        "--model",
        required=required,
        type=ModelName(),
        metavar="TEXT",
        help="Model as vendor/model, e.g. openai/gpt-5-mini.",
    )


provider_options = options_of("base_url", "settings")
"""The options that specify how to reach a model."""


@click.group()
def models() -> None:
    """List the providers, and test a model."""


@models.command("show")
@click.argument("model", metavar="[MODEL]", required=False)
@provider_options
@json_option
def show(model: str | None, base_url: tuple[str, ...], settings: tuple[str, ...], as_json: bool) -> None:
    """List the providers, or test which features a MODEL supports.

    The test sends requests about one made-up passage.

    \b
    judge models show
    judge models show llamacpp/smollm2
    judge models show openai/qwen3 --base-url http://127.0.0.1:8000/v1
    """
    if model is None:
        _list(as_json)
        return
    provider = provider_of(model, RunOptions.from_options({"base_url": base_url, "settings": settings}))
    facts = asyncio.run(_probe(model, provider))
    print_result(
        "model_check", facts, "\n".join(f"{name}: {value}" for name, value in facts.items()), as_json
    )


def _list(as_json: bool) -> None:
    rows = []
    for vendor in dict.fromkeys([*base.vendors(), *plugins.names("providers")]):
        try:
            needs = base.get_needs(vendor)
        except plugins.PluginFailed as problem:
            # A broken plugin must not hide the other vendors.
            rows.append({"vendor": vendor, "ready": False, "needs": str(problem), "models": f"{vendor}/NAME"})
            continue
        rows.append(
            {
                "vendor": vendor,
                "ready": needs.are_met(),
                "needs": needs.words,
                "models": needs.examples or f"{vendor}/NAME",
            }
        )
    emit_rows("models", rows, ["vendor", "ready", "needs", "models"], as_json)


def _asker(model: str, provider: Provider) -> Asker:
    """Return an Asker for the task `stance`, or for the task `relevant` if the model cannot produce the
    labels of `stance`.
    """
    from judge.prompts import load_task
    from judge.runner.requests import Asker, Sampling

    try:
        return Asker(load_task("stance"), model, provider, Sampling())
    except UsageError:
        return Asker(load_task("relevant"), model, provider, Sampling())


async def _retry_stale(call: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Return the result of a call. Retry it once if the server had closed the connection that the call reused."""
    try:
        return await call()
    except Unreachable as error:
        if not error.stale:
            raise
        return await call()


async def _probe(model: str, provider: Provider) -> dict[str, Any]:
    try:
        await _retry_stale(provider.open)
        asker = _asker(model, provider)
        # These inputs suffice for both tasks of `_asker`: one shows the claim, the other shows the
        # question.
        claim = "Water boils at 100 °C at sea level."
        inputs = {"claim": claim, "question": claim, "passage": "At sea level, water boils at 100 °C."}
        request, _ = asker.request(Unit("check", inputs, {}), 0)
        # Only the call is timed, because loading a local model takes longer.
        started = time.monotonic()
        reply = await _retry_stale(lambda: provider.complete(request))
        parsed = asker.accept(reply, request)
    finally:
        await provider.close()
    return {
        "model": model,
        "resolved_model": reply.resolved_model,
        "provider": dict(provider.describe()),
        "answers": str(asker.mode),
        "label_probabilities": provider.label_codes,
        "seconds": round(time.monotonic() - started, 3),
        "status": str(parsed.status),
        "label": parsed.labels[0].value if parsed.labels else None,
        "reason": parsed.reason,
    }
