"""Vectors over the embeddings wire format: what is sent, what is read, and every way a server fails."""

from __future__ import annotations

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
from judge.providers.base import Settings
from judge.providers.embeddings import Embedder
from tests.loopback.embeddings_server import EmbeddingsServer
from tests.loopback.faults import Fault


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer(record=True) as found:
        yield found


@pytest.fixture
async def embedder(server: EmbeddingsServer) -> AsyncIterator[Embedder]:
    found = Embedder("openai/m", Settings(base_url=server.url, timeout=5))
    yield found
    await found.close()


async def test_vectors_come_back_in_the_order_of_the_texts(
    server: EmbeddingsServer, embedder: Embedder
) -> None:
    server.vectors = {"one": [1.0, 0.0], "two": [0.5, -2.0]}
    found = await embedder.embed(["two", "one"])
    assert found.vectors.tolist() == [[0.5, -2.0], [1.0, 0.0]]
    # Four characters a token: (3 + 3) // 4 = 1.
    assert (found.tokens, found.resolved_model) == (1, "m-2026")
    assert server.bodies == [{"model": "m", "input": ["two", "one"], "encoding_format": "float"}]
    assert embedder.describe() == {"model": "m", "base_url": server.url, "options": {}}


async def test_dimensions_are_sent(server: EmbeddingsServer) -> None:
    embedder = Embedder("openai/m", Settings(server.url, options={"dimensions": "8"}))
    await embedder.embed(["a"])
    await embedder.close()
    assert server.bodies[0]["dimensions"] == 8


FAULTS: list[tuple[str, type[ProviderError], str]] = [
    ("429", RateLimited, "rate limit (HTTP 429)"),
    ("quota", KeyProblem, "has no quota left"),
    ("500", ServerFault, "HTTP 500"),
    ("401", KeyProblem, "refused the key"),
    ("404", Rejected, "does not know model 'm'"),
    ("reset", Unreachable, "connection lost"),
    ("cut", Unreachable, "connection lost"),
    ("truncated", ServerFault, "no list of embeddings"),
    ("not_json", ServerFault, "no list of embeddings"),
    ("empty", ServerFault, "no list of embeddings"),
    ("unequal", ServerFault, "or of unequal ones"),
    ("fewer", ServerFault, "1 vectors came for 2 texts"),
    ("zero", ServerFault, "only zeros"),
    ("infinite", ServerFault, "not finite"),
]


@pytest.mark.parametrize(("kind", "error", "told"), FAULTS, ids=[kind for kind, *_ in FAULTS])
async def test_each_fault_is_one_error(
    server: EmbeddingsServer, embedder: Embedder, kind: str, error: type[ProviderError], told: str
) -> None:
    server.script(kind)
    with pytest.raises(error) as raised:
        await embedder.embed(["a", "b"])
    assert told in str(raised.value) and "\n" not in str(raised.value)
    assert (await embedder.embed(["a", "b"])).vectors.shape == (2, 64), "the next call passes"


async def test_a_rate_limit_says_how_long(server: EmbeddingsServer, embedder: Embedder) -> None:
    server.script(Fault("429", headers={"retry-after": "7"}))
    with pytest.raises(RateLimited) as raised:
        await embedder.embed(["a"])
    assert raised.value.retry_after == 7.0


async def test_the_key_is_sent_and_never_told(
    server: EmbeddingsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.key = "sk-right-one-123456"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-one-123456")
    embedder = Embedder("openai/m", Settings(server.url))
    with pytest.raises(KeyProblem) as raised:
        await embedder.embed(["a"])
    await embedder.close()
    assert "wrong-one" not in str(raised.value)
    monkeypatch.setenv("OPENAI_API_KEY", server.key)
    embedder = Embedder("openai/m", Settings(server.url))
    assert len((await embedder.embed(["a"])).vectors) == 1
    await embedder.close()


async def test_nobody_there_and_no_key_for_openai() -> None:
    gone = Embedder("openai/m", Settings("http://127.0.0.1:9/v1"))
    with pytest.raises(Unreachable, match="cannot connect"):
        await gone.embed(["a"])
    await gone.close()
    with pytest.raises(KeyProblem, match="OPENAI_API_KEY is not set"):
        await Embedder("openai/text-embedding-3-small", Settings()).embed(["a"])


@pytest.mark.parametrize(
    ("model", "settings", "told"),
    [
        ("anthropic/x", Settings(), "embeddings come from openai/NAME"),
        ("openai/", Settings(), "embeddings come from openai/NAME"),
        ("openai/m", Settings(options={"dim": "3"}), "no option 'dim'"),
        ("openai/m", Settings(options={"dimensions": "0"}), "not a whole number above 0"),
        ("openai/m", Settings("ftp://x"), "the base URL must look like"),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(model: str, settings: Settings, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Embedder(model, settings)
