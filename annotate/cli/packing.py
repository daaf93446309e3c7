"""annotate batches pack and merge: a batch on several machines."""

from __future__ import annotations

from pathlib import Path

import click

from annotate.cli._named import BatchName
from annotate.cli.batches import batches
from judge.console import TO_WRITE, db_option, emit_json, json_option, note
from judge.errors import Exit

__all__ = ["batches", "merge", "pack"]


@batches.command("pack")
@click.argument("name", cls=BatchName)
@click.option("--for", "person", required=True, metavar="NAME", help="Whose units.")
@click.option("-o", "--out", type=TO_WRITE, help="Default: BATCH-NAME.db")
@db_option
def pack(name: str, person: str, out: Path | None, db: Path) -> int:
    """Write a small study with only one annotator's blind units, for another machine.

    There: annotate open BATCH --as NAME -d FILE. Back here: annotate batches merge FILE.
    """
    from annotate.packing.pack import pack as write
    from annotate.store import open_study

    path = out or Path(f"{name}-{person}.db")
    with open_study(db) as store:
        count = write(store, name, person, path)
    note(f"{path}: {count} units; send it to {person}: annotate open {name} --as {person} -d {path.name}")
    return Exit.DONE


@batches.command("merge")
@click.argument("path", metavar="FILE", type=TO_WRITE)
@db_option
@json_option
def merge(path: Path, db: Path, as_json: bool) -> int:
    """Bring the labels of a packed study back. Merging again changes nothing.

    A unit whose labels, note, flag or evidence were changed differently in both places, or on another text, is left as
    it is here and waits in the quarantine (exit 1): annotate quarantine accept takes the file's side, drop this one's.
    """
    from annotate.packing.merge import merge as read
    from annotate.store import open_study

    with open_study(db) as store:
        done = read(store, path)
    if as_json:
        emit_json("batch-merge", {name: getattr(done, name) for name in done.__slots__})
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
    for conflict in done.conflicts:
        note(f"not merged, waits in the quarantine: {conflict}")
    return Exit.ERROR if done.conflicts else Exit.DONE
