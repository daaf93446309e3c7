"""How long a big, half-judged study takes to go on, and in how much memory: until the first call is sent.

    uv run python benchmarks/resume.py --units 3000000

The study is made by SQL. The child process opens it, selects the units, counts what is judged and asks for the
first page of what is left, as `judge run` does; then it is stopped.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_ITEMS = """
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :units)
"""


def build(path: Path, units: int) -> None:
    """A study of that many units with a failed one in a thousand; the first half is judged, as a run leaves it."""
    sys.path.insert(0, str(ROOT))
    from judge.prompts import load_task
    from judge.store import Store
    from judge.store.runs import start_run

    with Store.open(path) as store:
        run_id, _ = start_run(
            store,
            load_task("stance"),
            "scripted/hash",
            {"answers": "auto", "base_url": None, "label_order": "declared", "max_output_tokens": 512, "mode": "json",
             "seed": None, "temperature": 0.0},
            {"script": "hash"},
        )  # fmt: skip
        conn = store.conn
        conn.execute("PRAGMA synchronous = OFF")
        conn.execute("BEGIN")
        conn.execute("INSERT INTO imports VALUES ('i', 'jsonl', 'd', '{}', '{}', '{}', '{}', '{}', '')")
        at = {"units": units, "run": run_id}
        conn.execute(
            f"INSERT INTO items (item_id, dataset, question_id, claim, meta, content_sha, import_id) {_ITEMS} "
            "SELECT 'd:' || i, 'd', 'd:' || i, 'Tea is hot.', '{}', '', 'i' FROM n",
            at,
        )
        conn.execute(
            "INSERT INTO passages (passage_id, item_id, position, text, meta, content_sha, import_id) "
            f"{_ITEMS} SELECT 'd:' || i || '/p', 'd:' || i, 0, 'Passage number ' || i, '{{}}', '', 'i' FROM n",
            at,
        )
        conn.execute(
            f"INSERT INTO units (unit_id, kind, item_id, question_id, passage_id) {_ITEMS} "
            "SELECT 'd:' || i || '/p', 'passage', 'd:' || i, 'd:' || i, 'd:' || i || '/p' FROM n",
            at,
        )
        conn.execute(
            "INSERT INTO judgements (run_id, unit_id, repeat, attempt, status, reused, judged_at, reply) "
            f"{_ITEMS} SELECT :run, 'd:' || i || '/p', 0, 1, CASE i % 1000 WHEN 0 THEN 'failed' ELSE 'ok' END, 0, '', "
            "'{\"stance\": \"supporting\"}' FROM n WHERE i * 2 < :units ORDER BY 'd:' || i || '/p'",
            at,
        )
        conn.execute("COMMIT")


def resume(path: Path) -> None:
    """In a process of its own: how long until the first call, and the most memory."""
    import asyncio

    sys.path.insert(0, str(ROOT))
    from judge.prompts import load_task
    from judge.providers import base
    from judge.runner import Plan, run_task
    from judge.runner.requests import Sampling
    from judge.store import Store
    from judge.types import Reply, Request

    started = time.monotonic()
    provider = base.get("scripted/hash")
    first: list[float] = []

    async def complete(request: Request) -> Reply:
        first.append(time.monotonic() - started)
        raise KeyboardInterrupt

    provider.complete = complete  # type: ignore[method-assign]
    try:
        with Store.open(path, create=False) as store:
            asked = Plan(load_task("stance"), "scripted/hash", sampling=Sampling(answers="json"))
            asyncio.run(run_task(store, asked, provider))
    except (KeyboardInterrupt, SystemExit):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": round(first[0], 2), "megabytes": round(peak)}), flush=True)


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=600_000)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        resume(options.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        begun = time.monotonic()
        build(path, options.units)
        size = path.stat().st_size / 2**20
        print(
            f"{options.units:,} units, {size:.0f} MB, built in {time.monotonic() - begun:.0f} s", flush=True
        )
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, __file__, "--child", str(path)], capture_output=True, text=True, check=False
            )
            print(done.stdout.strip() or done.stderr[-500:], flush=True)


if __name__ == "__main__":
    main()
