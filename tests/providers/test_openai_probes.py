"""What the openai provider finds out about a server: label codes, output formats, parameters."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from judge.errors import Rejected
from judge.providers.tokens import label_distribution
from tests.loopback.calls import LABELS, ask, ask_code, opened
from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer


async def test_codes_come_back_with_probabilities(openai_server: OpenAIServer) -> None:
    async with opened(openai_server) as provider:
        assert provider.label_codes
        reply = await provider.complete(ask_code())
    (body,) = openai_server.bodies
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 20, 16)
    assert "response_format" not in body
    assert reply.tokens is not None
    assert reply.tokens[0].token == reply.text
    distribution, reason = label_distribution(reply.tokens, "ABC", LABELS)
    assert reason is None and distribution is not None
    # The server puts 90 % on its answer, 4 % on each other code and 2 % on no code.
    assert distribution.argmax() == LABELS["ABC".index(reply.text)]
    assert sorted(distribution.probabilities.values()) == pytest.approx([0.04, 0.04, 0.9])
    assert distribution.unassigned == pytest.approx(0.02)


async def test_words_are_asked_for_like_codes(openai_server: OpenAIServer) -> None:
    request = replace(ask_code(), codes=None, words=("support", "refute", "neutral"))
    async with opened(openai_server) as provider:
        reply = await provider.complete(request)
    (worded,) = openai_server.bodies
    assert (worded["logprobs"], worded["top_logprobs"], worded["max_tokens"]) == (True, 20, 16)
    assert reply.tokens is not None


@pytest.mark.parametrize("tokens", ["space", "blank"])
async def test_leading_white_space_does_not_hide_the_code(openai_server: OpenAIServer, tokens: str) -> None:
    openai_server.tokens = tokens
    async with opened(openai_server) as provider:
        reply = await provider.complete(ask_code())
    distribution, _ = label_distribution(reply.tokens or [], "ABC", LABELS)
    assert distribution is not None
    assert max(distribution.probabilities.values()) == pytest.approx(0.9)


@pytest.mark.parametrize("mode", ["refused", "forbidden", "none"])
async def test_without_log_probabilities_there_are_no_codes(openai_server: OpenAIServer, mode: str) -> None:
    openai_server.logprobs = mode
    async with opened(openai_server) as provider:
        assert not provider.label_codes
        assert provider.describe()["label_codes"] is False
        assert json.loads((await provider.complete(ask())).text)["stance"] in LABELS
        reply = await provider.complete(ask_code())
    assert reply.text in "ABC"
    assert reply.tokens is None


async def test_a_vague_refusal_of_log_probabilities_is_understood(openai_server: OpenAIServer) -> None:
    openai_server.logprobs, openai_server.vague_errors = "refused", True
    async with opened(openai_server) as provider:
        assert not provider.label_codes


@pytest.mark.parametrize(
    ("formats", "vague", "expected"),
    [
        ({"json_schema", "json_object"}, False, "json_schema"),
        ({"json_object"}, False, "json_object"),
        ({"json_object"}, True, "json_object"),
        (set(), False, "plain"),
        (set(), True, "plain"),
    ],
)
async def test_the_format_is_probed_once(
    openai_server: OpenAIServer, formats: set[str], vague: bool, expected: str
) -> None:
    openai_server.formats, openai_server.vague_errors = formats, vague
    async with opened(openai_server) as provider:
        assert provider.describe()["format"] == expected
        replies = [await provider.complete(ask(f"Claim {i}")) for i in range(3)]
    assert openai_server.requests == 3
    sent = {(b.get("response_format") or {"type": "plain"})["type"] for b in openai_server.bodies}
    assert sent == {expected}
    # The prompt describes the answer, so it has the same form in every mode.
    assert all(json.loads(r.text)["stance"] in LABELS for r in replies)


async def test_refused_parameters_are_given_up_once_for_all(openai_server: OpenAIServer) -> None:
    async with opened(openai_server, options={"reasoning_effort": "low"}) as provider:
        openai_server.refuse = {"temperature", "max_tokens", "seed", "reasoning_effort"}
        await asyncio.gather(*(provider.complete(ask(f"Claim {i}", seed=3)) for i in range(8)))
        assert provider.describe()["left_out"] == ["reasoning_effort", "seed", "temperature"]
        assert provider.describe()["token_limit"] == "max_completion_tokens"
        openai_server.reset_counts()
        await provider.complete(ask(seed=3, max_tokens=50))
    (body,) = openai_server.bodies
    assert body["max_completion_tokens"] == 50
    assert not openai_server.refuse & set(body)


async def test_a_format_refused_in_the_middle_of_a_run_steps_down(openai_server: OpenAIServer) -> None:
    async with opened(openai_server) as provider:
        openai_server.formats = set()
        assert json.loads((await provider.complete(ask())).text)["stance"] in LABELS
        assert provider.describe()["format"] == "plain"


async def test_a_limit_that_is_too_large_is_not_taken_for_an_unknown_parameter(
    openai_server: OpenAIServer,
) -> None:
    message = "max_tokens is too large: 9000. This model's maximum context length is 8192 tokens."
    async with opened(openai_server) as provider:
        openai_server.plan.when = lambda body, n: Fault("400", message=message, param="max_tokens")
        with pytest.raises(Rejected, match="too large"):
            await provider.complete(ask())
    assert openai_server.requests == 1


async def test_a_server_that_gives_fewer_alternatives(openai_server: OpenAIServer) -> None:
    def at_most_five(body: dict[str, Any], number: int) -> Fault | None:
        if body.get("top_logprobs", 0) <= 5:
            return None
        return Fault("400", message="top_logprobs must be at most 5", param="top_logprobs")

    openai_server.plan.when = at_most_five
    async with opened(openai_server) as provider:
        assert provider.label_codes
        reply = await provider.complete(ask_code())
    assert openai_server.bodies[0]["top_logprobs"] == 5
    assert label_distribution(reply.tokens or [], "ABC", LABELS)[0] is not None


async def test_mass_on_other_tokens_is_no_distribution(openai_server: OpenAIServer) -> None:
    openai_server.tokens = "loose"
    async with opened(openai_server) as provider:
        reply = await provider.complete(ask_code())
    distribution, reason = label_distribution(reply.tokens or [], "ABC", LABELS)
    assert distribution is None
    # 0.66 of 98 % is on codes.
    assert reason is not None and "35.3 %" in reason


async def test_a_model_that_talks_first_gets_no_codes(openai_server: OpenAIServer) -> None:
    openai_server.script("wrong_label")
    async with opened(openai_server) as provider:
        assert not provider.label_codes


async def test_a_wrong_label_is_passed_on_as_it_is(openai_server: OpenAIServer) -> None:
    async with opened(openai_server) as provider:
        openai_server.script("wrong_label", "wrong_label")
        assert json.loads((await provider.complete(ask())).text) == {"stance": "no-such-label"}
        assert (await provider.complete(ask_code())).text == "Z"
