"""Speed of a leaderboard: 10 systems x 2,366 questions with intervals and tests. Measures and prints, asserts nothing.

    uv run python benchmarks/board.py [SYSTEMS QUESTIONS]

A study of GaRAGe's size is planted (eligibility of every answer, a sentence's grounding each, 5 % not readable), then
`judge.papers.engine.board.board` is measured from the open study to the table, and the files that are written of it.
"""

import contextlib
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from judge.papers.engine.board_files import formats

from judge.cli import main as main_of
from judge.papers.engine.board import board
from judge.papers.engine.paper import ScoreRequest
from judge.papers.engine.papers import PAPERS
from judge.prompts import load_task
from judge.store import Store
from judge.store.judgements import Entry, add_judgements
from judge.store.runs import close_run, start_run
from judge.types import Answered, Judgement, Status, Usage

LABELS = {"eligibility": ("No Issues", "Major Issue(s)"), "grounding": ("supported", "unsupported")}


def brought_in(folder: Path, systems: int, questions: int) -> Path:
    """A study with items, and an answer of two sentences by each system to each of them."""
    rows = [
        {"id": str(q), "question": f"What is {q}?", "passages": [{"id": "p", "text": f"It is {q}."}]}
        for q in range(questions)
    ]
    answers = [
        {"id": str(q), "system": f"s{s}", "condition": "full", "text": f"So says {s} of {q}. And more."}
        for q in range(questions)
        for s in range(systems)
    ]
    db = folder / "study.db"
    for name, some, words in (
        ("items.jsonl", rows, ["items", "import", "jsonl"]),
        ("answers.jsonl", answers, ["systems", "import"]),
    ):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in some), "utf-8")
        extra = ["--dataset", "garage"] if name == "items.jsonl" else []
        with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(SystemExit):
            main_of([*words, str(folder / name), *extra, "-d", str(db)])
    return db


def plant(store: Store) -> None:
    """A run of each task over all of it."""
    draw = np.random.default_rng(1)
    for task_name, kind in (("eligibility", "answer"), ("grounding", "sentence")):
        task = load_task(task_name)
        field = task.spec.questions[0].field
        run_id, _ = start_run(store, task, "m", {"mode": "json"}, {})
        entries = []
        for (unit,) in store.conn.execute("SELECT unit_id FROM units WHERE kind = ?", [kind]):
            good = draw.random() < 0.9 - 0.03 * int(str(unit).split("@s")[1].split("@")[0])
            value, lost = LABELS[task_name][0 if good else 1], draw.random() < 0.05
            entries.append(
                Entry(
                    Judgement(
                        run_id, unit, 0, 0, Status.UNPARSED if lost else Status.OK, value, None,
                        () if lost else (Answered(field, value),), Usage(), None, None,
                    ),
                    None,
                )
            )  # fmt: skip
        with store.transaction() as conn:
            add_judgements(conn, entries, set())
        close_run(store, run_id, finished=True)


def main(systems: int = 10, questions: int = 2366) -> None:
    """Plant, measure, print."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(brought_in(Path(folder), systems, questions), create=False) as store,
    ):
        plant(store)
        asked = ScoreRequest(parts=("eligibility", "grounding", "factuality"))
        started, cpu = time.perf_counter(), time.process_time()
        found = board(store, PAPERS["garage"], asked, [f"s{n}" for n in range(systems)])
        print(
            f"{systems} systems x {questions:,} questions, {len(found.rows)} measures: "
            f"{time.perf_counter() - started:.1f} s, {time.process_time() - cpu:.1f} s of processor"
        )
        for ending, write in formats().items():
            started = time.perf_counter()
            print(f"{ending}: {len(write(found)):,} characters in {time.perf_counter() - started:.2f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
