"""annotate import: labels made elsewhere. annotate export: a batch for another tool, or its finished labels."""

from __future__ import annotations

from pathlib import Path

import click

from annotate.cli._named import BatchName, in_study
from judge.console import emit_json, json_option, note, pairs, table, visible
from judge.errors import BadInput, Exit, UsageError
from judge.store import Store


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "name",
    default="table",
    metavar="FORMAT",
    help="annotate formats lists them.",
)
@click.option("--batch", help="Take only units and labels of this batch, as events of its log.")
@click.option("--task", "task_name", help="Take only labels of this task.")
@click.option("--blind", "blind", flag_value="blind", help="Nobody saw a suggestion while labelling.")
@click.option(
    "--assisted",
    "blind",
    flag_value="assisted",
    help="Suggestions were in sight: kept as a layer of their own.",
)
@click.option("--as", "person", help="Who labelled, for all rows.")
@click.option("--field", help="The question, for all rows.")
@click.option(
    "--latest",
    is_flag=True,
    help="A later answer of the same person replaces the one before; both are kept as sources.",
)
@click.option(
    "--map-annotator", "people", multiple=True, metavar="NAME=OURS", help="Another name for somebody."
)
@click.option(
    "--map-label", "labels", multiple=True, metavar="FIELD:OLD=NEW", help="Another word for a label."
)
@click.option(
    "--new-people", is_flag=True, help="Take in people whom the batch, or the study, does not know."
)
@click.option("--skip-bad", is_flag=True, help="Leave out what cannot be used: it goes to the quarantine.")
@click.option(
    "-O", "--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the format."
)
@click.option("--unit", default="unit", help="table: column with the unit's id.")
@click.option("--label", default="label", help="table: column with the label.")
@click.option("--annotator-column", default="annotator", help="table: column with who labelled.")
@click.option("--field-column", default="field", help="table: column with the question.")
@in_study
@json_option
def import_(
    path: Path,
    name: str,
    batch: str | None,
    task_name: str | None,
    blind: str | None,
    person: str | None,
    field: str | None,
    latest: bool,
    new_people: bool,
    people: tuple[str, ...],
    labels: tuple[str, ...],
    skip_bad: bool,
    options: tuple[str, ...],
    unit: str,
    label: str,
    annotator_column: str,
    field_column: str,
    store: Store,
    as_json: bool,
) -> int:
    """Import people's labels from a table (CSV, TSV, JSON, JSONL, Parquet) or from another tool.

    \b
    annotate import labels.csv --batch pilot --blind
    annotate import ours.csv --unit id --label verdict --field stance --as alice
    annotate import prodigy.jsonl --from prodigy --batch pilot --blind

    A file is one transaction; importing it again changes nothing. With a batch, labels count as work on it
    (progress, adjudication, notes, evidence). Only labels known to be blind are in headline numbers. A record
    whose text, or status, is not what it should be goes to the quarantine (exit 1, with --skip-bad 0; see
    annotate quarantine list).
    """
    from annotate.exchange import base
    from annotate.exchange.taken import Intake, short_list
    from annotate.exchange.transfer import import_file
    from annotate.report.until_decided import move_on
    from judge.store.export import known_task

    if batch and task_name:
        raise UsageError("--batch says the task already: leave --task out")
    given = pairs(options, "-O")
    if name == "table":
        columns = {"unit": unit, "label": label, "annotator": annotator_column, "field": field_column}
        given = columns | given
    bad: list[BadInput] = []
    how = Intake(
        name,
        [path],
        blind,  # type: ignore[arg-type]
        latest,
        pairs(people, "--map-annotator"),
        _label_maps(labels),
        new_people,
    )
    done = import_file(
        store,
        path,
        base.get(name),
        how,
        batch=batch,
        task=known_task(store, task_name) if task_name else None,
        person=person,
        field=field,
        options=given,
        bad=bad.append if skip_bad else None,
    )
    if batch:
        # A block that is complete with this file is followed by the next one (--until-decided).
        move_on(store, batch)
    code = Exit.ERROR if done.held and not skip_bad else Exit.DONE
    if as_json:
        emit_json(
            "labels-import", {"format": name, "batch": batch, **done.as_json(), "bad": [str(e) for e in bad]}
        )
        return code
    note(f"{path}: new labels: {short_list(done.new)}; {done.unchanged} were there already")
    for line in done.notes_for_people(batch):
        note(line)
    if bad:
        note(f"left out: {len(bad)}")
        for e in bad:
            note(f"  {e}")
    return code


def _label_maps(values: tuple[str, ...]) -> dict[str, dict[str, str]]:
    out: dict[str, dict[str, str]] = {}
    for left, new in pairs(values, "--map-label").items():
        field, colon, old = left.partition(":")
        if not (colon and field and old and new):
            raise UsageError(f"--map-label {left}={new}: write it as FIELD:OLD=NEW")
        out.setdefault(field, {})[old] = new
    return out


@click.command("export")
@click.argument("batch", cls=BatchName)
@click.option("--to", "name", required=True, metavar="FORMAT", help="annotate formats lists them.")
@click.option(
    "-o", "--out", required=True, type=click.Path(path_type=Path), help="File, or folder for some formats."
)
@click.option("--labels", is_flag=True, help="Finished labels, instead of units to annotate.")
@click.option("--for", "person", metavar="NAME", help="Only the units of one annotator.")
@click.option(
    "-O", "--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the format."
)
@in_study
@json_option
def export(
    batch: str,
    name: str,
    out: Path,
    labels: bool,
    person: str | None,
    options: tuple[str, ...],
    store: Store,
    as_json: bool,
) -> None:
    """Write the units of BATCH for another tool, or with --labels what people answered.

    \b
    annotate export pilot --to prodigy -o tasks.jsonl
    annotate export pilot --to parquet --labels -o pilot-labels

    Units hold what a blind annotator may see and nothing else: the task's inputs and the unit's id; no
    judge, gold or meta, no label, and no sign of which units are checks. All files appear together or not at all.
    """
    from annotate.exchange import base
    from annotate.exchange.transfer import export_batch

    writer = base.get(name)
    done = export_batch(store, batch, writer, out, labels=labels, person=person, options=pairs(options, "-O"))
    if as_json:
        emit_json("labels-export" if labels else "units-export", done.as_json())
    else:
        rows = ", ".join(f"{file} {n:,}" for file, n in done.rows.items())
        row_counts = f" ({rows})" if rows else ""
        note(f"{visible(str(out))}: {done.units:,} units of batch '{batch}' as {name}{row_counts}")
        if done.adopted:
            note(
                f"{done.adopted} units are left out: they are finished by labels that were given before the batch was drawn"
            )
        if done.repeats and not labels:
            note(
                f"{done.repeats} hidden repeats are left out: they stay hidden only on the labelling screen and in packed files"
            )


@click.command("formats")
@json_option
def formats(as_json: bool) -> None:
    """What `annotate export --to` and `annotate import --from` know."""
    from annotate.exchange import base

    known_formats = [base.get(name) for name in base.names()]
    if as_json:
        keys = ("format", "export", "import", "help", "options")
        cells = ((f.name, f.writes, f.reads, f.help, dict(f.options)) for f in known_formats)
        emit_json("formats", {"rows": [dict(zip(keys, row, strict=True)) for row in cells]})
        return
    body = [
        [f.name, f.writes or "", "yes" if f.reads else "", f.help, ", ".join(f.options)]
        for f in known_formats
    ]
    print(table(["format", "export", "import", "what it is", "-O"], body))
