"""The rate controller against servers of many kinds: seconds of a run, beside a bare HTTP loop on the same server.

    uv run python -m benchmarks.rate
    uv run python -m benchmarks.rate --only lognormal --only stalls --rounds 5

Each measurement has three processes: a loopback server, started anew; a worker that is a bare aiohttp loop at the same
concurrency, or `run_task` with the real openai provider into a study; and this one, which lets the workers take turns.
The seconds of a run are its own: from the first request, questions about the server included, to the last commit.
`known` rows were run before on other settings at the same address. Absolute figures hold for this machine only.
"""

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.loopback.process import ServerProcess

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Row:
    """A server and a run on it. `concurrency` None = left to the rate controller; `bare` is that of the bare loop."""

    units: int
    server: tuple[str, ...]
    goal: str
    concurrency: int | None = 100
    known: bool = True
    timeout: float = 120.0
    again: bool = False
    """Measure a second task at the same address, too."""
    servers: int = 1
    yardstick: tuple[str, ...] | None = None
    """Options of the server on which the run is compared with, None = with a bare loop on the same one."""
    bare: int = 100


def plain(seconds: float) -> tuple[str, ...]:
    """A server that answers each call after so many seconds."""
    return ("--delay", str(seconds))


def worth(text: str) -> tuple[str, ...]:
    """A server of this capacity."""
    return ("--capacity", text)


ROWS = {
    "300x2s": Row(300, plain(2), ".90"),
    "1000x.5s": Row(1000, plain(0.5), ".90"),
    "3000x50ms": Row(3000, plain(0.05), ".80"),
    "20000x50ms": Row(20_000, plain(0.05), ".88"),
    "1000x.5s-32": Row(1000, plain(0.5), "(.85 before)", concurrency=32, bare=32),
    "300x2s-400": Row(300, plain(2), "(.08 before)", concurrency=400, bare=400),
    "first-300x2s": Row(300, plain(2), ".72", known=False),
    "first-1000x.5s": Row(1000, plain(0.5), ".82", known=False),
    "first-lognormal": Row(1000, worth("lognormal:1,0.8"), ".75", known=False),
    "lognormal": Row(1000, worth("lognormal:1,0.8"), ".85"),
    "lognormal-2s": Row(300, worth("lognormal:2,0.6"), ".85"),
    "stalls": Row(1000, worth("lognormal:0.5,1,0.01,60"), ".90, median of five", timeout=20),
    "unasked-300x2s": Row(300, plain(2), ".40, then .85", concurrency=None, known=False, again=True),
    "serial": Row(
        100,
        worth("serial:0.5"),
        "100 labels, 130 requests",
        concurrency=None,
        known=False,
        timeout=10,
        bare=10,
    ),
    "serial-100": Row(100, worth("serial:0.5"), "100 labels, 300 requests, a note", timeout=10, bare=10),
    "refusing": Row(
        20_000, (*plain(0.05), "--fault", "429:random=0.05"), ".85 of the rate without", yardstick=plain(0.05)
    ),
    "bucket": Row(20_000, worth("bucket:100"), ".90 of 100/s, 1.3 requests a label", bare=0),
    "batching": Row(
        4000, worth("batching:0.05,40"), ".85 of the best fixed concurrency", concurrency=None, bare=-1
    ),
    "replicas": Row(
        4000, worth("slots:0.05,10"), "1.8 of one server", servers=2, yardstick=worth("slots:0.05,10")
    ),
    "slowing": Row(
        6000, worth("slowing:0.5,2,60"), "as a bare loop: slower after a minute", concurrency=50, bare=50
    ),
    "cold": Row(1000, worth("cold:5,0.5,50"), "as a bare loop: 50 slow calls first"),
    "cold-unasked": Row(
        1000, worth("cold:5,0.5,50"), "the same, concurrency left open", concurrency=None, known=False
    ),
    "refusals-alone": Row(
        2000, (*worth("bucket:50"), *plain(0.2)), "as a bare loop: 429 without Retry-After"
    ),
    "mixed": Row(2000, worth("mixed:0.2,15,50"), "as a bare loop: short answers and very long ones"),
}


SMALL = "small-command"
"""The row that is a whole command: 50 units of 0.2 s, from typing to prompt."""


def main() -> None:
    """Print a line for each row."""
    options = _options()
    if options.worker:
        job = json.loads(options.worker)
        worker = {"bare": bare, "judge": judge, "study": study}[job["kind"]]
        print(json.dumps(asyncio.run(worker(job))))
        return
    for name in options.only or [*ROWS, SMALL]:
        if name == SMALL:
            measure_command(options)
        else:
            measure(name, ROWS[name], options)


def measure(name: str, row: Row, options: argparse.Namespace) -> None:
    """Let bare loop and run take turns, and print their medians."""
    ours: list[dict[str, float]] = []
    theirs: list[float] = []
    for _ in range(options.rounds):
        if row.bare > 0:
            theirs.append(_yardstick(row))
        elif row.bare < 0:
            theirs.append(min(_bare(row, n) for n in (16, 32, 40, 64, 128)))
        else:
            theirs.append(row.units / 100)  # the allowance of the bucket
        ours.append(_run(row, options))
    seconds = median(found["seconds"] for found in ours)
    told = ours[-1]
    print(
        f"{name}: {row.units} units, bare {median(theirs):.2f} s, run {seconds:.2f} s, "
        f"ratio {median(t / o['seconds'] for t, o in zip(theirs, ours, strict=True)):.2f} (goal: {row.goal}); "
        f"{told['labelled']:.0f} labels, {told['requests']:.0f} requests, at most {told['most']:.0f} at once"
        + "".join(
            f"; again {told['again']:.2f} s, ratio {median(theirs) / told['again']:.2f}"
            for _ in "1"
            if row.again
        )
        + (f"; {told['notes']}" if told["notes"] else ""),
        flush=True,
    )


def measure_command(options: argparse.Namespace) -> None:
    """Time `judge run` from typing to prompt, on a server that the study knows."""
    root = Path(options.base or ROOT)
    program = str(root / ".venv/bin/judge") if options.base else str(Path(sys.executable).parent / "judge")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        db = Path(folder) / "study.db"
        shutil.copy(_study(50, options.base), db)
        with ServerProcess("openai", "--logprobs", "none", *plain(0.2)) as server:
            found: list[tuple[float, float]] = []
            for seed in range(options.rounds + 1):
                command = [program, "run", "stance", "-m", "openai/loopback", "--base-url", server.url]
                command += ["--concurrency", "100", "--seed", str(seed), "-d", str(db), "--json"]
                begun = time.perf_counter()
                done = subprocess.run(
                    command, check=True, capture_output=True, text=True, env={"PYTHONPATH": str(root)}
                )
                found.append((json.loads(done.stdout)["seconds"], time.perf_counter() - begun))
    found = found[1:]  # The first one asks the server what it can do.
    seconds, beyond = median(s for s, _ in found), median(whole - s for s, whole in found)
    print(
        f"{SMALL}: the run's own seconds {seconds:.2f} (goal: .4), the command beyond them {beyond:.2f} s (goal: 1.5)"
    )


def _yardstick(row: Row) -> float:
    if row.yardstick is None:
        return _bare(row, row.bare)
    alone = Row(row.units, row.yardstick, "", row.concurrency, timeout=row.timeout)
    return _run(alone, _options([]))["seconds"]


def _bare(row: Row, concurrency: int) -> float:
    with ServerProcess("openai", "--logprobs", "none", *row.server) as server:
        job = {"kind": "bare", "url": server.url, "units": row.units, "concurrency": concurrency}
        return float(_work({**job, "timeout": row.timeout})["seconds"])


def _run(row: Row, options: argparse.Namespace) -> dict[str, Any]:
    """One run in a study of its own, or two."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        db = Path(folder) / "study.db"
        shutil.copy(_study(row.units, options.base), db)
        servers = [ServerProcess("openai", "--logprobs", "none") for _ in range(row.servers)]
        job = {"kind": "judge", "db": str(db), "timeout": row.timeout, "base": options.base}
        try:
            if row.known:
                urls = [server.start().url for server in servers]
                # Enough units for the concurrency to be known as well.
                _work({**job, "urls": urls, "concurrency": row.concurrency, "limit": 100, "temperature": 0.9})
                for server in servers:
                    server.kill()
            for server in servers:
                server.options = ("--logprobs", "none", *row.server)
            urls = [server.start().url for server in servers]
            job |= {"urls": urls, "concurrency": row.concurrency}
            found: dict[str, Any] = _work({**job, "temperature": 0.0})
            found["requests"] = sum(server.stats()["requests"] for server in servers)
            found["most"] = sum(server.stats()["max_concurrency"] for server in servers)
            if row.again:
                found["again"] = _work({**job, "temperature": 0.5})["seconds"]
            return found
        finally:
            for server in servers:
                server.kill()


_STUDIES: dict[tuple[int, str | None], Path] = {}


def _study(units: int, base: str | None) -> Path:
    """A study with so many units, made by the version that is measured."""
    if (units, base) not in _STUDIES:
        path = _STUDIES[units, base] = Path(tempfile.mkdtemp()) / "study.db"
        _work({"kind": "study", "db": str(path), "units": units, "base": base})
    return _STUDIES[units, base]


def _work(job: dict[str, Any]) -> dict[str, Any]:
    root = Path(job.get("base") or ROOT)
    python = root / ".venv/bin/python" if job.get("base") else sys.executable
    command = [str(python), str(Path(__file__).resolve()), "--worker", json.dumps(job)]
    done = subprocess.run(
        command, cwd=root, check=True, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(root)}
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def study(job: dict[str, Any]) -> dict[str, float]:
    """A study of this version, with as many units."""
    from benchmarks.throughput import make_study

    make_study(Path(job["db"]), job["units"])
    return {}


async def bare(job: dict[str, Any]) -> dict[str, float]:
    """Post the bodies; what is refused waits half a second, and what timed out is sent again."""
    import aiohttp

    from benchmarks.throughput import bodies_of

    left = iter(bodies_of(job["units"], "json"))
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    timeout = aiohttp.ClientTimeout(total=job["timeout"])
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), headers=headers, timeout=timeout
    ) as session:

        async def one() -> None:
            for body in left:
                while True:
                    with suppress(TimeoutError):
                        async with session.post(f"{job['url']}/chat/completions", data=body) as answer:
                            await answer.read()
                            if answer.status == 200:
                                break
                        await asyncio.sleep(0.5)

        begun = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(job["concurrency"])))
        return {"seconds": time.perf_counter() - begun}


async def judge(job: dict[str, Any]) -> dict[str, Any]:
    """One run over the study."""
    import inspect

    from judge.prompts import load_task
    from judge.providers import base, replicas
    from judge.runner import Plan, open_patiently, run_task
    from judge.runner.requests import Sampling
    from judge.store import Store
    from judge.store.selection import Selection

    first, *more = job["urls"]
    settings = base.Settings(base_url=first, timeout=job["timeout"], replicas=tuple(more))
    # A version that is compared may make replicas itself.
    make = getattr(replicas, "make_replicas", base.get) if more else base.get
    provider = make("openai/loopback", settings)
    old = "store" not in inspect.signature(open_patiently).parameters
    plan = Plan(
        load_task("stance"),
        "openai/loopback",
        sampling=Sampling(answers="auto", temperature=job["temperature"]),
        concurrency=job["concurrency"] or (64 if old else None),
        selection=Selection(limit=job.get("limit")),
    )
    with Store.open(Path(job["db"])) as store:
        begun = time.perf_counter()
        plan = await open_patiently(provider, plan, **({} if old else {"store": store}))
        report = await run_task(store, plan, provider)
        taken = time.perf_counter() - begun
        await provider.close()
    return {
        "seconds": taken if old else report.seconds,
        "all": taken,
        "labelled": report.labelled,
        "notes": "; ".join(report.notes),
    }


def _options(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=[*ROWS, SMALL], help="default: all")
    parser.add_argument("--rounds", type=int, default=3, help="odd, for the median")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the studies are written")
    parser.add_argument("--base", help="a checkout of another version, whose runs are measured instead")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
