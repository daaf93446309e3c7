"""How long a study of millions takes, and in how much memory: a finished run repeated, a report, a batch, exports, a merge.

    uv run python benchmarks/scale.py --units 3000000

The studies are made by SQL; each command runs in a process of its own, whose seconds, seconds of the processor and
most memory are printed. TMPDIR is where the commands sort what memory should not hold.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).parent))

HUMAN = 300
"""The number of units that two people label, in a batch."""
_ITEMS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :units)"
_VALUES = (
    "CASE abs(u.rowid * 2654435761 / 65536 + {shift}) % 10 WHEN 0 THEN 'refute' WHEN 1 THEN 'neutral' ELSE "
)
_VALUES += "CASE u.rowid % 3 WHEN 0 THEN 'support' WHEN 1 THEN 'refute' ELSE 'neutral' END END"


def build(folder: Path, units: int, per_question: int) -> None:
    """Write a study of that many passages, with `per_question` passages for each question, and the files to import.

    Two judges labelled all stances, one judge all relevance, and two people label 300 units of a batch.
    """
    from judge.prompts import load_task
    from judge.store import Store
    from judge.store.runs import start_run

    options = {
        "answers": "auto", "base_url": None, "label_order": "declared", "max_output_tokens": 512, "mode": "json",
        "seed": None, "temperature": 0.0,
    }  # fmt: skip
    at = {"units": units, "per": per_question}
    with Store.open(folder / "study.db") as store:
        judges = [
            (start_run(store, load_task(task), model, options, {"script": "hash"})[0], field)
            for task, model, field in (
                ("stance", "scripted/hash", "stance"),
                ("stance", "scripted/other", "stance"),
                ("relevant", "scripted/hash", "relevant"),
            )
        ]
        conn = store.conn
        conn.execute("PRAGMA synchronous = OFF")
        conn.execute("BEGIN")
        conn.execute("INSERT INTO imports VALUES ('i', 'jsonl', 'd', '{}', '{}', '{}', '{}', '{}', '')")
        conn.execute(
            "INSERT INTO items (item_id, dataset, question_id, question, claim, meta, content_sha, import_id) "
            f"{_ITEMS} SELECT 'd:' || i, 'd', 'd:' || i, 'Is tea hot?', 'Tea is hot.', '{{}}', '', 'i' FROM n "
            "WHERE i < (:units + :per - 1) / :per",
            at,
        )
        # The operator || binds more tightly than the division.
        item, passage = "'d:' || (i / :per)", "'d:' || (i / :per) || '/' || (i % :per)"
        conn.execute(
            "INSERT INTO passages (passage_id, item_id, position, text, meta, content_sha, import_id) "
            f"{_ITEMS} SELECT {passage}, {item}, i % :per, 'Passage number ' || i, '{{}}', '', 'i' FROM n",
            at,
        )
        conn.execute(
            "INSERT INTO units (unit_id, kind, item_id, question_id, passage_id) "
            f"{_ITEMS} SELECT {passage}, 'passage', {item}, {item}, {passage} FROM n",
            at,
        )
        for number, (run, field) in enumerate(judges):
            conn.execute(
                "INSERT INTO judgements (run_id, unit_id, repeat, attempt, status, reused, judged_at, reply) "
                "SELECT ?, unit_id, 0, 1, 'ok', 0, '', '{\"stance\": \"support\"}' FROM units ORDER BY unit_id",
                [run],
            )
            value = _VALUES.format(shift=number)
            if field == "relevant":
                value = "iif(u.rowid % 3, 'relevant', 'irrelevant')"
            masses = """'{"support":0.7,"refute":0.2,"neutral":0.1,"unassigned":0.0}'"""
            conn.execute(
                "INSERT INTO labels (unit_id, field, annotator_id, repeat, value, distribution) SELECT unit_id, "
                f"?, ?, 0, {value}, {'NULL' if number else masses} FROM units AS u ORDER BY unit_id",
                [field, run],
            )
        for name in ("first", "second"):
            order = "position" if name == "first" else "-position"
            conn.execute(
                "INSERT INTO rankings (name, stage, item_id, rank, passage_id, score) "
                f"SELECT '{name}', 'retrieve', item_id, row_number() OVER (PARTITION BY item_id ORDER BY {order}), "
                f"passage_id, 0.5 - {order} FROM passages"
            )
        conn.execute("COMMIT")
    run_command(
        ["annotate", "batches", "new", "b", "stance", "-n", str(HUMAN), "--annotators", "ann,bob"], folder
    )
    with Store.open(folder / "study.db") as store, store.transaction() as conn:
        for number, person in enumerate(("ann", "bob")):
            conn.execute(
                "INSERT INTO labels (unit_id, field, annotator_id, repeat, value, sources) SELECT unit_id, 'stance', ?, 0, "
                f"{_VALUES.format(shift=number + 5)}, '[\"batch:b\"]' FROM batch_units JOIN units AS u USING (unit_id) "
                "WHERE batch = 'b' AND role = 'sample'",
                [person],
            )
        with (folder / "run.csv").open("w") as file:
            file.write("unit,label\n")
            for (unit,) in conn.execute("SELECT unit_id FROM units"):
                file.write(f"{unit},support\n")
        with (folder / "system.jsonl").open("w") as file:
            for (item,) in conn.execute("SELECT item_id FROM items"):
                file.write(f'{{"id": "{item}", "text": "Tea is hot, says {item}."}}\n')


COMMANDS = {
    "report": ["annotate", "report", "--task", "stance", "-o", "report.html"],
    "agreement": ["annotate", "agreement", "--field", "stance"],
    "agreement of a batch": ["annotate", "agreement", "--field", "stance", "--batch", "b"],
    "runs import": ["judge", "runs", "import", "run.csv", "--model", "imported", "--task", "stance"],
    "score retrieval": ["judge", "score", "retrieval"],
    "compare": ["judge", "compare", "stance"],
    "systems import": [
        "judge",
        "systems",
        "import",
        "system.jsonl",
        "--system",
        "mine",
        "--condition",
        "base",
    ],
    "a finished run repeated": ["judge", "run", "stance", "-m", "scripted/hash"],
    "batches new, by label": ["annotate", "batches", "new", "b1", "stance", "-n", "300", "--by", "label"],
    "batches new, by question": ["annotate", "batches", "new", "b2", "stance", "--by-question", "300"],
    "batches new, queue": ["annotate", "batches", "new", "b3", "stance", "-n", "300", "--draw", "least-sure"],
    "batches new, for ppi": ["annotate", "batches", "new", "b5", "stance", "-n", "300", "--draw", "ppi"],
    "export jsonl": ["judge", "runs", "export", "-o", "labels.jsonl"],
    "export csv": ["judge", "runs", "export", "-o", "labels.csv"],
    "export parquet": ["judge", "runs", "export", "-o", "labels.parquet"],
    "merge with a copy": ["judge", "studies", "merge", "study.db", "copy.db", "--into", "merged.db"],
}


def run_command(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, which prints its most memory and its processor seconds last."""
    more = [] if "merge" in words else ["-d", "study.db"]
    more += ["--annotators", "ann,bob"] if "batches" in words else []
    code = (
        # Not ru_maxrss, which a process takes over from the one that started it.
        "import os, runpy, sys; sys.argv = sys.argv[1:]\n"
        "try: runpy.run_module(sys.argv[0], run_name='__main__')\n"
        "finally: print('peak', [int(s.split()[1]) // 1024 for s in open('/proc/self/status') if 'VmHWM' in s][0], "
        "round(sum(os.times()[:2]), 1), file=sys.stderr)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *words, *more],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def measure(words: list[str], folder: Path) -> str:
    """Return the seconds of a command, those of the processor, and the most memory of its process."""
    begun = time.monotonic()
    # A command that writes into the study gets a copy, so that every command reads the same study.
    writes = "import" in words
    if writes:
        shutil.copyfile(folder / "study.db", folder / "before.db")
    done = run_command(words, folder)
    if writes:
        (folder / "before.db").replace(folder / "study.db")
    peak = next((line for line in done.stderr.splitlines() if line.startswith("peak")), "peak ? ?")
    ended = "" if done.returncode == 0 else f"  exit {done.returncode}: {done.stderr[-300:]}"
    _, memory, cpu = peak.split()
    return f"{time.monotonic() - begun:7.1f} s  {cpu:>6} s of CPU  {memory:>5} MB{ended}"


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=300_000)
    parser.add_argument("--per-question", type=int, default=10, help="Passages of one question.")
    parser.add_argument(
        "--only", nargs="*", metavar="WORD", help="Commands whose name has one of these in it."
    )
    parser.add_argument("--folder", type=Path, help="Keep the study there, and take one that is there.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        begun = time.monotonic()
        if not (folder / "study.db").exists():
            build(folder, options.units, options.per_question)
        size = (folder / "study.db").stat().st_size / 2**20
        print(
            f"{options.units:,} units, {size:,.0f} MB, built in {time.monotonic() - begun:.0f} s", flush=True
        )
        for what, words in COMMANDS.items():
            if options.only and not any(word in what for word in options.only):
                continue
            if "copy" in what:
                shutil.copyfile(folder / "study.db", folder / "copy.db")
            print(f"{what:26} {measure(words, folder)}", flush=True)
            for left in folder.glob("labels.*"):
                left.unlink()


if __name__ == "__main__":
    main()
