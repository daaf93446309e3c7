"""What every test gets: an environment without keys, no way out of this machine, the command in process."""

from __future__ import annotations

import gc
import os
import secrets
import socket
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import disk_usage, rmtree
from typing import Any

import pytest
from hypothesis import settings

from judge import migrations, permissions
from tests import new_study, real
from tests.cli.helpers import Done
from tests.opened import close_all

# Machines differ and other work runs beside the tests: how long an example takes proves nothing.
settings.register_profile("adjudge", deadline=None)
settings.load_profile("adjudge")

# One process a core does the tests; each with as many threads as cores would only get in each other's way.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# What is imported stays: looking through it for garbage again and again was an eighth of the suite's time.
gc.disable()


def pytest_collection_finish() -> None:
    """Garbage is what tests leave, and is looked for when there is enough of it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


MEMORY, MEMORY_BYTES = Path("/dev/shm"), 4_000_000_000


def pytest_configure(config: pytest.Config) -> None:
    """Where files go: compiled modules are kept where an environment forbids it, dozens of processes import the same ones.

    Studies are in memory where there is enough: thousands of them wait for a disk at each of their transactions.
    """
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and disk_usage(MEMORY).free > MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    # (`-p no:cacheprovider` has no folder to keep them in.)
    if hasattr(config, "cache") and os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        os.environ["PYTHONPYCACHEPREFIX"] = str(config.cache.mkdir("compiled"))
    if prefix := os.environ.get("PYTHONPYCACHEPREFIX"):
        sys.pycache_prefix, sys.dont_write_bytecode = prefix, False


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Iterator[None]:
    """The folder of tests that passed is emptied, and stays: pytest would remove it, another session that starts then would
    take its number, lose its lock to the end of this one, and its folders to the end of a third.
    """
    folders = session.config._tmp_path_factory
    mine = folders._basetemp if folders._given_basetemp is None else None
    folders._retention_policy = "all"
    yield
    if mine is not None and exitstatus == 0:
        for found in mine.iterdir():
            if found.is_dir() and not found.is_symlink():
                rmtree(found, ignore_errors=True)


def pytest_xdist_auto_num_workers() -> int:
    """Two processes a core: nearly half of a test's time is waiting, for servers, screens and other processes."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that share a fixture of their module or of the session run in one worker, which makes it once.

    In parallel they come first, as they stand, and the others in an order that mixes what computes with what waits.
    """
    for item in items:
        if (group := _shared(item)) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
    if hasattr(config, "workerinput"):
        items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """Groups before all others, and those with real parts before all: a chain that waits for a server takes longest."""
    if item.get_closest_marker("xdist_group") is not None:
        return -2 if item.get_closest_marker("real") else -1
    return zlib.crc32(item.nodeid.encode())


def _shared(item: pytest.Item) -> str | None:
    """What to group a test by: the session's own fixture, else the module when it has one."""
    found = getattr(item, "_fixtureinfo", None)
    named = found.name2fixturedefs if found else {}
    scopes = {name: defs[-1].scope for name, defs in named.items() if defs[-1].baseid.startswith("tests")}
    session = sorted(name for name, scope in scopes.items() if scope == "session")
    if session:
        return session[0]
    return item.nodeid.split("::")[0] if "module" in scopes.values() else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What `require` wants to know."""
    real.is_marked = item.get_closest_marker("real") is not None


@pytest.fixture(autouse=True)
def new_studies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new study gets a copy of the tables that its migrations made once in this process.

    Old studies are migrated as ever, and so is a new one of another process or of a test with `@pytest.mark.migrates`.
    """
    if not request.node.get_closest_marker("migrates"):
        monkeypatch.setattr(migrations, "migrate", new_study.migrate)


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
    connect_for_real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test wants to call {address[0]}")
        connect_for_real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture(autouse=True)
def own_configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty configuration folder: what a test permits is remembered for no other test, and not on this machine."""
    monkeypatch.setenv(
        "XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / f"config-{secrets.token_hex(8)}")
    )
    monkeypatch.setattr(permissions, "_named", set())
    monkeypatch.setattr(permissions, "_named_folders", set())


@pytest.fixture(autouse=True)
def no_study_stays_open() -> Iterator[None]:
    """What helpers opened for a test (tests/opened.py)."""
    yield
    close_all()


@pytest.fixture
def judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """`judge("items", "show", code=0)`: the command in this process and a temporary folder.

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
