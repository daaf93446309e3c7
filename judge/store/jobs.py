"""Batches at a provider: jobs, the files they are posted in, and the requests that they keep from others.

A request is `open` from the commit of its job on, until its line has come back (`answered`) or it is known that
none will (`released`: expired, cancelled, refused as a whole). While it is open nobody else asks it.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ulid import ULID

from judge.errors import UsageError
from judge.store.judgements import RequestRecord
from judge.store.study import Store, dumps, insert_rows, now
from judge.types import Json

_JOB = "job_id, run_id, vendor, model, base_url, folder, max_output_tokens, most_tokens, most_cost, price, state, made"
_REQUEST = "custom_id, unit_id, repeat, attempt, part, request_sha, most_tokens, most_cost, state"
_PART = "job_id, part, file, sha256, bytes, lines, state, upload_id, batch_id, intended, submitted, status"


@dataclass(frozen=True, slots=True)
class Job:
    """What one command asks of one run. `folder` is where its files are; without `base_url` another program runs it.

    `most_tokens` and `most_cost` (US dollars, None without a price) are the most that all its requests can take.
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
    """One file of a job, and how far it came: written, posting, submitted, ended, fetched, read.

    `intended` is when it was last about to be posted, or when that was lost, `status` the vendor's own word.
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
    """A unit that a line of a job asks about; several of them where units ask the same."""

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
    """Note a job that is being written: it keeps nothing from anybody yet.

    What an earlier command left half written is forgotten: the caller holds the run's lock, so nobody writes it.
    """
    with store.transaction() as conn:
        query = "SELECT job_id FROM jobs WHERE run_id = ? AND state = 'writing'"
        for (left,) in conn.execute(query, [job.run_id]).fetchall():
            _delete(conn, left)
        told = {name: getattr(job, name) for name in _JOB.split(", ")}
        told |= {"most_tokens": 0, "most_cost": None, "state": "writing"}
        told["folder"] = _seen_from(store.path, job.folder)
        told["price"] = None if job.price is None else dumps(dict(job.price))
        conn.execute(f"INSERT INTO jobs ({_JOB}) VALUES ({','.join('?' * len(told))})", [*told.values()])


def new(job_id: str | None = None) -> tuple[str, str]:
    """An id for a job, and the time."""
    return job_id or str(ULID()), now()


def add_requests(conn: sqlite3.Connection, job_id: str, rows: Sequence[JobRequest]) -> None:
    """Requests of a job that is being written, inside the caller's transaction."""
    own = [(job_id, *_cells(r, _REQUEST), None) for r in rows]
    insert_rows(conn, "INSERT INTO job_requests VALUES ?", own)


def complete(store: Store, job: Job, files: Sequence[JobFile]) -> None:
    """The job is written: from here on its requests are its own."""
    with store.transaction() as conn:
        insert_rows(conn, f"INSERT INTO job_parts ({_PART}) VALUES ?", [_cells(f, _PART) for f in files])
        conn.execute(
            "UPDATE jobs SET state = 'open', most_tokens = ?, most_cost = ? WHERE job_id = ?",
            [job.most_tokens, job.most_cost, job.job_id],
        )


def forget(store: Store, job_id: str) -> None:
    """Remove a job of which nothing was written."""
    with store.transaction() as conn:
        _delete(conn, job_id)


def _delete(conn: sqlite3.Connection, job_id: str) -> None:
    for table in ("job_requests", "job_parts", "jobs"):
        conn.execute(f"DELETE FROM {table} WHERE job_id = ?", [job_id])


def _cells(row: object, columns: str) -> list[Json]:
    return [getattr(row, name) for name in columns.split(", ")]


def _seen_from(study: Path, folder: Path) -> str:
    """The folder relative to the study's, so that both can be moved together."""
    return os.path.relpath(folder.resolve(), study.resolve().parent)


def rebased(folder: str, study: Path, other: Path) -> str:
    """The folder of a job of one study, as another one at another place names it."""
    return _seen_from(other, study.resolve().parent / folder)


# Reading back


def listed(store: Store, run_id: str | None = None) -> list[Job]:
    """Jobs, the oldest first; those of one run."""
    where = "" if run_id is None else "AND run_id = ?"
    query = f"SELECT {_JOB} FROM jobs WHERE state <> 'writing' {where} ORDER BY made, job_id"
    return [_job(store, row) for row in store.conn.execute(query, [] if run_id is None else [run_id])]


def _job(store: Store, row: Sequence[Json]) -> Job:
    told = dict(zip(_JOB.split(", "), row, strict=True))
    told["folder"] = (store.path.resolve().parent / told["folder"]).resolve()
    told["price"] = None if told["price"] is None else json.loads(told["price"])
    return Job(**told)


def find(store: Store, name: str) -> Job:
    """The job with this id, or the only one whose id starts or ends so; `last` is the newest.

    Raises UsageError when there is none, or several.
    """
    known = listed(store)
    if name == "last" and known:
        return known[-1]
    wanted = name.upper()
    found = [j for j in known if wanted and (j.job_id.startswith(wanted) or j.job_id.endswith(wanted))]
    if len(found) != 1:
        told = ", ".join(j.job_id for j in known[-5:]) or "no jobs yet (judge jobs write makes one)"
        raise UsageError(f"{'several jobs are' if found else 'no job is'} called '{name}'; there are: {told}")
    return found[0]


def files(store: Store, job_id: str) -> list[JobFile]:
    """The files of a job, in order."""
    query = f"SELECT {_PART} FROM job_parts WHERE job_id = ? ORDER BY part"
    return [JobFile(*row) for row in store.conn.execute(query, [job_id])]


def known_batches(store: Store) -> set[str]:
    """The vendors' ids of all batches of the study."""
    query = "SELECT batch_id FROM job_parts WHERE batch_id IS NOT NULL"
    return {row[0] for row in store.conn.execute(query)}


def update_file(store: Store, job_id: str, part: int, **changes: Json) -> None:
    """Note how far a file came, in a commit of its own."""
    with store.transaction() as conn:
        set_file(conn, job_id, part, **changes)


def set_file(conn: sqlite3.Connection, job_id: str, part: int, **changes: Json) -> None:
    """The same inside the caller's transaction."""
    marks = ", ".join(f"{name} = ?" for name in changes)
    conn.execute(
        f"UPDATE job_parts SET {marks} WHERE job_id = ? AND part = ?", [*changes.values(), job_id, part]
    )


def counts(store: Store, job_id: str) -> dict[str, int]:
    """Units of a job by state: open, answered, released."""
    query = "SELECT state, count(*) FROM job_requests WHERE job_id = ? GROUP BY 1"
    return {"open": 0, "answered": 0, "released": 0, **dict(store.conn.execute(query, [job_id]))}


def open_in(store: Store, job_id: str, part: int) -> int:
    """How many lines of a file are still waited for."""
    query = (
        "SELECT count(DISTINCT custom_id) FROM job_requests WHERE job_id = ? AND part = ? AND state = 'open'"
    )
    return int(store.conn.execute(query, [job_id, part]).fetchone()[0])


def open_units(conn: sqlite3.Connection, job_id: str, part: int) -> list[str]:
    """The units of a file that are still waited for."""
    query = "SELECT unit_id FROM job_requests WHERE job_id = ? AND part = ? AND state = 'open'"
    return [row[0] for row in conn.execute(query, [job_id, part])]


def reserved(conn: sqlite3.Connection, shas: Sequence[str]) -> set[str]:
    """Those of these requests that an open job waits for."""
    marks = ",".join("?" * len(shas))
    query = (
        f"SELECT r.request_sha FROM job_requests AS r WHERE r.request_sha IN ({marks}) AND r.state = 'open' "
        "AND EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = r.job_id AND j.state = 'open')"
    )
    return {row[0] for row in conn.execute(query, shas)}


def in_job(
    conn: sqlite3.Connection, job_id: str, shas: Sequence[str], state: str = "open"
) -> dict[str, tuple[str, int]]:
    """Those of these requests that a job has in a state, each with the custom id of its line and its file."""
    marks = ",".join("?" * len(shas))
    query = (
        "SELECT request_sha, custom_id, part FROM job_requests "
        # By the hashes: a job has many more requests than are asked for here.
        f"WHERE +job_id = ? AND request_sha IN ({marks}) AND state = ?"
    )
    return {sha: (name, part) for sha, name, part in conn.execute(query, [job_id, *shas, state])}


def requests(conn: sqlite3.Connection, job_id: str, custom_ids: Iterable[str]) -> dict[str, list[JobRequest]]:
    """The units that lines of a job ask about, by custom id; ids that the job has not are not in it."""
    # Ours are hex; what is no text at all cannot even be looked for.
    wanted = [name for name in custom_ids if name.isascii()]
    found: dict[str, list[JobRequest]] = {}
    marks = ",".join("?" * len(wanted))
    query = f"SELECT {_REQUEST} FROM job_requests WHERE job_id = ? AND custom_id IN ({marks})"
    for row in conn.execute(query, [job_id, *wanted]):
        found.setdefault(row[0], []).append(JobRequest(*row))
    return found


def records(conn: sqlite3.Connection, shas: Iterable[str]) -> dict[str, RequestRecord]:
    """The requests as they were stored before they were posted."""
    wanted = list(shas)
    query = (
        "SELECT r.request_sha, r.model, p.text, s.text, r.unit_sha, r.parameters, r.repeat FROM requests AS r "
        "JOIN prompts AS p ON p.sha256 = r.prefix_sha LEFT JOIN prompts AS s ON s.sha256 = r.schema_sha "
        f"WHERE r.request_sha IN ({','.join('?' * len(wanted))})"
    )
    return {row[0]: RequestRecord(*row) for row in conn.execute(query, wanted)}


def judged_attempts(
    conn: sqlite3.Connection, run_id: str, units: Iterable[str]
) -> dict[tuple[str, int], int]:
    """(unit, repeat) -> the number of its newest attempt in the run; units without one are not in it."""
    wanted = list(units)
    query = (
        "SELECT unit_id, repeat, max(attempt) FROM judgements WHERE run_id = ? "
        f"AND unit_id IN ({','.join('?' * len(wanted))}) GROUP BY 1, 2"
    )
    return {(unit, repeat): attempt for unit, repeat, attempt in conn.execute(query, [run_id, *wanted])}


def close_requests(
    conn: sqlite3.Connection, job_id: str, state: str, ended: Iterable[tuple[str, str | None]]
) -> None:
    """Note how lines came back, (custom id, reason), inside the caller's transaction."""
    conn.executemany(
        "UPDATE job_requests SET state = ?, reason = ? WHERE job_id = ? AND custom_id = ?",
        [(state, reason, job_id, custom_id) for custom_id, reason in ended],
    )


def release(conn: sqlite3.Connection, job_id: str, reason: str, part: int | None = None) -> int:
    """Give back what is still waited for, of one file or of the whole job: the number of units."""
    which, values = ("", []) if part is None else ("AND part = ?", [part])
    return conn.execute(
        f"UPDATE job_requests SET state = 'released', reason = ? WHERE job_id = ? AND state = 'open' {which}",
        [reason, job_id, *values],
    ).rowcount


def finish(conn: sqlite3.Connection, job_id: str) -> bool:
    """Close the job when nothing of it is waited for; whether that is so."""
    waits = conn.execute(
        "SELECT 1 FROM job_requests WHERE job_id = ? AND state = 'open' LIMIT 1", [job_id]
    ).fetchone()
    conn.execute("UPDATE jobs SET state = ? WHERE job_id = ?", ["open" if waits else "done", job_id])
    return waits is None


def answered_by(conn: sqlite3.Connection, job_ids: Sequence[str], shas: Sequence[str]) -> set[str]:
    """Those of these requests that these jobs have brought an answer to."""
    return {sha for job in job_ids for sha in in_job(conn, job, shas, "answered")}
