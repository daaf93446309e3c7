"""`python -m tests.simulation --seed 1 --operations 100000`: one seed after the other until so much is done, or something fails."""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path

from tests.simulation.run import Counts, plan, shrink, simulate


def main() -> int:
    """Run, and print the counts; exit 1 with the log of the first study that fails, shrunk."""
    read = argparse.ArgumentParser(prog="python -m tests.simulation")
    read.add_argument("--seed", type=int, default=1, help="the first seed; the others follow")
    read.add_argument("--step", type=int, default=1, help="from one seed to the next, for several processes")
    read.add_argument("--operations", type=int, default=1000)
    read.add_argument("--go-on", action="store_true", help="after a failure, too")
    read.add_argument(
        "--only-find", action="store_true", help="stop at the first failure, without shrinking it"
    )
    read.add_argument("--counts", type=Path, help="keep the counts in this file, and go on with those in it")
    asked = read.parse_args()
    # Everything that is imported stays: looking through it for garbage again and again would take an eighth of the time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    counts, seed, failed, start = Counts(), asked.seed, 0, time.monotonic()
    if asked.counts and asked.counts.exists():
        seed = counts.load(asked.counts)
    while counts.operations < asked.operations:
        wrong = simulate(plan(seed), counts)
        if wrong:
            failed += 1
            print(f"seed {seed}: {wrong[0]}", flush=True)
            if asked.only_find:
                return 1
            if not asked.go_on:
                shorter = shrink(plan(seed))
                told, log = simulate(shorter) or wrong
                print("\n".join(log), told, f"steps: {shorter}", sep="\n")
                break
        seed += asked.step
        if asked.counts:
            counts.save(asked.counts, seed)
        if seed % 20 < asked.step:
            took = time.monotonic() - start
            print(f"{counts.operations:,} operations in {took:.0f} s, {failed} failures", flush=True)
    print(counts.table())
    print(f"seeds {asked.seed} to {seed}, {time.monotonic() - start:.0f} s, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
