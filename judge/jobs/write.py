"""Write the pending units of a run to request files, one line for each request.

The requests are written one by one, so that they need little memory. The job is stored after its files, so that a
half-written job does not reserve any units.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from judge.errors import UsageError
from judge.jobs import lines
from judge.jobs.offline import reader_of
from judge.permissions import remember_folder
from judge.providers.base import Provider
from judge.runner.budget import Budget, Spent
from judge.runner.entries import Entries
from judge.runner.identical import Identical, UnitRequest
from judge.runner.identity import Settled, settle
from judge.runner.plan import Plan
from judge.runner.prices import Price, find, require_price
from judge.store import jobs, runs, selection
from judge.store.jobs import Job, JobFile, JobRequest
from judge.store.judgements import Entry, add_judgements, add_requests
from judge.store.study import Store, get_time
from judge.types import Json

AT_ONCE = 1000
"""Number of units that are rendered, looked up and committed together."""


@dataclass(slots=True)
class Written:
    """The result of writing a job: its files and counts.

    The files contain `lines` requests for `n_units` units. Units with equal requests share a line. `reused`
    counts units that were answered by an identical request in the study, and `waiting` counts units that
    other jobs have reserved. `units` is the number of selected units times the number of repeats. `job` is
    None if nothing was written.
    """

    run_id: str
    resumed: bool
    units: int
    left_out: int
    price: Price | None
    job: Job | None = None
    files: Sequence[JobFile] = ()
    lines: int = 0
    n_units: int = 0
    reused: int = 0
    waiting: int = 0
    stopped: str | None = None
    notes: tuple[str, ...] = ()


def write_job(
    store: Store,
    plan: Plan,
    provider: Provider,
    folder: Path | None = None,
    *,
    not_again: Sequence[str] = (),
) -> Written:
    """Write the plan's pending requests to files, within the plan's token and cost limits.

    The provider must be open, and the caller must hold the run's lock. `folder` must not exist yet; the
    default is a folder next to the study. `not_again` lists jobs. If one of these jobs has answered a
    request, the request is not written again, even if the answer has no label. Raises UsageError for plans
    that batches do not support.
    """
    vendor = (plan.asked_as or plan.model).partition("/")[0]
    reader = reader_of(provider)
    settled = settle(store, plan, provider)
    _check(plan, settled)
    facts = dict(provider.describe())
    price, is_batch = batch_price(plan, facts)
    units, left_out = selection.select(store, plan.task, plan.selection)
    run_id, resumed = runs.start_run(store, plan.task, plan.model, settled.options, facts, settled.run_id)
    runs.keep_facts(store, run_id, facts)
    if plan.opened is not None:
        runs.add_probes(store, run_id, plan.opened.as_json(price is not None))
    job_id, made = jobs.make_id(), get_time()
    place = folder or store.path.resolve().with_suffix(".jobs") / job_id
    # A merged or moved study names this folder from another place; the record shows that its user made it
    # here.
    remember_folder(place)
    job = Job(
        job_id=job_id,
        run_id=run_id,
        vendor=vendor,
        model=plan.asked_as or plan.model,
        base_url=facts.get("base_url"),
        folder=place,
        max_output_tokens=plan.sampling.max_output_tokens,
        most_tokens=0,
        most_cost=None if price is None else 0.0,
        price=None if price is None else {**price.as_json(), "batch": is_batch},
        state="writing",
        made=made,
    )
    done = Written(run_id, resumed, units * plan.repeats, left_out, price, notes=settled.notes)
    jobs.begin(store, job)
    try:
        with _Files(place, *lines.LIMITS[vendor]) as files:
            writer = _Writing(store, plan, settled, job, files, done, reader, not_again)
            writer.write()
            done.files = [replace(f, job_id=job_id) for f in files.close()]
            if done.lines:
                # The files must be complete on the disk before the study says that they can be posted.
                files.keep()
                done.job = replace(
                    job, state="open", most_tokens=writer.most_tokens, most_cost=writer.most_cost
                )
                jobs.complete(store, done.job, done.files)
    finally:
        if done.job is None:
            jobs.forget(store, job_id)
    return done


def _check(plan: Plan, settled: Settled) -> None:
    """Raise UsageError if batches do not support the plan.

    Batches do not support several calls per unit. They also do not support quotes as rationales, because the
    quotes cannot be checked.
    """
    if plan.sampling.orders > 1:
        raise UsageError(
            "--label-order K takes several calls per unit, which batches do not support; omit it"
        )
    if settled.asker.reasons_first:
        raise UsageError(
            "an answer by letter after a rationale takes two calls per unit, which batches do not support; add --answers json"
        )
    if plan.task.spec.rationale == "quote":
        raise UsageError(
            "--rationale quote: the replies of a batch arrive without the passages, so quotes cannot be checked; omit --batch or --rationale"
        )


def batch_price(plan: Plan, facts: dict[str, Json]) -> tuple[Price | None, bool]:
    """Return the price of a call and whether it is a batch price. If no batch price is known, use the higher
    price of a single call.

    Raises UsageError if a cost limit needs a price and none is known.
    """
    model = plan.asked_as or plan.model
    of_batch = find(model, facts, plan.prices, batch=True)
    # The price of single calls is the higher one, so a limit of money still holds.
    price = of_batch or find(model, facts, plan.prices)
    return price if plan.max_cost is None else require_price(model, price), of_batch is not None


@dataclass(slots=True)
class _JobPage:
    """Database rows for several requests, which are stored in one transaction."""

    rows: list[JobRequest] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    records: list[UnitRequest] = field(default_factory=list)


class _Writing:
    """Writes the requests of one job."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        settled: Settled,
        job: Job,
        files: _Files,
        done: Written,
        reader: lines.BatchReader,
        not_again: Sequence[str],
    ) -> None:
        self.store, self.plan, self.asker, self.job = store, plan, settled.asker, job
        self.files, self.done, self.reader, self.not_again = files, done, reader, not_again
        self.budget = Budget(plan.max_tokens, plan.max_cost, done.price, Counter(), Spent())
        self.identical = Identical(store.conn)
        self.entries = Entries(plan.task, done.run_id, Counter())
        self.seen: set[str] = set()
        self.most_tokens, self.most_cost = 0, None if done.price is None else 0.0

    def write(self) -> None:
        for repeat in range(self.plan.repeats):
            units = selection.pending(self.store, self.plan.task, self.done.run_id, repeat, self.plan.retry)
            while page := [
                UnitRequest(unit, *self.asker.request(unit, repeat)) for unit in islice(units, AT_ONCE)
            ]:
                self._page(page)
                if self.done.stopped:
                    return

    def _page(self, questions: list[UnitRequest]) -> None:
        shas = [q.sha for q in questions]
        self.identical.look_up(questions)
        conn = self.store.conn
        waited = jobs.find_reserved(conn, shas)
        in_this_job = jobs.find_in_job(conn, self.job.job_id, shas)
        # A request that failed in this command's own jobs is sent again by the next command, not in a next round.
        answered = jobs.find_answered(conn, self.not_again, shas)
        page = _JobPage()
        for question in questions:
            answer = self.identical.answer(question)
            if answer is not None:
                unit, repeat = question.unit, question.request.repeat
                place = unit.unit_id, repeat, unit.attempts + 1
                page.entries.append(self.entries.make_entry(answer, place, unit.gold))
            elif question.sha in waited:
                self.done.waiting += 1
            elif question.sha not in answered and not self._write_request(question, in_this_job, page):
                # The requests before the limit are still stored below.
                break
        with self.store.transaction() as conn:
            # Stored first, because the rows of the job refer to them.
            add_requests(conn, [q.record for q in page.records], self.seen)
            jobs.add_requests(conn, self.job.job_id, page.rows)
            add_judgements(conn, page.entries, self.seen)
        self.done.reused += len(page.entries)

    def _write_request(
        self, question: UnitRequest, unit_of_id: dict[str, tuple[str, int]], page: _JobPage
    ) -> bool:
        """Add the request to a file, unless an earlier line contains an equal request.

        Returns False when a limit is reached.
        """
        attempt = question.unit.attempts + 1
        tokens, cost = 0, None if self.most_cost is None else 0.0
        if question.sha in unit_of_id:
            name, part = unit_of_id[question.sha]
        else:
            name = lines.custom_id(question.sha, attempt)
            claim = self.budget.claim(question.request)
            if not self.budget.fits(claim):
                self.done.stopped = self.budget.reason
                return False
            self.budget.reserve(claim)
            part = self.files.add_line(
                lines.request_line(self.job.vendor, name, self.reader.body(question.request))
            )
            tokens, cost = claim.tokens, None if cost is None else claim.cost
            unit_of_id[question.sha] = name, part
            page.records.append(question)
            self.done.lines += 1
        self.most_tokens += tokens
        # Units that share a line share its reserve: only the first one adds to the sum.
        self.most_cost = None if self.most_cost is None else self.most_cost + (cost or 0.0)
        unit, repeat = question.unit.unit_id, question.request.repeat
        page.rows.append(JobRequest(name, unit, repeat, attempt, part, question.sha, tokens, cost))
        self.done.n_units += 1
        return True


class _Files:
    """The files of a job that is being written. Their folder gets its final name when they are complete.

    When a file would exceed one of the vendor's limits, the next file is begun.
    """

    def __init__(self, folder: Path, most_lines: int, most_bytes: int) -> None:
        if folder.exists():
            raise UsageError(f"{folder}: already exists; choose a new folder")
        self.folder, self.partial = folder, folder.with_name(folder.name + ".part")
        self.most_lines, self.most_bytes = most_lines, most_bytes
        self.files: list[_JobStream] = []

    def __enter__(self) -> Self:
        # A folder of this name was left by a kill and has never been posted.
        shutil.rmtree(self.partial, ignore_errors=True)
        self.partial.mkdir(parents=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self.files:
            file.stream.close()
        shutil.rmtree(self.partial, ignore_errors=True)

    def add_line(self, line: bytes) -> int:
        """Add a line and return the number of its file."""
        if len(line) > self.most_bytes:
            raise UsageError(
                f"a single request has {len(line):,} bytes, more than the vendor allows in a batch"
            )
        file = self._with_room(len(line))
        file.stream.write(line)
        file.sha.update(line)
        file.lines += 1
        file.bytes += len(line)
        return file.part

    def _with_room(self, size: int) -> _JobStream:
        # Lines are never moved between files, because written lines are already part of the file's hash.
        if self.files:
            last = self.files[-1]
            if last.lines < self.most_lines and last.bytes + size <= self.most_bytes:
                return last
        part = len(self.files) + 1
        file = _JobStream(part, (self.partial / f"part-{part:04d}.jsonl").open("wb"))
        self.files.append(file)
        return file

    def close(self) -> list[JobFile]:
        """Flush all files to the disk and return them."""
        for file in self.files:
            file.stream.flush()
            # The study will name these files, so they must survive a power failure as its rows do.
            os.fsync(file.stream.fileno())
            file.stream.close()
        return [
            JobFile("", f.part, Path(f.stream.name).name, f.sha.hexdigest(), f.bytes, f.lines)
            for f in self.files
        ]

    def keep(self) -> None:
        """Rename the folder to its final name."""
        self.partial.rename(self.folder)


@dataclass(slots=True)
class _JobStream:
    """A file that is being written, with the hash of its content so far."""

    part: int
    stream: BinaryIO
    sha: hashlib._Hash = field(default_factory=hashlib.sha256)
    lines: int = 0
    bytes: int = 0
