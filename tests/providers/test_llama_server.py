"""A real llama.cpp server, which takes one call at a time, goes and comes back: nothing is lost, nothing asked twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from judge.providers import base
from judge.runner import Live, lane, open_patiently
from judge.runner.retry import Patience
from tests.loopback.process import ServerProcess
from tests.real import require
from tests.runner.helpers import attempts, make_study, numbered, plan, run, select

UNITS = 4
pytestmark = pytest.mark.real


async def test_a_real_server_that_goes_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("embedded-model")
    monkeypatch.setattr(lane, "LAST_PROBE", 0.5)
    db = make_study(tmp_path / "s.db", numbered(UNITS))
    waits = Patience(base=0.05, longest=0.2, outage=60.0)
    with ServerProcess("llama") as server:
        provider = base.get("openai/smollm2", base.Settings(base_url=server.url, timeout=60.0))
        await open_patiently(provider, waits)
        gone: list[asyncio.Task[object]] = []

        def watch(live: Live) -> None:
            if not gone and live.report.done >= 1:
                server.kill()
                gone.append(asyncio.create_task(asyncio.to_thread(server.start)))

        asked = plan("openai/smollm2", patience=waits, concurrency=64)
        report = await run(db, provider, asked, watch=watch)
        await asyncio.gather(*gone)
        await provider.close()
    assert gone
    assert report.error is None
    assert (report.pending, report.ended["failed"]) == (0, 0)
    # One attempt each: what was answered before the server went is not asked again.
    assert [len(found) for found in attempts(db).values()] == [1] * UNITS
    assert select(db, "SELECT DISTINCT base_url FROM judgements") == [(server.url,)]
