"""Differences of agreement on the same units: paired, because the draws are shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Unpack

import numpy as np

from judge.errors import BadInput
from judge.stats.bootstrap import NO_WIDTH, How, Settings, inverted_p, resample
from judge.stats.estimate import Estimate, about, unseen_share
from judge.stats.metrics import METRICS, domain_numbers, metric_key
from judge.stats.multiple import holm
from judge.stats.patterns import collapse, n_present, tally
from judge.stats.ratings import FloatArray, IntArray, Ratings
from judge.types import Measure

Pair = tuple[str, str]


@dataclass(frozen=True)
class Comparison:
    """`difference` = mean over the `plus` pairs - mean over the `minus` pairs, on `difference.n_units` units.

    `p_value` is two-sided and agrees with the interval: below 1 - confidence where that leaves zero out; None where
    the difference is undefined. `adjusted` is Holm's, where several were made at once.
    """

    plus: tuple[Pair, ...]
    minus: tuple[Pair, ...]
    difference: Measure
    p_value: float | None
    adjusted: float | None = None


def compare(
    ratings: Ratings,
    plus: Sequence[Pair],
    minus: Sequence[Pair],
    name: str = "cohen_kappa",
    *,
    level: str = "nominal",
    field: str | None = None,
    **how: Unpack[How],
) -> Comparison:
    """Mean agreement of some pairs of annotators minus that of others, with a paired interval.

    Only units that all of them labelled count, so that both sides speak of the same units. `name` is a
    key of METRICS. `how` as in `measures`. Raises BadInput for unknown names and empty lists.
    """
    settings = Settings(**how)
    coefficient = METRICS[metric_key(name, level)]
    if not plus or not minus:
        raise BadInput("a comparison takes at least one pair on each side")
    names = tuple(dict.fromkeys(person for pair in (*plus, *minus) for person in pair))
    table = ratings.select(names)
    values = domain_numbers(coefficient, table)
    patterns = collapse(table.codes)
    complete = patterns.rows.min(axis=1) >= 0
    position = {person: i for i, person in enumerate(names)}
    blocks = []
    for first, second in (*plus, *minus):
        cells = patterns.rows[:, [position[first], position[second]]]
        rows = cells if coefficient.pair else _counts(cells, len(table.domain))
        blocks.append(coefficient.features(rows, values) * complete[:, None])
    width = blocks[0].shape[1]
    sums = tally(np.concatenate(blocks, axis=1), patterns, complete, table)
    totals = sums.total.reshape(len(blocks), width)
    least_chance = float(coefficient.chance(totals, values).min())
    weights = [1 / len(plus)] * len(plus) + [-1 / len(minus)] * len(minus)

    def value(drawn: FloatArray) -> FloatArray:
        total = np.zeros(len(drawn))
        for i, weight in enumerate(weights):
            total += weight * coefficient.value(drawn[:, i * width : (i + 1) * width], values)
        return total

    both = complete[patterns.of_unit]
    n_units, n_clusters = int(both.sum()), n_present(table.clusters[both])
    measure = coefficient.measure + "_difference"
    estimate = Estimate(
        about=replace(
            about(measure, n_units, ratings.n_units, n_clusters, names, field),
            level=coefficient.level,
            weights=coefficient.weights,
        ),
        tally=sums,
        value=value,
        undefined=lambda: (
            "one of the two sides is undefined on the units they share"
            if n_units
            else f"no unit is labelled by all of {', '.join(names)}"
        ),
        clustered=table.clustered,
    )
    drawn = resample([sums], settings)[0] if settings.interval and sums.n_clusters >= 2 else None
    unseen = unseen_share(max(1, n_clusters), settings.confidence)
    reach = unseen / least_chance if least_chance > 0 else np.inf
    alone = estimate.measure(settings, drawn)
    difference = _bounded(alone, reach, 1 - coefficient.least)
    p = None
    if drawn is not None and difference.low is not None and difference.value is not None:
        if NO_WIDTH in alone.notes:
            # The interval is the binomial one, value -+ (1 - (p / 2)^(1 / g)) / chance: solved for p.
            p = min(1.0, 2 * max(0.0, 1 - abs(difference.value) * least_chance) ** max(1, n_clusters))
        else:
            p = inverted_p(sums, value, settings, drawn)
    return Comparison(tuple(plus), tuple(minus), difference, p)


def _bounded(difference: Measure, reach: float, most: float) -> Measure:
    # When all agree on every unit no resample differs from another. The share of units that would have
    # shown a difference still has an exact bound, and moves a coefficient by at most share / chance.
    if NO_WIDTH not in difference.notes or difference.value is None or not difference.n_clusters:
        return difference
    low, high = difference.value - reach, difference.value + reach
    note = "no resample differs: the interval is the exact binomial one"
    if low < -most or high > most:
        note += (
            f", cut at {-most:g} and {most:g}, which no difference exceeds: so few units say next to nothing"
        )
    notes = tuple(note if old == NO_WIDTH else old for old in difference.notes)
    return replace(difference, low=max(-most, low), high=min(most, high), notes=notes)


def compare_judges(
    ratings: Ratings,
    judges: Sequence[str],
    reference: str,
    name: str = "cohen_kappa",
    *,
    level: str = "nominal",
    field: str | None = None,
    **how: Unpack[How],
) -> list[Comparison]:
    """Every two judges by their agreement with one reference, with Holm-adjusted p-values."""
    found = [
        compare(ratings, [(a, reference)], [(b, reference)], name, level=level, field=field, **how)
        for a, b in combinations(judges, 2)
    ]
    known = [c.p_value for c in found if c.p_value is not None]
    adjusted = iter(holm(known).tolist())
    return [c if c.p_value is None else replace(c, adjusted=next(adjusted)) for c in found]


def _counts(cells: IntArray, q: int) -> IntArray:
    """How often each label occurs in each pair of codes."""
    counts: IntArray = (cells[:, :, None] == np.arange(q)).sum(axis=1).astype(np.int64)
    return counts
