"""Describe a task to annotators.

The description contains the codebook that the judge also reads, the keys for the labels, and the guidelines.
"""

from string import ascii_lowercase, ascii_uppercase

from judge.errors import UsageError
from judge.prompts.load import Task
from judge.prompts.render import instructions
from judge.prompts.spec import Question

SPARE = "123456789" + ascii_lowercase + ascii_uppercase
"""The keys for labels to which the task gives no key."""


def label_keys(task: Task) -> dict[str, dict[str, str]]:
    """Return a map from each field to {key: label}. Labels to which the task gives no key get digits as keys.

    Raises UsageError if there are more labels than keys.
    """
    taken = {label.key for q in task.spec.questions for label in q.labels if label.key}
    # Each question has its own digits, because one question is answered at a time. A key that the task gives
    # to a label keeps this meaning on the whole screen.
    spare = [c for c in SPARE if c not in taken]
    return {q.field: _keys(q, list(spare)) for q in task.spec.questions}


def _keys(question: Question, spare: list[str]) -> dict[str, str]:
    without = sum(label.key is None for label in question.labels)
    if without > len(spare):
        raise UsageError(
            f"field '{question.field}' has {len(question.labels)} labels, more than there are keys"
        )
    return {label.key or spare.pop(0): label.value for label in question.labels}


def markdown(task: Task) -> str:
    """Return the title, instructions, questions with keys and meanings, guidelines and citation.

    The instructions, questions and meanings are, word for word, the text that a judge reads.
    """
    parts = [f"# {task.spec.title}"]
    if text := instructions(task):
        parts.append(text)
    keys = label_keys(task)
    for question in task.spec.questions:
        parts.append(f"## {question.ask or question.field}")
        meaning = {label.value: label.meaning for label in question.labels}
        lines = [f"- `{key}` **{value}**: {meaning[value]}" for key, value in keys[question.field].items()]
        kind = "a number" if question.level == "interval" else "free text"
        parts.append("\n".join(lines) or f"Answer with {kind}.")
    if task.spec.guidelines.strip():
        parts.append(f"## Guidelines\n\n{task.spec.guidelines.strip()}")
    if task.spec.citation:
        c = task.spec.citation
        parts.append(f"*{c.paper} ({c.year}){', ' + c.where if c.where else ''}*")
    return "\n\n".join(parts)
