"""judge runs watch: a run as another terminal sees it."""

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from judge.cli.watch import ShownRun
from judge.errors import StudyError
from judge.store import Store
from judge.store.watching import RunStanding, Watched
from tests.cli.helpers import Judge, checked, script, write_rows
from tests.real import ROOT


@pytest.fixture(autouse=True)
def study(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "jsonl", write_rows(tmp_path / "pairs.jsonl"))


def looks(out: str) -> list[dict[str, Any]]:
    return [checked(line, "runs-watch") for line in out.splitlines()]


def test_a_run_that_has_ended_is_shown_once(judge: Judge) -> None:
    judge("run", "stance", "-m", "scripted/hash")
    [look] = looks(judge("runs", "watch", "--json").out)
    assert (look["state"], look["units"], look["ok"], look["pending"]) == ("finished", 4, 4, 0)
    assert "4/4 · finished · 4 ok" in judge("runs", "watch").out


def test_units_without_a_label_are_exit_4_with_their_reasons(judge: Judge, tmp_path: Path) -> None:
    replies = script(
        tmp_path / "s.jsonl", [("Mars", "no label here"), ("Italy grows", '{"stance": "refute"}')]
    )
    judge("run", "stance", "-m", "scripted/file", "--option", f"script={replies}", code=None)
    done = judge("runs", "watch", code=4)
    assert "1 ok" in done.out and "1 unparsed" in done.out and "2 failed" in done.out
    assert done.out.count("no line of the script matches") == 2
    [look] = looks(judge("runs", "watch", "--json", code=4).out)
    assert {f["status"] for f in look["failures"]} == {"unparsed", "failed"}
    # What was asked again and has its label is no failure any more.
    with Store.open("study.db") as store:
        store.conn.execute(
            "INSERT INTO judgements (run_id, unit_id, repeat, attempt, status, reused, judged_at) SELECT run_id, unit_id, "
            "repeat, attempt + 1, 'ok', 0, judged_at FROM judgements WHERE status = 'failed'"
        )
    [look] = looks(judge("runs", "watch", "--json", code=4).out)
    assert look["ok"] == 3 and [f["status"] for f in look["failures"]] == ["unparsed"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda p: p.unlink(), "was removed"),
        (lambda p: (p.rename("old.db"), copyfile("old.db", p)), "the file was replaced by another study"),
        (lambda p: _forget(p), "is no longer in the study"),
    ],
)
def test_a_study_that_is_not_the_same_any_more_ends_the_watch(
    judge: Judge, change: Callable[[Path], object], told: str
) -> None:
    judge("run", "stance", "-m", "scripted/hash")
    with Store.open("study.db") as store:
        watched = Watched(store, "last")
        assert watched.look().done == 4
        change(Path("study.db"))
        with pytest.raises(StudyError, match=told):
            watched.look()


def _forget(path: Path) -> None:
    with closing(sqlite3.connect(path)) as conn, conn:
        for table in ("judgements", "runs"):
            conn.execute(f"DELETE FROM {table}")


def test_a_run_in_another_process_until_it_is_killed(judge: Judge, tmp_path: Path) -> None:
    rows = [{"id": f"r{n}", "claim": f"Claim {n}.", "passages": [{"text": f"Text {n}."}]} for n in range(400)]
    judge("items", "import", "jsonl", write_rows(tmp_path / "more.jsonl", rows))
    # 404 units at half a second, no more than four at once: 50 s, and it is killed after the first.
    program = [sys.executable, "-m", "judge"]
    place: dict[str, Any] = {"cwd": tmp_path, "env": {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}}
    words = ["run", "stance", "-m", "scripted/first", "--option", "delay=0.5", "--concurrency", "4"]
    running = subprocess.Popen(
        [*program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **place
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            done = judge("runs", "watch", "--once", "--json", code=None)
            if done.code == 0 and (look := looks(done.out)[0])["ok"]:
                break
            assert running.poll() is None
            time.sleep(0.05)
        assert look["state"] == "running" and look["units"] == 404 and 0 < look["ok"] < 404
        words = ["runs", "watch", "--json"]
        watching = subprocess.Popen([*program, *words], stdout=subprocess.PIPE, text=True, **place)
        assert watching.stdout is not None
        first = checked(watching.stdout.readline(), "runs-watch")
        assert first["state"] == "running"
    finally:
        running.kill()
        running.wait(60)
    out, _ = watching.communicate(timeout=60)
    last = looks(out)[-1] if out else first
    assert watching.returncode == 4
    assert last["state"] == "stopped" and last["pending"] == 404 - last["ok"] > 0


def test_the_rate_is_that_of_the_last_minute(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ShownRun(as_json=True)
    # 10 a second for a minute, then 1 a second for another.
    for second in range(121):
        done = 10 * second if second <= 60 else 600 + (second - 60)
        look = RunStanding("R", "t.v1", "m", "running", 1200, {"ok": done}, None)
        shown.show(look, float(second))
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0]["rate"] is None and rows[0]["seconds_left"] is None
    assert rows[60]["rate"] == 10 and rows[60]["seconds_left"] == 60
    # 540 units are left at 1 a second.
    assert rows[120]["rate"] == 1 and rows[120]["seconds_left"] == 540


def test_what_is_running_is_known_by_its_lock(tmp_path: Path) -> None:
    with Store.open(tmp_path / "l.db") as store:
        assert not store.is_running("t m")
        with store.run_lock("t m"), Store.open(tmp_path / "l.db") as other:
            assert other.is_running("t m") and not other.is_running("t n")
        assert not store.is_running("t m")
