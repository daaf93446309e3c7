"""What a verdict still needs: the chance that it is decided, by how many questions are added.

The truth is drawn from what the pilot leaves open (the Bayesian bootstrap, Rubin 1981: shares of the pilot's questions
from a flat Dirichlet distribution), the questions to come are drawn from that truth, and the verdict's own rule
is put to the pilot and the new questions together. So a chance of 80 % is the share of studies that are decided,
over all truths that the pilot allows, not at the one value that it happened to show.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import ceil

import numpy as np

from judge.stats.conditions import rule
from judge.stats.patterns import canonical
from judge.stats.ratings import FloatArray, IntArray
from judge.stats.verdict_inputs import DISTRUST, FEWEST_QUESTIONS, IN_PART, TRUST, UNDECIDED, Limits, Sums

DRAWS = 200
# The pilot, this many times: what is not decided by then depends on how near the truth lies to the limit.
TIMES = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 20.0)
MOST_UNITS = 20_000
# Cells of one block of the rule, which holds several arrays of as many numbers.
_CELLS = 2_000_000


@dataclass(frozen=True)
class Chance:
    """With `more_clusters` questions (`more_units` units) beside the pilot: the chances of each decision."""

    more_clusters: int
    more_units: int
    decided: float
    trusted: float
    distrusted: float


@dataclass(frozen=True)
class Outlook:
    """`curve` over growing studies. `more_clusters`, `more_units`: the fewest with the chance asked for, None where no
    number on the curve would do; `half` and `most` are units for 50 % and 90 %. `why` says why there is no number."""

    power: float
    curve: tuple[Chance, ...] = ()
    more_clusters: int | None = None
    more_units: int | None = None
    half: int | None = None
    most: int | None = None
    why: str = ""


def outlook(found: Sums, limits: Limits, *, power: float = 0.8, draws: int = DRAWS, seed: int = 0) -> Outlook:
    """The curve of one study (arrays with one study). Nothing to add where it is decided already is the caller's business.

    Fewer than ten questions are no pilot: `why` says so, and no number is given.
    """
    questions, units = int((found.units[0] > 0).sum()), float(found.units.sum())
    if questions < FEWEST_QUESTIONS:
        return Outlook(power, why=f"{questions} questions are no pilot to plan from")
    if float(found.shares.sum(axis=(0, 1)).max()) > units - 1e-9:
        return Outlook(power, why="people gave one label only, so no rate of others is known")
    pilot, count = _patterns(found)
    rng = np.random.default_rng(seed)
    truths = rng.dirichlet(count, size=draws)
    seeds = rng.integers(0, 2**63, size=len(TIMES))
    curve: list[Chance] = []
    for times, one in zip(TIMES, seeds, strict=True):
        more = max(1, ceil(questions * (times - 1)))
        added = round(more * units / questions)
        if curve and added > MOST_UNITS:
            break
        drawn = np.random.default_rng(one).multinomial(more, truths)
        decision = _decide(pilot, limits, count + drawn)
        trusted = float(np.isin(decision, (TRUST, IN_PART)).mean())
        distrusted = float((decision == DISTRUST).mean())
        curve.append(Chance(more, max(1, added), float((decision != UNDECIDED).mean()), trusted, distrusted))
    clusters, fewest = _crossing(curve, power)
    why = ""
    if fewest is None:
        last = curve[-1]
        why = f"with {last.more_units:,} more units the chance is {last.decided:.0%}"
    return Outlook(
        power, tuple(curve), clusters, fewest, _crossing(curve, 0.5)[1], _crossing(curve, 0.9)[1], why
    )


def _patterns(found: Sums) -> tuple[Sums, IntArray]:
    """Questions that are alike are one pattern, counted, in an order that no name decides."""
    arrays = {f.name: getattr(found, f.name) for f in fields(found) if f.name not in ("agreement", "alone")}
    used = found.units[0] > 0
    flat = np.concatenate([a[0][used].reshape(int(used.sum()), -1) for a in arrays.values()], axis=1)
    rows, first, count = np.unique(flat.round(9), axis=0, return_index=True, return_counts=True)
    order = canonical(rows, count)
    pilot = replace(found, **{name: a[:, used][:, first[order]] for name, a in arrays.items()})
    return pilot, count[order].astype(np.int64)


def _decide(pilot: Sums, limits: Limits, weights: IntArray) -> IntArray:
    patterns = weights.shape[1]
    block = max(1, _CELLS // max(1, patterns * (3 + 4 * len(pilot.agreement))))
    parts = [rule(pilot, limits, weights[i : i + block]).decision for i in range(0, len(weights), block)]
    return np.concatenate(parts)


def _crossing(curve: list[Chance], power: float) -> tuple[int | None, int | None]:
    """Where the chance first reaches `power`, on the line between two points of the curve; it may not fall again."""
    chances: FloatArray = np.maximum.accumulate([point.decided for point in curve])
    over = np.flatnonzero(chances >= power - 1e-9)
    if not len(over):
        return None, None
    i = int(over[0])
    if i == 0:
        return curve[0].more_clusters, curve[0].more_units
    low, high = curve[i - 1], curve[i]
    part = (power - chances[i - 1]) / (chances[i] - chances[i - 1])
    clusters = ceil(low.more_clusters + part * (high.more_clusters - low.more_clusters))
    return clusters, ceil(low.more_units + part * (high.more_units - low.more_units))
