"""One label a unit from what a lead decided and what people agree on without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judge.stats import MISSING, Ratings
from judge.stats.ratings import IntArray

DECIDED = "adjudicated or agreed"


@dataclass(frozen=True, eq=False)
class Decisions:
    """What was adjudicated (`n_ruled` units) and, elsewhere, what two people or more agree on (`n_agreed`)."""

    codes: IntArray
    n_ruled: int
    n_agreed: int


def decisions(ratings: Ratings, people: Sequence[str], adjudicated: str) -> Decisions | None:
    """One label a unit from decisions and agreement; None where nothing is agreed on without a decision.

    Only units on which people differ come to a lead, so decisions alone would be the hardest units.
    """
    if len(people) < 2:
        return None
    own = ratings.select(people).codes
    given = own != MISSING
    codes = ratings.column(adjudicated).copy()
    ruled = codes != MISSING
    highest, lowest = own.max(axis=1), np.where(given, own, np.iinfo(own.dtype).max).min(axis=1)
    agreed = ~ruled & (given.sum(axis=1) >= 2) & (highest == lowest)
    if not agreed.any():
        return None
    codes[agreed] = highest[agreed]
    return Decisions(codes, int(ruled.sum()), int(agreed.sum()))
