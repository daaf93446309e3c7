"""The anthropic provider against a real server on the loopback: requests, caching, replies, faults."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from judge.providers.anthropic import Provider
from judge.providers.base import Settings
from judge.types import Message, Usage
from tests.loopback.anthropic_server import AnthropicServer
from tests.loopback.calls import LABELS, SCHEMA, ask, running
from tests.loopback.fixtures import ANTHROPIC_KEY as KEY

SYSTEM, QUESTION = ask().messages
EXAMPLE = (Message("user", "Example claim"), Message("assistant", '{"stance": "refute"}'))
MARK = {"type": "ephemeral"}


@pytest.fixture
async def provider(anthropic_server: AnthropicServer) -> AsyncIterator[Provider]:
    """A provider that is open, with a time-out that no call reaches on a busy machine."""
    async with running(Provider("m", Settings(base_url=anthropic_server.url, timeout=60.0))) as made:
        yield made


async def test_opening_asks_for_the_model_and_costs_no_tokens(
    anthropic_server: AnthropicServer, provider: Provider
) -> None:
    assert anthropic_server.requests == 0
    assert provider.label_codes is False
    assert provider.describe()["base_url"] == anthropic_server.url
    assert KEY not in json.dumps(provider.describe()) + repr(provider)


async def test_a_request_has_a_schema_and_no_sampling_parameters(
    anthropic_server: AnthropicServer, provider: Provider
) -> None:
    reply = await provider.complete(ask(temperature=0.0, seed=7, max_tokens=99, codes="AB"))
    (body,) = anthropic_server.bodies
    assert body == {
        "model": "m",
        "system": [{"type": "text", "text": SYSTEM.content, "cache_control": MARK}],
        "messages": [{"role": "user", "content": QUESTION.content}],
        "max_tokens": 99,
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }
    assert json.loads(reply.text)["stance"] in LABELS
    assert (reply.stop, reply.resolved_model) == ("stop", "m-20260101")
    assert reply.tokens is None
    (head,) = anthropic_server.heads
    assert "anthropic-version: " in head
    assert KEY in head


async def test_the_last_block_of_the_prefix_is_marked_for_the_cache(
    anthropic_server: AnthropicServer, provider: Provider
) -> None:
    turn = Message("user", "turn")
    await provider.complete(ask(messages=(SYSTEM, *EXAMPLE, turn), prefix=3))
    await provider.complete(ask(messages=(turn,), prefix=0))
    marked, bare = anthropic_server.bodies
    assert "cache_control" not in marked["system"][0]
    assert marked["messages"][1]["content"] == [
        {"type": "text", "text": EXAMPLE[1].content, "cache_control": MARK}
    ]
    assert marked["messages"][2] == {"role": "user", "content": "turn"}
    assert "system" not in bare
    assert bare["messages"] == [{"role": "user", "content": "turn"}]


async def test_the_prefix_leads_with_the_same_bytes(
    anthropic_server: AnthropicServer, provider: Provider
) -> None:
    for text in ("one", "another, longer one"):
        await provider.complete(ask(messages=(SYSTEM, *EXAMPLE, Message("user", text)), prefix=3))
    first, second = anthropic_server.raw
    end = first.index(b'{"role": "user", "content": "one"}')
    assert first[:end] == second[:end]
    assert first[:end].count(b"cache_control") == 1
    assert json.dumps(EXAMPLE[1].content).encode() in first[:end]


async def test_a_server_without_structured_output_gets_the_plain_prompt(
    anthropic_server: AnthropicServer, provider: Provider
) -> None:
    anthropic_server.structured = False
    replies = await asyncio.gather(*(provider.complete(ask(f"Claim {i}")) for i in range(4)))
    assert all(json.loads(r.text)["stance"] in LABELS for r in replies)
    assert provider.describe()["format"] == "plain"
    anthropic_server.reset_counts()
    await provider.complete(ask())
    assert anthropic_server.requests == 1


@pytest.mark.parametrize(
    ("fault", "stop"), [("refusal", "refusal"), ("length", "length"), ("window", "length")]
)
async def test_why_a_reply_stopped(
    anthropic_server: AnthropicServer, provider: Provider, fault: str, stop: str
) -> None:
    anthropic_server.script(fault)
    assert (await provider.complete(ask())).stop == stop


async def test_usage_adds_up_the_cached_parts(anthropic_server: AnthropicServer, provider: Provider) -> None:
    fresh = (len(SYSTEM.content) + len(QUESTION.content)) // 4
    anthropic_server.cached = (1000, 0)
    assert (await provider.complete(ask())).usage == Usage(fresh + 1000, 6, 1000, 0)
    anthropic_server.cached = (0, 1000)
    assert (await provider.complete(ask())).usage == Usage(fresh + 1000, 6, 0, 1000)


async def test_rate_headers_become_numbers_and_seconds(
    anthropic_server: AnthropicServer, provider: Provider
) -> None:
    def later(seconds: float) -> str:
        return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds")

    anthropic_server.extra_headers = {
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": later(60).replace("+00:00", "Z"),
        "anthropic-ratelimit-tokens-remaining": "39000",
        "anthropic-ratelimit-tokens-reset": later(-5),
    }
    rate = (await provider.complete(ask())).rate
    assert rate is not None
    assert (rate.remaining_requests, rate.remaining_tokens) == (49, 39000)
    assert rate.reset_requests == pytest.approx(60, abs=2)
    assert rate.reset_tokens == 0.0


async def test_a_compatible_server_may_list_no_models_and_end_in_v1(
    anthropic_server: AnthropicServer,
) -> None:
    anthropic_server.listing = False
    async with running(Provider("m", Settings(base_url=anthropic_server.url + "/v1/"))) as provider:
        await provider.complete(ask())
