"""What counts as an answer: a complete reply whose text is one answer, from the model of the run's first reply."""

import math
from pathlib import Path
from typing import Any

import pytest

from judge.accept import ModelNames, accept, classify_finish
from judge.errors import OtherModel
from judge.parse import parse_choice, parse_json
from judge.prompts import load_task
from judge.prompts.render import Mode
from judge.providers import anthropic, chat
from judge.providers.base import Settings
from judge.providers.http import decode_json
from judge.providers.scripted import Provider
from judge.runner.requests import Asker, Sampling
from judge.types import Reply, Status, TokenChoice
from tests.loopback.calls import ask_code

STANCE = load_task("stance")


def asker(mode: Mode) -> Asker:
    provider = Provider("hash", Settings(options={"logprobs": "1"}))
    return Asker(STANCE, "m", provider, Sampling(), mode)


def token(text: str, **chances: float) -> TokenChoice:
    return TokenChoice(text, [(name, math.log(p)) for name, p in chances.items()])


@pytest.mark.parametrize(
    ("mode", "text", "stop", "first", "status"),
    [
        # The first token is a letter, but the reply goes on and is cut off.
        (Mode.CODES, "A passage like this one refutes the claim, so the best answer here is the", "length", "A", "truncated"),
        (Mode.CODES, "A passage like this one refutes the claim.", "stop", "A", "unparsed"),
        (Mode.WORDS, "support is not what this passage gives; it refutes the claim.", "stop", "support", "unparsed"),
        (Mode.CODES, "A", "length", "A", "truncated"),
        (Mode.CODES, "A", "abort", "A", "truncated"),
        (Mode.CODES, "A", "none", "A", "truncated"),
        (Mode.CODES, "A", "stop", "A", "ok"),
        (Mode.WORDS, "support", "stop", "support", "ok"),
    ],
)  # fmt: skip
def test_the_first_token_does_not_override_the_reply(
    mode: Mode, text: str, stop: str, first: str, status: str
) -> None:
    parsed = asker(mode).accept(Reply(text, stop, tokens=[token(first, **{first: 0.999})]))
    assert parsed.status == status
    assert bool(parsed.labels and parsed.labels[0].distribution) == (status == "ok")


@pytest.mark.parametrize(
    ("text", "first"), [("B", "A"), ("B\nB", "B"), ("<think>B it is</think>B", "B")], ids=str
)
def test_probabilities_of_another_token_do_not_count(text: str, first: str) -> None:
    parsed = asker(Mode.CODES).accept(Reply(text, tokens=[token(first, A=0.99, B=0.01)]))
    assert [(a.value, a.distribution) for a in parsed.labels] == [("refute", None)]
    assert parsed.reason


def test_the_limit_of_one_token_cuts_nothing_off_under_a_mask_of_one_token() -> None:
    listed = [{"token": "A", "logprob": math.log(0.9)}, {"token": "B", "logprob": math.log(0.1)}]
    position = {"token": "A", "logprob": math.log(0.9), "top_logprobs": listed}
    choice = {"message": {"content": "A"}, "finish_reason": "length", "logprobs": {"content": [position]}}
    body = {"choices": [choice]}
    assert chat.reply(body, ask_code(), {}, "logit_bias").stop == "stop"
    assert chat.reply(body, ask_code(), {}, "grammar").stop == "length"
    assert chat.reply(body, ask_code(), {}).stop == "length"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "stop"), ("end_turn", "stop"), ("STOP", "stop"), ("MAX_TOKENS", "length"), ("max_tokens", "length"),
        ("content_filter", "refusal"), (None, "none"), ("abort", "abort"), (["x"], "none"), ("", "none"),
    ],
)  # fmt: skip
def test_finish_reasons(reason: Any, stop: str) -> None:
    assert classify_finish(reason) == stop


def test_a_key_that_occurs_twice_in_a_body_makes_it_no_reply() -> None:
    one = b'{"choices": [{"message": {"content": "A"}}], "choices": [{"message": {"content": "B"}}]}'
    assert decode_json(one) is None
    # The same word inside a text is no key.
    assert decode_json(b'{"choices": "a \\"choices\\": b"}') == {"choices": 'a "choices": b'}


def test_several_choices_or_an_error_are_no_reply() -> None:
    choice = {"message": {"content": "A"}, "finish_reason": "stop"}
    for body in ({"choices": [choice, choice]}, {"choices": [choice], "error": {"message": "upstream"}}):
        with pytest.raises(ValueError, match="choices"):
            chat.reply(body, ask_code(), {})


def test_two_text_blocks_that_agree_are_one_answer() -> None:
    def read(*texts: str) -> Any:
        blocks = [{"type": "text", "text": text} for text in texts]
        reply = anthropic.reply({"content": blocks, "stop_reason": "end_turn"}, {})
        return accept(reply, lambda text: parse_json(STANCE, text))

    assert [a.value for a in read("support", "support").labels] == ["support"]
    assert [a.value for a in read("Let me see.", '{"stance": "support"}').labels] == ["support"]
    assert read("support", "refute").status is Status.UNPARSED


@pytest.mark.parametrize("text", ["{" * 400_000, '{"' * 200_000, " {" * 60_000, " " * 60_000, "\n" * 60_000])
def test_a_long_reply_without_an_answer_is_read_in_linear_time(text: str) -> None:
    assert parse_json(STANCE, text).status is Status.UNPARSED
    assert parse_choice(STANCE, text, ["support", "refute", "neutral"], "ABC").status is Status.UNPARSED


def test_one_model_per_run() -> None:
    names = ModelNames((), ())
    names.check(Reply("x"), "http://one")
    names.check(Reply("x", resolved_model="a"), "http://one")
    names.check(Reply("x", resolved_model="a"), "http://two")
    with pytest.raises(OtherModel, match=r"http://one .*'b'.*--same-model"):
        names.check(Reply("x", resolved_model="b"), "http://one")


def test_no_other_module_decides_whether_a_reply_is_complete() -> None:
    """A second rule in another module was the cause of every wrong label so far."""
    for path in Path("judge").rglob("*.py"):
        text = path.read_text("utf-8")
        if path.name not in ("accept.py", "features.py"):
            assert "reply.stop ==" not in text and "reply.stop !=" not in text, path
