"""Several judges against one reference on the same units: every two by the paired test, and who errs where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judge.stats.paired import Comparison, compare
from judge.stats.ratings import BoolArray, Ratings


@dataclass(frozen=True, slots=True)
class Duel:
    """Two judges, by their places: `kappa` and `agreement` are second - first.

    `both`, `only_first`, `only_second` and `neither` count the units, label by label of the reference [q].
    """

    first: int
    second: int
    kappa: Comparison
    agreement: Comparison
    both: tuple[int, ...]
    only_first: tuple[int, ...]
    only_second: tuple[int, ...]
    neither: tuple[int, ...]


def contest(
    table: Ratings,
    reference: str,
    name: str = "cohen_kappa",
    *,
    level: str = "nominal",
    confidence: float = 0.95,
) -> list[Duel]:
    """Every two of the other annotators against `reference`, everything labelled; `name` as in `compare`."""
    judges = [who for who in table.annotators if who != reference]
    truth, q = table.column(reference), len(table.domain)
    right = [table.column(who) == truth for who in judges]

    def count(mask: BoolArray) -> tuple[int, ...]:
        return tuple(np.bincount(truth[mask], minlength=q).tolist())

    kappas, agreements = (
        compare(table, judges, reference, measure, level=level, confidence=confidence)
        for measure in (name, "percent")
    )
    found = []
    for kappa, agreement in zip(kappas, agreements, strict=True):
        i, j = judges.index(kappa.first), judges.index(kappa.second)
        one, other = right[i], right[j]
        counts = [count(mask) for mask in (one & other, one & ~other, ~one & other, ~one & ~other)]
        found.append(Duel(i, j, kappa, agreement, *counts))
    return found
