"""Whole runs over servers that speak the vendors' wire formats and misbehave."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.errors import KeyProblem, RateLimited, Rejected, Unreachable
from judge.runner import run as run_module
from judge.runner import server as model_server
from judge.runner.rate import RateController
from judge.runner.retry import Patience
from judge.types import Reply, Request
from tests.loopback.anthropic_server import AnthropicServer
from tests.loopback.faults import Fault, Rule
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import LoopbackServer
from tests.runner.helpers import (
    HASTY,
    Fake,
    attempts,
    label,
    make_study,
    number_in,
    numbered,
    plan,
    run,
    select,
    served,
)

UNITS = 30


@pytest.fixture(params=[OpenAIServer, AnthropicServer], ids=["openai", "anthropic"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[LoopbackServer]:
    """Each vendor's server in turn."""
    async with request.param(record=True) as started:
        yield started


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_server, "FIRST_PROBE", 0.01)
    monkeypatch.setattr(model_server, "LAST_PROBE", 0.02)
    monkeypatch.setattr(run_module, "TICK_SECONDS", 0.01)


def requests_about(server: LoopbackServer, n: int) -> int:
    """How often the server was asked about one of the numbered texts."""
    return sum(f"Passage number {n}." in str(body) for body in server.bodies)


async def test_without_faults_every_unit_is_one_request(server: LoopbackServer, db: Path) -> None:
    async with served(server) as provider:
        report = await run(db, provider)
    assert report.ended == {"ok": UNITS}
    assert report.labelled == UNITS
    assert server.requests == UNITS
    assert [requests_about(server, n) for n in range(UNITS)] == [1] * UNITS
    assert report.usage["input_tokens"] > 0


PASSING = [
    Fault("429", headers={"retry-after": "0.02"}),
    Fault("429", headers={"retry-after-ms": "15"}),
    Fault("429"),
    Fault("500"),
    Fault("502"),
    Fault("503", headers={"retry-after": "0.01"}),
    Fault("529"),
    Fault("408"),
    Fault("reset"),
    Fault("cut"),
    Fault("truncated"),
    Fault("not_json"),
    Fault("empty"),
]


@pytest.mark.parametrize("fault", PASSING, ids=lambda f: f.kind)
async def test_what_passes_is_tried_again(server: LoopbackServer, db: Path, fault: Fault) -> None:
    # Five units meet the fault twice: up to 10 refusals are never taken for a rate limit, whenever they come.
    left = {f"Passage number {n}.": 2 for n in (0, 7, 14, 21, 28)}

    def twice(body: dict[str, Any], number: int) -> Fault | None:
        for text in left:
            if text in str(body) and left[text]:
                left[text] -= 1
                return fault
        return None

    async with served(server) as provider:
        server.plan.when = twice
        report = await run(db, provider, plan(concurrency=8))
    assert set(left.values()) == {0}
    assert report.ended == {"ok": UNITS}
    assert server.requests == UNITS + 2 * len(left)
    assert attempts(db) == {f"t:{n}/p": ["ok"] for n in range(UNITS)}, "tries are not attempts"
    if fault.kind not in ("429", "529"):
        assert report.cuts == 0, "only rate limits slow a run down"


async def test_no_answer_in_time_is_tried_again(server: LoopbackServer, db: Path) -> None:
    # On a busy machine good answers may be late, too: they cost tries, and no unit.
    patient = plan(patience=replace(HASTY, tries=1000, outage=60.0))
    async with served(server, timeout=0.5) as provider:
        server.plan.rules = [Rule(Fault("slow", seconds=600), share=0.2, times=1)]
        report = await run(db, provider, patient)
    assert report.ended == {"ok": UNITS}


def test_a_call_that_stalls_while_others_come_back_is_no_queue() -> None:
    """A time-out lowers the limit where everything is slow, and not where one call of many hangs."""
    stalled = RateController(64, 64, timeout=1.0)
    for _ in range(8):
        stalled.record_sent(0.0)
    for _ in range(7):
        stalled.record_end()
        stalled.record_reply(0.05, 0.0, 64)
    assert not stalled.record_timeout(1.0, 0.0), "it is the unit that has lost a try"
    assert (stalled.limit, stalled.cuts) == (64, 0)
    queue = RateController(64, 64, timeout=1.0)
    for _ in range(64):
        queue.record_sent(0.0)
    # One at a time, 0.1 s each: 9 are answered before the others time out, 10 a second.
    for n in range(1, 10):
        queue.record_end()
        queue.record_reply(n / 10, 0.0, 64)
    assert queue.record_timeout(1.0, 0.0)
    # Between the first reply (at 0.1 s) and the time-out 8 more in 0.9 s are 8.9 a second, of which 4 take 0.5 s.
    assert (queue.limit, queue.cuts) == (4, 1)
    assert queue.record_timeout(1.0, 0.0)
    assert (queue.limit, queue.cuts) == (4, 1), (
        "calls that were sent before the cut are no evidence against it"
    )


async def test_a_reply_that_cannot_be_read_is_repaired_once(server: LoopbackServer, db: Path) -> None:
    async with served(server) as provider:
        server.plan.rules = [Rule(Fault("wrong_label"), first=1)]
        report = await run(db, provider, plan(concurrency=1))
    assert report.ended == {"ok": UNITS}
    assert server.requests == UNITS + 1
    assert attempts(db)["t:0/p"] == ["unparsed", "ok"], "both are kept"
    repair = next(str(b) for b in server.bodies if "This could not be used" in str(b))
    assert "no-such-label" in repair, "the model sees its own reply"
    # Two requests, two hashes; the label belongs to the second.
    shas = select(db, "SELECT request_sha FROM judgements WHERE unit_id = 't:0/p' ORDER BY attempt")
    assert len(set(shas)) == 2
    assert len(select(db, "SELECT 1 FROM labels WHERE unit_id = 't:0/p' AND field = 'stance'")) == 1


async def test_a_second_wrong_label_stays_unparsed(server: LoopbackServer, db: Path) -> None:
    async with served(server) as provider:
        server.plan.rules = [Rule(Fault("wrong_label"))]
        report = await run(db, provider)
    assert report.ended == {"unparsed": UNITS}
    assert server.requests == 2 * UNITS, "one repair, no more"
    assert attempts(db) == {f"t:{n}/p": ["unparsed", "unparsed"] for n in range(UNITS)}
    replies = select(db, "SELECT DISTINCT reply FROM judgements")
    assert ["no-such-label" in reply for (reply,) in replies] == [True], "the raw reply is kept"
    assert select(db, "SELECT 1 FROM labels") == []


@pytest.mark.parametrize(("kind", "status"), [("refusal", "refused"), ("length", "truncated")])
async def test_final_statuses_are_not_repaired(
    server: LoopbackServer, db: Path, kind: str, status: str
) -> None:
    async with served(server) as provider:
        server.plan.rules = [Rule(Fault(kind), every=3)]
        report = await run(db, provider, plan(concurrency=1))
    assert report.ended == {"ok": UNITS - UNITS // 3, status: UNITS // 3}
    assert server.requests == UNITS


async def test_one_poisoned_unit_fails_alone_and_is_what_the_next_run_asks(
    server: LoopbackServer, db: Path
) -> None:
    def poison(body: dict[str, Any], number: int) -> Fault | None:
        return Fault("500") if "Passage number 3." in str(body) else None

    async with served(server) as provider:
        server.plan.when = poison
        report = await run(db, provider, plan(concurrency=4))
        assert report.ended == {"ok": UNITS - 1, "failed": 1}
        assert report.error is None, "the run itself went well"
        assert requests_about(server, 3) == 6, "as often as patience allows"
        reason = select(db, "SELECT unit_id, reason FROM judgements WHERE status = 'failed'")
        assert [(unit, "HTTP 500" in why) for unit, why in reason] == [("t:3/p", True)]

        server.plan.when = None
        server.reset_counts()
        again = await run(db, provider)
    assert (again.ended, again.already_judged) == ({"ok": 1}, UNITS - 1)
    assert server.requests == 1
    assert attempts(db)["t:3/p"] == ["failed", "ok"]


async def test_several_poisoned_units_at_the_end_do_not_look_like_a_dead_server(
    server: LoopbackServer, db: Path
) -> None:
    """They are still being tried when everything else is answered."""

    def poison(body: dict[str, Any], number: int) -> Fault | None:
        return Fault("500") if any(f"Passage number {n}." in str(body) for n in range(8)) else None

    async with served(server) as provider:
        server.plan.when = poison
        server.delay = 0.005
        report = await run(db, provider, plan(concurrency=16, patience=Patience(base=0.03, longest=0.05)))
    assert report.ended == {"ok": UNITS - 8, "failed": 8}
    assert report.error is None


async def test_a_server_that_is_never_there(tmp_path: Path) -> None:
    db = make_study(tmp_path / "s.db", numbered(2000))
    server = OpenAIServer()
    await server.start()
    async with served(server) as provider:
        await server.stop()
        # An hour of patience is for servers that have answered: this would not end.
        report = await run(db, provider, plan(concurrency=8, patience=replace(HASTY, outage=3600.0)))
    assert isinstance(report.error, Unreachable)
    assert report.error.exit_code == 3
    assert (report.ended, report.pending) == ({}, 2000)
    assert attempts(db) == {}


async def test_a_key_that_is_refused_in_the_middle_stops_at_once(server: LoopbackServer, db: Path) -> None:
    refusals = 0

    def revoked(body: dict[str, Any], number: int) -> Fault | None:
        nonlocal refusals
        refusals += number > 10
        return Fault("401") if number > 10 else None

    async with served(server) as provider:
        server.plan.when = revoked
        report = await run(db, provider, plan(concurrency=4))
        assert isinstance(report.error, KeyProblem)
        assert report.ended == {"ok": 10}
        assert report.pending == UNITS - 10, "nothing is failed: it says nothing about the units"
        assert refusals <= 4, "those that were in flight already"
        server.plan.when = None
        again = await run(db, provider)
    assert (again.labelled, again.already_judged) == (UNITS, 10)


@pytest.mark.parametrize(
    ("fault", "tried"),
    [
        (Fault("500"), ["unparsed", "failed"]),
        (Fault("400", message="the conversation is too long: context length exceeded"), ["unparsed"]),
    ],
    ids=["no server", "refused"],
)
async def test_a_repair_that_fails(server: LoopbackServer, db: Path, fault: Fault, tried: list[str]) -> None:
    """If no server could be reached, the next run asks again. If the repair is refused, the unit remains unparsed."""

    def broken(body: dict[str, Any], number: int) -> Fault | None:
        if "Passage number 0." not in str(body):
            return None
        return fault if "This could not be used" in str(body) else Fault("wrong_label")

    async with served(server) as provider:
        server.plan.when = broken
        report = await run(db, provider)
        assert report.ended == {"ok": UNITS - 1, tried[-1]: 1}
        assert attempts(db)["t:0/p"] == tried
        server.plan.when = None
        again = await run(db, provider)
    assert again.labelled == UNITS - (tried[-1] == "unparsed")
    assert attempts(db)["t:0/p"] == tried + ["ok"] * (tried[-1] == "failed")


async def test_a_rate_limit_that_asks_for_hours_ends_the_run(server: LoopbackServer, db: Path) -> None:
    async with served(server) as provider:
        server.plan.rules = [Rule(Fault("429", headers={"retry-after": "86400"}), after=10)]
        report = await run(db, provider, plan(concurrency=2))
    assert isinstance(report.error, RateLimited)
    assert report.ended == {"ok": 10}
    assert report.pending == UNITS - 10, "the units are not to blame"


async def test_a_server_that_refuses_everything(tmp_path: Path, server: LoopbackServer) -> None:
    db = make_study(tmp_path / "many.db", numbered(200))
    async with served(server) as provider:
        server.plan.rules = [Rule(Fault("400", message="no"))]
        report = await run(db, provider, plan(concurrency=4))
    assert report.error is not None
    assert report.error.exit_code == 3
    assert 30 <= report.ended["failed"] <= 34, "30, and those in flight"


async def test_units_that_are_refused_each_for_itself(tmp_path: Path, server: LoopbackServer) -> None:
    db = make_study(tmp_path / "many.db", numbered(100))

    def too_long(body: dict[str, Any], number: int) -> Fault | None:
        return Fault("400", message="context length exceeded") if number > 5 and number <= 95 else None

    async with served(server) as provider:
        server.plan.when = too_long
        report = await run(db, provider, plan(concurrency=1))
    assert report.error is None
    assert report.ended == {"ok": 10, "failed": 90}
    assert server.requests == 100, "a refused request is not repeated"


@pytest.mark.parametrize("kind", ["401", "404", "429", "500", "reset", "slow", "empty", "quota"])
async def test_nothing_works_any_more(server: LoopbackServer, db: Path, kind: str) -> None:
    slow = kind == "slow"
    async with served(server, timeout=0.3 if slow else 30.0) as provider:
        server.plan.rules = [Rule(Fault(kind, seconds=30 if slow else 0), after=5)]
        report = await run(db, provider, plan(concurrency=3))
    assert report.error is not None
    assert report.error.exit_code == 3
    # On a busy machine one of the five may be late, too.
    assert report.ended["ok"] == 5 or (slow and report.ended["ok"] < 5)
    # A refused key or a dead server says nothing about a unit; an address that is not found three times
    # ends the run, and units that were in flight at the last good reply may have used their tries up.
    assert report.ended["failed"] <= {"401": 0, "quota": 0, "404": 5}.get(kind, 3)


async def test_a_run_in_which_new_units_come_first_gets_on(db: Path) -> None:
    """Units that failed before wait behind those that nobody has asked about."""
    order: list[int] = []

    def answer(request: Request, tries: int) -> Reply:
        order.append(number_in(request))
        if order[-1] < 3:
            raise Rejected("too long", 400)
        if len(order) == 6:
            raise KeyProblem("refused")
        return label()

    first = await run(db, Fake(answer), plan(concurrency=1))
    assert (first.ended, first.pending) == ({"failed": 3, "ok": 2}, UNITS - 5)
    assert order == [0, 1, 2, 3, 4, 5]
    second = await run(db, Fake(answer), plan(concurrency=1))
    assert order[6:] == [*range(5, UNITS), 0, 1, 2]
    assert (second.ended, second.already_judged) == ({"failed": 3, "ok": UNITS - 5}, 2)
