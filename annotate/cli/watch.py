"""annotate watch: a batch in flight, on a live screen."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from annotate.cli._named import BatchName
from judge.console import db_option, say, visible


@click.command("watch")
@click.argument("name", cls=BatchName)
@click.option("--once", is_flag=True, help="Print how it stands and end; so also without a terminal.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.2),
    default=2.0,
    metavar="SECONDS",
    help="How often the file is looked at.",
)
@db_option
def watch(name: str, once: bool, every: float, db: Path) -> None:
    """Watch the batch NAME: progress, pace, checks, agreement so far, fast clickers, flags with their texts.

    No label is shown and nothing is written: it may run beside people at work and a judge. q quits.
    """
    from datetime import UTC, datetime

    from annotate.leading.watch import look, sections, title
    from annotate.sitting.desk import batch_info
    from annotate.store import open_study

    with open_study(db) as store:
        batch_info(store, name)
        if once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            document, at = look(store, name), datetime.now(UTC)
            say(title(document, at))
            for part in sections(document, at):
                print(f"\n{part.title}")
                for line in part.lines:
                    print(visible(f"  {line}").replace("\n", " "))
            return
    from annotate.tui.watch import run_watch

    run_watch(db, name, every)
