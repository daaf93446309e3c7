"""One run: pending units pass through dispatcher, provider and parser to the writer, until none is left.

The order of events for a unit is fixed: rendered, admitted, sent, parsed, queued, committed, counted. If anything stops
the run in between (a kill, a full disk, a dead server, Ctrl-C), the unit stays pending and the same command resumes.
"""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from judge.errors import AdjudgeError, StudyError
from judge.plugins import describe_unexpected
from judge.providers.base import Provider
from judge.providers.replicas import replicas
from judge.runner.budget import Budget, Reserve
from judge.runner.calls import Attempt, Caller
from judge.runner.dispatch import Dispatcher
from judge.runner.ends import (
    Interrupts,
    close,
    count,
    count_judged,
    count_labelled,
    hardly_waiting,
    interrupts,
)
from judge.runner.entries import CallFacts, Entries
from judge.runner.identical import Identical, UnitRequest
from judge.runner.identity import Settled, settle
from judge.runner.plan import Live, Plan, RunReport
from judge.runner.remembered import names_allowed, server_notes
from judge.runner.requests import Asker
from judge.runner.server import ModelServer, Slot
from judge.runner.writer import Attempts, Writer
from judge.store import jobs, runs, selection
from judge.store.aside import take_in
from judge.store.study import Store, explain_errors
from judge.types import Json, Status

GRACE_SECONDS = 10.0
"""Seconds that calls in flight may still take after an interrupt or an error. Their replies are already paid for."""
TICK_SECONDS = 0.5
"""Seconds between two updates of the progress line."""
COUNTED_FIRST = 20_000
"""If a study has more units than this, the units are counted in a thread during the run, so that the first
call is not delayed.
"""
AHEAD = 32
"""Number of units that are rendered and looked up together, so that the next call is ready when a slot is
free.
"""
MOST_UNSAVED = 2000
"""Maximum number of units that wait for a commit or for an identical request. This bounds the memory of a
run.
"""
MOST_YOUNG = 20_000
"""Number of new objects before a garbage collection. Each collection visits the objects of all calls in
flight, so Python's default of 700 is too low.
"""
MOST_RESTING = 256
"""Maximum number of calls that wait for a retry. Without a limit, such calls would pile up if a server
refused many calls.
"""


async def run_task(
    store: Store, plan: Plan, provider: Provider, watch: Callable[[Live], None] | None = None
) -> RunReport:
    """Judge the plan's pending units with an open provider. Return the report.

    The run ends if the study cannot be written, the key is refused or the server stays unreachable. The
    report then contains the error, and all acknowledged judgements are in the study. `watch` is called at the
    beginning, after every commit, and twice a second in between.
    """
    # This comes first, so that units whose answers an earlier run could not store are not paid for again.
    taken = take_in(store)
    settled = settle(store, plan, provider)
    if taken:
        said = f"{taken:,} answers that an earlier run could not save were stored now and not requested again"
        settled = replace(settled, notes=(*settled.notes, said))
    if plan.selection.is_all:
        selection.select_all(store, plan.task)
        late = selection.get_upper_bound(store) > COUNTED_FIRST
        units, left_out = (0, 0) if late else selection.count_all(store, plan.task)
    else:
        late = False
        units, left_out = selection.select(store, plan.task, plan.selection)
    # The handler is active from before the run is stored until its end is stored, so that an interrupt leaves no unfinished run.
    with interrupts() as signals:
        return await _begin(store, plan, provider, settled, (units, left_out, late), watch, signals)


async def _begin(
    store: Store,
    plan: Plan,
    provider: Provider,
    settled: Settled,
    selected: tuple[int, int, bool],
    watch: Callable[[Live], None] | None,
    signals: Interrupts,
) -> RunReport:
    """Start the run in the study, make its calls, and close it.

    `selected` contains the number of selected units, the number of units left out, and whether the units
    still have to be counted.
    """
    units, left_out, late = selected
    facts = dict(provider.describe())
    price = plan.price(facts)
    run_id, resumed = runs.start_run(store, plan.task, plan.model, settled.options, facts, settled.run_id)
    if price is not None:
        facts["price"] = price.as_json()
    # `judge runs watch` reads this in another process; None while the units are being counted.
    facts["selected"] = None if late else units * plan.repeats
    # Before the first unit is sent: a killed run must not lose the results of the start-up probes, which were paid for.
    known = runs.read_known_servers(store.conn, facts)
    opened_servers = [ModelServer(member, 1) for member in replicas(provider)]
    runs.keep_facts(store, run_id, {**facts, runs.SERVERS: server_notes(opened_servers, known)})
    report = RunReport(run_id, resumed, units * plan.repeats, left_out, notes=settled.notes, price=price)
    if (opened := plan.opened) is not None:
        report.opened, report.usage, report.spent = opened, Counter(opened.usage), replace(opened.spent)
        runs.add_probes(store, run_id, opened.as_json(price is not None))
    run = _Run(store, plan, provider, settled.asker, report, watch)
    signals.set_callback(run.interrupt)
    counting = asyncio.create_task(count(store, plan, report, run.begun)) if late else None
    await run.go()
    if counting is not None:
        await counting
    remarks: Callable[[], tuple[str, ...]] | None = getattr(provider, "remarks", None)
    if remarks is not None:
        report.notes += remarks()
    report.labelled = count_labelled(store, plan, run_id)
    report.notes += run.dispatcher.notes
    if not isinstance(report.error, StudyError):
        # The facts are read again, because a server may have refused parameters in the first calls.
        charged = runs.add_charge(store.conn, run_id, report.spent.tokens, report.spent.cost)
        now_known = {**provider.describe(), runs.SERVERS: run.servers(), runs.SPENT: charged}
        await close(store, plan, report, {**facts, **now_known})
    return report


class _Run:
    def __init__(
        self,
        store: Store,
        plan: Plan,
        provider: Provider,
        asker: Asker,
        report: RunReport,
        watch: Callable[[Live], None] | None,
    ) -> None:
        self.store, self.plan, self.asker, self.report, self.watch = store, plan, asker, report, watch
        self.provider, self.facts = provider, dict(provider.describe())
        self.loop = asyncio.get_running_loop()
        self.known = runs.read_known_servers(store.conn, self.facts)
        self.dispatcher = Dispatcher(
            plan.concurrency,
            replicas(provider),
            plan.patience.outage,
            self.loop.time,
            most=provider.max_concurrency,
            known={url: server.concurrency for url, server in self.known.items() if server.concurrency},
        )
        for server in self.dispatcher.servers:
            if plan.opened is not None and server.url in plan.opened.rates:
                server.rate.obey(*plan.opened.rates[server.url])
        limits = plan.max_tokens, plan.max_cost
        self.budget = Budget(*limits, report.price, report.usage, report.spent, plan.before)
        named = None if plan.same_model else names_allowed(store, plan, report, self.facts)
        self.caller = Caller(
            asker, self.dispatcher, plan.patience, self.budget, self._stop, self._fail, named
        )
        # The time of a run includes its start-up probes.
        opening = plan.opened.seconds if plan.opened is not None else 0.0
        self.live = Live(report, self.dispatcher, time.monotonic() - opening)
        self.feeder: asyncio.Task[None] | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        self.identical = Identical(store.conn, fresh=plan.fresh)
        self.entries = Entries(plan.task, report.run_id, report.derived)
        self.room = asyncio.Event()
        self.begun = asyncio.Event()
        """Set when the first units have been sent, or if there are no units to send."""
        patience = plan.patience.outage
        self.writer = Writer(
            store, self._acknowledge, self._fail, patience=patience, stalled=self._pause_sending
        )

    async def go(self) -> None:
        """Feed units, wait for their calls, and commit. Interrupts and errors only stop the feeding."""
        # Imported modules stay until the end, and every full garbage collection would visit them again.
        gc.freeze()
        young = gc.get_threshold()
        gc.set_threshold(MOST_YOUNG, *young[1:])
        if self.watch is not None:
            self.watch(self.live)
        ticker = asyncio.create_task(self._tick())
        clock = self._stop_in_time()
        self.feeder = self._spawn(self._feed())
        try:
            while self.tasks:
                await asyncio.wait(self.tasks)
        finally:
            self.begun.set()
            ticker.cancel()
            for timer in clock:
                timer.cancel()
            self._cancel()
            self.report.last_failure = self.caller.last_failure
            # The excess over a limit is final only now, when the last call has ended.
            self.report.stopped = self.budget.crossed or self.report.stopped
            await asyncio.gather(*self.tasks, return_exceptions=True)
            await self.writer.close()
            if self.report.error is not None and self.writer.left is not None:
                self.report.error.args = (f"{self.report.error}; {self.writer.left}",)
            gc.set_threshold(*young)
            gc.unfreeze()
            self.report.seconds = time.monotonic() - self.live.started
            self.report.cuts = self.dispatcher.cuts

    # Units in

    async def _feed(self) -> None:
        with explain_errors(self.store.path):
            self.report.already_judged += count_judged(self.store, self.plan, self.report.run_id)
            for repeat in range(self.plan.repeats):
                await self._feed_repeat(repeat)
        self.dispatcher.feed_is_empty()

    async def _feed_repeat(self, repeat: int) -> None:
        units = selection.pending(self.store, self.plan.task, self.report.run_id, repeat, self.plan.retry)
        while ahead := list(islice(units, AHEAD)):
            questions = [UnitRequest(unit, *self.asker.request(unit, repeat)) for unit in ahead]
            self.identical.look_up(questions)
            # Requests in an open provider batch are skipped, because they would be paid for twice.
            waiting = jobs.find_reserved(self.store.conn, [q.sha for q in questions])
            for question in questions:
                if question.sha in waiting:
                    self.report.reserved += 1
                else:
                    await self._start(question)
            self.begun.set()

    async def _start(self, question: UnitRequest) -> None:
        while self._is_crowded():
            self.room.clear()
            await self.room.wait()
        if (known := self.identical.answer(question)) is not None:
            self._queue_attempts(question, [known])
        elif not self.identical.wait(question):
            claim, slot = await self.caller.admit(question.request)
            self.identical.record_sent(question)
            self._spawn(self._judge(question, claim, slot))
            return
        # In a study full of known requests, this loop would otherwise block all other tasks.
        await asyncio.sleep(0)

    def _is_crowded(self) -> bool:
        """Return whether too many units are waiting for a commit, for an identical request, or for a retry."""
        unsaved = self.identical.waiting + self.writer.unsaved
        return unsaved >= MOST_UNSAVED or len(self.tasks) > self.dispatcher.ceiling + MOST_RESTING

    # Answers out

    async def _judge(self, question: UnitRequest, claim: Reserve, slot: Slot) -> None:
        try:
            attempts = await self.caller.judge(question.request, question.record, claim, slot)
        except BaseException:
            self.identical.give_up(question)
            raise
        asker, limit = self.asker, question.request.max_tokens
        self._queue_attempts(
            question, attempts, CallFacts(limit, asker.base_url, asker.timeout, self.report.price)
        )
        for other in self.identical.record_outcome(question, attempts[-1]):
            self._queue_attempts(other, [replace(attempts[-1], record=other.record)])

    def _queue_attempts(
        self, question: UnitRequest, attempts: list[Attempt], call: CallFacts | None = None
    ) -> None:
        unit, repeat = question.unit, question.request.repeat
        self.writer.add(
            [
                self.entries.make_entry(a, (unit.unit_id, repeat, n), unit.gold, call)
                for n, a in enumerate(attempts, unit.attempts + 1)
            ]
        )

    def _acknowledge(self, batch: list[Attempts]) -> None:
        for attempts in batch:
            last = attempts[-1]
            # A failure that identical units share is not a reused answer: each of these units has failed.
            if last.reused and last.judgement.status is not Status.FAILED:
                self.report.reused += 1
            else:
                self.report.ended[str(last.judgement.status)] += 1
            # Identical units have the same first request; a repair or a conclusion belongs to one unit.
            if not last.reused and (first := attempts[0].request) is not None:
                self.identical.record_saved(first.request_sha)
        self.room.set()
        self._keep_learnt()
        if self.watch is not None:
            self.watch(self.live)

    def _keep_learnt(self) -> None:
        """Immediately store new facts about the server, such as a refused parameter.

        These facts are then kept even if the process is killed.
        """
        facts = dict(self.provider.describe())
        if facts == self.facts:
            return
        price = {} if self.report.price is None else {"price": self.report.price.as_json()}
        with suppress(StudyError), hardly_waiting(self.store, 0.02):
            # If the study is locked, the next commit stores them. This thread also serves the calls in flight.
            runs.keep_facts(self.store, self.report.run_id, {**facts, **price, runs.SERVERS: self.servers()})
            self.facts = facts

    def servers(self) -> dict[str, Json]:
        """Return the facts to store about the servers, so that the next run does not need to probe them."""
        return server_notes(self.dispatcher.servers, self.known)

    def _pause_sending(self, error: AdjudgeError | None) -> None:
        """Pause sending while commits fail. Replies that were already received wait."""
        self.live.stalled = None if error is None else (time.monotonic(), error)
        self.dispatcher.pause(error is not None)

    async def _tick(self) -> None:
        while self.watch is not None:
            await asyncio.sleep(TICK_SECONDS)
            self.watch(self.live)

    # Stopping

    def _stop_in_time(self) -> list[asyncio.TimerHandle]:
        """If there is a time limit, stop sending shortly before it is reached, and cancel the calls that are
        still in flight when it is reached.
        """
        most = self.plan.max_time
        if most is None:
            return []
        reason = f"the time limit of {most:g} s is reached"
        most = max(0.0, most - (self.plan.opened.seconds if self.plan.opened else 0.0))
        before = max(0.0, most - min(GRACE_SECONDS, most / 10))
        return [self.loop.call_later(before, self._stop, reason), self.loop.call_later(most, self._cancel)]

    def interrupt(self) -> None:
        """Stop sending and let calls in flight end. A second interrupt cancels these calls as well."""
        if self.report.interrupted:
            self._cancel()
        self.report.interrupted = True
        self._stop("interrupted", GRACE_SECONDS)

    def _fail(self, error: AdjudgeError) -> None:
        """End the run because of an error. Replies that arrive within GRACE_SECONDS are stored."""
        if self.report.error is None and (not self.report.interrupted or isinstance(error, StudyError)):
            self.report.error = error
        self._stop(str(error), GRACE_SECONDS)

    def _stop(self, reason: str, grace: float | None = None) -> None:
        """Stop sending. Calls in flight have `grace` seconds to end (None = no limit)."""
        self.report.stopped = self.report.stopped or reason
        self.dispatcher.shut()
        if self.feeder is not None:
            self.feeder.cancel()
        if grace is not None:
            self.loop.call_later(grace, self._cancel)

    def _cancel(self) -> None:
        if self.report.stopped is not None:
            self.writer.hurry(abandon=self.report.interrupted)
        for task in self.tasks:
            task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._finish_task)
        return task

    def _finish_task(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self.room.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error if isinstance(error, AdjudgeError) else _bug(error))


def _bug(error: BaseException) -> AdjudgeError:
    wrapped = AdjudgeError(describe_unexpected(error))
    wrapped.__cause__ = error
    return wrapped
