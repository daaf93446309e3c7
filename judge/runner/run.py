"""One run: pending units through gate, provider and parser to the writer, until none is left.

The order of events for a unit is fixed: rendered, admitted, sent, parsed, queued, committed,
counted. Whatever stops a run in between (a kill, a full disk, a dead server, Ctrl-C) leaves the
unit pending, and the same command picks it up.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from judge.errors import AdjudgeError, KeyProblem, ProviderError, RateLimited, Rejected, StudyError
from judge.parse import Parsed, derive
from judge.prompts.load import Task
from judge.providers.base import Provider
from judge.runner.gate import Gate
from judge.runner.requests import Asker, Sampling, estimate_tokens
from judge.runner.retry import Patience
from judge.runner.writer import Writer
from judge.store import runs
from judge.store.runs import Entry, RequestRecord, Selection
from judge.store.study import Store
from judge.types import Answered, Judgement, Reply, Request, Status, Unit, Usage

SLOW_START = 64
GRACE_SECONDS = 10.0
HOPELESS = 3
"""This many units in a row given up on, without one reply in between, and the run stops."""
NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is asked to do. `max_tokens` bounds the tokens of this invocation, in and out."""

    task: Task
    model: str
    selection: Selection = field(default_factory=Selection)
    sampling: Sampling = field(default_factory=Sampling)
    repeats: int = 1
    concurrency: int = 64
    retry: Collection[str] = ()
    max_tokens: int | None = None
    patience: Patience = field(default_factory=Patience)


@dataclass(slots=True)
class Report:
    """How a run stands. `ended` holds this invocation's units by status; they sum up to `units`
    with `reused` (judged before, or answered by an identical request) and `pending`."""

    run_id: str
    resumed: bool
    units: int
    left_out: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    reused: int = 0
    labelled: int = 0
    seconds: float = 0.0
    usage: Counter[str] = field(default_factory=Counter)
    cuts: int = 0
    derived: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None
    error: AdjudgeError | None = None
    last_failure: ProviderError | None = None
    interrupted: bool = False

    @property
    def done(self) -> int:
        """Units with a judgement, from this invocation or before."""
        return self.reused + sum(self.ended.values())

    @property
    def pending(self) -> int:
        """Units still without one."""
        return self.units - self.done


@dataclass(slots=True)
class Live:
    """What a progress line shows, read whenever it likes."""

    report: Report
    gate: Gate
    started: float


async def run_task(
    store: Store, plan: Plan, provider: Provider, watch: Callable[[Live], None] | None = None
) -> Report:
    """Judge the plan's pending units with an open provider and return how it went.

    A study that cannot be written, a refused key or a dead server ends the run: the report then
    carries the error, and everything acknowledged before it is in the study. `watch` is called
    after every commit.
    """
    asker = Asker(plan.task, plan.model, provider, plan.sampling)
    units, left_out = runs.select(store, plan.task, plan.selection)
    options = {**plan.sampling.as_options(), "base_url": asker.base_url, "mode": str(asker.mode)}
    run_id, resumed = runs.start_run(store, plan.task, plan.model, options, dict(provider.describe()))
    report = Report(run_id, resumed, units * plan.repeats, left_out)
    await _Run(store, plan, provider, asker, report, watch).go()
    statuses = [runs.selected_statuses(store, run_id, r) for r in range(plan.repeats)]
    report.labelled = sum(s[Status.OK] for s in statuses)
    if not isinstance(report.error, StudyError):
        runs.close_run(store, run_id, finished=report.stopped is None)
    return report


class _Run:
    def __init__(
        self,
        store: Store,
        plan: Plan,
        provider: Provider,
        asker: Asker,
        report: Report,
        watch: Callable[[Live], None] | None,
    ) -> None:
        self.store, self.plan, self.provider, self.asker, self.report = store, plan, provider, asker, report
        ceiling = min(plan.concurrency, provider.max_concurrency or plan.concurrency)
        self.gate = Gate(ceiling, SLOW_START)
        self.live = Live(report, self.gate, time.monotonic())
        self.watch = watch
        self.stopping = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self.asked: dict[str, asyncio.Future[Parsed | None]] = {}
        self.tokens_used = 0
        self.tokens_in_flight = 0
        self.hopeless = 0.0
        self.writer = Writer(store, self._acknowledged, self._fail)

    async def go(self) -> None:
        """Feed, wait, commit; interrupts and errors stop the feeding and let calls in flight end."""
        loop = asyncio.get_running_loop()
        handled = _on_signals(loop, self._interrupt)
        feeder = asyncio.create_task(self._feed())
        stopper = asyncio.create_task(self.stopping.wait())
        try:
            await asyncio.wait({feeder, stopper}, return_when=asyncio.FIRST_COMPLETED)
            if self.stopping.is_set():
                feeder.cancel()
            await asyncio.wait({feeder})
            if not feeder.cancelled() and (error := feeder.exception()) is not None:
                if not isinstance(error, AdjudgeError):
                    raise error
                self._fail(error)
            await self._wind_down(stopper)
        finally:
            stopper.cancel()
            for task in set(self.tasks):
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)
            await self.writer.close()
            for sig in handled:
                loop.remove_signal_handler(sig)
            self.report.seconds = time.monotonic() - self.live.started
            self.report.cuts = self.gate.cuts

    async def _wind_down(self, stopper: asyncio.Task[bool]) -> None:
        while self.tasks and not self.stopping.is_set():
            await asyncio.wait({*self.tasks, stopper}, return_when=asyncio.FIRST_COMPLETED)
        if self.tasks and self.report.error is None:
            # Calls in flight are paid for: an interrupt gives them some time, a spent budget all they need.
            await asyncio.wait(self.tasks, timeout=GRACE_SECONDS if self.report.interrupted else None)

    async def _feed(self) -> None:
        again = {"pending", str(Status.FAILED), *self.plan.retry}
        for repeat in range(self.plan.repeats):
            before = runs.selected_statuses(self.store, self.report.run_id, repeat)
            self.report.reused += sum(n for status, n in before.items() if status not in again)
        for repeat in range(self.plan.repeats):
            for unit in runs.pending(self.store, self.plan.task, self.report.run_id, repeat, self.plan.retry):
                await self._start(unit, repeat)
                if self.stopping.is_set():
                    return

    async def _start(self, unit: Unit, repeat: int) -> None:
        request, record = self.asker.request(unit, repeat)
        again = unit.attempts > 0
        if not again and (known := self._known(record.request_sha)) is not None:
            self._spawn(self._reuse(unit, request, record, known))
            return
        tokens = estimate_tokens(request)
        if self.plan.max_tokens is not None:
            await self._budget(tokens)
        if not self.gate.try_enter(tokens):
            await self.gate.enter(tokens)
        if self.stopping.is_set():
            self.gate.leave()
            return
        self.tokens_in_flight += tokens
        self.asked[record.request_sha] = asyncio.get_running_loop().create_future()
        self._spawn(self._judge(unit, request, record, tokens))

    def _spawn(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self.tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error if isinstance(error, AdjudgeError) else _bug(error))

    async def _budget(self, tokens: int) -> None:
        """Stop sending when this call could pass the token budget; wait for calls that may not use theirs."""
        limit = self.plan.max_tokens or 0
        while self.tokens_used + self.tokens_in_flight + tokens > limit and self.tokens_in_flight:
            await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)
        if self.tokens_used + tokens > limit:
            self._stop(f"the token budget of {limit:,} is used up")
            await asyncio.Event().wait()

    def _known(self, sha: str) -> asyncio.Future[Parsed | None] | runs.Known | None:
        return self.asked.get(sha) or runs.find_known(self.store.conn, sha)

    async def _reuse(
        self,
        unit: Unit,
        request: Request,
        record: RequestRecord,
        known: asyncio.Future[Parsed | None] | runs.Known,
    ) -> None:
        """Give a unit the answer of an identical request: in flight, or stored."""
        if isinstance(known, runs.Known):
            parsed, reply = (
                Parsed(Status.OK, known.labels),
                Reply(known.reply, resolved_model=known.resolved_model),
            )
        else:
            outcome = await asyncio.shield(known)
            if outcome is None or outcome.status is not Status.OK:
                await self._start(unit, request.repeat)  # the other call brought no label: ask for itself
                return
            parsed, reply = outcome, Reply("")
            if (stored := runs.find_known(self.store.conn, record.request_sha)) is not None:
                reply = Reply(stored.reply, resolved_model=stored.resolved_model)
        self._put(unit, request, record, parsed, reply, 1, None, reused=True)

    async def _judge(self, unit: Unit, request: Request, record: RequestRecord, tokens: int) -> None:
        attempt = unit.attempts + 1
        outcome: Parsed | None = None
        try:
            try:
                reply, latency = await self._ask(request, tokens)
            finally:
                self.tokens_in_flight -= tokens
            outcome = self.asker.parse(reply)
            if outcome.status is Status.UNPARSED and not self.stopping.is_set():
                repaired = await self._repair(unit, request, record, reply, outcome, attempt, latency)
                if repaired is not None:
                    outcome = repaired
                    return
            self._put(unit, request, record, outcome, reply, attempt, latency)
        except ProviderError as error:
            self._give_up(unit, request, record, error, attempt)
        finally:
            self._answered(record.request_sha, outcome)

    async def _repair(
        self,
        unit: Unit,
        request: Request,
        record: RequestRecord,
        reply: Reply,
        outcome: Parsed,
        attempt: int,
        latency: float,
    ) -> Parsed | None:
        """One more try for a reply that could not be read; None when the server did not answer it."""
        second = self.asker.repair(request, reply, outcome.reason or "not readable")
        await self.gate.enter()
        try:
            fixed, took = await self._ask(second, 0)
        except ProviderError:
            return None
        parsed = self.asker.parse(fixed)
        self._put(unit, request, record, outcome, reply, attempt, latency, final=False)
        self._put(unit, second, self.asker.record(second), parsed, fixed, attempt + 1, took)
        return parsed

    async def _ask(self, request: Request, tokens: int) -> tuple[Reply, float]:
        """Send until there is a reply, within patience. The caller holds a slot; it is given back here."""
        tries = 0
        while True:
            sent = time.monotonic()
            try:
                reply = await self.provider.complete(request)
            except ProviderError as error:
                tries += 1
                if isinstance(error, RateLimited):
                    self.gate.limited(error.retry_after, sent)
                wait = self.plan.patience.wait(error, tries)
                if wait is None:
                    raise
            else:
                self.hopeless = 0.0
                self.gate.succeeded(reply.rate)
                self._count(reply.usage, tokens)
                return reply, time.monotonic() - sent
            finally:
                self.gate.leave()
            await self._sleep(wait)
            await self.gate.enter(tokens)

    async def _sleep(self, seconds: float) -> None:
        """Wait before a retry; a stop ends the wait, and the unit stays pending."""
        try:
            await asyncio.wait_for(self.stopping.wait(), seconds)
        except TimeoutError:
            return
        raise asyncio.CancelledError

    def _count(self, usage: Usage, tokens: int) -> None:
        used = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        self.tokens_used += used or tokens
        for name in ("input_tokens", "output_tokens", "cached_tokens"):
            self.report.usage[name] += getattr(usage, name) or 0

    def _give_up(
        self, unit: Unit, request: Request, record: RequestRecord, error: ProviderError, attempt: int
    ) -> None:
        if isinstance(error, KeyProblem):
            self._fail(error)
            return
        # A refused request is more likely to be about its own text than a dead server is.
        own_fault = isinstance(error, Rejected) and error.status != NOT_FOUND
        self.hopeless += 0.1 if own_fault else 1.0
        self.report.last_failure = error
        self._put(unit, request, record, Parsed(Status.FAILED, reason=str(error)), None, attempt, None)
        if self.hopeless >= HOPELESS:
            self._fail(error)

    def _answered(self, sha: str, outcome: Parsed | None) -> None:
        future = self.asked.get(sha)
        if future is not None and not future.done():
            future.set_result(outcome)
        if outcome is None or outcome.status is not Status.OK:
            self.asked.pop(sha, None)

    def _put(
        self,
        unit: Unit,
        request: Request,
        record: RequestRecord,
        parsed: Parsed,
        reply: Reply | None,
        attempt: int,
        latency: float | None,
        reused: bool = False,
        final: bool = True,
    ) -> None:
        labels: tuple[Answered, ...] = parsed.labels
        if parsed.status is Status.OK and self.plan.task.spec.derive:
            extra = derive(self.plan.task, labels, unit.gold)
            self.report.derived.update(
                name if any(a.field == name for a in extra) else f"{name}:none"
                for name in self.plan.task.spec.derive
            )
            labels = labels + extra
        judgement = Judgement(
            run_id=self.report.run_id,
            unit_id=unit.unit_id,
            repeat=request.repeat,
            attempt=attempt,
            status=parsed.status,
            reply=None if reply is None else reply.text,
            reason=parsed.reason,
            labels=labels,
            usage=Usage() if reply is None or reused else reply.usage,
            latency=latency,
            request_sha=record.request_sha,
            resolved_model=None if reply is None else reply.resolved_model,
        )
        self.writer.put(Entry(judgement, record, reused, final))

    def _acknowledged(self, entries: list[Entry]) -> None:
        for entry in entries:
            if entry.request and not entry.reused:
                self.asked.pop(entry.request.request_sha, None)  # from here on the study knows it
            if not entry.final:
                continue
            if entry.reused:
                self.report.reused += 1
            else:
                self.report.ended[str(entry.judgement.status)] += 1
        if self.watch is not None:
            self.watch(self.live)

    def _interrupt(self) -> None:
        if self.report.interrupted:
            for task in self.tasks:
                task.cancel()
        self.report.interrupted = True
        self._stop("interrupted")

    def _fail(self, error: AdjudgeError) -> None:
        if self.report.error is None and not self.report.interrupted:
            self.report.error = error
            self._stop(str(error))

    def _stop(self, reason: str) -> None:
        self.report.stopped = self.report.stopped or reason
        self.stopping.set()


def _on_signals(loop: asyncio.AbstractEventLoop, handler: Callable[[], None]) -> list[signal.Signals]:
    handled = []
    for sig in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(sig, handler)
        except (NotImplementedError, RuntimeError, ValueError):
            continue  # not the main thread, or a platform without it: Python's own handling stays
        handled.append(sig)
    return handled


def _bug(error: BaseException) -> AdjudgeError:
    wrapped = AdjudgeError(f"unexpected {type(error).__name__}: {error} (JUDGE_DEBUG=1 shows where)")
    wrapped.__cause__ = error
    return wrapped
