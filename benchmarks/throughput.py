"""How much of a bare HTTP loop's throughput the whole tool reaches, and what it costs.

    uv run python -m benchmarks.throughput
    uv run python -m benchmarks.throughput --delay 0.5 --concurrency 256

A loopback server in its own process answers after `--delay` seconds. Two workers, each a fresh
process, take turns: `bare` is an aiohttp loop that posts the same bodies and reads the answers;
`judge` is `run_task` with the real openai provider, rendering, parsing and durable storage
included. Ratios are of the medians; the absolute figures hold for this machine only. CPU is that of
the client process alone, memory its peak resident size, and what it had once everything it uses was
imported is printed beside it.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.texts import WORDS
from tests.loopback.process import ServerProcess

ROOT = Path(__file__).resolve().parents[1]
UNIT_CHARACTERS = 1500


def main() -> None:
    """Alternate the workers and print medians and ratios."""
    options = _options()
    if options.worker:
        worker = {"bare": bare, "judge": judge}[options.worker]
        print(json.dumps(worker(options)))
        return
    server = ["--delay", str(options.delay), "--logprobs", "given" if options.answers == "codes" else "none"]
    runs: dict[str, list[dict[str, float]]] = {"bare": [], "judge": []}
    with ServerProcess("openai", *server) as process:
        for number in range(options.rounds):
            for name, found in runs.items():
                found.append(_run_worker(name, process.url, options))
                print(f"round {number + 1} {_line(name, found[-1])}", file=sys.stderr)
    middle = {name: {k: median(r[k] for r in found) for k in found[0]} for name, found in runs.items()}
    print(
        f"{options.units} units of about {UNIT_CHARACTERS} characters, answers after {options.delay * 1000:g} ms, "
        f"concurrency {options.concurrency}, --answers {options.answers}, median of {options.rounds}"
    )
    for name, found_middle in middle.items():
        print(_line(name, found_middle))
    ours, base = middle["judge"], middle["bare"]
    print(f"throughput: {ours['calls'] / base['calls']:.3f} of the bare loop (goal: 0.85)")
    print(
        f"CPU:        {ours['cpu'] / base['cpu']:.2f} times the bare loop's, {ours['cpu']:.2f} s per 1,000 calls "
        "(goal: 0.5 where the bare loop takes 0.19, which is 2.63 times)"
    )
    print(f"memory:     {ours['peak'] - ours['imports']:.0f} MB above imports (goal: 80)")


def _line(name: str, r: dict[str, float]) -> str:
    return (
        f"{name:5}  {r['calls']:7.0f} calls/s  {r['cpu']:5.2f} CPU s per 1,000 calls  "
        f"{r['imports']:4.0f} MB after imports, {r['peak']:4.0f} MB at the peak"
    )


def bare(options: argparse.Namespace) -> dict[str, float]:
    """Post the bodies and read the answers; nothing else."""
    import aiohttp

    imports = _resident()
    bodies = bodies_of(options.units, options.answers)

    async def run() -> tuple[float, float]:
        connector = aiohttp.TCPConnector(limit=0)
        headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            left = iter(bodies)

            async def one() -> None:
                for body in left:
                    async with session.post(f"{options.url}/chat/completions", data=body) as answer:
                        await answer.read()

            begun, cpu = time.perf_counter(), time.process_time()
            await asyncio.gather(*(one() for _ in range(options.concurrency)))
            return time.perf_counter() - begun, time.process_time() - cpu

    return _figures(*asyncio.run(run()), options.units, imports)


def judge(options: argparse.Namespace) -> dict[str, float]:
    """The same units through the whole tool, into a study that did not know them."""
    import aiohttp
    import openai

    from judge.prompts import load_task
    from judge.providers import base
    from judge.runner import Plan, run_task
    from judge.runner.requests import Sampling
    from judge.store import Store

    assert aiohttp and openai, "imported so that what they take counts as imports"
    provider = base.get("openai/loopback", base.Settings(base_url=options.url))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        # Made by another process: the import's memory is not the run's.
        db = Path(folder) / "study.db"
        _call("--make-study", str(db), "--units", str(options.units))
        with Store.open(db) as store:
            plan = Plan(
                load_task("stance"),
                "openai/loopback",
                sampling=Sampling(answers=options.answers),
                concurrency=options.concurrency,
            )

            async def run() -> tuple[float, float]:
                await provider.open()
                begun, cpu = time.perf_counter(), time.process_time()
                report = await run_task(store, plan, provider)
                assert report.ended == {"ok": options.units}, report
                taken = time.perf_counter() - begun, time.process_time() - cpu
                await provider.close()
                return taken

            imports = _resident()
            return _figures(*asyncio.run(run()), options.units, imports)


def _figures(seconds: float, cpu: float, units: int, imports: float) -> dict[str, float]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"calls": units / seconds, "cpu": 1000 * cpu / units, "imports": imports, "peak": peak}


def _resident() -> float:
    """Resident memory now, in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _texts(units: int) -> list[str]:
    """Passages of the size asked for, no two the same."""
    draw = random.Random(1)
    words = UNIT_CHARACTERS // 7
    return [f"{n}: {' '.join(draw.choices(WORDS, k=words))}" for n in range(units)]


def make_study(db: Path, units: int) -> None:
    """A study with one passage an item."""
    from judge.store import Store
    from judge.store.items import ImportInfo, add_items
    from judge.types import Item, Passage, Row, Where

    def fail(error: Exception) -> None:
        raise error

    rows = (
        Row(Item(str(n), "bench", claim=f"Claim {n} holds.", passages=[Passage(text)]), Where("bench", n))
        for n, text in enumerate(_texts(units))
    )
    with Store.open(db) as store:
        add_items(store, rows, ImportInfo("bench", {}), [], fail)


def bodies_of(units: int, answers: str) -> list[bytes]:
    """What the tool posts for these units."""
    from judge.prompts import load_task
    from judge.prompts.render import Mode, Renderer

    renderer = Renderer(load_task("stance"), Mode(answers))
    form = {"name": "answer", "schema": renderer.schema, "strict": True}
    rest: dict[str, Any] = {"temperature": 0.0, "max_tokens": 512}
    if answers == "json":
        rest["response_format"] = {"type": "json_schema", "json_schema": form}
    else:
        rest |= {"logprobs": True, "top_logprobs": 20, "max_tokens": 16}
    bodies = []
    for n, text in enumerate(_texts(units)):
        prompt = renderer.render({"claim": f"Claim {n} holds.", "passage": text})
        messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
        bodies.append(json.dumps({"model": "loopback", "messages": messages, **rest}).encode())
    return bodies


def _run_worker(name: str, url: str, options: argparse.Namespace) -> dict[str, float]:
    found: dict[str, float] = json.loads(
        _call(
            *("--worker", name, "--url", url, "--units", str(options.units), "--answers", options.answers),
            *("--concurrency", str(options.concurrency), "--folder", options.folder),
        )
    )
    return found


def _call(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.throughput", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--units", type=int, default=5000)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds before the server answers")
    parser.add_argument("--concurrency", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3, help="odd, for the median")
    parser.add_argument("--answers", choices=["json", "codes"], default="json")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the study is written")
    parser.add_argument("--worker", choices=["bare", "judge"], help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--make-study", metavar="FILE", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make_study:
        make_study(options.make_study, options.units)
        sys.exit()
    return options


if __name__ == "__main__":
    main()
