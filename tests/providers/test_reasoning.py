"""Models that reason before they answer: how much they may, and replies that are cut on the way."""

import json
import math
from typing import Any

import pytest

from judge.accept import accept
from judge.errors import UsageError
from judge.parse import Parsed, after_reasoning, parse_choice, parse_json
from judge.prompts import load_task
from judge.providers import anthropic, chat
from judge.providers.base import Settings, get
from judge.runner.requests import Asker, Sampling
from judge.types import Reply, Status
from tests.loopback.calls import ask, ask_code

STANCE = load_task("stance")
LABELS = ["support", "refute", "neutral"]


def read_json(reply: Reply) -> Parsed:
    return accept(reply, lambda text: parse_json(STANCE, text))


def read_choice(reply: Reply) -> Parsed:
    return accept(reply, lambda text: parse_choice(STANCE, text, LABELS, "ABC"))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("A", "A"),
        ("<think>It might be B.</think>A", "A"),
        ("\n<think>\n</think>\n\nA", "\n\nA"),
        ("it might be B.</think>A", "A"),
        ("<think>It might be", None),
        ('{"why": "it says </think> B"}', '{"why": "it says </think> B"}'),
    ],
)
def test_the_answer_is_what_follows_the_reasoning(text: str, answer: str | None) -> None:
    assert after_reasoning(text) == answer


@pytest.mark.parametrize(
    "reply", [Reply("<think>Or else B"), Reply("<think>B", "length"), Reply("", "length")]
)
def test_a_reply_cut_inside_the_reasoning_is_truncated(reply: Reply) -> None:
    for parsed in (read_json(reply), read_choice(reply)):
        assert parsed.status is Status.TRUNCATED
        assert "--max-output-tokens" in (parsed.reason or "")


def test_a_verdict_drafted_while_reasoning_is_no_answer() -> None:
    text = '<think>{"stance": "refute"}? No.</think>{"stance": "support"}'
    parsed = read_json(Reply(text))
    assert [a.value for a in parsed.labels] == ["support"]
    parsed = read_choice(Reply("<think>B?</think>A"))
    assert [a.value for a in parsed.labels] == ["support"]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_probabilities_of_the_reasoning_are_not_read_as_those_of_the_answer(name: str) -> None:
    """The first word of a thought can be a letter: "A claim ..."."""
    first = {
        "token": "A",
        "logprob": math.log(0.9),
        "top_logprobs": [{"token": "A", "logprob": math.log(0.9)}],
    }
    message = {"content": "B", name: "A claim that ..."}
    body: Any = {"choices": [{"message": message, "finish_reason": "stop", "logprobs": {"content": [first]}}]}
    assert chat.reply(body, ask_code(), {}).tokens is None
    del message[name]
    assert chat.reply(body, ask_code(), {}).tokens is not None
    message["content"] = "<think>A claim"
    assert chat.reply(body, ask_code(), {}).tokens is None


def test_anthropic_that_only_thought_is_a_cut_reply() -> None:
    body = {"content": [{"type": "thinking", "thinking": "B"}], "stop_reason": "max_tokens"}
    reply = anthropic.reply(body, {})
    assert (reply.text, reply.stop) == ("", "length")
    assert read_json(reply).status is Status.TRUNCATED


@pytest.mark.parametrize("value", ["1023", "-5", "many", "1e4", ""])
def test_a_budget_that_anthropic_would_refuse(value: str) -> None:
    with pytest.raises(UsageError, match="thinking"):
        get("anthropic/claude", Settings(options={"thinking": value}))


def test_thinking_is_part_of_the_longest_reply() -> None:
    provider = get("anthropic/claude", Settings(options={"thinking": "4096"}))
    with pytest.raises(UsageError, match="--max-output-tokens 4096 "):
        Asker(STANCE, "anthropic/claude", provider, Sampling(max_output_tokens=4096))
    asker = Asker(STANCE, "anthropic/claude", provider, Sampling(max_output_tokens=4097))
    assert asker.options["options"] == {"thinking": "4096"}


@pytest.mark.parametrize(
    ("value", "sent"), [("adaptive", {"type": "adaptive"}), ("off", {"type": "disabled"}), (None, None)]
)
def test_adaptive_or_no_thinking(value: str | None, sent: Any) -> None:
    provider = anthropic.Provider("m", Settings(options={"thinking": value} if value else {}))
    assert json.loads(provider.body(ask())).get("thinking") == sent
