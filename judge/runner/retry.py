"""When to try again: exponential back-off with jitter, capped in number."""

import math
import random
from dataclasses import dataclass, field

from judge.errors import ProviderError, RateLimited, ServerFault, Unreachable

CHANCE = 1e-7
"""A unit is given up where so many failures in a row would come to one unit in ten million by chance."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The retry policy. Times are in seconds; tries count from the first call.

    The wait after the n-th try is drawn from the upper half of `base` doubled n - 1 times, at most
    `longest`, and is never shorter than what the server asked for. Refused calls have their own,
    larger number of tries, because the rate controller already spaces them. A server that asks for more than
    `most_told` is not waited for; a later run is. A server that is down is waited for as long as
    `outage`, and a study that cannot be written too.
    """

    tries: int = 6
    rate_limit_tries: int = 12
    base: float = 0.5
    longest: float = 30.0
    most_told: float = 900.0
    outage: float = 1800.0
    draw: random.Random = field(default_factory=random.Random)

    def wait(
        self, error: ProviderError, tries: int, flow: float = math.inf, failing: float = 0.0
    ) -> float | None:
        """Seconds to wait after the failed try number `tries`, None when it is time to give up.

        `flow`: in how many seconds the server has given its last answers to others. A call that was refused waits
        no longer, nor does one whose connection was lost, but for `base`: where others pass it will too, and where
        nothing passes any more that time grows with every try. `failing`: the share of units whose first call failed
        at this server. Where many fail, a unit has more tries, because its failures say little about the unit.
        """
        most = self.rate_limit_tries if isinstance(error, RateLimited) else self.tries
        if failing > 0.0:
            most = max(most, math.ceil(math.log(CHANCE) / math.log(failing)))
        retry_after = told_to_wait(error)
        if not error.retryable or tries >= most or retry_after > self.most_told:
            return None
        longest = self.longest
        if isinstance(error, RateLimited):
            longest = min(longest, flow)
        elif isinstance(error, Unreachable) and error.sent and not error.timed_out:
            longest = min(longest, max(self.base, flow))
        backoff = self.draw.uniform(0.5, 1.0) * min(longest, self.base * 2.0 ** (tries - 1))
        return max(backoff, retry_after)


def told_to_wait(error: ProviderError) -> float:
    """Seconds that the server asked to be left alone, 0 when it did not say."""
    return (error.retry_after or 0.0) if isinstance(error, RateLimited | ServerFault) else 0.0
