"""Ctrl-C, SIGTERM, and a server that goes away: what is finished is kept, and the way on is shown."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.asking import run as asking
from judge.runner import Plan
from tests.cli.helpers import Done
from tests.loopback.process import ServerProcess
from tests.runner.helpers import HASTY, attempts, select
from tests.runner.processes import TIMEOUT, Driven

UNITS = 60
Judge = Callable[..., Done]


def command(db: Path, *words: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """`judge ...` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "judge", *words],
        cwd=db.parent,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def until_judged(db: Path, count: int) -> None:
    """Wait until the study has that many judgements."""
    while select(db, "SELECT count(*) FROM judgements")[0][0] < count:
        time.sleep(0.01)


def test_the_first_signal_lets_calls_in_flight_end(db: Path, judge: Judge) -> None:
    """SIGINT, then SIGTERM to the run that goes on; the command that is shown does what it says, and ends the rest."""
    words: tuple[str, ...] = ("-m", "openai/m", "--concurrency", "4", "--json")
    words = ("run", "stance", "-d", db.name, "--base-url", "http://there", *words)
    kept = questions_before = 0
    for sent in (signal.SIGINT, signal.SIGTERM):
        with ServerProcess("openai", "--delay", "0.3", "--logprobs", "none") as server:
            running = command(db, *_at(server, words))
            until_judged(db, kept + 4)  # of 60, which take five seconds
            running.send_signal(sent)
            out, err = running.communicate(timeout=TIMEOUT)
            n_requests = server.stats()["requests"]
        assert running.returncode == 130, err
        report = json.loads(out)
        assert report["stopped"] == "interrupted"
        [(all_questions,)] = select(db, "SELECT json_extract(provider, '$.probes.calls') FROM runs")
        questions, questions_before = all_questions - questions_before, all_questions
        now = len(attempts(db))
        assert report["ok"] == now - kept == n_requests - questions, (
            "every call that was sent has ended and is in the study"
        )
        assert kept + 4 <= now < UNITS, "and then nothing more was sent"
        kept = now
        assert report["pending"] == UNITS - kept
        line = re.search(r"stopped with (\d+) units to go; to resume: judge (run .+)", err)
        assert line, err
        assert int(line[1]) == UNITS - kept
        words = tuple(shlex.split(line[2]))
    with ServerProcess("openai", "--logprobs", "none") as server:
        judge(*_at(server, words))
    assert select(db, "SELECT count(DISTINCT unit_id) FROM judgements") == [(UNITS,)]


def _at(server: ServerProcess, words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(server.url if word.startswith("http") else word for word in words)


@pytest.mark.parametrize(("grace", "signals"), [("0.2", 1), ("3600", 2)], ids=["too long", "second signal"])
def test_calls_are_left_behind_after_their_time_or_a_second_signal(
    db: Path, grace: str, signals: int
) -> None:
    """Calls take 10 minutes, so that nothing else ends the run."""
    with Driven(db, "scripted/hash", "--option", "delay=600", "--grace", grace) as run:
        for _ in range(signals):
            assert run.wait_for_more(), "it is at work, or waits for its calls"
            run.process.send_signal(signal.SIGINT)
        report = run.end()
    assert report["interrupted"]
    assert (report["ended"], report["pending"]) == ({}, UNITS)


def test_interrupted_while_it_waits_for_a_retry(db: Path) -> None:
    """Waits for retries and for the gate are cut short: those units have no call in flight."""
    faults = ("--fault", "429:after=12,retry_after=800")
    with ServerProcess("openai", "--logprobs", "none", *faults) as server:
        words = ("openai/m", "--base-url", server.url, "--grace", "3600", "--concurrency", "1")
        with Driven(db, *words) as run:
            # 4 of the 12 were questions: label probabilities, a response format, temperature, seed.
            run.wait_for(8)
            while server.stats()["requests"] < 13:
                time.sleep(0.01)
            run.process.send_signal(signal.SIGINT)
            report = run.end()
    assert report["interrupted"]
    assert report["ended"] == {"ok": 8}
    assert report["pending"] == UNITS - 8


def test_a_server_that_dies_for_good(db: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    real = asking.make_plan

    def hasty(*args: Any) -> Plan:
        return replace(real(*args), patience=HASTY)

    monkeypatch.setattr(asking, "make_plan", hasty)
    with ServerProcess("openai", "--delay", "0.2", "--logprobs", "none") as server:
        words = ("run", "stance", "-m", "openai/m", "--base-url", server.url, "--concurrency", "4", "--json")

        def kill() -> None:
            until_judged(db, 8)  # of 60, which take three seconds
            server.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        done = judge(*words, code=3)
        killer.join()
        report = json.loads(done.out)
        assert report["ok"] >= 8, "finished work is kept"
        assert report["pending"] > 0 and report["failed"] == 0, "it says nothing about the units"
        assert f"to resume: judge {shlex.join(words)}" in done.err
        assert "127.0.0.1" in done.err.splitlines()[-1], "the last line says which server"

        server.start()
        again = json.loads(judge(*words).out)
    assert again["labelled"] == UNITS
    assert again["already_judged"] == report["ok"]


def test_a_terminal_gets_a_progress_line_and_a_pipe_none(db: Path) -> None:
    terminal, others = pty.openpty()
    run = ("run", "stance", "-d", db.name, "--json")
    words = ("-m", "scripted/hash", "--option", "delay=0.05", "--concurrency", "4")
    running = command(db, *run, *words, stderr=others)
    os.close(others)
    shown = b""
    while True:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(terminal)
    out, _ = running.communicate(timeout=TIMEOUT)
    assert running.returncode == 0
    assert json.loads(out)["ok"] == UNITS, "stdout is the document and nothing else"
    lines = re.findall(rb"\r\x1b\[K([\d,]+)/60 \xc2\xb7 [\d.]+/s \xc2\xb7 .*? tokens \xc2\xb7 ", shown)
    assert lines, shown
    counts = [int(n) for n in lines]
    assert counts == sorted(counts)
    assert counts[-1] <= UNITS

    piped = command(db, *run, "-m", "scripted/first")
    out, err = piped.communicate(timeout=TIMEOUT)
    assert json.loads(out)["ok"] == UNITS
    assert err == ""
