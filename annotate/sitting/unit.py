"""A unit as an annotator sees it: inputs, passages, the other parts of its answer, and its status."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from annotate.sitting.events import State

PARTS = ("sentence", "citation", "claim", "nugget")
"""The kinds of unit that are parts of an answer and stay together in a queue."""


class TimeSpent(NamedTuple):
    """The time since the previous event, in milliseconds: `active_ms` at work and `idle_ms` away.

    `shown_ms` is the time since the unit appeared on the screen. It is 0 if the key was pressed before the
    unit appeared, and None if there is no screen.
    """

    # The report uses `shown_ms` to name people who label faster than people can read.

    active_ms: int = 0
    idle_ms: int = 0
    shown_ms: int | None = None


class ShownPassage(NamedTuple):
    """A passage in an input that is a list of passages.

    `marker` is the id by which answers can cite the passage, or None if there is no such id. `place` is the
    passage's number, from 1, in the context that the system received for its answer.
    """

    passage_id: str
    marker: str | None
    place: int | None
    title: str | None
    date: str | None
    source: str | None
    text: str


class Source(NamedTuple):
    """One annotator's labels for a unit, for adjudication, with a letter in place of the annotator's name."""

    # Without names, a lead decides by the labels and not by who gave them.

    letter: str
    answers: dict[str, str]
    note: str | None
    flag: str | None
    spans: list[tuple[str, int, int]]


class AnswerPart(NamedTuple):
    """A unit that is part of an answer: a sentence, a citation, a claim. `span` is in code points."""

    position: int
    unit_id: str
    span: tuple[int, int] | None
    status: str
    answers: dict[str, str]


@dataclass(slots=True)
class Sheet:
    """A unit as a screen shows it. `role` is unit, training or adjudication.

    `inputs` contains the passages for inputs that are lists. `parts` are the annotator's units in the same answer, in the
    order of the answer, including this unit (`part`).
    """

    position: int
    unit_id: str
    role: str
    inputs: dict[str, Any]
    state: State
    parts: list[AnswerPart] = field(default_factory=list)

    def texts(self) -> Iterator[str]:
        """Yield every text in the unit's inputs, including the texts of listed passages."""
        for value in self.inputs.values():
            if isinstance(value, str):
                yield value
            elif isinstance(value, list):
                yield from (
                    element.text if isinstance(element, ShownPassage) else str(element) for element in value
                )
            elif isinstance(value, dict):
                yield from map(str, value.values())

    @property
    def part(self) -> AnswerPart | None:
        """The entry for this unit in `parts`."""
        return next((p for p in self.parts if p.position == self.position), None)


class ReviewLine(NamedTuple):
    """One row in the review list."""

    position: int
    status: str
    answers: dict[str, str]
    flag: str | None
    note: str | None
    text: str
