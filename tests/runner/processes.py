"""Runs in processes of their own, followed by what they count as done."""

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.forks import Command
from tests.real import ROOT

TIMEOUT = 120


class Driven:
    """`with Driven(db, "scripted/hash", ...) as run:` a run of `tests.runner.driver`."""

    def __init__(self, db: Path, model: str, *options: str) -> None:
        self.process = self._started("tests.runner.driver", str(db), model, *options)
        self.counted = 0
        self.report: dict[str, Any] | None = None

    @staticmethod
    def _started(module: str, *args: str) -> Any:
        return subprocess.Popen(
            [sys.executable, "-m", module, *args],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for(self, done: int) -> bool:
        """Read until that many units count as done; False when the run has ended before."""
        while self.counted < done:
            line = self.process.stdout.readline()
            if not line:
                return False
            self._take(line)
        return True

    def wait_for_more(self) -> bool:
        """Read one more line; the run says something twice a second. False when it has ended."""
        line = self.process.stdout.readline()
        self._take(line)
        return bool(line) and self.report is None

    def end(self) -> dict[str, Any]:
        """Wait for the end and return the report."""
        self._rest()
        assert self.report is not None, "it was killed"
        return self.report

    def kill(self) -> int:
        """SIGKILL; returns the units that were counted as done by then."""
        self.process.kill()
        self._rest()
        return self.counted

    def _rest(self) -> None:
        out, err = self.process.communicate(timeout=TIMEOUT)
        assert "Traceback" not in err, err
        for line in out.splitlines(keepends=True):
            self._take(line)

    def _take(self, line: str) -> None:
        if line.startswith("{"):
            self.report = json.loads(line)
        elif line.endswith("\n"):
            self.counted = int(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()


class Forked(Driven):
    """The same, forked from a process that has imported all it needs: soon at work, and killed like any other."""

    _started = Command
