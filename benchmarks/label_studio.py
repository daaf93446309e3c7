"""A batch of 10,000 units to a real Label Studio server with predictions, and back. Measures, asserts nothing.

    ADJUDGE_LABEL_STUDIO=.../bin/label-studio uv run python -m benchmarks.label_studio [UNITS]

Each command is a process of its own; its memory is the peak of that process. One annotation is made
through the API and copied to every task inside the server's database: making 10,000 one by one would
measure the server only.
"""

import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.label_studio import server as servers
from tests.real import FINDERS
from tests.tui.studies import batch, build, judge_all

UNITS = 10_000
RUN = """
import resource, sys
from annotate.cli import main
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stdout)
"""


def timed(what: str, limit: str, server: servers.Server, study: Path, *words: str) -> None:
    """Run one annotate command and print its time and memory."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words, "--url", server.url, "-d", str(study)],
        env={**os.environ, "LABEL_STUDIO_API_KEY": server.keys["alice"]},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    memory = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "?"
    print(f"{what:<44} {seconds:7.1f} s {memory:>5} MB   {limit}")
    print("    " + done.stderr.strip().splitlines()[0])


def annotate_all(server: servers.Server, data: Path, project: int) -> None:
    """One annotation by bob on every task."""
    tasks = server.client("bob").tasks.list(project=project, page_size=1, include="id", fields="task_only")
    first = next(iter(tasks)).id
    region = {
        "from_name": "stance",
        "to_name": "passage",
        "type": "choices",
        "value": {"choices": ["refute"]},
    }
    made = server.client("bob").annotations.create(id=first, result=[region], lead_time=5.0)
    conn = sqlite3.connect(data / "label_studio.sqlite3", timeout=60)
    names = [
        row[1]
        for row in conn.execute("PRAGMA table_info(task_completion)")
        if row[1] not in ("id", "task_id", "unique_id")
    ]
    columns = ", ".join(f'"{n}"' for n in names)
    values = ", ".join(f'c."{n}"' for n in names)
    with conn:
        conn.execute(
            f"INSERT INTO task_completion ({columns}, task_id, unique_id) SELECT {values}, t.id, lower(hex(randomblob(16))) "
            "FROM task AS t JOIN task_completion AS c ON c.id = ? WHERE t.project_id = ? AND t.id <> ?",
            [made.id, project, first],
        )
        conn.execute(
            "UPDATE task SET total_annotations = 1, is_labeled = 1, "
            "updated_at = (SELECT updated_at FROM task WHERE id = ?) WHERE project_id = ?",
            [first, project],
        )
    conn.close()


def main() -> None:
    """Push, push again, annotate, pull, pull again."""
    units = int(sys.argv[1]) if len(sys.argv) > 1 else UNITS
    program = FINDERS["label-studio"]()
    if program is None:
        sys.exit("ADJUDGE_LABEL_STUDIO must name the server's program")
    with tempfile.TemporaryDirectory() as folder, servers.server(program) as server:
        words = " ".join(f"word{n}" for n in range(200))
        texts = {str(i): f"{words} {i}" for i in range(units)}
        study = build(Path(folder) / "study.db", items=units // 4, each=4, texts=texts)
        judge_all(study)
        batch(study, n=units, annotators=["alice", "bob"])
        print(f"{units:,} units with passages of 200 words, on {os.cpu_count()} processors")
        timed(
            "push with predictions",
            "under 60 s, 300 MB",
            server,
            study,
            "push",
            "pilot",
            "--with-predictions",
        )
        timed("push again", "adds nothing", server, study, "push", "pilot", "--with-predictions")
        project = sqlite3.connect(study).execute("SELECT project FROM label_studio_projects").fetchone()[0]
        annotate_all(server, server.data, project)
        timed("pull", "under 60 s, 300 MB", server, study, "pull", "pilot")
        timed("pull again", "adds nothing", server, study, "pull", "pilot")
    print(f"(this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB)")


if __name__ == "__main__":
    main()
