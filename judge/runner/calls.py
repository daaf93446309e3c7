"""Make the calls for one unit, with retries and one repair of an unreadable reply, and decide when to give
up.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from judge.accept import ModelNames
from judge.errors import (
    AdjudgeError,
    KeyProblem,
    OtherModel,
    ProviderError,
    RateLimited,
    Rejected,
    ServerFault,
    Unreachable,
)
from judge.parse import Parsed
from judge.providers.conformance import check_reply
from judge.runner.budget import Budget, Reserve
from judge.runner.dispatch import Dispatcher
from judge.runner.requests import Asker
from judge.runner.retry import Patience, retry_after_of
from judge.runner.server import ModelServer, Slot, ending
from judge.store.judgements import RequestRecord
from judge.types import Reply, Request, Status

UNKNOWN_MODEL = 3
"""The run stops when this many units in a row have failed with HTTP 404: the address or the model must be wrong."""
HOPELESS_REFUSALS = 30
"""The run stops after this many refused requests (4xx) if the server has not answered any request."""
NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request and its outcome: a reply, or the error after the last try (status `failed`)."""

    record: RequestRecord
    parsed: Parsed
    reply: Reply | None = None
    latency: float | None = None
    error: ProviderError | None = None
    base_url: str | None = None


class Caller:
    """Sends requests within the rate limits, retry policy and budget, to the server that the dispatcher
    selects.

    `stop` ends the run for a given reason, and `fail` ends it because of an error. Both shut down the
    dispatcher, which cancels the waiting calls and leaves their units pending. `models` contains the model
    names that are accepted in replies (None: any name).
    """

    def __init__(
        self,
        asker: Asker,
        dispatcher: Dispatcher,
        patience: Patience,
        budget: Budget,
        stop: Callable[[str], None],
        fail: Callable[[AdjudgeError], None],
        models: ModelNames | None = None,
    ) -> None:
        self.asker, self.dispatcher, self.patience = asker, dispatcher, patience
        self.budget, self.stop, self.fail = budget, stop, fail
        self.last_failure: ProviderError | None = None
        self._models = models
        self._answered_at = float("-inf")
        self._not_found = 0
        self._refused = 0

    async def judge(
        self, request: Request, record: RequestRecord, claim: Reserve, slot: Slot
    ) -> list[Attempt]:
        """Make all calls for one unit, and return the attempts. The last attempt is the result.

        `slot` is the permission to send the first call, and `claim` is the budget reserved for it. An
        unreadable reply is followed by one repair. If the model reasons first, the reasoning is one attempt
        and the answer is the next. With several label orders, each order is an attempt, and the last attempt
        has the averaged label. Raises CancelledError if the run stops before the unit is finished.
        """
        first = await self._attempt(request, record, claim, slot)
        if self.asker.sampling.orders > 1:
            return await self._call_in_orders(request, first)
        if not self.asker.reasons_first:
            return await self._repair(request, first)
        if first.reply is None or first.parsed.status is not Status.OK:
            return [first]
        conclusion = self.asker.conclude(request, first.reply)
        answer = await self._call_again(conclusion)
        return _without_end([first]) if answer is None else [first, *await self._repair(conclusion, answer)]

    async def _call_in_orders(self, request: Request, first: Attempt) -> list[Attempt]:
        others = self.asker.build_reordered(request)
        answers, attempts = [first.parsed], [self._read_attempt(first, 1)]
        for number, other in enumerate(others, 2):
            # Without the probabilities of one order there is no average, so the others are not paid for.
            if attempts[-1].parsed.status is not Status.OK:
                return attempts
            attempt = await self._call_again(other)
            if attempt is None:
                return _without_end(attempts)
            answers.append(attempt.parsed)
            attempts.append(self._read_attempt(attempt, number))
        if attempts[-1].parsed.status is not Status.OK:
            return attempts
        last = attempts[-1]
        average = replace(self.asker.average(answers), reason=last.parsed.reason)
        return [*attempts[:-1], replace(last, parsed=average)]

    def _read_attempt(self, attempt: Attempt, number: int) -> Attempt:
        return replace(attempt, parsed=self.asker.for_one_order(attempt.parsed, number))

    async def _repair(self, request: Request, first: Attempt) -> list[Attempt]:
        if first.parsed.status is not Status.UNPARSED or first.reply is None or not self.asker.repairs:
            return [first]
        second = await self._call_again(
            self.asker.repair(request, first.reply, first.parsed.reason or "not readable")
        )
        if second is None:
            return _without_end([first])
        # If the repair is refused (it may be too long), the unreadable reply remains the result. If no server could be
        # reached, the unit fails, and the next run retries it.
        return [first] if isinstance(second.error, Rejected) else [first, second]

    async def _call_again(self, request: Request) -> Attempt | None:
        """Make one more call for a unit. Return None if the run ends first.

        The unit's earlier replies are then stored without it, because they are paid for.
        """
        try:
            claim, slot = await self.admit(request)
            return await self._attempt(request, self.asker.record(request), claim, slot)
        except asyncio.CancelledError:
            return None
        except AdjudgeError as error:
            self.fail(error)
            return None

    async def admit(self, request: Request) -> tuple[Reserve, Slot]:
        """Wait until the budget allows a call and a server can take it. Return the reserved budget and the slot.

        A slot is the permission to send one call to a server.
        """
        claim = self.budget.claim(request)
        if not await self.budget.room(claim):
            self.stop(self.budget.reason)
        self.budget.reserve(claim)
        try:
            return claim, await self.dispatcher.enter(claim.estimate)
        except BaseException:
            self.budget.release(claim)
            raise

    async def _attempt(self, request: Request, record: RequestRecord, claim: Reserve, slot: Slot) -> Attempt:
        try:
            reply, latency, url = await self._send(request, record.request_sha, claim, slot)
        except ProviderError as error:
            self._raise_or_record(error)
            return Attempt(record, Parsed(Status.FAILED, reason=str(error)), error=error)
        finally:
            self.budget.release(claim)
        try:
            if self._models is not None:
                self._models.check(reply, url)
        except OtherModel as error:
            # The run ends, but the reply is paid for, so it is kept without a label.
            self.fail(error)
            return Attempt(record, Parsed(Status.FAILED, reason=str(error)), reply, latency, base_url=url)
        return Attempt(record, self.asker.accept(reply, request), reply, latency, base_url=url)

    async def _send(
        self, request: Request, unit: str, claim: Reserve, slot: Slot
    ) -> tuple[Reply, float, str | None]:
        """Send a request, with retries. Return the reply, its latency in seconds, and the server's address.

        A call that waits for a retry does not count as in flight. Failures while a server is down or
        overloaded do not count as tries, because the unit did not cause them.
        """
        tries, begun = 0, slot.at
        first_call = slot.server.first_call()
        while True:
            server, sent = slot.server, self.dispatcher.get_time()
            error: BaseException | None = None
            try:
                reply = await self._complete(server, request, claim)
            except ProviderError as e:
                error = e
                if first_call.is_failed is None:
                    first_call.is_failed = True
                tries += self._note(slot, begun, unit, e)
                failed_at, asked_to_wait = self.dispatcher.get_time(), retry_after_of(e)
                wait = self.patience.wait(
                    e, max(1, tries), server.flow(failed_at), server.failing(), failed_at - begun
                )
                if wait is None and not self._is_servers_fault(server, begun, e):
                    raise
            except BaseException as e:
                error = e
                raise
            else:
                if first_call.is_failed is None:
                    first_call.is_failed = False
                self._answered_at = self.dispatcher.get_time()
                self._not_found = 0
                if reply.rate is not None:
                    server.rate.obey(reply.rate, self._answered_at, slot.tokens)
                return reply, self._answered_at - sent, server.url
            finally:
                self.dispatcher.leave(slot, ending(error))
            # The server is at fault: the unit gets all its tries again when the server is back.
            if wait is None:
                tries, wait = 0, self.patience.longest
            if not await self.budget.allow_retry(claim):
                self.stop(self.budget.reason)
            # A server that is down has its own schedule of probes, which replaces the backoff but not its Retry-After.
            await self.dispatcher.sleep(asked_to_wait if server.is_down else wait)
            slot = await self.dispatcher.enter(claim.estimate)

    async def _complete(self, server: ModelServer, request: Request, claim: Reserve) -> Reply:
        """Make one call, and count it even if it fails or is cancelled, because the server may still bill it."""
        assert server.provider is not None
        try:
            reply = await server.provider.complete(request)
            # A plugin can return anything.
            check_reply(server.provider, reply)
        except BaseException as error:
            self.budget.count_failure(claim, error)
            raise
        self.budget.count_reply(claim, reply.usage)
        if (crossed := self.budget.crossed) is not None:
            self.stop(crossed)
        return reply

    def _note(self, slot: Slot, begun: float, unit: str, error: ProviderError) -> bool:
        """Record a server failure, and end the run if all servers have been down for too long.

        Return whether the call counts as one of its unit's tries.
        """
        # A stale connection shows nothing about the server.
        if not error.retryable or (isinstance(error, Unreachable) and error.stale):
            return True
        now = self.dispatcher.get_time()
        wait = retry_after_of(error)
        # Such a wait ends the run (`_raise_or_record`), so nothing is left to decide about the server.
        if wait > self.patience.longest_retry_after:
            return True
        counts = slot.server.record_failure(slot, now, begun, unit, error)
        down = self.dispatcher.down_for()
        absent = isinstance(error, Unreachable) and not error.sent and not self.dispatcher.has_answered
        malformed = isinstance(error, ServerFault) and error.answered
        if down is not None and (absent or malformed or down[0] >= self.dispatcher.patience):
            # Waiting does not mend a server whose answers are malformed.
            # A server that was never reached is more likely a wrong address than an outage.
            self.last_failure = error
            self.fail(error)
            raise asyncio.CancelledError
        return counts

    def _is_servers_fault(self, server: ModelServer, begun: float, error: ProviderError) -> bool:
        """Return whether a unit with no tries left should wait for its server instead of failing."""
        if (
            not error.retryable
            or retry_after_of(error) > self.patience.longest_retry_after
            or self.dispatcher.is_shut
        ):
            return False
        if isinstance(error, RateLimited) and server.answered_at < begun and not server.is_down:
            # The server has answered no call at all since the first try of this unit.
            server.went_down(self.dispatcher.get_time(), error)
        return server.is_down

    def _raise_or_record(self, error: ProviderError) -> None:
        """Decide whether an error concerns this unit only or ends the run.

        Raises CancelledError if the error is not due to the unit, which then stays pending.
        """
        no_end = isinstance(error, RateLimited) and retry_after_of(error) > self.patience.longest_retry_after
        is_moved = isinstance(error, Rejected) and 300 <= error.status < 400
        # All other units would be refused in the same way.
        if isinstance(error, KeyProblem) or no_end or is_moved:
            self.fail(error)
            raise asyncio.CancelledError
        not_found = isinstance(error, Rejected) and error.status == NOT_FOUND
        is_about_unit = isinstance(error, Rejected) and not not_found
        if self.dispatcher.is_shut and not is_about_unit:
            raise asyncio.CancelledError
        self.last_failure = error
        if is_about_unit:
            # Such a refusal is more likely about the unit's text (too long, filtered) than about the server.
            self._refused += 1
            if self._refused >= HOPELESS_REFUSALS and self._answered_at == float("-inf"):
                self.fail(error)
        elif not_found:
            self._not_found += 1
            if self._not_found >= UNKNOWN_MODEL:
                self.fail(error)


def _without_end(attempts: list[Attempt]) -> list[Attempt]:
    """Return the attempts for a unit whose last call was not made, so that the next run judges the unit again."""
    last = attempts[-1]
    reason = (
        f"{last.parsed.reason or 'the reply is complete'}; the run ended before the next call for this unit"
    )
    return [*attempts[:-1], replace(last, parsed=Parsed(Status.FAILED, reason=reason))]
