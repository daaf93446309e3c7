"""One unit's calls: sent until there is an answer, repaired once, given up on when it never comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from judge.errors import AdjudgeError, KeyProblem, ProviderError, RateLimited, Rejected, ServerFault
from judge.parse import Parsed
from judge.providers.base import Provider
from judge.runner.budget import Budget, Claim
from judge.runner.gate import Gate
from judge.runner.requests import Asker
from judge.runner.retry import Patience, told_to_wait
from judge.store.runs import RequestRecord
from judge.types import Reply, Request, Status

HOPELESS = 3
"""This many units given up on, none of which saw any call answered meanwhile, and the run stops."""
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


async def open_patiently(provider: Provider, patience: Patience) -> None:
    """Open a provider, again while its server is busy or faulty; one that is not there is not waited for."""
    tries = 0
    while True:
        try:
            await provider.open()
            return
        except (RateLimited, ServerFault) as error:
            tries += 1
            wait = patience.wait(error, tries)
            if wait is None:
                raise
            await asyncio.sleep(wait)


class Caller:
    """Sends requests within gate, patience and budget.

    `stop` ends the sending for a reason, `fail` for an error; both shut the gate, and whoever waits
    to send is then cancelled, which leaves the unit pending.
    """

    def __init__(
        self,
        asker: Asker,
        provider: Provider,
        gate: Gate,
        patience: Patience,
        budget: Budget,
        stop: Callable[[str], None],
        fail: Callable[[AdjudgeError], None],
    ) -> None:
        self.asker, self.provider, self.gate, self.patience = asker, provider, gate, patience
        self.budget, self.stop, self.fail = budget, stop, fail
        self.last_failure: ProviderError | None = None
        self._answered_at = float("-inf")
        self._hopeless = 0
        self._refused = 0

    async def judge(self, request: Request, record: RequestRecord, claim: Claim) -> list[Attempt]:
        """Every attempt on one unit; the last one counts.

        The slot of the gate is taken already, and the budget's claim is held. One repair follows a reply that cannot
        be read. Where the model reasons first, that is an attempt of its own, and the answer the next one. Raises
        CancelledError when the run is being stopped before the unit's end.
        """
        first = await self._attempt(request, record, claim)
        if not self.asker.reasons_first:
            return await self._repaired(request, first)
        if first.reply is None or first.parsed.status is not Status.OK:
            return [first]
        asked = self.asker.conclude(request, first.reply)
        return [first, *await self._repaired(asked, await self._next(asked))]

    async def _repaired(self, request: Request, first: Attempt) -> list[Attempt]:
        if first.parsed.status is not Status.UNPARSED or first.reply is None:
            return [first]
        second = await self._next(
            self.asker.repair(request, first.reply, first.parsed.reason or "not readable")
        )
        # A repair that is refused (too long now, perhaps) leaves what there was; one that found no
        # server leaves a unit that the next run takes up again.
        return [first] if isinstance(second.error, Rejected) else [first, second]

    async def _next(self, request: Request) -> Attempt:
        """One more call on a unit, when the budget and the gate have room for it."""
        claim = self.budget.claim(request)
        if not await self.budget.room(claim):
            self.stop(self.budget.reason)
        self.budget.hold(claim)
        try:
            await self.gate.enter(claim.estimate)
        except BaseException:
            self.budget.release(claim)
            raise
        return await self._attempt(request, self.asker.record(request), claim)

    async def _attempt(self, request: Request, record: RequestRecord, claim: Claim) -> Attempt:
        begun = time.monotonic()
        try:
            reply, latency = await self._send(request, claim)
        except ProviderError as error:
            self._give_up(error, begun)
            return Attempt(record, Parsed(Status.FAILED, reason=str(error)), error=error)
        finally:
            self.budget.release(claim)
        return Attempt(record, self.asker.parse(reply, request), reply, latency)

    async def _send(self, request: Request, claim: Claim) -> tuple[Reply, float]:
        """Send until there is a reply, within patience. The slot is given back before every wait."""
        tries = 0
        while True:
            sent = time.monotonic()
            try:
                reply = await self._complete(request, claim)
            except ProviderError as error:
                tries += 1
                if isinstance(error, RateLimited):
                    self.gate.limited(error.retry_after, sent)
                wait = self.patience.wait(error, tries)
                if wait is None:
                    raise
            else:
                self._answered_at = time.monotonic()
                self._hopeless = 0
                self.gate.succeeded(reply.rate)
                return reply, self._answered_at - sent
            finally:
                self.gate.leave()
            if not await self.budget.again(claim):
                self.stop(self.budget.reason)
            await self.gate.rest(wait)
            await self.gate.enter(claim.estimate)

    async def _complete(self, request: Request, claim: Claim) -> Reply:
        """One call, counted however it ends: cancelled ones too, which the server may go on with."""
        try:
            reply = await self.provider.complete(request)
        except BaseException as error:
            self.budget.failed(claim, error)
            raise
        self.budget.answered(claim, reply.usage)
        return reply

    def _give_up(self, error: ProviderError, begun: float) -> None:
        """Find out whether the unit or the whole run has no chance. Raises CancelledError when the
        error says nothing about the unit: it stays pending."""
        no_end = isinstance(error, RateLimited) and told_to_wait(error) > self.patience.most_told
        if isinstance(error, KeyProblem) or no_end:
            self.fail(error)
            raise asyncio.CancelledError
        own_fault = isinstance(error, Rejected) and error.status != NOT_FOUND
        if self.gate.is_shut and not own_fault:
            raise asyncio.CancelledError
        self.last_failure = error
        if own_fault:
            # More likely about its own text than about the server.
            self._refused += 1
            if self._refused >= HOPELESS_REFUSALS and self._answered_at == float("-inf"):
                self.fail(error)
        elif self._answered_at < begun:
            self._hopeless += 1
            if self._hopeless >= HOPELESS:
                self.fail(error)
