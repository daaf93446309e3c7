"""Open a provider: reuse the stored facts about its server, or probe the server if the study has no facts
about it.

Start-up probes are ordinary calls: they count against the limits of the run and are retried under its retry
policy.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace

from judge.errors import LimitReached, ProviderError, ServerFault, Unreachable
from judge.providers.base import Probing, Provider, Send
from judge.providers.replicas import replicas
from judge.runner.budget import Budget, Opened
from judge.runner.dispatch import Dispatcher
from judge.runner.ends import count_judged, count_labelled
from judge.runner.identity import matching_runs
from judge.runner.plan import Live, Plan, RunReport
from judge.runner.prices import Price
from judge.runner.rate import START
from judge.runner.remembered import recall
from judge.runner.retry import Patience
from judge.store import runs, selection
from judge.store.study import Store
from judge.types import Reply, Request

WARN_AFTER = 3
"""After this many failures of the start-up probes, the user is warned that the command is waiting for the server."""
_log = logging.getLogger(__name__)


async def open_or_finished(
    store: Store, provider: Provider, plan: Plan, watch: Callable[[Live], None] | None = None
) -> Plan | RunReport:
    """Open the provider with `open_patiently`. If no unit is left to judge, return the report of the finished
    run instead.

    In that case nothing is sent, and `watch` is called once with the report.
    """
    if (report := _find_finished(store, plan, provider)) is None:
        return await open_patiently(provider, plan, store=store)
    if watch is not None:
        watch(Live(report, Dispatcher(plan.concurrency), time.monotonic()))
    return report


def _find_finished(store: Store, plan: Plan, provider: Provider) -> RunReport | None:
    """Return the report of the plan's run, or None if the run still has units to judge.

    Also return None unless exactly one stored run matches the plan and the provider's address.
    """
    facts = provider.describe()
    run_ids = matching_runs(store, plan, provider, facts.get("base_url"))
    # If there are runs in several answer modes, only the server's features decide which run is resumed.
    if len(run_ids) != 1:
        return None
    run_id = run_ids[0]
    # The text of a task version never changes, so an edited file is refused even if no unit is left to judge.
    runs.keep_task(store.conn, plan.task)
    units, left_out = selection.choose(store, plan.task, plan.selection)
    wanted = units * plan.repeats
    # A run that a search tried becomes an ordinary one when it is resumed (`runs.start_run`).
    if count_judged(store, plan, run_id) < wanted or run_id in runs.read_tried(store.conn):
        return None
    report = RunReport(
        run_id, True, wanted, left_out, already_judged=wanted, labelled=count_labelled(store, plan, run_id)
    )
    report.price = plan.price(facts)
    report.notes = ("nothing to do: every unit has an answer already, and the server was not called",)
    return report


async def open_patiently(
    provider: Provider,
    plan: Plan,
    price: Price | None = None,
    opened: Opened | None = None,
    store: Store | None = None,
) -> Plan:
    """Open a provider. Return the plan, with the cost of the start-up probes counted against its limits.

    This cost counts against the plan's limits.

    `price` is the price of the provider's model (None: the price of the plan's model). `opened` is updated
    after each probe. `store` is the study that may have facts about the server. Temporary failures are
    retried by the plan's policy, but the function does not wait for a server that accepts no connection.
    Raises LimitReached if a limit is too low for the probes, and the errors of `Provider.open`.
    """
    opened = opened or Opened()
    if isinstance(provider, Probing):
        price = price or plan.price(provider.describe())
        budget = Budget(plan.max_tokens, plan.max_cost, price, opened.usage, opened.spent, plan.before)
        for member in replicas(provider):
            if isinstance(member, Probing):
                url = str(member.describe().get("base_url"))
                member.purse = _Purse(budget, opened, plan.concurrency, url)
    if store is not None:
        recall(store, provider)
    limit = asyncio.timeout(plan.max_time)
    try:
        async with limit:
            await _open_provider(provider, plan.patience, opened)
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise LimitReached(
            f"the time limit of {plan.max_time:g} s was reached during the start-up probes, so no unit was sent"
        ) from error
    if opened.begun is not None:
        opened.seconds = time.monotonic() - opened.begun
    return replace(plan, opened=opened)


async def _open_provider(provider: Provider, patience: Patience, opened: Opened) -> None:
    """Open the provider, and retry after temporary failures.

    Raises the last failure if a retry is pointless or the maximum waiting time has passed.
    """
    begun, tries = time.monotonic(), 0
    while True:
        answered = opened.answered
        try:
            await provider.open()
            return
        except ProviderError as error:
            # A server that accepts no connection is more likely a wrong address than an outage.
            is_absent = isinstance(error, Unreachable) and not error.sent
            # The backoff stops growing, but the tries continue. After an answered probe, the backoff starts again.
            tries = 1 if opened.answered > answered else min(tries + 1, patience.tries - 1)
            wait = patience.wait(error, tries)
            # Waiting does not mend a server whose answers are malformed.
            is_malformed = isinstance(error, ServerFault) and error.answered and tries == patience.tries - 1
            if is_absent or is_malformed or wait is None or time.monotonic() - begun > patience.outage:
                raise
            if tries == WARN_AFTER:
                # There is no run yet whose progress could be shown.
                _log.warning(
                    "%s. The start-up probes are retried for %g s (--patience)", error, patience.outage
                )
            await asyncio.sleep(wait)


class _Purse:
    """Counts the probes of one server against the plan's limits. At most `concurrency` probes run at once."""

    def __init__(self, budget: Budget, opened: Opened, concurrency: int | None, url: str) -> None:
        self.budget, self.opened, self.url = budget, opened, url
        self._room = asyncio.Semaphore(concurrency or START)
        self._is_over = False
        """Whether the limits left no room for a probe. In that case, the other probes are useless."""

    async def pay(
        self, request: Request, send: Send, is_needed: Callable[[], bool] = lambda: True
    ) -> Reply | None:
        """Call `send`, count the call and return its result. Raises LimitReached if a limit is too low for
        the call.
        """
        async with self._room:
            return await self._send_paid(request, send, is_needed)

    async def _send_paid(self, request: Request, send: Send, is_needed: Callable[[], bool]) -> Reply | None:
        claim = self.budget.claim(request)
        has_room = await self.budget.room(claim) and not self._is_over
        if not is_needed():
            return None
        if not has_room:
            self._is_over = True
            raise LimitReached(
                f"{self.budget.reason}: the next start-up probe may use {claim.tokens:,} tokens, and "
                f"{self.budget.spent.tokens + self.budget.before[0]:,} are already used; no unit was sent. Raise the limit"
            )
        self.budget.reserve(claim)
        self.opened.calls += 1
        self.opened.begun = self.opened.begun or time.monotonic()
        try:
            reply = await send()
        except BaseException as error:
            self.budget.count_failure(claim, error)
            raise
        else:
            self.opened.answered += 1
            # None is a refusal, which costs nothing.
            if reply is not None:
                self.budget.count_reply(claim, reply.usage)
                if reply.rate is not None:
                    self.opened.rates[self.url] = (reply.rate, asyncio.get_running_loop().time())
        finally:
            self.budget.release(claim)
        if self.budget.crossed is not None:
            raise LimitReached(self.budget.crossed)
        return reply
