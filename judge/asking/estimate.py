"""The cost of a run before it starts, for `judge run --estimate` and `judge start`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge.asking.run import Asking
    from judge.providers.base import Provider
    from judge.runner.estimate import Forecast
    from judge.runner.plan import Plan
    from judge.store import Store
    from judge.types import Message


def first_prompt(store: Store, plan: Plan, provider: Provider) -> tuple[Message, ...]:
    """Return the messages of the plan's first unit, empty where there is none."""
    from judge.runner.requests import Asker
    from judge.store import selection

    asker = Asker(plan.task, plan.model, provider, plan.sampling)
    selection.select(store, plan.task, plan.selection)
    unit = next(iter(selection.pending(store, plan.task, run_id="")), None)
    return () if unit is None else tuple(asker.request(unit, 0)[0].messages)


def estimated(store: Store, asking: Asking) -> Forecast:
    """Return the estimate for a run; nothing is judged."""
    from judge.runner.estimate import estimate

    try:
        return estimate(store, asking.plan, asking.provider)
    finally:
        asyncio.run(asking.provider.close())
