"""Render a unit as two texts for a model that compares a statement with its evidence.

Such a model does not read instructions. Its input is a question or claim, and a passage. The texts are not
fenced, because the model does not treat any text as an instruction.
"""

from collections.abc import Mapping

from judge.errors import TaskError, UsageError
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task
from judge.prompts.render import Prompt, as_text
from judge.types import Json, Message

STATEMENT, EVIDENCE = "statement", "evidence"
"""The roles of the two messages."""
_EVIDENCE = ("passage", *LIST_INPUTS)


class PairRenderer:
    """Renders a unit as two texts: a statement (a question, claim or sentence) and its evidence.

    Raises UsageError unless the task has exactly one question with labels, and shows exactly one statement
    and one piece of evidence.
    """

    # The runner reads these attributes of every renderer. They are empty here.
    prefix: tuple[Message, ...] = ()
    codes: str | None = None
    schema: Mapping[str, Json] | None = None
    reasons_first = False
    then_answer = ""

    def __init__(self, task: Task) -> None:
        needed = task.required_inputs
        evidence = [name for name in needed if name in _EVIDENCE]
        if (
            len(needed) != 2
            or len(evidence) != 1
            or len(task.spec.questions) != 1
            or not task.spec.questions[0].labels
        ):
            raise UsageError(
                f"{task.name}: a model that compares two texts needs a task that shows one statement and one "
                f"passage and asks one question with labels; this task shows {', '.join(needed)}"
            )
        self.task = task
        self.labels = task.domain(task.spec.questions[0].field)
        self.words = tuple(self.labels)
        self._evidence = evidence[0]
        self._statement = next(name for name in needed if name != self._evidence)

    def render(self, inputs: Mapping[str, Json]) -> Prompt:
        """Return the two texts for one unit. A passage's text follows its title, as in `judge retrieve`."""
        statement = as_text(inputs.get(self._statement))
        value = inputs.get(self._evidence)
        evidence = _format_value(value) if self._evidence in LIST_INPUTS else as_text(value)
        if statement is None or evidence is None:
            raise TaskError(f"{self.task.name}: a unit lacks {self._statement} or {self._evidence}")
        if self._evidence == "passage" and (title := inputs.get("passage_title")):
            evidence = f"{title}\n{evidence}"
        messages = (Message(STATEMENT, statement), Message(EVIDENCE, evidence))
        return Prompt(messages, 0, None, None, self.words)


def _format_value(value: Json) -> str:
    entries = [value] if isinstance(value, str) else list(value or ())
    return "\n\n".join(
        entry if isinstance(entry, str) else "\n".join(filter(None, [entry.get("title"), entry["text"]]))
        for entry in entries
    )
