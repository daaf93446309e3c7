"""What a search tried, and what came out of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from dataclasses import field as default

from judge.improve.people import People
from judge.improve.recipe import Recipe
from judge.prompts.load import Task
from judge.suites.contest import Contest


@dataclass(frozen=True)
class Tried:
    """One candidate: its agreement with the reference (kappa times the share of units with a label; None: undefined) on
    so many questions of tune, and the tokens a unit takes (None: not known).
    """

    rung: str
    recipe: Recipe
    run_id: str
    score: float
    kappa: float | None
    coverage: float
    n_units: int
    n_questions: int
    tokens: float | None


@dataclass
class Improved:
    """What came out. `proof` is the comparison on the sealed test, None when nothing was opened."""

    task: Task
    field: str
    reference: str
    model: str
    tried: list[Tried] = default(default_factory=list)
    people: People | None = None
    refused: bool = False
    winner: Recipe | None = None
    proof: Contest | None = None
    level: float = 0.05
    difference: tuple[float, float | None, float | None] | None = None
    """On the sealed test: winner minus today, with its interval."""
    needed: int | None = None
    """How many labelled test units would show a difference like the one that was seen."""
    spent: Counter[str] = default(default_factory=Counter)
    cost: float | None = None
    stopped: str | None = None
    notes: list[str] = default(default_factory=list)

    @property
    def proved(self) -> bool:
        """The lower bound of the difference is above 0."""
        return self.difference is not None and self.difference[1] is not None and self.difference[1] > 0
