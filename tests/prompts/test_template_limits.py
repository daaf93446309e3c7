"""Templates that nest deeply, or loop without output, are refused with a TaskError."""

import pytest

from judge.errors import TaskError
from judge.prompts.template import parse_template

QUESTIONS = [{"labels": ["label"] * 26}] * 50


@pytest.mark.parametrize(
    "source",
    [
        "{{ title" + ".a" * 20_000 + " }}",
        "{% if " + "title or " * 20_000 + "title %}x{% endif %}",
        "{% autoescape false %}x{% endautoescape %}",
    ],
)
def test_a_template_that_cannot_be_checked_is_refused(source: str) -> None:
    with pytest.raises(TaskError, match=r"hostile\.md"):
        parse_template(source, "hostile.md")


@pytest.mark.parametrize("test", ["missing", "missing or " * 20 + "missing"])
def test_loops_without_output_reach_the_limit(test: str) -> None:
    body = ("{% if " + test + " %}{% endif %}") * 2_000
    source = "{% for q in questions %}{% for l in q.labels %}" + body + "{% endfor %}{% endfor %}"
    template = parse_template(source, "hostile.md")
    with pytest.raises(TaskError, match=r"hostile\.md"):
        template.render({"questions": QUESTIONS}, str)
