"""Commits: when they start, what is in them, and that nothing counts before or without them."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from judge.errors import AdjudgeError, WriteFailed
from judge.runner import writer as writer_module
from judge.runner.writer import GATHER_SECONDS, Attempts, Writer
from judge.store import Store, runs
from judge.store.judgements import Entry, RequestRecord
from judge.types import Answered, Judgement, Status, Usage
from tests.runner.helpers import make_study, numbered, plan, select


class Log:
    """What a writer told, in order."""

    def __init__(self) -> None:
        self.acknowledged: list[list[str]] = []
        self.errors: list[AdjudgeError] = []

    def yes(self, batch: list[Attempts]) -> None:
        self.acknowledged.append([e.judgement.unit_id for attempts in batch for e in attempts])

    def no(self, error: AdjudgeError) -> None:
        self.errors.append(error)


class Clock:
    """Time that passes only in `sleep`, which is called in the writer's thread."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(make_study(tmp_path / "s.db", numbered(50))) as opened:
        yield opened


@pytest.fixture
def run_id(store: Store) -> str:
    return runs.start_run(store, plan().task, "test/model", {}, {})[0]


def judged(run_id: str, n: int, attempt: int = 1, reply: str = "{}") -> Entry:
    record = RequestRecord(f"sha-{n}-{attempt}", "test/model", "prefix", None, f"unit-{n}", "{}", 0)
    unit = f"t:{n}/p"
    labels = (Answered("stance", "support"),)
    return Entry(
        Judgement(run_id, unit, 0, attempt, Status.OK, reply, None, labels, Usage(), 0.1, record.request_sha),
        record,
    )


def stored(store: Store) -> list[str]:
    query = "SELECT unit_id FROM judgements ORDER BY length(unit_id), unit_id, attempt"
    return [row[0] for row in select(store.path, query)]


async def test_the_first_reply_waits_and_those_that_come_meanwhile_are_in_its_commit(
    store: Store, run_id: str
) -> None:
    clock, log = Clock(), Log()
    awake = threading.Event()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        awake.wait(10)

    w = Writer(store, log.yes, log.no, clock, sleep)
    w.add([judged(run_id, 0)])
    while not clock.slept:
        await asyncio.sleep(0.001)
    w.add([judged(run_id, 1)])
    w.add([judged(run_id, 2)])
    assert w.unsaved == 3
    assert log.acknowledged == [], "nothing counts before its commit"
    awake.set()
    await w.close()
    assert log.acknowledged == [["t:0/p", "t:1/p", "t:2/p"]], "one commit"
    assert clock.slept == [GATHER_SECONDS]
    assert w.unsaved == 0
    assert stored(store) == ["t:0/p", "t:1/p", "t:2/p"]


async def test_waiting_for_the_commit_before_counts(
    store: Store, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, log = Clock(), Log()
    in_commit, go_on = threading.Event(), threading.Event()
    real = writer_module.add_judgements

    def slow(*args: Any) -> None:
        in_commit.set()
        go_on.wait(10)
        real(*args)

    monkeypatch.setattr(writer_module, "add_judgements", slow)
    w = Writer(store, log.yes, log.no, clock, clock.sleep)
    w.add([judged(run_id, 0)])
    await asyncio.to_thread(in_commit.wait, 10)
    w.add([judged(run_id, 1)])
    clock.now += 0.006  # the commit takes that long, the second reply waiting behind it
    go_on.set()
    while len(log.acknowledged) < 2:
        await asyncio.sleep(0.001)
    await w.close()
    assert log.acknowledged == [["t:0/p"], ["t:1/p"]]
    # The second one has 6 ms less to wait for company.
    assert clock.slept == pytest.approx([GATHER_SECONDS, GATHER_SECONDS - 0.006])


async def test_synchronous_is_full(store: Store) -> None:
    with store.clone() as other:
        assert other.conn.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
        assert other.conn.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch, more_pages: int) -> Iterator[None]:
    """Connections that are opened in here may make the file only so many pages longer."""
    real: Callable[[Store], Store] = Store.clone

    def clone(self: Store) -> Store:
        store = real(self)
        pages = store.conn.execute("PRAGMA page_count").fetchone()[0]
        store.conn.execute(f"PRAGMA max_page_count = {pages + more_pages}")
        return store

    with monkeypatch.context() as patched:
        patched.setattr(Store, "clone", clone)
        yield


async def test_a_failed_commit_acknowledges_nothing_of_its_batch_nor_later(
    store: Store, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    with full_disk(monkeypatch, more_pages=30):
        w = Writer(store, log.yes, log.no)
        w.add([judged(run_id, 0)])
        while not log.acknowledged:
            await asyncio.sleep(0.001)
        # 200 kB do not fit on 30 pages of 4 kB; the small one in the same batch goes with it.
        w.add([judged(run_id, 1)])
        w.add([judged(run_id, 2, reply="x" * 200_000)])
        while not log.errors:
            await asyncio.sleep(0.001)
        w.add([judged(run_id, 3)])
        await w.close()
    assert log.acknowledged == [["t:0/p"]]
    assert len(log.errors) == 1
    assert isinstance(log.errors[0], WriteFailed)
    assert "full" in str(log.errors[0])
    assert "run the same command" in str(log.errors[0])
    assert stored(store) == ["t:0/p"]
    assert w.unsaved == 3
    assert select(store.path, "SELECT count(*) FROM labels WHERE annotator_id <> 'gold'") == [(1,)]


async def test_any_other_failure_is_a_failed_write_too(store: Store, run_id: str) -> None:
    log = Log()
    w = Writer(store, log.yes, log.no)
    w.add([judged(run_id, 0)])
    w.add([judged("no such run", 1)])  # a foreign key that points nowhere
    await w.close()
    assert log.acknowledged == []
    assert [type(e) for e in log.errors] == [WriteFailed]
    assert stored(store) == []


async def test_replies_that_no_database_takes(store: Store, run_id: str) -> None:
    """Half a surrogate pair, as in a reply cut in the middle of an emoji's escape, ends no run."""
    log = Log()
    entry = judged(run_id, 0, reply="broken \ud83d end")
    w = Writer(store, log.yes, log.no)
    w.add([entry])
    await w.close()
    assert log.errors == []
    assert select(store.path, "SELECT reply FROM judgements") == [("broken ? end",)]
