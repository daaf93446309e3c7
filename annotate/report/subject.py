"""What a report is about: one field, the people and judges who labelled it, and the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np

from annotate.study import NUMERIC, Labelled
from judge.stats import MISSING, Ratings, measures, scores_alpha
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.types import AnnotatorKind, Measure

Reference = Literal["gold", "majority", "adjudicated"]
# More people than this make more pairs than a table can show: they are summarised.
MANY = 8
CEILING = ("percent", "krippendorff_alpha", "fleiss_kappa", "gwet_ac1")
ORDERED_CEILING = ("percent", "krippendorff_alpha", "gwet_ac2")


@dataclass(frozen=True)
class Asked:
    """What the command asks for; None or empty takes the default that the report then names."""

    task: str | None = None
    field: str | None = None
    runs: Sequence[str] = ()
    batch: str | None = None
    reference: Reference | None = None
    epsilon: float = 0.2
    epsilon_name: str = ""
    margin: float = -0.1
    threshold: float = 0.667
    limit: int = 50


@dataclass(frozen=True)
class Decided:
    """The column of what was adjudicated (`n_ruled` units) or is what people agree on (`n_agreed`)."""

    name: str
    n_ruled: int
    n_agreed: int


@dataclass(frozen=True, eq=False)
class Subject:
    """The labels of one field with the reference beside them.

    `ratings` are those of `found`, and the people's majority where there are two people or more.
    `reference` is a column of it, None when there is nothing to compare with. `waiting`: person -> layer -> labels
    that are not known to be blind, and are not used.
    """

    asked: Asked
    found: Labelled
    ratings: Ratings
    people: Sequence[str]
    judges: Sequence[str]
    others: Sequence[str]
    majority: str | None
    n_tied: int
    decided: Decided | None
    waiting: Mapping[str, Mapping[str, int]]
    reference: str | None
    reference_kind: Reference | None
    other_fields: Sequence[str]

    @property
    def field(self) -> str:
        return self.found.field

    @property
    def level(self) -> str:
        return self.found.level

    @property
    def numeric(self) -> bool:
        """Whether the labels are numbers, which have no classes."""
        return self.level in NUMERIC

    @property
    def coefficient(self) -> str:
        """The coefficient of a pair that the level asks for: the verdict rests on it."""
        if self.numeric:
            return "krippendorff_alpha"
        return "cohen_kappa:quadratic" if self.level == "ordinal" else "cohen_kappa"

    @property
    def coefficient_name(self) -> str:
        """The same in words."""
        return {
            "krippendorff_alpha": "Krippendorff's alpha",
            "cohen_kappa": "Cohen's kappa",
            "cohen_kappa:quadratic": "quadratic weighted kappa",
        }[self.coefficient]

    @property
    def reference_text(self) -> str:
        """The reference in words."""
        if self.reference_kind == "majority":
            return "the people's majority" if self.majority else f"the labels of {self.people[0]}"
        if self.reference_kind == "adjudicated" and self.decided is not None:
            d = self.decided
            return f"the adjudicated labels ({d.n_ruled:,} unit{'s' if d.n_ruled != 1 else ''}) and those that people agree on ({d.n_agreed:,})"
        return {"gold": "the gold labels", "adjudicated": "the adjudicated labels", None: "none"}[
            self.reference_kind
        ]

    @property
    def known(self) -> list[str]:
        """Gold and decisions, to compare others with: decisions alone, which are the hardest units, in no case."""
        ruled = self.found.of_kind(AnnotatorKind.ADJUDICATED)
        if self.decided is None:
            return list(self.others)
        return [self.decided.name, *(other for other in self.others if other not in ruled)]

    @cached_property
    def run_ids(self) -> Mapping[str, str]:
        """Name of a judge in the table -> run id."""
        return {shown: run for run, shown in self.found.shown.items()}

    @cached_property
    def asked_units(self) -> Mapping[str, BoolArray]:
        """For each column, the units whose missing label counts against the coverage."""
        columns = {name: self.found.asked[:, i] for i, name in enumerate(self.found.ratings.annotators)}
        if self.majority:
            columns[self.majority] = self.by_people
        if self.decided:
            columns[self.decided.name] = self.by_people | (self.labels_of(self.decided.name) != MISSING)
        return columns

    @cached_property
    def by_people(self) -> BoolArray:
        """The units that at least one person labelled."""
        if not self.people:
            return np.zeros(self.ratings.n_units, dtype=np.bool_)
        labelled: BoolArray = (self.found.ratings.select(self.people).codes != MISSING).any(axis=1)
        return labelled

    @cached_property
    def among_people(self) -> Ratings:
        """The people's labels, on the units that at least one of them labelled."""
        return self.ratings.subset(self.by_people).select(self.people)

    @cached_property
    def pairs(self) -> list[tuple[str, str, Measure, Measure]]:
        """Percent agreement and the coefficient of every two people, on the units that people labelled."""
        found = []
        for first, second in combinations(self.people, 2):
            pair = self.among_people.select([first, second])
            if self.numeric:
                # Numbers are seldom the same to the last digit: how often they are says nothing.
                alpha = self.alpha_of_scores(first, second)
                found.append((first, second, alpha, alpha))
                continue
            percent, kappa = measures(pair, ["percent", self.coefficient], level=self.level, field=self.field)
            found.append((first, second, percent, kappa))
        return found

    @cached_property
    def _compared(self) -> tuple[Ratings, Mapping[str, BoolArray]]:
        """The units that anybody but a judge labelled, which are few beside those a judge labelled."""
        others = [mask for name, mask in self.asked_units.items() if name not in self.judges]
        some = np.logical_or.reduce(others) if others else np.zeros(self.ratings.n_units, dtype=np.bool_)
        return self.ratings.subset(some), {name: mask[some] for name, mask in self.asked_units.items()}

    def together(self, *names: str) -> Ratings:
        """These annotators on the units that all of them were asked about."""
        table, asked = self.ratings, self.asked_units
        if any(name not in self.judges for name in names):
            table, asked = self._compared
        mask = np.logical_and.reduce([asked[name] for name in names])
        return table.subset(mask).select(names)

    def agreement(self, first: str, second: str, name: str) -> Measure:
        """One coefficient of two annotators, on the units both were asked about."""
        (found,) = measures(self.together(first, second), [name], level=self.level, field=self.field)
        return found

    def alpha_of_scores(self, *names: str) -> Measure:
        """Interval alpha of these annotators' numbers, on the units that all of them were asked about."""
        table = self.together(*names)
        return scores_alpha(self.scores(*names), clusters=table.clusters, annotators=names, field=self.field)

    def scores(self, *names: str) -> FloatArray:
        """The numbers of these annotators on the units that all of them were asked about."""
        table = self.together(*names)
        values = table.numbers(self.level)
        return np.where(table.codes == MISSING, np.nan, values[table.codes])

    def labels_of(self, name: str) -> IntArray:
        """The codes of one column."""
        return self.ratings.column(name)
