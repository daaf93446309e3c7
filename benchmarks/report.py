"""Speed of annotate report: 100,000 judgements, 5,000 annotations. Measures and prints, asserts nothing.

    uv run python benchmarks/report.py [FOLDER]

Builds the study once in FOLDER (default: a temporary one), then runs the command in a process of its own,
so that imports count: once to warm the caches of the machine, then three times.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from judge.importers import base
from judge.importers.importing import import_files
from judge.prompts import load_task
from judge.store import Store
from judge.store.judgements import Entry, add_judgements
from judge.store.runs import close_run, start_run
from judge.types import Answered, Judgement, LabelDistribution, Status, Usage

UNITS, PER_QUESTION, ANNOTATIONS, PEOPLE = 100_000, 10, 5_000, ("alice", "bob", "carol", "dave")
LABELS = ("support", "refute", "neutral")


def build(db: Path) -> None:
    """The study: one judge with probabilities on everything, four people on a random sample of units."""
    draw = random.Random(1)
    truth = [draw.choices(LABELS, (5, 2, 3))[0] for _ in range(UNITS)]

    def label(i: int, accuracy: float) -> str:
        return truth[i] if draw.random() < accuracy else draw.choice(LABELS)

    sample = set(draw.sample(range(UNITS), ANNOTATIONS // len(PEOPLE)))
    data = db.with_suffix(".jsonl")
    with data.open("w") as file:
        for q in range(UNITS // PER_QUESTION):
            passages = []
            for i in range(q * PER_QUESTION, (q + 1) * PER_QUESTION):
                votes = {person: label(i, 0.85) for person in PEOPLE} if i in sample else {}
                passages.append(
                    {"id": str(i), "text": f"Passage {i}. " + "Some words. " * 40, "votes": {"stance": votes}}
                )
            file.write(json.dumps({"id": str(q), "claim": f"Claim {q}.", "passages": passages}) + "\n")
    import_files(db, "jsonl", base.get("jsonl"), [data], base.Options("bench"), skip_bad=False)
    task = load_task("stance")
    with Store.open(db) as store:
        run, _ = start_run(store, task, "bench/judge", {"temperature": 0.0}, {})
        for start in range(0, UNITS, 10_000):
            entries = [
                Entry(judgement(run, i, label(i, 0.75), draw), None) for i in range(start, start + 10_000)
            ]
            with store.transaction() as conn:
                add_judgements(conn, entries, set())
        close_run(store, run, finished=True)


def judgement(run: str, i: int, label: str, draw: random.Random) -> Judgement:
    top = draw.uniform(0.4, 0.99)
    masses = {name: top if name == label else (1 - top) / 2 for name in LABELS}
    answered = Answered("stance", label, LabelDistribution(masses, 0.0))
    unit = f"bench:{i // PER_QUESTION}/{i}"
    return Judgement(run, unit, 0, 0, Status.OK, label, None, (answered,), Usage(300, 1, 0), 0.2, None)


def cpu() -> float:
    """Processor seconds of all ended child processes: beside the wall time it shows how busy the machine was."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        db = folder / "bench.db"
        if not db.exists():
            start = time.perf_counter()
            build(db)
            print(f"{'building the study':<48} {time.perf_counter() - start:8.1f} s")
        # Compiled modules, as an installed package has them; the first run makes them.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        for form in ("html", "html", "html", "html", "json", "md"):
            start, used = time.perf_counter(), cpu()
            command = [sys.executable, "-c", "from annotate.cli import main; main()", "report", "-d", str(db)]
            subprocess.run(
                [*command, "-o", str(folder / f"report.{form}")],
                check=True,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            seconds, worked = time.perf_counter() - start, cpu() - used
            size = (folder / f"report.{form}").stat().st_size / 1e3
            limit = "asked: under 10" if form == "html" else ""
            print(
                f"{f'annotate report, {form} ({size:,.0f} kB)':<40} {seconds:8.2f} s, {worked:5.2f} s of processor   {limit}"
            )
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (
            1024**2 if sys.platform == "darwin" else 1024
        )
        print(f"{'peak memory of the command':<48} {peak:8.0f} MB")


if __name__ == "__main__":
    main()
