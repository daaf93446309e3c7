"""Real processes that start at once: one process has imported what takes seconds, and forks for each of them.

Each has its own id, memory, files and, if wanted, terminal, and can be killed like any other. Not for tests of what is
imported, of warnings at the start, or of signals, which are for a Python that has started as usual.
"""

import atexit
import multiprocessing
import os
import runpy
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "annotate.cli",
        "annotate.tui.app",
        "annotate.tui.watch",
        "judge.runner",
        "judge.providers.openai",
        "judge.providers.anthropic",
        "openai",
        "anthropic",
        "tests.runner.helpers",
    ]
)
together = pytest.mark.xdist_group("forks")
"""One worker runs these tests: the process that forks imports once."""


def process(
    module: str,
    args: Sequence[str],
    *,
    terminal: str = "",
    pipes: Sequence[Connection] = (),
    **environment: str,
) -> multiprocessing.process.BaseProcess:
    """`python -m MODULE ARGS` here and now, at a terminal (its path) or with pipes for stdout and stderr."""
    environ = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")} | environment
    started = FORKS.Process(target=_run, args=(module, args, Path.cwd(), environ, terminal, pipes))
    started.start()
    for pipe in pipes:
        pipe.close()
    return started


def _run(
    module: str,
    args: Sequence[str],
    folder: Path,
    environ: dict[str, str],
    terminal: str,
    pipes: Sequence[Connection],
) -> None:
    if terminal:  # the leader of a session with that terminal, as after a login
        os.login_tty(os.open(terminal, os.O_RDWR | os.O_NOCTTY))
    for number, pipe in enumerate(pipes, 1):
        os.dup2(pipe.fileno(), number)
        pipe.close()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = open(number, "w" if number else "r", buffering=1, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = [module, *args]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        atexit._run_exitfuncs()


class Command:
    """What tests use of `subprocess.Popen`, for `python -m MODULE ARGS` with pipes for stdout and stderr."""

    def __init__(self, module: str, *args: str) -> None:
        out, err = FORKS.Pipe(duplex=False), FORKS.Pipe(duplex=False)
        self._process = process(module, args, pipes=(out[1], err[1]))
        self.stdout, self._stderr = (os.fdopen(os.dup(one.fileno())) for one, _ in (out, err))
        out[0].close()
        err[0].close()

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """The rest of what it writes, once it has ended; nothing the second time."""
        if self.stdout.closed:
            return "", ""
        with self.stdout, self._stderr:
            written = self.stdout.read(), self._stderr.read()
        self._process.join(timeout)
        assert self._process.exitcode is not None, "it did not end"
        return written
