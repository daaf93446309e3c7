"""Runs over the servers that people have: slow, limited, gone for a while, odd; what came of them."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.errors import StudyError
from judge.providers import base
from judge.providers.replicas import make_replicas
from judge.runner import Live, open_patiently, writer
from judge.runner import run as run_module
from judge.runner import server as model_server
from judge.runner.requests import Sampling
from judge.store import Store, runs
from judge.types import Json
from tests.loopback.capacity import Bucket
from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import Out
from tests.runner.helpers import HASTY, Fake, attempts, make_study, numbered, plan, run, select, served

WAITS = replace(HASTY, outage=30.0)


@pytest.fixture(autouse=True)
def short_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_server, "FIRST_PROBE", 0.02)
    monkeypatch.setattr(model_server, "LAST_PROBE", 0.05)


async def test_a_server_that_is_gone_for_a_while_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes back only when the progress line has said that it is gone: no clock decides."""
    monkeypatch.setattr(run_module, "TICK_SECONDS", 0.01)
    db = make_study(tmp_path / "s.db", numbered(100))
    said = asyncio.Event()

    def watch(live: Live) -> None:
        if live.dispatcher.down_for() is not None:
            said.set()

    async with OpenAIServer() as server, served(server) as provider:
        server.delay = 0.005

        def hang(body: dict[str, Any], number: int) -> Fault | None:
            if number > 30 and not said.is_set():
                server.delay = 60  # in flight when the server goes
            return None

        server.plan.when = hang

        async def go_and_return() -> None:
            while server.requests < 32:
                await asyncio.sleep(0.001)
            await server.stop()
            await asyncio.wait_for(said.wait(), 30)
            server.delay = 0.005
            await server.start()

        gone = asyncio.create_task(go_and_return())
        # Without a fixed concurrency, the controller may undo a doubling here: server and run share one event loop,
        # so that on a busy machine more calls at once are slower without bringing more replies.
        report = await run(db, provider, plan(patience=WAITS, concurrency=16), watch=watch)
        await gone
    assert report.ended == {"ok": 100}
    assert report.cuts == 0, "a dead server is no rate limit"
    # The server counts what it has taken: calls that were cut off when it went are asked again, no others.
    assert attempts(db) == {f"t:{n}/p": ["ok"] for n in range(100)}
    assert server.requests - 100 <= server.max_concurrency


async def test_a_server_that_answers_503_for_a_while_is_waited_for(tmp_path: Path) -> None:
    """Longer than the six tries of a unit take: it is the server, not the units."""
    db = make_study(tmp_path / "s.db", numbered(100))
    async with OpenAIServer() as server, served(server) as provider:
        server.delay = 0.002
        loop = asyncio.get_running_loop()
        until: list[float] = []

        def loading(body: dict[str, Any], number: int) -> Fault | None:
            if number > 30 and not until:
                until.append(loop.time() + 0.6)
            return Fault("503") if until and loop.time() < until[0] else None

        server.plan.when = loading
        report = await run(db, provider, plan(patience=WAITS, concurrency=8))
    assert report.labelled == 100


async def test_two_replicas_share_the_calls_and_one_may_go_and_come_back(tmp_path: Path) -> None:
    db = make_study(tmp_path / "s.db", numbered(300))
    async with OpenAIServer() as first, OpenAIServer() as two:
        settings = base.Settings(base_url=first.url, replicas=(two.url,))
        provider = make_replicas("openai/loopback", settings)
        await provider.open()
        first.delay = two.delay = 0.01
        first.reset_counts()
        two.reset_counts()

        async def go_and_return() -> None:
            while two.requests < 30:
                await asyncio.sleep(0.001)
            await two.stop()
            before = first.requests
            while first.requests < before + 50:
                await asyncio.sleep(0.001)
            first.delay = 0.05  # there is time for the other one to be found again
            await two.start()

        gone = asyncio.create_task(go_and_return())
        report = await run(db, provider, plan(patience=WAITS, concurrency=8))
        await gone
        await provider.close()
    assert report.ended == {"ok": 300}
    assert two.requests > 40, "it was taken back"
    where = dict(select(db, "SELECT base_url, count(*) FROM judgements GROUP BY 1"))
    assert set(where) == {first.url, two.url}, "each answer says where it came from"


async def test_a_locked_study_pauses_the_sending_and_loses_no_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(writer, "AGAIN_SECONDS", 0.05)
    db = make_study(tmp_path / "s.db", numbered(300))
    monkeypatch.setattr(run_module, "TICK_SECONDS", 0.01)
    fake = Fake(delay=0.004)
    other = sqlite3.connect(db, isolation_level=None)
    states: list[str] = []

    def watch(live: Live) -> None:
        """Lock the study once, until the progress line says that it is locked."""
        if not states and live.report.done > 20:
            other.execute("BEGIN IMMEDIATE")
            states.append("locked")
        elif states == ["locked"] and live.stalled is not None:
            other.execute("ROLLBACK")
            states.append("free")

    report = await run(db, fake, plan(patience=WAITS, concurrency=8), watch=watch)
    other.close()
    assert states == ["locked", "free"]
    assert report.ended == {"ok": 300}
    assert len(fake.requests) == 300, "no reply was paid twice"
    assert report.error is None


@pytest.mark.parametrize("is_released", [True, False], ids=["released", "stays"])
async def test_a_lock_at_the_very_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_released: bool
) -> None:
    """All judgements are in the study, and only the end of the run has still to be stored."""
    monkeypatch.setattr(writer, "BUSY_SECONDS", 0.02)
    monkeypatch.setattr(writer, "AGAIN_SECONDS", 0.02)
    db = make_study(tmp_path / "s.db", numbered(5))
    other = sqlite3.connect(db, isolation_level=None)
    tries: list[int] = []
    real = runs.keep_facts

    def locking(store: Store, run_id: str, facts: Mapping[str, Json]) -> None:
        tries.append(0)
        if len(tries) == 2:  # the first one is at the start
            other.execute("BEGIN IMMEDIATE")
        elif len(tries) == 3 and is_released:
            other.execute("ROLLBACK")
        real(store, run_id, facts)

    monkeypatch.setattr(runs, "keep_facts", locking)
    patience = WAITS if is_released else replace(HASTY, outage=0.1)
    report = await run(db, Fake(), plan(patience=patience))
    other.close()
    assert report.ended == {"ok": 5} and len(attempts(db)) == 5, "what was answered is kept"
    finished = select(db, "SELECT finished IS NOT NULL FROM runs")
    if is_released:
        assert len(tries) > 2
        assert (report.error, finished) == (None, [(1,)])
    else:
        assert isinstance(report.error, StudyError) and report.error.passing
        assert finished == [(0,)]


async def test_a_limit_without_any_burst_lets_the_run_begin(tmp_path: Path) -> None:
    """Of the questions that are sent together one is answered: the others are sent one by one then."""
    db = make_study(tmp_path / "s.db", numbered(5))
    async with OpenAIServer() as server:
        server.capacity = Bucket(4)
        provider = base.get("openai/loopback", base.Settings(base_url=server.url))
        patience = replace(WAITS, base=0.5, longest=0.5, draw=random.Random(1))
        await open_patiently(provider, plan(patience=patience))
        # Eleven at once, of which one is answered. Of the others ten may be left, each of which is refused once.
        assert server.requests <= 11 + 2 * 10
        server.capacity = None
        report = await run(db, provider)
        await provider.close()
    assert report.ended == {"ok": 5}


@pytest.mark.parametrize("kind", ["large", "digits"])
async def test_one_odd_reply_harms_no_other_unit(tmp_path: Path, kind: str) -> None:
    db = make_study(tmp_path / "s.db", numbered(20))

    class Odd(OpenAIServer):
        def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
            out = super().answer(body, head, fault)
            if "Passage number 7." in str(body):
                if kind == "large":
                    out.body = b" " * (9 * 2**20) + out.body
                else:
                    out.headers += b"x-ratelimit-remaining-requests: " + b"9" * 5000 + b"\r\n"
            return out

    async with Odd() as server, served(server) as provider:
        report = await run(db, provider, plan(patience=replace(WAITS, tries=2)))
    assert report.error is None
    assert report.ended == ({"ok": 19, "failed": 1} if kind == "large" else {"ok": 20})


ODD_PROBABILITIES = {
    "null": "null",
    "no content": '{"content":null}',
    "list": "[]",
    "word": '"none"',
    "null token": '{"content":[{"token":null,"logprob":-0.1,"top_logprobs":[]}]}',
    "null listed": '{"content":[{"token":"A","logprob":null,"top_logprobs":null}]}',
    "null number": '{"content":[{"token":"A","logprob":null,"top_logprobs":[{"token":"A","logprob":null}]}]}',
    "text number": '{"content":[{"token":"A","logprob":"high","top_logprobs":[]}]}',
    "not finite": '{"content":[{"token":"A","logprob":NaN,"top_logprobs":[{"token":"B","logprob":-Infinity}]}]}',
}


@pytest.mark.parametrize("kind", ODD_PROBABILITIES)
async def test_odd_log_probabilities_cost_the_distribution_and_not_the_label(
    tmp_path: Path, kind: str
) -> None:
    """The reply is paid for and its text is a label: it is kept, and asked for once."""
    db = make_study(tmp_path / "s.db", numbered(20))

    class Odd(OpenAIServer):
        def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
            good = (
                '{"content":[{"token":"A","logprob":-0.01,"top_logprobs":[{"token":"A","logprob":-0.01}]}]}'
            )
            logprobs = ODD_PROBABILITIES[kind] if "Passage number 7." in str(body) else good
            message = '"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"A"}'
            return Out(f'{{"model":"m","choices":[{{{message},"logprobs":{logprobs}}}]}}'.encode())

    async with Odd() as server, served(server) as provider:
        report = await run(db, provider, plan(patience=WAITS, sampling=Sampling(answers="codes")))
        assert server.requests == 20
    assert (report.error, report.ended) == (None, {"ok": 20})
    without = select(db, "SELECT unit_id FROM labels WHERE distribution IS NULL AND field = 'stance'")
    assert without == [("t:7/p",)]


async def test_what_a_server_refuses_is_noted_without_waiting_for_a_locked_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop notes it between two calls: it may not wait for another program's lock there."""
    db = make_study(tmp_path / "s.db", numbered(20))
    waits: list[int] = []
    real = runs.keep_facts

    def keeping(store: Store, run_id: str, facts: Mapping[str, Json]) -> None:
        waits.append(store.conn.execute("PRAGMA busy_timeout").fetchone()[0])
        real(store, run_id, facts)

    monkeypatch.setattr(runs, "keep_facts", keeping)

    class Learning(Fake):
        def describe(self) -> Mapping[str, Json]:
            return {"left_out": ["seed"]} if len(self.requests) > 5 else {}

    report = await run(db, Learning(), plan(patience=WAITS))
    assert report.ended == {"ok": 20}
    before, *learnt, after = waits
    assert learnt and max(learnt) < 100, "milliseconds"
    assert before > 1000 and after >= 100, "at the run's ends it may"
    assert "seed" in select(db, "SELECT provider FROM runs")[0][0]
