"""Requests to send to a loopback OpenAI server, and a provider that is ready to send them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from judge.providers.base import Settings
from judge.providers.openai import Provider
from judge.types import Message, Request
from tests.loopback.openai_server import OpenAIServer

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
async def opened(server: OpenAIServer, **settings: Any) -> AsyncIterator[Provider]:
    """A provider that has probed; what the probes sent is forgotten."""
    provider = Provider("m", Settings(base_url=server.url, **settings))
    try:
        await provider.open()
        server.reset_counts()
        yield provider
    finally:
        await provider.close()
