"""How fast the labelling screen is: label key to committed row, key to repaint, opening 100,000 units, memory.

    uv run python benchmarks/tui.py [--units 100000] [--keys 200]

Prints milliseconds (p50, p95) and megabytes; never asserts. The keys go through the running app's own
queue; "repaint" ends when the screen has been drawn again and the queue is empty.
"""

import argparse
import asyncio
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from annotate.batch_plan import BatchPlan
from annotate.drawing.batch import new_batch
from annotate.sitting.desk import Desk
from annotate.store import open_study
from annotate.tui.app import AnnotateApp
from judge.prompts import load_task
from judge.store.items import ImportInfo, add_items
from judge.types import Item, Passage, Row, Where

WORDS = [
    "the",
    "capital",
    "of",
    "the",
    "country",
    "lies",
    "on",
    "a",
    "river",
    "and",
    "has",
    "been",
    "known",
    "since",
    "early",
    "times",
    "for",
    "trade",
    "and",
    "crafts",
]


def build(path: Path, units: int) -> None:
    """A study of passages of about 100 words, five to a claim, and one batch of all of them."""
    text = " ".join(WORDS * 5)
    rows = (
        Row(
            Item(
                str(i),
                "big",
                claim=f"The capital number {i} lies on a river.",
                passages=[Passage(f"{text} ({i}.{p})", source_id=str(p), title=f"T{i}") for p in range(5)],
            ),
            Where("", i),
        )
        for i in range(units // 5)
    )
    with open_empty(path) as store:
        add_items(store, rows, ImportInfo("bench", {}), [], print)
    with open_study(path) as store:
        new_batch(store, load_task("stance"), BatchPlan("big", ["alice"], n=units, seed=1))


def open_empty(path: Path):  # type: ignore[no-untyped-def]
    """A new study."""
    from judge.store import Store

    return Store.open(path)


def told(name: str, times: list[float]) -> None:
    """One line."""
    ordered = sorted(t * 1000 for t in times)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    print(f"{name:32} p50 {statistics.median(ordered):7.1f} ms   p95 {p95:7.1f} ms   n {len(ordered)}")


def most_memory() -> float:
    """The most memory of this program in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would begin with what the parent held when it started us
        found = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(found.split()[1]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024 * 1024 if sys.platform == "darwin" else 1024)


async def keys(path: Path, count: int, size: tuple[int, int]) -> None:
    """Press label keys in the running app."""
    begun = time.perf_counter()
    with open_study(path) as store, Desk.open(store, "big", "alice") as desk:
        app = AnnotateApp(desk)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            print(f"open to first screen, {desk.total} units: {(time.perf_counter() - begun) * 1000:.0f} ms")
            commits: list[float] = []
            original = desk.label

            def timed(*a: object, **k: object) -> object:
                start = time.perf_counter()
                try:
                    return original(*a, **k)  # type: ignore[arg-type]
                finally:
                    commits.append(time.perf_counter() - start)

            desk.label = timed  # type: ignore[method-assign, assignment]
            drawn = asyncio.Event()
            display = app._display

            def seen(*a: object, **k: object) -> None:
                display(*a, **k)  # type: ignore[arg-type]
                drawn.set()

            app._display = seen  # type: ignore[method-assign, assignment]
            repaints: list[float] = []
            from textual import events

            for i in range(count):
                drawn.clear()
                key = "srn"[i % 3]
                start = time.perf_counter()
                app.post_message(events.Key(key, key))
                position = app.labelling.hand.unit.position
                while app.labelling.hand.unit.position == position:
                    await asyncio.sleep(0)
                drawn.clear()
                await asyncio.wait_for(drawn.wait(), 5)
                repaints.append(time.perf_counter() - start)
                await pilot.pause()
            told("key to committed row", commits)
            told(f"key to repaint at {size[0]}x{size[1]}", repaints)
    print(f"memory: {most_memory():.0f} MB at most, this process")


def main() -> None:
    """Build, then measure in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--db", type=Path)
    parser.add_argument("--size", default="80x24")
    args = parser.parse_args()
    if args.db:
        width, height = args.size.split("x")
        asyncio.run(keys(args.db, args.keys, (int(width), int(height))))
        return
    import subprocess

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.db"
        begun = time.perf_counter()
        build(path, args.units)
        print(f"import and batch of {args.units} units: {time.perf_counter() - begun:.1f} s")
        for size in ("80x24", "140x45"):
            own = [sys.executable, __file__, "--db", str(path), "--keys", str(args.keys), "--size", size]
            subprocess.run(own, check=True)


if __name__ == "__main__":
    main()
