"""judge models: which vendors there are, and whether a model answers."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click

from judge import plugins
from judge.cli.options import options_of
from judge.commands import command
from judge.console import emit_rows, json_option, output_options, pairs, tell
from judge.errors import UsageError
from judge.permissions import check_server
from judge.providers import base
from judge.providers.base import Provider, Settings
from judge.types import Unit

if TYPE_CHECKING:
    from judge.runner.requests import Asker


class ModelName(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """vendor/model; where it is missing, what there is."""

    name = "vendor/model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Text as it is: which model there is, its vendor knows."""
        return str(value)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Where models are shown, and one that is always there."""
        return f"-m scripted/hash tries things out without a model; these are the vendors: {command('judge models list')}"


provider_options = options_of("base_url", "settings", "timeout")
"""The options that say how to reach a model."""

allow_options = options_of("allow_host", "allow_env")
"""What a file may name beside the vendors' own servers and variables (`judge.permissions`)."""


@click.group()
def models() -> None:
    """List the providers, and check that a model answers."""


@models.command("list")
@output_options
def list_(as_json: bool, as_csv: bool) -> None:
    """List the vendors, what each needs and whether it is there."""
    rows = []
    for vendor in dict.fromkeys([*base.vendors(), *plugins.names("providers")]):
        try:
            needs = base.needs(vendor)
        except plugins.PluginFailed as problem:
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
    emit_rows("models", rows, ["vendor", "ready", "needs", "models"], as_json, as_csv)


@models.command("check")
@click.argument("model")
@provider_options
@json_option
def check(model: str, base_url: str | None, settings: tuple[str, ...], timeout: float, as_json: bool) -> None:
    """Ask MODEL about one made-up passage and say what it can do.

    \b
    judge models check llamacpp/smollm2
    judge models check openai/gpt-5-mini
    judge models check openai/qwen3 --base-url http://127.0.0.1:8000/v1
    """
    given = check_server(None, model.partition("/")[0], base_url, pairs(settings, "--option"))
    provider = base.get(model, Settings(base_url, timeout, given))
    facts = asyncio.run(_probe(model, provider))
    tell("model_check", facts, "\n".join(f"{name}: {value}" for name, value in facts.items()), as_json)


def _asker(model: str, provider: Provider) -> Asker:
    """On stance; where a model that compares two texts has no label of it, on relevance."""
    from judge.prompts import load_task
    from judge.runner.requests import Asker, Sampling

    try:
        return Asker(load_task("stance"), model, provider, Sampling())
    except UsageError:
        return Asker(load_task("relevant"), model, provider, Sampling())


async def _probe(model: str, provider: Provider) -> dict[str, Any]:
    try:
        await provider.open()
        asker = _asker(model, provider)
        claim = "Water boils at 100 °C at sea level."
        inputs = {"claim": claim, "question": claim, "passage": "At sea level, water boils at 100 °C."}
        request, _ = asker.request(Unit("check", inputs, {}), 0)
        started = time.monotonic()
        reply = await provider.complete(request)
        parsed = asker.parse(reply, request)
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
