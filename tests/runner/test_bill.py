"""The bill: what a server says it took is charged in full, and limits hold for it.

Each call of these runs has about 400 tokens in by the server's count and sets some 1,900 aside (a token a byte of the
request and 512 of the reply), so that limits end the run within its 60 units.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judge.providers import anthropic, bill
from judge.runner import RunReport
from judge.types import Reply, Request, Usage
from tests.loopback.openai_server import OpenAIServer
from tests.runner.helpers import plan, run, select, served

UNITS = 60
PRICES = {"openai/loopback": {"input": 1.0, "output": 10.0}}
"""US dollars for a million tokens."""
INTO, OUT, HIDDEN = 400, 10, 3_000


class Billing(OpenAIServer):
    """Notes what its owner bills for each call: tokens, and dollars by the prices above."""

    def __init__(self, usage: dict[str, Any], billed: tuple[int, int]) -> None:
        super().__init__(delay=0.02)
        self.usage, self.billed = usage, billed
        self.in_flight = self.most_in_flight = 0

    @property
    def bill_tokens(self) -> int:
        return self.requests * sum(self.billed)

    @property
    def bill_dollars(self) -> float:
        return self.requests * (self.billed[0] * 1.0 + self.billed[1] * 10.0) / 1e6


def counts(into: Any, out: Any, total: Any) -> dict[str, Any]:
    return {"prompt_tokens": into, "completion_tokens": out, "total_tokens": total}


RIGHT = counts(INTO, OUT, INTO + OUT)
MISSING = counts(..., ..., ...)
KINDS: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "right": (RIGHT, (INTO, OUT)),
    "reasoning in the total alone": (counts(INTO, OUT, INTO + OUT + HIDDEN), (INTO, OUT + HIDDEN)),
    "output in the total alone": (counts(INTO, ..., INTO + OUT + HIDDEN), (INTO, OUT + HIDDEN)),
    # What is no count says nothing: the server may have billed all that the call could take.
    "missing": (MISSING, (INTO, 500)),
    "null": (counts(None, None, None), (INTO, 500)),
    "negative": (counts(INTO, -OUT, INTO - OUT), (INTO, 500)),
    "a negative total": (counts(INTO, OUT, -1), (INTO, 500)),
    "text": (counts(str(INTO), "ten", "410"), (INTO, 500)),
    "a list": (counts(INTO, [OUT], {}), (INTO, 500)),
    "huge": (counts(INTO, 10**7, INTO + 10**7), (INTO, 10**7)),
    "beyond any count": (counts(INTO, 10**300, 10**300), (INTO, 500)),
    "whole as fractions": (counts(float(INTO), float(OUT), float(INTO + OUT)), (INTO, OUT)),
}


async def ran(db: Path, server: Billing, concurrency: int, **limits: Any) -> RunReport:
    run_plan = plan("openai/loopback", prices=PRICES, concurrency=concurrency, **limits)
    async with server, served(server) as provider:
        server.reset_counts()  # the questions about the server are not what is tested here
        complete = provider.complete

        async def counted(request: Request) -> Reply:
            # In flight for the run: the server may not have read a call that was sent.
            server.in_flight += 1
            server.most_in_flight = max(server.most_in_flight, server.in_flight)
            try:
                return await complete(request)
            finally:
                server.in_flight -= 1

        provider.complete = counted  # type: ignore[method-assign]
        return await run(db, provider, run_plan)


@pytest.mark.parametrize("concurrency", [1, 100])
@pytest.mark.parametrize("limits", [{"max_tokens": 20_000}, {"max_cost": 0.03}], ids=["tokens", "cost"])
@pytest.mark.parametrize(("usage", "billed"), KINDS.values(), ids=KINDS)
async def test_no_more_goes_over_a_limit_than_was_in_flight(
    db: Path,
    usage: dict[str, Any],
    billed: tuple[int, int],
    limits: dict[str, Any],
    concurrency: int,
) -> None:
    server = Billing(usage, billed)
    report = await ran(db, server, concurrency, **limits)
    assert report.spent.tokens >= server.bill_tokens and report.spent.cost >= server.bill_dollars * (1 - 1e-9)
    limit = limits.get("max_tokens") or limits["max_cost"]
    charged = report.spent.tokens if "max_tokens" in limits else report.spent.cost
    if charged > limit:
        # All that was sent was in flight when the first reply told how much a call takes.
        assert report.stopped is not None and "the limit is exceeded by " in report.stopped
        over = charged - limit
        shown = f"{over:,} tokens" if "max_tokens" in limits else f"${over:.4f}"
        assert f"exceeded by {shown} (" in report.stopped
        a_call = charged / server.requests
        assert over <= server.most_in_flight * a_call
        assert charged - server.most_in_flight * a_call <= limit
    elif report.pending:
        assert report.stopped is not None and "another call could exceed the limit" in report.stopped


@pytest.mark.parametrize(
    "kind", ["missing", "null", "negative", "a negative total", "text", "a list", "beyond any count"]
)
async def test_a_reply_without_counts_is_charged_the_most_and_it_is_said(db: Path, kind: str) -> None:
    usage, billed = KINDS[kind]
    report = await ran(db, Billing(usage, billed), 1, max_tokens=20_000)
    replies = sum(report.ended.values())
    assert report.spent.uncounted == replies > 0
    assert report.spent.tokens > replies * (INTO + 512)
    said = report.remarks(plan(max_tokens=20_000))
    assert f"{replies:,} replies have no usable token counts" in said[0]
    [(into, out)] = select(db, "SELECT DISTINCT input_tokens, output_tokens FROM judgements")
    assert into in (None, INTO) and out is None, "nothing is made up"


@pytest.mark.parametrize(
    ("field", "value"), [("cost", 0.02), ("cost_in_usd_ticks", 200_000_000)], ids=["OpenRouter", "xAI"]
)
@pytest.mark.parametrize("concurrency", [1, 100])
async def test_the_cost_that_a_server_reports_is_stored_and_charged_where_it_is_more(
    db: Path, field: str, value: float, concurrency: int
) -> None:
    """By the prices a call costs $0.0005, by the server $0.02."""
    report = await ran(db, server := Billing({**RIGHT, field: value}, (INTO, OUT)), concurrency, max_cost=0.1)
    assert report.spent.cost == pytest.approx(0.02 * server.requests)
    assert report.spent.reported == pytest.approx(0.02 * server.requests)
    stored = select(db, "SELECT DISTINCT cost, reported_cost FROM judgements")
    assert stored == [(pytest.approx(0.02), pytest.approx(0.02))]
    if concurrency == 1:
        assert server.requests == 5 and report.spent.cost == pytest.approx(0.1)
    said = " ".join(report.remarks(plan(max_cost=0.1)))
    n = server.requests
    assert f"${0.02 * n:.4f} for {n:,} replies, ${(0.02 - 0.0005) * n:.4f} more than the price list" in said
    assert report.as_json(plan())["cost"]["reported_usd"] == pytest.approx(0.02 * n)


async def test_a_cost_that_is_less_is_shown_and_the_prices_are_charged(db: Path) -> None:
    report = await ran(db, Billing({**RIGHT, "cost": 0.0001}, (INTO, OUT)), 4)
    assert report.spent.cost == pytest.approx(UNITS * 0.0005)
    assert "$0.0240 less than the price list" in " ".join(report.remarks(plan()))
    assert select(db, "SELECT DISTINCT cost, reported_cost FROM judgements") == [
        (pytest.approx(0.0005), 0.0001)
    ]


async def test_a_cost_without_prices_is_shown(db: Path) -> None:
    server = Billing({**RIGHT, "cost": 0.001}, (INTO, OUT))
    async with server, served(server) as provider:
        report = await run(db, provider, plan("openai/loopback"))
    assert "$0.0600 for 60 replies" in " ".join(report.remarks(plan()))
    assert report.as_json(plan())["cost"]["source"] == "the server"


@pytest.mark.parametrize(
    ("used", "counted"),
    [
        ({"input_tokens": 7, "output_tokens": 2, "cache_read_input_tokens": 3}, Usage(10, 2, 3)),
        ({"input_tokens": "7", "output_tokens": 2}, Usage(None, 2)),
        ({"input_tokens": 7, "output_tokens": -2}, Usage(7, None)),
        ({"input_tokens": 7, "output_tokens": 2, "cache_creation_input_tokens": "x"}, Usage(None, 2)),
        ([], Usage()),
    ],
)
def test_anthropics_counts_that_are_none_lose_no_reply(used: Any, counted: Usage) -> None:
    """The reply is paid for: it was thrown away, and asked for again."""
    body = {"content": [{"type": "text", "text": "y"}], "stop_reason": "end_turn", "usage": used}
    reply = anthropic.reply(body, {})
    assert (reply.text, reply.usage) == ("y", counted)


@pytest.mark.parametrize("name", ["cost", "cost_in_usd_ticks"])
@pytest.mark.parametrize("value", [10**400, 1e300, float("nan"), float("inf"), -1, True, "0.1", None, {}])
def test_what_is_no_cost_loses_no_reply(name: str, value: Any) -> None:
    assert bill.read_usage({**RIGHT, name: value}, None) == Usage(INTO, OUT)


def test_the_total_counts_where_the_input_is_unknown() -> None:
    """All of it may be output: the call was not billed less."""
    for into in (..., "400", -1):
        used = {name: n for name, n in counts(into, OUT, 3_410).items() if n is not ...}
        assert bill.read_usage(used, None) == Usage(None, 3_410)


def test_more_than_the_input_was_not_read_from_a_cache() -> None:
    assert bill.read_usage(RIGHT, INTO) == Usage(INTO, OUT, INTO)
    assert bill.read_usage(RIGHT, INTO + 1) == Usage(INTO, OUT)
