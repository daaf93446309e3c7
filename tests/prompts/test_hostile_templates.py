"""Task files from a stranger run nothing, and none of them takes much time or memory."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from judge.errors import TaskError
from judge.prompts import parse_task
from judge.prompts.raw import RawRenderer, renderer_of
from judge.prompts.render import Mode
from judge.prompts.template import MAX_CHARACTERS, parse_template
from tests.prompts.helpers import BODY, STANCE, text

RAW: dict[str, Any] = {
    **{k: v for k, v in STANCE.items() if k != "questions"},
    "unit": "answer",
    "inputs": ["claim", "answer", "context"],
    "raw": True,
    "answer": "words",
    "questions": [{"field": "stance", "labels": [{"value": "yes"}, {"value": "no"}]}],
}
RAW_BODY = "\n<!-- unit -->\n{{ claim }}{{ answer }}{{ context }}"
PICKLE = "'cos\\nsystem\\n(S\\'touch pwned\\'\\ntR.'"

HOSTILE = {
    "pydantic reads a pickle": f"{{{{ questions[0].parse_raw({PICKLE}, proto='pickle', allow_pickle=true) }}}}",
    "pydantic reads a file": "{{ questions[0].parse_file('/etc/passwd') }}",
    "a call of a method": "{{ title.upper() }}",
    "a call of a builtin": "{{ range(3) }}",
    "a class": "{{ title.__class__ }}",
    "a class by its key": "{{ title['__class__'] }}",
    "a subscript": "{{ questions[0] }}",
    "an attribute by a filter": "{{ title | attr('__class__') }}",
    "a filter with a width": "{{ title | center(10 ** 9) }}",
    "a format": "{{ '%999999999d' | format(1) }}",
    "batches": "{{ title | batch(999999999, 'x') | list }}",
    "an indent": "{{ title | indent(999999999) }}",
    "replacements in a chain": "{{ title | replace('e', 'ee' * 999) | replace('e', 'ee' * 999) }}",
    "a text with itself": "{% set a = title ~ title %}{{ a ~ a }}",
    "a sum": "{{ title + title }}",
    "a product": "{{ 'a' * 999999999 }}",
    "a power": "{{ 9 ** 9 ** 9 }}",
    "a comparison": "{% if title < 'x' %}{% endif %}",
    "a test": "{% if title is divisibleby 3 %}{% endif %}",
    "a condition in an expression": "{{ title if title else title }}",
    "a literal list": "{% for a in [1, 2] %}x{% endfor %}",
    "a loop that calls itself": "{% for a in questions recursive %}{{ loop(questions) }}{% endfor %}",
    "a loop with a condition": "{% for a in questions if a %}x{% endfor %}",
    "loops three deep": (
        "{% for a in questions %}{% for b in a.labels %}{% for c in a.labels %}x{% endfor %}{% endfor %}{% endfor %}"
    ),
    "a macro": "{% macro m(n) %}{{ m(n) }}{% endmacro %}{{ m(1) }}",
    "a block with a filter": "{% filter upper %}x{% endfilter %}",
    "an include": "{% include '/etc/passwd' %}",
    "an import": "{% import 'os' as os %}",
    "a parent": "{% extends 'x' %}",
    "a block": "{% block x %}{% endblock %}",
    "a cycler": "{% set c = cycler('a') %}",
    "random text": "{{ lipsum(n=99999) }}",
    "a namespace": "{% set ns = namespace(a=1) %}{% set ns.a = 2 %}",
    "a context": "{{ self._TemplateReference__context }}",
    "brackets": "{{ " + "(" * 50_000 + "title" + ")" * 50_000 + " }}",
    "nested conditions": "{% if title %}" * 5_000 + "{% endif %}" * 5_000,
    "a number of many digits": "{{ " + "9" * 10_000 + " }}",
    "nested nots": "{% if " + "not " * 50_000 + "title %}{% endif %}",
}


@pytest.mark.parametrize("half", ["constant", "unit", "raw"])
@pytest.mark.parametrize("template", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_template_is_refused_when_it_is_loaded(
    template: str, half: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = {
        "constant": text(STANCE, template + BODY),
        "unit": text(STANCE, BODY + template),
        "raw": text(RAW, RAW_BODY + template),
    }[half]
    with pytest.raises(TaskError, match=r"mine\.v1\.md: template") as caught:
        parse_task(source, "mine.v1.md")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("front", "problem"),
    [
        # Nine levels of nine aliases each stand for 387 million values.
        ("a: &a [x]\n" + "".join(f"{c}: &{c} [{','.join([f'*{p}'] * 9)}]\n" for p, c in pairwise("abcdefghi")), "alias"),
        ("a: " + "[" * 20_000, "nested too deeply"),
        ("a: !!python/object/apply:os.system ['touch pwned']", "not valid YAML"),
        ("title: " + "x" * 1_000_001, "characters"),
    ],
    ids=["aliases", "depth", "a Python object", "size"],
)  # fmt: skip
def test_hostile_front_matter_is_refused(front: str, problem: str) -> None:
    with pytest.raises(TaskError, match=f"mine.v1.md: .*{problem}"):
        parse_task(text(front), "mine.v1.md")


def test_the_text_for_one_unit_is_limited() -> None:
    body = RAW_BODY + "{% for a in context %}{% for b in context %}{{ answer }}{% endfor %}{% endfor %}"
    renderer = RawRenderer(parse_task(text(RAW, body), "mine.v1.md"), Mode.TEXT)
    inputs = {"claim": "c", "answer": "x" * 1_000, "context": ["p"] * 200}
    # 200 x 200 answers of 1,000 characters would have 40 million characters.
    assert MAX_CHARACTERS < 200 * 200 * 1_000
    with pytest.raises(TaskError, match="too long"):
        renderer.render(inputs)
    renderer.render({**inputs, "context": ["p"] * 20})


def test_loops_that_write_nothing_are_limited_too() -> None:
    template = parse_template("{% for a in x %}{% for b in x %}{% endfor %}{% endfor %}", "mine.v1.md")
    with pytest.raises(TaskError, match="too long"):
        template.render({"x": ["p"] * 2_000}, str)


def test_values_are_data_whatever_they_contain() -> None:
    raw = parse_task(text(RAW, RAW_BODY + "{% for p in context %}{{ p.title }}{% endfor %}"), "mine.v1.md")
    inputs = {"claim": "{{ 7*7 }}", "answer": "{% for a in b %}", "context": [{"title": "{{ claim }}"}]}
    shown = renderer_of(raw, Mode.TEXT).render(inputs).messages[-1].content
    assert shown == "{{ 7*7 }}{% for a in b %}{{ claim }}{{ claim }}"


def test_a_part_that_a_passage_does_not_have_is_refused() -> None:
    body = RAW_BODY + "{% for p in context %}{{ p.meta }}{% endfor %}"
    with pytest.raises(TaskError, match=r"line \d+: 'p\.meta' does not exist"):
        parse_task(text(RAW, body), "mine.v1.md")


def test_what_a_template_may_contain() -> None:
    source = (
        "{% for q in questions %}{{ loop.index }}. {{ q.field }}:"
        "{% for l in q.labels %} {{ l.value }}{% if not loop.last %},{% endif %}{% endfor %}{% endfor %};"
        "{% if a and not b %}one{% elif b or a %}two{% else %}three{% endif %}{# no comment #}{% raw %}{{ x }}{% endraw %}"
    )
    questions = [{"field": "stance", "labels": [{"value": "yes"}, {"value": "no"}]}]
    template = parse_template(source, "mine.v1.md")
    written = [
        template.render({"questions": questions, "a": a, "b": b}, str).split(";")
        for a, b in (("x", None), ("x", "y"), (None, None))
    ]
    assert [lines[0] for lines in written] == ["1. stance: yes, no"] * 3
    assert [lines[1] for lines in written] == ["one{{ x }}", "two{{ x }}", "three{{ x }}"]
