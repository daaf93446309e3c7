"""judge systems: import the outputs of systems under test, and list the data of each system."""

from pathlib import Path

import click

from judge.asking.systems import STAGES
from judge.cli.items import (
    correct_options,
    corrections_json,
    finish_corrections,
    map_options,
    read_correct,
    read_label_maps,
    skip_option,
)
from judge.console import db_option, emit_json, json_option, note, note_encodings, notes, pairs
from judge.document.terminal import emit_rows
from judge.store import Store, listing


@click.group()
def systems() -> None:
    """Import the outputs of systems under test, and list them."""


@systems.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--system", help="System name for rows that do not specify one.")
@click.option(
    "--system-column", metavar="COLUMN", help="Column with the system name (default: system or model)."
)
@click.option("--condition", help="Condition for rows that do not specify one (default: 'default').")
@click.option("--paper", help="Use this paper's condition names (default: from the data set's format).")
@click.option(
    "--stage",
    type=click.Choice(STAGES),
    help="Stage of the pipeline, required for rankings. 'top-k' means the passages in the context.",
)
@click.option("--name", help="Name of the ranking (default: the system, otherwise column 6 of the file).")
@click.option("--dataset", help="Data set of the items, if several data sets have the same ids.")
@map_options(
    "KEY=PATH",
    "Read KEY from this column or dotted path, e.g. text=output. Repeatable.",
    "Rename a label, e.g. relevant:yes=relevant. Repeatable.",
)
@skip_option
@correct_options
@db_option
@json_option
def import_(
    paths: tuple[Path, ...],
    system: str | None,
    system_column: str | None,
    condition: str | None,
    paper: str | None,
    stage: str | None,
    name: str | None,
    dataset: str | None,
    maps: tuple[str, ...],
    label_maps: tuple[str, ...],
    skip_bad: bool,
    correct: bool,
    yes: bool,
    db: Path,
    as_json: bool,
) -> None:
    """Import answers and rankings of systems.

    The files are JSONL, JSON, CSV or TREC runs.

    \b
    judge systems import answers.jsonl
    judge systems import mine.csv --system mine --condition base
    judge systems import answers.jsonl --map text=output --system-column model
    judge systems import mine.run --system mine --stage retrieve

    Each row needs the columns 'id' and 'text'. It also needs 'system' and 'condition', unless you set them
    with options. Optional columns are 'cited', 'context', 'claims', 'gold', 'votes' and 'probabilities' (of
    options). The 'document' column is for RAGuard's oracle condition. It names the only passage that an
    answer is about.

    \b
    Names of conditions:
      RAGuard  zero-context, top-K, oracle
      MIRAGE   base, oracle, mixed
      URAG     llm-only, plain, irrelevant, self-aware, wrong-aware

    Either the whole file is imported, or nothing is. Importing it again changes nothing. A changed ranking
    replaces the stored one only with --correct.
    """
    from judge.asking.systems import COUNTS, RANKING_COUNTS, Outputs, import_files, is_ranking
    from judge.importers import base

    mapped = pairs(maps, "--map")
    if system_column is not None:
        mapped["system"] = system_column
    options = base.Options(
        dataset, mapped, read_label_maps(label_maps), note, correct=read_correct(correct, yes)
    )
    outputs = Outputs(system, condition, paper, stage, name, skip_bad)
    note_encodings(paths)
    with Store.open(db, create=False) as store:
        done = import_files(store, paths, options, outputs)
    notes(done.skipped, "skipped")
    notes(done.lacks)
    reports = [report for _, report in done.reports]
    if as_json:
        document = {"study": str(db), "rows": done.rows(), "skipped": done.skipped}
        emit_json("systems_import", document | corrections_json(reports))
        finish_corrections(reports, as_json)
        return
    # A TREC run is recognised by its content, because its file may have any name.
    kinds = {stage is not None or is_ranking(path) for path in paths}
    counts = [*(COUNTS if False in kinds else ()), *(RANKING_COUNTS if True in kinds else ())]
    counts += ["verdicts"] if any(row.get("verdicts") for row in done.rows()) else []
    rows = [{**dict.fromkeys(counts, 0), **row} for row in done.rows()]
    emit_rows("systems_import", rows, ["file", *counts, "unchanged", "skipped"])
    finish_corrections(reports, as_json)


@systems.command("list")
@db_option
@json_option
def list_(db: Path, as_json: bool) -> None:
    """List the conditions, outputs and rankings of each system."""
    from judge.store.rankings import list_rankings

    with Store.open(db, create=False) as store:
        rows, rankings = listing.list_outputs(store), list_rankings(store)
    if as_json:
        emit_json("systems", {"rows": rows, "rankings": rankings})
        return
    emit_rows("systems", rows, ["system", "condition", "outputs", "empty", "origin"])
    if rankings:
        print()
        emit_rows("rankings", rankings, ["name", "stage", "items", "entries", "longest"])
