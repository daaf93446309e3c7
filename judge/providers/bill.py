"""What a server bills for a call: its counts of tokens, and the cost that some servers report."""

from __future__ import annotations

from collections.abc import Mapping

from judge.types import Json, Usage

MOST_NUMBER = 2**53
"""Counts beyond are no counts (and beyond 2**63 no database takes them)."""
TICKS_PER_DOLLAR = 1e10
MOST_DOLLARS = 1e6
"""No call costs more: what a server says beyond is an error of its."""


def usage(*counts: Json) -> Usage:
    """Input, output and cached tokens; what is no count is None."""
    return Usage(*(counted(n) for n in counts))


def billed(used: Json, cached: Json) -> Usage:
    """The tokens that an OpenAI-compatible server bills, from the `usage` of its answer.

    Several vendors count reasoning in `total_tokens` alone, so the output is the larger of `completion_tokens` and
    `total_tokens - prompt_tokens`; where the input is unknown, all of the total may be output. It is unknown where one of
    them is there and no count: the other may be as wrong.
    """
    used = used if isinstance(used, dict) else {}
    into, out, total = (counted(used.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    if any(
        used.get(f"{name}_tokens") is not None and n is None
        for name, n in (("completion", out), ("total", total))
    ):
        out = None
    elif total is not None:
        out = max(out or 0, total - (into or 0))
    read = counted(cached)
    # More than all of the input is no count of a part of it, and a list of prices refuses it.
    read = None if read is not None and into is not None and read > into else read
    return Usage(into, out, read, cost=reported_cost(used))


def reported_cost(used: Mapping[str, Json]) -> float | None:
    """What the server says that the call cost, in US dollars; None where it does not, or says what is no amount.

    https://openrouter.ai/docs/use-cases/usage-accounting and https://docs.x.ai/developers/cost-tracking
    """
    costs = [used.get("cost"), used.get("cost_in_usd_ticks")]
    for cost, unit in zip(costs, (1.0, TICKS_PER_DOLLAR), strict=True):
        # Compared before it is divided: whole numbers have no end, and the largest cannot be.
        if not isinstance(cost, int | float) or isinstance(cost, bool):
            continue
        if 0 <= cost <= MOST_DOLLARS * unit:
            return cost / unit
    return None


def counted(value: Json) -> int | None:
    """A count out of an answer; None for what is none (a text, a fraction, below 0, beyond any count)."""
    if isinstance(value, float) and value.is_integer():  # some gateways write 12.0
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_NUMBER
    return value if is_count else None
