"""How long a study of millions takes, and in how much memory: a finished run repeated, a report, a batch, exports, a merge.

    uv run python benchmarks/scale.py --units 3000000

The studies are made by SQL; each command runs in a process of its own, whose seconds, seconds of the processor and
most memory are printed. TMPDIR is where the commands sort what memory should not hold.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).parent))

from resume import build as half_judged  # noqa: E402


def build(path: Path, units: int) -> None:
    """A study of that many units, all of them judged and labelled."""
    from judge.store import Store

    half_judged(path, units)
    with Store.open(path) as store:
        conn = store.conn
        conn.execute("PRAGMA synchronous = OFF")
        [run] = conn.execute("SELECT run_id FROM runs").fetchone()
        conn.execute("BEGIN")
        conn.execute("UPDATE judgements SET status = 'ok'")
        conn.execute(
            "INSERT INTO judgements (run_id, unit_id, repeat, attempt, status, reused, judged_at, reply) "
            "SELECT ?1, unit_id, 0, 1, 'ok', 0, '', '{\"stance\": \"support\"}' FROM units AS u WHERE NOT EXISTS "
            "(SELECT 1 FROM judgements AS j WHERE j.run_id = ?1 AND j.unit_id = u.unit_id AND j.repeat = 0)",
            [run],
        )
        conn.execute(
            "INSERT INTO labels (unit_id, field, annotator_id, repeat, value, distribution) SELECT unit_id, 'stance', "
            "?, 0, CASE rowid % 3 WHEN 0 THEN 'support' WHEN 1 THEN 'refute' ELSE 'neutral' END, "
            '\'{"support":0.7,"refute":0.2,"neutral":0.1,"unassigned":0.0}\' FROM units ORDER BY unit_id',
            [run],
        )
        conn.execute("COMMIT")


COMMANDS = {
    "a finished run repeated": ["judge", "run", "stance", "-m", "scripted/hash"],
    "report": ["annotate", "report", "--task", "stance", "-o", "report.html"],
    "batches new, by label": ["annotate", "batches", "new", "b1", "stance", "-n", "300", "--by", "label"],
    "batches new, by question": ["annotate", "batches", "new", "b2", "stance", "--by-question", "300"],
    "batches new, queue": ["annotate", "batches", "new", "b3", "stance", "-n", "300", "--draw", "least-sure"],
    "batches new, for ppi": ["annotate", "batches", "new", "b5", "stance", "-n", "300", "--draw", "ppi"],
    "export jsonl": ["judge", "runs", "export", "-o", "labels.jsonl"],
    "export csv": ["judge", "runs", "export", "-o", "labels.csv"],
    "export parquet": ["judge", "runs", "export", "-o", "labels.parquet"],
    "merge with a copy": ["judge", "studies", "merge", "study.db", "copy.db", "--into", "merged.db"],
}


def measure(words: list[str], folder: Path) -> str:
    """Seconds, those of the processor, and the most memory of a command in a process of its own."""
    more = [] if "merge" in words else ["-d", "study.db"]
    more += ["--annotators", "ann,bob"] if "batches" in words else []
    begun = time.monotonic()
    code = (
        # Not ru_maxrss, which a process takes over from the one that started it.
        "import os, runpy, sys; sys.argv = sys.argv[1:]\n"
        "try: runpy.run_module(sys.argv[0], run_name='__main__')\n"
        "finally: print('peak', [int(s.split()[1]) // 1024 for s in open('/proc/self/status') if 'VmHWM' in s][0], "
        "round(sum(os.times()[:2]), 1), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words, *more],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    peak = next((line for line in done.stderr.splitlines() if line.startswith("peak")), "peak ? ?")
    ended = "" if done.returncode == 0 else f"  exit {done.returncode}: {done.stderr[-300:]}"
    _, memory, cpu = peak.split()
    return f"{time.monotonic() - begun:7.1f} s  {cpu:>6} s of CPU  {memory:>5} MB{ended}"


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=300_000)
    parser.add_argument(
        "--only", nargs="*", metavar="WORD", help="Commands whose name has one of these in it."
    )
    parser.add_argument("--folder", type=Path, help="Keep the study there, and take one that is there.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        begun = time.monotonic()
        if not (folder / "study.db").exists():
            build(folder / "study.db", options.units)
        size = (folder / "study.db").stat().st_size / 2**20
        print(
            f"{options.units:,} units, {size:,.0f} MB, built in {time.monotonic() - begun:.0f} s", flush=True
        )
        for what, words in COMMANDS.items():
            if options.only and not any(word in what for word in options.only):
                continue
            if "copy" in what:
                shutil.copyfile(folder / "study.db", folder / "copy.db")
            print(f"{what:26} {measure(words, folder)}", flush=True)
            for left in folder.glob("labels.*"):
                left.unlink()


if __name__ == "__main__":
    main()
