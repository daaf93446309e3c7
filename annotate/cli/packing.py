"""annotate batches pack and merge: a batch on several machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotate.cli._named import BatchName, in_study
from annotate.cli.batches import batches
from judge.console import TO_WRITE, emit_json, json_option, note, notes
from judge.errors import Exit
from judge.types import attributes

if TYPE_CHECKING:
    from judge.store import Store

__all__ = ["batches", "merge", "pack"]


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
    count = write(store, name, person, path)
    note(f"{path}: {count} units; send it to {person}: annotate open {name} --as {person} -d {path.name}")


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

    done = read(store, path)
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
