"""How long a large job takes to write and to read back, and in how much memory.

    uv run python benchmarks/jobs.py --units 50000
    uv run python benchmarks/jobs.py --kill openai --units 2000

Units of 1,000 characters, made by SQL. Writing and reading run in processes of their own, whose most memory is the
kernel's count (ru_maxrss). The results are made of the requests without a model. With `--kill` a run in batches
against a loopback server is killed (SIGKILL) at every step, and what the server was asked is counted.
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
TEXT = "The passage has a sentence of no importance, number %d. "


def build(path: Path, units: int) -> None:
    """A study of that many passages."""
    from judge.store import Store

    with Store.open(path) as store:
        conn = store.conn
        conn.execute("PRAGMA synchronous = OFF")
        conn.execute("BEGIN")
        conn.execute("INSERT INTO imports VALUES ('i', 'jsonl', 'd', '[]', '{}', '{}', '{}', '[]', '')")
        for n in range(units):
            item, text = f"d:{n}", "".join(TEXT % (n + k) for k in range(17))
            conn.execute(
                "INSERT INTO items (item_id, dataset, question_id, claim, meta, content_sha, import_id) "
                "VALUES (?1, 'd', ?1, 'Tea is hot.', '{}', '', 'i')",
                [item],
            )
            conn.execute(
                "INSERT INTO passages (passage_id, item_id, position, text, meta, content_sha, import_id) "
                "VALUES (?1 || '/p', ?1, 0, ?2, '{}', '', 'i')",
                [item, text],
            )
            conn.execute(
                "INSERT INTO units (unit_id, kind, item_id, question_id, passage_id) "
                "VALUES (?1 || '/p', 'passage', ?1, ?1, ?1 || '/p')",
                [item],
            )
        conn.execute("COMMIT")


def answer(folder: Path) -> None:
    """Results for every request: a label each, in no order but the files'."""
    for path in sorted(folder.glob("part-*.jsonl")):
        with path.open("rb") as requests, path.with_suffix(".out").open("w") as out:
            for line in requests:
                name = json.loads(line)["custom_id"]
                choice = {"message": {"content": '{"stance": "support"}'}, "finish_reason": "stop"}
                body = {
                    "model": "m",
                    "choices": [choice],
                    "usage": {"prompt_tokens": 400, "completion_tokens": 8},
                }
                response = {"status_code": 200, "body": body}
                out.write(json.dumps({"custom_id": name, "response": response, "error": None}) + "\n")


def child(what: str, db: Path) -> None:
    """Write or read, and say how long it took, from the start of the process."""
    from judge.cli import main

    folder = db.parent / "batch"
    words = ["run", "stance", "-m", "openai/m", "--offline", str(folder)]
    if what == "read":
        words = ["jobs", "read", "last", *map(str, sorted(folder.glob("*.out")))]
    try:
        main([*words, "-d", str(db)], prog_name="judge")
    except SystemExit as done:
        assert not done.code, done.code
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"peak_mb": used.ru_maxrss / 1024, "cpu": used.ru_utime + used.ru_stime}))


def measured(what: str, db: Path) -> str:
    """One process: seconds and memory."""
    begun = time.perf_counter()
    command = [sys.executable, __file__, "--child", what, "--db", str(db)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - begun
    told = json.loads(done.stdout.splitlines()[-1])
    return f"{what}: {seconds:.1f} s ({told['cpu']:.1f} s of processor), {told['peak_mb']:.0f} MB at most"


def killed(vendor: str, units: int) -> None:
    """A run in batches that dies at every step, and what it cost."""
    from tests.loopback.process import ServerProcess

    with tempfile.TemporaryDirectory() as scratch:
        db = Path(scratch) / "study.db"
        build(db, units)
        with ServerProcess("batches", "--vendor", vendor, "--late", "2", "--early", "1") as server:
            begun = time.perf_counter()
            command = [sys.executable, "-m", "tests.jobs.killed", str(db), f"{vendor}/loopback", server.url]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            told = json.loads(done.stdout)
            print(f"killed {len(told['died'])} times: {', '.join(told['died'])}")
            print(
                f"{told['report']['labelled']:,} of {units:,} units labelled in {time.perf_counter() - begun:.0f} s"
            )
            print(f"the server: {server.stats()}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--units", type=int, default=50_000)
    parser.add_argument("--kill", choices=["openai", "anthropic"])
    parser.add_argument("--child", choices=["write", "read"])
    parser.add_argument("--db", type=Path)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if options.child:
        child(options.child, options.db)
        return
    if options.kill:
        killed(options.kill, options.units)
        return
    with tempfile.TemporaryDirectory() as scratch:
        db = Path(scratch) / "study.db"
        build(db, options.units)
        print(f"{options.units:,} requests")
        print(measured("write", db))
        files = list((db.parent / "batch").glob("part-*.jsonl"))
        print(f"{len(files)} files, {sum(f.stat().st_size for f in files) / 1e6:.0f} MB")
        answer(db.parent / "batch")
        print(measured("read", db))


if __name__ == "__main__":
    main()
