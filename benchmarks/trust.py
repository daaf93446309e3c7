"""What `judge split`, `calibrate`, `compare`, `panel` and `route` take on many judgements.

    python -m benchmarks.trust [--units 1000000] [--gold-every 1]

A study of `stance` with ten passages a claim, two judges with probabilities on every unit (so half as many units as judgements),
gold on every claim, or on one in so many. Times are of the commands, start of Python included (with its compiled
modules, as installed); those of the processor hardly depend on what else the machine does.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from judge.prompts import load_task
from judge.store import Store
from judge.store.runs import start_run
from judge.store.study import get_time

LABELS = ("support", "refute", "neutral")


def build(path: Path, units: int, every: int = 1) -> list[str]:
    """The study; the ids of its runs."""
    rng = np.random.default_rng(0)
    questions = units // 10
    with Store.open(path) as store:
        conn = store.conn
        conn.execute("PRAGMA synchronous = OFF")
        conn.execute("PRAGMA foreign_keys = OFF")
        runs = [
            start_run(store, load_task("stance"), f"scripted/{name}", {"mode": "codes"}, {})[0]
            for name in "ab"
        ]
        truth = rng.integers(0, 3, units)
        names = [f"big:{q:06}/{p}" for q in range(questions) for p in range(10)]
        with store.transaction():
            conn.execute(
                "INSERT INTO imports VALUES ('i', 'jsonl', 'big', '{}', '{}', '{}', '{}', '[]', ?)",
                [get_time()],
            )
            conn.executemany(
                "INSERT INTO items (item_id, dataset, question_id, claim, meta, content_sha, import_id) "
                "VALUES (?, 'big', ?, ?, '{}', 'x', 'i')",
                ((f"big:{q:06}", f"big:{q:06}", f"Claim {q}.") for q in range(questions)),
            )
            conn.executemany(
                "INSERT INTO passages (passage_id, item_id, position, text, meta, content_sha, import_id) "
                "VALUES (?, ?, ?, 'A passage.', '{}', 'x', 'i')",
                ((name, name[:10], n % 10) for n, name in enumerate(names)),
            )
            conn.executemany(
                "INSERT INTO units (unit_id, kind, item_id, question_id, passage_id) VALUES (?, 'passage', ?, ?, ?)",
                ((name, name[:10], name[:10], name) for name in names),
            )
            conn.execute("INSERT OR IGNORE INTO annotators VALUES ('gold', 'gold', '{}')")
            given = "INSERT INTO labels (unit_id, field, annotator_id, value, distribution) VALUES (?, 'stance', ?, ?, ?)"
            conn.executemany(
                given,
                (
                    (name, "gold", LABELS[truth[n]], None)
                    for n, name in enumerate(names)
                    if (n // 10) % every == 0
                ),
            )
            for run, skill in zip(runs, (5.0, 9.0), strict=True):
                sure = np.clip(rng.beta(skill, 0.5, units), 0.34, 0.9999)
                said = np.where(rng.random(units) < sure, truth, (truth + 1) % 3)
                own = [
                    f'{{"support":{p[0]:.5g},"refute":{p[1]:.5g},"neutral":{p[2]:.5g},"unassigned":0}}'
                    for p in np.where(
                        np.eye(3, dtype=bool)[said], sure[:, None], (1 - sure[:, None]) / 2
                    ).tolist()
                ]
                conn.executemany(given, ((names[n], run, LABELS[said[n]], own[n]) for n in range(units)))
                conn.executemany(
                    "INSERT INTO judgements (run_id, unit_id, repeat, attempt, status, latency, cost, judged_at) "
                    "VALUES (?, ?, 0, 0, 'ok', 0.5, 0.0001, ?)",
                    ((run, name, get_time()) for name in names),
                )
    return runs


def _cpu() -> float:
    """Seconds that ended commands have used."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def _timed(
    every: Sequence[Sequence[str]], path: Path, environment: Mapping[str, str]
) -> Iterator[tuple[str, float, float, subprocess.CompletedProcess[str]]]:
    """Each command as shown, its seconds, those of the processor, and how it ended."""
    for words in every:
        begun, used = time.perf_counter(), _cpu()
        line = [sys.executable, "-m", "judge", *words, "-d", str(path)]
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
        shown = " ".join(w for w in words if len(w) != 26)
        yield shown, time.perf_counter() - begun, _cpu() - used, done


def main() -> None:
    """Build and time."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--units", type=int, default=1_000_000)
    options.add_argument("--gold-every", type=int, default=1)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.db"
        # Where nothing may be compiled beside the sources, each command would compile all libraries anew.
        compiled = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        compiled["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "compiled")
        small = Path(folder) / "small.db"
        list(_timed(commands(*build(small, 200)), small, compiled))
        begun = time.perf_counter()
        a, b = build(path, given.units // 2, given.gold_every)
        print(
            f"{given.units:,} judgements of two judges: built in {time.perf_counter() - begun:.0f} s",
            flush=True,
        )
        for shown, took, used, done in _timed(commands(a, b), path, compiled):
            told = "" if done.returncode in (0, 5) else done.stderr[-200:]
            print(
                f"judge {shown}: {took:.1f} s ({used:.1f} s of processor), exit {done.returncode} {told}",
                flush=True,
            )


def commands(a: str, b: str) -> tuple[tuple[str, ...], ...]:
    """What is timed, of the runs A and B."""
    return (
        ("split", "stance", "--dry-run"),
        ("calibrate", "stance", "--run", a),
        ("compare", "stance", "--run", a, "--run", b),
        ("panel", "stance", "--run", a, "--run", b),
        ("route", "stance", "--run", a, "--then", b),
        ("route", "stance", "--run", a),
    )


if __name__ == "__main__":
    main()
