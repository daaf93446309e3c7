"""What a run would take, as `judge estimate` and `judge start` ask for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.asking.run import Asking
    from judge.runner.estimate import Forecast, Throughput
    from judge.store import Store


def estimated(store: Store, asked: Asking, pace: Throughput, counted: int = 0) -> Forecast:
    """The estimate for a run; nothing is judged.

    The vendor's counting endpoint is asked for the tokens of `counted` prompts. Raises UsageError where it has none,
    ProviderError where it does not answer.
    """
    from judge.runner.estimate import estimate

    plan, provider = asked.plan, asked.provider
    count = getattr(provider, "count_tokens", None) if counted else None
    if counted and count is None:
        raise UsageError(f"--count: {plan.asked_as or plan.model} has no endpoint that counts tokens")

    async def work() -> Forecast:
        try:
            return await estimate(store, plan, provider, pace, count, counted)
        finally:
            await provider.close()

    return asyncio.run(work())
