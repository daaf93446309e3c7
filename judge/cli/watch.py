"""judge runs watch: follow a run from another terminal, or from another machine that can read the study."""

from __future__ import annotations

import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.progress import duration
from judge.console import db_option, json_text, print_lines, shorten, visible
from judge.errors import Exit
from judge.store import Store

if TYPE_CHECKING:
    from judge.store.watching import RunStanding

RATE_SECONDS = 60.0
"""The number of seconds over which the rate is computed."""
LOOK_SECONDS = 2.0
"""Seconds between two reads of the file, as in `annotate watch`."""
MOST_FAILURES = 3
"""Number of recent failures that one update shows."""


@click.command("watch")
@click.argument("run_name", metavar="RUN", default="last")
@click.option("--once", is_flag=True, help="Print the state once and exit.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document per update, each on its own line."
)
@db_option
def watch(run_name: str, once: bool, as_json: bool, db: Path) -> int:
    """Show the progress of a run until it ends.

    The output shows the counts, the rate, the time left, the cost and the most recent failures.

    \b
    judge runs watch
    judge runs watch 01K9ZX3M --once --json

    The command only reads the study. The exit code is 0 if the run finished and every unit has a label. It is
    4 if the run ended or was stopped and some units have no label. With --once, it is 0 while the run is in
    progress.
    """
    from judge.store.watching import Watched

    with Store.open(db, create=False) as store:
        watched, shown = Watched(store, run_name, MOST_FAILURES), ShownRun(as_json)
        while True:
            look = watched.look()
            shown.show(look, time.monotonic())
            if look.state != "running" or once:
                break
            time.sleep(LOOK_SECONDS)
    shown.end()
    return Exit.DONE if look.is_whole or look.state == "running" else Exit.INCOMPLETE


class ShownRun:
    """Prints updates on one run.

    On a terminal, one line is rewritten; elsewhere, each change is printed as a new line.
    """

    def __init__(self, as_json: bool) -> None:
        self._as_json, self._rewrites = as_json, sys.stdout.isatty() and not as_json
        self._seen: deque[tuple[float, int]] = deque()
        self._printed: set[tuple[Any, ...]] = set()
        self._last = ""

    def show(self, look: RunStanding, now: float) -> None:
        """Print one update; `now` is in seconds."""
        rate = self._rate(look, now)
        left = None if not rate or look.pending is None else look.pending / rate
        if self._as_json:
            document = {**look.as_json(), "rate": None if rate is None else round(rate, 3)}
            document["seconds_left"] = None if left is None else round(left, 1)
            # The output is flushed, because a pipe would otherwise hold the lines back.
            print(json_text({"schema": "adjudge/runs-watch/1", **document}), flush=True)
            return
        new = [f for f in reversed(look.failures) if tuple(f.values()) not in self._printed]
        self._printed |= {tuple(f.values()) for f in new}
        text = line(look, rate, left)
        if self._rewrites:
            sys.stdout.write("\r\x1b[K")
        for f in new:
            print_lines(f"{f['status']}: {f['unit']}: {shorten(f['reason'], 100)}")
        if self._rewrites:
            sys.stdout.write(text)
        elif text != self._last:
            print(text)
        self._last = text
        sys.stdout.flush()

    def end(self) -> None:
        """End the line."""
        if self._rewrites:
            print()

    def _rate(self, look: RunStanding, now: float) -> float | None:
        """Return the number of units per second, or None at the first update."""
        self._seen.append((now, look.done))
        # One older update is kept, so that the rate covers the whole minute.
        while len(self._seen) > 2 and now - self._seen[1][0] >= RATE_SECONDS:
            self._seen.popleft()
        since, done = self._seen[0]
        return (look.done - done) / (now - since) if now > since else None


def line(look: RunStanding, rate: float | None, left: float | None) -> str:
    """Return the counts, state, rate, time left, cost and statuses of a run."""
    of = "…" if look.units is None else f"{max(look.units, look.done):,}"
    parts = [f"{look.done:,}/{of}", look.state]
    if look.state == "running":
        parts.append("…/s" if rate is None else f"{rate:.1f}/s")
        parts.append("…" if left is None else f"{duration(left)} left")
    if look.cost is not None:
        parts.append(f"${look.cost:.2f}")
    parts += [f"{n:,} {status}" for status, n in look.ended.items() if n]
    return visible(f"{look.run} · {look.task} · {look.model}: " + " · ".join(parts))
