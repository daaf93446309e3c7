"""The usage of a call: its token counts and, if the server reports it, the cost."""

from __future__ import annotations

from collections.abc import Mapping

from judge.types import Json, Usage

MOST_NUMBER = 2**53
"""The largest valid count. SQLite cannot store integers of 2**63 or more."""
TICKS_PER_DOLLAR = 1e10
MOST_DOLLARS = 1e6
"""The maximum plausible cost of one call, in US dollars. A higher amount is treated as a server error."""


def usage(*counts: Json) -> Usage:
    """Return the usage with these counts: input, output, cached and written tokens.

    Invalid counts become None.
    """
    return Usage(*(read_count(n) for n in counts))


def read_usage(used: Json, cached: Json) -> Usage:
    """Return the tokens that an OpenAI-compatible server bills, from the `usage` field of its response.

    Several vendors count reasoning tokens only in `total_tokens`, so the output count is the larger of
    `completion_tokens` and `total_tokens - prompt_tokens`. If the input count is unknown, all of
    `total_tokens` is counted as output. If `completion_tokens` or `total_tokens` is present but invalid, the
    output count is unknown, because the other number may also be wrong.
    """
    used = used if isinstance(used, dict) else {}
    into, out, total = (read_count(used.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    if any(
        used.get(f"{name}_tokens") is not None and n is None
        for name, n in (("completion", out), ("total", total))
    ):
        out = None
    elif total is not None:
        # xAI documents that `total_tokens` includes reasoning that `completion_tokens` lacks; the bill is for the total.
        out = max(out or 0, total - (into or 0))
    cache_read = read_count(cached)
    # More cached tokens than input tokens is a server error, which the price calculation would reject.
    cache_read = None if cache_read is not None and into is not None and cache_read > into else cache_read
    return Usage(into, out, cache_read, cost=read_cost(used))


def read_cost(used: Mapping[str, Json]) -> float | None:
    """Return the cost in US dollars that the server reports, or None if it does not report a valid amount.

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


def read_count(value: Json) -> int | None:
    """Return a count from a response, or None if the value is not an integer from 0 to MOST_NUMBER."""
    # Some gateways write 12.0.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_NUMBER
    return value if is_count else None
