"""The rate controller in whole runs on simulated servers, in simulated time: calls in flight, requests, and seconds."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from judge.errors import RateLimited, ServerFault, Unreachable
from judge.providers.base import BaseProvider
from judge.runner import RunReport
from judge.runner.budget import Opened
from judge.runner.rate import MOST, START, RateController
from judge.runner.retry import Patience
from judge.types import Json, RateState, Reply, Request
from tests.runner.helpers import label, make_study, numbered, plan, run
from tests.runner.virtual import simulated


class Timed(BaseProvider):
    """A provider whose server answers a call after `latency(n)` seconds, n counting calls from 0, with a time-out.

    `busy`: seconds that each call takes of a server that works on one at a time, whether anybody waits for it or not.
    """

    def __init__(
        self, latency: Callable[[int], float] = lambda n: 0.0, busy: float = 0.0, timeout: float = 120.0
    ) -> None:
        self.latency, self.busy, self.timeout = latency, busy, timeout
        self.requests = self.open_now = self.most = 0
        self.ended, self.free_at = 0.0, 0.0

    def describe(self) -> Mapping[str, Json]:
        return {"vendor": "test", "model": "timed", "base_url": "http://timed", "timeout": self.timeout}

    async def complete(self, request: Request) -> Reply:
        now = asyncio.get_running_loop().time
        self.requests += 1
        self.open_now += 1
        self.most = max(self.most, self.open_now)
        wait = self.latency(self.requests - 1)
        if self.busy:
            self.free_at = max(self.free_at, now()) + self.busy
            wait = self.free_at - now()
        try:
            async with asyncio.timeout(self.timeout):
                await asyncio.sleep(wait)
        except TimeoutError as error:
            raise Unreachable("no answer in time", timed_out=True) from error
        finally:
            self.open_now -= 1
        self.ended = now() - 1000.0
        return label()


def lognormal(median: float, sigma: float, seed: int = 1) -> Callable[[int], float]:
    draw = random.Random(seed)
    return lambda n: median * math.exp(draw.gauss(0.0, sigma))


def ask(folder: Path, provider: Timed, units: int, concurrency: int | None = None) -> RunReport:
    db = folder / "s.db"
    if not db.exists():
        make_study(db, numbered(units))
    patience = Patience(draw=random.Random(1))
    report = simulated(run(db, provider, plan(concurrency=concurrency, patience=patience)))
    assert report.ended == {"ok": units}
    return report


def test_a_concurrency_that_the_user_gives_is_used_from_the_first_call(tmp_path: Path) -> None:
    provider = Timed(lambda n: 2.0)
    report = ask(tmp_path, provider, 300, 100)
    assert provider.most == 100
    assert provider.ended < 6.1, "three rounds of 2 s"
    assert (report.cuts, report.notes) == (0, ())


def test_without_one_it_doubles_with_every_round_of_replies(tmp_path: Path) -> None:
    provider = Timed(lambda n: 2.0)
    ask(tmp_path, provider, 300)
    # 16, 32 and 64 calls, the first reply admitting none, and 100 from then on: 112 in three rounds, two more.
    assert provider.most == MOST
    assert provider.ended < 10.1


@pytest.mark.parametrize(("median", "sigma", "units"), [(1.0, 0.8, 1000), (2.0, 0.6, 300), (0.5, 1.0, 1000)])
def test_latencies_that_differ_keep_no_call_from_being_sent(
    tmp_path: Path, median: float, sigma: float, units: int
) -> None:
    """Where they were log-normal, never more than 24 of 100 calls were in flight."""
    provider = Timed(lognormal(median, sigma))
    report = ask(tmp_path, provider, units)
    assert provider.most == MOST
    assert report.cuts == 0


def test_stragglers_lower_nothing(tmp_path: Path) -> None:
    """One call in a hundred stalls for 60 s and times out after 20; the limit fell to 6 while those alone were left."""
    draw, latency = random.Random(2), lognormal(0.5, 1.0)
    provider = Timed(lambda n: 60.0 if draw.random() < 0.01 else latency(n), timeout=20.0)
    report = ask(tmp_path, provider, 1000, 100)
    assert report.cuts == 0
    # 820 ms in the mean, ten rounds; a stalled call is sent again after 20 s, and one in a hundred of those stalls, too.
    assert provider.ended < 8.2 + 2 * 20.0 + 5


def test_a_server_that_takes_one_call_at_a_time_is_not_flooded(tmp_path: Path) -> None:
    """0.5 s a call and a time-out of 10 s: 20 calls are as many as it answers in time. 16 are sent, and none more."""
    provider = Timed(busy=0.5, timeout=10.0)
    report = ask(tmp_path, provider, 100)
    assert (provider.most, provider.requests, report.cuts) == (START, 100, 0)


def test_too_many_calls_for_a_serial_server_are_cut_to_what_it_answers_in_half_a_time_out(
    tmp_path: Path,
) -> None:
    """100 calls are 50 s of work. The first 20 are answered in time, 2 a second, and half a time-out has room for 10."""
    provider = Timed(busy=0.5, timeout=10.0)
    report = ask(tmp_path, provider, 100, 100)
    assert provider.requests <= 300
    [said] = report.notes
    assert said.startswith("http://timed: calls timed out after 10 s")
    # 19 replies come before 10 s, the first at 0.5 s: 18 more in 9.5 s are 1.9 a second, and 9 in half a time-out.
    assert "from 100 to 9;" in said


def test_the_next_run_starts_where_the_last_one_was(tmp_path: Path) -> None:
    ask(tmp_path, Timed(lambda n: 2.0), 300)
    again = Timed(lambda n: 2.0)
    db = tmp_path / "s.db"
    report = simulated(run(db, again, plan(repeats=2)))
    assert report.already_judged == 300 and again.most == MOST
    assert again.ended < 6.1


def test_a_doubling_that_only_makes_calls_slower_is_undone() -> None:
    """A server that works on 32 at a time: 64 in flight take twice as long, and no more come back."""
    rate = RateController(100, 32, timeout=1000.0)
    now, queue = 0.0, [0.0] * 32
    for _ in range(32):
        rate.record_sent(0.0)
    for _ in range(400):
        now += 1 / 32
        sent_at = queue.pop(0)
        rate.record_end()
        rate.record_reply(now, sent_at, rate.limit)
        while rate.in_flight < rate.limit:
            rate.record_sent(now)
            queue.append(now)
    assert rate.limit == 64
    assert rate.cuts == 1


def test_503_is_a_refusal_and_another_fault_is_none(tmp_path: Path) -> None:
    """Half of the calls: a server that is overloaded gets fewer, one that fails gets as many."""
    cuts = []
    for overloaded in (True, False):

        class Faulty(Timed):
            is_overloaded, draw = overloaded, random.Random(1)

            async def complete(self, request: Request) -> Reply:
                await super().complete(request)
                if self.draw.random() < 0.5:
                    raise ServerFault("HTTP 503", overloaded=self.is_overloaded)
                return label()

        db = make_study(tmp_path / f"{overloaded}.db", numbered(200))
        patience = Patience(tries=50, draw=random.Random(1))
        report = simulated(run(db, Faulty(lambda n: 0.1), plan(concurrency=50, patience=patience)))
        assert report.ended == {"ok": 200}
        cuts.append(report.cuts)
    assert cuts[0] > 0 and cuts[1] == 0


class Windowed(Timed):
    """A server that takes `limit` calls in each window of `window` seconds and says in its headers how many are left.

    A call is counted when it arrives, and answered after 0.5 s. The reset is rounded to whole seconds, as Anthropic's is.
    """

    def __init__(self, limit: int, window: float) -> None:
        super().__init__(lambda n: 0.5)
        self.limit, self.window = limit, window
        self.taken: Counter[int] = Counter()
        self.refused = 0

    async def complete(self, request: Request) -> Reply:
        now = asyncio.get_running_loop().time() - 1000.0
        window, passed = divmod(now, self.window)
        reset = float(int(self.window - passed))
        if self.taken[int(window)] >= self.limit:
            self.refused += 1
            raise RateLimited("slow down", reset)
        self.taken[int(window)] += 1
        rate = RateState(self.limit - self.taken[int(window)], reset, limit_requests=self.limit)
        return replace(await super().complete(request), rate=rate)


def test_rate_headers_are_obeyed_with_the_calls_in_flight_and_without_a_burst_after_the_reset(
    tmp_path: Path,
) -> None:
    """20 calls in 4 s. Of the first 100 at once 80 are refused; there were 149 refusals for 100 labels."""
    provider = Windowed(20, 4.0)
    ask(tmp_path, provider, 100, 100)
    # After each of four resets, rounded down by up to a second, calls go out at 5 a second until a reply comes.
    assert provider.refused <= 80 + 4 * 5
    assert provider.ended <= 5 * 4.0 + 0.5 + 1.0, "five windows"
    first = 100 - 80
    assert provider.taken[0] == first


def test_the_headers_of_the_opening_count(tmp_path: Path) -> None:
    """The questions have shown how much is left before the first unit."""
    provider = Windowed(20, 4.0)
    provider.taken[0] = 15
    db = make_study(tmp_path / "s.db", numbered(40))
    opened = Opened(rates={"http://timed": (RateState(5, 3.0, limit_requests=20), 1000.0)})
    report = simulated(run(db, provider, plan(concurrency=100, opened=opened)))
    assert report.ended == {"ok": 40}
    assert provider.taken[0] == 20
    assert provider.refused <= 2 * 5, "after each reset, rounded down by up to a second"


class Burst(Timed):
    """A server that answers after 0.1 s, and refuses all calls from second 1 to second 2.5: 503, Retry-After 2.

    Some refusals take long, so that they come back when the server answers again.
    """

    def __init__(self) -> None:
        super().__init__(lambda n: 0.1)
        self.allowed: dict[str, float] = {}
        self.early = 0

    async def complete(self, request: Request) -> Reply:
        now = asyncio.get_running_loop().time() - 1000.0
        text = str(request.messages)
        # A thousandth for the loop's clock.
        self.early += now < self.allowed.get(text, 0.0) - 0.001
        if 1.0 <= now < 2.5:
            late = 4.0 if self.requests % 4 else 0.1
            self.requests += 1
            await asyncio.sleep(late)
            self.allowed[text] = now + late + 2.0
            raise ServerFault("HTTP 503", 2.0, overloaded=True)
        return await super().complete(request)


def test_a_burst_of_503_is_waited_for_and_no_longer(tmp_path: Path) -> None:
    """After the outage, refusals of calls from before it set the rate to one call in 30 s."""
    provider = Burst()
    ask(tmp_path, provider, 3000, 100)
    # 1,000 a second but for the burst and its Retry-After; calls wait in groups.
    assert provider.ended < 30.0
    assert provider.early == 0, "no call came before its Retry-After"
