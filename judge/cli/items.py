"""judge items: import, list and show items and passages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judge import console
from judge.asking.items import MOST_SUGGESTED, from_files, preview_import
from judge.commands import command
from judge.document import terminal
from judge.errors import BadInput, UsageError
from judge.importers import base
from judge.store import Store, listing

if TYPE_CHECKING:
    from judge.store.imports import ImportReport
    from judge.types import Correct

EMBEDDED, RELEVANT = "embedded/minilm", "relevant"
"""A judge that needs no API key, and the only task that it supports."""

F = TypeVar("F", bound=Callable[..., Any])

skip_option = click.option("--skip-bad", is_flag=True, help="Skip invalid rows and list them.")
_correct = click.option(
    "--correct", is_flag=True, help="Show which stored values the file would change. Change them with --yes."
)
_yes = click.option("--yes", is_flag=True, help="Store the changes that --correct shows.")
correct_options = console.combine_options(_correct, _yes)


def read_correct(correct: bool, yes: bool) -> Correct | None:
    """Return the value of `Options.correct` for the options --correct and --yes."""
    if yes and not correct:
        raise UsageError("--yes confirms the changes that --correct shows; add --correct")
    return None if not correct else "apply" if yes else "show"


def corrections_json(reports: Sequence[ImportReport]) -> dict[str, Any]:
    """Return the keys of a JSON document that describe corrections. Without corrections, there are none."""
    if not any(report.corrections for report in reports):
        return {}
    outdated = {
        name: sum(report.outdated[name] for report in reports) for name in ("units", "people", "judges")
    }
    return {
        "corrections": [c.as_json() for report in reports for c in report.corrections],
        "outdated": outdated,
        "stored": all(report.confirmed for report in reports),
    }


def finish_corrections(reports: Sequence[ImportReport], as_json: bool) -> None:
    """Print the corrections of an import. Raises UsageError if the user has not confirmed them."""
    from judge.excerpts import excerpts
    from judge.store.corrections import MOST_LISTED
    from judge.store.imports import describe_corrections

    rows = [c.as_json() for report in reports for c in report.corrections]
    if rows and not as_json:
        shown = []
        for row in rows[:MOST_LISTED]:
            new, old = excerpts(row["new"] or "", row["old"] or "")
            shown.append({**row, "new": new, "old": old})
        terminal.emit_rows("corrections", shown, ["kind", "id", "field", "old", "new"])
        if len(rows) > MOST_LISTED:
            console.note(f"and {len(rows) - MOST_LISTED:,} more; --json lists all of them")
    for line in describe_corrections(reports):
        console.note(line)
    if not all(report.confirmed for report in reports):
        raise UsageError(
            "nothing of a file with corrections was stored; to store it, run the command again with --yes"
        )


def map_options(metavar: str, maps: str, labels: str) -> Callable[[F], F]:
    """Return the options `--map` and `--map-label`.

    `maps` and `labels` are their help texts. `metavar` applies to `--map`.
    """
    return console.combine_options(
        click.option("--map", "maps", multiple=True, metavar=metavar, help=maps),
        click.option("--map-label", "label_maps", multiple=True, metavar="FIELD:OLD=NEW", help=labels),
    )


@click.group()
def items() -> None:
    """Import, list and show items and passages."""


@items.command("import")
@click.argument("format_name", metavar="[FORMAT]")
@click.argument("paths", metavar="PATH...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--dataset",
    help="Name of the data set, used as a prefix for ids (default: the name of the file or format).",
)
@map_options(
    "FIELD=PATH",
    "Read FIELD from this column or dotted path, e.g. passages.text=evidence. Repeatable; each column for passages.text becomes a separate passage.",
    "Rename a gold or human label, e.g. stance:SUPPORTS=support. Repeatable.",
)
@click.option(
    "--system", help="System for answers in rows that do not specify one (default: the file's name)."
)
@click.option(
    "--as-text",
    multiple=True,
    metavar="COLUMN",
    help="Read this column as text, even if its cells look like numbers. Repeatable.",
)
@click.option(
    "--scores",
    multiple=True,
    metavar="TOOL=COLUMN,COLUMN",
    help="Import another tool's scores as that tool's labels, e.g. ragas=faithfulness.",
)
@click.option(
    "--turns",
    type=click.Choice(["last", "all"]),
    default="last",
    help="In a chat log, import the last question of each conversation, or all of them.",
)
@skip_option
@correct_options
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check the files and show the first item, without storing anything.",
)
@console.db_option
@console.json_option
def import_(
    format_name: str,
    paths: tuple[Path, ...],
    dataset: str | None,
    maps: tuple[str, ...],
    label_maps: tuple[str, ...],
    system: str | None,
    as_text: tuple[str, ...],
    scores: tuple[str, ...],
    turns: str,
    skip_bad: bool,
    correct: bool,
    yes: bool,
    dry_run: bool,
    db: Path,
    as_json: bool,
) -> None:
    """Import items from files.

    FORMAT is jsonl, csv, traces or the name of a benchmark. By default, it is detected from the file.

    \b
    judge items import mine.jsonl
    judge items import ragas.csv --dry-run
    judge items import csv pairs.csv --map passages.text=evidence --map passages.gold.stance=label
    judge items import scifact claims_dev.jsonl corpus.jsonl

    Importing the same file again changes nothing. If a row is invalid, the error names its file, line and
    field. Nothing from that file is then imported, unless you use --skip-bad.

    Stored texts and gold labels are changed only with --correct. Labels that were given for a changed text do
    not count until the unit is labelled again.
    """
    from judge.importers.guess import MissingFields
    from judge.importers.offers import file_rows, suggest_maps
    from judge.importers.paths import number_texts
    from judge.importers.signs import recognise_format

    given = Path(format_name)
    # Without FORMAT, the first word is a file. A file that does not exist is recognised by its extension.
    if format_name not in base.names() and (given.is_file() or (given.suffix and not paths)):
        paths = (given, *paths)
        format_name = recognise_format(paths)
        console.note(f"format: {format_name} (detected from the file)")
    importer = base.get(format_name)
    if not paths:
        raise UsageError(
            f"specify the files ({importer.HELP}): {command('judge items import', format_name, 'FILE')}"
        )
    options = base.Options(
        dataset,
        console.pairs(number_texts(maps), "--map"),
        read_label_maps(label_maps),
        console.note,
        system=system,
        as_text=frozenset(as_text),
        scores=read_scores(scores),
        correct=read_correct(correct, yes),
        turns=turns,
    )
    try:
        if dry_run:
            done, shown = preview_import(format_name, paths, options, skip_bad)
        else:
            done, shown = from_files(db, format_name, paths, options, skip_bad), None
    except MissingFields as lacking:
        field_maps, strange = suggest_maps(lacking.maps, file_rows(format_name, paths[0]), options.maps)
        # What the user typed is not replaced by a suggestion.
        renamed = list(label_maps) or [
            f"{f}:{old}={new}" for f, m in strange.items() for old, new in m.items()
        ]
        # The command is printed with every option of this command, so that it works unchanged.
        words = [format_name, *map(str, paths)]
        words += [word for name, path in field_maps.items() for word in ("--map", f"{name}={path}")]
        words += [word for value in renamed for word in ("--map-label", value)]
        words += ["--dataset", dataset] if dataset else []
        words += ["--system", system] if system else []
        words += [word for column in as_text for word in ("--as-text", column)]
        words += [word for value in scores for word in ("--scores", value)]
        words += ["--turns", turns] if turns != "last" else []
        words += ["--dry-run"] if dry_run else []
        words += ["--skip-bad"] if skip_bad else []
        words += ["--correct"] if correct else []
        words += ["--yes"] if yes else []
        raise BadInput(
            f"{lacking.reason}; try: {command('judge items import', *words)}",
            path=lacking.path,
            line=lacking.line,
            field=lacking.field,
        ) from None
    rows = done.rows()
    console.notes(done.skipped, "skipped")
    for text in done.notes:
        console.note(text)
    if as_json:
        document = {"study": str(db), "rows": rows, "skipped": done.skipped, **corrections_json(done.reports)}
        console.emit_json("import", document)
        finish_corrections(done.reports, as_json)
        return
    columns = ["files", "items", "passages", "answers", "empty", "labels", "unchanged", "skipped"]
    if_any = ("answers", "empty")
    terminal.emit_rows(
        "import", rows, [name for name in columns if name not in if_any or any(row[name] for row in rows)]
    )
    for report in done.reports:
        if report.votes.rows:
            lines = report.votes.describe_counts(preview=dry_run or not report.confirmed)
            console.notes(lines, "votes and gold labels")
    finish_corrections(done.reports, as_json)
    if dry_run:
        for line in shown or ["no shipped task fits this file"]:
            console.print_lines(line)
        console.note("dry run: nothing was stored")
        return
    if not console.suggests_next():
        return
    # An import of items alone must not suggest to score the answers of an earlier file.
    if done.has_grounds and any(row["answers"] for row in rows):
        with Store.open(db, create=False) as store:
            several = len({row["system"] for row in listing.list_systems(store)}) > 1
            answered = "SELECT dataset FROM items JOIN answers USING (item_id) GROUP BY 1 ORDER BY max(answers.rowid)"
            datasets = [str(name) for (name,) in store.conn.execute(answered)]
        words = ["--system", "all"] if several else []
        if len(datasets) > 1:
            # A suite scores one data set, so the one imported last is used.
            words += ["--dataset", datasets[-1]]
            console.note(
                f"there are answers in {len(datasets)} data sets ({', '.join(datasets)}): systems are compared within one data set, so "
                "import files with the same questions under one --dataset NAME"
            )
        console.note(f"next: {command('judge suite faithfulness -m MODEL', *words)}")
    # Further tasks would hide the first one, which fits best.
    for task in done.tasks[:MOST_SUGGESTED]:
        console.note(f"next: {command('judge run', task, '-m', EMBEDDED if task == RELEVANT else 'MODEL')}")


def read_scores(values: tuple[str, ...]) -> dict[str, str]:
    """Parse `TOOL=COLUMN,COLUMN` options as a mapping from column to tool.

    Raises UsageError for any other form.
    """
    out = {}
    for value in values:
        tool, equals, columns = value.partition("=")
        names = [name.strip() for name in columns.split(",") if name.strip()]
        if not equals or not tool.strip() or not names:
            raise UsageError(f"--scores {value}: must have the form TOOL=COLUMN,COLUMN")
        out.update(dict.fromkeys(names, tool.strip()))
    return out


def read_label_maps(values: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Parse `FIELD:OLD=NEW` options as a mapping from field to {old: new}.

    Raises UsageError for any other form.
    """
    out: dict[str, dict[str, str]] = {}
    for key, new in console.pairs(values, "--map-label").items():
        field, colon, old = key.partition(":")
        if not colon:
            raise UsageError(f"--map-label {key}={new}: must have the form FIELD:OLD=NEW")
        out.setdefault(field, {})[old] = new
    return out


@items.command("show")
@click.argument("item_id", metavar="[ITEM]", required=False)
@click.option("--dataset", help="List only this data set.")
@click.option(
    "--imports", is_flag=True, help="List the imports instead, with their options and skipped rows."
)
@click.option("-n", "limit", default=50, type=click.IntRange(1), help="Number of items to list.")
@console.db_option
@console.json_option
def show(
    item_id: str | None, dataset: str | None, imports: bool, limit: int, db: Path, as_json: bool
) -> None:
    """List the items, or show one ITEM.

    One ITEM is shown with its passages and labels.

    \b
    judge items show
    judge items show pairs:1
    """
    if item_id is None:
        _list(dataset, imports, limit, db, as_json)
        return
    with Store.open(db, create=False) as store:
        item = listing.show_item(store, item_id)
    if item is None:
        raise BadInput(f"no item '{item_id}' in {db}; to list the items: {command('judge items show')}")
    if as_json:
        console.emit_json("item", item)
        return
    for name, value in item.items():
        # Hashes and ids of imports are for programs, which read the document.
        if name not in ("passages", "labels", "content_sha", "import_id") and value not in (None, {}, []):
            console.print_lines(f"{name}: {value}")
    print_labels(item["labels"], item_id)
    for passage in item["passages"]:
        title = f" · {passage['title']}" if passage["title"] else ""
        console.print_lines(f"\n{passage['passage_id']}{title}\n{passage['text']}")
        print_labels(item["labels"], passage["passage_id"])


def _list(dataset: str | None, imports: bool, limit: int, db: Path, as_json: bool) -> None:
    with Store.open(db, create=False) as store:
        if imports:
            rows = listing.list_imports(store)
            columns = ["imported_at", "format", "dataset", "files", "maps", "label_maps", "counts"]
            terminal.emit_rows("imports", rows, columns, as_json)
            return
        rows = listing.list_items(store, dataset, limit)
        if not as_json:
            datasets = listing.list_datasets(store)
            terminal.emit_rows("datasets", datasets, ["dataset", "items", "questions", "passages"])
            print()
            rows = [{**r, "text": console.shorten(r["claim"] or r["question"], 60)} for r in rows]
        terminal.emit_rows("items", rows, ["item_id", "passages", "text"], as_json)


def print_labels(labels: Iterable[Mapping[str, Any]], unit: str) -> None:
    """Print the labels of one unit, one label per line."""
    for label in labels:
        if label["unit_id"] == unit:
            console.print_lines(f"  {label['annotator_id']}: {label['field']}={label['value']}")
