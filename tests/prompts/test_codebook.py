"""People and models read the same definitions of a task's labels."""

import re
from html import unescape

import pytest

from annotate.exchange.label_studio.config import ConfigLayout
from annotate.guidelines import markdown
from judge.prompts import Mode, Renderer, Task, find_tasks, load_task
from judge.prompts.fence import DATA_NOTICE

RAW = {
    "claim_answer", "mirage_answer", "mirage_inference", "multiple_choice", "qa_answer", "urag_aware", "urag_choice",
    "verdict", "verdict_document",
}  # fmt: skip
"""Tasks for systems under test: their prompt is a paper's, and nobody labels units with them."""
SHIPPED = [name for name in find_tasks() if name.rpartition(".v")[0] not in RAW]
FORM = (
    "Answer with exactly one",
    "Answer with one JSON object",
    "First write one or two sentences of reasoning",
)
"""How the lines begin that say in what form a model answers."""
OWN = ("Answer with a number.", "Answer with free text.")
"""The same for people."""


def read_by_models(task: Task, mode: Mode) -> list[str]:
    """What a model reads before the units, one paragraph, question or label an entry, without fence and form."""
    head, _, questions = Renderer(task, mode).prefix[0].content.partition(DATA_NOTICE)
    lines = [line for line in questions.splitlines() if line and not line.startswith(FORM)]
    labels = [re.sub(r'^(?:- "(.*?)"|[A-Z] = ([^:]*))(?=: )', r"\1\2", line) for line in lines]
    return [*_paragraphs(head), *labels]


def read_by_people(task: Task) -> list[str]:
    """The same of the page that people read, without title, keys, guidelines and citation."""
    page = markdown(task).removeprefix(f"# {task.spec.title}\n").partition("\n## Guidelines\n")[0]
    parts = [part for part in _paragraphs(page, "\n") if part not in OWN]
    if parts[-1].startswith(f"*{task.spec.citation.paper}" if task.spec.citation else "*"):
        parts.pop()
    head = [part.removeprefix("## ") for part in parts]
    return _joined([re.sub(r"^- `.` \*\*(.*?)\*\*(?=: )", r"\1", part) for part in head], task)


def _paragraphs(text: str, by: str = "\n\n") -> list[str]:
    return [" ".join(part.split()) for part in text.split(by) if part.strip()]


def _joined(lines: list[str], task: Task) -> list[str]:
    """Lines before the first question as one paragraph: the page wraps the instructions."""
    first = task.spec.questions[0]
    at = lines.index(first.ask or first.field)
    return [*([" ".join(lines[:at])] if at else []), *lines[at:]]


@pytest.mark.parametrize("name", SHIPPED)
def test_people_and_models_read_the_same(name: str) -> None:
    task = load_task(name)
    modes = [Mode.JSON, *([Mode.CODES] if task.one_choice or task.reasons_first else [])]
    for mode in modes:
        assert read_by_models(task, mode) == read_by_people(task)
    assert not task.spec.examples, "people would not see them"


def test_what_is_sent_as_it_is_written_are_the_tasks_for_systems_under_test() -> None:
    assert {load_task(name).task_id for name in find_tasks() if load_task(name).spec.raw} == RAW


@pytest.mark.parametrize("name", SHIPPED)
def test_label_studio_shows_the_same(name: str) -> None:
    task = load_task(name)
    if task.spec.unit in ("pair",) or any(q.many for q in task.spec.questions):
        return
    shown = " ".join(unescape(re.sub(r"<[^>]+>", " ", ConfigLayout(task).instruction)).split())
    for text in read_by_people(task):
        for part in text.split(": ", 1):
            assert part.replace("`", "") in shown


@pytest.mark.parametrize("name", SHIPPED)
def test_guidelines_name_no_label(name: str) -> None:
    """A rule that decides a label belongs to the label's meaning, where the model reads it too."""
    task = load_task(name)
    for label in (label.value for question in task.spec.questions for label in question.labels):
        assert not re.search(rf"(?<!\w){re.escape(label)}(?!\w)", task.spec.guidelines, re.IGNORECASE), label
