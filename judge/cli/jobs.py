"""judge jobs: the requests of a run as files, for a provider's batches or for another program; and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from judge.asking import run as asking
from judge.asking.jobs import write_job
from judge.cli import jobs_told
from judge.cli.run import of_run
from judge.commands import command
from judge.console import (
    TO_READ,
    db_option,
    emit_json,
    emit_rows,
    json_option,
    note,
    notes,
    say,
    visible,
)
from judge.errors import Exit, UsageError
from judge.permissions import Allowed, check_folder
from judge.run_options import RunOptions, limits_of
from judge.store import Store
from judge.types import attributes

if TYPE_CHECKING:
    from judge.jobs.service import BatchService
    from judge.store.jobs import Job


F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def jobs() -> None:
    """Run judges in provider batches, or with a program of your own.

    Provider batches cost half the price of single calls.
    """


@jobs.command("write")
@click.argument("task_name", metavar="TASK")
@click.option("-m", "--model", required=True, help="Model as openai/NAME or anthropic/NAME.")
@click.option(
    "--offline",
    is_flag=True,
    help="Write files for a program of your own (such as vLLM's run-batch), without any call.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, 512),
    metavar="N",
    help="With --offline: number of files of equal length to write.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="New folder to write to (default: next to the study).",
)
@of_run(
    "limit", "where", "retry", "max", "max_output_tokens", "temperature", "answers", "rationale", "asked_as", "base_url",
    "settings",
)  # fmt: skip
@db_option
@json_option
def write(
    task_name: str, model: str, offline: bool, shards: int | None, output: Path | None, **options: Any
) -> int:
    """Write the missing requests of a run to files.

    \b
    judge jobs write stance -m openai/gpt-5-mini
    judge jobs write stance -m openai/qwen3 --offline --shards 8 -o shards

    The options are the same as in judge run. The job belongs to the same run as calls made by judge run, and
    its units are reserved for it. --max assumes the most tokens that the requests can use.
    """
    given = RunOptions.of(options)
    with Store.open(options["db"], create=False) as store:
        prepared = asking.prepare(task_name, model, given, store)
        prepared = asking.in_study(store, prepared, given)
        done = write_job(store, prepared, given, output, offline=offline, shards=shards or 0)
    if options["as_json"]:
        emit_json("jobs_write", jobs_told.as_json(done))
    else:
        jobs_told.tell_written(done, options["db"], offline)
    notes(done.notes)
    if done.stopped:
        note(f"stopped: {done.stopped}; the rest is left for another job")
    return Exit.INCOMPLETE if done.stopped else Exit.DONE


def _allowing(function: F) -> F:
    """Give a command the options for what a study may name, and the function their values as `allowed`."""

    @wraps(function)
    def call(*given: Any, allow: tuple[str, ...], **named: Any) -> Any:
        return function(*given, allowed=Allowed.of(allow), **named)

    option = click.option(
        "--allow",
        multiple=True,
        metavar="WHAT",
        help="Allow this HOST, env:VARIABLE or FOLDER in the study.",
    )
    return cast("F", option(call))


@contextmanager
def _of(db: Path, name: str, allowed: Allowed | None = None) -> Iterator[tuple[Store, Job]]:
    """A job and its study, for this process alone; with `allowed` also after a check of the job's folder."""
    from judge.store import jobs as stored

    with Store.open(db, create=False) as store:
        job = stored.find(store, name)
        if allowed is not None:
            check_folder(store.path, job.folder, job.job_id, allowed)
        with store.run_lock(f"job {job.job_id}"):
            yield store, job


@contextmanager
def _served(store: Store, job: Job, allowed: Allowed) -> Iterator[BatchService]:
    from judge.jobs.service import service_of

    with closing(service_of(store.path, job, allowed)) as service:
        yield service


@jobs.command("submit")
@click.argument("name", metavar="JOB", default="last")
@of_run("max")
@click.option(
    "--again",
    is_flag=True,
    help="Send lost requests again. If they arrived the first time, you pay twice.",
)
@db_option
@json_option
@_allowing
def submit(
    name: str,
    max: tuple[str, ...],
    again: bool,
    db: Path,
    as_json: bool,
    allowed: Allowed,
) -> int:
    """Send the request files of JOB to the provider.

    Each file is sent once, also after an interruption.

    \b
    judge jobs submit last --max 20usd
    """
    from judge.jobs.post import submit as post
    from judge.jobs.post import within

    with _of(db, name, allowed) as (store, job), _served(store, job, allowed) as service:
        within(job, limits_of(max))
        done = post(store, job, service, again=again)
    if as_json:
        document = {
            "job": job.job_id,
            "posted": [f.file for f in done.posted],
            "found": [f.file for f in done.recovered],
            "unsure": len(done.unsure),
        }
        emit_json("jobs_submit", document)
    else:
        print(f"job {job.job_id}: {len(done.posted):,} files posted")
        if done.recovered:
            print(f"{len(done.recovered):,} files had been posted before an interruption")
        if not done.unsure:
            print(f"next: {command('judge jobs show', job.job_id)}")
    notes(done.unsure)
    for file in done.withdrawn:
        note(
            f"note: {file.file}: not posted: units of it were given back or have answers; to ask the rest: {command('judge jobs write TASK -m MODEL -o FOLDER')}"
        )
    return Exit.INCOMPLETE if done.unsure else Exit.DONE


@jobs.command("show")
@click.argument("name", metavar="[JOB]", required=False)
@db_option
@json_option
@_allowing
def show(name: str | None, db: Path, as_json: bool, allowed: Allowed) -> None:
    """List the jobs, or ask the provider for the state of one JOB.

    The list begins with the oldest job.

    \b
    judge jobs show
    judge jobs show last
    """
    if name is None:
        _list(db, as_json)
        return
    from judge.jobs.follow import look

    with _of(db, name) as (store, job):
        if job.base_url is None:
            from judge.jobs.follow import Standing
            from judge.store import jobs as stored

            standings = [Standing(file) for file in stored.files(store, job.job_id)]
        else:
            with _served(store, job, allowed) as service:
                standings = look(store, job, service)
    rows = [
        {
            **attributes(s.file, "file", "lines", "state"),
            "status": s.state.status if s.state else s.file.status,
            "done": s.state.done if s.state else None,
            "batch": s.file.batch_id,
            "submitted": s.file.submitted,
        }
        for s in standings
    ]
    emit_rows("jobs_status", rows, list(rows[0]) if rows else [], as_json)
    for s in standings:
        if s.remark:
            note(visible(f"note: {s.file.file}: {s.remark}"))


def _list(db: Path, as_json: bool) -> None:
    from judge.store import jobs as stored

    with Store.open(db, create=False) as store:
        rows = [
            {
                "job": job.job_id,
                "run": job.run_id,
                "model": job.model,
                "state": job.state,
                "files": len(stored.files(store, job.job_id)),
                **stored.counts(store, job.job_id),
                **attributes(job, "most_tokens", "most_cost", "made"),
                "folder": str(job.folder),
            }
            for job in stored.listed(store)
        ]
    columns = ["job", "run", "model", "state", "files", "open", "answered", "released", "made"]
    emit_rows("jobs", rows, columns, as_json)


@jobs.command("fetch")
@click.argument("name", metavar="JOB", default="last")
@db_option
@json_option
@_allowing
def fetch(name: str, db: Path, as_json: bool, allowed: Allowed) -> int:
    """Download the results of finished batches.

    The results and errors are written next to the request files of JOB.

    \b
    judge jobs fetch last
    """
    from judge.jobs import follow

    with _of(db, name, allowed) as (store, job), _served(store, job, allowed) as service:
        waiting = [
            s for s in follow.look(store, job, service) if s.file.state in ("submitted", "posting", "written")
        ]
        paths = follow.fetch(store, job, service)
    if as_json:
        emit_json(
            "jobs_fetch", {"job": job.job_id, "files": [str(p) for p in paths], "waiting": len(waiting)}
        )
    else:
        say(f"job {job.job_id}: {len(paths):,} files of results in {job.folder}")
        if paths:
            print(f"next: {command('judge jobs read', job.job_id)}")
    if waiting:
        note(f"note: {len(waiting):,} files have no results yet")
    return Exit.INCOMPLETE if waiting else Exit.DONE


@jobs.command("cancel")
@click.argument("name", metavar="JOB", default="last")
@click.option(
    "--release",
    is_flag=True,
    help="Release all units now. Units that are still in a batch may be paid twice.",
)
@db_option
@_allowing
def cancel(name: str, release: bool, db: Path, allowed: Allowed) -> None:
    """Cancel JOB.

    Requests that were not sent go back to the run. Results that are already finished can still be fetched.

    \b
    judge jobs cancel last
    """
    from judge.jobs.follow import cancel as stop

    with (
        _of(db, name) as (store, job),
        nullcontext() if job.base_url is None else _served(store, job, allowed) as service,
    ):
        units, stopped, said = stop(store, job, service, release=release)
    print(f"job {job.job_id}: {units:,} units given back, {stopped:,} batches asked to stop")
    if stopped:
        print(f"next: {command('judge jobs fetch', job.job_id)}")
    notes(said)


@jobs.command("read")
@click.argument("name", metavar="JOB", default="last")
@click.argument("results", nargs=-1, type=TO_READ)
@db_option
@json_option
@_allowing
def read_command(name: str, results: tuple[Path, ...], db: Path, as_json: bool, allowed: Allowed) -> int:
    """Store results as labels of the run.

    By default, the results are those that judge jobs fetch downloaded. RESULTS are files that your own program
    wrote.

    \b
    judge jobs read last
    judge jobs read last shards/*.out.jsonl

    Results that are already stored are skipped. Lines that match no request of the job are listed and skipped.
    """
    from judge.jobs.follow import read_fetched
    from judge.jobs.read import read_results
    from judge.store import jobs as stored

    # Files that are named here are the user's own choice.
    with _of(db, name, None if results else allowed) as (store, job), _not_beside_live_calls(store, job):
        if job.base_url is None and not results:
            raise UsageError(
                f"name the files of results: {command('judge jobs read', job.job_id, 'RESULTS')}"
            )
        tally = read_results(store, job, results) if results else read_fetched(store, job)
        counts = stored.counts(store, job.job_id)
    return jobs_told.tell_read(job, tally, counts, as_json)


@contextmanager
def _not_beside_live_calls(store: Store, job: Job) -> Iterator[None]:
    """Units that were given back are anybody's: nobody else may ask them while their answers are read."""
    from judge.store import jobs as stored
    from judge.store.export import named_run, stored_task

    if not stored.counts(store, job.job_id)["released"]:
        yield
        return
    run = named_run(store, job.run_id)
    with store.run_lock(f"{stored_task(store, run['task']).name} {run['model']}"):
        yield
