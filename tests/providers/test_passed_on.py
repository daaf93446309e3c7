"""Gemini and OpenRouter by their base URL: what is theirs on the wire."""

import json
from typing import Any

import pytest

from judge.errors import KeyProblem, ServerFault
from judge.providers.base import Settings
from judge.providers.openai import Provider
from tests.loopback.calls import LABELS, ask, running
from tests.loopback.faults import Fault
from tests.loopback.gemini_server import GeminiServer
from tests.loopback.openrouter_server import OpenRouterServer
from tests.loopback.wire import header


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-that-stays-at-home")
    monkeypatch.setenv("GEMINI_API_KEY", "gemini-test-key")
    monkeypatch.setenv("OPENROUTER_API_KEY", "or-test-key")


def provider_of(server: GeminiServer | OpenRouterServer, **options: str) -> Provider:
    """A model at this server, with the key of its vendor."""
    vendor = "GEMINI" if isinstance(server, GeminiServer) else "OPENROUTER"
    given = {"key": f"env:{vendor}_API_KEY", **options}
    return Provider("some-model", Settings(base_url=server.url, options=given))


async def test_gemini_answers_and_what_it_does_not_know_is_left_out() -> None:
    async with GeminiServer(record=True) as server:
        path = "body.extra_body.google.thinking_config.thinking_budget"
        provider = provider_of(server, **{path: "512"})
        await provider.open()
        assert not provider.label_codes
        server.reset_counts()
        reply = await provider.complete(ask(seed=7))
        await provider.complete(ask(seed=7))
        facts = provider.describe()
        await provider.close()
    assert json.loads(reply.text)["stance"] in LABELS
    assert facts["left_out"] == ["seed"]
    assert server.requests == 2, "seed was refused in a question already"
    body = server.bodies[-1]
    assert body["extra_body"] == {"google": {"thinking_config": {"thinking_budget": 512}}}
    assert body["response_format"]["type"] == "json_schema"
    assert all(header(head, "authorization") == "Bearer gemini-test-key" for head in server.heads)


async def test_gemini_says_that_a_key_is_wrong_with_400(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "another")
    async with GeminiServer() as server:
        provider = provider_of(server)
        with pytest.raises(KeyProblem, match=r"API key not valid.*check GEMINI_API_KEY"):
            await provider.open()
        await provider.close()


async def test_openrouter_keeps_to_the_provider_that_was_named() -> None:
    async with OpenRouterServer(record=True) as server:
        given: dict[str, Any] = {"body.provider.order": '["Groq"]', "body.provider.allow_fallbacks": "false"}
        provider = provider_of(server, **given)
        await provider.open()
        server.reset_counts()
        assert json.loads((await provider.complete(ask())).text)["stance"] in LABELS
        assert server.bodies[-1]["provider"] == {"order": ["Groq"], "allow_fallbacks": False}
        server.down = {"Groq"}
        # An error under status 200: the server's fault, and so worth another try.
        with pytest.raises(ServerFault, match=r"502.*Provider returned error"):
            await provider.complete(ask())
        server.down = set()
        server.credit = False
        with pytest.raises(KeyProblem, match=r"OPENROUTER_API_KEY .*no credit left"):
            await provider.complete(ask())
        await provider.close()


async def test_a_reply_that_ends_in_an_error_is_no_answer() -> None:
    class Ends(OpenRouterServer):
        def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Any:
            out = super().answer(body, head, fault)
            document = json.loads(out.body)
            if "Claim" in str(body):
                document["choices"][0] |= {
                    "finish_reason": "error",
                    "error": {"code": 502, "message": "gone"},
                }
            out.body = json.dumps(document).encode()
            return out

    async with Ends() as server, running(provider_of(server)) as provider:
        with pytest.raises(ServerFault):
            await provider.complete(ask())
