"""Store the scores from another tool (RAGAS, or an evaluator in Langfuse or Phoenix) as runs of that tool.

Each tool gets one run for each field and kind of unit. The run's model is the tool's name. The run's task is
generated, and its only field has the score's name. It is a numeric field, or a text field if some of the
scores are words. The tool can then be compared with judges like any other judge.
"""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping

from judge.errors import BadInput, TaskError
from judge.prompts.load import Task, parse_task
from judge.store.runs import add_imported
from judge.types import Answered, Judgement, Status, ToolScore

_INPUTS = {"answer": "answer", "item": "question", "passage": "passage"}
"""Maps each kind of unit to the input in the generated task. The task is never sent to a model."""
_TASK = """---
title: '{field}, as another tool scored it'
unit: {kind}
inputs: [{shown}]
questions:
  - field: {field}
    level: {level}
---
Another tool gave this score before the import; adjudge asks no model for it.
<!-- unit -->
{{{{ {shown} }}}}
{{{{ answer_cue }}}}
"""


class ToolScores:
    """Collects scores while rows are added, and stores each tool's scores for each field as one run."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._of: dict[tuple[str, str, str], dict[str, ToolScore]] = defaultdict(dict)

    def add(self, kind: str, unit_id: str, scores: Iterable[ToolScore]) -> None:
        """Add the scores for a unit. If a tool has two scores for the same field, the later one is used."""
        for score in scores:
            self._of[score.tool, field_name(score.field), kind][unit_id] = score

    def keep(self, files: Mapping[str, str]) -> int:
        """Write the runs, and return the number of new labels.

        If the same scores are already stored as a run, nothing is written.
        """
        new = 0
        for (tool, field, kind), scores in self._of.items():
            # One word among the scores makes the field text, because a word cannot be placed on a scale of numbers.
            numbers = all(not isinstance(score.value, str) for score in scores.values())
            task = _task(field, kind, "interval" if numbers else "text")
            judgements = []
            for unit, score in scores.items():
                label = Answered(field, _text(score.value), rationale=score.rationale)
                judgements.append(Judgement("", unit, 0, 1, Status.OK, labels=(label,)))
            content = [(unit, score.value) for unit, score in scores.items()]
            known = add_imported(self._conn, task, tool, judgements, content, files)
            new += 0 if known else len(judgements)
        return new


def field_name(name: str) -> str:
    """Convert a score's name to a field name.

    A field name consists of lower-case letters, digits and _, and starts with a letter.
    """
    plain = re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")
    return plain if plain[:1].isalpha() else f"score_{plain}"


def _task(field: str, kind: str, level: str) -> Task:
    # A task labels one kind of unit, so a score of answers and of passages needs two tasks.
    name = f"{field}_of_{kind}" + ("_in_words" if level == "text" else "")
    text = _TASK.format(field=field, kind=kind, shown=_INPUTS[kind], level=level)
    try:
        return parse_task(text, f"{name}.v1.md")
    except TaskError as error:
        raise BadInput(f"a score with this name cannot be stored: {error}", field=field) from error


def _text(value: str | int | float) -> str:
    """Return a score as a string. Equal numbers, such as 4 and 4.0, give equal strings."""
    if isinstance(value, str):
        return value
    return repr(int(value)) if value == int(value) else repr(float(value))
