"""Follow a job: query the state of its batches, download their results, and read the results into the study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from judge.commands import command
from judge.errors import BadInput, Rejected, ServerFault, UsageError
from judge.jobs.account import NOT_FOUND, SUFFIXES, BatchService, BatchState
from judge.jobs.post import since_posted
from judge.jobs.read import JobTally, read_results
from judge.jobs.results import answers_in, as_fetched, note_fetched
from judge.permissions import NOTHING_ALLOWED, Allowed, check_server, file_in
from judge.store import jobs, runs
from judge.store.jobs import Job, JobFile
from judge.store.study import Store

EARLY_SECONDS = 900.0
"""The time in seconds during which a new batch may still be unknown to some of the vendor's servers."""
MISSING = "the batch ended without a result for this request"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """The stored state of a request file, and the vendor's state of its batch.

    `state` is None if the batch was not looked up, or if the vendor does not know it.
    """

    file: JobFile
    state: BatchState | None = None
    remark: str | None = None


def service_of(study: Path, job: Job, allowed: Allowed = NOTHING_ALLOWED) -> BatchService:
    """Return the client for the batches at the job's server. The key is only used if that server may receive it.

    Raises KeyProblem, and UsageError if the study is not allowed to choose that server (`judge.permissions`).
    """
    base_url = job.base_url
    if base_url is None:
        raise UsageError(
            f"this job is for another program; process its files with that program, then type: {command('judge jobs read', job.job_id, 'RESULTS')}"
        )
    vendor = "anthropic" if job.vendor == "anthropic" else "openai"
    # The address comes from the study, which may have been written by another user.
    sends_key = "key" not in check_server(study, vendor, base_url, {}, allowed)
    if vendor == "anthropic":
        from judge.jobs.anthropic import AnthropicBatches

        return AnthropicBatches(base_url, sends_key)
    from judge.jobs.openai import OpenAIBatches

    return OpenAIBatches(base_url, sends_key)


def poll(store: Store, job: Job, service: BatchService) -> list[FileStatus]:
    """Request the state of the batches, and record which batches have ended. Raises ProviderError.

    If the vendor has refused a whole batch, its units are released immediately.
    """
    polled = {
        file.part: _poll(store, job, file, service)
        for file in jobs.files(store, job.job_id)
        if file.state == "submitted"
    }
    return [FileStatus(file, *polled.get(file.part, ())) for file in jobs.files(store, job.job_id)]


def _poll(
    store: Store, job: Job, file: JobFile, service: BatchService
) -> tuple[BatchState | None, str | None]:
    """Store the state of a file's batch. Return the state, and a remark for the user or None."""
    assert file.batch_id is not None
    try:
        state = service.state(file.batch_id)
    except Rejected as error:
        if error.status != NOT_FOUND:
            raise
        # A new batch is not on all servers of a vendor at once, so a 404 is no proof that it was lost.
        if since_posted(file) < EARLY_SECONDS:
            return None, "the vendor does not know the batch yet"
        release = command("judge jobs cancel", job.job_id, "--release")
        return None, f"unknown to the vendor; release its units: {release}"
    if state.failed is not None:
        # In one transaction, so that a kill leaves no unit reserved by a file that was read.
        with store.transaction() as conn:
            jobs.release(conn, job.job_id, state.failed, file.part)
            jobs.set_file(conn, job.job_id, file.part, state="read", status=state.status)
            jobs.finish(conn, job.job_id)
    elif state.ended:
        jobs.update_file(store, job.job_id, file.part, state="ended", status=state.status)
    elif state.status != file.status:
        jobs.update_file(store, job.job_id, file.part, status=state.status)
    return state, state.failed


def results_of(job: Job, file: JobFile) -> list[Path]:
    """Return the paths of the result files for a request file. They are in the same folder as the request file."""
    stem = file_in(job.folder, file.file).stem
    return [file_in(job.folder, f"{stem}.{suffix}.jsonl") for suffix in SUFFIXES[job.vendor]]


def fetch(store: Store, job: Job, service: BatchService) -> list[Path]:
    """Download the results of batches that have ended.

    Returns the paths that this call has written.

    Raises ProviderError; files that were downloaded before the error are kept. A batch that the vendor does
    not know yet is skipped.
    """
    written: list[Path] = []
    for file in jobs.files(store, job.job_id):
        paths = results_of(job, file)
        must_fetch_again = file.state == "fetched" and not as_fetched(paths)
        if file.state != "ended" and not must_fetch_again:
            continue
        assert file.batch_id is not None
        try:
            state = service.state(file.batch_id)
            if not state.ended:
                # The vendor's servers disagree for a while about whether the batch has ended.
                continue
            for suffix, path in zip(SUFFIXES[job.vendor], paths, strict=True):
                service.fetch(file.batch_id, state, suffix, path)
            _check_complete(service, job, file, state, paths)
            # Written last, because the note declares the files complete.
            note_fetched(paths)
        except Rejected as error:
            if error.status != NOT_FOUND:
                raise
            if since_posted(file) < EARLY_SECONDS:
                continue
            # The results of a long batch may also appear late, so the units are not released here.
            raise ServerFault(
                f"{error}; if its results no longer exist, release its units: "
                + command("judge jobs cancel", job.job_id, "--release")
            ) from error
        jobs.update_file(store, job.job_id, file.part, state="fetched")
        written += paths
    return written


def _check_complete(
    service: BatchService, job: Job, file: JobFile, state: BatchState, paths: list[Path]
) -> None:
    """Check that the downloaded files contain as many answers as the vendor counts, because all of them are
    paid for.

    Deletes the files and raises ServerFault if an answer is missing.
    """
    # The first file has all answers, the others have errors.
    n_answers = answers_in(job.vendor, paths[0])
    if n_answers < state.answered:
        for path in paths:
            path.unlink(missing_ok=True)
        raise ServerFault(
            f"{service.who}: the results of {file.file} have only {n_answers:,} of {state.answered:,} answers; fetch "
            "them again, or release the missing units: "
            + command("judge jobs cancel", job.job_id, "--release")
        )


def read_fetched(store: Store, job: Job, *, same_model: bool = False) -> JobTally:
    """Read the downloaded results, and release the units for which an ended batch has no result.

    Raises BadInput if a file cannot be opened.
    """
    tally = JobTally()
    for file in jobs.files(store, job.job_id):
        if file.state != "fetched":
            continue
        paths = results_of(job, file)
        if not as_fetched(paths):
            raise BadInput(
                f"missing or changed since it was fetched; fetch these paid results again: {command('judge jobs read', job.job_id)}",
                path=str(paths[0]),
            )
        tally.add(read_results(store, job, paths, same_model=same_model))
        with store.transaction() as conn:
            # After all files of the batch, because the line of a unit may be in any of them.
            lost = jobs.open_units(conn, job.job_id, file.part)
            jobs.release(conn, job.job_id, MISSING, file.part)
            jobs.set_file(conn, job.job_id, file.part, state="read")
            done = jobs.finish(conn, job.job_id)
        if lost:
            tally.unasked[MISSING] += len(lost)
            tally.released += len(lost)
            tally.missing += lost
        runs.close_run(store, job.run_id, finished=done)
    return tally


def cancel(
    store: Store, job: Job, service: BatchService | None, *, release: bool = False
) -> tuple[int, int, list[str]]:
    """Stop a job: release the units of files that were not uploaded, and ask the vendor to stop the batches.

    A stopped batch still has results. If `release` is True, all units are released immediately, even if their
    batches may have results. Returns the number of released units, the number of batches that the vendor was
    asked to stop, and remarks. Raises ProviderError.
    """
    units, n_cancelled, remarks = 0, 0, []
    for file in jobs.files(store, job.job_id):
        if file.state == "posting" and not release:
            # Only the user can find out whether a batch was created and will be billed.
            remarks.append(
                f"{file.file}: may have been posted; search for it: "
                f"{command('judge run TASK -m MODEL --batch')}, or release its units: "
                + command("judge jobs cancel", job.job_id, "--release")
            )
            continue
        if file.state == "submitted" and service is not None:
            assert file.batch_id is not None
            try:
                service.cancel(file.batch_id)
                n_cancelled += 1
            except Rejected as error:
                # The batch has ended meanwhile, or the vendor does not know it.
                remarks.append(f"{file.file}: {error}")
        if file.state == "written" or release:
            with store.transaction() as conn:
                units += jobs.release(conn, job.job_id, "cancelled", file.part)
                if file.state == "written":
                    jobs.set_file(conn, job.job_id, file.part, state="read", status="cancelled")
    with store.transaction() as conn:
        jobs.finish(conn, job.job_id)
    return units, n_cancelled, remarks
