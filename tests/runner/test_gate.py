"""Who is let in and when, on a clock that only moves when a test moves it."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import RateLimited, ServerFault, Unreachable
from judge.runner.gate import Gate
from judge.runner.lane import End, Slot, ending
from judge.runner.level import FIRST
from judge.runner.pace import Pace
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
    return Gate(ceiling, clock=time.clock, later=time.later)


async def entering(gate: Gate, count: int, tokens: int = 0) -> list[asyncio.Task[Slot]]:
    """Tasks that want in, as far as they get."""
    tasks = [asyncio.create_task(gate.enter(tokens)) for _ in range(count)]
    await settle()
    return tasks


def inside(tasks: list[asyncio.Task[Slot]]) -> int:
    return sum(t.done() and not t.cancelled() for t in tasks)


async def stop(tasks: list[asyncio.Task[Slot]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- when


def hold(g: Gate, seconds: float, time: FakeTime) -> None:
    g.lanes[0].hold(time.now, seconds)


def delay(g: Gate, time: FakeTime, tokens: int = 0) -> float:
    return g.lanes[0].delay(time.now, tokens)


def told(g: Gate, time: FakeTime, rate: RateState) -> None:
    g.lanes[0].note(rate, time.now)


def test_retry_after_holds_everybody(time: FakeTime) -> None:
    g = gate(time)
    hold(g, 7.5, time)
    assert delay(g, time) == 7.5
    hold(g, 2.0, time)
    assert delay(g, time) == 7.5, "a shorter one does not end it earlier"
    time.now += 7.5
    assert delay(g, time) == 0


async def test_a_single_refusal_holds_nobody(time: FakeTime) -> None:
    g = gate(time)
    slot = await g.enter()
    time.now += 1
    slot.lane.failed(time.now, slot.at, slot.at, "unit", RateLimited("slow down"))
    g.leave(slot, End.REFUSED)
    assert (delay(g, time), g.limit, g.cuts) == (0, FIRST, 0)


async def test_who_waits_is_let_in_when_the_hold_ends(time: FakeTime) -> None:
    g = gate(time, 2)
    hold(g, 3.0, time)
    tasks = await entering(g, 3)
    await time.pass_(2.9)
    assert inside(tasks) == 0
    await time.pass_(0.1)
    assert inside(tasks) == 2
    g.leave(tasks[0].result(), End.REPLY)
    await settle()
    assert inside(tasks) == 3


async def test_a_hold_that_grows_while_they_wait(time: FakeTime) -> None:
    g = gate(time)
    hold(g, 1.0, time)
    tasks = await entering(g, 1)
    await time.pass_(0.5)
    hold(g, 2.0, time)
    await time.pass_(1.9)
    assert inside(tasks) == 0
    await time.pass_(0.1)
    assert inside(tasks) == 1


async def test_the_token_budget_of_the_headers(time: FakeTime) -> None:
    g = gate(time)
    told(g, time, RateState(remaining_tokens=250, reset_tokens=6.0))
    tasks = await entering(g, 3, tokens=100)
    assert inside(tasks) == 2, "250 hold two calls of 100 tokens"
    assert delay(g, time, 50) == 0, "50 are left"
    assert delay(g, time, 51) == 6
    await time.pass_(6.0)
    assert inside(tasks) == 3
    assert delay(g, time, 10**9) == 0, "full again: how much that is, the next reply says"


async def test_a_call_larger_than_the_whole_budget_goes_when_it_is_full(time: FakeTime) -> None:
    g = gate(time)
    told(g, time, RateState(remaining_tokens=100, reset_tokens=2.0))
    tasks = await entering(g, 1, tokens=5000)
    assert inside(tasks) == 0
    await time.pass_(2.0)
    assert inside(tasks) == 1


async def test_the_request_budget_of_the_headers(time: FakeTime) -> None:
    g = gate(time)
    told(g, time, RateState(remaining_requests=2, reset_requests=30.0))
    tasks = await entering(g, 5)
    assert inside(tasks) == 2
    await time.pass_(30.0)
    assert inside(tasks) == 5


def test_headers_that_say_only_half_of_it_hold_nothing(time: FakeTime) -> None:
    g = gate(time)
    told(g, time, RateState(remaining_requests=0, remaining_tokens=0))
    assert delay(g, time, 10) == 0


def test_a_newer_header_counts(time: FakeTime) -> None:
    g = gate(time)
    told(g, time, RateState(remaining_tokens=0, reset_tokens=60.0))
    assert delay(g, time, 1) == 60
    told(g, time, RateState(remaining_tokens=500, reset_tokens=60.0))
    assert delay(g, time, 1) == 0


async def test_a_better_header_lets_in_who_waits_without_a_timer(time: FakeTime) -> None:
    g = gate(time)
    slot = await g.enter()
    told(g, time, RateState(remaining_tokens=0, reset_tokens=60.0))
    tasks = await entering(g, 1, tokens=10)
    assert inside(tasks) == 0
    told(g, time, RateState(remaining_tokens=500, reset_tokens=60.0))
    g.leave(slot, End.REPLY)
    await settle()
    assert inside(tasks) == 1


# --- waiting


async def test_first_come_first_served(time: FakeTime) -> None:
    g = gate(time, 1)
    slot = await g.enter()
    order: list[int] = []

    async def one(n: int) -> None:
        own = await g.enter()
        order.append(n)
        g.leave(own, End.REPLY)

    tasks = [asyncio.create_task(one(n)) for n in range(5)]
    await settle()
    g.leave(slot, End.REPLY)
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]
    assert g.in_flight == 0


async def test_cancelling_one_who_waits_lets_the_next_one_in(time: FakeTime) -> None:
    g = gate(time, 1)
    told(g, time, RateState(remaining_tokens=10, reset_tokens=60.0))
    large = (await entering(g, 1, tokens=100))[0]
    small = (await entering(g, 1, tokens=1))[0]
    assert not small.done(), "behind the large one"
    large.cancel()
    await settle()
    assert inside([small]) == 1, "no wake-up is lost with it"
    assert g.in_flight == 1


async def test_cancelled_in_the_moment_of_admission_gives_the_slot_on(time: FakeTime) -> None:
    g = gate(time, 1)
    slot = await g.enter()
    first, second = await entering(g, 2)
    g.leave(slot, End.REPLY)  # admits the first, which has not run yet
    first.cancel()
    await settle()
    assert first.cancelled()
    assert inside([second]) == 1
    assert g.in_flight == 1


async def test_shut_cancels_who_waits_and_lets_nobody_in(time: FakeTime) -> None:
    g = gate(time, 1)
    slot = await g.enter()
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
    g.leave(slot, End.REPLY)
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
        st.tuples(st.just("gone"), st.none()),
        st.tuples(st.just("late"), st.none()),
        st.tuples(st.just("cancel"), st.integers(0, 100)),
        st.tuples(st.just("time"), st.integers(1, 10)),
    ),
    max_size=60,
)
ERRORS = {
    "429": RateLimited("slow down"),
    "fault": ServerFault("HTTP 500"),
    "gone": Unreachable("cannot connect", sent=False),
    "late": Unreachable("no answer", timed_out=True),
}


@given(ceiling=st.integers(1, 8), lanes=st.integers(1, 3), steps=STEPS)
async def test_any_order_of_events(ceiling: int, lanes: int, steps: list[tuple[str, int | None]]) -> None:
    """Nobody is let in over the limit, no slot is lost, and in the end everybody gets in."""
    time = FakeTime()
    g = Gate(ceiling, [None] * lanes, clock=time.clock, later=time.later)
    tasks: list[asyncio.Task[Slot]] = []
    back: set[asyncio.Task[Slot]] = set()

    def at_work() -> list[asyncio.Task[Slot]]:
        return [t for t in tasks if t.done() and not t.cancelled() and t not in back]

    def comes_back(what: str, value: int | None) -> None:
        task = at_work()[0]
        back.add(task)
        slot, error = task.result(), ERRORS.get(what)
        if what == "reply" and value is not None:
            slot.lane.note(RateState(remaining_tokens=value, reset_tokens=3.0), time.now)
        if error is not None:
            slot.lane.failed(time.now, slot.at, slot.at, str(id(task)), error)
        if what == "429" and value is not None:
            slot.lane.hold(time.now, value)
        g.leave(slot, ending(error))

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
        elif at_work():
            comes_back(what, value)
        await settle()
        assert g.in_flight == len(at_work()) <= ceiling * lanes
        if g.in_flight > before and not any(lane.is_down for lane in g.lanes):
            assert g.in_flight <= g.limit, "admitted within the limit of that moment"
    for _ in range(len(tasks) + 1):
        while at_work():
            comes_back("reply", None)
            await settle()
        await time.pass_(100.0)
    assert all(t.done() for t in tasks), "somebody was forgotten"
    assert g.in_flight == 0
    await stop(tasks)


def test_refusals_of_calls_that_went_out_before_the_count_began_anew() -> None:
    """What was sent before a change of the pace says nothing about the new one, however much of it is refused."""
    pace = Pace()
    now = 0.0
    for n in range(200):
        now += 0.001
        pace.took(now)
        pace.ended(now + 0.0005, now, n >= 150)
    assert pace.rate is not None
    before = pace.rate
    for n in range(100, 200):
        pace.ended(now + 0.01, n / 1000, True)
    assert pace.rate == before
