"""Store scores from another tool (RAGAS, an evaluator in Langfuse or Phoenix) as runs of that tool.

Every label needs a source. Here it is a run whose model is the tool and whose task is created for the score.
The field has the score's name and is a number, or text if some of the scores are words. The tool can then be
compared like any other judge.
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
"""Maps a kind of unit to the input of the generated task, which is never sent to a model."""
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
    """Collects scores while rows are added, and stores those of each tool and field as one run."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._of: dict[tuple[str, str, str], dict[str, ToolScore]] = defaultdict(dict)

    def add(self, kind: str, unit_id: str, scores: Iterable[ToolScore]) -> None:
        """Add the scores of a unit. If a tool has two scores for one field, the later one counts."""
        for score in scores:
            self._of[score.tool, field_name(score.field), kind][unit_id] = score

    def keep(self, files: Mapping[str, str]) -> int:
        """Write the runs and return the number of new labels. Importing the same scores again gives the same run."""
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
    """Return a score's name as a field name: lower case, digits and _, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")
    return plain if plain[:1].isalpha() else f"score_{plain}"


def _task(field: str, kind: str, level: str) -> Task:
    # A task labels one kind of unit, so a score of answers and of passages needs two tasks.
    name = f"{field}_of_{kind}" + ("_in_words" if level == "text" else "")
    text = _TASK.format(field=field, kind=kind, shown=_INPUTS[kind], level=level)
    try:
        return parse_task(text, f"{name}.v1.md")
    except TaskError as error:
        raise BadInput(f"a score of this name cannot be stored: {error}", field=field) from error


def _text(value: str | int | float) -> str:
    """Return a label as a string. Each number has only one spelling, so that 4 and 4.0 are equal."""
    if isinstance(value, str):
        return value
    return repr(int(value)) if value == int(value) else repr(float(value))
