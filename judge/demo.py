"""The demo: real passages, real models and real human labels, without a key or a network connection.

First, a small embedding model judges relevance. Its probabilities are informative, so it is calibrated and
evaluated again. Then a language model performs three tasks. This model is run in the same way as any other
model.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from judge import derive
from judge.derive.calibrate import Calibrated, calibrate
from judge.errors import UsageError
from judge.importers import base
from judge.importers.importing import import_files
from judge.prompts import load_task
from judge.providers.base import Provider
from judge.resources import resource_dir
from judge.runner import Plan, RunReport
from judge.scores.gold import FieldResult, compare
from judge.store import Store, label_rows
from judge.store.selection import Selection

TASKS = ("stance", "mirage_support", "garage_relevance")
RELEVANT = "relevant"
MODEL = "llamacpp/smollm2"
SMALL = "embedded/minilm"
LONGEST = 800
"""Maximum number of characters in a passage for the language model.

Reading passages takes most of the demo's running time.
"""
EACH = 10
"""Number of units in each of the language model's tasks. The relevance task judges every passage in its sample."""

Run = Callable[[Store, Plan, Provider], Awaitable[RunReport]]


@dataclass(slots=True)
class TaskResult:
    """One task of the demo: the run's report, and the agreement of its fields with the gold labels."""

    task: str
    plan: Plan
    report: RunReport
    fields: list[FieldResult]


@dataclass(slots=True)
class Beside:
    """The calibration of a run: its result and the stored run, or the reason why there is no calibration."""

    calibrated: Calibrated | None
    run_id: str | None
    why_none: str | None


def samples() -> dict[str, list[Path]]:
    """Return a mapping from import format to shipped files."""
    scifact = resource_dir("data") / "scifact"
    return {
        "jsonl": [resource_dir("data") / "noveleval" / "questions.jsonl"],
        "scifact": sorted(p for p in scifact.iterdir() if p.suffix in (".jsonl", ".csv")),
    }


def import_samples(db: Path) -> None:
    """Import the shipped NovelEval and SciFact samples. A second call does not change anything."""
    for name, paths in samples().items():
        import_files(db, name, base.get(name), paths, base.Options(), skip_bad=False)


async def label(
    store: Store, model: str, provider: Provider, run: Run, name: str, limit: int | None
) -> TaskResult:
    """Run one task on up to `limit` units that have gold labels for it."""
    task = load_task(name)
    field = task.spec.questions[0].field
    wanted = f"unit_id IN ({label_rows.units_of_gold(field)})"
    if name != RELEVANT:
        wanted = f"length(passage) <= {LONGEST} AND {wanted}"
    plan = Plan(task, model, Selection(wanted, limit))
    report = await run(store, plan, provider)
    return TaskResult(task.name, plan, report, compare(store, task, report.run_id))


def calibrate_demo(store: Store, result: TaskResult) -> Beside:
    """Calibrate the run on the gold labels, cross-fitting by question.

    Store the calibration if the run's probabilities are informative.
    """
    field = result.plan.task.spec.questions[0].field
    table = derive.read_runs(store, [result.report.run_id], field)
    try:
        done = calibrate(table, derive.reference(store, table, field, None), field, "bias")
    except UsageError as e:
        return Beside(None, None, str(e))
    # Calibrating probabilities without a signal would only reproduce the label frequencies.
    if done.has_signal is False:
        return Beside(done, None, "on these labels, its probabilities show no signal")
    run_id, _ = derive.keep(
        store, table, "calibrated", "bias", {field: done.made}, parameters=done.parameters, fitted=done.fitted
    )
    return Beside(done, run_id, None)
