"""The labelling configuration of every task, the tasks, and regions back; without a server."""

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.exchange.label_studio.annotations import find_span, read_result
from annotate.exchange.label_studio.config import ConfigLayout
from annotate.exchange.label_studio.sdk import Check
from annotate.exchange.label_studio.tasks import data_of, input_text, prediction
from annotate.exchange.units import ExchangeUnit
from judge.errors import BadInput, UsageError
from judge.prompts import load_task
from judge.prompts.load import parse_task
from tests.label_studio.conftest import choice, evidence, remark
from tests.real import ROOT
from tests.tui.studies import THREE, three

TASKS = sorted(p.stem for p in (ROOT / "prompts").glob("*.v*.md"))
KINDS = """---
title: All kinds
unit: passage
inputs: [claim, passage]
questions:
  - {field: claim, labels: [{value: "a <b> & \\"c\\""}, {value: d}]}
  - {field: more.stance, ask: "$5 or more?", labels: [{value: x, key: e, meaning: "$ <i>"}, {value: y}]}
  - {field: amount, level: interval}
  - {field: words, level: text}
  - {field: list, level: text, many: true}
---
J
<!-- unit -->
{{ claim }} {{ passage }}
{{ answer_cue }}
"""


@pytest.mark.parametrize("name", TASKS)
def test_the_vendor_accepts_the_configuration_of_every_task(name: str) -> None:
    task = load_task(name)
    layout = ConfigLayout(task)
    check = Check(layout.xml)
    values = {q.field: q.labels[0].value if q.labels else "1" if q.level == "interval" else json.dumps(["x"]) if q.many
              else "x" for q in task.spec.questions}  # fmt: skip
    result = [layout.region(field, value) for field, value in values.items()]
    check.regions(result)
    check.task({"data": data_of(layout, ExchangeUnit("u", {}))})
    assert read_result(layout, result, "").answers == values


def test_guidelines_are_html_without_anything_that_runs_or_loads() -> None:
    text = (
        "  Read **all**.\n\n  - one\n  - two <script>alert(1)</script>\n\n  [x](javascript:alert(1)) [y](https://e.org) "
        "![i](http://t/x.png) <img src=x onerror=y>\n"
    )
    task = parse_task(THREE.replace("  Read **everything**.\n", text), "three.v1.md")
    told = ConfigLayout(task).instruction
    assert "<p>Read <strong>all</strong>.</p>" in told and "<li>one</li>" in told
    assert '<a href="https://e.org">y</a>' in told
    for never in ("<script", "<img", 'href="javascript'):
        assert never not in told, told


def test_keys_meanings_and_names() -> None:
    layout = ConfigLayout(three())
    root = ET.fromstring(layout.xml)
    keys = {c.get("value"): c.get("hotkey") for c in root.iter("Choice")}
    names = ("relevant", "irrelevant", "support", "refute", "neutral", "good", "bad")
    assert keys == dict(zip(names, "risfngb", strict=True))
    assert [c.get("name") for c in root.iter("Choices")] == ["relevance", "stance", "quality"]
    assert {c.get("toName") for c in root.iter("Choices")} == {"passage"}
    assert [t.get("value") for t in root.iter("Text")][-1] == "$passage"
    stance = load_task("stance").spec.questions[0].labels
    root = ET.fromstring(ConfigLayout(load_task("stance")).xml)
    hints = {c.get("value"): c.get("hint") for c in root.iter("Choice")}
    assert hints == {label.value: label.meaning for label in stance}


def test_awkward_names_labels_and_levels() -> None:
    layout = ConfigLayout(parse_task(KINDS, "kinds.v1.md"))
    root = ET.fromstring(layout.xml)
    # A field called like an input: the tag that shows the input takes another name.
    assert [t.get("name") for t in root.iter("Text")] == ["text_claim", "passage"]
    assert [c.get("value") for c in root.iter("Choice")] == ['a <b> & "c"', "d", "x", "y"]
    hotkeys = [e.get("hotkey") for e in root.iter() if e.get("hotkey")]
    assert len(set(hotkeys)) == len(hotkeys) == 5, "each key once: four labels and the evidence"
    asked = [h.get("value") for h in root.iter("Header")]
    assert "$5 or more?" not in asked and "\u200a$5 or more?" in asked, "a leading $ would be a variable"
    said = {"claim": "d", "more.stance": "x", "amount": "2.5", "words": "a b", "list": '["p","q"]'}
    result = [layout.region(field, value) for field, value in said.items()]
    Check(layout.xml).regions(result)
    assert read_result(layout, result, "").answers == said
    assert "&lt;i&gt;" in layout.instruction and "<i>" not in layout.instruction


def test_a_label_that_would_be_a_variable() -> None:
    with pytest.raises(UsageError, match=r"label '\$x' as a variable"):
        _ = ConfigLayout(parse_task(THREE.replace("value: good", "value: $x"), "three.v1.md")).xml


TEXT = "A \U0001f9ea test.\nIt says 42."
BAD: list[tuple[Any, str, str]] = [
    ({}, "result", "must be a list"),
    ([3], "result", "must be an object"),
    ([{"from_name": "stance"}], "result", "from_name"),
    ([choice("stnce", "support")], "stnce", "no such control"),
    ([choice("stance", "support"), choice("stance", "refute")], "stance", "two answers"),
    ([{**choice("stance", "support"), "value": {"choices": ["support", "refute"]}}], "stance", "one label"),
    ([{**choice("stance", "support"), "type": "labels"}], "stance", "type is 'labels'"),
    ([{**evidence(TEXT, 0, 1), "value": {"start": "x", "end": 1, "labels": ["evidence"]}}], "adjudge_evidence", "whole numbers"),
    ([{**evidence(TEXT, 0, 1), "value": {"start": 0, "end": 1, "labels": ["other"]}}], "adjudge_evidence", "labels"),
    ([{**remark("x"), "value": {"text": 3}}], "adjudge_note", "must be a string"),
]  # fmt: skip


@pytest.mark.parametrize(("result", "field", "told"), BAD)
def test_a_region_that_is_wrong_is_named(result: Any, field: str, told: str) -> None:
    with pytest.raises(BadInput, match=told) as e:
        read_result(ConfigLayout(three()), result, TEXT)
    assert e.value.field == field


def test_the_vendors_check_names_the_field() -> None:
    check = Check(ConfigLayout(three()).xml)
    check.regions([choice("stance", "support"), evidence(TEXT, 0, 1), remark("x")])
    for region, field in (
        (choice("stance", "suport"), "stance"),
        (choice("stnce", "support"), "stnce"),
        ({**choice("quality", "good"), "to_name": "claim"}, "quality"),
    ):
        with pytest.raises(BadInput) as e:
            check.regions([choice("stance", "support"), region])
        assert e.value.field == field and "region 2" in str(e.value)


def test_offsets_are_code_points_and_are_checked() -> None:
    # The test tube is one code point and two UTF-16 units: "test" is at 4 in the first, at 5 in the second count.
    assert TEXT[4:8] == "test"
    assert find_span(TEXT, 4, 8, "test") == (4, 8)
    assert find_span(TEXT, 5, 9, "test") == (4, 8)
    assert find_span(TEXT, 6, 10, "test") is None
    assert find_span(TEXT, 3, 4, "\ude00") is None, "half of a character"
    assert find_span(TEXT, 0, 99, "x") is None
    assert find_span(TEXT, 4, 8, None) == (4, 8) and find_span(TEXT, 8, 4, None) is None
    regions = [evidence(TEXT, 4, 8), evidence(TEXT, 9, 12, "nope"), choice("stance", "support")]
    marked = read_result(ConfigLayout(three()), regions, TEXT)
    assert marked.spans == [("passage", 4, 8)] and marked.answers == {"stance": "support"}
    (problem,) = marked.problems
    assert "are not 'nope'" in problem and "region 2" in problem


@given(st.text(), st.data())
def test_any_span_of_any_text_is_found_in_both_counts(text: str, data: st.DataObject) -> None:
    shown = input_text(text)
    assert len(shown) == len(text)
    if not shown:
        return
    start = data.draw(st.integers(0, len(shown) - 1))
    end = data.draw(st.integers(start + 1, len(shown)))
    assert find_span(shown, start, end, shown[start:end]) == (start, end)
    before = len(shown[:start].encode("utf-16-le")) // 2
    inside = len(shown[start:end].encode("utf-16-le")) // 2
    outcome = find_span(shown, before, before + inside, shown[start:end])
    assert outcome is not None and shown[slice(*outcome)].split() == shown[start:end].split()


def test_lists_and_passages_as_text() -> None:
    assert input_text({"A": "one", "B": "two"}) == "A. one\nB. two"
    assert input_text(["x", "y"]) == "x\ny"
    passages = [{"title": "T", "date": "2024", "text": "body"}, {"text": "b2"}]
    assert input_text(passages) == "[1] T · 2024\nbody\n\n[2] \nb2"
    assert input_text("a\r\nb\rc\x00") == "a \nb\nc\ufffd"


def test_the_score_of_a_prediction_is_its_least_sure_label() -> None:
    layout = ConfigLayout(three())
    made = prediction(layout, {"stance": ("support", 0.9), "quality": ("bad", 0.6)}, "m/x")
    assert (made["score"], made["model_version"]) == (0.6, "m/x")
    assert read_result(layout, made["result"], "").answers == {"stance": "support", "quality": "bad"}
    # One of the probabilities is not known, so the least is not known either.
    assert prediction(layout, {"stance": ("support", 0.9), "quality": ("bad", None)}, "m/x")["score"] is None
