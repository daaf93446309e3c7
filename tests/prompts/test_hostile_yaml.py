"""Front matter from a stranger: every value is a text, a number, a list or a mapping, or the file is refused."""

import pytest

from judge.errors import TaskError
from judge.prompts.load import parse_task

REST = """unit: passage
inputs: [claim, passage]
questions:
  - field: x
    labels: [{value: a}, {value: b}]
---
Choose.
<!-- unit -->
{{ claim }} {{ passage }}
{{ answer_cue }}
"""


@pytest.mark.parametrize(
    ("title", "line"),
    [
        ("!!binary aGk=", ", line 2"),
        ("!!str text", ", line 2"),
        ("!!python/name:os.system", ", line 2"),
        ("!!timestamp 2001-99-99", ", line 2"),
        ("2001-99-99", ""),
        ("9" * 5000, ""),
    ],
)
def test_tags_and_impossible_values_are_refused_with_the_file(title: str, line: str) -> None:
    with pytest.raises(TaskError, match=f"t.v1.md: the front matter is not valid YAML{line}:"):
        parse_task(f"---\ntitle: {title}\n{REST}", "t.v1.md")
