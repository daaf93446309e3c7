"""One unit as an annotator sees it: inputs, passages, the other parts of its answer, and its status."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from annotate.sitting.events import State

PARTS = ("sentence", "citation", "claim", "nugget")
"""Kinds of units that are parts of an answer, and stay together in a queue."""


class TimeSpent(NamedTuple):
    """Milliseconds since the previous event, at work and away.

    `shown_ms` are those since the unit was painted: 0 for a key before the paint, None without a screen.
    """

    # The report names people who label faster than people read, by `shown_ms`.

    active_ms: int = 0
    idle_ms: int = 0
    shown_ms: int | None = None


class ShownPassage(NamedTuple):
    """A passage of an input that is a list of passages.

    `marker` is the id by which answers can cite it, None without one. `place` is its number in the context of the
    answer, from 1.
    """

    passage_id: str
    marker: str | None
    place: int | None
    title: str | None
    date: str | None
    source: str | None
    text: str


class Source(NamedTuple):
    """The labels of one annotator of a unit for adjudication, under a letter in place of the name."""

    # Without names, a lead decides by what is said and not by who says it.

    letter: str
    answers: dict[str, str]
    note: str | None
    flag: str | None
    spans: list[tuple[str, int, int]]


class AnswerPart(NamedTuple):
    """A unit that is a part of an answer: a sentence, a citation, a claim. `span` is in code points."""

    position: int
    unit_id: str
    span: tuple[int, int] | None
    status: str
    answers: dict[str, str]


@dataclass(slots=True)
class Sheet:
    """One unit as a screen shows it. `role` is unit, training or adjudication.

    `inputs` has the passages of its lists. `parts` are the annotator's units of the same answer in its order, this one
    (`part`) included.
    """

    position: int
    unit_id: str
    role: str
    inputs: dict[str, Any]
    state: State
    parts: list[AnswerPart] = field(default_factory=list)

    def texts(self) -> Iterator[str]:
        """Yield every text of the unit's inputs, with those of listed passages."""
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
        """This unit among `parts`."""
        return next((p for p in self.parts if p.position == self.position), None)


class ReviewLine(NamedTuple):
    """One row of the review list."""

    position: int
    status: str
    answers: dict[str, str]
    flag: str | None
    note: str | None
    text: str
