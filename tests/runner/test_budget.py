"""Limits of tokens, money and time are never crossed, whatever becomes of the calls."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.asking.run import Asking
from judge.asking.run import run as asking_run
from judge.errors import (
    BadInput,
    LimitReached,
    ProviderError,
    RateLimited,
    ServerFault,
    Unreachable,
    UsageError,
)
from judge.providers import base
from judge.providers.replicas import make_replicas
from judge.runner import RunReport, open_patiently
from judge.runner.budget import Opened
from judge.runner.prices import Price, find, read_prices
from judge.store import Store
from judge.store.selection import Selection
from judge.types import Json, Reply, Request, Usage
from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.runner.helpers import Fake, label, make_study, numbered, plan, run, select
from tests.runner.virtual import simulated

UNITS = 60
FIRST = 8
VENDORS_OWN = {"own_server": True}
FILE = {"test/model": {"input": 1.0, "output": 4.0, "cached": 0.1}}


class Greedy(Fake):
    """A model that uses every token that a call can take, and counts them as its vendor would.

    A token a byte and the whole limit out; `used` has lost calls too, which were worked on.
    """

    def __init__(self, *failures: ProviderError | None, delay: float = 0.0) -> None:
        super().__init__(self._answer, delay)
        self.used = 0
        self.failures = list(failures)

    def _answer(self, request: Request, tries: int) -> Reply:
        into = sum(len(m.content.encode()) for m in request.messages) + len(json.dumps(request.schema))
        failure = self.failures.pop() if self.failures else None
        if isinstance(failure, RateLimited):
            raise failure
        self.used += into + request.max_tokens
        if failure is not None:
            raise failure
        return Reply(label().text, usage=Usage(into, request.max_tokens, 0))


LOST = (Unreachable("no answer within 9 s"), ServerFault("HTTP 500"), None, RateLimited("later"))


@pytest.mark.parametrize("concurrency", [1, 64])
@pytest.mark.parametrize("failures", [(), LOST * 5], ids=["well", "lost"])
async def test_a_limit_of_tokens_is_never_crossed(
    db: Path, concurrency: int, failures: tuple[ProviderError, ...]
) -> None:
    """A call takes about 2,000 tokens here, so that a limit of 20,000 ends after some nine of them."""
    greedy = Greedy(*failures, delay=0.002)
    report = await run(db, greedy, plan(max_tokens=20_000, concurrency=concurrency))
    assert report.stopped == "another call could exceed the limit of 20,000 tokens"
    assert greedy.used <= report.spent.tokens <= 20_000
    assert report.spent.tokens > 15_000, "and what fits is used"
    assert report.spent.lost == sum(not isinstance(f, RateLimited) for f in failures if f) - sum(
        not isinstance(f, RateLimited) for f in greedy.failures if f
    )
    assert report.pending == UNITS - report.labelled > 0


async def test_what_is_not_used_is_free_for_other_calls(db: Path) -> None:
    """Each call sets some 2,000 tokens aside and takes 10: all units fit into 5,000."""
    frugal = Fake(lambda r, t: Reply(label().text, usage=Usage(8, 2, 0)), delay=0.001)
    report = await run(db, frugal, plan(max_tokens=5_000))
    assert (report.labelled, report.spent.tokens, report.stopped) == (UNITS, 10 * UNITS, None)
    assert frugal.most < 8, "in flight, a call counts with the most that it can take"


async def test_a_server_that_counts_more_than_was_asked_for_is_believed(db: Path) -> None:
    """Each reply counts 5,000 tokens, over twice the most (some 2,000): from the second call on as much is set aside."""
    liar = Fake(lambda r, t: Reply(label().text, usage=Usage(1_000, 4_000, 0)))
    report = await run(db, liar, plan(max_tokens=18_000, concurrency=1))
    assert (report.labelled, report.spent.tokens) == (3, 15_000), "a fourth would make 20,000"


async def test_a_server_that_counts_more_while_calls_are_on_their_way_is_stopped_at_once_and_it_is_said(
    db: Path,
) -> None:
    """Eight calls of some 1,600 fit into 18,000; their server counts 5,000 each, which nobody could know."""
    all_there = asyncio.Event()

    class Late(Fake):
        async def complete(self, request: Request) -> Reply:
            self.requests.append(request)
            if len(self.requests) == FIRST:
                all_there.set()
            await asyncio.wait_for(all_there.wait(), 30)
            return Reply(label().text, usage=Usage(1_000, 4_000, 0))

    late = Late()
    report = await run(db, late, plan(max_tokens=18_000, concurrency=FIRST))
    assert (len(late.requests), report.labelled, report.spent.tokens) == (FIRST, FIRST, 40_000)
    assert report.stopped is not None
    assert report.stopped.startswith(
        "the limit is exceeded by 22,000 tokens (40,000 tokens of 18,000): the server billed 3."
    )


@pytest.mark.parametrize("said", [Usage(), Usage(None, 5), Usage(7, None)], ids=["both", "into", "out"])
async def test_counts_that_are_missing_or_null_are_taken_at_the_most(db: Path, said: Usage) -> None:
    """A call sets some 1,600 tokens aside: 20,000 are used up after a dozen, whatever part is not said."""
    silent = Fake(lambda r, t: Reply(label().text, usage=said))
    report = await run(db, silent, plan(max_tokens=20_000))
    assert 0 < report.labelled < 20
    assert 15_000 < report.spent.tokens <= 20_000
    sold = Fake(lambda r, t: Reply(label().text, usage=said))
    paid = await run(db, sold, plan(max_cost=0.05, prices=FILE))
    assert 0.03 < paid.spent.cost <= 0.05


@pytest.mark.parametrize(
    ("limits", "a_call"), [({"max_tokens": 18_000}, 5_000), ({"max_cost": 0.05, "prices": FILE}, 0.02)]
)
async def test_a_server_that_reports_only_a_large_output_is_charged_for_the_input_too(
    db: Path, limits: dict[str, Any], a_call: float
) -> None:
    """5,000 tokens of output ($0.02) for a limit of 512: the input may still be the whole reserve."""
    odd = Fake(lambda r, t: Reply(label().text, usage=Usage(None, 5_000)))
    report = await run(db, odd, plan(concurrency=1, **limits))
    spent = report.spent.tokens if "max_tokens" in limits else report.spent.cost
    limit = limits.get("max_tokens") or limits["max_cost"]
    assert report.labelled == 2 and 2 * 1.02 * a_call < spent <= limit


class Sold(Greedy):
    def describe(self) -> Mapping[str, Json]:
        return {"base_url": "http://127.0.0.1:1/v1"}


async def test_a_limit_of_money_is_never_crossed_and_the_cost_is_kept_for_each_attempt(db: Path) -> None:
    sold = Sold(delay=0.002)
    report = await run(db, sold, plan(max_cost=0.05, prices=FILE))
    assert report.stopped is not None and "$0.05" in report.stopped
    assert 0.03 < report.spent.cost <= 0.05
    rows = select(db, "SELECT input_tokens, output_tokens, cost FROM judgements")
    # $1 a million in, $4 a million out
    assert all(cost == pytest.approx((i + 4 * o) / 1e6) for i, o, cost in rows)
    assert sum(cost for *_, cost in rows) == pytest.approx(report.spent.cost)
    [(facts,)] = select(db, "SELECT provider FROM runs")
    assert json.loads(facts)["price"]["output"] == 4.0
    again = await run(db, Sold(), plan(prices=FILE))
    assert again.labelled == UNITS
    assert select(db, "SELECT count(*) FROM judgements WHERE cost IS NULL") == [(0,)]


async def test_a_limit_of_money_needs_a_price(db: Path) -> None:
    with pytest.raises(UsageError, match=r"test/model.* --prices"):
        await run(db, Sold(), plan(max_cost=1.0))
    assert select(db, "SELECT count(*) FROM judgements") == [(0,)]


def test_a_limit_of_time_ends_the_sending(db: Path) -> None:
    """Calls of 0.1 s, one at a time, and the last tenth of 1.5 s for those that are in flight."""
    report = simulated(run(db, Fake(delay=0.1), plan(max_time=1.5, concurrency=1)))
    assert report.stopped == "the time limit of 1.5 s is reached"
    assert 13 <= report.labelled <= 14
    rest = simulated(run(db, Fake()))
    assert rest.labelled == UNITS


async def test_the_questions_about_a_server_are_inside_the_limits_and_in_the_record(tmp_path: Path) -> None:
    """The first one, for a letter, takes 64 + 16 tokens for the format, 105 bytes and 16 out at most: 201, or $0.000249."""
    db = make_study(tmp_path / "s.db", numbered(20))
    run_plan = plan("openai/loopback", prices={"openai/loopback": {"input": 1.0, "output": 4.0}})

    async def with_limits(server: OpenAIServer, **limits: float | None) -> RunReport:
        provider = make_replicas(run_plan.model, base.Settings(base_url=server.url, replicas=replicas))
        try:
            return await run(db, provider, await open_patiently(provider, replace(run_plan, **limits)))
        finally:
            await provider.close()

    def used(*servers: OpenAIServer) -> int:
        """What the servers count: four characters a token of each request that was not turned down; every answer is short."""
        return sum(
            sum(len(m["content"]) for m in b["messages"]) // 4 for server in servers for b in server.bodies
        )

    replicas: tuple[str, ...] = ()
    async with OpenAIServer(record=True) as server, OpenAIServer(record=True) as second:
        for limit in ({"max_tokens": 200}, {"max_cost": 248e-6}):
            with pytest.raises(LimitReached, match="may use 201 tokens, and 0 are already used"):
                await with_limits(server, **limit)
            assert server.requests == 0
        with pytest.raises(LimitReached, match=r"and \d\d are already used"):
            await with_limits(server, max_tokens=201)
        assert server.requests == 1, "the second one does not fit any more"
        # A server of its own: what is given up may reach it late, or never.
        async with OpenAIServer() as slow:
            slow.script(Fault("429", headers={"retry-after": "60"}))
            with pytest.raises(LimitReached, match=r"the time limit of 0.2 s"):
                await with_limits(slow, max_time=0.2)
        server.reset_counts()
        replicas = (second.url,)
        first = await with_limits(server, max_tokens=4_000)
        assert first.stopped is not None and 0 < first.labelled < 20
        assert used(server, second) == first.usage["input_tokens"] > 0
        assert first.spent.tokens == first.usage["input_tokens"] + first.usage["output_tokens"] <= 4_000
        rest = await with_limits(server, max_cost=1.0)
        assert rest.labelled == 20 and used(server, second) == (first.usage + rest.usage)["input_tokens"]
    [(facts,)] = select(db, "SELECT provider FROM runs")
    [(into, out, cost)] = select(
        db, "SELECT sum(input_tokens), sum(output_tokens), sum(cost) FROM judgements"
    )
    probes = json.loads(facts)["probes"]
    assert into + probes["input_tokens"] == (first.usage + rest.usage)["input_tokens"]
    assert out + probes["output_tokens"] == (first.usage + rest.usage)["output_tokens"]
    assert cost + probes["cost_usd"] == pytest.approx(first.spent.cost + rest.spent.cost)
    assert probes["lost"] == 0


async def test_a_chain_of_runs_has_one_limit(db: Path) -> None:
    first = await run(db, Greedy(), plan(selection=Selection(limit=3)))
    left = plan(max_tokens=20_000, max_cost=1.0, max_time=60.0).subtract_reports([first, first])
    assert left.max_tokens == 20_000 - 2 * first.spent.tokens
    assert left.max_time is not None and left.max_time < 60.0
    assert plan(max_tokens=1).subtract_reports([first]).max_tokens == 0
    # 10 s less 3 s for the opening and 2 s for the calls; the seconds of the first report include the opening.
    opened = Opened(seconds=3.0)
    done = [RunReport("r", False, 1, seconds=4.0, opened=opened), RunReport("s", False, 1, seconds=1.0)]
    assert plan(max_time=10.0).subtract_reports(done).max_time == 5.0
    assert plan(max_time=10.0, opened=opened).subtract_reports(done).opened is None


# Prices


def test_list_prices_of_a_vendor_and_of_batches() -> None:
    """GPT-5 mini: $0.25 a million in, $2 out, $0.025 from the cache (openai.com/api/pricing); batches half."""
    price = find("openai/gpt-5-mini", VENDORS_OWN, None)
    assert price is not None
    assert (price.input, price.output, price.cached) == pytest.approx((0.25, 2.0, 0.025))
    assert price.source.startswith("genai-prices ")
    # 600 fresh, 400 cached, 10 out: (600 * 0.25 + 400 * 0.025 + 10 * 2) / 1e6
    assert price.cost(Usage(1000, 10, 400)) == pytest.approx(180e-6)
    batch = find("openai/gpt-5-mini", VENDORS_OWN, None, batch=True)
    assert batch is not None and batch.input == pytest.approx(0.125)
    # Writing Anthropic's cache costs a quarter more than the tokens: that is the most a call can cost.
    claude = find("anthropic/claude-haiku-4-5", VENDORS_OWN, None)
    assert claude is not None
    assert claude.get_upper_bound(1_000_000, 0) == pytest.approx(1.25 * claude.input)
    assert claude.cost(Usage(100, 0, 0, 100)) == pytest.approx(1.25e-4 * claude.input)


def test_a_price_that_depends_on_the_size_of_the_call_is_counted_by_it() -> None:
    """Claude Sonnet 4.5 costs more from 200,000 tokens on (docs.anthropic.com/en/docs/about-claude/pricing)."""
    price = find("anthropic/claude-sonnet-4-5", VENDORS_OWN, None)
    assert price is not None and price.exact is not None
    small, large = price.cost(Usage(1_000, 0, 0)), price.cost(Usage(400_000, 0, 0))
    assert small == pytest.approx(0.003)
    assert large == pytest.approx(400_000 * 6 / 1e6)
    assert price.get_upper_bound(400_000, 0) >= 400_000 * 6 / 1e6


@pytest.mark.parametrize("model", ["openai/no-such-model", "scripted/hash", "llamacpp/smollm2"])
def test_what_nobody_sells_has_no_price(model: str) -> None:
    assert find(model, VENDORS_OWN if model.startswith("openai") else {}, None) is None
    assert find("openai/gpt-5-mini", {"own_server": False}, None) is None, "a server of one's own"
    price = find(model, {}, {model: {"input": 1, "output": 2}})
    assert price == Price(1.0, 2.0, 1.0, 1.0, "your file of prices")
    assert find(model, {}, {model: {"input": 1, "output": 2}}, batch=True) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "a JSON object"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON: nested too deeply"),
        ('{"a/b": {"input": 1}}', "field 'a/b': a price needs"),
        ('{"a/b": {"input": -1, "output": 1}}', "field 'a/b.input'"),
        ('{"a/b": {"input": true, "output": 1}}', "field 'a/b.input'"),
        ('{"a/b": {"input": 1e999, "output": 1}}', "field 'a/b.input'"),
        ('{"a/b": {"input": 1, "output": 1, "out": 1}}', "field 'a/b.out': unknown"),
        ('{"a/b": {"input": 1, "output": 1, "batch": {"input": 1}}}', "field 'a/b.batch'"),
        # Readers differ in which of two prices they take, and a limit of money rests on it.
        ('{"a/b": {"input": 2, "output": 1, "input": 0.2}}', "the key 'input' occurs twice in one object"),
        (
            '{"a/b": {"input": 2, "output": 1}, "a/b": {"input": 0, "output": 0}}',
            "the key 'a/b' occurs twice",
        ),
    ],
)
def test_a_file_of_prices_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_prices(path)
    assert said in str(caught.value) and str(path) in str(caught.value)


def test_calls_that_the_end_of_the_run_cuts_off_are_counted(db: Path) -> None:
    greedy = Greedy(delay=60.0)
    report = simulated(run(db, greedy, plan(max_tokens=1_000_000, max_time=1.0, concurrency=4)))
    assert report.spent.lost == len(greedy.requests) == 4
    assert report.spent.tokens > 0


async def test_a_finished_run_is_repeated_within_any_limit(tmp_path: Path) -> None:
    """Nothing is left to ask: no question about the server either, where it does not fit. Elsewhere it could be another model."""
    db = make_study(tmp_path / "s.db", numbered(3))
    async with OpenAIServer() as server, OpenAIServer() as other:
        first = await run_at(db, server.url)
        server.reset_counts()
        again = await run_at(db, server.url, max_tokens=1)
        assert (again.run_id, again.already_judged, again.labelled, again.stopped) == (
            first.run_id,
            3,
            3,
            None,
        )
        assert server.requests == again.spent.tokens == 0
        with pytest.raises(LimitReached):
            await run_at(db, other.url, max_tokens=1)
        more = await run_at(db, server.url, max_tokens=1, repeats=2)
        assert more.pending == 3 and more.stopped is not None
        assert more.stopped.startswith("another call could exceed the limit of 1 tokens (")
        assert server.requests == other.requests == 0


async def test_a_finished_run_makes_no_call(tmp_path: Path) -> None:
    """The server may have been stopped since, and what the study remembers of it may be too old."""
    db = make_study(tmp_path / "s.db", numbered(3))
    async with OpenAIServer() as server:
        url = server.url
        first = await run_at(db, url)
        with Store.open(db, create=False) as store, store.transaction() as conn:
            conn.execute("UPDATE runs SET provider = json_remove(provider, '$.servers')")
    again = await run_at(db, url)
    assert (again.run_id, again.already_judged, again.labelled, again.error) == (first.run_id, 3, 3, None)
    assert again.notes == ("nothing to do: every unit has an answer already, and the server was not called",)
    # Truncated answers may be asked for again; there are none, but with a second repeat there is something to do.
    assert (await run_at(db, url, retry=("truncated",))).already_judged == 3
    with pytest.raises(Unreachable, match="cannot connect"):
        await run_at(db, url, repeats=2)


async def run_at(db: Path, url: str, **changes: Any) -> RunReport:
    """A whole run as `judge run` makes it, opening included."""
    provider = base.get("openai/loopback", base.Settings(base_url=url))
    with Store.open(db, create=False) as store:
        asking = Asking(plan("openai/loopback", **changes), provider)
        return (await asyncio.to_thread(asking_run, store, asking)).report
