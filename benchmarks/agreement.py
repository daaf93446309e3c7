"""Speed of the agreement statistics: 100,000 units x 5 annotators. Measures and prints, asserts nothing.

    uv run python benchmarks/agreement.py

The loop over the krippendorff package is timed for a few replicates and extrapolated to 1,000.
"""

import resource
import sys
import time
from collections.abc import Callable

import krippendorff
import numpy as np

from judge.stats import Ratings, measures, scores_alpha

UNITS, ANNOTATORS, LABELS, REPLICATES, LOOPS = 100_000, 5, 3, 1_000, 3


def best_of(n: int, work: Callable[[], object]) -> float:
    """Shortest of `n` wall times, in seconds: the machine is shared, and noise only adds."""
    times = []
    for _ in range(n):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def table(clusters: np.ndarray | None) -> Ratings:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, LABELS, UNITS)
    guess = rng.integers(0, LABELS, (UNITS, ANNOTATORS))
    codes = np.where(rng.random((UNITS, ANNOTATORS)) < 0.7, truth[:, None], guess)
    codes[rng.random(codes.shape) < 0.05] = -1
    return Ratings.from_codes(codes, list("abc"), list("vwxyz"), clusters=clusters)


def loop_over_package(ratings: Ratings) -> float:
    """Seconds for one replicate: resample the columns, call the package."""
    data = np.where(ratings.codes < 0, np.nan, ratings.codes).T
    rng = np.random.default_rng(2)

    def one() -> float:
        drawn = data[:, rng.integers(0, UNITS, UNITS)]
        return float(krippendorff.alpha(reliability_data=drawn, level_of_measurement="nominal"))

    return best_of(LOOPS, one)


def row(what: str, seconds: float, limit: str) -> None:
    print(f"{what:<66} {seconds:8.3f} s   {limit}")


def main() -> None:
    by_unit = table(None)
    by_question = table(np.arange(UNITS) // 10)
    every: dict[str, float] = {}
    for name, ratings in (("by unit", by_unit), ("by question", by_question)):

        def alpha(ratings: Ratings = ratings) -> object:
            return measures(ratings, ["krippendorff_alpha"], replicates=REPLICATES)

        def kappas(ratings: Ratings = ratings) -> object:
            return measures(ratings, ["cohen_kappa"], replicates=REPLICATES)

        every[name] = best_of(3, alpha)
        row(f"alpha, {REPLICATES:,} replicates, {name}", every[name], "asked: under 0.5")
        row(f"10 pairwise kappas, {REPLICATES:,} replicates, {name}", best_of(3, kappas), "asked: under 0.3")
    scores = np.random.default_rng(3).normal(size=(UNITS, 1)) + np.random.default_rng(4).normal(
        size=(UNITS, ANNOTATORS)
    )
    point = best_of(3, lambda: scores_alpha(scores, interval=None))
    row("interval alpha of continuous scores, value", point, "asked: under 0.1")
    drawn = best_of(1, lambda: scores_alpha(scores, replicates=REPLICATES))
    row(f"interval alpha of continuous scores, {REPLICATES:,} replicates", drawn, "")
    # The peak is read before the loop, whose arrays are the package's.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024**2 if sys.platform == "darwin" else 1024
    )
    one = loop_over_package(by_unit)
    row(f"one replicate by the krippendorff package (best of {LOOPS})", one, "")
    whole = one * REPLICATES
    print(f"{f'the loop, extrapolated to {REPLICATES:,} replicates':<66} {whole:8.1f} s")
    for name, seconds in every.items():
        print(f"{f'ratio loop / ours, {name}':<66} {whole / seconds:8.0f} x   asked: at least 300")
    print(f"{'peak memory of the process before the loop':<66} {peak:8.0f} MB  asked: under 500")


if __name__ == "__main__":
    main()
