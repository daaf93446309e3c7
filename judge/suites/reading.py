"""One reading of a paper: the options and parts that were asked for, what there is to note, and what is missing."""

from dataclasses import dataclass

from judge.commands import command
from judge.errors import UsageError
from judge.suites.paper import Asked, Paper
from judge.suites.steps import Incomplete, Step
from judge.types import Json, attributes


@dataclass(frozen=True, slots=True)
class Lacking:
    """What a system under test has no output for, by the paper's name of the condition; `add` is the command that adds it."""

    system: str
    condition: str
    add: str

    def as_json(self) -> dict[str, Json]:
        """The documented shape."""
        return attributes(self, "system", "condition", "add")


class Reading:
    """A paper's options as they were asked for; notes and missing steps are kept for the end."""

    def __init__(self, paper: Paper, asked: Asked, db: str) -> None:
        """`db`: the path of the study, for the commands that are printed."""
        self.paper, self.asked, self.db = paper, asked, db
        self.steps: list[Step] = []
        self.notes: list[str] = []
        self.lacking: list[Lacking] = []

    def option(self, name: str) -> str:
        """A reading, as asked for or by default. Raises UsageError for a value that is no choice."""
        known = next(o for o in self.paper.options if o.name == name)
        value = self.asked.options.get(name, known.default)
        if known.choices and value not in known.choices:
            raise UsageError(f"--{name} is one of {', '.join(known.choices)}, not '{value}'")
        return value

    @property
    def options(self) -> dict[str, str]:
        """All of them, as asked for or by default."""
        return {option.name: self.option(option.name) for option in self.paper.options}

    def number(self, name: str) -> float:
        """A reading that is a number."""
        try:
            return float(self.option(name))
        except ValueError as e:
            raise UsageError(f"--{name} is a number, not '{self.option(name)}'") from e

    def numbers(self, name: str) -> list[int]:
        """A reading that is a list of whole numbers from 1, as 1,5."""
        words = self.option(name).split(",")
        if not all(word.strip().isdecimal() and int(word) > 0 for word in words):
            raise UsageError(f"--{name} is a list of whole numbers from 1, as 1,5, not '{self.option(name)}'")
        return [int(word) for word in words]

    def words(self, name: str) -> list[str]:
        """A reading that is a list of words, as nDCG@10,AP; empty by default."""
        return [word.strip() for word in self.option(name).split(",") if word.strip()]

    def part(self, name: str) -> bool:
        """Whether this part is to be read."""
        return not self.asked.parts or name in self.asked.parts

    def insists(self, name: str) -> bool:
        """Whether this part was asked for by name: then data that lack it are an error."""
        return name in self.asked.parts

    def note(self, text: str) -> None:
        """Say something beside the numbers, once."""
        if text not in self.notes:
            self.notes.append(text)

    def lack(self, system: str, condition: str, more: str = "") -> None:
        """Note that a system has no output under a condition; nothing is filled in."""
        words = self.import_words("FILE", "--system", system, "--condition", condition)
        found = Lacking(system, condition, f"{words}{more}")
        if found not in self.lacking:
            self.lacking.append(found)

    def import_words(self, *words: str) -> str:
        """The command that imports outputs into this study."""
        return command("judge systems import", *words, study=self.db)

    def need(self, step: Step) -> None:
        """Note a step that is missing; `check` tells. A partial score goes without."""
        if not self.asked.partial:
            self.steps.append(step)

    def check(self) -> None:
        """Raises Incomplete when something that was asked for is missing."""
        if self.steps:
            raise Incomplete(self.paper.name, self.steps)
