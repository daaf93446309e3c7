"""annotate quarantine: incoming labels that did not prove themselves."""

from __future__ import annotations

import click

from annotate.cli._named import in_study
from judge.commands import command
from judge.console import emit_rows, note, output_options, short
from judge.errors import UsageError
from judge.store import Store

COLUMNS = ["id", "batch", "format", "place", "annotator", "unit", "code", "reason", "status", "found_at",
           "decided_at", "note", "readable"]  # fmt: skip
WIDTH = 70


@click.group()
def quarantine() -> None:
    """Labels that did not prove themselves (another text, an unknown person, no status): list, accept, drop.

    No number uses them until a lead accepts them.
    """


@quarantine.command("list")
@click.option("--batch", help="Only records of this batch.")
@click.option("--all", "every", is_flag=True, help="Also records that are decided.")
@in_study
@output_options
def list_(batch: str | None, every: bool, store: Store, as_json: bool, as_csv: bool) -> None:
    """List what waits for a decision, with the reason."""
    from annotate.exchange.quarantine import listing

    rows = listing(store, batch, None if every else "open")
    shown = COLUMNS
    if not (as_json or as_csv):
        shown = ["id", "batch", "place", "annotator", "unit", "reason", *(["status"] if every else [])]
        rows = [{**row, "reason": short(str(row["reason"]), WIDTH)} for row in rows]
    emit_rows("quarantine", rows, shown, as_json, as_csv)


@quarantine.command("accept")
@click.argument("numbers", nargs=-1, type=int, metavar="ID...")
@click.option("--as", "person", metavar="NAME", help="Whose labels they are.")
@click.option("--unit", help="The unit that they are about (one record).")
@click.option("--blind", "blind", flag_value="blind", help="Nobody saw a suggestion while labelling.")
@click.option("--assisted", "blind", flag_value="assisted", help="Suggestions were in sight.")
@click.option("--note", "why", help="Why; kept with the decision.")
@in_study
def accept(
    numbers: tuple[int, ...],
    person: str | None,
    unit: str | None,
    blind: str | None,
    why: str | None,
    store: Store,
) -> None:
    """Take records in: as they are, or with what was missing said here.

    \b
    annotate quarantine accept 3 4 --as alice --note "her private address"
    """
    from annotate.exchange.intake import accept as take_in
    from annotate.exchange.taken import short_list
    from annotate.packing.conflicts import settle_conflict

    _some(numbers)
    if unit and len(numbers) > 1:
        raise UsageError("--unit is for one record")
    done = take_in(store, numbers, person=person, unit=unit, blind=blind, note=why, merged=settle_conflict)
    note(f"{len(numbers)} records accepted; new labels: {short_list(done.new)}")


@quarantine.command("drop")
@click.argument("numbers", nargs=-1, type=int, metavar="ID...")
@click.option("--note", "why", help="Why; kept with the decision.")
@in_study
def drop(numbers: tuple[int, ...], why: str | None, store: Store) -> None:
    """Leave records out for good; list --all still shows them."""
    from annotate.exchange.quarantine import drop as leave

    _some(numbers)
    leave(store, numbers, why)
    note(f"{len(numbers)} records dropped")


def _some(numbers: tuple[int, ...]) -> None:
    if not numbers:
        raise UsageError(f"name at least one record: {command('annotate quarantine list')}")
