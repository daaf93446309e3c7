"""Who is let in and when, on a clock that only moves when a test moves it."""

import asyncio
import heapq
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import RateLimited, ServerFault, Unreachable
from judge.runner.dispatch import Dispatcher
from judge.runner.server import REFUSALS, REFUSED_SECONDS, End, Slot, ending
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


def dispatcher(time: FakeTime, concurrency: int | None = 100) -> Dispatcher:
    return Dispatcher(concurrency, clock=time.clock, later=time.later)


async def entering(d: Dispatcher, count: int, tokens: int = 0) -> list[asyncio.Task[Slot]]:
    """Tasks that want in, as far as they get."""
    tasks = [asyncio.create_task(d.enter(tokens)) for _ in range(count)]
    await settle()
    return tasks


def inside(tasks: list[asyncio.Task[Slot]]) -> int:
    return sum(t.done() and not t.cancelled() for t in tasks)


async def stop(tasks: list[asyncio.Task[Slot]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- when


def delay(d: Dispatcher, time: FakeTime, tokens: int = 0) -> float:
    return d.servers[0].delay(time.now, tokens)


def obey_headers(d: Dispatcher, time: FakeTime, rate: RateState) -> None:
    d.servers[0].rate.obey(rate, time.now)


def test_a_server_that_refuses_everything_is_left_alone_as_long_as_it_says(time: FakeTime) -> None:
    d = dispatcher(time)
    server = d.servers[0]
    for n in range(REFUSALS):
        time.now += 1.01 * REFUSED_SECONDS / (REFUSALS - 1)
        server.record_failure(
            server.take(time.now), time.now, time.now, f"unit {n}", RateLimited("slow down", 20.0)
        )
    assert server.is_down
    assert delay(d, time) == 20.0


async def test_the_token_budget_of_the_headers(time: FakeTime) -> None:
    d = dispatcher(time)
    obey_headers(d, time, RateState(remaining_tokens=250, reset_tokens=6.0))
    tasks = await entering(d, 3, tokens=100)
    assert inside(tasks) == 2, "250 hold two calls of 100 tokens"
    assert delay(d, time, 50) == 0, "50 are left"
    assert delay(d, time, 51) == 6
    await time.pass_(6.0)
    assert inside(tasks) == 3
    assert delay(d, time, 10**9) == 0, "full again: how much that is, the next reply says"


@pytest.mark.parametrize(
    ("rate", "calls", "tokens", "at_once"),
    [
        (RateState(remaining_requests=2, reset_requests=30.0), 5, 0, 2),
        # A call that is larger than the whole budget is sent when the budget is full.
        (RateState(remaining_tokens=100, reset_tokens=30.0), 1, 5000, 0),
    ],
    ids=["requests", "one large call"],
)
async def test_calls_over_the_budget_of_the_headers_wait_for_the_reset(
    time: FakeTime, rate: RateState, calls: int, tokens: int, at_once: int
) -> None:
    d = dispatcher(time)
    obey_headers(d, time, rate)
    tasks = await entering(d, calls, tokens)
    assert inside(tasks) == at_once
    await time.pass_(30.0)
    assert inside(tasks) == calls


def test_headers_that_say_only_half_of_it_hold_nothing(time: FakeTime) -> None:
    d = dispatcher(time)
    obey_headers(d, time, RateState(remaining_requests=0, remaining_tokens=0))
    assert delay(d, time, 10) == 0


async def test_a_better_header_lets_in_who_waits_without_a_timer(time: FakeTime) -> None:
    d = dispatcher(time)
    slot = await d.enter()
    obey_headers(d, time, RateState(remaining_tokens=0, reset_tokens=60.0))
    tasks = await entering(d, 1, tokens=10)
    assert inside(tasks) == 0
    obey_headers(d, time, RateState(remaining_tokens=500, reset_tokens=60.0))
    d.leave(slot, End.REPLY)
    await settle()
    assert inside(tasks) == 1


# --- waiting


async def test_first_come_first_served(time: FakeTime) -> None:
    d = dispatcher(time, 1)
    slot = await d.enter()
    order: list[int] = []

    async def enter_once(n: int) -> None:
        slot = await d.enter()
        order.append(n)
        d.leave(slot, End.REPLY)

    tasks = [asyncio.create_task(enter_once(n)) for n in range(5)]
    await settle()
    d.leave(slot, End.REPLY)
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]
    assert d.in_flight == 0


async def test_cancelling_one_who_waits_lets_the_next_one_in(time: FakeTime) -> None:
    d = dispatcher(time, 1)
    obey_headers(d, time, RateState(remaining_tokens=10, reset_tokens=60.0))
    large = (await entering(d, 1, tokens=100))[0]
    small = (await entering(d, 1, tokens=1))[0]
    assert not small.done(), "behind the large one"
    large.cancel()
    await settle()
    assert inside([small]) == 1, "no wake-up is lost with it"
    assert d.in_flight == 1


async def test_cancelled_in_the_moment_of_admission_gives_the_slot_on(time: FakeTime) -> None:
    d = dispatcher(time, 1)
    slot = await d.enter()
    first, second = await entering(d, 2)
    d.leave(slot, End.REPLY)  # admits the first, which has not run yet
    first.cancel()
    await settle()
    assert first.cancelled()
    assert inside([second]) == 1
    assert d.in_flight == 1


async def test_shut_cancels_who_waits_and_lets_nobody_in(time: FakeTime) -> None:
    d = dispatcher(time, 1)
    slot = await d.enter()
    waiting = await entering(d, 2)
    resting = asyncio.create_task(d.sleep(100))
    await settle()
    d.shut()
    await settle()
    assert all(t.cancelled() for t in [*waiting, resting])
    with pytest.raises(asyncio.CancelledError):
        await d.enter()
    with pytest.raises(asyncio.CancelledError):
        await d.sleep(0)
    d.leave(slot, End.REPLY)
    assert d.in_flight == 0


async def test_rest_takes_its_time_and_no_slot(time: FakeTime) -> None:
    d = dispatcher(time, 1)
    resting = asyncio.create_task(d.sleep(2.0))
    await settle()
    assert d.in_flight == 0
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


@given(ceiling=st.integers(1, 8), servers=st.integers(1, 3), steps=STEPS)
async def test_any_order_of_events(ceiling: int, servers: int, steps: list[tuple[str, int | None]]) -> None:
    """Nobody is let in over the limit, no slot is lost, and in the end everybody gets in."""
    time = FakeTime()
    d = Dispatcher(ceiling, [None] * servers, clock=time.clock, later=time.later)
    tasks: list[asyncio.Task[Slot]] = []
    back: set[asyncio.Task[Slot]] = set()

    def at_work() -> list[asyncio.Task[Slot]]:
        return [t for t in tasks if t.done() and not t.cancelled() and t not in back]

    def comes_back(event: str, value: int | None) -> None:
        task = at_work()[0]
        back.add(task)
        slot, error = task.result(), ERRORS.get(event)
        if event == "reply" and value is not None:
            slot.server.rate.obey(RateState(remaining_tokens=value, reset_tokens=3.0), time.now)
        if error is not None:
            slot.server.record_failure(slot, time.now, slot.at, str(id(task)), error)
        d.leave(slot, ending(error))

    for event, value in steps:
        before = d.in_flight
        if event == "enter":
            tasks += await entering(d, 1, tokens=value or 0)
        elif event == "time":
            await time.pass_(float(value or 0))
        elif event == "cancel":
            waiting = [t for t in tasks if not t.done()]
            if waiting:
                waiting[(value or 0) % len(waiting)].cancel()
        elif at_work():
            comes_back(event, value)
        await settle()
        assert d.in_flight == len(at_work()) <= ceiling * servers
        if d.in_flight > before and not any(server.is_down for server in d.servers):
            assert d.in_flight <= d.limit, "admitted within the limit of that moment"
    for _ in range(len(tasks) + 1):
        while at_work():
            comes_back("reply", None)
            await settle()
        await time.pass_(100.0)
    assert all(t.done() for t in tasks), "somebody was forgotten"
    assert d.in_flight == 0
    await stop(tasks)
