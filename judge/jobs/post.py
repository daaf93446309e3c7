"""Post each file of a job exactly once.

The intention to post a file is stored before the file is posted, and the file's batch is stored afterwards.
If the process is killed or the connection is lost in between, the vendor's list is searched for the batch.
While it is unknown whether a batch was created, no second batch is created, because the requests would be
paid for twice. A missing entry in the vendor's list proves nothing, so only the user can declare that the
batch was not created (`judge jobs cancel --release`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from judge.commands import command
from judge.errors import BadInput, KeyProblem, RateLimited, Rejected, Unreachable
from judge.files import file_sha
from judge.jobs.account import NOT_FOUND, BatchService
from judge.permissions import file_in
from judge.store import jobs
from judge.store.jobs import Job, JobFile
from judge.store.study import Store, get_time

SETTLE_SECONDS = 120.0
"""The time in seconds within which most lost batches appear in the vendor's list. Before it has passed, the
user is not asked to decide.
"""
SLACK = timedelta(minutes=10)
"""Batches created up to this long before the job are also checked, because clocks differ."""
PEEKED = 100
"""Number of lines of results that are read to find out which job a batch belongs to."""


@dataclass(slots=True)
class PostReport:
    """The files of a job that may or may not have been posted.

    `unsure` contains a description of each of these files. `undecided` describes one of these files whose
    batch is not in the vendor's list, or is None if there is none. It may never be known whether that file
    was posted.
    """

    unsure: list[str] = field(default_factory=list)
    undecided: str | None = None


def mark_of(file: JobFile) -> str:
    """Return the mark that identifies the batch of this file."""
    return f"{file.job_id}/{file.part}"


def submit(store: Store, job: Job, service: BatchService) -> PostReport:
    """Post all files that have not been posted yet. The caller must hold the job's lock.

    Raises BadInput if a file was changed, and ProviderError if a call fails. After either error, every file
    has been posted once or not at all.
    """
    report = PostReport()
    for file in jobs.files(store, job.job_id):
        if file.state == "posting":
            _search(store, job, file, service, report)
        elif file.state == "written" and jobs.open_in(store, job.job_id, file.part) < file.lines:
            _withdraw(store, file)
        elif file.state == "written":
            _post(store, job, file, service)
    return report


def _withdraw(store: Store, file: JobFile) -> None:
    """Cancel an unposted file, and release its units so that another file can include them.

    A file is cancelled if some of its requests have been released or answered by another request.
    """
    with store.transaction() as conn:
        jobs.release(conn, file.job_id, "not posted", file.part)
        jobs.set_file(conn, file.job_id, file.part, state="read", status="cancelled")
        jobs.finish(conn, file.job_id)


def _post(store: Store, job: Job, file: JobFile, service: BatchService) -> None:
    path = file_in(job.folder, file.file)
    _require_unchanged(path, file)

    def note(**changes: str | None) -> None:
        jobs.update_file(store, job.job_id, file.part, **changes)

    upload = file.upload_id
    if upload is None:
        upload = service.upload(path, f"adjudge-{job.job_id}-{file.part}.jsonl")
        # Stored at once, so that a repeated command does not upload up to 200 MB again.
        note(upload_id=upload)
    # Stored before the post, because after a kill this state shows that a batch may exist and has to be searched for.
    note(state="posting", intended=get_time())
    try:
        batch = service.create(path, upload, mark_of(file))
    # Ctrl-C during the call counts as well, because the vendor may have received it.
    except BaseException as error:
        if isinstance(error, Rejected | KeyProblem | RateLimited) or (
            isinstance(error, Unreachable) and not error.sent
        ):
            # Refused: no batch was created. If the upload no longer exists there, the file is uploaded again.
            note(state="written", upload_id=None if isinstance(error, Rejected) else upload)
        else:
            # The batch may have been created at any moment until now.
            note(intended=get_time())
        raise
    note(state="submitted", batch_id=batch, submitted=get_time())


def _search(store: Store, job: Job, file: JobFile, service: BatchService, report: PostReport) -> None:
    """Search for the batch of a file that may already have been posted.

    If the batch is found, it is stored. Otherwise, the report says that it is unknown whether the file was
    posted.
    """
    since = datetime.fromisoformat(job.made) - SLACK
    other_batches = jobs.read_known_batches(store)
    unsure = []
    for candidate in service.find(mark_of(file), since):
        # A batch that another file already claims cannot be the one of this file.
        if candidate.batch_id in other_batches:
            continue
        is_ours = candidate.is_ours
        if is_ours is None and candidate.ended:
            is_ours = _is_ours(store, job, file, service, candidate.batch_id)
        if is_ours:
            jobs.update_file(
                store,
                job.job_id,
                file.part,
                state="submitted",
                batch_id=candidate.batch_id,
                submitted=get_time(),
            )
            return
        if is_ours is None:
            unsure.append(candidate.batch_id)
    age = since_posted(file)
    if unsure:
        remark = (
            f"it may be one of {len(unsure)} batches in this account ({', '.join(unsure[:3])}); their results will "
            "show which one, and until then the file is not posted again"
        )
    elif age < SETTLE_SECONDS:
        remark = f"its upload was interrupted {age:.0f} s ago; the vendor should list it within {SETTLE_SECONDS:.0f} s"
    else:
        remark = (
            "may have been posted, but the provider does not list it, so it is not posted again; if you know that it was "
            "not posted, release its units for the next command: "
            + command("judge jobs cancel", job.job_id, "--release")
        )
        report.undecided = f"{file.file}: {remark}"
    report.unsure.append(f"{file.file}: {remark}")


def since_posted(file: JobFile) -> float:
    """Return the seconds since a file was posted or, if that is unknown, since the last attempt to post it."""
    posted = datetime.fromisoformat(file.submitted or file.intended or "")
    return (datetime.now(UTC) - posted).total_seconds()


def _is_ours(store: Store, job: Job, file: JobFile, service: BatchService, batch_id: str) -> bool | None:
    """Return whether a batch contains requests from this file. Return None if the batch has no results yet."""
    try:
        seen = list(islice(service.custom_ids(batch_id), PEEKED))
    except Rejected as error:
        if error.status != NOT_FOUND:
            raise
        # The batch is listed, but its results are not available yet.
        return None
    if not seen:
        return None
    rows_by_id = jobs.requests(store.conn, job.job_id, seen)
    return any(row.part == file.part for rows in rows_by_id.values() for row in rows)


def _require_unchanged(path: Path, file: JobFile) -> None:
    """Raise BadInput if the file is missing or was changed, because its requests would differ from those in
    the study.
    """
    try:
        sha = file_sha(path)
    except OSError as e:
        raise BadInput(
            f"cannot be read: {e.strerror}; restore it, or release its units: {command('judge jobs cancel', file.job_id)}",
            path=str(path),
        ) from e
    if sha != file.sha256:
        raise BadInput(
            f"changed since it was written; restore it, or release its units: {command('judge jobs cancel', file.job_id)}",
            path=str(path),
        )
