"""judge jobs: follow runs whose requests are processed in a provider's batches or by another program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from judge import console
from judge.commands import command
from judge.document import terminal
from judge.errors import Exit
from judge.permissions import Allowed, check_folder
from judge.store import Store
from judge.store import jobs as stored
from judge.types import attributes

if TYPE_CHECKING:
    from judge.jobs.account import BatchService
    from judge.jobs.read import JobTally
    from judge.store.jobs import Job


F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def jobs() -> None:
    """Follow runs whose requests are in provider batches or in files for your own program.

    judge run --batch and judge run --offline write the requests.
    """


def _allowing(function: F) -> F:
    """Add the option --allow to a command.

    The function receives an `Allowed` object as the argument `allowed`.
    """

    @wraps(function)
    def call(*given: Any, allow: tuple[str, ...], **named: Any) -> Any:
        return function(*given, allowed=Allowed.from_values(allow), **named)

    option = click.option(
        "--allow",
        multiple=True,
        metavar="WHAT",
        help="Allow the study to use this HOST, env:VARIABLE or FOLDER.",
    )
    return cast("F", option(call))


@contextmanager
def _open_job(db: Path, name: str, allowed: Allowed | None = None) -> Iterator[tuple[Store, Job]]:
    """Open the study, find a job and lock it for this process. If `allowed` is given, check the job's folder first."""
    with Store.open(db, create=False) as store:
        job = stored.find(store, name)
        if allowed is not None:
            # A study from somebody else must not choose a folder that is read and written.
            check_folder(store.path, job.folder, job.job_id, allowed)
        with store.run_lock(f"job {job.job_id}"):
            yield store, job


@contextmanager
def _open_services(store: Store, job: Job, allowed: Allowed) -> Iterator[BatchService]:
    from judge.jobs.follow import service_of

    with closing(service_of(store.path, job, allowed)) as service:
        yield service


@jobs.command("show")
@click.argument("name", metavar="[JOB]", required=False)
@console.db_option
@console.json_option
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
    from judge.jobs import follow

    with _open_job(db, name) as (store, job):
        if job.base_url is None:
            statuses = [follow.FileStatus(file) for file in stored.files(store, job.job_id)]
        else:
            with _open_services(store, job, allowed) as service:
                statuses = follow.poll(store, job, service)
    rows = [
        {
            **attributes(s.file, "file", "lines", "state"),
            # A file that was not posted has no state at the provider.
            "status": s.state.status if s.state else s.file.status,
            "done": s.state.done if s.state else None,
            "batch": s.file.batch_id,
            "submitted": s.file.submitted,
        }
        for s in statuses
    ]
    terminal.emit_rows("jobs_status", rows, list(rows[0]) if rows else [], as_json)
    for s in statuses:
        if s.remark:
            console.note(f"note: {s.file.file}: {s.remark}")


def _list(db: Path, as_json: bool) -> None:
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
    terminal.emit_rows("jobs", rows, columns, as_json)


@jobs.command("cancel")
@click.argument("name", metavar="JOB", default="last")
@click.option(
    "--release",
    is_flag=True,
    help="Release all units now. You may pay twice for units that are still in a batch.",
)
@console.db_option
@_allowing
def cancel(name: str, release: bool, db: Path, allowed: Allowed) -> None:
    """Cancel JOB.

    Requests that were not sent are returned to the run. Results that are already finished can still be
    fetched.

    \b
    judge jobs cancel last
    """
    from judge.jobs.follow import cancel as stop

    with (
        _open_job(db, name) as (store, job),
        # A job of files has no server that could stop it.
        nullcontext() if job.base_url is None else _open_services(store, job, allowed) as service,
    ):
        units, stopped, said = stop(store, job, service, release=release)
    print(f"job {job.job_id}: {units:,} units returned to the run, {stopped:,} batches are being cancelled")
    if stopped:
        print(f"next: {command('judge jobs read', job.job_id)}")
    console.notes(said)


@jobs.command("read")
@click.argument("name", metavar="JOB", default="last")
@click.argument("results", nargs=-1, type=console.TO_READ)
@click.option("--same-model", is_flag=True, help="Accept results that report a different model name.")
@console.db_option
@console.json_option
@_allowing
def read_command(
    name: str, results: tuple[Path, ...], same_model: bool, db: Path, as_json: bool, allowed: Allowed
) -> int:
    """Store results as labels of the run.

    By default, the results of the provider's finished batches are downloaded. RESULTS are files that your own
    program wrote.

    \b
    judge jobs read last
    judge jobs read last shards/*.out.jsonl

    Results that are already stored are skipped. Lines that match no request of the job are listed and skipped.
    Lines from another model than the run's first reply are listed and get no label.
    """
    from judge.jobs import follow
    from judge.jobs.read import read_results

    # Files named here are chosen by the user, so they need no permission.
    with _open_job(db, name, None if results else allowed) as (store, job), _lock_released_run(store, job):
        if results:
            tally = read_results(store, job, results, same_model=same_model)
        else:
            with _open_services(store, job, allowed) as service:
                # Only a batch that is known to be finished is downloaded.
                follow.poll(store, job, service)
                follow.fetch(store, job, service)
            tally = follow.read_fetched(store, job, same_model=same_model)
        counts = stored.counts(store, job.job_id)
    return _print_read(job, tally, counts, as_json)


@contextmanager
def _lock_released_run(store: Store, job: Job) -> Iterator[None]:
    """Lock the run if some units of the job were released, because other calls may then judge these units.

    While the block runs, no other command can judge them.
    """
    from judge.store.export import find_named_run, read_stored_task

    # Only released units can be in a live call. Late answers from the job must not collide with the answers
    # of that call.
    if not stored.counts(store, job.job_id)["released"]:
        yield
        return
    run = find_named_run(store, job.run_id)
    with store.run_lock(f"{read_stored_task(store, run['task']).name} {run['model']}"):
        yield


def _print_read(job: Job, tally: JobTally, counts: dict[str, int], in_json: bool) -> int:
    """Print a summary of the results. Return the exit code, which is 4 while some of the job's units have no label."""
    from judge.runner.plan import underived

    statuses = {s: tally.ended[s] for s in ("ok", "unparsed", "refused", "truncated", "failed")}
    if in_json:
        document = {
            "job": job.job_id,
            "run": job.run_id,
            "lines": tally.lines,
            **statuses,
            **attributes(tally, "reused", "known", "late", "released"),
            "unknown": tally.named["unknown"],
            "odd": tally.named["odd"],
            "contrary": tally.named["contrary"],
            "other_model": tally.named["other_model"],
            "open": counts["open"],
            "tokens": dict(tally.usage),
            "cost": None if job.price is None else round(tally.spent.cost, 6),
        }
        console.emit_json("jobs_read", document)
    else:
        listed = " · ".join(
            # The number of labels is shown even if it is 0.
            f"{n:,} {s}"
            for s, n in {**statuses, "reused": tally.reused}.items()
            if n or s == "ok"
        )
        print(f"job {job.job_id} of run {job.run_id}: {tally.lines:,} lines read ({listed})")
        if tally.known:
            print(f"{tally.known:,} lines had already been read")
        cost = "" if job.price is None else f", ${tally.spent.cost:.4f}"
        print(f"{sum(tally.usage[n] for n in ('input_tokens', 'output_tokens')):,} tokens{cost}")
        print(
            f"{counts['answered']:,} units answered, {counts['open']:,} pending, {counts['released']:,} returned to the run"
        )
    console.notes([*tally.notes(), *underived(tally.derived)])
    lacks = counts["open"] or counts["released"] or tally.named["other_model"]
    return Exit.INCOMPLETE if lacks else Exit.DONE
