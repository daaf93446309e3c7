"""Following a job: how its batches stand, their results as files, and from those into the study."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from judge.errors import BadInput, Rejected, ServerFault
from judge.jobs.account import NOT_FOUND, BatchState
from judge.jobs.read import JobTally, read_results
from judge.jobs.results import answers_in, as_fetched, note_fetched
from judge.jobs.service import SUFFIXES, BatchService
from judge.permissions import file_in
from judge.store import jobs, runs
from judge.store.jobs import Job, JobFile
from judge.store.study import Store

EARLY_SECONDS = 900.0
"""For so long after a batch was begun it may be that the vendor does not know it yet."""
MISSING = "the batch ended without a line for it"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a file's batch stands: as stored, with what the vendor says now (None: it was not asked, or knew nothing)."""

    file: JobFile
    state: BatchState | None = None
    remark: str | None = None


def look(store: Store, job: Job, service: BatchService) -> list[Standing]:
    """Ask how the batches stand and note those that have ended. Raises ProviderError.

    A batch that the vendor took none of gives its units back at once.
    """
    found = []
    for file in jobs.files(store, job.job_id):
        found.append(_look(store, job, file, service) if file.state == "submitted" else Standing(file))
    return found


def _look(store: Store, job: Job, file: JobFile, service: BatchService) -> Standing:
    assert file.batch_id is not None
    try:
        state = service.state(file.batch_id)
    except Rejected as error:
        if error.status != NOT_FOUND:
            raise
        if _age(file) < EARLY_SECONDS:
            return Standing(file, remark="not known to the vendor yet")
        told = "not known to the vendor: judge jobs cancel --release gives its units back"
        return Standing(file, remark=told)
    if state.failed is not None:
        with store.transaction() as conn:
            jobs.release(conn, job.job_id, state.failed, file.part)
            jobs.set_file(conn, job.job_id, file.part, state="read", status=state.status)
            jobs.finish(conn, job.job_id)
    elif state.ended:
        jobs.update_file(store, job.job_id, file.part, state="ended", status=state.status)
    elif state.status != file.status:
        jobs.update_file(store, job.job_id, file.part, status=state.status)
    return Standing(_again(store, job, file), state, state.failed)


def _again(store: Store, job: Job, file: JobFile) -> JobFile:
    return next(f for f in jobs.files(store, job.job_id) if f.part == file.part)


def _age(file: JobFile) -> float:
    begun = datetime.fromisoformat(file.submitted or file.intended or "")
    return (datetime.now(UTC) - begun).total_seconds()


def results_of(job: Job, file: JobFile) -> list[Path]:
    """Where the results of a file are kept: beside it."""
    stem = file_in(job.folder, file.file).stem
    return [file_in(job.folder, f"{stem}.{suffix}.jsonl") for suffix in SUFFIXES[job.vendor]]


def fetch(store: Store, job: Job, service: BatchService) -> list[Path]:
    """Write the results of batches that have ended as files; those that were written now.

    Raises ProviderError; what was fetched until then stays. A file that the vendor does not know yet is left.
    """
    written: list[Path] = []
    for file in jobs.files(store, job.job_id):
        paths = results_of(job, file)
        gone = file.state == "fetched" and not as_fetched(paths)
        if file.state != "ended" and not gone:
            continue
        assert file.batch_id is not None
        try:
            state = service.state(file.batch_id)
            if not state.ended:
                # Not every machine of the vendor knows yet that it has.
                continue
            for suffix, path in zip(SUFFIXES[job.vendor], paths, strict=True):
                service.fetch(file.batch_id, state, suffix, path)
            _whole(service, job, file, state, paths)
            note_fetched(paths)
        except Rejected as error:
            if error.status != NOT_FOUND:
                raise
            if _age(file) < EARLY_SECONDS:
                continue
            # The results of a long batch may be late, too.
            raise ServerFault(
                f"{error}; if its results are gone, judge jobs cancel --release gives its units back"
            ) from error
        jobs.update_file(store, job.job_id, file.part, state="fetched")
        written += paths
    return written


def _whole(service: BatchService, job: Job, file: JobFile, state: BatchState, paths: list[Path]) -> None:
    """Raises ServerFault, and leaves no file, when answers are missing that the vendor counts: those were paid for."""
    # The first file has all answers; others have errors.
    found = answers_in(job.vendor, paths[0])
    if found < state.answered:
        for path in paths:
            path.unlink(missing_ok=True)
        raise ServerFault(
            f"{service.who}: the results of {file.file} have {found:,} answers of {state.answered:,}; fetch "
            "them again (if the others are gone, judge jobs cancel --release gives its units back)"
        )


def read_fetched(store: Store, job: Job) -> JobTally:
    """Read what was fetched, and give back what an ended batch has no line for. Raises BadInput."""
    tally = JobTally()
    for file in jobs.files(store, job.job_id):
        if file.state != "fetched":
            continue
        paths = results_of(job, file)
        if not as_fetched(paths):
            raise BadInput(
                "gone, or not as it was fetched: judge jobs fetch brings it again; what is missing was paid for",
                path=str(paths[0]),
            )
        tally.add(read_results(store, job, paths))
        with store.transaction() as conn:
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
    """Stop a job: files not posted give their units back, batches are asked to stop and then have results.

    `release` gives all units back at once, whatever their batches bring. Returns (units given back, batches asked to
    stop, what is left to say). Raises ProviderError.
    """
    units, asked, said = 0, 0, []
    for file in jobs.files(store, job.job_id):
        if file.state == "posting" and not release:
            said.append(
                f"{file.file}: may have been posted; judge jobs submit finds out, --release does not wait for it"
            )
            continue
        if file.state == "submitted" and service is not None:
            assert file.batch_id is not None
            try:
                service.cancel(file.batch_id)
                asked += 1
            except Rejected as error:
                # It has ended meanwhile, or is not known.
                said.append(f"{file.file}: {error}")
        if file.state == "written" or release:
            with store.transaction() as conn:
                units += jobs.release(conn, job.job_id, "cancelled", file.part)
                if file.state == "written":
                    jobs.set_file(conn, job.job_id, file.part, state="read", status="cancelled")
    with store.transaction() as conn:
        jobs.finish(conn, job.job_id)
    return units, asked, said
