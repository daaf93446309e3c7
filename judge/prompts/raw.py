"""Render a raw task.

The messages are exactly as written in the file, without a notice, fences or an answer format.

Fields are filled in as plain text. The only change to a field's text is that control tokens of chat templates
are broken up, so that a passage cannot imitate another turn.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from judge.errors import UsageError
from judge.prompts.fence import break_chat_tokens
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.render import Mode, Prompt, Renderer, as_text, instructions
from judge.prompts.spec import Example
from judge.prompts.task import Task
from judge.types import Json, Message

_CHANGES = {
    "guidelines": "--guidelines",
    "rationale": "--rationale",
    "instructions": "rewritten instructions",
    "nearest_examples": "examples chosen for each unit",
}
"""Maps each run setting that would change the prompt to the setting's name in messages."""


class RawRenderer:
    """Renders one raw task. In the mode `codes`, the model answers with the letter of an option."""

    schema: Mapping[str, Json] | None = None
    words: tuple[str, ...] | None = None
    reasons_first = False
    then_answer = ""

    def __init__(self, task: Task, mode: Mode) -> None:
        if refused := [words for name, words in _CHANGES.items() if name in task.overrides]:
            raise UsageError(
                f"{task.name} is a raw task, so its prompt is sent exactly as written; leave out {refused[0]}"
            )
        self.task, self.mode = task, mode
        _, self._unit = task.templates()
        self.labels = task.domain(task.spec.questions[0].field)
        self.codes = "".join(self.labels) if mode is Mode.CODES else None
        system = instructions(task)
        head = [Message("system", system)] if system else []
        self.prefix = (*head, *chain.from_iterable(self._example(example) for example in task.spec.examples))

    def render(self, inputs: Mapping[str, Json]) -> Prompt:
        """Return the prompt for one unit. Raises TaskError if the template cannot show these inputs."""
        messages = (*self.prefix, Message("user", self._user(inputs)))
        labels = self._available(inputs)
        # Only the letters of this question's options are possible answers.
        codes = "".join(labels) if self.mode is Mode.CODES else None
        return Prompt(messages, len(self.prefix), None, codes, labels=labels)

    def _available(self, inputs: Mapping[str, Json]) -> tuple[str, ...]:
        """Return the labels that are possible for this unit.

        If the labels are letters of answer options, only the letters of the unit's own options are possible.
        """
        options = inputs.get("options")
        if self.task.spec.letters and isinstance(options, Mapping):
            return tuple(label for label in self.labels if label in options) or tuple(self.labels)
        return tuple(self.labels)

    def _user(self, inputs: Mapping[str, Json]) -> str:
        shown = {name: _value(name, inputs.get(name)) for name in self.task.input_names}
        return self._unit.render(shown, _show).strip()

    def _example(self, example: Example) -> list[Message]:
        answer = example.answers[self.task.spec.questions[0].field]
        return [Message("user", self._user(example.inputs)), Message("assistant", answer)]


def renderer_of(
    task: Task, mode: Mode, orders: Mapping[str, Sequence[str]] | None = None
) -> Renderer | RawRenderer:
    """Return the renderer for a task.

    A raw task is rendered exactly as written. Any other task is rendered with fences and an answer format.
    """
    return RawRenderer(task, mode) if task.spec.raw else Renderer(task, mode, orders)


def _show(value: Any) -> str:
    """Return a value as text. A passage is shown below its title and date, with an empty line between passages."""
    if isinstance(value, list):
        return "\n\n".join(map(_show, value))
    if isinstance(value, dict):
        return "\n".join(filter(None, [value["title"], value["date"], value["text"]]))
    return str(value)


def _value(name: str, value: Json) -> str | list[dict[str, str]] | None:
    if name not in LIST_INPUTS:
        text = as_text(value)
        return None if text is None else break_chat_tokens(text)
    entries = [value] if isinstance(value, str) else list(value or ())
    return [_passage(entry, number) for number, entry in enumerate(entries, 1)] or None


def _passage(entry: Json, number: int) -> dict[str, str]:
    parts = {"marker": str(number), "text": entry} if isinstance(entry, str) else entry
    return {key: break_chat_tokens(str(parts.get(key) or "")) for key in ("marker", "title", "date", "text")}
