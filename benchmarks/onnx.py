"""What the runner adds to an ONNX classifier: units a second by `judge run`, against bare onnxruntime on the same batches.

    uv run python -m benchmarks.onnx
    uv run python -m benchmarks.onnx --model onnx/FOLDER --task stance --units 400

Without a folder, `embedded/minilm` compares made-up passages of 40 to 200 words with questions. The batches that the run
has made are kept and run again, straight through the session, three times. With one thread a second of work is a second
of processor time, which is what is compared: unlike the clock it does not depend on what else the machine does.
"""

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.texts import WORDS
from judge.prompts import load_task
from judge.providers import base, sessions
from judge.runner import Plan, run_task
from judge.runner.requests import Sampling
from judge.store import Store
from judge.store.imports import ImportInfo
from judge.store.items import add_items
from judge.types import Item, Passage, Row, Where


def main() -> None:
    """Print both rates and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="embedded/minilm")
    parser.add_argument("--task", default="relevant")
    parser.add_argument("--units", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        _study(path, options.units)
        ran, bare, n = asyncio.run(_measure(path, options))
    print(f"judge run      {options.units / ran:7.1f} units per second of processor time, {n} batches")
    print(f"onnxruntime    {options.units / bare:7.1f} on the same batches")
    print(f"ratio {bare / ran:.2f}")


async def _measure(path: Path, options: argparse.Namespace) -> tuple[float, float, int]:
    """Processor seconds of the run, of its batches by themselves, and how many those are."""
    fed: list[dict[str, Any]] = []
    provider = base.get(options.model, base.Settings(options={"threads": str(options.threads)}))
    await provider.open()
    session = _session(provider)
    run = session._session.run

    def kept(outputs: list[str], arrays: dict[str, Any]) -> Any:
        fed.append(arrays)
        return run(outputs, arrays)

    session._session.run = kept
    with Store.open(path) as store:
        begun = time.process_time()
        report = await run_task(store, Plan(load_task(options.task), "m", sampling=Sampling()), provider)
        seconds = time.process_time() - begun
        assert report.labelled == options.units, report
    again = []
    for _ in range(3):
        begun = time.process_time()
        for one in fed:
            run([session._output], one)
        again.append(time.process_time() - begun)
    await provider.close()
    return seconds, median(again), len(fed)


def _session(provider: Any) -> sessions.Session:
    found: sessions.Session = getattr(provider, "_session", None) or provider._model.session
    return found


def _study(path: Path, units: int) -> None:
    draw = random.Random(0)
    rows = []
    for n in range(units // 10):
        passages = [
            Passage(" ".join(draw.choices(WORDS, k=draw.randint(40, 200))), str(p)) for p in range(10)
        ]
        question = " ".join(draw.choices(WORDS, k=12)) + f" {n}?"
        rows.append(
            Row(Item(str(n), "made", question=question, claim=question, passages=passages), Where("made", n))
        )
    with Store.open(path) as store:
        add_items(store, rows, ImportInfo("benchmark", {}), [], _fail)


def _fail(error: Exception) -> None:
    raise error


if __name__ == "__main__":
    main()
