"""How often `judge route` breaks its promise, in simulated studies; and how much it accepts.

    python -m benchmarks.route [--studies 2000] [--seed 0] [--layout one|five|mixed|two]

A study has labelled questions, a fifth of which fix the order of thresholds, and a judge that states a confidence. Worlds:
`sure`: its confidence is right; `boasts`: it is wrong more often than it says; `edge`: whatever it says, it agrees on just
less than was asked for, so that every accepted unit breaks the promise: the hardest world for it. Questions of one
unit, of five that are alike (errors come by question: beta with an intraclass correlation of .3), of one to twelve, and units drawn
with unequal probabilities (--for ppi). The promise is broken when the judge, on all units of the world that the chosen path accepts,
agrees less often than asked for. It must be at most 5 % of the studies: a cell fails when the exact lower 95 % bound of its
rate is above that.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import betaincinv

from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.stats.selective import find_accepting_step, first_share, first_units, follow, path_of

LEVEL = 0.05


@dataclass(frozen=True)
class World:
    """Where studies come from. `layout`: one, five, mixed or two (judges)."""

    kind: str
    layout: str
    agree: float
    questions: int


def worlds() -> Iterator[World]:
    """All cells."""
    for kind, layout, agree, questions in product(
        ("sure", "boasts", "edge"), ("one", "five", "mixed", "two"), (0.9, 0.8), (150, 500)
    ):
        yield World(kind, layout, agree, questions)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Units: whose question, the confidences [U, judges], and whether each judge is wrong."""

    clusters: IntArray
    sure: FloatArray
    wrong: BoolArray


def draw(world: World, questions: int, rng: np.random.Generator) -> Drawn:
    """Units of so many questions."""
    size = {"five": np.full(questions, 5), "mixed": rng.integers(1, 13, questions)}.get(
        world.layout, np.ones(questions, dtype=np.int64)
    )
    clusters = np.repeat(np.arange(questions), size)
    n, judges = len(clusters), 2 if world.layout == "two" else 1
    sure = np.clip(rng.beta(6, 1.2, (n, judges)), 0.34, 0.999)
    a = 1 - world.agree
    p = {
        "sure": 1 - sure,
        "boasts": np.minimum(1.0, 1.6 * (1 - sure) + 0.02),
        "edge": np.full(sure.shape, 1.02 * a),
    }[world.kind]
    # Units of one question are alike: its error rate is drawn around the mean with an intraclass correlation of .3.
    icc = 0.3 if size.max() > 1 else 0.0
    if icc:
        rank = rng.random((questions, judges))[clusters]
        alpha = np.maximum(p, 1e-9) * (1 / icc - 1)
        p = betaincinv(alpha, np.maximum(1 - p, 1e-9) * (1 / icc - 1), rank)
    wrong = rng.random(sure.shape) < p
    return Drawn(clusters, sure, wrong)


def study(world: World, rng: np.random.Generator) -> tuple[list[tuple[int, float]], int | None, float]:
    """The path of one study, the last step that holds, and A's planned threshold (-inf where there is one judge)."""
    found = draw(world, world.questions, rng)
    order = found.clusters < world.questions // 5
    tested = ~order
    n = len(np.unique(found.clusters[tested]))
    begin = first_share(first_units(world.agree, LEVEL), found.sure[order, 0], found.clusters[order], n)
    first = path_of(found.sure[order, 0], begin)
    places, reached = [(0, t) for t in first], find_accepting_step(found.sure[:, 0], first)
    right = ~found.wrong[:, 0]
    which = np.zeros(len(reached), dtype=np.int64)
    planned = -np.inf
    if found.sure.shape[1] == 2:
        good = [
            i
            for i, t in enumerate(first)
            if right[order & (found.sure[:, 0] >= t)].mean() >= (1 + world.agree) / 2
        ]
        at = max(good, default=0)
        planned = first[at]
        left = found.sure[:, 0] < planned
        second = path_of(found.sure[order & left, 1], 1 / 24)
        places = [*places[: at + 1], *((1, t) for t in second)]
        reached = np.where(
            left, at + 1 + find_accepting_step(found.sure[:, 1], second), np.minimum(reached, len(places))
        )
        which = left.astype(np.int64)
    wrong = found.wrong[np.arange(len(which)), which]
    steps = follow(wrong[tested], reached[tested], found.clusters[tested], len(places), world.agree, LEVEL)
    held = [i for i, step in enumerate(steps) if step.holds]
    return places, held[-1] if held else None, planned


def truth(world: Drawn, places: list[tuple[int, float]], at: int, planned: float) -> tuple[float, float]:
    """Agreement of what the path accepts up to a step, in the whole world, and its share of all units."""
    own = [min([t for j, t in places[: at + 1] if j == judge], default=np.inf) for judge in (0, 1)]
    by_first = world.sure[:, 0] >= own[0]
    accepted, wrong = by_first, world.wrong[:, 0]
    if world.sure.shape[1] == 2:
        by_second = ~by_first & (world.sure[:, 0] < planned) & (world.sure[:, 1] >= own[1])
        accepted = by_first | by_second
        wrong = np.where(by_first, wrong, world.wrong[:, 1])
    return float(1 - wrong[accepted].mean()), float(accepted.mean())


def rates(world: World, studies: int, seed: int, whole_questions: int = 60_000) -> tuple[float, float, float]:
    """Shares of studies whose promise is broken and in which nothing holds, and the mean coverage."""
    rng = np.random.default_rng(
        [seed, world.questions, int(100 * world.agree), *map(ord, world.kind + world.layout)]
    )
    whole = draw(world, whole_questions, rng)
    broken, none, covered = 0, 0, 0.0
    for _ in range(studies):
        places, at, planned = study(world, rng)
        if at is None:
            none += 1
            continue
        agreement, coverage = truth(whole, places, at, planned)
        broken += agreement < world.agree
        covered += coverage
    return broken / studies, none / studies, covered / studies


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--studies", type=int, default=2000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--layout", choices=["one", "five", "mixed", "two"], help="Only these cells.")
    given = options.parse_args()
    started, failed = time.perf_counter(), 0
    print("world   questions of  labelled  asked   broken  nothing holds  coverage")
    for world in worlds():
        if given.layout not in (None, world.layout):
            continue
        broken, none, covered = rates(world, given.studies, given.seed)
        times = round(broken * given.studies)
        low = 0.0 if not times else float(betaincinv(times, given.studies - times + 1, 0.05))
        mark = " FAILS" if low > LEVEL else ""
        failed += bool(mark)
        print(
            f"{world.kind:7} {world.layout:12}  {world.questions:8}  {world.agree:5} {broken:8.3f} {none:14.3f} {covered:9.3f}{mark}",
            flush=True,
        )
    print(f"{failed} cells fail; {given.studies:,} studies each; {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
