"""The output of `judge demo`, as text and as JSON.

The text shows the results of each task, the agreement of all judges on one scale, and the next steps.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.asking.judges import list_comparisons
from judge.cli.runs import measure_table
from judge.commands import command
from judge.console import visible
from judge.types import Measure

if TYPE_CHECKING:
    from judge.demo import Beside, TaskResult

STATUSES = ("ok", "unparsed", "refused", "truncated", "failed")
LEAST, MOST, WIDTH = -0.4, 1.0, 57
"""The lowest and the highest kappa in the drawing, and the width of the drawing (40 columns per unit of
kappa).
"""


def imports(db: Path) -> list[str]:
    """Return the commands that import the samples."""
    from judge.demo import samples

    return [command("judge items import", name, *paths, study=db) for name, paths in samples().items()]


def task(result: TaskResult, beside: Beside | None) -> str:
    """Return the results of one task: label counts, agreement with people, and the calibrated judge's agreement."""
    report = result.report
    judged = sum(report.ended.values())
    rate = f"{judged / report.seconds:.1f} units per second" if judged else "all of them stored earlier"
    lines = [
        f"\n{result.task}: {result.plan.task.spec.title}",
        f"  {report.labelled} of {report.units} units have a label, {rate}",
    ]
    for f in result.fields:
        # A derived field without gold labels has nothing to show. The first field always shows the reason.
        if not f.measures and f.why_none and f.field != result.plan.task.fields[0]:
            continue
        lines.append(visible(f"  {f.field}: " + ", ".join(f"{value} {n}" for value, n in f.labels.items())))
        lines += ["  " + line for line in measure_table(f.measures).splitlines()]
    if beside is not None:
        lines += ["", *_describe_comparison(beside)]
    return "\n".join(lines)


def _describe_comparison(beside: Beside) -> list[str]:
    done = beside.calibrated
    if done is None or not done.measures:
        return [visible(f"  no calibrated judge: {beside.why_none}")]
    shares = "; ".join(f"{label} {b:.0%} before, {a:.0%} after" for label, (b, a) in done.shares.items())
    before, after, difference = done.measures[0]
    line = f"  calibrated: kappa {_number(before)} before, {_number(after)} after"
    if difference is not None and difference.low is not None and difference.high is not None:
        line += f" (difference {difference.low:+.2f} … {difference.high:+.2f})"
        if done.repaired:
            line += ": it rose"
        else:
            line += ": it fell" if difference.high < 0 else ": no improvement shown"
    lines = [visible(line), visible(f"  {shares}")]
    return [*lines, visible(f"  not stored: {beside.why_none}")] if beside.why_none else lines


def _number(measure: Measure) -> str:
    return "undefined" if measure.value is None else f"{measure.value:.2f}"


def drawing(results: list[TaskResult], beside: Beside | None) -> str:
    """Draw the agreement of each judge with people (Cohen's kappa and its interval) on one scale."""
    rows: list[tuple[str, Measure | None]] = []
    for at, r in enumerate(results):
        measure = next((m for m in r.fields[0].measures if m.measure == "cohen_kappa"), None)
        name = f"{r.plan.model} on {r.task.partition('.')[0]}"
        rows.append((name, measure))
        if at == 0 and beside is not None and beside.calibrated is not None and beside.calibrated.measures:
            rows.append(("  the same, calibrated", beside.calibrated.measures[0][1]))
    width = max(len(name) for name, _ in rows)
    scale = [" "] * WIDTH
    for place in (-0.4, 0.0, 0.4, 0.8):
        text = f"{place:g}"
        scale[_column(place) : _column(place) + len(text)] = text
    head = "Agreement between judge and people beyond chance (Cohen's kappa: 0 is chance, 1 is perfect; lines are 95 % intervals)"
    lines = [f"\n{head}", f"  {'':{width}}  {'':9}  {''.join(scale).rstrip()}"]
    for name, shown in rows:
        lines.append(
            visible(f"  {name:{width}}  {_number(shown) if shown else 'none':9}  {_bar(shown)}".rstrip())
        )
    return "\n".join(lines)


def _column(value: float) -> int:
    # Kappa can be as low as -1, but so rarely that the scale ends at -0.4.
    part = (min(max(value, LEAST), MOST) - LEAST) / (MOST - LEAST)
    return round(part * (WIDTH - 1))


def _bar(measure: Measure | None) -> str:
    """Draw an interval on the scale as `├───●───┤`.

    Zero is marked by `┊`, or by `┼` if the interval crosses it.
    """
    cells = [" "] * WIDTH
    cells[_column(0.0)] = "┊"
    if measure is None or measure.value is None:
        return "".join(cells).rstrip()
    if measure.low is not None and measure.high is not None:
        low, high = _column(measure.low), _column(measure.high)
        cells[low : high + 1] = ["─"] * (high + 1 - low)
        # An interval that crosses the mark cannot exclude agreement by chance.
        if low < _column(0.0) < high:
            cells[_column(0.0)] = "┼"
        cells[low], cells[high] = "├", "┤"
    cells[_column(measure.value)] = "●"
    return "".join(cells).rstrip()


def ending(db: Path, results: list[TaskResult], page: Path | None, seconds: float, is_small: bool) -> str:
    """Return the end of the output: where the results are, what the numbers mean, and the next commands."""
    lines = [f"\n{sum(r.report.units for r in results)} units in {seconds:.0f} s; everything is in {db}"]
    if page is not None:
        lines.append(f"The report, to open in a browser: {page}")
    if is_small:
        lines.append(
            "\nllamacpp/smollm2 has 135 million parameters and is near chance (kappa about 0): it shows that the machinery\n"
            "works, not that the labels are good. To use another model, here or in judge run, change one option:\n"
            f"  {command('judge demo -d better.db -m openai/gpt-5-mini')}      (requires OPENAI_API_KEY; for any GGUF file: -m llamacpp/FILE)"
        )
    run = results[0].report.run_id
    lines += [
        "\nTry next:",
        f"  {command('judge runs list', study=db)}",
        f"  {command('judge runs show', run, study=db)}",
        f"  {command('judge runs export', run, '-o', 'labels.csv', study=db)}",
    ]
    return visible("\n".join(lines))


def document(
    db: Path, model: str, results: list[TaskResult], beside: Beside | None, page: Path | None, seconds: float
) -> dict[str, Any]:
    """Return the result in the documented JSON form."""
    tasks = [_task_document(r) for r in results]
    total: dict[str, int] = {
        s: sum(int(t[s]) for t in tasks)
        for s in ("units", "labelled", *STATUSES[1:], "reused", "already_judged")
    }
    judged = sum(sum(r.report.ended.values()) for r in results)
    spent = sum(r.report.seconds for r in results)
    return {
        "study": str(db),
        "page": None if page is None else str(page),
        "model": model,
        **total,
        "seconds": round(seconds, 3),
        # An earlier demo may have labelled all units, and then no time was spent.
        "units_per_second": judged / spent if spent else None,
        "tasks": tasks,
        "calibrated": None if beside is None else _describe_calibration(beside),
    }


def _task_document(r: TaskResult) -> dict[str, Any]:
    ended = {s: r.report.ended[s] for s in STATUSES}
    return {
        "task": r.task,
        "model": r.plan.model,
        "run": r.report.run_id,
        "units": r.report.units,
        "labelled": r.report.labelled,
        **ended,
        "reused": r.report.reused,
        "already_judged": r.report.already_judged,
        "seconds": round(r.report.seconds, 3),
        "units_per_second": sum(ended.values()) / r.report.seconds if r.report.seconds else None,
        "labels": {f.field: f.labels for f in r.fields},
        "measures": [m.as_json() for f in r.fields for m in f.measures],
    }


def _describe_calibration(beside: Beside) -> dict[str, Any]:
    done = beside.calibrated
    return {
        "run": beside.run_id,
        "reason": beside.why_none,
        "measures": [] if done is None else list_comparisons(done),
    }
