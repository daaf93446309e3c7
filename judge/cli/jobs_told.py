"""What `judge jobs` says of files written and results read: in words, and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.commands import command
from judge.console import emit_json, notes, say
from judge.errors import Exit
from judge.types import attributes

if TYPE_CHECKING:
    from judge.jobs.read import JobTally
    from judge.jobs.write import Written
    from judge.store.jobs import Job


def as_json(done: Written) -> dict[str, Any]:
    """What was written, as `judge jobs write --json` has it."""
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


def tell_written(done: Written, db: Path, offline: bool) -> None:
    """Say what was written, and what comes next."""
    if done.reused:
        print(f"{done.reused:,} units have the answers of identical requests")
    if done.waiting:
        print(f"{done.waiting:,} units wait for other jobs ({command('judge jobs show')})")
    if done.job is None:
        print(f"run {done.run_id}: nothing left to write")
        return
    job, size = done.job, sum(f.bytes for f in done.files) / 1e6
    cost = (
        "" if job.most_cost is None or done.price is None else f", ${job.most_cost:.4f} ({done.price.source})"
    )
    say(f"job {job.job_id} of run {done.run_id}: {done.lines:,} requests for {done.n_units:,} units")
    say(f"{len(done.files):,} files with {size:,.1f} MB in {job.folder}")
    print(f"at most {job.most_tokens:,} tokens{cost}")
    if offline:
        print(f"next: run them, then: {command('judge jobs read', job.job_id, 'RESULTS')}")
    else:
        print(f"next: {command('judge jobs submit', job.job_id)}")


def tell_read(job: Job, tally: JobTally, counts: dict[str, int], in_json: bool) -> int:
    """Say what was read; the exit code: 4 while some of the job's units have no label."""
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
            "open": counts["open"],
            "tokens": dict(tally.usage),
            "cost": None if job.price is None else round(tally.spent.cost, 6),
        }
        emit_json("jobs_read", document)
    else:
        listed = " · ".join(
            f"{n:,} {s}" for s, n in {**statuses, "reused": tally.reused}.items() if n or s == "ok"
        )
        print(f"job {job.job_id} of run {job.run_id}: {tally.lines:,} lines read ({listed})")
        if tally.known:
            print(f"{tally.known:,} lines had been read before")
        cost = "" if job.price is None else f", ${tally.spent.cost:.4f}"
        print(f"{sum(tally.usage[n] for n in ('input_tokens', 'output_tokens')):,} tokens{cost}")
        print(
            f"{counts['answered']:,} units answered, {counts['open']:,} waited for, {counts['released']:,} given back"
        )
    notes(tally.notes())
    return Exit.INCOMPLETE if counts["open"] or counts["released"] else Exit.DONE
