"""judge studies: merge several studies into one, and back one up."""

from pathlib import Path

import click

from judge.console import TO_WRITE, db_option, emit_json, json_option, note, notes, print_lines
from judge.document.blocks import list_rows
from judge.document.terminal import show_blocks
from judge.errors import BadInput


@click.group()
def studies() -> None:
    """Merge studies that were labelled separately, and back up a study."""


@studies.command("merge")
@click.argument("paths", metavar="STUDY...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--into", required=True, type=TO_WRITE, help="Path of the new study file.")
@click.option(
    "--same-model",
    is_flag=True,
    help="Merge runs even if their servers reported different model names.",
)
@json_option
def merge(paths: tuple[Path, ...], into: Path, same_model: bool, as_json: bool) -> None:
    """Merge studies into a new file.

    The studies themselves do not change.

    \b
    judge studies merge north.db south.db --into both.db

    Data with the same id must be the same in all studies. Runs with the same task, model and settings become
    one run. If a text, a gold label or a run's label differs, the command reports the difference and writes
    nothing.

    If a person labelled a unit differently in two studies, both labels are kept. To resolve the conflict, use
    annotate conflicts.

    Each batch is merged together with its event log. If a batch differs between two studies, the merge stops.
    In this case, import the human labels with annotate import.
    """
    from judge.store.merge import COUNTED
    from judge.store.merge import merge as perform

    done = perform(paths, into, same_model=same_model)
    notes(done.notes)
    if done.conflicts:
        # As many conflicts as possible are listed, so that they can be fixed together.
        notes(done.conflicts, "differs")
        more = done.n_conflicts - len(done.conflicts)
        conflict_count = "1 conflict" if done.n_conflicts == 1 else f"{done.n_conflicts:,} conflicts"
        raise BadInput(
            f"{conflict_count}{f' ({more:,} of them not listed)' if more else ''}, so nothing was written; change the ids of "
            "these rows, or leave out a study"
        )
    if as_json:
        emit_json("studies-merge", {"into": str(into), "rows": done.rows, "notes": done.notes})
        return
    print_lines(f"{into}: what each study added")
    head = ["study", *COUNTED, "runs_joined"]
    show_blocks(list_rows(done.rows, head))


@studies.command("backup")
@click.argument("path", metavar="FILE", type=TO_WRITE)
@db_option
def backup(path: Path, db: Path) -> None:
    """Copy the study to a new file, also while other commands use it.

    The copy contains everything that was committed when the command began, in one file. An existing file is not
    overwritten.

    \b
    judge studies backup copy.db
    """
    from judge.store.backup import back_up

    size = back_up(db, path)
    note(f"{path}: {size / 1e6:,.1f} MB, checked")
