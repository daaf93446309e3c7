"""One unit's calls: sent until there is an answer, repaired once, given up on when it never comes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from judge.errors import AdjudgeError, KeyProblem, ProviderError, RateLimited, Rejected, ServerFault
from judge.parse import Parsed
from judge.providers.base import Provider
from judge.runner.gate import Gate
from judge.runner.requests import Asker, estimate_tokens
from judge.runner.retry import Patience, told_to_wait
from judge.store.runs import RequestRecord
from judge.types import Reply, Request, Status, Usage

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


class Tokens:
    """What this invocation has used, counted in `usage`, and may still use (`limit` None = anything).

    Estimates of calls to come are scaled by how far earlier ones were too low.
    """

    def __init__(self, limit: int | None, usage: Counter[str]) -> None:
        self.limit, self.usage = limit, usage
        self._used = self._foreseen = self._in_flight = 0
        self._ended = asyncio.Event()

    @property
    def spent(self) -> str:
        """Why nothing more is sent."""
        return f"the token budget of {self.limit:,} is used up"

    def fits(self, size: int) -> bool:
        """Whether one more call of this size stays within the limit, calls in flight included."""
        if self.limit is None:
            return True
        scale = max(1.0, self._used / self._foreseen) if self._foreseen else 1.0
        return self._used + scale * (self._in_flight + size) <= self.limit

    async def room(self, size: int) -> bool:
        """Wait while calls in flight may yet use less than foreseen; whether the call then fits."""
        while not self.fits(size) and self._in_flight:
            self._ended.clear()
            await self._ended.wait()
        return self.fits(size)

    def sent(self, size: int) -> None:
        """A call is about to go out."""
        self._in_flight += size

    def ended(self, size: int, usage: Usage | None) -> None:
        """It came to its end; None = without a reply."""
        self._in_flight -= size
        self._ended.set()
        if usage is None:
            return
        for name in ("input_tokens", "output_tokens", "cached_tokens"):
            self.usage[name] += getattr(usage, name) or 0
        self._foreseen += size
        self._used += ((usage.input_tokens or 0) + (usage.output_tokens or 0)) or size


class Caller:
    """Sends requests within gate, patience and token budget.

    `stop` ends the sending for a reason, `fail` for an error; both shut the gate, and whoever waits
    to send is then cancelled, which leaves the unit pending.
    """

    def __init__(
        self,
        asker: Asker,
        provider: Provider,
        gate: Gate,
        patience: Patience,
        tokens: Tokens,
        stop: Callable[[str], None],
        fail: Callable[[AdjudgeError], None],
    ) -> None:
        self.asker, self.provider, self.gate, self.patience = asker, provider, gate, patience
        self.tokens, self.stop, self.fail = tokens, stop, fail
        self.last_failure: ProviderError | None = None
        self._answered_at = float("-inf")
        self._hopeless = 0
        self._refused = 0

    async def judge(self, request: Request, record: RequestRecord, size: int) -> list[Attempt]:
        """Every attempt on one unit; the last one counts.

        The slot of the gate and the tokens are taken already. One repair follows a reply that cannot
        be read. Raises CancelledError when the run is being stopped before the unit's end.
        """
        first = await self._attempt(request, record, size)
        if first.parsed.status is not Status.UNPARSED or first.reply is None:
            return [first]
        again = self.asker.repair(request, first.reply, first.parsed.reason or "not readable")
        size = estimate_tokens(again)
        if not self.tokens.fits(size):
            self.stop(self.tokens.spent)
        await self.gate.enter(size)
        self.tokens.sent(size)
        second = await self._attempt(again, self.asker.record(again), size)
        # A repair that is refused (too long now, perhaps) leaves what there was; one that found no
        # server leaves a unit that the next run takes up again.
        return [first] if isinstance(second.error, Rejected) else [first, second]

    async def _attempt(self, request: Request, record: RequestRecord, size: int) -> Attempt:
        begun = time.monotonic()
        usage = None
        try:
            reply, latency = await self._send(request, size)
            usage = reply.usage
        except ProviderError as error:
            self._give_up(error, begun)
            return Attempt(record, Parsed(Status.FAILED, reason=str(error)), error=error)
        finally:
            self.tokens.ended(size, usage)
        return Attempt(record, self.asker.parse(reply), reply, latency)

    async def _send(self, request: Request, size: int) -> tuple[Reply, float]:
        """Send until there is a reply, within patience. The slot is given back before every wait."""
        tries = 0
        while True:
            sent = time.monotonic()
            try:
                reply = await self.provider.complete(request)
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
            await self.gate.rest(wait)
            await self.gate.enter(size)

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
