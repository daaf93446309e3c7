"""When to try again: exponential back-off with full jitter, capped in number."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from judge.errors import ProviderError, RateLimited, ServerFault


@dataclass(frozen=True, slots=True)
class Patience:
    """The retry policy. `base` and `longest` are in seconds; tries count from the first call.

    Rate limits have their own, larger number of tries: the gate already spaces those calls.
    """

    tries: int = 6
    rate_limit_tries: int = 12
    base: float = 0.5
    longest: float = 30.0
    draw: random.Random = field(default_factory=random.Random)

    def wait(self, error: ProviderError, tries: int) -> float | None:
        """Seconds to wait after the failed try number `tries`, None when it is time to give up."""
        most = self.rate_limit_tries if isinstance(error, RateLimited) else self.tries
        if not error.retryable or tries >= most:
            return None
        backoff = self.draw.uniform(0.5, 1.0) * min(self.longest, self.base * 2.0 ** (tries - 1))
        told = error.retry_after if isinstance(error, RateLimited | ServerFault) else None
        return max(backoff, told or 0.0)
