"""Ray against the plain runner on one machine: units per second with a scripted model of 50 ms a call.

    uv run python benchmarks/ray.py --units 4000 --workers 2

The time is that of the run, from the first request to the last commit; starting Ray takes some seconds more and is
printed apart. Both take their calls from one gate; with W workers plain gets W times the concurrency, too.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Not the folder of this script: it would be imported in Ray's place.
sys.path[0] = str(ROOT)

from judge import engines  # noqa: E402
from judge.prompts import load_task  # noqa: E402
from judge.providers.base import Settings  # noqa: E402
from judge.runner import Plan, run_task  # noqa: E402
from judge.runner.requests import Sampling  # noqa: E402
from judge.store import Store  # noqa: E402
from judge.store.items import ImportInfo, add_items  # noqa: E402
from judge.types import Item, Passage, Row, Where  # noqa: E402


def build(path: Path, units: int) -> None:
    """A study of that many passages of some 700 characters."""
    text = "The tea that was served at noon was hot, and nobody who drank of it said anything else. " * 8

    def rows() -> object:
        for n in range(units):
            passages = [Passage(text=f"{n}: {text}", source_id="p")]
            yield Row(Item(str(n), "d", claim=f"Tea {n} is hot.", passages=passages), Where("made", n + 1))

    def refuse(error: Exception) -> None:
        raise error

    with Store.open(path) as store:
        add_items(store, rows(), ImportInfo("made", {}), [], refuse)  # type: ignore[arg-type]


async def measure(
    path: Path, engine: str, concurrency: int, workers: int, delay: float
) -> tuple[float, float]:
    """Units a second of a whole run, and the seconds until the provider was open."""
    ray = engine == "ray"
    asked = engines.Workers(workers) if ray else None
    provider = engines.provider("scripted/hash", Settings(options={"delay": str(delay)}), asked)
    begun = time.monotonic()
    await provider.open()
    opened = time.monotonic() - begun
    with Store.open(path) as store:
        each = concurrency if ray else concurrency * workers
        plan = Plan(load_task("stance"), "scripted/hash", sampling=Sampling(answers="json"), concurrency=each)
        report = await run_task(store, plan, provider)
    await provider.close()
    assert report.ended["ok"] == report.units, report
    return report.units / report.seconds, opened


def main() -> None:
    """Build, measure by turns, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=32, help="To each worker.")
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    for number in range(options.rounds):
        rates = {}
        for engine in ("local", "ray"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "study.db"
                build(path, options.units)
                of = options.concurrency, options.workers, options.delay
                rates[engine], opened = asyncio.run(measure(path, engine, *of))
                print(f"{number}: {engine:6} {rates[engine]:7.0f} units/s  (open {opened:.1f} s)", flush=True)
        print(f"{number}: ray / local = {rates['ray'] / rates['local']:.2f}", flush=True)


if __name__ == "__main__":
    main()
