"""annotate import: import labels made elsewhere. annotate export: write a batch for another tool, or its labels."""

from __future__ import annotations

from pathlib import Path

import click

from annotate.cli._named import BatchName, open_command, with_study
from judge.console import emit_json, json_option, note, note_encodings, notes, pairs
from judge.document.blocks import list_rows
from judge.document.terminal import show_blocks
from judge.errors import BadInput, Exit, UsageError
from judge.files import format_of, stop
from judge.store import Store
from judge.types import attributes

PACK = "pack"
PACKS = (".db", ".sqlite", ".sqlite3")
"""The file extensions of packed studies, which contain one person's units (`annotate.packing`)."""
PERSON = "annotator"
"""The word that stands for the annotator column in --map-label. Any other word there is the name of a field."""


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--from", "name", metavar="FORMAT", help="Input format, see annotate formats (default: table).")
@click.option("--batch", metavar="BATCH", help="Import only the labels of this batch.")
@click.option("--task", "task_name", metavar="TASK", help="Import only labels of this task.")
@click.option("--blind", "blind", flag_value="blind", help="Mark labels as blind: no suggestion was shown.")
@click.option(
    "--assisted", "blind", flag_value="assisted", help="Mark labels as assisted: suggestions were shown."
)
@click.option("--as", "person", metavar="NAME", help="Name of the annotator who labelled all rows.")
@click.option("--field", metavar="FIELD", help="Label field for all rows.")
@click.option("--latest", is_flag=True, help="Replace earlier answers with later ones.")
@click.option(
    "--map-label",
    "maps",
    multiple=True,
    metavar="FIELD:OLD=NEW",
    help="Rename a label or an annotator.",
)
@click.option("--new-people", is_flag=True, help="Accept annotators that are new to the study.")
@click.option("--skip-bad", is_flag=True, help="Quarantine unusable records, and exit with 0.")
@click.option(
    "-O", "--option", "options", multiple=True, metavar="KEY=VALUE", help="Set an option of the format."
)
@with_study
@json_option
def import_(
    path: Path,
    name: str | None,
    batch: str | None,
    task_name: str | None,
    blind: str | None,
    person: str | None,
    field: str | None,
    latest: bool,
    maps: tuple[str, ...],
    new_people: bool,
    skip_bad: bool,
    options: tuple[str, ...],
    store: Store,
    as_json: bool,
) -> int:
    """Import human labels from a file.

    The file is a table (CSV, TSV, JSON, JSONL or Parquet), an export from another tool, or a packed study
    (.db).

    \b
    annotate import labels.csv --batch pilot --blind
    annotate import ours.csv -O label=verdict --field stance --as alice
    annotate import labels.csv --map-label stance:yes=support --map-label annotator:a.smith=alice
    annotate import prodigy.jsonl --from prodigy --batch pilot --blind
    annotate import bob.db

    Either the whole file is imported, or nothing is. Importing it again changes nothing. With --batch, the
    labels count towards the progress of that batch. The main results use only labels that are known to be
    blind.

    Records with an unexpected text or status are quarantined. To see them, use annotate quarantine list. The
    exit code is then 1, or 0 with --skip-bad.

    If a unit changed both in the packed study and in this study, its record is quarantined. Accept the record
    to keep the file's version, or drop it to keep this study's version.
    """
    from annotate.exchange import base
    from annotate.exchange.result import ImportOptions, format_briefly
    from annotate.exchange.transfer import import_file
    from annotate.report.until_decided import move_on
    from judge.store.export import find_task

    if name is None and path.suffix.lower() in PACKS:
        if any([batch, task_name, blind, person, field, latest, maps, new_people, skip_bad, options]):
            raise UsageError(
                f"{path}: a packed study already specifies its batch and annotator: omit the other options"
            )
        return _merge(store, path, as_json)
    if batch and task_name:
        raise UsageError("--batch determines the task: omit --task")
    name = name or "table"
    bad: list[BadInput] = []
    fields = _maps(maps)
    note_encodings([path])
    how = ImportOptions(
        name,
        [path],
        # A file cannot show whether its labels are blind, so they count only if its user says so.
        blind,  # type: ignore[arg-type]
        latest,
        fields.pop(PERSON, {}),
        fields,
        new_people,
    )
    done = import_file(
        store,
        path,
        base.get(name),
        how,
        batch=batch,
        task=find_task(store, task_name) if task_name else None,
        person=person,
        field=field,
        options=pairs(options, "-O"),
        bad=bad.append if skip_bad else stop,
    )
    if batch:
        # A block that is complete with this file is followed by the next one (--until-decided).
        move_on(store, batch)
    # A quarantined record is not used in any result until somebody decides on it.
    code = Exit.ERROR if done.quarantined and not skip_bad else Exit.DONE
    if as_json:
        emit_json(
            "labels-import", {"format": name, "batch": batch, **done.as_json(), "bad": [str(e) for e in bad]}
        )
        return code
    note(f"{path}: new labels: {format_briefly(done.new)}; {done.unchanged} were already there")
    for line in done.notes_for_people(batch):
        note(line)
    if bad:
        note(f"unusable: {len(bad)}")
        for e in bad:
            note(f"  {e}")
    return code


def _merge(store: Store, path: Path, as_json: bool) -> int:
    """Import the labels from a packed study. Importing them again changes nothing."""
    from annotate.packing.merge import merge
    from annotate.report.until_decided import move_on

    done = merge(store, path)
    # The pack may complete a block, and then the next one is drawn (--until-decided).
    move_on(store, done.batch)
    if as_json:
        # The notes below go to stderr, so that the document is alone on stdout.
        document = attributes(done)
        emit_json("batch-merge", document | {"rows": document.pop("counts").rows_as_json()})
    note(f"batch '{done.batch}': {done.events} new events by {done.annotator}, {done.units} units done")
    for line in done.counts.describe_rows():
        note(line)
    if done.back:
        note(
            f"{done.back} units had been assigned to somebody else after packing, but were also labelled in the file, so each has one more label than planned"
        )
    if done.assisted:
        note(
            f"{done.assisted} labels in the file count as assisted, not blind, because {done.annotator} had already been "
            "shown the known answer or the judge's label for these units in this study"
        )
    notes(done.conflicts, "not merged, but quarantined")
    return Exit.ERROR if done.conflicts else Exit.DONE


def _maps(values: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Parse FIELD:OLD=NEW into a map from fields to {old: new}. The field PERSON stands for the annotator.
    Raises UsageError for invalid text.
    """
    out: dict[str, dict[str, str]] = {}
    for left, new in pairs(values, "--map-label").items():
        field, colon, old = left.partition(":")
        if not (colon and field and old and new):
            raise UsageError(f"--map-label {left}={new}: write it as FIELD:OLD=NEW, or annotator:OLD=NEW")
        out.setdefault(field, {})[old] = new
    return out


@click.command("export")
@click.argument("batch", cls=BatchName)
@click.option(
    "--to",
    "name",
    metavar="FORMAT",
    help="Output format, see annotate formats (default: from the extension).",
)
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File to write. Some formats write a folder.",
)
@click.option("--labels", is_flag=True, help="Export finished labels instead of units.")
@click.option("--for", "person", metavar="NAME", help="Export only the units of this annotator.")
@click.option(
    "-O", "--option", "options", multiple=True, metavar="KEY=VALUE", help="Set an option of the format."
)
@with_study
@json_option
def export(
    batch: str,
    name: str | None,
    out: Path,
    labels: bool,
    person: str | None,
    options: tuple[str, ...],
    store: Store,
    as_json: bool,
) -> None:
    """Write the units or the labels of BATCH to a file.

    By default, the units are exported, for use in another tool or on another machine. With --labels, the
    human labels are exported instead.

    \b
    annotate export pilot --to prodigy -o tasks.jsonl
    annotate export pilot --to parquet --labels -o pilot-labels
    annotate export pilot --labels -o labels.csv
    annotate export pilot --for bob -o bob.db

    A .db file is a small study that contains one annotator's units, for use on another machine. To label the
    units there, run annotate open BATCH --as NAME -d FILE. To import the labels here, run annotate import
    FILE.

    Exported units contain only the unit's id and the task's inputs, as a blind annotator sees them. They
    contain no labels and do not show which units are checks. Either all files are written, or none is.
    """
    from annotate.exchange import base
    from annotate.exchange.transfer import export_batch

    if name is None:
        name = format_of(out, {".csv": "csv", ".jsonl": "jsonl", **dict.fromkeys(PACKS, PACK)}, None, "--to")
    # One person's file must not contain the units or labels of others.
    if name == PACK:
        if labels or options or person is None:
            raise UsageError(
                f"{out}: a packed study contains the units of one person: use --for NAME and no other option"
            )
        _pack(store, batch, person, out, as_json)
        return
    writer = base.get(name)
    done = export_batch(store, batch, writer, out, labels=labels, person=person, options=pairs(options, "-O"))
    if as_json:
        emit_json("labels-export" if labels else "units-export", done.as_json())
    else:
        rows = ", ".join(f"{file} {n:,}" for file, n in done.rows.items())
        row_counts = f" ({rows})" if rows else ""
        note(f"{out}: {done.units:,} units of batch '{batch}' as {name}{row_counts}")
        if done.adopted:
            note(
                f"{done.adopted} units are left out, because they were already labelled before the batch was drawn"
            )
        if done.repeats and not labels:
            note(
                f"{done.repeats} hidden repeats are left out, because they stay hidden only on the labelling screen and in packed files"
            )


def _pack(store: Store, batch: str, person: str, path: Path, as_json: bool) -> None:
    from annotate.packing.pack import pack

    count = pack(store, batch, person, path)
    if as_json:
        emit_json("batch-pack", {"batch": batch, "annotator": person, "path": str(path), "units": count})
    # The person has the file in another folder, so the command names the file alone.
    note(f"{path}: {count} units; send it to {person}: {open_command(batch, person, Path(path.name))}")


@click.command("formats")
@json_option
def formats(as_json: bool) -> None:
    """List the formats for export and import."""
    from annotate.exchange import base

    known_formats = [base.get(name) for name in base.names()]
    if as_json:
        keys = ("format", "export", "import", "help", "options")
        cells = ((f.name, f.writes, f.reads, f.help, dict(f.options)) for f in known_formats)
        emit_json("formats", {"rows": [dict(zip(keys, row, strict=True)) for row in cells]})
        return
    keys = ("format", "export", "import", "what it is", "-O")
    body = (
        (f.name, f.writes or "", "yes" if f.reads else "", f.help, list(f.options)) for f in known_formats
    )
    show_blocks(list_rows([dict(zip(keys, row, strict=True)) for row in body], keys))
