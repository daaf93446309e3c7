"""How often 95 % intervals hold the true value. Measures and prints, asserts nothing.

    uv run python benchmarks/coverage.py [samples, default 300]

Two annotators, two labels: the first has the share `prevalence` of label b, the second errs. In the clustered settings
a question has an error rate of its own (beta distributed), so its units are right or wrong together; resampling units
then ignores the largest part of the error, resampling questions does not.

Kappa, alpha, accuracy and F1 are of the two annotators. For the corrected shares of label b the second is a judge on
every unit, and the first are people who label every third question: human only and PPI++ (t intervals, robust to
questions), Rogan-Gladen (bootstrap).

Under the first settings stands what the literature gives for plain bootstrap intervals of kappa from 30 units at 90 %
prevalence: percentile .883, BCa .908. Ours take the exact bound where nobody differs, and none is given where a quarter
of the resamples is undefined; both raise the coverage of those given, so read it with the last column.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from judge.stats import Ratings, class_scores, correct_mean, measures
from judge.stats.prevalence import rogan_gladen
from judge.types import Measure

REPLICATES = 1_000
PLAIN = {"percentile": 0.883, "bca": 0.908}
METHODS: tuple[Literal["bca", "percentile"], ...] = ("bca", "percentile")
Key = tuple[str, str, str]
"""What is estimated, what is resampled, by which method."""


@dataclass(frozen=True)
class Setting:
    name: str
    questions: int
    per_question: int
    prevalence: float
    error: float
    icc: float

    @property
    def truth(self) -> dict[str, float]:
        """The values in the population."""
        p, e = self.prevalence, self.error
        other = p * (1 - e) + (1 - p) * e
        chance, both = p * other + (1 - p) * (1 - other), (p + other) / 2
        return {
            "cohen_kappa": (1 - e - chance) / (1 - chance),
            "krippendorff_alpha": 1 - e / (2 * both * (1 - both)),
            "gwet_ac1": (1 - e - 2 * both * (1 - both)) / (1 - 2 * both * (1 - both)),
            "accuracy": 1 - e,
            "f1:b": 2 * p * (1 - e) / (p + other),
            "human_only": p,
            "ppi": p,
            "rogan_gladen": p,
        }


SETTINGS = (
    Setting("30 units, 90 % prevalence", 30, 1, 0.9, 0.05, 0.0),
    Setting("30 units, 90 % prevalence, 20 % errors", 30, 1, 0.9, 0.2, 0.0),
    Setting("100 units, 50 % prevalence", 100, 1, 0.5, 0.15, 0.0),
    Setting("500 units, 90 % prevalence", 500, 1, 0.9, 0.05, 0.0),
    Setting("100 units, 3 % prevalence", 100, 1, 0.03, 0.02, 0.0),
    Setting("10 questions x 10, icc .3", 10, 10, 0.5, 0.15, 0.3),
    Setting("30 questions x 10, 3 % prevalence, icc .3", 30, 10, 0.03, 0.03, 0.3),
    Setting("20 questions x 10, icc .3", 20, 10, 0.5, 0.15, 0.3),
    Setting("50 questions x 10, icc .3", 50, 10, 0.5, 0.15, 0.3),
    Setting("100 questions x 20, icc .1", 100, 20, 0.5, 0.15, 0.1),
    Setting("100 questions x 20, no clustering", 100, 20, 0.5, 0.15, 0.0),
)


@dataclass
class Seen:
    """Samples in which an interval was given, those in which it held the truth, and the sum of its widths."""

    given: int = 0
    held: int = 0
    widths: list[float] = field(default_factory=list)

    def add(self, found: Measure, truth: float) -> None:
        if found.low is not None and found.high is not None:
            self.given += 1
            self.held += found.low <= truth <= found.high
            self.widths.append(found.high - found.low)


def draw(setting: Setting, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n = setting.questions * setting.per_question
    error = np.full(setting.questions, setting.error)
    if setting.icc:
        size = 1 / setting.icc - 1  # intraclass correlation of a beta-binomial: 1 / (a + b + 1)
        error = rng.beta(setting.error * size, (1 - setting.error) * size, setting.questions)
    first = (rng.random(n) < setting.prevalence).astype(np.int64)
    flipped = rng.random(n) < np.repeat(error, setting.per_question)
    return np.column_stack([first, np.where(flipped, 1 - first, first)]), np.arange(n) // setting.per_question


def estimates(codes: np.ndarray, clusters: np.ndarray, seed: int) -> Iterator[tuple[Key, Measure]]:
    """Every interval of one sample; by question too, where questions have more than one unit."""
    ways: dict[str, np.ndarray | None] = {"units": None}
    if len(np.unique(clusters)) < len(clusters):
        ways["questions"] = clusters
    human = np.where(clusters % 3 == 0, codes[:, 0], np.nan)
    for way, groups in ways.items():
        table = Ratings.from_codes(codes, ["a", "b"], ["x", "y"], clusters=groups)
        for method in METHODS:
            found = measures(
                table,
                ["cohen_kappa", "krippendorff_alpha", "gwet_ac1"],
                interval=method,
                replicates=REPLICATES,
                seed=seed,
            )
            found += class_scores(table, "y", "x", interval=method, replicates=REPLICATES, seed=seed)
            found.append(
                rogan_gladen(
                    codes[:, 1], human, clusters=groups, interval=method, replicates=REPLICATES, seed=seed
                )
            )
            yield from (((one.measure, way, method), one) for one in found)
        corrected = correct_mean(codes[:, 1], human, clusters=groups)
        yield ("human_only", way, "t"), corrected.human_only
        yield ("ppi", way, "t"), corrected.ppi


def coverage(setting: Setting, samples: int) -> dict[Key, Seen]:
    """Simulate `samples` samples of one setting."""
    rng = np.random.default_rng(0)
    truth, every = setting.truth, defaultdict[Key, Seen](Seen)
    for seed in range(samples):
        for key, found in estimates(*draw(setting, rng), seed):
            if key[0] in truth:
                every[key].add(found, truth[key[0]])
    return every


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    spread = 1.96 * (0.95 * 0.05 / samples) ** 0.5
    print(
        f"{samples} samples each, {REPLICATES} replicates, nominal coverage .950 (+- {spread:.3f} by chance)"
    )
    head = f"{'estimate':<20} {'resampled':<10} {'method':<11} {'coverage':>8} {'width':>8} {'given':>8}"
    for setting in SETTINGS:
        start = time.perf_counter()
        every = coverage(setting, samples)
        print(f"\n{setting.name}\n{head}")
        for (name, way, method), seen in sorted(every.items()):
            held = seen.held / max(seen.given, 1)
            width = float(np.mean(seen.widths)) if seen.widths else float("nan")
            print(f"{name:<20} {way:<10} {method:<11} {held:8.3f} {width:8.3f} {seen.given / samples:8.1%}")
        print(f"  ({time.perf_counter() - start:.0f} s)", file=sys.stderr)
        if setting.questions == 30:
            for method, plain in PLAIN.items():
                seen = every["cohen_kappa", "units", method]
                print(f"plain {method} of kappa: {plain:.3f}, ours {seen.held / max(seen.given, 1):.3f}")


if __name__ == "__main__":
    main()
