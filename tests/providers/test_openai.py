"""The openai provider against a real server on the loopback: requests, formats, probes, replies."""

import hashlib
import json
from collections.abc import Callable

import pytest

from judge.errors import UsageError
from judge.providers import http
from judge.providers.base import Settings
from judge.providers.openai import Provider
from judge.types import Message, RateState, Usage
from tests.loopback.calls import LABELS, SCHEMA, ask, opened
from tests.loopback.faults import Fault
from tests.loopback.fixtures import OPENAI_KEY
from tests.loopback.openai_server import OpenAIServer


async def test_a_request_with_a_schema_asks_for_strict_json(openai_server: OpenAIServer) -> None:
    async with opened(openai_server) as provider:
        reply = await provider.complete(ask(temperature=0.0, seed=7, max_tokens=99))
        await provider.complete(ask(temperature=None))
    body, unset = openai_server.bodies
    assert not {"temperature", "seed"} & set(unset)
    assert body["model"] == "m"
    assert body["messages"][0]["role"] == "system"
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
    }
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.0, 7, 99)
    assert "logprobs" not in body
    # The server picks by sha256 of the field's name, NUL and the last user message.
    digest = hashlib.sha256(b"stance\0" + body["messages"][1]["content"].encode()).digest()
    assert json.loads(reply.text) == {"stance": LABELS[int.from_bytes(digest[:6], "big") % 3]}
    assert (reply.stop, reply.resolved_model) == ("stop", "m-2026-01-01")
    assert reply.tokens is None


async def test_another_server_gets_the_key_and_no_other_header_of_the_vendors_client(
    openai_server: OpenAIServer,
) -> None:
    async with opened(openai_server) as provider:
        await provider.complete(ask())
    (head,) = openai_server.heads
    assert f"Authorization: Bearer {OPENAI_KEY}" in head
    assert "openai" not in head.lower() and "stainless" not in head.lower()


async def test_openais_own_address_gets_the_headers_of_its_client() -> None:
    provider = Provider("m", Settings())
    wire = provider._connect()
    assert isinstance(wire, http.Wire)
    sent = wire._session.headers
    assert sent["Authorization"] == f"Bearer {OPENAI_KEY}" and sent["User-Agent"].startswith(
        "AsyncOpenAI/Python"
    )
    assert not any("stainless" in name.lower() for name in sent), (
        "the client counts its own calls, and these are ours"
    )
    await provider.close()


async def test_the_prefix_leads_with_the_same_bytes(openai_server: OpenAIServer) -> None:
    turns = (Message("system", 'Rules: "é" 語'), Message("user", "ex"), Message("assistant", "A"))
    async with opened(openai_server) as provider:
        for text in ("one", "another, longer one"):
            for changes in ({"seed": 1}, {"schema": None, "codes": "AB"}):
                messages = (*turns, Message("user", text))
                await provider.complete(ask(messages=messages, prefix=3, **changes))
    constant = {"model": "m", "messages": [{"role": t.role, "content": t.content} for t in turns]}
    leading = json.dumps(constant)[: -len("]}")].encode()
    assert len(openai_server.raw) == 4
    assert all(raw.startswith(leading + b", {") for raw in openai_server.raw)


async def test_bodies_are_json_with_any_split_of_prefix_and_rest(openai_server: OpenAIServer) -> None:
    turns = (Message("system", "\ud800 half a pair"), Message("user", "x\x00\n\u2028"))
    async with opened(openai_server) as provider:
        for prefix in (0, 1, 2, 0):
            await provider.complete(ask(messages=turns, prefix=prefix))
    assert [[m["content"] for m in b["messages"]] for b in openai_server.bodies] == [
        [t.content for t in turns]
    ] * 4


@pytest.mark.parametrize(
    ("fault", "stop", "text"),
    [
        ("refusal", "refusal", "I cannot help with that."),
        ("filter", "refusal", ""),
        ("length", "length", None),
    ],
)
async def test_why_a_reply_stopped(
    openai_server: OpenAIServer, fault: str, stop: str, text: str | None
) -> None:
    async with opened(openai_server) as provider:
        openai_server.script(fault)
        reply = await provider.complete(ask())
    assert reply.stop == stop
    assert text is None or reply.text == text


@pytest.mark.parametrize(
    ("message", "code", "stop"),
    [
        ("Invalid prompt: flagged.", "invalid_prompt", "refusal"),
        (
            "Could not finish the message because max_tokens or model output limit was reached.",
            None,
            "length",
        ),
    ],
)
async def test_a_400_that_is_an_answer(
    openai_server: OpenAIServer, message: str, code: str | None, stop: str
) -> None:
    async with opened(openai_server) as provider:
        openai_server.script(Fault("400", message=message, code=code))
        assert (await provider.complete(ask())).stop == stop


async def test_usage_with_cached_tokens(openai_server: OpenAIServer) -> None:
    openai_server.cached_tokens = 5
    async with opened(openai_server) as provider:
        reply = await provider.complete(ask())
        request = ask()
    size = sum(len(m.content) for m in request.messages)
    assert reply.usage == Usage(size // 4, len(reply.text) // 4 + 1, 5)


async def test_rate_headers_become_numbers_and_seconds(openai_server: OpenAIServer) -> None:
    async with opened(openai_server) as provider:
        assert (await provider.complete(ask())).rate is None
        openai_server.extra_headers = {
            "x-ratelimit-remaining-requests": "59",
            "x-ratelimit-reset-requests": "120ms",
            "x-ratelimit-remaining-tokens": "149984",
            "x-ratelimit-reset-tokens": "1m30.5s",
        }
        reply = await provider.complete(ask())
    assert reply.rate == RateState(59, 0.12, 149984, 90.5)


async def test_credentials_in_the_base_url_are_sent_but_never_shown(openai_server: OpenAIServer) -> None:
    url = openai_server.url.replace("://", "://me:pa%40ss-word@")
    provider = Provider("m", Settings(base_url=url))
    await provider.open()
    shown = json.dumps(provider.describe()) + repr(provider) + repr(vars(provider).get("_wire"))
    await provider.close()
    assert provider.describe()["base_url"] == openai_server.url
    # base64 of "me:pa@ss-word"; the key is for another place and stays at home.
    assert all("Authorization: Basic bWU6cGFAc3Mtd29yZA==" in head for head in openai_server.heads)
    assert all(OPENAI_KEY not in head for head in openai_server.heads)
    assert "ss-word" not in shown and OPENAI_KEY not in shown


@pytest.mark.parametrize(
    "url", ["ftp://x/v1", "localhost:8000", "http://h/v1?key=SECRET", "http://me:SECRET@/v1"]
)
def test_a_base_url_that_cannot_be_used_is_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Provider("m", Settings(base_url=url))
    assert "SECRET" not in str(caught.value)


def test_the_module_does_not_import_the_vendors_library(run_python: Callable[[str], str]) -> None:
    code = "import judge.providers.openai, judge.providers.anthropic, sys; print(*sys.modules)"
    loaded = run_python(code).split()
    assert not {"openai", "anthropic", "httpx2"} & set(loaded)
