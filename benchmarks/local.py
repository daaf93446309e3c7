"""What the constant part first is worth to the embedded model: llama.cpp reuses its KV cache.

    uv run python -m benchmarks.local
    uv run python -m benchmarks.local --units 20 --rounds 3

Prompts of two kinds: `prefix first` as the tool sends them, `unit first` with the unit's own text before
the constant part, so that nothing is the same from the start. Each unit is asked once, one way or the
other; the two take turns by round, and the ratio is of the medians.
"""

import argparse
import asyncio
import time
from dataclasses import replace
from statistics import median

from judge.importers import base as importers
from judge.prompts import load_task
from judge.providers import base as providers
from judge.resources import resource_dir
from judge.runner.requests import Asker, Sampling
from judge.types import Message, Request, Unit


def main() -> None:
    """Print units a second both ways, and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="llamacpp/smollm2")
    parser.add_argument("--units", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found = asyncio.run(measure(options.model, options.units, options.rounds))
    rates = {name: 1 / median(seconds) for name, seconds in found.items()}
    for name, rate in rates.items():
        print(f"{name:13} {rate:6.2f} units a second")
    print(f"ratio {rates['prefix first'] / rates['unit first']:.2f}")


async def measure(model: str, units: int, rounds: int) -> dict[str, list[float]]:
    """Seconds a unit, a value for each round."""
    provider = providers.get(model)
    await provider.open()
    asker = Asker(load_task("stance"), model, provider, Sampling())
    requests = [asker.request(unit, 0)[0] for unit in _units()[: 2 * units * rounds]]
    seconds: dict[str, list[float]] = {"prefix first": [], "unit first": []}
    # No prompt twice: llama.cpp keeps whole prompts, and the second time there is nothing left to read.
    # Neighbours are of nearly the same length, and every other one goes each way.
    orders = {"prefix first": requests[::2], "unit first": [_turned(r) for r in requests[1::2]]}
    try:
        for number in range(rounds):
            for name, all_of_them in orders.items():
                batch = all_of_them[number::rounds]
                begun = time.perf_counter()
                for request in batch:
                    await provider.complete(request)
                seconds[name].append((time.perf_counter() - begun) / len(batch))
    finally:
        await provider.close()
    return seconds


def _turned(request: Request) -> Request:
    *constant, unit = request.messages
    turned = Message("user", "\n\n".join([unit.content, *(m.content for m in constant)]))
    return replace(request, messages=(turned,), prefix=0)


def _units() -> list[Unit]:
    """The shipped abstracts, shortest first."""
    folder = resource_dir("data") / "scifact"
    rows = importers.get("scifact").read_rows(sorted(folder.iterdir()), importers.Options(), _fail)
    pairs = [(row.item.claim, passage) for row in rows for passage in row.item.passages]
    pairs.sort(key=lambda pair: len(pair[1].text))
    return [
        Unit(f"u{n}", {"claim": claim, "passage": p.text, "passage_title": p.title}, {})
        for n, (claim, p) in enumerate(pairs)
    ]


def _fail(error: Exception) -> None:
    raise error


if __name__ == "__main__":
    main()
