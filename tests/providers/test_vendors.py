"""What the providers of both vendors do alike, against real servers on the loopback."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from judge.errors import (
    KeyProblem,
    ProviderError,
    RateLimited,
    Rejected,
    ServerFault,
    Unreachable,
    UsageError,
)
from judge.providers.base import Provider, Settings, get, vendors
from tests.loopback.anthropic_server import AnthropicServer
from tests.loopback.calls import ask, failing, running
from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer

SERVERS = {"openai": OpenAIServer, "anthropic": AnthropicServer}
KEY = "sk-test-0123456789abcdef"


@pytest.fixture(params=SERVERS)
def vendor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each vendor in turn, with a key and without another address in the environment."""
    name = str(request.param)
    monkeypatch.setenv(f"{name.upper()}_API_KEY", KEY)
    monkeypatch.delenv(f"{name.upper()}_BASE_URL", raising=False)
    return name


@pytest.fixture
async def server(vendor: str) -> AsyncIterator[OpenAIServer | AnthropicServer]:
    async with SERVERS[vendor](record=True) as started:
        yield started


@pytest.fixture
async def provider(vendor: str, server: OpenAIServer | AnthropicServer) -> AsyncIterator[Provider]:
    """A provider that is open, with a time-out that no call reaches on a busy machine."""
    async with running(get(f"{vendor}/m", Settings(base_url=server.url, timeout=60.0))) as made:
        server.reset_counts()
        yield made


async def test_256_calls_are_really_open_at_once(
    server: OpenAIServer | AnthropicServer, provider: Provider
) -> None:
    server.withhold(256)
    replies = await asyncio.gather(*(provider.complete(ask(f"Claim {i}")) for i in range(256)))
    assert len(replies) == server.max_concurrency == 256


FAULTS = [
    (Fault("401"), KeyProblem, "_API_KEY"),
    (Fault("403"), KeyProblem, "_API_KEY"),
    (Fault("quota"), KeyProblem, "left: You"),
    (Fault("429", headers={"retry-after": "3"}), RateLimited, "HTTP 429"),
    (Fault("529", headers={"retry-after": "3"}), RateLimited, "overloaded (HTTP 529)"),
    (Fault("408"), ServerFault, "HTTP 408"),
    (Fault("409"), ServerFault, "HTTP 409"),
    (Fault("500"), ServerFault, "HTTP 500: injected fault 500"),
    (Fault("502"), ServerFault, "HTTP 502"),
    (Fault("503"), ServerFault, "HTTP 503"),
    (Fault("400"), Rejected, "refused the request (HTTP 400)"),
    (Fault("404"), Rejected, "model 'm'"),
    (Fault("413"), Rejected, "HTTP 413"),
    (Fault("reset"), Unreachable, "connection lost"),
    (Fault("cut"), Unreachable, "connection lost"),
    (Fault("truncated"), ServerFault, "is not JSON"),
    (Fault("not_json"), ServerFault, "is not JSON"),
    (Fault("page"), Unreachable, "check the address"),
    (Fault("empty"), ServerFault, "has no"),
]


@pytest.mark.parametrize(("fault", "kind", "says"), FAULTS, ids=[fault.kind for fault, _, _ in FAULTS])
async def test_a_fault_has_its_error_and_the_next_call_works(
    server: OpenAIServer | AnthropicServer,
    provider: Provider,
    fault: Fault,
    kind: type[ProviderError],
    says: str,
) -> None:
    server.script(fault)
    error = await failing(provider, ask(), KEY)
    assert type(error) is kind
    assert says in str(error)
    if isinstance(error, RateLimited):
        assert error.retry_after == 3.0
    assert server.requests == 1, "the provider itself must not retry"
    assert (await provider.complete(ask())).stop == "stop"


async def test_an_answer_that_does_not_come_in_time(
    vendor: str, server: OpenAIServer | AnthropicServer
) -> None:
    server.script(Fault("slow", seconds=600))
    provider = get(f"{vendor}/m", Settings(base_url=server.url, timeout=0.3))
    error = await failing(provider, ask(), KEY)
    await provider.close()
    assert isinstance(error, Unreachable) and error.timed_out
    assert "0.3 s" in str(error)


async def test_a_refused_key_stops_the_opening(vendor: str, server: OpenAIServer | AnthropicServer) -> None:
    server.key = "sk-the-right-one"
    provider = get(f"{vendor}/m", Settings(base_url=server.url))
    with pytest.raises(KeyProblem, match=f"check {vendor.upper()}_API_KEY") as caught:
        await provider.open()
    await provider.close()
    # The server repeats the key in its message.
    assert "[key]" in str(caught.value) and KEY not in str(caught.value)


async def test_a_missing_key_is_named_for_the_vendor_and_allowed_elsewhere(
    vendor: str, server: OpenAIServer | AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"{vendor.upper()}_API_KEY"
    monkeypatch.delenv(variable)
    with pytest.raises(KeyProblem, match=f"{variable} is not set"):
        await get(f"{vendor}/m").open()
    async with running(get(f"{vendor}/m", Settings(base_url=server.url))) as provider:
        await provider.complete(ask())
    head = server.heads[-1].lower()
    assert "authorization" not in head and "x-api-key" not in head


async def test_it_closes_twice_and_opens_again(vendor: str, server: OpenAIServer | AnthropicServer) -> None:
    assert vendor in vendors()
    server.models = ["b", "a"]
    provider = get(f"{vendor}/a", Settings(base_url=server.url))
    await provider.open()
    await provider.close()
    await provider.close()
    await provider.open()
    assert json.loads((await provider.complete(ask())).text)
    await provider.close()


def test_unknown_options_are_named(vendor: str) -> None:
    with pytest.raises(UsageError, match="n_ctx"):
        get(f"{vendor}/m", Settings(options={"n_ctx": "1"}))
