"""What a report is about: one field, the people and judges who labelled it, and the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from functools import cached_property
from itertools import combinations
from pathlib import Path

from judge.labels.panel import Derived, Panel
from judge.labels.reference import Reference
from judge.stats.metrics import shown
from judge.stats.ratings import IntArray
from judge.types import AnnotatorKind, Measure

# More people than this make more pairs than a table can show: they are summarised.
MANY = 8
CEILING = ("percent", "krippendorff_alpha", "fleiss_kappa", "gwet_ac1")
ORDERED_CEILING = ("percent", "krippendorff_alpha", "gwet_ac2")


@dataclass(frozen=True)
class ReportOptions:
    """What the command asks for; None or empty takes the default that the report then names."""

    task: str | None = None
    field: str | None = None
    runs: Sequence[str] = ()
    batch: str | None = None
    reference: str | None = None
    epsilon: float = 0.2
    epsilon_name: str = ""
    margin: float = -0.1
    threshold: float = 0.667
    least_others: int = 1
    clustered: bool = True
    limit: int = 50
    curve: bool = False
    annotators: Sequence[str] | None = None
    level: str | None = None
    order: Sequence[str] | None = None


@dataclass(frozen=True, eq=False)
class Subject:
    """The labels of one field, and what judges are held against (None: there is nothing). `table`: they are no study's.

    `kept` and `others_of` are what `summary` has computed already, for the drawing and the table."""

    asked: ReportOptions
    panel: Panel
    held: Reference | None
    other_fields: Sequence[str] = ()
    table: Path | None = None
    kept: dict[tuple[str, str, bytes, bytes], Measure] = default(default_factory=dict)
    others_of: dict[str, IntArray] = default(default_factory=dict)

    @property
    def majority(self) -> str | None:
        """The column of the people's majority, where there are two people or more."""
        return self.panel.majority.name if self.panel.majority else None

    @property
    def n_tied(self) -> int:
        return self.panel.majority.n_tied if self.panel.majority else 0

    @property
    def decided(self) -> Derived | None:
        """What a lead decided, with what people agree on elsewhere."""
        return self.panel.decided if self.panel.of_kind(AnnotatorKind.ADJUDICATED) else None

    @property
    def reference(self) -> str | None:
        """The column that judges are held against."""
        return self.held.name if self.held else None

    @property
    def reference_kind(self) -> str | None:
        """The word for it: gold, decided, majority, or a person's name."""
        return self.held.word if self.held else None

    @property
    def reference_text(self) -> str:
        """The reference in words."""
        return self.held.text if self.held else "none"

    @property
    def coefficient_name(self) -> str:
        """The same in words."""
        return shown(self.panel.coefficient)

    @cached_property
    def run_ids(self) -> Mapping[str, str]:
        """Name of a judge in the table -> run id; judges of a table have none."""
        return {shown: run for run, shown in self.panel.shown.items()}

    @property
    def waiting(self) -> Mapping[str, Mapping[str, int]]:
        """Person -> layer -> labels that are not known to be blind, and are not used."""
        return {n: own for n, own in self.panel.layers.items() if n not in self.panel.others}

    @cached_property
    def pairs(self) -> list[tuple[str, str, Measure, Measure]]:
        """Percent agreement and the coefficient of every two people, on the units that people labelled."""
        # Numbers are seldom the same to the last digit: how often they are says nothing.
        keys = [self.panel.coefficient] if self.panel.numeric else ["percent", self.panel.coefficient]
        found = [
            (*pair, self.panel.measure(pair, self.panel.keys(keys)))
            for pair in combinations(self.panel.people, 2)
        ]
        return [(first, second, m[0], m[-1]) for first, second, m in found]

    def measure(self, first: str, second: str, *names: str) -> list[Measure]:
        """Coefficients of two annotators, by default the one of the level."""
        keys = self.panel.keys(names or [self.panel.coefficient])
        return self.panel.measure([first, second], keys, confidence=self.panel.confidence(first, second))
