"""A quote before the label is words of the unit's own passages, or the reply gives no label."""

import json

import pytest

from judge.errors import UsageError
from judge.parse import Parsed
from judge.prompts import load_task
from judge.prompts.quotes import find_shown_passages, is_quoted
from judge.prompts.render import Mode
from judge.providers.base import Settings
from judge.providers.scripted import Provider
from judge.runner.requests import Asker, Sampling
from judge.types import Reply, Status, Unit

PASSAGE = "Water boils at 100 °C at sea level.\nOn a “high” mountain it boils sooner – at 90 °C."
INPUTS = {"claim": "Water boils at 80 °C.", "passage": PASSAGE}


@pytest.mark.parametrize(
    ("quote", "there"),
    [
        ("boils at 100 °C", True),
        ("WATER boils  at\n100 °C", True),
        ('"On a "high" mountain it boils sooner - at 90 °C."', True),
        ("Water boils at ... sooner – at 90 °C.", True),
        ("sea level. On a […] mountain", True),
        ("", True),
        ("none", True),
        ("None", True),
        ("Water boils at 80 °C", False),
        ("sooner ... Water boils", False),
        ("none of it", False),
    ],
)
def test_quotes(quote: str, there: bool) -> None:
    assert is_quoted(quote, [PASSAGE]) is there


def test_a_quote_is_in_one_passage_and_not_over_two() -> None:
    assert not is_quoted("one ... two", ["one", "two"])


def asked(mode: Mode, task: str = "stance", **inputs: object) -> tuple[Asker, Unit]:
    asker = Asker(load_task(task).thinking("quote"), "m", Provider("hash", Settings()), Sampling(), mode)
    return asker, Unit("u", {**INPUTS, **inputs}, {})  # type: ignore[dict-item]


def parsed(mode: Mode, text: str) -> Parsed:
    asker, unit = asked(mode)
    return asker.accept(Reply(text), asker.request(unit, 0)[0])


def test_json() -> None:
    asker, unit = asked(Mode.JSON)
    system = asker.request(unit, 0)[0].messages[0].content
    assert '"rationale": "the words of the passages that decide, copied exactly, or none"' in system
    good = parsed(Mode.JSON, json.dumps({"rationale": "boils at 100 °C", "stance": "refute"}))
    assert (good.labels[0].value, good.labels[0].rationale) == ("refute", "boils at 100 °C")
    # Words of the claim are no evidence for it.
    bad = parsed(Mode.JSON, json.dumps({"rationale": "Water boils at 80 °C.", "stance": "support"}))
    assert bad.status is Status.UNPARSED and "the quote is not in the passages: 'Water boils at 80" in (
        bad.reason or ""
    )
    assert parsed(Mode.JSON, json.dumps({"rationale": "", "stance": "neutral"})).status is Status.OK


def test_the_quote_is_the_first_of_two_calls_with_letters() -> None:
    asker, unit = asked(Mode.CODES)
    first = asker.request(unit, 0)[0]
    assert first.codes is None and first.messages[-1].content.endswith("Quote:")
    assert asker.accept(Reply("boils at 80 °C"), first).status is Status.UNPARSED
    assert asker.accept(Reply("boils at 100 °C"), first).status is Status.OK
    second = asker.conclude(first, Reply("boils at 100 °C"))
    [label] = asker.accept(Reply("B"), second).labels
    assert (label.value, label.rationale) == ("refute", "boils at 100 °C")


def test_a_repaired_reply_is_checked_against_the_unit() -> None:
    asker, unit = asked(Mode.JSON)
    request = asker.request(unit, 0)[0]
    again = asker.repair(request, Reply("[[passage abcdef]]\nboils at 80\n[[/abcdef]]"), "no")
    text = json.dumps({"rationale": "boils at 80", "stance": "support"})
    # A model may imitate a fence in its reply; only what the user's messages show is a passage.
    assert asker.accept(Reply(text), again).status is Status.UNPARSED


def test_several_passages() -> None:
    cited = [
        {"marker": "1", "title": None, "date": None, "text": "A."},
        {"marker": "2", "title": "T", "date": None, "text": "B."},
    ]
    asker, unit = asked(Mode.JSON, "citation_support", sentence="S.", cited_passages=cited)
    request = asker.request(unit, 0)[0]
    assert find_shown_passages(request.messages[request.prefix :]) == ["A.", "Title: T\nB."]


@pytest.mark.parametrize(
    "name", ["stance", "claim_support", "citation_each", "citation_rest", "citation_support"]
)
def test_the_tasks_that_take_a_quote(name: str) -> None:
    assert load_task(name).thinking("quote").reasons_first


def test_a_task_without_passages_has_nothing_to_quote() -> None:
    with pytest.raises(UsageError, match=r"deflection\.v2: rationale: a quote must come from passages"):
        load_task("deflection").thinking("quote")
