"""The first thing a newcomer runs: real passages, a real model, real human labels, no key, no network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from judge.importers import base
from judge.importers._run import import_files
from judge.prompts import load_task
from judge.providers.base import Provider
from judge.resources import resource_dir
from judge.runner import Plan, Report
from judge.scores.gold import FieldResult, compare
from judge.store import Store, label_rows

TASKS = ("stance", "mirage_support", "garage_relevance")
MODEL = "llamacpp/smollm2"
LONGEST = 1100
"""Characters; the longer abstracts would take a third of the time on two cores."""


@dataclass(slots=True)
class TaskResult:
    """One task of the demo: how the run went, and its fields against gold."""

    task: str
    plan: Plan
    report: Report
    fields: list[FieldResult]


def import_samples(db: Path) -> None:
    """Import the shipped SciFact sample; a second time changes nothing."""
    folder = resource_dir("data") / "scifact"
    paths = sorted(p for p in folder.iterdir() if p.suffix in (".jsonl", ".csv"))
    import_files(db, "scifact", base.get("scifact"), paths, base.Options(), skip_bad=False)


async def label(
    store: Store,
    model: str,
    provider: Provider,
    run: Callable[[Store, Plan, Provider], Awaitable[Report]],
    limit: int,
) -> list[TaskResult]:
    """Run the three tasks one after the other on everything that has gold for them."""
    from judge.store.selection import Selection

    results = []
    for name in TASKS:
        task = load_task(name)
        field = task.spec.questions[0].field
        wanted = f"length(passage) <= {LONGEST} AND unit_id IN ({label_rows.units_of_gold(field)})"
        plan = Plan(task, model, Selection(wanted, limit))
        report = await run(store, plan, provider)
        results.append(TaskResult(task.name, plan, report, compare(store, task, report.run_id)))
        if report.error is not None or report.interrupted:
            break
    return results
