"""What a run makes of servers that are not perfect: ratios in one go, each against its own yardstick.

    uv run python -m benchmarks.servers
    uv run python -m benchmarks.servers --only serial --only bucket

A loopback server in its own process is serial, limited, batching or refuses at random (seeded); the run is
`run_task` with the real openai provider into a fresh study. Absolute figures hold for this machine only.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.throughput import make_study
from judge.prompts import load_task
from judge.providers import base
from judge.runner import Plan, open_patiently, run_task
from judge.runner.requests import Sampling
from judge.store import Store
from tests.loopback.process import ServerProcess

FIXED = (8, 16, 32, 64, 128, 256)


def main() -> None:
    """Print one line a server."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--units", type=int, default=20_000, help="for all but serial and replicas")
    parser.add_argument("--only", action="append", choices=list(ROWS), help="default: all")
    options = parser.parse_args()
    for name in options.only or ROWS:
        print(f"{name}: {ROWS[name](options.units)}", flush=True)


def ask(
    units: int, *servers: list[str], concurrency: int = 64, timeout: float = 120.0, fixed: bool = False
) -> tuple[float, int, int]:
    """Seconds, requests and labels of one run over servers with these options."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        started = [stack.enter_context(ServerProcess("openai", *words)) for words in servers]
        db = Path(folder) / "study.db"
        make_study(db, units)
        urls = [server.url for server in started]
        settings = base.Settings(base_url=urls[0], timeout=timeout, replicas=tuple(urls[1:]))
        provider = base.get("openai/loopback", settings)

        def requests() -> int:
            return sum(server.stats()["requests"] for server in started)

        async def run() -> tuple[float, int, int]:
            sampling = Sampling(answers="json")
            plan = Plan(load_task("stance"), "openai/loopback", sampling=sampling, concurrency=concurrency)
            plan = await open_patiently(provider, plan)
            probes = requests()
            begun = time.perf_counter()
            with Store.open(db) as store:
                report = await run_task(store, plan, provider, _fix(concurrency) if fixed else None)
            taken = time.perf_counter() - begun
            await provider.close()
            return taken, requests() - probes, report.labelled

        return asyncio.run(run())


def _fix(concurrency: int) -> Callable[[object], None]:
    """A watch that keeps the level where it is told: the yardstick of a fixed concurrency."""
    from judge.runner import Live

    def watch(live: object) -> None:
        assert isinstance(live, Live)
        for lane in live.gate.lanes:
            lane.level.limit = lane.level._home = concurrency

    return watch


def serial(units: int) -> str:
    """100 units, 0.5 s each, one at a time, a time-out of 10 s."""
    seconds, requests, labels = ask(100, ["--capacity", "serial:0.5"], timeout=10.0)
    return (
        f"{labels} of 100, {requests} requests, {seconds / 50:.2f} times the ideal time (goal: 100, 120, 1.3)"
    )


def bucket(units: int) -> str:
    """100 a second at even distances: 200 s."""
    seconds, requests, labels = ask(units, ["--capacity", "bucket:100"])
    used = labels / seconds / 100
    return f"{used:.3f} of the limit, {requests / labels:.2f} requests a label (goal: 0.9, 1.3)"


def refusing(units: int) -> str:
    """5 % of the calls are refused at random, answers after 50 ms."""
    without, _, _ = ask(units, ["--delay", "0.05"])
    seconds, requests, labels = ask(units, ["--delay", "0.05", "--fault", "429:random=0.05"])
    return (
        f"{without / seconds:.3f} of the rate without, {requests / labels:.3f} requests a label (goal: 0.85)"
    )


def batching(units: int) -> str:
    """Latency doubles while throughput grows 20 times (40 at work), more queue."""
    server = ["--capacity", "batching:0.05,40"]
    short = max(2000, units // 10)
    rates = {n: short / ask(short, server, concurrency=n, fixed=True)[0] for n in FIXED}
    best = max(rates, key=lambda n: rates[n])
    seconds, _, labels = ask(units, server, concurrency=256)
    return (
        f"{labels / seconds / rates[best]:.3f} of the best fixed concurrency, {best} at {rates[best]:.0f}/s "
        "(goal: 0.85)"
    )


def replicas(units: int) -> str:
    """Servers of 10 calls at a time, 50 ms each."""
    server = ["--capacity", "slots:0.05,10"]
    one, _, _ = ask(4000, server)
    two, _, _ = ask(4000, server, server)
    return f"two servers are {one / two:.2f} times one (goal: 1.8)"


ROWS: dict[str, Callable[[int], str]] = {
    "serial": serial,
    "bucket": bucket,
    "refusing": refusing,
    "batching": batching,
    "replicas": replicas,
}


if __name__ == "__main__":
    main()
