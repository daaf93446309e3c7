"""The scripted model: what it says depends on the request alone, and mistakes in a script are named."""

import asyncio
import json
import math
from pathlib import Path

import pytest

from judge.errors import BadInput, Rejected, UsageError
from judge.providers.base import Settings, get
from judge.providers.tokens import label_distribution
from judge.types import Message, Reply, Request
from tests.cli.helpers import script
from tests.runner.virtual import SimulatedLoop

SCHEMA = {"properties": {"stance": {"enum": ["support", "refute", "neutral"]}, "score": {"type": "number"}}}


def ask(text: str = "Tea.", repeat: int = 0, codes: str | None = None) -> Request:
    messages = (Message("system", "Judge."), Message("user", text))
    return Request("scripted/x", messages, 1, None if codes else SCHEMA, codes, repeat=repeat)


async def said(name: str, request: Request, **options: str) -> Reply:
    return await get(f"scripted/{name}", Settings(options=options)).complete(request)


async def test_first_says_the_first_label() -> None:
    assert json.loads((await said("first", ask())).text) == {"stance": "support", "score": 0}
    assert (await said("first", ask(codes="ABC"))).text == "A"


async def test_hash_depends_on_the_text_and_the_repeat_alone() -> None:
    replies = {(text, r): (await said("hash", ask(text, r))).text for text in "abcdef" for r in range(3)}
    again = {(text, r): (await said("hash", ask(text, r))).text for text in "abcdef" for r in range(3)}
    assert replies == again
    stances = {json.loads(reply)["stance"] for reply in replies.values()}
    assert stances == {"support", "refute", "neutral"}


async def test_garbage_and_refuse_have_no_label() -> None:
    garbage = await said("garbage", ask())
    assert (garbage.stop, "{" in garbage.text) == ("stop", False)
    assert (await said("refuse", ask())).stop == "refusal"


async def test_log_probabilities_on_request() -> None:
    assert not get("scripted/hash").label_codes
    assert get("scripted/hash", Settings(options={"logprobs": "1"})).label_codes
    assert (await said("hash", ask(codes="ABC"))).tokens is None
    reply = await said("hash", ask(codes="ABC"), logprobs="1")
    assert reply.tokens is not None
    # Half on the choice, 0.49 on the two others together, 0.01 on no code.
    distribution, reason = label_distribution(reply.tokens, "ABC", ["x", "y", "z"])
    assert reason is None
    assert distribution is not None
    assert distribution.unassigned == pytest.approx(0.01)
    assert sorted(distribution.probabilities.values()) == pytest.approx([0.245, 0.245, 0.5])
    assert distribution.argmax() == "xyz"["ABC".index(reply.text)]
    assert math.fsum(distribution.probabilities.values()) + distribution.unassigned == pytest.approx(1)


async def test_a_file_gives_the_first_match(tmp_path: Path) -> None:
    path = script(tmp_path / "s.jsonl", [("Tea", "hot"), ("Te", "never"), ("", "else")])
    assert (await said("file", ask("Tea."), script=str(path))).text == "hot"
    assert (await said("file", ask("Ale."), script=str(path))).text == "else"


async def test_a_file_without_a_match_refuses_the_request(tmp_path: Path) -> None:
    path = script(tmp_path / "s.jsonl", [("Tea", "hot")])
    with pytest.raises(Rejected, match="no line of the script matches"):
        await said("file", ask("Ale."), script=str(path))


@pytest.mark.parametrize("line", ['{"match": "x"}', "[]", "nonsense", '"reply"'])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"reply": "y"}\n\n' + line + "\n", encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        get("scripted/file", Settings(options={"script": str(path)}))
    assert (caught.value.path, caught.value.line) == (str(path), 3), "blank lines count"


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("nothing", {}, "scripted/nothing"),
        ("file", {}, "needs --option script=FILE"),
        ("file", {"script": "gone.jsonl"}, "gone.jsonl"),
        ("hash", {"delay": "soon"}, "delay=soon"),
        ("hash", {"delay": "-1"}, "delay=-1"),
        ("hash", {"delay": "nan"}, "delay=nan"),
        ("hash", {"dely": "1"}, "no option 'dely'"),
    ],
)
def test_mistakes_are_usage_errors(name: str, options: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        get(f"scripted/{name}", Settings(options=options))


def test_the_delay_is_waited_for_and_other_calls_go_on() -> None:
    provider = get("scripted/first", Settings(options={"delay": "600"}))

    async def twenty() -> float:
        time = asyncio.get_running_loop().time
        begun = time()
        await asyncio.gather(*(provider.complete(ask()) for _ in range(20)))
        return time() - begun

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        assert runner.run(twenty()) == pytest.approx(600, abs=1)
