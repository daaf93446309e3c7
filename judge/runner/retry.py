"""The retry policy: exponential backoff with jitter, and a maximum number of tries."""

import math
import random
from dataclasses import dataclass, field

from judge.errors import ProviderError, RateLimited, ServerFault, Unreachable

CHANCE = 1e-7
"""The probability that all tries of a unit fail by chance alone: one in ten million."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The retry policy. Times are in seconds, and the first call is the first try.

    The wait after try n is random: between 50 % and 100 % of `base * 2**(n - 1)` or of `longest`, whichever
    is smaller. The wait is never shorter than the server's Retry-After. The maximum number of tries is larger
    for refused calls, because the rate controller already spaces these calls. They are retried for at least
    `refused_for`, because many limits are per minute. If a Retry-After exceeds `longest_retry_after`, the run
    ends and can be resumed later. `outage` is the maximum time that a run waits for a server that is down, or
    for a study that another program has locked.
    """

    tries: int = 6
    rate_limit_tries: int = 12
    base: float = 0.5
    longest: float = 30.0
    longest_retry_after: float = 900.0
    refused_for: float = 120.0
    outage: float = 1800.0
    draw: random.Random = field(default_factory=random.Random)
    """The source of jitter, which prevents clients that were refused at the same time from retrying at the
    same time.
    """

    def wait(
        self,
        error: ProviderError,
        tries: int,
        flow: float = math.inf,
        failing: float = 0.0,
        elapsed: float = math.inf,
    ) -> float | None:
        """Return the seconds to wait after failed try number `tries`, or None to give up.

        `elapsed` is the time in seconds since the first try.

        `flow` is the time in seconds over which the server sent its last few answers to other calls. A
        refused call waits at most that long. A call whose connection was lost waits at most the longer of
        `flow` and `base`.

        `failing` is the share of units whose first call failed at this server. If the share is large, more
        tries are allowed, because a failure then says little about the unit.
        """
        most = self.rate_limit_tries if isinstance(error, RateLimited) else self.tries
        if failing > 0.0:
            # If each try fails at random with probability `failing`, this many failures in a row have the probability CHANCE.
            most = max(most, math.ceil(math.log(CHANCE) / math.log(failing)))
        if tries == 1 and isinstance(error, Unreachable) and error.stale:
            # Nothing is wrong with the server: it only closed an idle connection.
            return 0.0
        retry_after = retry_after_of(error)
        is_refused = isinstance(error, RateLimited)
        is_over = tries >= most and not (is_refused and elapsed < self.refused_for)
        if not error.retryable or is_over or retry_after > self.longest_retry_after:
            return None
        # A server that answers other calls will soon answer this one.
        longest = self.longest
        # After this many refusals it will not: its limit may be per minute, and the next minute has to begin first.
        if is_refused and tries < most:
            longest = min(longest, flow)
        elif isinstance(error, Unreachable) and error.sent and not error.timed_out:
            longest = min(longest, max(self.base, flow))
        backoff = self.draw.uniform(0.5, 1.0) * min(longest, self.base * 2.0 ** (tries - 1))
        return max(backoff, retry_after)


def retry_after_of(error: ProviderError) -> float:
    """Return the server's Retry-After in seconds, or 0 if there is none."""
    return (error.retry_after or 0.0) if isinstance(error, RateLimited | ServerFault) else 0.0
