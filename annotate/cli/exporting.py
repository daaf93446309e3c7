"""annotate export: a batch for another tool, or its finished labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotate.cli._named import BatchName, in_study
from judge.console import emit_json, json_option, note, pairs, visible

if TYPE_CHECKING:
    from judge.store import Store


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

    found = base.get(name)
    done = export_batch(store, batch, found, out, labels=labels, person=person, options=pairs(options, "-O"))
    if as_json:
        emit_json("labels-export" if labels else "units-export", done.as_json())
    else:
        rows = ", ".join(f"{file} {n:,}" for file, n in done.rows.items())
        told = f" ({rows})" if rows else ""
        note(f"{visible(str(out))}: {done.units:,} units of batch '{batch}' as {name}{told}")
        if done.repeats and not labels:
            note(
                f"{done.repeats} hidden repeats are left out: they stay hidden only in annotate open and in packed files"
            )


@click.command("formats")
@json_option
def formats(as_json: bool) -> None:
    """What `annotate export --to` and `annotate import --from` know."""
    from annotate.exchange import base
    from judge.console import table

    found = [base.get(name) for name in base.names()]
    if as_json:
        keys = ("format", "export", "import", "help", "options")
        cells = ((f.name, f.writes, f.reads, f.help, dict(f.options)) for f in found)
        emit_json("formats", {"rows": [dict(zip(keys, row, strict=True)) for row in cells]})
        return
    body = [[f.name, f.writes or "", "yes" if f.reads else "", f.help, ", ".join(f.options)] for f in found]
    print(table(["format", "export", "import", "what it is", "-O"], body))
