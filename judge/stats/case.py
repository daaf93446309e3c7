"""Who takes part in a verdict, and the sums of their labels by question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from judge.errors import BadInput
from judge.stats.coefficients import disagreement
from judge.stats.limits import FEWEST_QUESTIONS
from judge.stats.patterns import n_present
from judge.stats.ratings import MISSING, FloatArray, Ratings
from judge.stats.sums import Sums, sums

Regime = Literal["people", "threshold"]


@dataclass(frozen=True, eq=False)
class Case:
    """The arrays of one study behind a verdict; `plan` and curves start from them."""

    sums: Sums
    regime: Regime
    people: tuple[str, ...]
    source: str | None
    n_asked: int


def case(
    ratings: Ratings,
    judge: str,
    people: Sequence[str] = (),
    *,
    reference: str | None = None,
    name: str = "cohen_kappa",
    level: str = "nominal",
    least_others: int = 1,
) -> Case:
    """Who takes part, and the sums by question.

    Two or more people who share ten questions with the judge are compared with each other; else the one source is
    the only person, or `reference` (gold, decided, the people's majority). Raises BadInput without anybody
    to compare with, and for unknown names.
    """
    people = [person for person in people if person != judge]
    if not people and reference is None:
        raise BadInput(f"there is nobody to compare '{judge}' with")
    mine = ratings.column(judge)
    together = 0
    if len(people) > 1:
        several = (ratings.select(people).codes != MISSING).sum(axis=1) >= 2
        together = n_present(ratings.clusters[several & (mine != MISSING)])
    source: str | None = None
    regime: Regime = "people"
    if together < FEWEST_QUESTIONS:
        candidate = _alone(ratings, judge, people, reference)
        if len(people) < 2 or _shared(ratings, judge, candidate) >= FEWEST_QUESTIONS:
            regime, source = "threshold", candidate
    columns = [source] if source is not None else list(people)
    agreement, distance = _weights(ratings, name, level)
    found = sums(
        mine[None, :],
        ratings.select(columns).codes[None, :, :],
        ratings.clusters,
        agreement,
        distance,
        least_others=least_others,
    )
    return Case(found, regime, tuple(people if source is None else ()), source, ratings.n_units)


def _shared(ratings: Ratings, *names: str) -> int:
    """Questions with a unit that all of these labelled; 0 for a name that labelled nothing."""
    if not all(name in ratings.annotators for name in names):
        return 0
    both = np.logical_and.reduce([ratings.column(name) != MISSING for name in names])
    return n_present(ratings.clusters[both])


def _alone(ratings: Ratings, judge: str, people: Sequence[str], reference: str | None) -> str:
    """The one source of labels: the only person where they labelled enough, else the reference."""
    if reference is None or (len(people) == 1 and _shared(ratings, judge, people[0]) >= FEWEST_QUESTIONS):
        return max(people, key=lambda person: _shared(ratings, judge, person))
    return reference


def _weights(ratings: Ratings, name: str, level: str) -> tuple[FloatArray, FloatArray]:
    """How much two labels agree (0 to 1), and the distance that the alt-test squares."""
    q = len(ratings.domain)
    if level in ("interval", "ratio"):
        numbers = ratings.numbers(level)
        squared = (numbers[:, None] - numbers[None, :]) ** 2
        return 1 - squared / max(float(squared.max()), 1e-300), squared
    places = np.arange(q, dtype=np.float64)
    distance = (places[:, None] - places[None, :]) ** 2 if level == "ordinal" else 1 - np.eye(q)
    weights = "linear" if name.endswith(":linear") else None
    if name.endswith(":quadratic") or (level == "ordinal" and name.startswith("krippendorff")):
        weights = "quadratic"
    apart = disagreement(q, weights)
    return 1 - apart / max(float(apart.max()), 1e-300), distance
