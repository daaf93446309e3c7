"""The budget of an invocation: limits on the tokens and money that its calls may use.

Before a call is sent, the maximum that it can use is reserved: one token for each UTF-8 byte of the request
(no tokenizer produces more), an allowance for the chat format, and the whole token limit of the reply. The
reply reports the actual use. A lost call is one that ended without a reply but may be billed. Its whole
reserve counts as used.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from judge.errors import KeyProblem, RateLimited, Rejected, Unreachable
from judge.runner.prices import Price
from judge.runner.requests import estimate_tokens
from judge.types import Json, RateState, Request, Usage

PER_MESSAGE = 16
"""Maximum number of tokens that a chat template adds to a message."""
PER_CALL = 64
"""Maximum number of tokens that a chat template adds to a whole request."""
HAIR = 1e-9
"""Relative tolerance for rounding errors in sums of costs."""
LEAST_DIFFERENCE = 0.005
"""Relative cost differences below this are due to rounding and are not reported."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """The maximum use that is reserved for one call. `tokens` counts the request and the reply, `output`
    counts the reply alone, and `cost` is in US dollars.

    `estimate` is the expected number of tokens, which the rate controller uses.
    """

    estimate: int
    tokens: int
    output: int
    cost: float

    def get_upper_bound(self, usage: Usage, price: Price | None) -> tuple[int, float]:
        """Return an upper bound on the tokens and the cost of a call, in US dollars.

        The bound also holds if the server reported only one of the two token counts.
        """
        # The excess of a reported count is added to the reserve, because the other count may still be at its maximum.
        into = max(0, (usage.input_tokens or 0) - (self.tokens - self.output))
        out = max(0, (usage.output_tokens or 0) - self.output)
        return self.tokens + into + out, self.cost + (
            0.0 if price is None else price.get_upper_bound(into, out)
        )


@dataclass(slots=True)
class Spent:
    """The tokens and money (`cost`, in US dollars) that an invocation has used.

    `lost` is the number of calls that ended without a reply but may be billed. `uncounted` is the number of
    replies without token counts. These calls and replies count as the maximum that they could have used.
    `reporting` is the number of replies for which the server reported a cost, and `reported` is the sum of
    these costs. `computed` is the cost of the same replies according to the price list.
    """

    tokens: int = 0
    cost: float = 0.0
    lost: int = 0
    uncounted: int = 0
    reporting: int = 0
    reported: float = 0.0
    computed: float = 0.0

    def charge(self, usage: Usage, price: Price | None, most_tokens: int, most_cost: float) -> float:
        """Count a reply. Return its cost: the larger of the list price and the cost that the server reported.

        If a token count is unknown, `most_tokens` and `most_cost` replace the token count and the list price.
        """
        is_counted = has_counts(usage)
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        computed = None if price is None else price.cost(usage)
        # The larger amount counts, because it is not known which of the two is billed.
        cost = max(most_cost if computed is None else computed, usage.cost or 0.0)
        self.tokens += tokens if is_counted else most_tokens
        self.cost += cost
        self.uncounted += not is_counted
        if usage.cost is not None:
            self.reporting += 1
            self.reported += usage.cost
            self.computed += most_cost if computed is None else computed
        return cost

    def add(self, other: Spent) -> None:
        """Add another tally to this one."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def remarks(self, is_counted: bool) -> list[str]:
        """Return remarks on the cost.

        `is_counted` is True if there is a price or a limit. Only then do token counts matter.
        """
        said = []
        if self.uncounted and is_counted:
            said.append(
                f"{self.uncounted:,} replies have no usable token counts (missing, negative or not numeric); each of "
                "them counts as the maximum that its call could have used"
            )
        difference = self.reported - self.computed
        if self.reporting and self.computed and abs(difference) > LEAST_DIFFERENCE * self.computed:
            said.append(
                f"the server reports ${self.reported:.4f} for {self.reporting:,} replies, ${abs(difference):.4f} "
                f"{'more' if difference > 0 else 'less'} than the price list; the larger amount counts for each reply"
            )
        elif self.reporting and not self.computed:
            said.append(f"the server reports ${self.reported:.4f} for {self.reporting:,} replies")
        return said


@dataclass(slots=True)
class Opened:
    """The cost of opening a provider: its start-up probes and the time that they took, in seconds.

    `begun` is the time of the first probe (`time.monotonic`), or None if there was none. `rates` maps each
    address to its last rate headers and their arrival time (by the event loop's clock).
    """

    calls: int = 0
    answered: int = 0
    """Number of calls that the server answered, including those in which it refused a feature."""
    usage: Counter[str] = field(default_factory=Counter)
    spent: Spent = field(default_factory=Spent)
    seconds: float = 0.0
    begun: float | None = None
    rates: dict[str, tuple[RateState, float]] = field(default_factory=dict)

    def as_json(self, priced: bool) -> dict[str, Json]:
        """Return the usage in the form that is stored with a run.

        A lost call (without a reply) adds its maximum cost to the cost, but nothing to the token counts.
        """
        return {
            "calls": self.calls,
            "lost": self.spent.lost,
            "input_tokens": self.usage["input_tokens"],
            "output_tokens": self.usage["output_tokens"],
            "cost_usd": self.spent.cost if priced else None,
        }


class Budget:
    """Counts the tokens and the cost of calls against limits (None = no limit).

    `usage` counts the tokens of replies. `spent` also counts lost calls, which ended without a reply but may
    be billed. `before` contains the tokens and US dollars that earlier invocations of the run used. They
    count against the same limits.
    """

    def __init__(
        self,
        max_tokens: int | None,
        max_cost: float | None,
        price: Price | None,
        usage: Counter[str],
        spent: Spent,
        before: tuple[int, float] = (0, 0.0),
    ) -> None:
        self.max_tokens, self.max_cost, self.price = max_tokens, max_cost, price
        self.usage, self.spent, self.before = usage, spent, before
        self._reserved_tokens = 0
        self._reserved_cost = 0.0
        self._n_reserved = 0
        self._over = self._over_cost = 1.0
        """The largest factor by which a server's count has exceeded a reserve, in tokens and in money. The other reserves are
        multiplied by this factor, because the server may exceed them too."""
        self._ended = asyncio.Event()
        self._schema: tuple[Mapping[str, Json] | None, int] = (None, 0)

    @property
    def reason(self) -> str:
        """The reason why no more calls are sent."""
        tokens, cost = self.before
        earlier = f" ({tokens:,} were used by earlier commands)" if tokens else ""
        limits = [] if self.max_tokens is None else [f"{self.max_tokens:,} tokens{earlier}"]
        earlier = f" (${cost:.4f} was used by earlier commands)" if cost else ""
        limits += [] if self.max_cost is None else [f"${self.max_cost:g}{earlier}"]
        return f"another call could exceed the limit of {' and '.join(limits)}"

    def claim(self, request: Request) -> Reserve:
        """Return the tokens and the cost to reserve for a request."""
        # No tokenizer produces more tokens than the text has bytes.
        into = PER_CALL + sum(_bytes(m.content) + PER_MESSAGE for m in request.messages)
        if request.schema is not None:
            into += self._schema_bytes(request.schema)
        out = request.max_tokens
        return Reserve(
            estimate_tokens(request),
            into + out,
            out,
            0.0 if self.price is None else self.price.get_upper_bound(into, out),
        )

    def _schema_bytes(self, schema: Mapping[str, Json]) -> int:
        # A run has one schema, so it is encoded once.
        if self._schema[0] is not schema:
            self._schema = (schema, len(json.dumps(schema)))
        return self._schema[1]

    def fits(self, claim: Reserve | None = None) -> bool:
        """Return whether another call fits within the limits.

        Everything that is already used, or reserved for other calls, counts against the limits.
        """
        tokens = math.ceil(self._over * (self._reserved_tokens + (claim.tokens if claim else 0)))
        cost = self._over_cost * (self._reserved_cost + (claim.cost if claim else 0.0))
        return (self.max_tokens is None or self._all_tokens + tokens <= self.max_tokens) and (
            self.max_cost is None or self._all_cost + cost <= self.max_cost
        )

    @property
    def _all_tokens(self) -> int:
        return self.before[0] + self.spent.tokens

    @property
    def _all_cost(self) -> float:
        return self.before[1] + self.spent.cost

    async def room(self, claim: Reserve) -> bool:
        """Wait until the call fits within the limits, or until no call is in flight. Return whether it fits.

        A call in flight releases the unused part of its reserve when it ends.
        """
        # Without a call in flight nothing will be released, and the wait would never end.
        while not self.fits(claim) and self._n_reserved:
            self._ended.clear()
            await self._ended.wait()
        return self.fits(claim)

    async def allow_retry(self, claim: Reserve) -> bool:
        """Return whether the limits allow a retry of this call.

        The budget that is reserved for the call stays reserved, whatever the result.
        """
        if self.fits():
            return True
        # Two calls that wait for each other's reserves would wait forever.
        self.release(claim)
        try:
            return await self.room(claim)
        finally:
            self.reserve(claim)

    def reserve(self, claim: Reserve) -> None:
        """Reserve the maximum use of a call that is about to be sent."""
        self._n_reserved += 1
        self._reserved_tokens += claim.tokens
        self._reserved_cost += claim.cost

    def release(self, claim: Reserve) -> None:
        """Release the reserve of a call that has ended and has been counted."""
        self._n_reserved -= 1
        self._reserved_tokens -= claim.tokens
        # Rounding errors of the sums must not remain when nothing is reserved.
        self._reserved_cost = self._reserved_cost - claim.cost if self._n_reserved else 0.0
        self._ended.set()

    def count_reply(self, claim: Reserve, usage: Usage) -> None:
        """Count a reply. If a token count is missing, the maximum is counted."""
        for name in ("input_tokens", "output_tokens", "cached_tokens"):
            self.usage[name] += getattr(usage, name) or 0
        tokens, most_cost = claim.get_upper_bound(usage, self.price)
        used = (usage.input_tokens or 0) + (usage.output_tokens or 0) if has_counts(usage) else tokens
        # A server that exceeds one reserve may exceed those in flight by as much: `fits` multiplies them.
        self._over = max(self._over, used / claim.tokens)
        self._over_cost = max(self._over_cost, self._over)
        most_cost = max(most_cost, self._over_cost * claim.cost)
        cost = self.spent.charge(usage, self.price, max(tokens, self._tokens(claim)), most_cost)
        # Both are sums of fractions, so a tiny excess is a rounding error.
        if cost > claim.cost * (1 + HAIR) > 0:
            self._over_cost = max(self._over_cost, cost / claim.cost)

    def count_failure(self, claim: Reserve, error: BaseException) -> None:
        """Count a call without a reply, unless the server never received it or refused it."""
        if not _may_be_billed(error):
            return
        self.spent.lost += 1
        self.spent.tokens += self._tokens(claim)
        self.spent.cost += self._over_cost * claim.cost

    def _tokens(self, claim: Reserve) -> int:
        return math.ceil(self._over * claim.tokens)

    @property
    def crossed(self) -> str | None:
        """The message for an exceeded limit, or None if no limit is exceeded.

        A limit can only be exceeded if a server bills more than the maximum that was reserved for a call.
        """
        over, said, factor = [], [], 1.0
        # Earlier invocations may have used more than this limit allows. An invocation that sends nothing does not
        # exceed a limit.
        if self.max_tokens is not None and self.spent.tokens and self._all_tokens > self.max_tokens:
            over.append(f"{self._all_tokens - self.max_tokens:,} tokens")
            said.append(f"{self._all_tokens:,} tokens of {self.max_tokens:,}")
            factor = self._over
        if self.max_cost is not None and self.spent.cost and self._all_cost > self.max_cost * (1 + HAIR):
            over.append(f"${self._all_cost - self.max_cost:.4f}")
            said.append(f"${self._all_cost:.4f} of ${self.max_cost:g}")
            factor = max(factor, self._over_cost)
        if not said:
            return None
        return (
            f"the limit is exceeded by {' and '.join(over)} ({' and '.join(said)}): the server billed {factor:.1f} times the "
            "maximum use of a call while other calls were in flight"
        )


def has_counts(usage: Usage) -> bool:
    """Return whether the server reported both token counts."""
    return usage.input_tokens is not None and usage.output_tokens is not None


def _may_be_billed(error: BaseException) -> bool:
    if isinstance(error, Unreachable):
        return error.sent
    # Vendors do not bill a refused call. A 5xx error, however, may be sent after the work was done.
    return not isinstance(error, KeyProblem | RateLimited | Rejected)


def _bytes(text: str) -> int:
    # A text from JSON may contain a lone surrogate, which strict UTF-8 refuses.
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
