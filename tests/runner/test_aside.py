"""A study that cannot be written for longer than anybody waits: every reply that was received is in it in the end."""

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.errors import AdjudgeError, StudyError, WriteFailed
from judge.runner import Live, writer
from judge.runner import run as run_module
from judge.runner.writer import Writer
from judge.store import Store, runs
from judge.store import aside as aside_module
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


def test_a_full_disk_sends_the_file_to_another_place(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be written beside the study, so the file is in the second place, and the next run finds it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(
        aside_module, "find_places", lambda study: [(study.parent, study.name), (elsewhere, "hash")]
    )
    append = Aside._append

    def full(self: Aside, path: Path, lines: bytes) -> None:
        if path.parent == db.parent:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(self, path, lines)

    monkeypatch.setattr(Aside, "_append", full)
    with Store.open(db) as store:
        run_id = begun(store)
        aside = Aside(db, run_id)
        aside.write([judged(run_id, n) for n in range(3)])
        assert (aside.lost, aside.path.parent) == (None, elsewhere)
        assert aside.path.stat().st_mode & 0o077 == 0, "others cannot read the replies"
        aside.close(committed=False)
        assert take_in(store) == 3
    assert list(elsewhere.iterdir()) == [] and beside(db) == []


def test_entries_without_any_room_stay_in_memory_until_there_is_room(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Aside._append

    def full(self: Aside, path: Path, lines: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Store.open(db) as store:
        run_id = begun(store)
        aside = Aside(db, run_id)
        monkeypatch.setattr(Aside, "_append", full)
        aside.write([judged(run_id, 0)])
        assert aside.lost is not None
        monkeypatch.setattr(Aside, "_append", append)
        aside.write([judged(run_id, 1)])
        assert aside.lost is None
        aside.close(committed=False)
        assert take_in(store) == 2


async def test_a_disk_without_room_for_anything_loses_no_reply(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the study nor a second place has room, for longer than patience: the run waits, and then goes on."""
    monkeypatch.setattr(writer, "AGAIN_SECONDS", 0.01)
    failure, fake = Writer._failure, Fake(delay=0.002)
    refused = 0

    def full(self: Aside, path: Path, lines: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fails(self: Writer, *arguments: Any) -> AdjudgeError | None:
        nonlocal refused
        if len(fake.requests) > 20 and refused < 50:
            refused += 1
            return WriteFailed("the disk is full", passing=True)
        return failure(self, *arguments)

    monkeypatch.setattr(Aside, "_append", full)
    monkeypatch.setattr(Writer, "_failure", fails)
    report = await run(db, fake, plan(patience=replace(HASTY, outage=0.05), concurrency=8))
    assert refused == 50
    assert (report.error, report.ended) == (None, {"ok": 100})
    assert len(fake.requests) == 100, "nothing was paid twice"


async def test_a_disk_that_is_almost_full_stops_the_sending_before_a_commit_fails(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(run_module, "MOST_UNSAVED", 20)
    fake = Fake(delay=0.004)
    usage = shutil.disk_usage("/")

    def disk_usage(path: Path) -> Any:
        return usage._replace(free=1 if len(fake.requests) > 20 else 2**40)

    monkeypatch.setattr(writer.shutil, "disk_usage", disk_usage)
    report = await run(db, fake, plan(patience=replace(HASTY, outage=0.2), concurrency=8))
    assert isinstance(report.error, WriteFailed) and str(db) in str(report.error)
    assert 20 < len(fake.requests) < 100
    assert report.ended == {"ok": len(fake.requests)}, "every reply is in the study"
