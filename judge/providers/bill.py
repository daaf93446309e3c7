"""The usage of a call: token counts, and the cost that some servers report."""

from __future__ import annotations

from collections.abc import Mapping

from judge.types import Json, Usage

MOST_NUMBER = 2**53
"""Counts above this are treated as invalid (SQLite cannot store counts above 2**63)."""
TICKS_PER_DOLLAR = 1e10
MOST_DOLLARS = 1e6
"""No call costs more than this. A higher amount is an error made by the server."""


def usage(*counts: Json) -> Usage:
    """Return input, output and cached tokens; invalid counts are None."""
    return Usage(*(counted(n) for n in counts))


def billed(used: Json, cached: Json) -> Usage:
    """Return the tokens that an OpenAI-compatible server bills, from the `usage` of its answer.

    Several vendors count reasoning only in `total_tokens`, so the output is the larger of `completion_tokens`
    and `total_tokens - prompt_tokens`. If the input is unknown, the whole total may be output. If one of the
    two counts is present but invalid, the output is unknown, because the other may be just as wrong.
    """
    used = used if isinstance(used, dict) else {}
    into, out, total = (counted(used.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    if any(
        used.get(f"{name}_tokens") is not None and n is None
        for name, n in (("completion", out), ("total", total))
    ):
        out = None
    elif total is not None:
        # xAI documents that `total_tokens` includes reasoning that `completion_tokens` lacks; the bill is for the total.
        out = max(out or 0, total - (into or 0))
    cache_read = counted(cached)
    # More cached tokens than input tokens is an error of the server, and the price calculation refuses it.
    cache_read = None if cache_read is not None and into is not None and cache_read > into else cache_read
    return Usage(into, out, cache_read, cost=reported_cost(used))


def reported_cost(used: Mapping[str, Json]) -> float | None:
    """Return the cost that the server reports, in US dollars, or None if there is no valid amount.

    https://openrouter.ai/docs/use-cases/usage-accounting and https://docs.x.ai/developers/cost-tracking
    """
    costs = [used.get("cost"), used.get("cost_in_usd_ticks")]
    for cost, unit in zip(costs, (1.0, TICKS_PER_DOLLAR), strict=True):
        # Compared before the division: JSON integers have no upper limit, and a huge one cannot be converted
        # to float.
        if not isinstance(cost, int | float) or isinstance(cost, bool):
            continue
        if 0 <= cost <= MOST_DOLLARS * unit:
            return cost / unit
    return None


def counted(value: Json) -> int | None:
    """Return a count from an answer, or None if it is not a whole number from 0 to MOST_NUMBER."""
    # Some gateways write 12.0.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_NUMBER
    return value if is_count else None
