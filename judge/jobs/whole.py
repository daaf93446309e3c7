"""Run a task in batches, from the first file to the last result: `judge run --batch`.

Each round writes and posts the pending units, follows the batches, and reads their results. Units that were
released without an answer are included in the next round. Each step is stored before the next begins, so that
after any interruption the same command resumes with the existing batches.
"""

from __future__ import annotations

import asyncio
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from judge.commands import command
from judge.errors import AdjudgeError, ProviderError, StudyError
from judge.jobs import follow, post, write
from judge.jobs.account import BatchService
from judge.jobs.read import JobTally
from judge.permissions import check_folder
from judge.providers.base import Provider
from judge.runner.ends import close, count_judged, count_labelled
from judge.runner.identity import matching_runs
from judge.runner.plan import Plan, RunReport
from judge.runner.retry import retry_after_of
from judge.store import jobs, runs
from judge.store.jobs import Job
from judge.store.study import Store, explain_errors

POLL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Settings for waiting: the seconds between two polls, and a callback for state changes."""

    poll: float = field(default_factory=lambda: POLL_SECONDS)
    notify: Callable[[str], None] = lambda text: None
    sleep: Callable[[float], None] = time.sleep


def run_batches(store: Store, plan: Plan, provider: Provider, waiting: Waiting) -> RunReport:
    """Judge the plan's pending units in batches.

    The caller must hold the run's lock and have opened the provider.

    This is not a coroutine, so that Ctrl-C interrupts the waiting immediately. If an error ends the run
    early, the report contains the error, and the vendor still processes batches that were already posted.
    Raises UsageError for plans that batches do not support.
    """
    with _handle_sigterm():
        report = _Batched(store, plan, provider, waiting).go()
    if not isinstance(report.error, StudyError):
        asyncio.run(close(store, plan, report, dict(provider.describe())))
    return report


@contextmanager
def _handle_sigterm() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, if this thread can handle signals."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:
        # Python handles signals in the main thread only.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(slots=True)
class _Batched:
    """The state of one `judge run --batch`."""

    store: Store
    plan: Plan
    provider: Provider
    waiting: Waiting
    begun: float = field(default_factory=time.monotonic)
    tally: JobTally = field(default_factory=JobTally)
    own_jobs: list[str] = field(default_factory=list)
    last_text: str = ""
    failing_since: float | None = None
    undecided: str | None = None
    services: dict[tuple[str, str | None], BatchService] = field(default_factory=dict)

    def go(self) -> RunReport:
        with explain_errors(self.store.path):
            if (opened := self.plan.opened) is not None:
                self.tally.usage.update(opened.usage)
                self.tally.spent = replace(opened.spent)
            first = self._write()
            # The first job carries the cost of the probes, which later jobs must not count again.
            self.plan = replace(self.plan, opened=None)
            report = RunReport(first.run_id, first.resumed, first.units, first.left_out, price=first.price)
            report.notes = first.notes
            report.already_judged = count_judged(self.store, self.plan, first.run_id)
            report.stopped = first.stopped
            try:
                self._rounds(report)
            except KeyboardInterrupt:
                report.interrupted = True
                report.stopped = "interrupted; the batches continue at the provider"
            except AdjudgeError as error:
                report.error = error
                report.stopped = str(error)
            finally:
                for at in self.services.values():
                    at.close()
            self._count(report)
        return report

    def _rounds(self, report: RunReport) -> None:
        while True:
            answered = sum(self.tally.ended.values())
            if not self._follow(report) or not self.own_jobs:
                return
            if sum(self.tally.ended.values()) == answered:
                # Otherwise a vendor that never answers would be called forever.
                report.stopped = report.stopped or "the batches ended without an answer"
                return
            written = self._write(report)
            report.reused += written.reused
            report.stopped = written.stopped
            if written.job is None:
                return

    def _open(self, run_id: str) -> list[Job]:
        """Return the run's open jobs at a provider. Jobs whose requests another program answers are left out."""
        return [j for j in jobs.listed(self.store, run_id) if j.state == "open" and j.base_url is not None]

    def _write(self, report: RunReport | None = None) -> write.Written:
        """Write the pending units, within the remaining limits."""
        tokens, cost = self.plan.max_tokens, self.plan.max_cost
        # Earlier jobs may use up to their maximum, too. In the first round their run is not known yet.
        run_ids = matching_runs(self.store, self.plan, self.provider) if report is None else [report.run_id]
        earlier_jobs = [job for run_id in run_ids for job in self._open(run_id)]
        if tokens is not None:
            tokens = max(0, tokens - self._spent[0] - sum(j.most_tokens for j in earlier_jobs))
        if cost is not None:
            cost = max(0.0, cost - self._spent[1] - sum(j.most_cost or 0.0 for j in earlier_jobs))
        plan = replace(self.plan, max_tokens=tokens, max_cost=cost)
        done = write.write_job(self.store, plan, self.provider, not_again=self.own_jobs)
        if done.job is not None:
            self.own_jobs.append(done.job.job_id)
            self._notify(f"job {done.job.job_id}: {done.lines:,} requests in {len(done.files):,} files")
        return done

    @property
    def _spent(self) -> tuple[int, float]:
        """Tokens and US dollars used by all invocations of the run."""
        tokens, cost = self.plan.before
        return tokens + self.tally.spent.tokens, cost + self.tally.spent.cost

    def _follow(self, report: RunReport) -> bool:
        """Post, wait and read until no batch of the run is open. Return False if a limit ends the waiting earlier."""
        while open_jobs := self._open(report.run_id):
            if self._exceeds_limits(report, open_jobs):
                return False
            states = []
            self.undecided = None
            for job in open_jobs:
                if job.job_id not in self.own_jobs:
                    self.own_jobs.append(job.job_id)
                states.append(self._step(job))
            self._notify("; ".join(states))
            if not self._open(report.run_id):
                break
            if self.undecided and self._only_undecided_files(report.run_id):
                report.stopped = self.undecided
                return False
            left = math.inf
            if self.plan.max_time is not None:
                left = self.plan.max_time - (time.monotonic() - self.begun)
            if left <= 0:
                report.stopped = (
                    f"the time limit of {self.plan.max_time:g} s is reached; the batches continue"
                )
                return False
            # A short limit posts the batches and returns; it must not wait for the next poll.
            self.waiting.sleep(min(self.waiting.poll, left))
        return True

    def _exceeds_limits(self, report: RunReport, open_jobs: list[Job]) -> bool:
        """Return whether posting the unposted jobs of earlier commands could exceed this command's limits.

        If so, none of these jobs is posted, and the report says why.
        """
        unposted = [
            j
            for j in open_jobs
            if any(f.state in ("written", "posting") for f in jobs.files(self.store, j.job_id))
        ]
        if not unposted:
            return False
        tokens = self._spent[0] + sum(j.most_tokens for j in open_jobs)
        cost = self._spent[1] + sum(j.most_cost or 0.0 for j in open_jobs)
        limit, most = self.plan.max_tokens, self.plan.max_cost
        # The sum of many costs may exceed its exact value by a rounding error.
        if (limit is None or tokens <= limit) and (most is None or cost <= most * (1 + 1e-9)):
            return False
        report.stopped = (
            f"job {unposted[0].job_id} was written with higher limits and is not posted under the current limits; release its units: "
            + command("judge jobs cancel", unposted[0].job_id)
        )
        return True

    def _step(self, job: Job) -> str:
        """Advance a job as far as possible and return a description of its state.

        Raises only errors that waiting cannot resolve.
        """
        try:
            # Another command may follow the same job, and no file may be posted twice.
            with self.store.run_lock(f"job {job.job_id}"):
                at = self._service(job)
                posted = post.submit(self.store, job, at)
                statuses = follow.poll(self.store, job, at)
                follow.fetch(self.store, job, at)
                self.tally.add(follow.read_fetched(self.store, job, same_model=self.plan.same_model))
        except ProviderError as error:
            if not error.retryable or self._is_out_of_patience(error):
                raise
            return f"waiting: {error}"
        self.failing_since = None
        refused = [s.state.failed for s in statuses if s.state is not None and s.state.failed is not None]
        if refused:
            # A new file would have the same requests and be refused again.
            raise ProviderError(f"{job.model}: the provider refused all requests in a file: {refused[0]}")
        self.undecided = posted.undecided or self.undecided
        if posted.unsure:
            return posted.unsure[0]
        parts = [
            f"{s.file.file} {s.state.status}"
            + (f" {s.state.done:,}/{s.file.lines:,}" if s.state.done else "")
            if s.state is not None
            else f"{s.file.file} {s.remark or s.file.state}"
            for s in statuses
        ]
        return ", ".join(parts)

    def _only_undecided_files(self, run_id: str) -> bool:
        """Return whether the run is waiting only for files that nobody can account for.

        It is unknown whether such a file was posted, and the last attempt to post it was at least as long ago
        as `--patience` allows. Files whose results have been read are ignored.
        """
        unread = [
            file
            for job in self._open(run_id)
            for file in jobs.files(self.store, job.job_id)
            if file.state != "read"
        ]
        return all(
            file.state == "posting" and post.since_posted(file) >= self.plan.patience.outage
            for file in unread
        )

    def _service(self, job: Job) -> BatchService:
        """Return the client for the job's address. The client is opened only once, because opening takes a
        long time.
        """
        check_folder(self.store.path, job.folder, job.job_id)
        key = job.vendor, job.base_url
        if key not in self.services:
            self.services[key] = follow.service_of(self.store.path, job)
        return self.services[key]

    def _is_out_of_patience(self, error: ProviderError) -> bool:
        now = time.monotonic()
        self.failing_since = self.failing_since or now
        patience = self.plan.patience
        return (
            now - self.failing_since >= patience.outage
            or retry_after_of(error) > patience.longest_retry_after
        )

    def _notify(self, text: str) -> None:
        if text and text != self.last_text:
            self.last_text = text
            self.waiting.notify(text)

    def _count(self, report: RunReport) -> None:
        """Copy the results of the batches to the report."""
        report.ended.update(self.tally.ended)
        report.reused += self.tally.reused
        report.usage.update(self.tally.usage)
        report.spent = self.tally.spent
        report.derived.update(self.tally.derived)
        report.seconds = time.monotonic() - self.begun
        report.labelled = count_labelled(self.store, self.plan, report.run_id)
        waits = [jobs.counts(self.store, j.job_id)["open"] for j in jobs.listed(self.store, report.run_id)]
        report.reserved = sum(waits)
        report.notes += tuple(self.tally.notes())
        runs.close_run(self.store, report.run_id, finished=report.stopped is None)
