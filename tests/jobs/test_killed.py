"""kill -9 at every step of a run in batches: it goes on, and every request is paid once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from judge.errors import Exit
from tests.jobs.helpers import states
from tests.jobs.killed import STEPS
from tests.loopback.process import ServerProcess
from tests.real import ROOT
from tests.runner.helpers import attempts, make_study, numbered, select

UNITS = 30
TIMEOUT = 120


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_a_batch_killed_at_each_step_is_paid_once(vendor: str, tmp_path: Path) -> None:
    db = make_study(tmp_path / "killed.db", numbered(UNITS))
    with ServerProcess("batches", "--vendor", vendor, "--late", "2", "--early", "1") as server:
        command = [sys.executable, "-m", "tests.jobs.killed", str(db), f"{vendor}/loopback", server.url]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT)
        assert done.returncode == Exit.DONE, done.stderr
        stats = server.stats()
    told = json.loads(done.stdout)
    assert tuple(told["died"]) == STEPS, done.stderr
    assert (told["report"]["labelled"], told["report"]["pending"]) == (UNITS, 0)
    assert (stats["batches"], stats["asked"], stats["paid"], stats["paid_twice"]) == (1, UNITS, UNITS, 0)
    assert attempts(db) == {f"t:{n}/p": ["ok"] for n in range(UNITS)}
    # The units of the file that was never posted were released, and asked in a second job.
    assert states(db) == {"answered": UNITS, "released": UNITS}
    assert select(db, "PRAGMA integrity_check") == [("ok",)]
    assert select(db, "PRAGMA foreign_key_check") == []
