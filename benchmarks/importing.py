"""How long an import takes and how much memory it needs, and how soon `judge --help` answers.

    uv run python -m benchmarks.importing
    uv run python -m benchmarks.importing --megabytes 200 --passages 20000

Every figure is that of the real command in a process of its own, on files written for the purpose:
`--passages` passages of about 1,500 characters, ten to an item, with gold; and a JSON-lines file of
`--megabytes`, imported for its peak memory. `copy` is the time that the same rows take to be read
with `json` and written to a bare SQLite table in one transaction: the ratio to it does not depend
on the machine.
"""

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.texts import WORDS

CHARACTERS = 1500
PER_ITEM = 10


def main() -> None:
    """Measure and print."""
    options = _options()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        # Compiled modules, as an installed package has them.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        _help(environment)
        rows = folder / "rows.jsonl"
        # Row by row: a child's peak memory counts what its parent held when it was started.
        with rows.open("w", encoding="utf-8") as file:
            file.writelines(_rows(options.passages))
        copied = _copy(rows, folder / "copy.db")
        words = ("items", "import", "jsonl", str(rows), "-d", str(folder / "study.db"))
        for what in ("new", "again"):
            seconds, peak = _judge(environment, *words)
            print(
                f"import of {options.passages:,} passages, {what}: {seconds:.1f} s, {seconds / copied:.1f} times "
                f"the copy ({copied:.1f} s), peak {peak:.0f} MB" + (" (goal: 20 s)" if what == "new" else "")
            )
        rows.unlink()
        if options.megabytes:
            large = folder / "large.jsonl"
            with large.open("w", encoding="utf-8") as file:
                for row in _rows(sys.maxsize):
                    file.write(row)
                    if file.tell() >= options.megabytes * 1e6:
                        break
            seconds, peak = _judge(
                environment, "items", "import", "jsonl", str(large), "-d", str(folder / "l.db")
            )
            size = large.stat().st_size / 1e6
            print(
                f"import of {size:,.0f} MB: peak {peak:.0f} MB (goal: 300), {seconds:.0f} s, {size / seconds:.1f} MB/s"
            )


def _rows(passages: int) -> Iterator[str]:
    """JSON lines with that many passages, no two the same."""
    draw = random.Random(1)
    for first in range(0, passages, PER_ITEM):
        texts = [
            " ".join(draw.choices(WORDS, k=CHARACTERS // 7)) for _ in range(min(PER_ITEM, passages - first))
        ]
        found = [
            {
                "id": str(n),
                "text": f"{first}.{n} {text}",
                "title": f"Title {n}",
                "gold": {"stance": "support"},
            }
            for n, text in enumerate(texts)
        ]
        yield (
            json.dumps(
                {"id": str(first), "claim": f"Claim {first} holds.", "source": "made", "passages": found}
            )
            + "\n"
        )


def _copy(rows: Path, db: Path) -> float:
    """Seconds for the least that an import has to do."""
    begun = time.perf_counter()
    conn = sqlite3.connect(db)
    conn.execute("CREATE TABLE passages (id TEXT PRIMARY KEY, item TEXT, title TEXT, text TEXT)")
    with rows.open(encoding="utf-8") as file:
        for line in file:
            item = json.loads(line)
            conn.executemany(
                "INSERT INTO passages VALUES (?, ?, ?, ?)",
                [(f"{item['id']}/{p['id']}", item["id"], p["title"], p["text"]) for p in item["passages"]],
            )
    conn.commit()
    conn.close()
    return time.perf_counter() - begun


def _judge(environment: dict[str, str], *words: str) -> tuple[float, float]:
    """Seconds and peak memory in MB of one command."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "judge", *words], env=environment, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"judge {' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - begun, used.ru_maxrss / 1024


def _help(environment: dict[str, str]) -> None:
    _judge(environment, "--help")
    python = []
    ours = []
    for _ in range(7):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import click"], env=environment, check=True)
        python.append(time.perf_counter() - begun)
        ours.append(_judge(environment, "--help")[0])
    print(
        f"judge --help: {median(ours):.2f} s (goal: 0.4), {median(ours) / median(python):.1f} times "
        f"Python importing click ({median(python):.2f} s)"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--megabytes", type=float, default=1000, help="0 leaves the large file out")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where files and studies are written")
    return parser.parse_args()


if __name__ == "__main__":
    main()
