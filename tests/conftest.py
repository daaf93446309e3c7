"""What every test gets: an environment without keys, no way out of this machine, the command in process."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.cli.helpers import Done

# Machines differ and other work runs beside the tests: how long an example takes proves nothing.
settings.register_profile("adjudge", deadline=None)
settings.load_profile("adjudge")


@pytest.fixture(autouse=True)
def no_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that would make a paid call fails instead: no keys, and only loopback connects."""
    for name in (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "LABEL_STUDIO_API_KEY",
        "LABEL_STUDIO_URL",
        "JUDGE_DB",
        "JUDGE_DEBUG",
    ):
        monkeypatch.delenv(name, raising=False)
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test wants to call {address[0]}")
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """`judge("items", "list", code=0)`: the command in this process and a temporary folder.

    Asserts the exit code (None: any), and that there is no traceback.
    """
    from judge.cli import main

    monkeypatch.chdir(tmp_path)

    def run(*args: str | Path, code: int | None = 0) -> Done:
        words = [str(a) for a in args]
        monkeypatch.setattr("sys.argv", ["judge", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words, prog_name="judge")
        got = capsys.readouterr()
        done = Done(int(ended.value.code or 0), got.out, got.err)
        assert code in (None, done.code), f"judge {' '.join(words)}: exit {done.code}\n{done.out}\n{done.err}"
        assert "Traceback" not in done.err
        return done

    return run
