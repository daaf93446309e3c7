"""Do the intervals of weighted estimates cover? Units are drawn with unequal probabilities, in two ways.

    python -m benchmarks.weighted --all --studies 400        # weighted.csv, 3 minutes

A frame of 3,000 units with two labels. A person and the judge know the truth of a unit with probability sqrt(.67) and else
guess by the shares of the labels; "misses" is such a judge that turns 60 % of the rarer label into the other one. "parts": half
of the units are drawn among those that the judge calls the rarer label, half among the others (`--by label --equal-parts`).
"unsure": with probabilities in proportion to how unsure a judge is, a fifth of the units being five times as likely. Printed
is, for each measure, the share of studies whose interval, where there is one (Kish's effective size is 250 or more), holds the
value on the whole frame; without that limit with --all.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from math import sqrt
from pathlib import Path

import numpy as np

from judge.stats import Ratings, class_scores, estimate, measures
from judge.stats.ratings import effective_size

TABLE = Path(__file__).with_name("weighted.csv")
FRAME, KAPPA = 3000, 0.67
MEASURES = ("percent", "cohen_kappa", "krippendorff_alpha", "recall:b", "precision:b")


def study(
    rng: np.random.Generator, draw: str, kind: str, share: float, n: int
) -> tuple[list[bool | None], float]:
    """Whether each interval holds the frame's value (None: there is none), and Kish's effective size."""
    truth = rng.random(FRAME) < share
    judge, person = (
        np.where(rng.random(FRAME) < sqrt(KAPPA), truth, rng.random(FRAME) < share) for _ in range(2)
    )
    if kind == "misses":
        judge = judge & (rng.random(FRAME) > 0.6)
    frame = Ratings.from_codes(
        np.column_stack([judge, person]).astype(np.int64), ["a", "b"], ["judge", "person"]
    )
    if draw == "parts":
        parts = [np.flatnonzero(judge), np.flatnonzero(~judge)]
        first = min(n // 2, len(parts[0]))
        sizes = (first, n - first)
        units = np.concatenate(
            [rng.permutation(part)[:size] for part, size in zip(parts, sizes, strict=True)]
        )
        weights = np.repeat([len(part) / size for part, size in zip(parts, sizes, strict=True)], sizes)
    else:
        unsure = np.where((judge != truth) & (rng.random(FRAME) < 0.5), True, rng.random(FRAME) < 0.15)
        likely = np.where(unsure, 5.0, 1.0)
        # Systematic sampling in a random order: n units, each with the probability that is in proportion.
        order = rng.permutation(FRAME)
        chance = n * likely / likely.sum()
        picks = np.searchsorted(np.cumsum(chance[order]), np.arange(n) + rng.random())
        units = order[np.minimum(picks, FRAME - 1)]
        weights = 1 / chance[units]
    mask = np.zeros(FRAME, dtype=bool)
    mask[units] = True
    weight_of = np.zeros(FRAME)
    weight_of[units] = weights
    table = frame.subset(mask).with_weights(weight_of[mask])
    held: list[bool | None] = []
    of_frame, found = _values(frame), _values(table, "bca")
    for name in MEASURES:
        known, there = of_frame[name].value, found[name]
        covered = there.low is not None and there.high is not None and known is not None
        held.append(there.low <= known <= there.high if covered else None)  # type: ignore[operator]
    return held, effective_size(weights)


def _values(table: Ratings, interval: str | None = None) -> dict[str, estimate.Measure]:
    some = measures(table, MEASURES[:3], interval=interval)  # type: ignore[arg-type]
    some += class_scores(table, "judge", "person", interval=interval)  # type: ignore[arg-type]
    return {m.measure: m for m in some}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--all", action="store_true", help="an interval for every size")
    given = parser.parse_args()
    started, rows = time.perf_counter(), []
    if given.all:
        estimate.LEAST_EFFECTIVE = 2
    for draw, kind, share, n in CELLS:
        rng = np.random.default_rng([len(draw), len(kind), round(100 * share), n])
        found = [study(rng, draw, kind, share, n) for _ in range(given.studies)]
        size = float(np.mean([effective for _, effective in found]))
        for i, name in enumerate(MEASURES):
            known = [held[i] for held, _ in found if held[i] is not None]
            rate = f"{np.mean(known):.3f}" if known else ""
            rows.append(
                {
                    "draw": draw,
                    "judge": kind,
                    "share": share,
                    "units": n,
                    "effective": round(size),
                    "measure": name,
                    "intervals": len(known),
                    "covered": rate,
                }
            )
            print(*rows[-1].values(), flush=True)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)


CELLS = [
    (draw, kind, share, n)
    for draw in ("parts", "unsure")
    for kind in ("good", "misses")
    for share in (0.5, 0.1, 0.05)
    for n in (100, 300, 600)
]

if __name__ == "__main__":
    main()
