"""How often 95 % intervals of Cohen's kappa hold the true value. Measures and prints, asserts nothing.

    uv run python benchmarks/coverage.py [samples, default 1000]

Two annotators, two labels. In the clustered settings a question has an error rate of its own (beta
distributed), so its units are right or wrong together; resampling units then ignores the
largest part of the error, resampling questions does not.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np

from judge.stats import Ratings, measures

REPLICATES = 1_000


@dataclass(frozen=True)
class Setting:
    name: str
    questions: int
    per_question: int
    prevalence: float
    error: float
    icc: float


SETTINGS = (
    Setting("30 units, 90 % prevalence", 30, 1, 0.9, 0.05, 0.0),
    Setting("100 units, 50 % prevalence", 100, 1, 0.5, 0.15, 0.0),
    Setting("500 units, 90 % prevalence", 500, 1, 0.9, 0.05, 0.0),
    Setting("20 questions x 10, icc .3", 20, 10, 0.5, 0.15, 0.3),
    Setting("50 questions x 10, icc .3", 50, 10, 0.5, 0.15, 0.3),
    Setting("100 questions x 20, icc .1", 100, 20, 0.5, 0.15, 0.1),
    Setting("100 questions x 20, no clustering", 100, 20, 0.5, 0.15, 0.0),
)


def draw(setting: Setting, rng: np.random.Generator, questions: int) -> tuple[np.ndarray, np.ndarray]:
    n = questions * setting.per_question
    error = np.full(questions, setting.error)
    if setting.icc:
        size = 1 / setting.icc - 1  # intraclass correlation of a beta-binomial: 1 / (a + b + 1)
        error = rng.beta(setting.error * size, (1 - setting.error) * size, questions)
    first = (rng.random(n) < setting.prevalence).astype(np.int64)
    flipped = rng.random(n) < np.repeat(error, setting.per_question)
    return np.column_stack([first, np.where(flipped, 1 - first, first)]), np.arange(n) // setting.per_question


def true_kappa(setting: Setting) -> float:
    p, e = setting.prevalence, setting.error
    other = p * (1 - e) + (1 - p) * e
    chance = p * other + (1 - p) * (1 - other)
    return (1 - e - chance) / (1 - chance)


def coverage(setting: Setting, samples: int) -> None:
    truth = true_kappa(setting)
    rng = np.random.default_rng(0)
    ways = [("units", "bca"), ("units", "percentile")]
    if setting.per_question > 1:
        ways += [("questions", "bca"), ("questions", "percentile")]
    hits, given, width = (dict.fromkeys(ways, 0.0) for _ in range(3))
    for seed in range(samples):
        codes, clusters = draw(setting, rng, setting.questions)
        for way in ways:
            groups = clusters if way[0] == "questions" else None
            table = Ratings.from_codes(codes, ["a", "b"], ["x", "y"], clusters=groups)
            method = "bca" if way[1] == "bca" else "percentile"
            (found,) = measures(table, ["cohen_kappa"], interval=method, replicates=REPLICATES, seed=seed)
            if found.low is not None and found.high is not None:
                given[way] += 1
                hits[way] += found.low <= truth <= found.high
                width[way] += found.high - found.low
    for way in ways:
        n = max(given[way], 1)
        print(
            f"{setting.name:<36} {way[0]:<10} {way[1]:<11} {hits[way] / n:8.3f} {width[way] / n:8.3f} "
            f"{given[way] / samples:8.1%}"
        )


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    print(f"{samples} samples each, {REPLICATES} replicates, nominal coverage .950")
    print(f"{'setting':<36} {'resampled':<10} {'method':<11} {'coverage':>8} {'width':>8} {'given':>8}")
    for setting in SETTINGS:
        start = time.perf_counter()
        coverage(setting, samples)
        print(f"  ({time.perf_counter() - start:.0f} s)", file=sys.stderr)


if __name__ == "__main__":
    main()
