"""A study that cannot be written for longer than anybody waits: every reply that was received is in it in the end."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from judge.errors import StudyError
from judge.runner import Live, writer
from judge.runner import run as run_module
from judge.store import Store, runs
from judge.store.aside import Aside, take_in
from tests.forks import together
from tests.loopback.process import ServerProcess
from tests.runner.helpers import HASTY, Fake, attempts, make_study, numbered, plan, run, select
from tests.runner.processes import Forked as Driven
from tests.runner.test_writer import judged


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return make_study(tmp_path / "study [1].db", numbered(100))


@pytest.fixture
def other(db: Path) -> Iterator[sqlite3.Connection]:
    """Another program with the study open."""
    conn = sqlite3.connect(db, isolation_level=None)
    yield conn
    conn.close()


def beside(db: Path) -> list[Path]:
    return [path for path in db.parent.iterdir() if path.name.endswith(".unsaved.jsonl")]


async def test_a_lock_that_outlasts_patience_loses_no_reply(
    db: Path, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BUSY_SECONDS", 0.02)
    monkeypatch.setattr(run_module, "TICK_SECONDS", 0.01)
    # However slow the machine, the last unit is not sent before the lock is noticed.
    monkeypatch.setattr(run_module, "MOST_UNSAVED", 20)
    fake = Fake(delay=0.004)

    def watch(live: Live) -> None:
        if live.report.done > 20 and not other.in_transaction:
            other.execute("BEGIN IMMEDIATE")

    run_plan = plan(patience=replace(HASTY, outage=0.2), concurrency=8)
    report = await run(db, fake, run_plan, watch=watch)
    assert isinstance(report.error, StudyError)
    kept = len(attempts(db))
    received = len(fake.requests)
    assert 20 < kept < received < 100
    assert report.pending == 100 - kept, "what is not in the study does not count"
    assert f"{received - kept} units are in study [1].db." in str(report.error)
    assert len(str(report.error).splitlines()) == 1
    other.execute("ROLLBACK")
    report = await run(db, fake, plan())
    assert report.error is None
    assert (report.ended["ok"], report.already_judged) == (100 - received, received)
    assert report.notes == (
        f"{received - kept} answers that an earlier run could not save were stored now and not requested again",
    )
    assert len(fake.requests) == 100, "nothing was paid twice"
    assert attempts(db) == {f"t:{n}/p": ["ok"] for n in range(100)}
    assert beside(db) == []


@together
def test_killed_while_another_program_holds_the_study(db: Path, other: sqlite3.Connection) -> None:
    """kill -9 once every reply that came is set aside: each unit has been paid for once in the end."""
    with ServerProcess("openai", "--delay", "0.05", "--record") as server:
        command = ("openai/m", "--base-url", server.url)
        with Driven(db, *command, "--outage", "600") as going:
            assert going.wait_for(20)
            other.execute("BEGIN IMMEDIATE")
            before = len(attempts(db))
            while (
                not beside(db)
                or sum(p.read_bytes().count(b"\n") for p in beside(db)) < answered(server) - before
            ):
                assert going.wait_for_more(), str(going.report)
            going.kill()
        other.execute("ROLLBACK")
        assert len(beside(db)) == 1
        with Driven(db, *command) as again:
            report = again.end()
        n_sent = answered(server)
    assert report["pending"] == 0
    assert attempts(db) == {f"t:{n}/p": ["ok"] for n in range(100)}
    assert n_sent == 100
    assert beside(db) == []


def answered(server: ServerProcess) -> int:
    """Units asked, the probes of a start left out."""
    return sum("Passage number" in str(body) for body in server.bodies())


@pytest.mark.parametrize("cut", [1, 30])
def test_what_was_being_written_when_the_run_was_killed(db: Path, cut: int) -> None:
    """The line that was cut is passed over; so is what the study has already, and what it has no unit for."""
    with Store.open(db) as store:
        run_id = begun(store)
        aside = Aside(db, run_id)
        aside.write([judged(run_id, n) for n in range(3)])
        aside.write([judged(run_id, 2), judged("no such run", 3), judged(run_id, 1000)])
        aside.close(committed=False)
        assert take_in_cut(store, aside.path, 0) == 3
        aside.write([judged(run_id, 3), judged(run_id, 4, reply="half \ud83d pair")])
        aside.close(committed=False)
        assert take_in_cut(store, aside.path, cut) == 1
    assert sorted(attempts(db)) == [f"t:{n}/p" for n in range(4)]
    assert select(db, "SELECT count(*) FROM labels") == [(4,)]


def take_in_cut(store: Store, path: Path, cut: int) -> int:
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut])
    taken = take_in(store)
    assert not path.exists()
    return taken


def begun(store: Store) -> str:
    return runs.start_run(store, plan().task, "test/model", {}, {})[0]


def test_a_file_that_is_no_runs_own(db: Path) -> None:
    db.with_name(f"{db.name}.x.unsaved.jsonl").write_text('{"judgement": 3}\n')
    with (
        Store.open(db) as store,
        pytest.raises(StudyError, match=r"x\.unsaved\.jsonl:1: "),
    ):
        take_in(store)


def test_what_another_run_is_writing_is_left_to_it(db: Path) -> None:
    with Store.open(db) as store:
        aside = Aside(db, begun(store))
        aside.write([judged("any", 0)])
        assert take_in(store) == 0
        assert aside.path.exists()
        aside.close(committed=True)
        assert not aside.path.exists()
