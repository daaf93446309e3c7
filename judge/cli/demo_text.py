"""The output of `judge demo`, as text and as JSON.

The text shows the results of each task, the agreement of all judges on one scale, and the next steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.asking.judges import list_comparisons
from judge.commands import command
from judge.console import visible
from judge.document.blocks import Document, Figure, Notes, Paragraph, Section, dot, dot_plot
from judge.document.cells import brief, interval, share

if TYPE_CHECKING:
    from judge.demo import Beside, TaskResult

STATUSES = ("ok", "unparsed", "refused", "truncated", "failed")


def imports(db: Path) -> list[str]:
    """Return the commands that import the samples."""
    from judge.demo import samples

    return [command("judge items import", name, *paths, study=db) for name, paths in samples().items()]


def task_document(result: TaskResult, beside: Beside | None) -> Document:
    """Return the results of one task: label counts, agreement with people, and the calibrated judge's agreement."""
    # This import takes long, and help texts do not need it.
    from judge.scores.gold_document import list_fields

    report = result.report
    judged = sum(report.ended.values())
    rate = f"{judged / report.seconds:.1f} units per second" if judged else "all of them stored earlier"
    # A derived field without gold labels has nothing to show. The first field always shows the reason.
    first = result.plan.task.fields[0]
    fields = [f for f in result.fields if f.measures or not f.why_none or f.field == first]
    blocks = list(list_fields(fields))
    if beside is not None:
        blocks += [Paragraph(""), Notes(list(_compare(beside)))]
    return Document(
        f"{result.task}: {result.plan.task.spec.title}",
        [("", f"{report.labelled} of {report.units} units have a label, {rate}")],
        sections=[Section("task", result.task, blocks)],
    )


def _compare(beside: Beside) -> Iterator[str]:
    done = beside.calibrated
    if done is None or not done.measures:
        yield f"no calibrated judge: {beside.why_none}"
        return
    before, after, difference = done.measures[0]
    line = f"calibrated: kappa {brief(before)[0]} before, {brief(after)[0]} after"
    if difference is not None and difference.low is not None and difference.high is not None:
        fell = "it fell" if difference.high < 0 else "no improvement shown"
        line += f" (difference {interval(difference.low, difference.high)}): {'it rose' if done.repaired else fell}"
    yield line
    yield "; ".join(f"{label} {share(b)} before, {share(a)} after" for label, (b, a) in done.shares.items())
    if beside.why_none:
        yield f"not stored: {beside.why_none}"


def drawing(results: list[TaskResult], beside: Beside | None) -> Figure:
    """Return a drawing of each judge's agreement with people (Cohen's kappa and its interval) on one scale."""
    rows = []
    for at, r in enumerate(results):
        kappa = next((m for m in r.fields[0].measures if m.measure == "cohen_kappa"), None)
        rows.append(dot(f"{r.plan.model} on {r.task.partition('.')[0]}", kappa))
        if at == 0 and beside is not None and beside.calibrated is not None and beside.calibrated.measures:
            rows.append(dot("  the same, calibrated", beside.calibrated.measures[0][1]))
    caption = "Agreement between judge and people beyond chance (Cohen's kappa: 0 is chance, 1 is perfect; lines are 95 % intervals)"
    return dot_plot("agreement", caption, "A dot is the value with its interval.", rows, is_text=True)


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
