"""Connections are opened one after the other, because small servers let only a few of them wait."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from judge.addresses import server
from judge.providers import connections
from judge.providers.http import Wire
from judge.providers.options import LookedUpOptions
from tests.loopback.openai_server import OpenAIServer

BODY = b'{"model": "loopback", "messages": [{"role": "user", "content": "Is tea hot?"}]}'
PATH = "/chat/completions"


@pytest.fixture
async def wire(openai_server: OpenAIServer) -> AsyncIterator[Wire]:
    opened = Wire(server(openai_server.url), {}, 30.0, [], LookedUpOptions())
    yield opened
    await opened.close()


async def test_a_connection_waits_for_the_one_before(
    wire: Wire, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a gap of an hour the second call cannot have a connection yet when the first has its answer."""
    monkeypatch.setattr(connections, "CONNECTION_GAP_SECONDS", 3600.0)
    openai_server.delay = 0.05
    calls = [asyncio.create_task(wire.post(PATH, BODY)) for _ in range(2)]
    done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    assert [call.result().status for call in done] == [200]
    assert (openai_server.connections, len(waiting)) == (1, 1)
    # A kept connection is used at once.
    assert (await wire.post(PATH, BODY)).status == 200
    assert openai_server.connections == 1
    waiting.pop().cancel()
