"""One unit's calls: sent until there is an answer, repaired once, given up on when it never comes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from judge.errors import (
    AdjudgeError,
    KeyProblem,
    ProviderError,
    RateLimited,
    Rejected,
    Unreachable,
    UsageError,
)
from judge.parse import Parsed
from judge.providers.conformance import check_reply
from judge.runner.budget import Budget, Reserve
from judge.runner.dispatch import Dispatcher
from judge.runner.requests import Asker
from judge.runner.retry import Patience, told_to_wait
from judge.runner.server import ModelServer, Slot, ending
from judge.store.judgements import RequestRecord
from judge.types import Reply, Request, Status

UNKNOWN_MODEL = 3
"""This many units that an address or a model was not found for, none answered meanwhile, and the run stops."""
HOPELESS_REFUSALS = 30
"""The same for requests that the server refuses each for itself, before it has answered one."""
NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request and how it ended: with a reply, or with the error that was given up on (`failed`)."""

    record: RequestRecord
    parsed: Parsed
    reply: Reply | None = None
    latency: float | None = None
    error: ProviderError | None = None
    base_url: str | None = None


@dataclass(slots=True)
class ModelNames:
    """What the servers of a run may call its model.

    `compared`: addresses whose names were compared when the run began. Their first reply may add the name that they
    sign with.
    """

    names: set[str]
    compared: set[str]


class Caller:
    """Sends requests within gate, patience and budget, to the server that the dispatcher names.

    `stop` ends the sending for a reason, `fail` for an error; both shut the dispatcher, and whoever waits
    to send is then cancelled, which leaves the unit pending. `named` is None where the model may have any name.
    """

    def __init__(
        self,
        asker: Asker,
        dispatcher: Dispatcher,
        patience: Patience,
        budget: Budget,
        stop: Callable[[str], None],
        fail: Callable[[AdjudgeError], None],
        named: ModelNames | None = None,
    ) -> None:
        self.asker, self.dispatcher, self.patience = asker, dispatcher, patience
        self.budget, self.stop, self.fail = budget, stop, fail
        self.last_failure: ProviderError | None = None
        self._named = named or ModelNames(set(), set())
        self._answered_at = float("-inf")
        self._not_found = 0
        self._refused = 0

    async def judge(
        self, request: Request, record: RequestRecord, claim: Reserve, slot: Slot
    ) -> list[Attempt]:
        """Every attempt on one unit; the last one counts.

        The dispatcher's slot is taken already, and the budget's claim is held. One repair follows a reply that cannot
        be read. Where the model reasons first, that is an attempt of its own, and the answer the next one; so is each
        of several label orders, and the last one has the label of all. Raises CancelledError when the run is being
        stopped before the unit's end.
        """
        first = await self._attempt(request, record, claim, slot)
        if self.asker.sampling.orders > 1:
            return await self._in_every_order(request, first)
        if not self.asker.reasons_first:
            return await self._repaired(request, first)
        if first.reply is None or first.parsed.status is not Status.OK:
            return [first]
        conclusion = self.asker.conclude(request, first.reply)
        return [first, *await self._repaired(conclusion, await self._next(conclusion))]

    async def _in_every_order(self, request: Request, first: Attempt) -> list[Attempt]:
        others = self.asker.in_other_orders(request)
        answers, attempts = [first.parsed], [self._of_order(first, 1)]
        for number, other in enumerate(others, 2):
            if attempts[-1].parsed.status is not Status.OK:
                return attempts
            attempt = await self._next(other)
            answers.append(attempt.parsed)
            attempts.append(self._of_order(attempt, number))
        if attempts[-1].parsed.status is not Status.OK:
            return attempts
        last = attempts[-1]
        average = replace(self.asker.average(answers), reason=last.parsed.reason)
        return [*attempts[:-1], replace(last, parsed=average)]

    def _of_order(self, attempt: Attempt, number: int) -> Attempt:
        return replace(attempt, parsed=self.asker.one_of_several(attempt.parsed, number))

    async def _repaired(self, request: Request, first: Attempt) -> list[Attempt]:
        if first.parsed.status is not Status.UNPARSED or first.reply is None or not self.asker.repairs:
            return [first]
        second = await self._next(
            self.asker.repair(request, first.reply, first.parsed.reason or "not readable")
        )
        # A repair that is refused (too long now, perhaps) leaves what there was; one that found no
        # server leaves a unit that the next run takes up again.
        return [first] if isinstance(second.error, Rejected) else [first, second]

    async def _next(self, request: Request) -> Attempt:
        """One more call on a unit."""
        claim, slot = await self.admitted(request)
        return await self._attempt(request, self.asker.record(request), claim, slot)

    async def admitted(self, request: Request) -> tuple[Reserve, Slot]:
        """Wait until budget and dispatcher have room for a call. Return what it holds of both."""
        claim = self.budget.claim(request)
        if not await self.budget.room(claim):
            self.stop(self.budget.reason)
        self.budget.hold(claim)
        try:
            return claim, await self.dispatcher.enter(claim.estimate)
        except BaseException:
            self.budget.release(claim)
            raise

    async def _attempt(self, request: Request, record: RequestRecord, claim: Reserve, slot: Slot) -> Attempt:
        try:
            reply, latency, url = await self._send(request, record.request_sha, claim, slot)
        except ProviderError as error:
            self._give_up(error)
            return Attempt(record, Parsed(Status.FAILED, reason=str(error)), error=error)
        finally:
            self.budget.release(claim)
        return Attempt(record, self.asker.parse(reply, request), reply, latency, base_url=url)

    async def _send(
        self, request: Request, unit: str, claim: Reserve, slot: Slot
    ) -> tuple[Reply, float, str | None]:
        """Send until there is a reply, within patience; with its latency and who gave it. The slot is given
        back before every wait.

        While a server is down or overloaded, tries say nothing about the unit and are not counted.
        """
        tries, begun = 0, slot.at
        first_call = slot.server.first_call()
        while True:
            server, sent = slot.server, self.dispatcher.now()
            error: BaseException | None = None
            try:
                reply = await self._complete(server, request, claim)
            except ProviderError as e:
                error = e
                if first_call.is_failed is None:
                    first_call.is_failed = True
                tries += self._note(slot, begun, unit, e)
                wait = self.patience.wait(
                    e, max(1, tries), server.flow(self.dispatcher.now()), server.failing()
                )
                if wait is None and not self._is_servers_fault(server, begun, e):
                    raise
            except BaseException as e:
                error = e
                raise
            else:
                if first_call.is_failed is None:
                    first_call.is_failed = False
                self._answered_at = self.dispatcher.now()
                self._not_found = 0
                if reply.rate is not None:
                    server.rate.obey(reply.rate, self._answered_at, slot.tokens)
                return reply, self._answered_at - sent, server.url
            finally:
                self.dispatcher.leave(slot, ending(error))
            if wait is None:
                tries, wait = 0, self.patience.longest
            if not await self.budget.again(claim):
                self.stop(self.budget.reason)
            await self.dispatcher.rest(0.0 if server.is_down else wait)
            slot = await self.dispatcher.enter(claim.estimate)

    async def _complete(self, server: ModelServer, request: Request, claim: Reserve) -> Reply:
        """One call, counted however it ends: cancelled ones too, which the server may go on with."""
        assert server.provider is not None
        try:
            reply = await server.provider.complete(request)
            check_reply(server.provider, reply)
        except BaseException as error:
            self.budget.failed(claim, error)
            raise
        self.budget.answered(claim, reply.usage)
        if (crossed := self.budget.crossed) is not None:
            self.stop(crossed)
        self._check_model(server, reply)
        return reply

    def _check_model(self, server: ModelServer, reply: Reply) -> None:
        """Raises UsageError for a reply of another model: a server that was away may come back with one."""
        name, named = reply.resolved_model, self._named
        if not name:
            return
        if server.url in named.compared:
            named.compared.discard(server.url)
            named.names.add(name)
        elif named.names and name not in named.names:
            raise UsageError(
                f"{server.url} answers as '{name}', where the run has answers of {', '.join(sorted(named.names))}. That "
                "reply was not kept. --same-model goes on with the run, --as NAME makes another judge of it"
            )

    def _note(self, slot: Slot, begun: float, unit: str, error: ProviderError) -> bool:
        """Pass a failure on to what is known of its server; end the run when all have been down for too long.

        Return whether the call counts as one of its unit's tries.
        """
        if not error.retryable:
            return True
        now = self.dispatcher.now()
        wait = told_to_wait(error)
        if wait > self.patience.most_told:
            return True
        counts = slot.server.failed(slot, now, begun, unit, error)
        down = self.dispatcher.down_for()
        absent = isinstance(error, Unreachable) and not error.sent and not self.dispatcher.has_answered
        if down is not None and (absent or down[0] >= self.dispatcher.patience):
            # One that was never there is more likely a wrong address than an outage.
            self.last_failure = error
            self.fail(error)
            raise asyncio.CancelledError
        return counts

    def _is_servers_fault(self, server: ModelServer, begun: float, error: ProviderError) -> bool:
        """Whether a unit whose tries are used up shall wait with its server rather than fail."""
        if not error.retryable or told_to_wait(error) > self.patience.most_told or self.dispatcher.is_shut:
            return False
        if isinstance(error, RateLimited) and server.answered_at < begun and not server.is_down:
            # Nothing at all has passed for as long as this unit was tried.
            server.went_down(self.dispatcher.now(), error)
        return server.is_down

    def _give_up(self, error: ProviderError) -> None:
        """Find out whether the unit or the whole run has no chance. Raises CancelledError when the
        error says nothing about the unit: it stays pending."""
        no_end = isinstance(error, RateLimited) and told_to_wait(error) > self.patience.most_told
        if isinstance(error, KeyProblem) or no_end:
            self.fail(error)
            raise asyncio.CancelledError
        not_found = isinstance(error, Rejected) and error.status == NOT_FOUND
        own_fault = isinstance(error, Rejected) and not not_found
        if self.dispatcher.is_shut and not own_fault:
            raise asyncio.CancelledError
        self.last_failure = error
        if own_fault:
            # More likely about its own text than about the server.
            self._refused += 1
            if self._refused >= HOPELESS_REFUSALS and self._answered_at == float("-inf"):
                self.fail(error)
        elif not_found:
            self._not_found += 1
            if self._not_found >= UNKNOWN_MODEL:
                self.fail(error)
