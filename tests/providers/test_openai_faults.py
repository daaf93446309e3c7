"""Every fault of a server becomes the right named error, with no key in anything it says."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from judge.errors import KeyProblem, RateLimited, Rejected, ServerFault, Unreachable
from judge.providers import connections
from judge.providers.base import Settings
from judge.providers.openai import Provider
from judge.types import Message, Request
from tests.loopback.calls import failing, opened
from tests.loopback.faults import Fault
from tests.loopback.fixtures import OPENAI_KEY as KEY
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.process import ServerProcess
from tests.loopback.wire import Out

CALL = Request("openai/m", (Message("user", "Is tea hot?\nAnswer (A, B):"),), 0, codes="AB")


@pytest.fixture
async def provider(openai_server: OpenAIServer) -> AsyncIterator[Provider]:
    """A provider that is open, with a time-out that no call reaches on a busy machine."""
    async with opened(openai_server, timeout=60.0) as made:
        yield made


async def test_an_answer_that_came_while_the_process_stood_still_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that was stopped for longer than its time-out (SIGSTOP, a closed laptop) paid for what was in flight."""
    monkeypatch.setattr(connections, "STOPPED_SECONDS", 0.1)
    monkeypatch.setattr(connections, "AWAKE_SECONDS", 60.0)
    with ServerProcess("openai", "--delay", "0.3") as server:
        provider = Provider("m", Settings(base_url=server.url, timeout=0.5, options={"mask": "none"}))
        call = asyncio.create_task(provider.complete(CALL))
        while not server.stats()["requests"]:
            await asyncio.sleep(0.01)
        time.sleep(1.0)  # nothing in this process runs
        assert (await call).text
        assert server.stats()["requests"] == 1
        await provider.close()


@pytest.mark.parametrize("kind", ["429", "503"])
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after": "9", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "4s"}, 4.0),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "4s"}, None),
        ({"x-ratelimit-remaining-requests": "0"}, None),
        (
            {
                "retry-after": "1",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "4s",
            },
            1.0,
        ),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "inf"}, None),
    ],
)
async def test_retry_after(
    openai_server: OpenAIServer, provider: Provider, kind: str, headers: dict[str, str], seconds: float | None
) -> None:
    openai_server.script(Fault(kind, headers=headers))
    error = await failing(provider, CALL, KEY, "sk-te")
    assert isinstance(error, RateLimited | ServerFault)
    assert error.retry_after == seconds


@pytest.mark.parametrize("echo", [KEY, f"Bearer {KEY}", "sk-te**********cdef", "sk-proj-otherkey-1234"])
async def test_a_key_that_the_server_repeats_is_cut_out(
    openai_server: OpenAIServer, provider: Provider, echo: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    openai_server.script(Fault("401", message=f"Incorrect API key provided: {echo}. See the docs."))
    error = await failing(provider, CALL, KEY, "sk-te")
    assert "Incorrect API key provided: [key]" in str(error)
    assert KEY not in caplog.text


@pytest.mark.parametrize("bad", ["sk-\nx", "sk-\x7f", "sk-é"])
async def test_a_key_no_header_can_hold(monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", bad)
    with pytest.raises(KeyProblem) as caught:
        await Provider("m", Settings(base_url="http://127.0.0.1:9")).open()
    assert bad not in str(caught.value)


async def test_an_unknown_model_is_named_on_opening(openai_server: OpenAIServer) -> None:
    openai_server.models = ["other"]
    provider = Provider("m", Settings(base_url=openai_server.url))
    with pytest.raises(Rejected, match="model 'm'") as caught:
        await provider.open()
    await provider.close()
    assert caught.value.status == 404


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("bad\x1b[31m\r\nthing\u202e\x00here", "bad [31m thing here"),
        ("x" * 5000, "x" * 299 + "…"),
    ],
)
async def test_messages_are_short_and_plain(
    openai_server: OpenAIServer, provider: Provider, message: str, shown: str
) -> None:
    openai_server.script(Fault("400", message=message))
    assert str(await failing(provider, CALL, KEY, "sk-te")).endswith(f": {shown}")


def answer_with(server: OpenAIServer, body: bytes) -> None:
    """Every answer of the server has this body."""
    respond = server.respond
    server.respond = lambda *request: replace(respond(*request), body=body)  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "body",
    [
        b'{"detail":[{"loc":["body"],"msg":"odd"}]}',
        b'{"error":"odd"}',
        b'{"message":"odd"}',
        b'"odd"',
        b"odd",
    ],
)
async def test_every_shape_of_error_body_is_read(
    openai_server: OpenAIServer, provider: Provider, body: bytes
) -> None:
    answer_with(openai_server, body)
    openai_server.script("500")
    assert "odd" in str(await failing(provider, CALL, KEY, "sk-te"))


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"[]",
        b'{"choices":[]}',
        b'{"choices":[{}]}',
        b'{"choices":[{"message":null}]}',
        b'{"choices":{"0":1}}',
        b'{"error":{"message":"upstream is down","code":502}}',
        b"[" * 100_000,
    ],
)
async def test_an_answer_of_another_shape_is_a_server_fault(
    openai_server: OpenAIServer, provider: Provider, body: bytes
) -> None:
    answer_with(openai_server, body)
    error = await failing(provider, CALL, KEY, "sk-te")
    assert type(error) is ServerFault
    assert b"upstream" not in body or "upstream is down" in str(error)


async def test_a_redirect_is_not_followed(openai_server: OpenAIServer, provider: Provider) -> None:
    moved = Out(b"", 307, b"Location: http://127.0.0.1:9/elsewhere\r\n")
    openai_server.error = lambda status, fault: moved  # type: ignore[method-assign]
    openai_server.script("400")
    error = await failing(provider, CALL, KEY, "sk-te")
    assert isinstance(error, Rejected)
    assert "redirect" in str(error)
    assert openai_server.requests == 1


async def test_a_server_that_speaks_no_tls() -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        provider = Provider("m", Settings(base_url=f"https://127.0.0.1:{port}/v1"))
        with pytest.raises(Unreachable, match=r"cannot connect: TLS failed: .*http://"):
            await provider.open()
        await provider.close()
