"""How surely `judge drift` finds a changed judge, and how often it raises a false alarm: seeded simulation.

python -m benchmarks.drift [--studies 1000]

The first table is the power of one check with 20 % changed anchors. The second simulates sets of 100 anchors with 52
checks each on the same replies of the beginning, without a change: how many sets see at least one alarm.
"""

import argparse

import numpy as np

from judge.stats.drift import CHECKS, LEVEL, drift_p, drift_power

NOISES = (0.0, 0.05, 0.1)


def false_alarms(sets: int, noise: float, labels: int, seed: int = 0) -> float:
    """The share of sets of 100 anchors that see an alarm in 52 checks of a judge that does not change."""
    random = np.random.default_rng(seed)
    alarms = 0
    for _ in range(sets):
        usual = random.integers(labels, size=(100, 1))

        def replies(usual: np.ndarray = usual) -> np.ndarray:
            other = (usual + random.integers(1, labels, size=(100, 3))) % labels
            return np.where(random.random((100, 3)) < noise, other, usual)

        first = replies()
        alarms += any(drift_p(first, replies()) <= LEVEL for _ in range(CHECKS))
    return alarms / sets


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--sets", type=int, default=200)
    given = parser.parse_args()
    print("power of a check, 20 % changed anchors")
    print("anchors  replies  labels  " + "  ".join(f"noise {noise:.0%}" for noise in NOISES))
    for anchors in (30, 50, 100):
        for replies in (1, 3):
            for labels in (2, 3):
                found = [
                    drift_power(anchors, noise, replies=replies, labels=labels, studies=given.studies)
                    for noise in NOISES
                ]
                shown = "  ".join(f"{power:8.2f}" for power in found)
                print(f"{anchors:7}  {replies:7}  {labels:6}  {shown}")
    print(f"\nsets of 100 anchors with a false alarm in {CHECKS} checks (of {given.sets})")
    for labels in (2, 3):
        rates = [false_alarms(given.sets, noise, labels) for noise in NOISES]
        print(f"{labels} labels: " + "  ".join(f"{rate:8.3f}" for rate in rates))


if __name__ == "__main__":
    main()
