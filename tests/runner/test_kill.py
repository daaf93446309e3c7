"""kill -9 at random moments: nothing counted is lost, nothing kept is asked again, and the end is the same."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forks import together
from tests.loopback.process import ServerProcess
from tests.runner.helpers import attempts, left_in, make_study, numbered, select
from tests.runner.processes import Forked as Driven

pytestmark = together
UNITS = 80
KILLS = 3


def kill_and_resume(db: Path, seed: int, *command: str, after_kill: Callable[[], None] = lambda: None) -> int:
    """Kill the run KILLS times at random moments and then let it end; returns how often it was killed.

    Checks after every kill that all that was counted is in the file, and that the file is sound.
    """
    draw = random.Random(seed)
    killed = 0
    for _ in range(KILLS):
        before = judged(db)
        with Driven(db, *command) as run:
            alive = run.wait_for(before + draw.randint(1, UNITS // (KILLS + 1)))
            time.sleep(draw.random() * 0.05)
            counted = run.kill()
            if not alive or run.report is not None:
                break
        killed += 1
        assert judged(db) >= counted > before
        assert select(db, "PRAGMA integrity_check") == [("ok",)]
        assert select(db, "PRAGMA foreign_key_check") == []
        after_kill()
    with Driven(db, *command) as run:
        report = run.end()
    assert report["pending"] == 0
    return killed


def judged(db: Path) -> int:
    """Units, times repeats, that the study has a judgement for."""
    n: int = select(db, "SELECT count(*) FROM latest_judgements")[0][0]
    return n


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A study of its own for the run that nothing interrupts."""
    return make_study(tmp_path / "whole.db", numbered(UNITS))


@pytest.mark.parametrize("seed", [1, 2])
def test_scripted(db: Path, whole: Path, seed: int) -> None:
    command = ("scripted/hash", "--option", "delay=0.05")
    with Driven(whole, *command) as run:
        assert run.end()["ended"] == {"ok": UNITS}
    assert kill_and_resume(db, seed, *command) > 0
    assert left_in(db) == left_in(whole)
    assert attempts(db) == {f"t:{n}/p": ["ok"] for n in range(UNITS)}, "no unit is judged twice"


def test_a_reply_and_its_repair_are_kept_together(db: Path, whole: Path, tmp_path: Path) -> None:
    """A unit whose first reply is unreadable is never left with that reply alone."""
    script = tmp_path / "script.jsonl"
    lines = [
        {"match": "This could not be used", "reply": '{"stance": "refute"}'},
        {"match": "number 1", "reply": "hm"},
        {"match": "number 2", "reply": "hm"},
        {"reply": '{"stance": "support"}'},
    ]
    script.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = ("scripted/file", "--option", f"script={script}", "--option", "delay=0.05")
    with Driven(whole, *command) as run:
        assert run.end()["ended"] == {"ok": UNITS}

    def no_half() -> None:
        assert ["unparsed"] not in attempts(db).values()

    assert kill_and_resume(db, 3, *command, after_kill=no_half) > 0
    assert left_in(db) == left_in(whole)
    assert attempts(db) == attempts(whole)
    # 1, 10-19, 2 and 20-29: two attempts each.
    assert Counter(map(len, attempts(db).values())) == {1: UNITS - 22, 2: 22}


def test_repeats(db: Path, whole: Path) -> None:
    command = ("scripted/hash", "--option", "delay=0.05", "--repeats", "3", "--concurrency", "20")
    with Driven(whole, *command) as run:
        run.end()
    assert kill_and_resume(db, 4, *command) > 0
    query = (
        "SELECT unit_id, repeat, attempt, status, request_sha, value FROM judgements "
        "JOIN labels USING (unit_id, repeat)"
    )
    assert sorted(select(db, query)) == sorted(select(whole, query))
    assert len(select(db, query)) == 3 * UNITS


@pytest.mark.parametrize(
    ("vendor", "faults"),
    [("openai", []), ("anthropic", ["500:share=0.2,times=1", "429:every=9,retry_after=0.01"])],
)
def test_loopback(db: Path, whole: Path, vendor: str, faults: list[str]) -> None:
    # A label outside the set depends on the text alone, so that every run meets it in the same place.
    wrong = ["--fault", "wrong_label:share=0.3"]
    options = [word for fault in faults for word in ("--fault", fault)]
    with ServerProcess(vendor, "--delay", "0.05", "--record", *options, *wrong) as server:
        command = (f"{vendor}/m", "--base-url", server.url)
        kept: list[set[str]] = []
        assert kill_and_resume(db, 5, *command, after_kill=lambda: kept.append(set(attempts(db)))) > 0
        bodies = [str(body) for body in server.bodies()]
    with (
        ServerProcess(vendor, *wrong) as server,
        Driven(whole, f"{vendor}/m", "--base-url", server.url) as run,
    ):
        assert run.end()["pending"] == 0
    # The same hashes, too: the address is no part of a request.
    assert left_in(db) == left_in(whole)
    assert attempts(db) == attempts(whole)
    if faults:
        return
    for n in range(UNITS):
        unit = f"t:{n}/p"
        first_calls = sum(f"Passage number {n}." in b and "could not be used" not in b for b in bodies)
        kills_before_it_was_kept = sum(unit not in then for then in kept)
        assert 1 <= first_calls <= 1 + kills_before_it_was_kept, "what is in the study is not asked again"


def test_a_file_that_may_not_grow(db: Path, whole: Path) -> None:
    """A disk that is full for one process: it says so, keeps what it counted, and another one ends the run."""
    command = ("scripted/hash", "--option", "delay=0.005")
    with Driven(whole, *command) as run:
        run.end()
    # The write-ahead log holds some pages of 4 kB for every commit. How many commits there are is a matter of
    # the load: with few large ones, twice this limit has room for nearly all units.
    with Driven(db, *command, "--file-size", str(100 * 1024)) as run:
        report = run.end()
    assert report["error"] == "WriteFailed"
    done = len(attempts(db))
    assert report["ended"].get("ok", 0) == done < UNITS
    assert select(db, "PRAGMA integrity_check") == [("ok",)]
    with Driven(db, *command) as run:
        after = run.end()
    assert after["already_judged"] >= done, "and what was received and set aside is not asked again"
    assert after["ended"]["ok"] + after["already_judged"] == UNITS
    assert left_in(db) == left_in(whole)
