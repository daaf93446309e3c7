"""A task and a unit in, messages out."""

import json
from typing import Any

import pytest

from judge.prompts import Mode, Renderer, load_task
from judge.prompts.render import CODES
from judge.prompts.spec import Example
from judge.runner.modes import label_orders
from tests.prompts.helpers import BODY, STANCE, changed, task

UNIT = {"claim": "Tea cures colds.", "passage": "Tea is a drink."}
MANY = {
    **STANCE,
    "questions": [
        STANCE["questions"][0],
        {"field": "strength", "level": "ordinal", "labels": [{"value": "weak"}, {"value": "strong"}]},
        {"field": "score", "level": "interval", "ask": "How sure are you, from 0 to 10?"},
        {"field": "why", "level": "text"},
    ],
}


def prompt(
    front: dict[str, Any], mode: Mode = Mode.JSON, body: str = BODY, **unit: Any
) -> list[tuple[str, str]]:
    rendered = Renderer(task(front, body), mode).render({**UNIT, **unit})
    return [(m.role, m.content) for m in rendered.messages]


def test_the_constant_part_is_first_and_the_same_for_every_unit() -> None:
    renderer = Renderer(load_task("stance"), Mode.JSON)
    first, second = (
        renderer.render(UNIT),
        renderer.render({"claim": "x", "passage": "y", "passage_title": "z"}),
    )
    assert first.prefix == second.prefix == 1
    assert first.messages[:1] == second.messages[:1]
    assert [m.role for m in first.messages] == ["system", "user"]
    assert "Tea is a drink." in first.messages[1].content
    assert "Tea" not in first.messages[0].content


def test_the_labels_are_shown_with_their_meanings() -> None:
    front = changed("questions.0.labels.0.meaning", "it agrees")
    [(_, system), (_, user)] = prompt(front)
    assert '- "yes": it agrees\n- "no"\n- "other"\n' in system
    assert '{"stance": "yes" | "no" | "other"}' in system
    assert user.endswith("Answer (JSON):")


def test_labels_in_other_scripts_are_shown_as_they_are() -> None:
    front = changed("questions.0.labels", [{"value": "befürwortet"}, {"value": "反对"}])
    [(_, system), _] = prompt(front)
    assert '- "befürwortet"\n- "反对"' in system


def test_codes_stand_for_the_labels_in_the_order_shown() -> None:
    [(_, system), _] = prompt(STANCE, Mode.CODES)
    assert "A = yes\nB = no\nC = other\n" in system
    turned = Renderer(task(), Mode.CODES, {"stance": ["other", "no", "yes"]})
    assert "A = other\nB = no\nC = yes\n" in turned.prefix[0].content
    assert (turned.codes, turned.labels, turned.schema) == ("ABC", ["other", "no", "yes"], None)


@pytest.mark.parametrize(
    ("order", "shown"),
    [
        ("declared", ["support", "refute", "neutral"]),
        ("reversed", ["neutral", "refute", "support"]),
        # random.Random(7).sample of three: fixed by Python's documented generator.
        ("shuffled:7", ["refute", "support", "neutral"]),
    ],
)
def test_label_orders(order: str, shown: list[str]) -> None:
    assert label_orders(load_task("stance"), order) == {"stance": shown}
    assert label_orders(load_task("stance"), order) == {"stance": shown}, "the same every time"


def test_many_questions() -> None:
    loaded = task(MANY)
    assert not loaded.one_choice
    [(_, system), _] = prompt(MANY)
    assert (
        '{"stance": "yes" | "no" | "other", "strength": "weak" | "strong", "score": number, "why": text}'
        in system
    )
    assert "How sure are you, from 0 to 10?" in system
    assert "What is the why?" in system


@pytest.mark.parametrize(("where", "first"), [("before", "rationale"), ("after", "stance")])
def test_the_rationale_comes_before_or_after(where: str, first: str) -> None:
    shot = {"inputs": UNIT, "answers": {"stance": "no"}, "rationale": "Because."}
    messages = prompt({**STANCE, "rationale": where, "examples": [shot]})
    assert not task({**STANCE, "rationale": where}).one_choice
    answer = json.loads(messages[2][1])
    assert answer == {"rationale": "Because.", "stance": "no"}
    assert next(iter(answer)) == first
    shape = messages[0][1].splitlines()[-1]
    assert (shape.index('"rationale"') < shape.index('"stance"')) == (where == "before")


def test_few_shot_examples_are_turns_of_the_constant_part() -> None:
    shots = [
        {"inputs": {"claim": "c1", "passage": "p1"}, "answers": {"stance": "no"}},
        {"inputs": {"claim": "c2", "passage": "{{ 7*7 }}"}, "answers": {"stance": "yes"}},
    ]
    front = {**STANCE, "examples": shots}
    messages = prompt(front)
    assert [role for role, _ in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [messages[2][1], messages[4][1]] == ['{"stance": "no"}', '{"stance": "yes"}']
    assert "{{ 7*7 }}" in messages[3][1], "an example is data too"
    assert [content for role, content in prompt(front, Mode.CODES) if role == "assistant"] == ["B", "A"]
    assert Renderer(task(front), Mode.JSON).render(UNIT).prefix == 5


def test_an_example_answers_a_number_with_a_number() -> None:
    # The schema and the parser want a number there, so the model must not be shown a string.
    front = {
        **STANCE,
        "questions": [{"field": "score", "level": "interval"}],
        "examples": [{"inputs": UNIT, "answers": {"score": "3.5"}}],
    }
    assert json.loads(prompt(front)[2][1]) == {"score": 3.5}


def test_missing_optional_inputs_leave_nothing_behind() -> None:
    front = {**STANCE, "optional_inputs": ["passage_title"]}
    body = BODY.replace(
        "{{ passage }}", "{% if passage_title %}\n{{ passage_title }}\n{% endif %}\n{{ passage }}"
    )
    without = prompt(front, body=body)[1][1]
    assert "passage_title" not in without
    assert "\n\n" not in without
    assert "[[passage_title " in prompt(front, body=body, passage_title="T")[1][1]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (["a", "b\nc"], "- a\n- b\nc"),
        ({"A": "one", "B": "two"}, "A. one\nB. two"),
        (7, "7"),
    ],
)
def test_lists_and_options_as_text(value: Any, shown: str) -> None:
    front = {**STANCE, "inputs": ["options"], "unit": "item"}
    user = Renderer(task(front, "Judge.\n<!-- unit -->\n{{ options }}\n"), Mode.JSON).render(
        {"options": value}
    )
    lines = user.messages[-1].content.split("\n")
    assert lines[0].startswith("[[options ")
    assert "\n".join(lines[1:-1]) == shown


def test_a_request_is_rendered_the_same_every_time() -> None:
    # Requests are recognised by their hash, so nothing in a prompt may be drawn at random.
    assert prompt(STANCE) == prompt(STANCE)
    other = prompt(STANCE, passage="Tea is a plant.")
    assert other[1][1].split("]]")[0] == prompt(STANCE)[1][1].split("]]")[0], "the claim keeps its fence"


def test_the_nearest_examples_of_each_label_are_shown_the_nearest_last() -> None:
    labelled = {
        "the heart beats": "yes", "a heart of stone": "no", "rivers of ice": "yes", "ice on rivers and lakes": "no",
        "a blue moon": "yes", "moon": "other",
    }  # fmt: skip
    texts = list(labelled)
    shown = [
        Example(inputs={"claim": f"c{n}", "passage": text}, answers={"stance": label}, item_id=f"i{n}")
        for n, (text, label) in enumerate(labelled.items())
    ]
    near = task(STANCE).showing(shown, nearest=1)
    assert near.overrides["nearest_examples"] == 1
    renderer = Renderer(near, Mode.CODES)
    prompt = renderer.render({"claim": "c", "passage": "The lakes are full of ice."})
    assert prompt.prefix == 1 and prompt.messages[:1] == renderer.prefix
    # One of each label: of "no" the one with lakes and ice before that of the heart, of "yes" the one with ice.
    # "other" has one, without a shared word, and stands first; "lakes" and "ice" together are nearest.
    user = [m.content for m in prompt.messages[1:-1] if m.role == "user"]
    assert [next(t for t in texts if f"\n{t}\n" in text) for text in user] == [texts[5], texts[2], texts[3]]
    answers = [m.content for m in prompt.messages[1:-1] if m.role == "assistant"]
    assert answers == [CODES[2], CODES[0], CODES[1]]
    # Nothing in common with any of them: the first of each label, and still one of each.
    other = renderer.render({"claim": "zebra", "passage": "quartz"})
    user = [m.content for m in other.messages[1:-1:2]]
    assert [next(t for t in texts if f"\n{t}\n" in text) for text in user] == [texts[5], texts[1], texts[0]]
    # An empty text, or examples without a word, choose all the same.
    assert len(renderer.render({"claim": "", "passage": "of the"}).messages) == 8
    blank = [example.model_copy(update={"inputs": {"claim": "the", "passage": "of"}}) for example in shown]
    of_blank = Renderer(task(STANCE).showing(blank, 1), Mode.CODES)
    assert len(of_blank.render({"claim": "x", "passage": "y"}).messages) == 8
