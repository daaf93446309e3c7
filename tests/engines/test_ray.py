"""judge run --workers on a real cluster: the same run as without, a worker killed, Ctrl-C and going on."""

import asyncio
import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from judge.engines.ray import Remote
from judge.engines.worker import Served, Workers
from judge.providers.base import Settings, get
from judge.types import Request
from tests.cli.helpers import process, write_rows
from tests.real import ROOT, require

pytestmark = pytest.mark.real
WAIT = 240.0
"""Seconds for what must come: a loaded machine takes half a minute to start a cluster."""

TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
"""What lets a process into the cluster of these tests."""

CLUSTER = """
import os, sys
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=80 * 2**20, _temp_dir=sys.argv[1],
         log_to_driver=False, logging_level="ERROR", _system_config={"worker_niceness": 0})
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
ray.shutdown()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster with two CPUs that ends with the tests."""
    import shutil
    import tempfile

    if not require("ray"):
        raise AssertionError
    # Short: a socket's path may have 107 bytes.
    folder = tempfile.mkdtemp(prefix="adj-")
    started = subprocess.Popen(
        [sys.executable, "-c", CLUSTER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=tmp_path_factory.getbasetemp(), env={**os.environ, **TOKEN},
    )  # fmt: skip
    assert started.stdin is not None and started.stdout is not None
    yield started.stdout.readline().strip()
    started.stdin.close()
    started.stdout.close()
    started.wait(WAIT)
    shutil.rmtree(folder, ignore_errors=True)


def study(folder: Path, items: int) -> Path:
    rows = [
        {"id": f"r{n}", "claim": f"Tea {n} is hot.", "passages": [{"text": f"Tea {n} was hot."}]}
        for n in range(items)
    ]
    process("items", "import", "jsonl", write_rows(folder / "rows.jsonl", rows), cwd=folder)
    return folder / "study.db"


def counted(path: Path, query: str) -> int:
    with closing(sqlite3.connect(path)) as conn, conn:
        n: int = conn.execute(query).fetchone()[0]
    return n


def started(folder: Path, cluster: str, *words: str) -> subprocess.Popen[str]:
    hidden = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "JUDGE_DB", "JUDGE_DEBUG"}
    kept = {k: v for k, v in os.environ.items() if k not in hidden}
    env = kept | {"RAY_ADDRESS": cluster, "PYTHONPATH": str(ROOT), **TOKEN}
    return subprocess.Popen(
        [sys.executable, "-m", "judge", "run", "stance", *words, "--workers", "2"], cwd=folder, env=env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def until_judged(path: Path, n: int, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + WAIT
    while counted(path, "SELECT count(*) FROM judgements") < n:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def workers() -> list[int]:
    """The processes of our actors, by what Ray calls them."""
    numbers = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if name.startswith(b"ray::Worker"):
                numbers.append(int(folder.name))
    return numbers


def test_a_killed_worker_costs_its_block_and_nothing_else(tmp_path: Path, cluster: str) -> None:
    """The embedded model in two workers, one of them killed; the run is the one that was begun without Ray."""
    require("embedded-model")
    path = study(tmp_path, 30)
    model = ["-m", "llamacpp/smollm2", "--option", "threads=1"]
    begun = json.loads(process("run", "stance", *model, "-n", "2", "--json", cwd=tmp_path).stdout)
    before = set(workers())
    running = started(tmp_path, cluster, *model, "--json")
    until_judged(path, 4, running)
    [victim, *_] = sorted(set(workers()) - before)
    os.kill(victim, signal.SIGKILL)
    out, err = running.communicate(timeout=WAIT)
    assert running.returncode == 0, err
    document = json.loads(out)
    assert document["run"] == begun["run"], "the engine is no part of what makes a run"
    assert (document["ok"], document["reused"], document["failed"]) == (28, 2, 0)
    assert "workers died 1 time, with" in err
    assert counted(path, "SELECT count(*) FROM judgements") == 30
    # The same labels as of a run that never saw Ray.
    other = tmp_path / "other"
    other.mkdir()
    plain = study(other, 30)
    process("run", "stance", *model, cwd=other)
    query = "SELECT unit_id, value FROM labels ORDER BY 1"
    with closing(sqlite3.connect(path)) as first, closing(sqlite3.connect(plain)) as two:
        assert first.execute(query).fetchall() == two.execute(query).fetchall()


async def test_a_death_is_one_however_many_blocks_it_costs() -> None:
    require("ray")
    from ray.exceptions import RayActorError

    gone = asyncio.Event()

    class Dying:
        """An actor with a block for each call, until its process dies under them; then it is started anew, in vain."""

        answer = property(lambda self: self)

        async def remote(self, block: list[Request], suited: object) -> AsyncIterator[Any]:
            await gone.wait()
            raise RayActorError()
            yield

    worker = Remote(1, Served("scripted/hash", Settings()), Workers(1), get("scripted/hash", Settings()))
    worker._keep((False, None, {}, ()))
    worker._actor = Dying()
    request = Request("scripted/hash", (), 0)
    tasks = [asyncio.create_task(worker._ask([(request, asyncio.Future())])) for _ in range(3)]
    await asyncio.sleep(0)
    gone.set()
    await asyncio.gather(*tasks)
    await worker._ask([(request, asyncio.Future())])
    assert (worker.deaths, worker.lost) == (1, 4)


def test_ctrl_c_keeps_what_came_back_and_another_engine_goes_on(tmp_path: Path, cluster: str) -> None:
    path = study(tmp_path, 300)
    model = ["-m", "scripted/hash", "--option", "delay=1", "--concurrency", "4"]
    running = started(tmp_path, cluster, *model)
    until_judged(path, 8, running)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=WAIT)
    assert running.returncode == 130, err
    kept = counted(path, "SELECT count(*) FROM judgements WHERE status = 'ok'")
    assert 8 <= kept < 300
    done = json.loads(process("run", "stance", "-m", "scripted/hash", "--json", cwd=tmp_path).stdout)
    assert (done["resumed"], done["reused"], done["ok"]) == (True, kept, 300 - kept)
    assert counted(path, "SELECT count(*) FROM judgements") == 300


def test_no_cluster_at_the_address(tmp_path: Path) -> None:
    require("ray")
    study(tmp_path, 1)
    words = ("run", "stance", "-m", "scripted/hash", "--workers", "2")
    done = process(*words, cwd=tmp_path, code=3, env={"RAY_ADDRESS": "127.0.0.1:9"})
    assert "no Ray cluster at 127.0.0.1:9" in done.stderr
