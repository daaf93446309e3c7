"""Store batch jobs: the files that are uploaded to a provider, and the requests that each job reserves.

A request becomes `open` when its job is committed, and `answered` when its reply arrives. It becomes
`released` when it is certain that no reply will arrive, because the batch has expired, was cancelled or was
refused. While a request is open, no other run or job sends it, because the request would then be paid for
twice.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ulid import ULID

from judge.commands import command
from judge.errors import UsageError
from judge.store.judgements import RequestRecord
from judge.store.study import Store, dumps, insert_rows
from judge.types import Json

_JOB = "job_id, run_id, vendor, model, base_url, folder, max_output_tokens, most_tokens, most_cost, price, state, made"
_REQUEST = "custom_id, unit_id, repeat, attempt, part, request_sha, most_tokens, most_cost, state"
_PART = "job_id, part, file, sha256, bytes, lines, state, upload_id, batch_id, intended, submitted, status"


@dataclass(frozen=True, slots=True)
class Job:
    """The batch requests that a command creates for a run. The files of the job are in `folder`.

    If `base_url` is None, another program processes the files. `most_tokens` and `most_cost` are upper bounds
    for the total tokens and the total cost of the job. The cost is in US dollars, or None if no price is
    known.
    """

    job_id: str
    run_id: str
    vendor: str
    model: str
    base_url: str | None
    folder: Path
    max_output_tokens: int
    most_tokens: int
    most_cost: float | None
    price: Mapping[str, Json] | None
    state: str
    made: str


@dataclass(frozen=True, slots=True)
class JobFile:
    """One file of a job. Its state is written, posting, submitted, ended, fetched or read.

    `intended` is the time of the last request to create the vendor's batch, or the time at which this request
    failed without a clear result. `status` is the status reported by the vendor.
    """

    job_id: str
    part: int
    file: str
    sha256: str
    bytes: int
    lines: int
    state: str = "written"
    upload_id: str | None = None
    batch_id: str | None = None
    intended: str | None = None
    submitted: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A unit that is requested in a line of a job's file. Units with equal requests share a line."""

    custom_id: str
    unit_id: str
    repeat: int
    attempt: int
    part: int
    request_sha: str
    most_tokens: int
    most_cost: float | None
    state: str = "open"


def begin(store: Store, job: Job) -> None:
    """Store a job whose files are being written. It does not reserve any requests yet.

    If an earlier command has left an incomplete job for this run, that job is deleted. The caller holds the
    run's lock, so no other process is writing that job.
    """
    with store.transaction() as conn:
        query = "SELECT job_id FROM jobs WHERE run_id = ? AND state = 'writing'"
        # An incomplete job has never been uploaded, so nothing is lost.
        for (unfinished,) in conn.execute(query, [job.run_id]).fetchall():
            _delete(conn, unfinished)
        row = {name: getattr(job, name) for name in _JOB.split(", ")}
        row |= {"most_tokens": 0, "most_cost": None, "state": "writing"}
        row["folder"] = _seen_from(store.path, job.folder)
        row["price"] = None if job.price is None else dumps(dict(job.price))
        conn.execute(f"INSERT INTO jobs ({_JOB}) VALUES ({','.join('?' * len(row))})", [*row.values()])


def make_id() -> str:
    """Return an id for a new job. Ids sort by creation time."""
    return str(ULID())


def add_requests(conn: sqlite3.Connection, job_id: str, rows: Sequence[JobRequest]) -> None:
    """Add requests to a job that is being written, inside the caller's transaction."""
    cells = [(job_id, *_cells(r, _REQUEST), None) for r in rows]
    insert_rows(conn, "INSERT INTO job_requests VALUES ?", cells)


def complete(store: Store, job: Job, files: Sequence[JobFile]) -> None:
    """Open the job after its files are written. From this commit on, its requests are reserved."""
    with store.transaction() as conn:
        insert_rows(conn, f"INSERT INTO job_parts ({_PART}) VALUES ?", [_cells(f, _PART) for f in files])
        conn.execute(
            "UPDATE jobs SET state = 'open', most_tokens = ?, most_cost = ? WHERE job_id = ?",
            [job.most_tokens, job.most_cost, job.job_id],
        )


def forget(store: Store, job_id: str) -> None:
    """Delete a job that has no files."""
    with store.transaction() as conn:
        _delete(conn, job_id)


def _delete(conn: sqlite3.Connection, job_id: str) -> None:
    for table in ("job_requests", "job_parts", "jobs"):
        conn.execute(f"DELETE FROM {table} WHERE job_id = ?", [job_id])


def _cells(row: object, columns: str) -> list[Json]:
    return [getattr(row, name) for name in columns.split(", ")]


def _seen_from(study: Path, folder: Path) -> str:
    """Return a folder's path relative to the study's folder. Both folders can then be moved together."""
    # `Path.relative_to` cannot step up to a folder beside the study before Python 3.12.
    return os.path.relpath(folder.resolve(), study.resolve().parent)


def rebase(folder: str, study: Path, other: Path) -> str:
    """Convert a folder path that is stored in `study` to the path to store in `other`.

    Each study stores paths relative to its own folder.
    """
    return _seen_from(other, study.resolve().parent / folder)


def listed(store: Store, run_id: str | None = None) -> list[Job]:
    """Return the jobs, oldest first. With `run_id`, return only the jobs for this run."""
    where = "" if run_id is None else "AND run_id = ?"
    query = f"SELECT {_JOB} FROM jobs WHERE state <> 'writing' {where} ORDER BY made, job_id"
    return [_job(store, row) for row in store.conn.execute(query, [] if run_id is None else [run_id])]


def _job(store: Store, row: Sequence[Json]) -> Job:
    fields = dict(zip(_JOB.split(", "), row, strict=True))
    fields["folder"] = (store.path.resolve().parent / fields["folder"]).resolve()
    fields["price"] = None if fields["price"] is None else json.loads(fields["price"])
    return Job(**fields)


def find(store: Store, name: str) -> Job:
    """Return the job with this id, or the only job whose id starts or ends with `name`.

    The name `last` means the newest job. Raises UsageError if no job matches, or if several jobs match.
    """
    all_jobs = listed(store)
    if name == "last" and all_jobs:
        return all_jobs[-1]
    suffix = name.upper()
    matches = [j for j in all_jobs if suffix and (j.job_id.startswith(suffix) or j.job_id.endswith(suffix))]
    if len(matches) != 1:
        if not all_jobs:
            create = command("judge run TASK -m MODEL --offline FOLDER")
            raise UsageError(f"the study has no jobs yet; to create one: {create}")
        problem = "several jobs are" if matches else "no job is"
        listed_ids = ", ".join(j.job_id for j in all_jobs[-5:])
        raise UsageError(f"{problem} called '{name}'; available jobs: {listed_ids}")
    return matches[0]


def files(store: Store, job_id: str) -> list[JobFile]:
    """Return the files of a job, in order."""
    query = f"SELECT {_PART} FROM job_parts WHERE job_id = ? ORDER BY part"
    return [JobFile(*row) for row in store.conn.execute(query, [job_id])]


def read_known_batches(store: Store) -> set[str]:
    """Return the ids that vendors have assigned to the batches in the study."""
    query = "SELECT batch_id FROM job_parts WHERE batch_id IS NOT NULL"
    return {row[0] for row in store.conn.execute(query)}


def update_file(store: Store, job_id: str, part: int, **changes: Json) -> None:
    """Store the progress of a file, and commit it immediately.

    An uploaded file costs money, so every step must be recorded.
    """
    with store.transaction() as conn:
        set_file(conn, job_id, part, **changes)


def set_file(conn: sqlite3.Connection, job_id: str, part: int, **changes: Json) -> None:
    """Store the progress of a file, inside the caller's transaction."""
    marks = ", ".join(f"{name} = ?" for name in changes)
    conn.execute(
        f"UPDATE job_parts SET {marks} WHERE job_id = ? AND part = ?", [*changes.values(), job_id, part]
    )


def counts(store: Store, job_id: str) -> dict[str, int]:
    """Count the units in a job by state: open, answered or released."""
    query = "SELECT state, count(*) FROM job_requests WHERE job_id = ? GROUP BY 1"
    return {"open": 0, "answered": 0, "released": 0, **dict(store.conn.execute(query, [job_id]))}


def open_in(store: Store, job_id: str, part: int) -> int:
    """Return how many lines in a file are still open."""
    query = (
        "SELECT count(DISTINCT custom_id) FROM job_requests WHERE job_id = ? AND part = ? AND state = 'open'"
    )
    return int(store.conn.execute(query, [job_id, part]).fetchone()[0])


def open_units(conn: sqlite3.Connection, job_id: str, part: int) -> list[str]:
    """Return the units whose requests in a file are still open."""
    query = "SELECT unit_id FROM job_requests WHERE job_id = ? AND part = ? AND state = 'open'"
    return [row[0] for row in conn.execute(query, [job_id, part])]


def find_reserved(conn: sqlite3.Connection, shas: Sequence[str]) -> set[str]:
    """Return those of the given requests that open jobs have reserved."""
    marks = ",".join("?" * len(shas))
    query = (
        f"SELECT r.request_sha FROM job_requests AS r WHERE r.request_sha IN ({marks}) AND r.state = 'open' "
        "AND EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = r.job_id AND j.state = 'open')"
    )
    return {row[0] for row in conn.execute(query, shas)}


def find_in_job(
    conn: sqlite3.Connection, job_id: str, shas: Sequence[str], state: str = "open"
) -> dict[str, tuple[str, int]]:
    """Return the custom id and the file of each given request in a job.

    The result is {request: (custom id, number of the file)}. Requests without the given state are omitted.
    """
    marks = ",".join("?" * len(shas))
    query = (
        "SELECT request_sha, custom_id, part FROM job_requests "
        # The plus makes SQLite search by hash, because a job has many more requests than are looked up here.
        f"WHERE +job_id = ? AND request_sha IN ({marks}) AND state = ?"
    )
    return {sha: (name, part) for sha, name, part in conn.execute(query, [job_id, *shas, state])}


def requests(conn: sqlite3.Connection, job_id: str, custom_ids: Iterable[str]) -> dict[str, list[JobRequest]]:
    """Return the units that are requested under each custom id.

    The result is {custom id: units}. Ids that are not in the job are omitted.
    """
    # Our ids are hexadecimal. A file may contain ids that are not valid text, for which SQLite cannot even
    # search.
    valid_ids = [name for name in custom_ids if name.isascii()]
    by_custom_id: dict[str, list[JobRequest]] = {}
    marks = ",".join("?" * len(valid_ids))
    query = f"SELECT {_REQUEST} FROM job_requests WHERE job_id = ? AND custom_id IN ({marks})"
    for row in conn.execute(query, [job_id, *valid_ids]):
        by_custom_id.setdefault(row[0], []).append(JobRequest(*row))
    return by_custom_id


def records(conn: sqlite3.Connection, shas: Iterable[str]) -> dict[str, RequestRecord]:
    """Return the stored requests with these hashes."""
    hashes = list(shas)
    query = (
        "SELECT r.request_sha, r.model, p.text, s.text, r.unit_sha, r.parameters, r.repeat FROM requests AS r "
        "JOIN prompts AS p ON p.sha256 = r.prefix_sha LEFT JOIN prompts AS s ON s.sha256 = r.schema_sha "
        f"WHERE r.request_sha IN ({','.join('?' * len(hashes))})"
    )
    return {row[0]: RequestRecord(*row) for row in conn.execute(query, hashes)}


def read_replies(
    conn: sqlite3.Connection, run_id: str, requests: Iterable[JobRequest]
) -> dict[str, str | None]:
    """Return {custom id: text of the stored reply} for requests that are answered. Others are omitted."""
    query = "SELECT reply FROM judgements WHERE (run_id, unit_id, repeat, attempt) = (?, ?, ?, ?)"
    replies = {}
    for request in requests:
        row = conn.execute(query, [run_id, request.unit_id, request.repeat, request.attempt]).fetchone()
        if row is not None:
            replies[request.custom_id] = row[0]
    return replies


def read_attempts(conn: sqlite3.Connection, run_id: str, units: Iterable[str]) -> dict[tuple[str, int], int]:
    """Return {(unit, repeat): number of the newest attempt} for a run.

    Units without any attempt are omitted.
    """
    unit_ids = list(units)
    query = (
        "SELECT unit_id, repeat, max(attempt) FROM judgements WHERE run_id = ? "
        f"AND unit_id IN ({','.join('?' * len(unit_ids))}) GROUP BY 1, 2"
    )
    return {(unit, repeat): attempt for unit, repeat, attempt in conn.execute(query, [run_id, *unit_ids])}


def close_requests(
    conn: sqlite3.Connection, job_id: str, state: str, ended: Iterable[tuple[str, str | None]]
) -> None:
    """Set the state of requests that have ended, inside the caller's transaction.

    `ended` contains pairs (custom id, reason).
    """
    conn.executemany(
        "UPDATE job_requests SET state = ?, reason = ? WHERE job_id = ? AND custom_id = ?",
        [(state, reason, job_id, custom_id) for custom_id, reason in ended],
    )


def release(conn: sqlite3.Connection, job_id: str, reason: str, part: int | None = None) -> int:
    """Mark a job's open requests as released, and return their number.

    If `part` is given, only the requests in this file of the job are released.
    """
    condition, values = ("", []) if part is None else ("AND part = ?", [part])
    return conn.execute(
        f"UPDATE job_requests SET state = 'released', reason = ? WHERE job_id = ? AND state = 'open' {condition}",
        [reason, job_id, *values],
    ).rowcount


def finish(conn: sqlite3.Connection, job_id: str) -> bool:
    """Close the job if none of its requests is open. Return whether the job was closed."""
    waits = conn.execute(
        "SELECT 1 FROM job_requests WHERE job_id = ? AND state = 'open' LIMIT 1", [job_id]
    ).fetchone()
    conn.execute("UPDATE jobs SET state = ? WHERE job_id = ?", ["open" if waits else "done", job_id])
    return waits is None


def find_answered(conn: sqlite3.Connection, job_ids: Sequence[str], shas: Sequence[str]) -> set[str]:
    """Return those of the given requests that these jobs have answered."""
    return {sha for job in job_ids for sha in find_in_job(conn, job, shas, "answered")}
