"""Convert a unit to one plain text, for tools that show a single text.

Evidence that is marked in this text is mapped back to the input that contains it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from judge.errors import BadInput
from judge.prompts.spec import Label

Spans = list[tuple[str, int, int]]
EVIDENCE = "evidence"


class InputsOfAnyTask(Mapping[str, Any]):
    """The inputs of a unit whose task is unknown.

    Which inputs a unit has depends on the task. They are computed for each task that labels units of this
    kind. The mapping contains the inputs for all of these tasks, and `iterate` yields them task by task.
    """

    def __init__(self, each: Callable[[], Iterator[Mapping[str, Any]]]) -> None:
        self._each, self._texts = each, list[Mapping[str, Any]]()
        self._rest: Iterator[Mapping[str, Any]] | None = None

    def iterate(self) -> Iterator[Mapping[str, Any]]:
        """Yield the unit's inputs for each possible task, beginning with the task that matched most recently."""
        # Most files belong to one task, so the first comparison usually succeeds: the others are read only if it fails.
        yield from self._texts
        if self._rest is None:
            self._rest = self._each()
        for texts in self._rest:
            self._texts.append(texts)
            yield texts

    def _all(self) -> dict[str, Any]:
        return {name: value for texts in [*self.iterate()][::-1] for name, value in texts.items()}

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


MARKABLE = ("passage", "answer")
"""The inputs in which annotators can mark evidence, in exported units and in the terminal."""


def find_marked_input(names: Collection[str]) -> str | None:
    """Return the input in which evidence is marked: the passage or, if there is no passage, the answer."""
    return next((name for name in MARKABLE if name in names), None)


def option_text(label: Label) -> str:
    """Return the text of an option to choose: a label with its meaning."""
    return f"{label.value}: {label.meaning}" if label.meaning else label.value


class TextPart(NamedTuple):
    """The position of an input in the composed text, in code points."""

    name: str
    start: int
    end: int


def title(name: str) -> str:
    """Return an input's name as a heading: `passage_title` -> `Passage title`."""
    return name.replace("_", " ").capitalize()


def compose(inputs: Mapping[str, Any]) -> tuple[str, list[TextPart]]:
    """Return all inputs as one text with headings, and the position of each text input in this text."""
    text, parts = "", []
    for name, value in inputs.items():
        text += f"{title(name)}:\n"
        shown = flatten(value)
        if isinstance(value, str):
            parts.append(TextPart(name, len(text), len(text) + len(shown)))
        text += f"{shown}\n\n"
    return text.removesuffix("\n\n"), parts


def flatten(value: Any) -> str:
    """Return one input as text. Passages have numbers, options have letters, and each of several answers has
    its own line.
    """
    if isinstance(value, Mapping):
        return "\n".join(f"{k}. {v}" for k, v in value.items())
    if isinstance(value, list) and value and all(isinstance(passage, Mapping) for passage in value):
        return "\n\n".join(_passage(n, p) for n, p in enumerate(value, 1))
    return "\n".join(str(v) for v in value) if isinstance(value, list) else str(value)


def _passage(number: int, passage: Mapping[str, Any]) -> str:
    # A record in a foreign file may contain anything here, and is still compared with our text.
    about = " · ".join(str(passage[k]) for k in ("title", "date", "source") if passage.get(k))
    return (
        f"[{number}] {about}\n{passage.get('text', '')}" if about else f"[{number}] {passage.get('text', '')}"
    )


def outward(spans: Sequence[tuple[str, int, int]], parts: Sequence[TextPart]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) in the composed text, in code points, for each span of evidence in an input."""
    starts = {p.name: p.start for p in parts}
    for name, start, end in spans:
        if name in starts:
            yield starts[name] + start, starts[name] + end


def inward(spans: Sequence[tuple[Any, Any]], text: Any, inputs: Mapping[str, Any] | None) -> Spans:
    """Convert spans (start, end) in `text` to evidence in the unit's inputs. `text` is our composed text, or
    one input unchanged.

    Raises BadInput for any other text, and for a span that is not within one input.
    """
    if not spans:
        return []
    if inputs is None or isinstance(inputs, InputsOfAnyTask):
        raise BadInput("evidence can be imported only with --batch", field="spans")
    composed, parts = compose(inputs)
    if text != composed:
        parts = [TextPart(n, 0, len(v)) for n, v in inputs.items() if isinstance(v, str) and v == text][:1]
        if not parts:
            raise BadInput("is not the unit's text, so evidence in it cannot be placed", field="text")
    evidence: Spans = []
    for start, end in spans:
        # True is an int in Python.
        if not all(isinstance(n, int) and not isinstance(n, bool) for n in (start, end)):
            raise BadInput("start and end must be whole numbers", field="spans")
        part = next((p for p in parts if p.start <= start < end <= p.end), None)
        if part is None:
            places = ", ".join(f"{p.name} {p.start}-{p.end}" for p in parts)
            raise BadInput(
                f"evidence {start}-{end} is not within a text of the unit ({places})", field="spans"
            )
        evidence.append((part.name, start - part.start, end - part.start))
    return sorted(evidence)
