"""One mutant for each finding that the simulation was written for, and how long it takes to find it.

`python -m tests.simulation.mutants` copies the tree, puts each fault back, and runs the simulation on it.
"""

import resource
import sys

from tests.mutants import run_on, tell

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
    "a pack does not know which texts were corrected": (
        "annotate/packing/pack.py",
        "            _copy_corrected(store.conn, conn, {unit for _, unit, _, _ in rows}, person)\n",
        "",
    ),
    "agreement of one version counts the labels of all": (
        "annotate/agreement/one_field.py",
        "version = None if named_task is None or task == named_task.task_id else named_task.name",
        "version = None",
    ),
    "a row without proof counts for the corrected text": (
        "annotate/exchange/gate.py",
        "if difference is None and corrected and response.at is None:",
        "if False:",
    ),
    "drawing: what was said before is not adopted": (
        "annotate/drawing/adopt.py",
        "        if not answers:\n            continue\n",
        "        if answers:\n            continue\n",
    ),
}
"""Finding -> file, what stands there, and what stood there before it was mended. Finding 5 is a screen's: tests/tui."""


def _processor() -> float:
    """Seconds of the processor that child processes have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def find(name: str) -> tuple[bool, str]:
    """Whether the simulation found the mutant in time, and after how many seconds."""
    before = _processor()
    done = run_on(
        MUTANTS[name],
        ["tests.simulation", "--seed", "1", "--operations", "100000", "--only-find"],
        # Other work runs beside it: what counts is the processor's time, not the clock's.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)),
    )
    took = _processor() - before
    wrong = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    if done.returncode == 1 and wrong:
        return True, f"found after {took:.0f} s: {wrong[0][:160]}"
    return False, f"not found in {SECONDS} s\n{done.stderr[-300:]}"


if __name__ == "__main__":
    sys.exit(tell([*MUTANTS], find))
