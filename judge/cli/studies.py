"""judge studies: several studies made one."""

from pathlib import Path

import click

from judge.console import TO_WRITE, emit_json, json_option, notes, say, table
from judge.errors import BadInput


@click.group()
def studies() -> None:
    """Merge studies that were labelled apart."""


@studies.command("merge")
@click.argument("paths", metavar="STUDY...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--into", required=True, type=TO_WRITE, help="The new study's file.")
@click.option(
    "--same-model",
    is_flag=True,
    help="Join runs of one task, model and settings, whatever name servers gave the model.",
)
@json_option
def merge(paths: tuple[Path, ...], into: Path, same_model: bool, as_json: bool) -> None:
    """Write a new study from several, which do not change.

    \b
    judge studies merge north.db south.db --into both.db

    Items, passages, answers, tasks and labels of one id must be the same; runs of one task, model and settings become
    one run. Whatever differs (a text, a gold label, a unit's label in one run) is named, and then nothing is written.

    Where one person gave a label differently in two studies, both are kept and the label is in conflict until somebody
    decides (annotate conflicts).

    Batches come over with their log; a batch that stands otherwise in two of the studies is a conflict: people's labels
    are brought back with annotate import.
    """
    from judge.store.merge import COUNTED
    from judge.store.merge import merge as perform

    done = perform(paths, into, same_model=same_model)
    notes(done.notes)
    if done.conflicts:
        notes(done.conflicts, "differs")
        more = done.n_conflicts - len(done.conflicts)
        conflict_count = "1 conflict" if done.n_conflicts == 1 else f"{done.n_conflicts:,} conflicts"
        raise BadInput(
            f"{conflict_count}{f' ({more:,} of them not listed)' if more else ''}, so nothing was written: give the rows other "
            "ids, or leave out a study"
        )
    if as_json:
        emit_json("studies-merge", {"into": str(into), "rows": done.rows, "notes": done.notes})
        return
    say(f"{into}: what each study added")
    head = ["study", *COUNTED, "runs_joined"]
    print(table(head, [[row[name] for name in head] for row in done.rows]))
