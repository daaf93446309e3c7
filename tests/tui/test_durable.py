"""Killed, cut off, crowded, out of disk: what was acknowledged is there once, and nothing else is pretended."""

import multiprocessing
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from annotate.drawing.extend import extend_batch
from annotate.leading.verify import verify
from annotate.sitting.blind import Busy
from annotate.sitting.desk import Desk
from annotate.sitting.events import Event
from annotate.sitting.standing import events_of
from annotate.store import open_study
from judge.permissions import configuration_folder
from tests.annotate.agreement_helpers import annotate
from tests.tui.screens import press, screen, sitting, text_of
from tests.tui.studies import batch, build, drawn, labels, rows_of, three
from tests.tui.terminal import Terminal

FORK = multiprocessing.get_context("fork")
FIELDS = ["relevance", "stance", "quality"]
DOMAIN = {f: three().domain(f) for f in FIELDS}


def act(desk: Desk, dice: random.Random) -> None:
    """One thing a person may do, of those that commit an event."""
    position = dice.randint(1, desk.total)
    what = dice.random()
    if what < 0.6:
        field = dice.choice(FIELDS)
        desk.label(position, field, dice.choice(DOMAIN[field]))
    elif what < 0.75:
        if desk.undo() is None:
            desk.skip(position)
    elif what < 0.85:
        desk.skip(position)
    elif what < 0.95:
        desk.flag(position, dice.choice([None, "odd"]))
    else:
        desk.note(position, "seen")


def work(path: Path, person: str, seed: int, limit: int, reports: Connection) -> None:
    """A process that works until it is killed, or `limit` times; it tells after each commit."""
    dice = random.Random(seed)
    with open_study(path) as store, Desk.open(store, "pilot", person) as desk:
        done = 0
        while done < limit:
            with suppress(Busy):  # others write: "press the key again"
                act(desk, dice)
                done += 1
                reports.send_bytes(b".")
    reports.close()


def consistent(path: Path, person: str) -> int:
    """The log folded again is what the assignments and the labels say; returns the number of events."""
    with open_study(path) as store:
        assert store.conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        # These people open no unit on a screen, so nothing is noted as shown.
        assert [finding for finding in verify(store) if finding.kind != "exposure"] == []
        query = "SELECT count(*) FROM events WHERE annotator_id = ?"
        return int(store.conn.execute(query, [person]).fetchone()[0])


def test_killed_in_the_middle_of_anything_again_and_again(tmp_path: Path) -> None:
    path = drawn(tmp_path, three(), items=6, each=1, n=6)
    dice, before = random.Random(5), 0
    for round_ in range(12):
        ours, theirs = FORK.Pipe(duplex=False)
        process = FORK.Process(target=work, args=(path, "alice", round_, 10_000, theirs))
        process.start()
        theirs.close()
        acknowledged = 0
        for _ in range(dice.randint(1, 25)):
            ours.recv_bytes()
            acknowledged += 1
        time.sleep(dice.random() / 100)  # anywhere in the next commits
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        try:
            while True:
                ours.recv_bytes()
                acknowledged += 1
        except EOFError:
            pass
        events = consistent(path, "alice")
        # The last commit may have been made and not told; nothing that was told is missing.
        assert events - before in (acknowledged, acknowledged + 1)
        before = events


def test_several_annotators_on_one_file_at_once(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=6, each=1)
    people = ["alice", "bob", "carol", "dave"]
    batch(path, three(), n=6, annotators=people)
    running = []
    for seed, person in enumerate(people):
        ours, theirs = FORK.Pipe(duplex=False)
        process = FORK.Process(target=work, args=(path, person, seed, 60, theirs))
        process.start()
        theirs.close()
        running.append((person, process, ours))
    for person, process, ours in running:
        for _ in range(60):
            ours.recv_bytes()
        process.join()
        assert process.exitcode == 0
        assert consistent(path, person) == 60


def test_a_check_while_somebody_labels_finds_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: the log was read first and the assignments later, and a label between the two was a finding."""
    path = drawn(tmp_path, n=2)
    with open_study(path) as store, open_study(path) as other, Desk.open(other, "pilot", "alice") as desk:

        def then_label(conn: sqlite3.Connection, batch: str, person: str) -> dict[int, list[Event]]:
            events = events_of(conn, batch, person)
            desk.label(desk.load(1).position, "stance", "support")
            return events

        monkeypatch.setattr("annotate.leading.verify.events_of", then_label)
        assert verify(store) == []
    assert len(labels(path)) == 1


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return drawn(tmp_path, items=15, n=30)


def opened(terminal: Terminal, study: Path, place: str) -> Terminal:
    """Open the batch in a terminal, and wait until the screen shows the place, such as 1/30."""
    terminal.run("open", "pilot", "--as", "alice", "-d", str(study))
    terminal.until(place)
    return terminal


@pytest.mark.real
@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGTERM], ids=["a dropped line", "a shutdown"])
def test_a_line_that_drops_keeps_what_was_labelled(
    study: Path, terminals: Callable[..., Terminal], how: signal.Signals
) -> None:
    terminal = opened(terminals(), study, "1/30")
    for n, key in enumerate(
        "srsrs", 1
    ):  # the same key twice at once is one that is held, on a machine that lags
        terminal.type(key)
        terminal.until(f" {n} done")
    child = terminal.child()
    if how == signal.SIGHUP:
        terminal.tmux("kill-session")  # the kernel sends SIGHUP, as sshd's end of a line does
    else:
        os.kill(child, how)
    end = time.monotonic() + 10
    while Path(f"/proc/{child}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert len(labels(study)) == 5
    opened(terminals(), study, "6/30")  # and the seat is free


@pytest.mark.real
def test_a_full_disk_is_told_and_nothing_is_pretended(
    study: Path, terminals: Callable[..., Terminal]
) -> None:
    """The kernel refuses to let any file of the program grow past a limit, as a full disk would."""
    terminal = terminals()
    terminal.type(f"ulimit -f {study.stat().st_size // 512 + 40}", "Enter")  # dash counts blocks of 512 bytes
    opened(terminal, study, "1/30")
    done = 0
    while done < 30:
        terminal.type("sr"[done % 2])
        screen = terminal.wait(
            lambda done=done: f" {done + 1} done" in terminal.screen() or "not stored" in terminal.screen(),
            "an answer",
        )
        if "not stored" in screen:
            break
        done += 1
    assert 0 < done < 30, "the limit came in the middle"
    assert "no space left on the disk" in terminal.screen() and f" {done} done" in terminal.screen()
    assert len(labels(study)) == done
    terminal.type("C-q")
    message = terminal.until("refused").replace("\n", "")
    assert f"{done} of 30 done" in message and "Traceback" not in message
    again = opened(terminals(), study, f"{done + 1}/30")
    again.type("r")
    again.until(f" {done + 1} done")
    assert len(labels(study)) == done + 1
    with open_study(study) as store:
        events = store.conn.execute("SELECT count(*) FROM events WHERE kind = 'label'").fetchone()
        assert events == (done + 1,)


@pytest.mark.real
def test_a_second_terminal_of_the_same_annotator_is_told(
    study: Path, terminals: Callable[..., Terminal]
) -> None:
    first, second = terminals(), terminals()
    opened(first, study, "1/30")
    second.run("open", "pilot", "--as", "alice", "-d", str(study))
    message = second.until("annotate:").replace("\n", "")
    assert "another terminal or browser tab is labelling as alice" in message
    first.type("s")
    first.until(" 1 done")
    first.type("C-q")
    first.until("everything is stored")
    opened(second, study, "2/30")


@pytest.mark.real
def test_a_hang_up_keeps_the_text_that_was_being_typed(
    study: Path, terminals: Callable[..., Terminal]
) -> None:
    first = opened(terminals(), study, "1/30")
    first.type("+")
    first.type("-l", "half a note")
    first.until("half a note")
    program = first.child()
    # The terminal goes, and the kernel sends SIGHUP to what runs in it.
    first.close()
    end = time.monotonic() + 30
    while Path(f"/proc/{program}").exists():
        assert time.monotonic() < end, "the program outlives its terminal"
        time.sleep(0.1)
    assert rows_of(study, "SELECT what, text FROM drafts") == [("note", "half a note")]
    second = opened(terminals(), study, "1/30")
    second.type("+")
    second.until("half a note")


def test_what_cannot_be_opened_is_said_in_one_line(study: Path) -> None:
    """Before any line of the dialogue; the screen opens a batch by the same function."""

    def refusal(batch: str, person: str, code: int) -> str:
        return annotate("open", batch, "--as", person, "--plain", "-d", study, code=code).stderr

    assert "its annotators are: alice" in refusal("pilot", "zoe", 2)
    assert "no batch 'pilto'; available: pilot" in refusal("pilto", "alice", 2)
    keymap = configuration_folder() / "keymap.toml"
    keymap.parent.mkdir(parents=True)
    keymap.write_text('[keys]\nundo = "s"\n')
    assert "key 's' of 'undo'" in refusal("pilot", "alice", 2)
    keymap.unlink()
    with open_study(study) as store:
        store.conn.execute("UPDATE batches SET closed = '2026-01-02T00:00:00Z'")
    assert "was closed on 2026-01-02" in refusal("pilot", "alice", 1)


async def test_an_open_session_counts_what_is_added_to_it(tmp_path: Path) -> None:
    """Before: it kept the total of its start, so that the screen said 6/4."""
    path = drawn(tmp_path, items=10, n=4, annotators=["alice"])
    async with sitting(path) as pilot:
        assert "1/4" in text_of(pilot, "top")
        with open_study(path) as store:
            assert extend_batch(store, "pilot", to=7).units == 3
        await press(pilot, "s")
        assert "2/7" in text_of(pilot, "top") and "1 done" in text_of(pilot, "top")
        for _ in range(6):
            await press(pilot, "s")
        assert screen(pilot).hand.desk.counts() == {"open": 0, "done": 7, "skipped": 0}
    assert len(labels(path)) == 7
