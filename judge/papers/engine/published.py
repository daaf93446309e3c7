"""The results that the papers published, each with its setting, for comparison with our results. They are in the
declarations of the papers.

They were measured with a different judge, passage set and rows. Shares are stored as fractions, although some
papers give percentages. `measure` is the name of the measure in this package.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

from judge.paper_files import read_declarations
from judge.types import Json

Seen = Literal["paper", "second-hand"]


@dataclass(frozen=True, slots=True)
class Published:
    """A result published in a paper.

    `by` states who labelled the data. `seen` states where the number was read: in the paper itself, or
    second-hand.
    """

    paper: str
    measure: str
    system: str
    value: float
    setting: str
    by: str
    where: str
    seen: Seen = "paper"

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation."""
        return asdict(self)


def read_published(paper: str) -> list[Published]:
    """Return the results published in a paper (garage, raguard, confirmation, mirage)."""
    return [p for p in read_all_published() if p.paper == paper]


@cache
def read_all_published() -> tuple[Published, ...]:
    """Return the published results of all papers, in the order of the files."""
    declared = ((name, declaration.get("published", [])) for name, declaration in read_declarations().items())
    return tuple(
        number for name, tables in declared for table in tables for number in _numbers(paper=name, **table)
    )


def _numbers(
    columns: str, systems: dict[str, str], percent: bool = False, **common: Any
) -> Iterator[Published]:
    """Yield the results as a table. Each row of `systems` has a number for each of the `columns`, or `-` if the
    number is missing.
    """
    for system, numbers in systems.items():
        for measure, number in zip(columns.split(), numbers.split(), strict=True):
            if number != "-":
                # Rounded, so that 57.9 % is 0.579 and not 0.5790000000000001.
                value = round(float(number) / 100, 6) if percent else float(number)
                yield Published(measure=measure, system=system, value=value, **common)
