"""The options and parts that were requested for a paper, and the notes and missing steps that were collected
while its scores were computed.
"""

from dataclasses import dataclass

from judge.commands import command
from judge.errors import UsageError
from judge.papers.engine.paper import Paper, ScoreRequest
from judge.papers.engine.steps import Incomplete, Step
from judge.types import Json, attributes


@dataclass(frozen=True, slots=True)
class Lacking:
    """A condition for which a system has no outputs.

    `condition` is the condition's name in the paper. `add` is the command that imports the outputs.
    """

    system: str
    condition: str
    add: str

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation."""
        return attributes(self, "system", "condition", "add")


class Reading:
    """The requested options of a paper. Notes and missing steps are collected, so that one pass finds all of them."""

    def __init__(self, paper: Paper, request: ScoreRequest, db: str) -> None:
        """Start a reading. `db` is the path of the study, which printed commands contain."""
        self.paper, self.request, self.db = paper, request, db
        self.steps: list[Step] = []
        self.notes: list[str] = []
        self.lacking: list[Lacking] = []

    def option(self, name: str) -> str:
        """Return the value of an option, or its default. Raises UsageError if the value is not one of the choices."""
        known = next(o for o in self.paper.options if o.name == name)
        value = self.request.options.get(name, known.default)
        if known.choices and value not in known.choices:
            raise UsageError(f"--{name} must be one of {', '.join(known.choices)}, not '{value}'")
        return value

    @property
    def options(self) -> dict[str, str]:
        """The values of all options of the paper, including defaults."""
        return {option.name: self.option(option.name) for option in self.paper.options}

    def number(self, name: str) -> float:
        """Return the value of an option as a number. Raises UsageError if the value is not a number."""
        try:
            return float(self.option(name))
        except ValueError as e:
            raise UsageError(f"--{name} must be a number, not '{self.option(name)}'") from e

    def numbers(self, name: str) -> list[int]:
        """Return the value of an option, such as 1,5, as a list of positive integers. Raises UsageError if it
        is not such a list.
        """
        words = self.option(name).split(",")
        if not all(word.strip().isdecimal() and int(word) > 0 for word in words):
            raise UsageError(
                f"--{name} must be a list of positive whole numbers, such as 1,5, not '{self.option(name)}'"
            )
        return [int(word) for word in words]

    def words(self, name: str) -> list[str]:
        """Return the value of an option, such as nDCG@10,AP, as a list of words."""
        return [word.strip() for word in self.option(name).split(",") if word.strip()]

    def part(self, *names: str) -> bool:
        """Return whether any of these parts was requested. If no parts are named, all parts are requested."""
        return not self.request.parts or any(name in self.request.parts for name in names)

    def insists(self, name: str) -> bool:
        """Return whether this part was requested by name. For such a part, missing data are an error instead of
        a note.
        """
        return name in self.request.parts

    def note(self, text: str) -> None:
        """Add a note to the scores, unless the same note already exists."""
        # Several parts of a paper read the same rows, and would note the same.
        if text not in self.notes:
            self.notes.append(text)

    def record_missing(self, system: str, condition: str) -> None:
        """Record that a system has no outputs under a condition."""
        words = self.import_words("FILE", "--system", system, "--condition", condition)
        gap = Lacking(system, condition, words)
        # Two parts may need the same condition.
        if gap not in self.lacking:
            self.lacking.append(gap)

    def import_words(self, *words: str) -> str:
        """Return the command that imports outputs into this study, with these arguments."""
        return command("judge systems import", *words, study=self.db)

    def need(self, step: Step) -> None:
        """Record a missing step, which `check` then reports. If a partial score was requested, missing steps
        are ignored.
        """
        if not self.request.partial:
            self.steps.append(step)

    def check(self) -> None:
        """Raise Incomplete if any steps were recorded."""
        if self.steps:
            raise Incomplete(self.paper.name, self.steps)
