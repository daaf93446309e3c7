"""Posting the files of a job, each once.

That a file is about to be posted is stored before it is, and its batch after. What a kill or a lost connection leaves
between the two is looked for at the vendor; while it is not known whether a batch was begun, none is begun again. That
no list shows it proves nothing: only the user can say that it was not (`again`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from judge.errors import BadInput, KeyProblem, RateLimited, Rejected, Unreachable, UsageError
from judge.files import file_sha
from judge.jobs.account import NOT_FOUND
from judge.jobs.service import BatchService
from judge.permissions import file_in
from judge.store import jobs
from judge.store.jobs import Job, JobFile
from judge.store.study import Store, now

SETTLE_SECONDS = 120.0
"""Most batches whose answer was lost show in the vendor's list by then: before that nobody is asked to decide."""
SLACK = timedelta(minutes=10)
"""Clocks differ: batches begun this long before the job are looked at, too."""
PEEKED = 100
"""Lines of results that say whose a batch is."""


@dataclass(slots=True)
class Posted:
    """What became of a job's files: `posted` now, `found` at the vendor after an interruption, `withdrawn` for good.

    `unsure` are those that may or may not have been posted: they wait for what the vendor's batches say. `undecided`
    is what is said of one that is in no list of the vendor's, so that nothing may ever say it.
    """

    posted: list[JobFile] = field(default_factory=list)
    found: list[JobFile] = field(default_factory=list)
    withdrawn: list[JobFile] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)
    undecided: str | None = None


def mark_of(file: JobFile) -> str:
    """What says that a batch is of this file."""
    return f"{file.job_id}/{file.part}"


def within(job: Job, max_tokens: int | None, max_cost: float | None) -> None:
    """Raises UsageError for a job whose requests can take more than that."""
    if max_tokens is not None and job.most_tokens > max_tokens:
        raise UsageError(
            f"job {job.job_id} can take {job.most_tokens:,} tokens, more than --max-tokens {max_tokens:,}: write it anew "
            "with that limit (judge jobs cancel gives its units back)"
        )
    if max_cost is None:
        return
    if job.most_cost is None:
        raise UsageError(f"no price is known for {job.model}: judge jobs write --prices FILE says it")
    if job.most_cost > max_cost:
        raise UsageError(
            f"job {job.job_id} can cost ${job.most_cost:.4f}, more than --max-cost {max_cost:g}: write it anew with "
            "that limit (judge jobs cancel gives its units back)"
        )


def submit(store: Store, job: Job, service: BatchService, *, again: bool = False) -> Posted:
    """Post what has not been posted. The caller holds the job's lock.

    `again` posts what may have been posted and is not found, too: the user knows that it was not, or pays twice. Raises BadInput for a file that is not as it was written, and ProviderError; either leaves every file posted once
    or not at all.
    """
    done = Posted()
    for file in jobs.files(store, job.job_id):
        if file.state == "posting" and not _settled(store, job, file, service, done, again=again):
            continue
        file = next(f for f in jobs.files(store, job.job_id) if f.part == file.part)
        if file.state != "written":
            continue
        if jobs.open_in(store, job.job_id, file.part) < file.lines:
            _withdraw(store, file)
            done.withdrawn.append(file)
        else:
            done.posted.append(_post(store, job, file, service))
    return done


def _withdraw(store: Store, file: JobFile) -> None:
    """Not post a file of which some lines are no longer waited for: they were given back, or answered otherwise.

    The others are given back, so that they can be asked in another file.
    """
    with store.transaction() as conn:
        jobs.release(conn, file.job_id, "not posted", file.part)
        jobs.set_file(conn, file.job_id, file.part, state="read", status="cancelled")
        jobs.finish(conn, file.job_id)


def _post(store: Store, job: Job, file: JobFile, service: BatchService) -> JobFile:
    path = file_in(job.folder, file.file)
    _unchanged(path, file)

    def note(**changes: str | None) -> None:
        jobs.update_file(store, job.job_id, file.part, **changes)

    upload = file.upload_id
    if upload is None:
        upload = service.upload(path, f"adjudge-{job.job_id}-{file.part}.jsonl")
        note(upload_id=upload)
    note(state="posting", intended=now())
    try:
        batch = service.create(path, upload, mark_of(file))
    except BaseException as error:
        if isinstance(error, Rejected | KeyProblem | RateLimited) or (
            isinstance(error, Unreachable) and not error.sent
        ):
            # Turned down: nothing was begun. A file that is gone there is posted anew.
            note(state="written", upload_id=None if isinstance(error, Rejected) else upload)
        else:
            # It may have been begun at any moment until now.
            note(intended=now())
        raise
    note(state="submitted", batch_id=batch, submitted=now())
    return file


def _settled(
    store: Store, job: Job, file: JobFile, service: BatchService, done: Posted, *, again: bool
) -> bool:
    """Whether it is known now what became of a file that was about to be posted; if so, it is noted."""
    since = datetime.fromisoformat(job.made) - SLACK
    known = jobs.known_batches(store)
    unsure = []
    for found in service.find(mark_of(file), since):
        if found.batch_id in known:
            continue
        mine = found.mine
        if mine is None and found.ended:
            mine = _is_mine(store, job, file, service, found.batch_id)
        if mine:
            jobs.update_file(
                store, job.job_id, file.part, state="submitted", batch_id=found.batch_id, submitted=now()
            )
            done.found.append(file)
            return True
        if mine is None:
            unsure.append(found.batch_id)
    age = since_posted(file)
    if again and age >= SETTLE_SECONDS:
        jobs.update_file(store, job.job_id, file.part, state="written")
        return True
    if unsure:
        told = (
            f"one of {len(unsure)} batches of this account may be its ({', '.join(unsure[:3])}); what they bring will "
            "say, and until then it is not posted again"
        )
    elif age < SETTLE_SECONDS:
        told = f"was being posted {age:.0f} s ago; whether it was should show within {SETTLE_SECONDS:.0f} s"
    else:
        told = (
            f"may have been posted, and no list of the provider's shows it; it is not posted again, unless you say that "
            f"it was not: judge jobs submit {job.job_id} --again (or give its units back: judge jobs cancel "
            f"{job.job_id} --release)"
        )
        done.undecided = f"{file.file}: {told}"
    done.unsure.append(f"{file.file}: {told}")
    return False


def since_posted(file: JobFile) -> float:
    """Seconds since a file was last about to be posted, or since that was lost."""
    assert file.intended is not None
    return (datetime.now(UTC) - datetime.fromisoformat(file.intended)).total_seconds()


def _is_mine(store: Store, job: Job, file: JobFile, service: BatchService, batch_id: str) -> bool | None:
    """Whether a batch has requests of this file; None when it says nothing of any request."""
    try:
        seen = list(islice(service.custom_ids(batch_id), PEEKED))
    except Rejected as error:
        if error.status != NOT_FOUND:
            raise
        # Listed, and not known yet where its results are.
        return None
    if not seen:
        return None
    asked = jobs.requests(store.conn, job.job_id, seen)
    return any(row.part == file.part for rows in asked.values() for row in rows)


def _unchanged(path: Path, file: JobFile) -> None:
    """Raises BadInput for a file that is gone, or is not what the study has: what it asks would be unknown."""
    try:
        sha = file_sha(path)
    except OSError as e:
        raise BadInput(
            f"cannot be read: {e.strerror}; judge jobs cancel gives its units back", path=str(path)
        ) from e
    if sha != file.sha256:
        raise BadInput(
            "not as it was written; put it back, or give its units back with judge jobs cancel",
            path=str(path),
        )
