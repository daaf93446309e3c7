"""judge split: split the questions into learning questions, tuning questions and a sealed test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.asking.judges import field_of, panel_of
from judge.cli.task_options import field_option, reference_option, whole_runs
from judge.console import db_option, json_option, note
from judge.document.terminal import print_result
from judge.errors import UsageError
from judge.labels.words import ALIASES
from judge.store import Store
from judge.types import attributes

if TYPE_CHECKING:
    from judge.labels.split import Content, Power, Split


def _shares(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    if value is None:
        return None
    try:
        parts = [float(part) for part in value.split("/")]
    except ValueError:
        parts = []
    if len(parts) != 3 or not all(0 < part < float("inf") for part in parts):
        raise click.BadParameter(f"'{value}' must be three numbers above 0, e.g. 20/20/60", ctx, param)
    # Fractions, percentages and counts are all accepted.
    return tuple(part / sum(parts) for part in parts)


@click.command()
@click.argument("task_name", metavar="TASK")
@click.option(
    "--shares",
    metavar="L/T/S",
    callback=_shares,
    help="Shares of the questions for the parts learn, tune and sealed test.  [default: 20/20/60]",
)
@click.option("--seed", type=click.IntRange(0), help="Random seed of the draw.  [default: 0]")
@click.option("--dry-run", is_flag=True, help="Show the draw without storing the split.")
@field_option
@reference_option
@db_option
@json_option
@whole_runs
def split(task_name: str, **options: Any) -> None:
    """Split the questions of a task into learn, tune and sealed test parts.

    \b
    judge split stance
    judge split stance --reference decided --shares 30/20/50

    Fit judges on the learning questions (learn), and choose between them on the tuning questions (tune). The
    sealed test then shows how good the chosen judge is. Whole questions are drawn, stratified by the
    reference labels. The split is stored once, for all versions of the task.

    The output shows the difference in kappa that the next use of the sealed test would detect with 80 %
    power. Every use is logged, and the k-th use is tested at the level .05 / 2^k. To show the split and its
    log, run the command again.
    """
    from judge.labels import split as parts
    from judge.labels.split_document import as_document
    from judge.store import export
    from judge.store.runs import keep_task

    with Store.open(options["db"], create=False) as store:
        task = export.find_task(store, task_name)
        task_split = parts.find(store, task)
        if task_split is not None:
            _require_same_options(task_split, options)
        elif task_name.endswith(".md"):  # later commands name the task, wherever its file is by then
            with store.transaction() as conn:
                keep_task(conn, task)
        field = (
            task_split.drawn.field
            if task_split and not options["field"]
            else field_of(task, options["field"])
        )
        panel = panel_of(store, task, field)
        word = task_split.drawn.reference if task_split else options["reference"]
        if task_split is None:
            shares = options["shares"] or parts.SHARES
            task_split = parts.draw(
                store, task, panel, word, shares, options["seed"] or 0, keep=not options["dry_run"]
            )
            if options["dry_run"]:
                note("dry run: the split was not stored")
        content, power = parts.content(task_split, panel), parts.power(task_split, panel)
        # The contents are counted again each time, because labels may have been added.
        document = _document(task_split, content, power, options["db"])
        print_result(
            "split", document, as_document(task_split, content, power, panel.domain), options["as_json"]
        )


def _require_same_options(split: Split, options: dict[str, Any]) -> None:
    """Raise UsageError if the existing split was made with other options."""
    drawn = split.drawn
    word = options["reference"]
    differing = {
        "--shares": options["shares"]
        # Shares are divided by their sum, so equal ones may differ in the last digits.
        and max(abs(a - b) for a, b in zip(options["shares"], drawn.shares, strict=True)) > 1e-9,
        "--seed": options["seed"] is not None and options["seed"] != drawn.seed,
        # Two words can mean the same reference: adjudicated and decided.
        "--reference": word is not None and ALIASES.get(word, word) != drawn.reference,
        "--field": options["field"] is not None and options["field"] != drawn.field,
    }
    if other := [name for name, differs in differing.items() if differs]:
        raise UsageError(
            f"{', '.join(other)}: {split.task_id} was split on {drawn.made[:10]} with other options, and a split "
            "cannot be changed; to show it, omit these options"
        )


def _document(split: Split, content: list[Content], power: Power, db: Path) -> dict[str, Any]:
    drawn = split.drawn
    return {
        "task": split.task_id,
        "study": str(db),
        **attributes(drawn, "field", "reference", "shares", "seed"),
        "made": drawn.made or None,
        "parts": [
            {
                "part": c.part,
                "questions": c.n_questions,
                "labelled_questions": c.n_labelled_questions,
                "units": c.n_units,
                "labels": dict(c.labels),
            }
            for c in content
        ],
        "detectable": {
            "difference": power.difference,
            "chance": 0.8,
            "level": power.level,
            "units": power.n_units,
            "questions": power.n_questions,
            "basis": power.why,
            "units_for_a_tenth": power.units_for_tenth,
        },
        "looks": [
            attributes(look, "look", "at", "purpose", "runs", "reference", "level") for look in split.looks
        ],
    }
