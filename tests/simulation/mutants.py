"""One mutant for each finding that the simulation was written for, and how long it takes to find it.

`python -m tests.simulation.mutants` copies the tree, puts each fault back, and runs the simulation on it.
"""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
SECONDS = 60
"""Of the processor, for each mutant."""
MUTANTS = {
    "1: an event of a batch clears what other sources said": (
        "judge/store/label_sources.py",
        '        "AND source = ?",\n        [annotator, *fields, unit, repeat, source],',
        "        \"AND ? <> ''\",\n        [annotator, *fields, unit, repeat, source],",
    ),
    "2: batches of two tasks share the rows of a derived field": (
        "annotate/sitting/standing.py",
        "'batch'}:{batch}\"",
        "'batch'}:all\"",
    ),
    "3: an answer without a time is known by its content": (
        "annotate/exchange/log.py",
        "    if not response.at and not response.source:\n        return str(ULID())\n",
        "",
    ),
    "4: contradictions are looked for layer by layer": (
        "judge/migrations/m002_sources.sql",
        "GROUP BY annotator_id, field, unit_id, repeat, revised",
        "GROUP BY annotator_id, field, unit_id, repeat, layer",
    ),
    "6: an export leaves out evidence of units without a label": (
        "annotate/exchange/responses.py",
        "a.spans <> '[]' OR ",
        "",
    ),
    "7: a batch grows by what is its new total": (
        "annotate/drawing/extend.py",
        "return replace(plan, n=to)",
        "return replace(plan, n=(plan.n or 0) + to)",
    ),
    "drawing: what was said before is not adopted": (
        "annotate/drawing/adopt.py",
        "        if not found:\n            continue\n",
        "        if found:\n            continue\n",
    ),
}
"""Finding -> file, what stands there, and what stood there before it was mended. Finding 5 is a screen's: tests/tui."""


def _processor() -> float:
    """Seconds of the processor that child processes have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print the seconds for each mutant; exit 1 when one was not found."""
    missed = 0
    for name, (path, right, wrong) in MUTANTS.items():
        with TemporaryDirectory(prefix="adjudge-mutant-") as folder:
            copy = Path(folder)
            for part in ("judge", "annotate", "adjudge", "tests", "prompts", "data"):
                shutil.copytree(
                    ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "*.svg")
                )
            text = (copy / path).read_text("utf-8")
            if right not in text:
                raise SystemExit(f"{path} has no {right!r} any more: change the mutant with it")
            (copy / path).write_text(text.replace(right, wrong), "utf-8")
            before = _processor()
            command = [
                sys.executable,
                "-m",
                "tests.simulation",
                "--seed",
                "1",
                "--operations",
                "100000",
                "--only-find",
            ]
            done = subprocess.run(
                command,
                cwd=copy,
                env={**os.environ, "PYTHONPATH": folder},
                capture_output=True,
                text=True,
                check=False,
                # Other work runs beside it: what counts is the processor's time, not the clock's.
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)),
            )
            took = _processor() - before
        wrong = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
        if done.returncode == 1 and wrong:
            told = f"found after {took:.0f} s: {wrong[0][:160]}"
        else:
            missed, told = missed + 1, f"not found in {SECONDS} s\n{done.stderr[-300:]}"
        print(f"{name}: {told}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
