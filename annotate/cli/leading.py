"""annotate batches add, hand-over, extend, reopen, stop and policy: a lead runs a batch in flight.

pack and merge: people label it on other machines.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotate.batch_plan import Policy
from annotate.cli._named import BatchName, in_study, open_command
from annotate.cli.batches import allow_option, batches, print_strata
from judge.commands import command
from judge.console import TO_WRITE, emit_json, json_option, note, notes
from judge.errors import Exit, UsageError
from judge.files import format_of
from judge.store import Store
from judge.types import attributes

if TYPE_CHECKING:
    from annotate.drawing.seats import Changed

__all__ = ["batches"]
"""What the command line imports from here: the group, with the commands that this module adds to it."""

why_option = click.option("--note", "why", help="Why; kept with the change.")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _tell(store: Store, done: Changed, told: str, as_json: bool) -> None:
    if as_json:
        emit_json("batch-change", attributes(done))
        return
    note(told)
    if done.strata:
        print_strata(done.strata)
    for line in done.notes:
        note(line)
    for person, count in done.positions.items():
        note(f"{person}: {count} more to do: {open_command(done.batch, person, store.path)}")


@batches.command("add")
@click.argument("name", cls=BatchName)
@click.option("--annotators", required=True, metavar="A,B", help="Who joins.")
@click.option("-n", "n", type=click.IntRange(min=1), help="How many units each; default: the whole sample.")
@allow_option
@in_study
@json_option
def add(name: str, annotators: str, n: int | None, allow_exposed: bool, store: Store, as_json: bool) -> None:
    """Add people to the batch NAME: units with the fewest people first, after the batch's training units."""
    from annotate.leading.lead import add_people

    done = add_people(store, name, _names(annotators), n=n, allow_exposed=allow_exposed)
    _tell(store, done, f"batch '{name}': {done.units} units have more people", as_json)


@batches.command("hand-over")
@click.argument("name", cls=BatchName)
@click.option("--from", "person", required=True, metavar="NAME", help="Whose units.")
@click.option("--to", required=True, metavar="A,B", help="Who gets them; may be new to the batch.")
@why_option
@allow_option
@in_study
@json_option
def hand_over(
    name: str, person: str, to: str, why: str | None, allow_exposed: bool, store: Store, as_json: bool
) -> None:
    """Hand over what somebody has not begun. Their labels stay, and so does what they did half.

    \b
    annotate batches hand-over pilot --from bob --to dave        dave replaces bob
    """
    from annotate.leading.lead import hand_over as move

    done = move(store, name, person, _names(to), note=why, allow_exposed=allow_exposed)
    _tell(store, done, f"batch '{name}': {done.units} units of {person} were handed over", as_json)


@batches.command("extend")
@click.argument("name", cls=BatchName)
@click.option(
    "--to",
    required=True,
    metavar="N",
    type=click.IntRange(min=1),
    help="How many units it is to have; questions, where whole questions were drawn.",
)
@click.option("--annotators", metavar="A,B", help="Who labels them; default: all of the batch.")
@allow_option
@in_study
@json_option
def extend(
    name: str,
    to: int,
    annotators: str | None,
    allow_exposed: bool,
    store: Store,
    as_json: bool,
) -> None:
    """Draw more units for the batch NAME, as if they had been drawn with it: same frame, strata and seed.

    The weights of all its units are written again. Given again, the command changes nothing: --to is the new total.
    """
    from annotate.drawing.extend import extend_batch

    people = None if annotators is None else _names(annotators)
    done = extend_batch(store, name, to=to, people=people, allow_exposed=allow_exposed)
    _tell(store, done, f"batch '{name}': {done.units} units more", as_json)


@batches.command("reopen")
@click.argument("name", cls=BatchName)
@why_option
@in_study
def reopen(name: str, why: str | None, store: Store) -> None:
    """Open a closed batch again."""
    from annotate.leading.lead import reopen_batch

    reopen_batch(store, name, why)
    note(f"batch '{name}' is open again")


@batches.command("stop")
@click.argument("name", cls=BatchName)
@click.option("--annotator", "person", required=True, metavar="NAME", help="Who is stopped.")
@click.option("--why", help="Why, as in 'failed training'; progress and report tell it.")
@click.option("--undo", is_flag=True, help="Take a stop back: the labels count again.")
@in_study
def stop(name: str, person: str, why: str | None, undo: bool, store: Store) -> None:
    """Stop somebody in the batch NAME: nothing more is taken, and no number uses their labels of it.

    The log keeps every label. annotate batches hand-over gives what is open to others.
    """
    from annotate.leading.lead import resume_person, stop_person

    if not undo and not (why or "").strip():
        raise UsageError("--why: say why, as in --why 'failed training'; progress and report tell it")
    if undo:
        units = resume_person(store, name, person, why)
        note(f"batch '{name}': {person} may go on; the labels of {units} units are what they were")
        return
    units = stop_person(store, name, person, why or "")
    note(f"batch '{name}': {person} is stopped; {units} units were begun, and no number uses their labels")
    note(
        f"give the rest to others: {command('annotate batches hand-over', name, '--from', person, '--to', 'NAME')}"
    )


@batches.command("policy")
@click.argument("name", cls=BatchName)
@click.option(
    "--majority", is_flag=True, help="What more than half of the people say is decided; ties go to the lead."
)
@click.option(
    "--tolerance",
    multiple=True,
    metavar="FIELD=NUMBER",
    help="Numbers that differ by no more than this agree; their median is decided.",
)
@click.option("--none", "nothing", is_flag=True, help="Every disagreement goes to the lead.")
@why_option
@in_study
def policy(
    name: str, majority: bool, tolerance: tuple[str, ...], nothing: bool, why: str | None, store: Store
) -> None:
    """Say what is decided without the lead where people disagree; without options, print what holds.

    A unit is decided so once nobody has it open any more. The lead can still change it; the report tells the policy.
    """
    from annotate.leading.adjudication import predecide, set_policy
    from annotate.sitting.desk import batch_info

    if majority or tolerance or nothing:
        if nothing and (majority or tolerance):
            raise UsageError("--none goes alone")
        set_policy(store, name, Policy(majority, _tolerances(tolerance)), note=why)
    info = batch_info(store, name)
    decided = predecide(store, name) if majority or tolerance or nothing else None
    print(f"{name}: {str(info.plan.adjudication) or 'every disagreement goes to the lead'}")
    if decided is not None:
        note(
            f"{decided} units are decided by it so far; the others: {command('annotate adjudicate', name, '--as', 'NAME')}"
        )


def _tolerances(given: tuple[str, ...]) -> dict[str, float]:
    tolerances = {}
    for text in given:
        name, _, number = text.partition("=")
        try:
            tolerances[name] = float(number)
        except ValueError:
            raise UsageError(f"--tolerance {text}: write it as FIELD=NUMBER") from None
    return tolerances


@batches.command("pack")
@click.argument("name", cls=BatchName)
@click.option("--for", "person", required=True, metavar="NAME", help="Whose units.")
@click.option("-o", "--out", type=TO_WRITE, help="Default: BATCH-NAME.db")
@in_study
def pack(name: str, person: str, out: Path | None, store: Store) -> None:
    """Write a small study with only one annotator's blind units, for another machine.

    There: annotate open BATCH --as NAME -d FILE. Back here: annotate batches merge FILE.
    """
    from annotate.packing.pack import pack as write

    path = out or Path(f"{name}-{person}.db")
    format_of(path, dict.fromkeys((".db", ".sqlite", ".sqlite3"), "study"))
    count = write(store, name, person, path)
    note(f"{path}: {count} units; send it to {person}: {open_command(name, person, Path(path.name))}")


@batches.command("merge")
@click.argument("path", metavar="FILE", type=TO_WRITE)
@in_study
@json_option
def merge(path: Path, store: Store, as_json: bool) -> int:
    """Bring the labels of a packed study back. Merging again changes nothing.

    A unit whose labels, note, flag or evidence were changed differently in both places, or on another text, is left as
    it is here and waits in the quarantine (exit 1): annotate quarantine accept takes the file's side, drop this one's.
    """
    from annotate.packing.merge import merge as read
    from annotate.report.until_decided import move_on

    done = read(store, path)
    move_on(store, done.batch)
    if as_json:
        emit_json("batch-merge", attributes(done))
    note(f"batch '{done.batch}': {done.events} new events of {done.annotator}, {done.units} units done")
    if done.back:
        note(
            f"{done.back} units that had been handed over since came back labelled: they have one label more"
        )
    if done.assisted:
        note(
            f"{done.assisted} labels were given there after {done.annotator} had been shown the known answer, or the "
            "judge, of the unit here: they are assisted, not blind"
        )
    notes(done.conflicts, "not merged, waits in the quarantine")
    return Exit.ERROR if done.conflicts else Exit.DONE
