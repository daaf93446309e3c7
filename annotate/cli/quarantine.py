"""annotate quarantine: list, accept and drop imported labels that failed a check."""

from __future__ import annotations

import sys

import click

from annotate.cli._named import with_study
from judge.commands import command
from judge.console import json_option, note, shorten
from judge.document.terminal import emit_rows
from judge.errors import UsageError
from judge.store import Store

COLUMNS = ["id", "batch", "format", "place", "annotator", "unit", "code", "reason", "status", "found_at",
           "decided_at", "note", "readable"]  # fmt: skip
WIDTH = 70


@click.group()
def quarantine() -> None:
    """List, accept and drop imported labels that failed a check.

    Their text, annotator or status is not as expected.

    No result uses them until you accept them.
    """


@quarantine.command("list")
@click.option("--batch", help="List only records of this batch.")
@click.option("--all", "every", is_flag=True, help="Include records that are already decided.")
@with_study
@json_option
def list_(batch: str | None, every: bool, store: Store, as_json: bool) -> None:
    """List the records that need a decision, and the reasons."""
    from annotate.exchange.quarantine import listing

    rows = listing(store, batch, None if every else "open")
    shown = COLUMNS
    if not as_json:
        shown = ["id", "batch", "place", "annotator", "unit", "reason", *(["status"] if every else [])]
        if sys.stdout.isatty():
            # A long reason is cut for the terminal. A pipe and --json get all of it.
            rows = [{**row, "reason": shorten(str(row["reason"]), WIDTH)} for row in rows]
    emit_rows("quarantine", rows, shown, as_json)


@quarantine.command("accept")
@click.argument("numbers", nargs=-1, type=int, metavar="ID...")
@click.option(
    "--annotator",
    "person",
    metavar="NAME",
    help="Name of the annotator who gave the labels (default: the name in the record).",
)
@click.option("--blind", "blind", flag_value="blind", help="Mark labels as blind: no suggestion was shown.")
@click.option(
    "--assisted", "blind", flag_value="assisted", help="Mark labels as assisted: suggestions were shown."
)
@click.option("--note", "reason", help="Reason to store with the decision.")
@with_study
def accept(
    numbers: tuple[int, ...],
    person: str | None,
    blind: str | None,
    reason: str | None,
    store: Store,
) -> None:
    """Accept quarantined records, and add missing values.

    The labels are credited to the annotator in the record, or to the one that you name with --annotator.

    \b
    annotate quarantine accept 3 4 --annotator alice --note "her private address"
    """
    from annotate.exchange.gate import accept as take_in
    from annotate.exchange.result import format_briefly
    from annotate.packing.conflicts import settle_conflict

    _require_numbers(numbers)
    # The function is passed, because annotate.exchange never imports annotate.packing.
    done = take_in(store, numbers, person=person, blind=blind, note=reason, merged=settle_conflict)
    note(f"{len(numbers)} records accepted; new labels: {format_briefly(done.new)}")


@quarantine.command("drop")
@click.argument("numbers", nargs=-1, type=int, metavar="ID...")
@click.option("--note", "reason", help="Reason to store with the decision.")
@with_study
def drop(numbers: tuple[int, ...], reason: str | None, store: Store) -> None:
    """Drop records permanently. They are still listed by annotate quarantine list --all."""
    from annotate.exchange.quarantine import drop as leave

    _require_numbers(numbers)
    leave(store, numbers, reason)
    note(f"{len(numbers)} records dropped")


def _require_numbers(numbers: tuple[int, ...]) -> None:
    if not numbers:
        raise UsageError(
            f"specify at least one record; to list the records: {command('annotate quarantine list')}"
        )
