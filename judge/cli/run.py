"""judge run: label every unit that fits a task, with one model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.asking import run as asking
from judge.asking.jobs import run_in_batches, write_files
from judge.cli.estimate import estimate, estimate_option
from judge.cli.models import model_option
from judge.cli.options import Sectioned, options_of
from judge.cli.panel import run_panel
from judge.cli.progress import Progress
from judge.cli.run_result import describe_unparsed, finish
from judge.commands import command
from judge.console import db_option, emit_json, json_option, note, notes, print_lines
from judge.errors import Exit, UsageError
from judge.run_options import WRITTEN, RunOptions
from judge.store import Store
from judge.types import attributes

if TYPE_CHECKING:
    from judge.jobs.write import Written

SECTIONS = {
    "What": ("limit", "where", "units_of", "sample"),
    "Model": ("model", "base_url", "settings", "recipe", "temperature", "rationale"),
    "Limits": ("is_estimate", "max", "concurrency", "batch", "offline"),
    "Output": ("db", "as_json"),
}
"""The options that --help shows, by section."""


@click.command(cls=Sectioned, sections=SECTIONS)
@click.argument("task_name", metavar="TASK")
@model_option(required=False)
# A task file is given by its path, so there is no --prompts here. Commands that use several tasks have it.
@options_of(*(name for name in WRITTEN if name != "prompts"))
@estimate_option
@click.option("--batch", is_flag=True, help="Use the provider's batch API (half price, takes up to a day).")
@click.option(
    "--offline",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write the requests to files for another program.",
)
@db_option
@json_option
def run(task_name: str, model: str | None, **options: Any) -> int:
    """Label every unit that fits TASK and that the run has not labelled yet.

    \b
    judge run stance -m openai/gpt-5-mini --estimate
    judge run stance -m llamacpp/smollm2 -n 100
    judge run ./mytask.v1.md -m openai/llama --base-url http://127.0.0.1:8000/v1
    judge run stance -m anthropic/claude-haiku-5 --batch --max 20usd
    judge run stance -m openai/qwen3 --offline requests

    To resume, run the same command again. No request is sent twice. With --offline, the requests are written
    to files for another program. To import the results of that program, use judge jobs read.
    """
    given = RunOptions.from_options(options)
    _check_ways(options)
    # A recipe may describe a panel, and each of its members has its own run.
    if given.recipe is not None and (code := run_panel(task_name, model, given, options)) is not None:
        return code
    # A panel's recipe names its models, so click cannot require the option.
    if model is None:
        context = click.get_current_context()
        raise click.MissingParameter(
            ctx=context, param=next(option for option in context.command.params if option.name == "model")
        )
    with Store.open(options["db"], create=False) as store:
        prepared = asking.prepare(task_name, model, given, store)
        notes(prepared.notes)
        prepared = asking.complete_asking(store, prepared, given)
        if options["is_estimate"]:
            return estimate(store, prepared, options["as_json"])
        if options["offline"] is not None:
            return _write(store, prepared, given, options)
        if options["batch"]:
            ran = run_in_batches(store, prepared, given, note)
        else:
            ran = asking.run(store, prepared, Progress(sys.stderr))
        then = asking.suggest_command(store, ran)
        unparsed = describe_unparsed(store, ran.report.run_id, ran.report.ended)
    if ran.calibrated is not None:
        note(f"calibrated by the recipe: run {ran.calibrated}")
    return finish(ran.plan, ran.report, options, then, unparsed)


def _check_ways(options: dict[str, Any]) -> None:
    """Raise UsageError if --estimate, --batch and --offline are combined.

    Only --estimate and --batch may be used together.
    """
    ways = {
        "--estimate": options["is_estimate"],
        "--batch": options["batch"],
        "--offline": options["offline"],
    }
    given = [flag for flag, value in ways.items() if value]
    # An estimate prints the price of a batch beside that of single calls.
    if len(given) > 1 and given != ["--estimate", "--batch"]:
        raise UsageError(f"{' and '.join(given)} cannot be used together; omit one of them")


def _write(store: Store, prepared: asking.Asking, given: RunOptions, options: dict[str, Any]) -> int:
    """Write the requests of the run to files for another program."""
    done = write_files(store, prepared, given, options["offline"])
    if options["as_json"]:
        emit_json("jobs_write", _describe_job(done))
    else:
        _print_written(done)
    notes(done.notes)
    if done.stopped:
        note(
            f"stopped: {done.stopped}; the remaining requests were not written, and can be written as another job"
        )
    return Exit.INCOMPLETE if done.stopped else Exit.DONE


def _describe_job(done: Written) -> dict[str, Any]:
    """Return the job and its files as the JSON document that `judge run --offline --json` prints."""
    job = done.job
    return {
        "job": None if job is None else job.job_id,
        "run": done.run_id,
        "resumed": done.resumed,
        "folder": None if job is None else str(job.folder),
        "files": [attributes(f, "file", "lines", "bytes") for f in done.files],
        "asked": done.n_units,
        **attributes(done, "lines", "reused", "waiting", "units", "left_out"),
        "most_tokens": 0 if job is None else job.most_tokens,
        "most_cost": None if job is None or job.most_cost is None else round(job.most_cost, 6),
        "prices": None if done.price is None else done.price.source,
        "stopped": done.stopped,
    }


def _print_written(done: Written) -> None:
    """Print the number of requests, the files and the cost, and the next command."""
    if done.reused:
        print(f"{done.reused:,} units reuse the stored answers to identical requests")
    if done.waiting:
        print(f"{done.waiting:,} units wait for other jobs ({command('judge jobs show')})")
    if done.job is None:
        print(f"run {done.run_id}: nothing left to write")
        return
    job, size = done.job, sum(f.bytes for f in done.files) / 1e6
    cost = (
        "" if job.most_cost is None or done.price is None else f", ${job.most_cost:.4f} ({done.price.source})"
    )
    print_lines(f"job {job.job_id} of run {done.run_id}: {done.lines:,} requests for {done.n_units:,} units")
    print_lines(f"{len(done.files):,} files ({size:,.1f} MB) in {job.folder}")
    print(f"at most {job.most_tokens:,} tokens{cost}")
    print(f"next: run the requests, then: {command('judge jobs read', job.job_id, 'RESULTS')}")
