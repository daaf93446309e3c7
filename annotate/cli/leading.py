"""annotate batches assign, extend, stop and policy: change a batch while people label it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotate.batch_plan import Policy
from annotate.cli._named import BatchName, open_command, with_study
from annotate.cli.batches import allow_option, batches
from annotate.leading.progress_document import list_strata
from judge.commands import command
from judge.console import emit_json, json_option, note, parse_named_number
from judge.document.terminal import show_blocks
from judge.errors import UsageError
from judge.store import Store
from judge.types import attributes

if TYPE_CHECKING:
    from annotate.drawing.seats import Changed

__all__ = ["batches"]
"""The group `annotate batches`, exported with the commands that this module adds to it."""

reason_option = click.option("--note", "reason", help="Reason to store with the change.")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _print_result(store: Store, done: Changed, message: str, as_json: bool) -> None:
    if as_json:
        emit_json("batch-change", attributes(done))
        return
    note(message)
    if done.strata:
        show_blocks(list_strata(done.strata))
    for line in done.notes:
        note(line)
    for person, count in done.positions.items():
        note(f"{person}: {count} more to label; to start: {open_command(done.batch, person, store.path)}")


@batches.command("assign")
@click.argument("name", cls=BatchName)
@click.option("--to", required=True, metavar="A,B", help="Annotators to assign. New names are allowed.")
@click.option("--from", "person", metavar="NAME", help="Annotator to replace.")
@click.option(
    "-n", "n", type=click.IntRange(min=1), help="Number of units for each annotator (default: all)."
)
@reason_option
@allow_option
@with_study
@json_option
def assign(
    name: str,
    to: str,
    person: str | None,
    n: int | None,
    reason: str | None,
    allow_exposed: bool,
    store: Store,
    as_json: bool,
) -> None:
    """Assign units of the batch NAME to more annotators.

    \b
    annotate batches assign pilot --to carol                     carol joins
    annotate batches assign pilot --from bob --to dave           dave replaces bob

    New annotators start with the training units of the batch. With --from, units that this annotator has not
    started go to the new annotators. Labels and drafts are kept.
    """
    from annotate.leading.lead import add_people, hand_over

    people = _names(to)
    if person is None:
        done = add_people(store, name, people, n=n, note=reason, allow_exposed=allow_exposed)
        message = f"batch '{name}': {done.units} units were assigned to more people"
    else:
        # Moving only some units would leave the others with a person who has left.
        if n is not None:
            raise UsageError("-n cannot be used with --from, which moves all units that were not started")
        done = hand_over(store, name, person, people, note=reason, allow_exposed=allow_exposed)
        message = f"batch '{name}': {done.units} units assigned to {person} were handed over"
    _print_result(store, done, message, as_json)


@batches.command("extend")
@click.argument("name", cls=BatchName)
@click.option(
    "--to", metavar="N", type=click.IntRange(min=1), help="New total number of units, or of questions."
)
@click.option("--annotators", metavar="A,B", help="Annotators for the new units (default: all).")
@allow_option
@with_study
@json_option
def extend(
    name: str,
    to: int | None,
    annotators: str | None,
    allow_exposed: bool,
    store: Store,
    as_json: bool,
) -> None:
    """Draw more units for the batch NAME.

    The draw uses the same population, strata and seed as the batch.

    All weights of the batch are recomputed. --to is the new total, so running the same command again changes
    nothing. If the batch was drawn by question, --to counts questions.

    For a batch that uses --until-decided, omit --to. The next block is drawn once the current block is
    complete. If the verdict is decided, the batch is closed instead. The command prints the current verdict
    and the cost of the block.
    """
    from annotate.drawing.extend import extend_batch
    from annotate.report.until_decided import next_block

    if to is None:
        # A block has the people of its batch, so these options belong to --to.
        if annotators or allow_exposed or as_json:
            raise UsageError("--to N is required: the new number of units in the batch")
        for line in next_block(store, name).messages:
            note(line)
        return
    people = None if annotators is None else _names(annotators)
    done = extend_batch(store, name, to=to, people=people, allow_exposed=allow_exposed)
    _print_result(store, done, f"batch '{name}': {done.units} units were added", as_json)


@batches.command("stop")
@click.argument("name", cls=BatchName)
@click.option("--annotator", "person", required=True, metavar="NAME", help="Annotator to exclude.")
@click.option("--why", "reason", help="Reason to show in the report, e.g. 'failed training'.")
@click.option("--undo", is_flag=True, help="Include the annotator and their labels again.")
@with_study
def stop(name: str, person: str, reason: str | None, undo: bool, store: Store) -> None:
    """Exclude an annotator from the batch NAME.

    The annotator can no longer label, and the annotator's labels are not used in any result.

    Their labels remain in the log. To assign their unfinished units to others, use annotate batches assign.
    """
    from annotate.leading.lead import resume_person, stop_person

    # The report names everybody whose labels are left out, with the reason.
    if not undo and not (reason or "").strip():
        raise UsageError("--why requires a reason, e.g. --why 'failed training'; the report shows it")
    if undo:
        # The log has kept the labels.
        units = resume_person(store, name, person, reason)
        note(f"batch '{name}': {person} can label again; the labels of {units} units are used again")
        return
    units = stop_person(store, name, person, reason or "")
    note(
        f"batch '{name}': {person} is excluded; {units} units were started, and their labels are not used in any result"
    )
    note(
        f"to give the other units to somebody else: {command('annotate batches assign', name, '--from', person, '--to', 'NAME')}"
    )


@batches.command("guidelines")
@click.argument("name", cls=BatchName)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--why", "reason", help="Reason to show in the report, e.g. 'examples for dates'.")
@with_study
def guidelines(name: str, path: Path, reason: str | None, store: Store) -> None:
    """Clarify the guidelines of the batch NAME while it is labelled.

    FILE contains the new text, or is the batch's task file with new guidelines. Questions and labels cannot
    change: they need a new version of the task.

    A screen that is open shows the old text until it is closed. The report says how many labels were given
    before and after the change. Runs of judges keep the text that they showed.
    """
    from annotate.guidelines import clarify

    text = clarify(store, name, path, reason or "")
    note(f"batch '{name}': new screens show these guidelines from {text.since[:16].replace('T', ' ')} UTC on")
    note("to send the text to other programs, export or push the batch again, or write new packs")


@batches.command("policy")
@click.argument("name", cls=BatchName)
@click.argument("rule", type=click.Choice(["majority", "none"]), required=False)
@click.option(
    "--tolerance",
    multiple=True,
    metavar="FIELD=X",
    help="Accept numbers that differ by at most X, and use their median.",
)
@reason_option
@with_study
def policy(name: str, rule: str | None, tolerance: tuple[str, ...], reason: str | None, store: Store) -> None:
    """Set the rule that decides disagreements without the lead.

    If only NAME is given, the current rule is printed.

    \b
    majority  the label of more than half of the people counts; the lead decides ties
    none      the lead decides every disagreement

    A unit is decided when all of its annotators have finished. The lead can change the result later. The report
    states the rule.
    """
    from annotate.leading.adjudication import predecide, set_policy
    from annotate.sitting.desk import batch_info

    changes = rule is not None or bool(tolerance)
    if changes:
        if rule == "none" and tolerance:
            raise UsageError("the rule 'none' cannot be used with --tolerance")
        set_policy(store, name, Policy(rule == "majority", _tolerances(tolerance)), note=reason)
    info = batch_info(store, name)
    # Units that everybody has finished are decided at once.
    decided = predecide(store, name) if changes else None
    print(f"{name}: {str(info.plan.adjudication) or 'every disagreement goes to the lead'}")
    if decided is not None:
        note(
            f"{decided} units are decided by this rule so far; to decide the others: {command('annotate adjudicate', name, '--as', 'NAME')}"
        )


def _tolerances(given: tuple[str, ...]) -> dict[str, float]:
    return dict(parse_named_number(text, "--tolerance", "FIELD=NUMBER") for text in given)
