"""Requests to send to a loopback OpenAI server, and a provider that is ready to send them."""

import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from judge.errors import ProviderError
from judge.providers.base import Provider as AnyProvider
from judge.providers.base import Settings
from judge.providers.openai import Provider
from judge.types import Message, Request
from tests.loopback.openai_server import OpenAIServer

P = TypeVar("P", bound=AnyProvider)
LABELS = ["support", "refute", "neutral"]
SCHEMA = {
    "type": "object",
    "properties": {"stance": {"type": "string", "enum": LABELS}},
    "required": ["stance"],
    "additionalProperties": False,
}
SHAPE = 'Answer with one JSON object and nothing else: {"stance": "support" | "refute" | "neutral"}'


def ask(text: str = "Claim: tea cures colds.", **changes: Any) -> Request:
    messages = (
        Message("system", f"You judge evidence.\n{SHAPE}"),
        Message("user", f"{text}\nAnswer (JSON):"),
    )
    return Request(**{"model": "openai/m", "messages": messages, "prefix": 1, "schema": SCHEMA, **changes})


def ask_code(text: str = "Claim: tea cures colds.") -> Request:
    turns = (Message("system", "A = support"), Message("user", f"{text}\nAnswer (A, B, C):"))
    return Request("openai/m", turns, 1, codes="ABC")


@asynccontextmanager
async def running(provider: P) -> AsyncIterator[P]:
    """A provider that is open."""
    try:
        await provider.open()
        yield provider
    finally:
        await provider.close()


@asynccontextmanager
async def opened(server: OpenAIServer, **settings: Any) -> AsyncIterator[Provider]:
    """A provider that has probed; what the probes sent is forgotten."""
    async with running(Provider("m", Settings(base_url=server.url, **settings))) as provider:
        server.reset_counts()
        yield provider


async def failing(provider: AnyProvider, request: Request, *secrets: str) -> ProviderError:
    """The error of one call: a short printable line, and no secret shows in it or in its causes."""
    with pytest.raises(ProviderError) as caught:
        await provider.complete(request)
    shown = "".join(traceback.format_exception(caught.value))
    assert [secret for secret in secrets if secret in shown] == []
    assert len(str(caught.value)) < 500 and str(caught.value).isprintable()
    return caught.value
