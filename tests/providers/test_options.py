"""Fields, headers and query that the user asks a server for, and what a run keeps of them."""

import json
from typing import Any

import pytest

from judge.errors import KeyProblem, Rejected, UsageError
from judge.providers.anthropic import Provider as Anthropic
from judge.providers.base import Settings
from judge.providers.openai import Provider
from tests.loopback.anthropic_server import AnthropicServer
from tests.loopback.calls import SCHEMA, ask, ask_code, opened, running
from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import header


def kept(**given: str) -> Any:
    """What the run's identity holds."""
    return Provider("m", Settings(base_url="http://127.0.0.1:9/v1", options=given)).describe()["options"]


async def test_fields_are_put_into_every_body_and_only_there(openai_server: OpenAIServer) -> None:
    given = {
        "body.provider.order": '["a", "b"]',
        "body.provider.allow_fallbacks": "false",
        "body.cache_prompt": "false",
        "reasoning_effort": "low",
    }
    async with opened(openai_server, options=given) as provider:
        for request in (ask(), ask_code()):
            await provider.complete(request)
    for body in openai_server.bodies:
        assert body["provider"] == {"order": ["a", "b"], "allow_fallbacks": False}
        assert body["cache_prompt"] is False
        assert body["reasoning_effort"] == "low"
        assert body["messages"] and body["model"] == "m"


async def test_headers_and_query_reach_the_server(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "Bearer of-my-own")
    monkeypatch.setenv("TOKEN", "a&b=c d")
    given = {
        "header.Authorization": "env:MINE",
        "query.token": "env:TOKEN",
        "query.api-version": "2026-01-01",
    }
    async with opened(openai_server, options=given) as provider:
        await provider.complete(ask())
        shown = json.dumps(provider.describe()) + repr(vars(provider))
    (head,) = openai_server.heads
    assert header(head, "authorization") == "Bearer of-my-own", "it stands above the vendor's key"
    assert head.count("uthorization:") == 1
    # & = and space as a query writes them.
    assert head.split(" ")[1] == "/v1/chat/completions?token=a%26b%3Dc+d&api-version=2026-01-01"
    assert "of-my-own" not in shown and "a&b" not in shown
    assert provider.describe()["options"] == {
        "header.authorization": "env:",
        "query.token": "env:",
        "query.api-version": "2026-01-01",
    }


async def test_a_server_that_repeats_a_header_does_not_make_it_shown(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "Basic abcdef0123")
    async with opened(openai_server, options={"header.X-Gate": "env:MINE"}) as provider:
        openai_server.script(Fault("400", message="not let in: Basic abcdef0123 (abcdef0123)"))
        with pytest.raises(Rejected) as caught:
            await provider.complete(ask())
    assert "abcdef0123" not in str(caught.value)


def test_identity_is_what_changes_the_answer() -> None:
    settings_kept = kept(**{"body.a.b": "1", "body.a.c": '"x"'})
    # The order in which fields are given, and how they are nested, is no difference.
    assert settings_kept == kept(**{"body.a": '{"c": "x", "b": 1}'}) == kept(body='{"a": {"b": 1, "c": "x"}}')
    assert settings_kept == {"body": '{"a":{"b":1,"c":"x"}}'}
    assert settings_kept != kept(**{"body.a.b": "2", "body.a.c": '"x"'})
    # Another variable may hold the same value, and another header is another question.
    assert (
        kept(**{"header.X": "env:ONE"}) == kept(**{"header.x": "env:TWO"}) != kept(**{"header.y": "env:ONE"})
    )
    assert kept(**{"query.k": "1"}) != kept(**{"query.k": "2"})
    assert kept(key="env:ANY") == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"body.a": "low"}, "quotes: body.a='\"...\"'"),
        ({"body.a": "NaN"}, "NaN is not a JSON number"),
        ({"body.": "1"}, "body.FIELD=JSON"),
        ({"body.a..b": "1"}, "empty name"),
        ({"body": "[1]"}, "body: must be a JSON object"),
        ({"body.temperature": "1"}, "use --temperature"),
        ({"body.max_tokens": "1"}, "use --max-output-tokens"),
        ({"body": '{"messages": []}'}, "cannot be set here"),
        ({"body.stream": "true"}, "cannot be set here"),
        ({"header.Host": "env:X"}, "this header cannot be set"),
        ({"header.X Y": "env:X"}, "this header cannot be set"),
        ({"header.X": "env:"}, "env:NAME"),
        ({"headers.X": "env:Y"}, "no option 'headers.X'"),
        ({"header.": "env:Y"}, "no option 'header.'"),
    ],
)
def test_what_cannot_be_asked_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Provider("m", Settings(base_url="http://127.0.0.1:9/v1", options=given))
    assert said in str(caught.value)


@pytest.mark.parametrize("option", ["header.X", "query.k", "key"])
async def test_a_variable_that_is_not_set_is_named_before_anything_is_sent(
    openai_server: OpenAIServer, option: str
) -> None:
    provider = Provider("m", Settings(base_url=openai_server.url, options={option: "env:NOT_THERE_1"}))
    with pytest.raises(KeyProblem, match="NOT_THERE_1"):
        await provider.open()
    assert openai_server.requests == 0


async def test_a_field_that_the_server_refuses_is_not_silently_left_out(openai_server: OpenAIServer) -> None:
    openai_server.refuse = {"min_p"}
    provider = Provider("m", Settings(base_url=openai_server.url, options={"body.min_p": "0.1"}))
    with pytest.raises(Rejected, match="min_p"):
        await provider.open()
    await provider.close()


async def test_anthropic_takes_them_too(
    anthropic_server: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETA", "context-1m")
    given = {
        "thinking": "2048",
        "effort": "high",
        "body.metadata.user_id": '"u1"',
        "header.anthropic-beta": "env:BETA",
    }
    async with running(Anthropic("m", Settings(base_url=anthropic_server.url, options=given))) as provider:
        await provider.complete(ask(max_tokens=3000))
    body = anthropic_server.bodies[-1]
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert body["metadata"] == {"user_id": "u1"}
    assert body["output_config"] == {"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}}
    assert header(anthropic_server.heads[-1], "anthropic-beta") == "context-1m"
