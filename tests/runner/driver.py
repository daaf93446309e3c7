"""A run in a process of its own, for tests that kill it: `python -m tests.runner.driver DB MODEL ...`

Prints `N` after every commit, N being the units counted as done, and at the end the report as JSON.
"""

import argparse
import asyncio
import json
import os
import resource
from dataclasses import replace
from pathlib import Path

from judge.providers import base
from judge.runner import Live, open_patiently, run_task
from judge.runner import run as run_module
from judge.runner import server as model_server
from judge.store import Store
from tests.runner.helpers import HASTY, plan


def main() -> None:
    """Run and report."""
    options = arguments()
    run_module.GRACE_SECONDS = options.grace
    model_server.FIRST_PROBE = 0.01
    if options.file_size:
        resource.setrlimit(resource.RLIMIT_FSIZE, (options.file_size, options.file_size))
    settings = dict(option.split("=", 1) for option in options.option)
    provider = base.get(options.model, base.Settings(base_url=options.base_url, options=settings))

    def watch(live: Live) -> None:
        os.write(1, f"{live.report.done}\n".encode())

    async def run() -> None:
        with Store.open(options.db, create=False) as store:
            patience = replace(HASTY, outage=options.outage)
            run_plan = plan(
                options.model, concurrency=options.concurrency, repeats=options.repeats, patience=patience
            )
            run_plan = await open_patiently(provider, run_plan)
            report = await run_task(store, run_plan, provider, watch)
        await provider.close()
        done = {
            "ended": dict(report.ended),
            "reused": report.reused,
            "already_judged": report.already_judged,
            "pending": report.pending,
            "interrupted": report.interrupted,
            "error": None if report.error is None else type(report.error).__name__,
            "said": str(report.error),
        }
        os.write(1, (json.dumps(done) + "\n").encode())

    asyncio.run(run())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("db", type=Path)
    parser.add_argument("model")
    parser.add_argument("--base-url")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--concurrency", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--grace", type=float, default=10.0)
    parser.add_argument("--outage", type=float, default=HASTY.outage)
    parser.add_argument("--file-size", type=int, help="no file may grow longer than this (RLIMIT_FSIZE)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
