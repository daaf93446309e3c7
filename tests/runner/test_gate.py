"""The gate's three clocks, on a clock that only moves when a test moves it."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.runner.gate import HOLD_WITHOUT_RETRY_AFTER, MOST_AT_FIRST, Gate
from judge.types import RateState


class Handle:
    """A timer of FakeTime."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class FakeTime:
    """Seconds and timers by hand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[tuple[float, int, Handle]] = []

    def clock(self) -> float:
        return self.now

    def later(self, seconds: float, call: Callable[[], None]) -> Handle:
        handle = Handle(call)
        heapq.heappush(self.timers, (self.now + seconds, len(self.timers) + id(handle), handle))
        return handle

    async def pass_(self, seconds: float) -> None:
        """Let time pass, and what it sets off run."""
        end = self.now + seconds
        while self.timers and self.timers[0][0] <= end:
            self.now, _, handle = heapq.heappop(self.timers)
            if handle.call is not None:
                handle.call()
            await settle()
        self.now = end
        await settle()


async def settle() -> None:
    """Let every task run as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def gate(time: FakeTime, ceiling: int = 100) -> Gate:
    return Gate(ceiling, time.clock, time.later)


async def entering(gate: Gate, count: int, tokens: int = 0) -> list[asyncio.Task[None]]:
    """Tasks that want in, as far as they get."""
    tasks = [asyncio.create_task(gate.enter(tokens)) for _ in range(count)]
    await settle()
    return tasks


def inside(tasks: list[asyncio.Task[None]]) -> int:
    return sum(t.done() and not t.cancelled() for t in tasks)


async def stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- how many


@pytest.mark.parametrize(("ceiling", "first"), [(1, 1), (2, 1), (3, 2), (64, 32), (256, 128), (5000, 128)])
def test_it_starts_at_half_of_the_ceiling(time: FakeTime, ceiling: int, first: int) -> None:
    assert MOST_AT_FIRST == 128
    assert gate(time, ceiling).limit == first


def test_slow_start_doubles_with_every_round(time: FakeTime) -> None:
    g = gate(time, 1000)
    limits = []
    for _ in range(4):
        for _ in range(int(g.limit)):  # one round: every slot brings a reply
            g.succeeded()
        limits.append(g.limit)
    assert limits == [256, 512, 1000, 1000], "doubling, and never over the ceiling"


def test_after_a_cut_it_grows_by_one_a_round(time: FakeTime) -> None:
    g = gate(time, 128)
    g.limited(0, sent_at=time.now)
    assert g.limit == 32, "half of 64"
    for limit in (33, 34, 35):
        for _ in range(limit - 2):
            g.succeeded()
        assert g.limit == limit - 1, "a round is not over before its last reply"
        g.succeeded()
        assert g.limit == limit


def test_it_never_cuts_below_one(time: FakeTime) -> None:
    g = gate(time, 4)
    for _ in range(10):
        time.now += 1
        g.limited(0, sent_at=time.now)
    assert g.limit == 1
    assert g.cuts == 10


def test_echoes_do_not_cut_again(time: FakeTime) -> None:
    g = gate(time, 128)
    sent = time.now
    time.now += 1
    g.limited(0, sent_at=sent)
    for age in (0.0, 0.5, 1.0):
        g.limited(0, sent_at=sent + age)  # sent before the cut, or in its very moment
    assert (g.limit, g.cuts) == (32, 1)
    time.now += 1
    g.limited(0, sent_at=time.now - 0.5)  # sent after it
    assert (g.limit, g.cuts) == (16, 2)


def test_an_echo_holds_but_keeps_the_successes_earned(time: FakeTime) -> None:
    g = gate(time, 8)
    g.limited(0, sent_at=time.now)
    assert g.limit == 2
    g.succeeded()
    g.limited(5, sent_at=time.now - 1)
    assert g.delay() == 5
    g.succeeded()
    assert g.limit == 3, "two replies make a round of two, whatever came between"


# --- when


def test_retry_after_holds_everybody(time: FakeTime) -> None:
    g = gate(time)
    g.limited(7.5, sent_at=time.now)
    assert g.delay() == 7.5
    g.limited(2.0, sent_at=time.now)
    assert g.delay() == 7.5, "a shorter one does not end it earlier"
    time.now += 7.5
    assert g.delay() == 0


def test_without_retry_after_there_is_a_pause(time: FakeTime) -> None:
    g = gate(time)
    g.limited(None, sent_at=time.now)
    assert g.delay() == HOLD_WITHOUT_RETRY_AFTER > 0


async def test_who_waits_is_let_in_when_the_hold_ends(time: FakeTime) -> None:
    g = gate(time, 10)
    g.limited(3.0, sent_at=time.now)
    assert g.limit == 2.5, "starts at 5 of 10; only whole slots count"
    tasks = await entering(g, 3)
    await time.pass_(2.9)
    assert inside(tasks) == 0
    await time.pass_(0.1)
    assert inside(tasks) == 2
    g.leave()
    await settle()
    assert inside(tasks) == 3


async def test_a_hold_that_grows_while_they_wait(time: FakeTime) -> None:
    g = gate(time)
    g.limited(1.0, sent_at=time.now)
    tasks = await entering(g, 1)
    await time.pass_(0.5)
    g.limited(2.0, sent_at=time.now)
    await time.pass_(1.9)
    assert inside(tasks) == 0
    await time.pass_(0.1)
    assert inside(tasks) == 1


async def test_the_token_budget_of_the_headers(time: FakeTime) -> None:
    g = gate(time)
    g.succeeded(RateState(remaining_tokens=250, reset_tokens=6.0))
    tasks = await entering(g, 3, tokens=100)
    assert inside(tasks) == 2, "250 hold two calls of 100 tokens"
    assert g.delay(50) == 0, "50 are left"
    assert g.delay(51) == 6
    await time.pass_(6.0)
    assert inside(tasks) == 3
    assert g.delay(10**9) == 0, "full again: how much that is, the next reply says"


async def test_a_call_larger_than_the_whole_budget_goes_when_it_is_full(time: FakeTime) -> None:
    g = gate(time)
    g.succeeded(RateState(remaining_tokens=100, reset_tokens=2.0))
    tasks = await entering(g, 1, tokens=5000)
    assert inside(tasks) == 0
    await time.pass_(2.0)
    assert inside(tasks) == 1


async def test_the_request_budget_of_the_headers(time: FakeTime) -> None:
    g = gate(time)
    g.succeeded(RateState(remaining_requests=2, reset_requests=30.0))
    tasks = await entering(g, 5)
    assert inside(tasks) == 2
    await time.pass_(30.0)
    assert inside(tasks) == 5


def test_headers_that_say_only_half_of_it_hold_nothing(time: FakeTime) -> None:
    g = gate(time)
    g.succeeded(RateState(remaining_requests=0, remaining_tokens=0))
    assert g.delay(10) == 0


def test_a_newer_header_counts(time: FakeTime) -> None:
    g = gate(time)
    g.succeeded(RateState(remaining_tokens=0, reset_tokens=60.0))
    assert g.delay(1) == 60
    g.succeeded(RateState(remaining_tokens=500, reset_tokens=60.0))
    assert g.delay(1) == 0


async def test_a_better_header_lets_in_who_waits_without_a_timer(time: FakeTime) -> None:
    g = gate(time)
    await g.enter()
    g.succeeded(RateState(remaining_tokens=0, reset_tokens=60.0))
    tasks = await entering(g, 1, tokens=10)
    assert inside(tasks) == 0
    g.succeeded(RateState(remaining_tokens=500, reset_tokens=60.0))
    g.leave()
    await settle()
    assert inside(tasks) == 1


# --- waiting


async def test_first_come_first_served(time: FakeTime) -> None:
    g = gate(time, 1)
    await g.enter()
    order: list[int] = []

    async def one(n: int) -> None:
        await g.enter()
        order.append(n)
        g.leave()

    tasks = [asyncio.create_task(one(n)) for n in range(5)]
    await settle()
    g.leave()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]
    assert g.in_flight == 0


async def test_cancelling_one_who_waits_lets_the_next_one_in(time: FakeTime) -> None:
    g = gate(time, 1)
    g.succeeded(RateState(remaining_tokens=10, reset_tokens=60.0))
    large = (await entering(g, 1, tokens=100))[0]
    small = (await entering(g, 1, tokens=1))[0]
    assert not small.done(), "behind the large one"
    large.cancel()
    await settle()
    assert inside([small]) == 1, "no wake-up is lost with it"
    assert g.in_flight == 1


async def test_cancelled_in_the_moment_of_admission_gives_the_slot_on(time: FakeTime) -> None:
    g = gate(time, 1)
    await g.enter()
    first, second = await entering(g, 2)
    g.leave()  # admits the first, which has not run yet
    first.cancel()
    await settle()
    assert first.cancelled()
    assert inside([second]) == 1
    assert g.in_flight == 1


async def test_shut_cancels_who_waits_and_lets_nobody_in(time: FakeTime) -> None:
    g = gate(time, 1)
    await g.enter()
    waiting = await entering(g, 2)
    resting = asyncio.create_task(g.rest(100))
    await settle()
    g.shut()
    await settle()
    assert all(t.cancelled() for t in [*waiting, resting])
    with pytest.raises(asyncio.CancelledError):
        await g.enter()
    with pytest.raises(asyncio.CancelledError):
        await g.rest(0)
    g.leave()
    assert g.in_flight == 0


async def test_rest_takes_its_time_and_no_slot(time: FakeTime) -> None:
    g = gate(time, 1)
    resting = asyncio.create_task(g.rest(2.0))
    await settle()
    assert g.in_flight == 0
    await time.pass_(1.9)
    assert not resting.done()
    await time.pass_(0.1)
    assert resting.done()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.integers(0, 50)),
        st.tuples(st.just("reply"), st.none() | st.integers(0, 200)),
        st.tuples(st.just("429"), st.none() | st.integers(0, 5)),
        st.tuples(st.just("fault"), st.none()),
        st.tuples(st.just("cancel"), st.integers(0, 100)),
        st.tuples(st.just("time"), st.integers(1, 10)),
    ),
    max_size=60,
)


@given(ceiling=st.integers(1, 8), steps=STEPS)
async def test_any_order_of_events(ceiling: int, steps: list[tuple[str, int | None]]) -> None:
    """Nobody is let in over the limit, no slot is lost, and in the end everybody gets in."""
    time = FakeTime()
    g = gate(time, ceiling)
    tasks: list[asyncio.Task[None]] = []
    left = 0

    def at_work() -> int:
        return inside(tasks) - left

    for what, value in steps:
        before = g.in_flight
        if what == "enter":
            tasks += await entering(g, 1, tokens=value or 0)
        elif what == "time":
            await time.pass_(float(value or 0))
        elif what == "cancel":
            waiting = [t for t in tasks if not t.done()]
            if waiting:
                waiting[(value or 0) % len(waiting)].cancel()
        elif at_work():  # one call comes back
            if what == "reply":
                g.succeeded(None if value is None else RateState(remaining_tokens=value, reset_tokens=3.0))
            elif what == "429":
                g.limited(value, sent_at=time.now - 1)
            g.leave()
            left += 1
        await settle()
        assert g.in_flight == at_work() <= ceiling
        if g.in_flight > before:
            assert g.in_flight <= int(g.limit), "admitted within the limit of that moment"
    for _ in range(len(tasks) + 1):
        while at_work():
            g.leave()
            left += 1
            await settle()
        await time.pass_(10.0)
    assert all(t.done() for t in tasks), "somebody was forgotten"
    assert g.in_flight == 0
    await stop(tasks)
