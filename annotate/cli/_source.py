"""Where labels come from, for every command that measures: a field of the study, or any table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from judge.console import db_option, note
from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.labels.panel import Panel

F = TypeVar("F", bound=Callable[..., Any])
LEVELS = ("nominal", "ordinal", "interval", "ratio")
STUDY = ("field", "task", "runs", "batch")
NO_CLUSTER = "none"
TABLE = ("unit", "annotator", "label", "cluster", "judges", "probabilities")


class Clusters(NamedTuple):
    """What --cluster says: the column with the question, and whether the alt-test heeds it."""

    column: str | None
    in_alt_test: bool


def _clusters(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> Clusters:
    columns = [name for name in given if name != NO_CLUSTER]
    if len(columns) > 1:
        raise UsageError(f"--cluster {' --cluster '.join(columns)}: one column names the question")
    return Clusters(columns[0] if columns else None, NO_CLUSTER not in given)


def source_options(function: F) -> F:
    """TABLE and the options that say which labels; `panels` reads them."""
    options = [
        click.argument("table", required=False, type=click.Path(path_type=Path)),
        db_option,
        click.option(
            "--field", help="Study: the field, as in stance. Default: all that two annotators have."
        ),
        click.option("--task", help="Study: the fields of this task (stance, stance.v1)."),
        click.option(
            "--run", "runs", multiple=True, help="Study: this judge run (id, end of it, last); repeatable."
        ),
        click.option("--batch", help="Study: only the units and people of this annotation batch."),
        click.option("--unit", help="Table: the column with the unit's id."),
        click.option("--annotator", help="Long table: the column that names the annotator."),
        click.option("--label", help="Long table: the column with the label."),
        click.option(
            "--annotators",
            metavar="A,B,...",
            help="Wide table: the columns with labels, one an annotator. Study: only these annotators.",
        ),
        click.option(
            "--cluster",
            multiple=True,
            metavar="COLUMN|none",
            callback=_clusters,
            help="Table: the column with the question, which intervals resample. none (beside it, or in a study): the "
            "alt-test alone takes units as independent, as its authors' code does.",
        ),
        click.option(
            "--judge", "judges", multiple=True, help="Table: this annotator is a judge; repeatable."
        ),
        click.option("--level", type=click.Choice(LEVELS), help="Default: the task's, or nominal."),
        click.option(
            "--order", metavar="LOW,...,HIGH", help="The labels, in order; declares also unused ones."
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def least_others_option(function: F) -> F:
    """--least-others, of the alt-test."""
    return click.option(
        "--least-others",
        type=click.IntRange(1, 2),
        default=1,
        show_default=True,
        help="Alt-test: units count that so many others labelled: 1 as its authors' code, 2 as the paper's text suggests.",
    )(function)


def panels(given: Mapping[str, Any]) -> list[Panel]:
    """The labels that the options of `source_options` ask for, one Panel a field.

    Raises UsageError for options that do not go together, BadInput where there is nothing to compare.
    """
    check_source(given)
    if given["table"] is not None:
        return [read_given(given)]
    from annotate.agreement.one_field import panels_of
    from judge.store import Store

    annotators, order = names(given["annotators"]), names(given["order"])
    with Store.open(given["db"], create=False) as store:
        found, left_out = panels_of(
            store,
            field=given["field"],
            task=given["task"],
            batch=given["batch"],
            runs=given["runs"],
            annotators=annotators,
            level=given["level"],
            order=order,
        )
    for told in left_out:
        note(f"note: left out: {told}")
    return found


def check_source(given: Mapping[str, Any]) -> None:
    """Raises UsageError for options that do not go with where the labels are, and for a table that is no file."""
    table: Path | None = given["table"]
    # In a study the question is the cluster already.
    asked = {**given, "cluster": given["cluster"].column not in (None, "question")}
    wrong = [name for name in (STUDY if table else TABLE) if asked.get(name)]
    if wrong:
        name = {"runs": "run", "judges": "judge"}.get(wrong[0], wrong[0])
        what = f"a study, not for the table {table}" if table else "a table; name one, as in labels.csv"
        raise UsageError(f"--{name} is for {what}")
    if table is not None and not table.is_file() and not table.is_fifo():
        what = "is a folder, not a table" if table.is_dir() else "does not exist"
        raise UsageError(f"{table}: {what}; name a CSV, TSV, JSON, JSONL or Parquet file")


def read_given(given: Mapping[str, Any]) -> Panel:
    """The table of labels that the options describe. Raises BadInput with file and line, UsageError."""
    from judge.labels.tables import Layout, read_table

    if given["unit"] is None:
        raise UsageError(f"{given['table']}: --unit names the column with the unit's id")
    layout = Layout(
        given["unit"],
        given["annotator"],
        given["label"],
        tuple(names(given["annotators"]) or ()),
        given["cluster"].column,
        given.get("probabilities"),
    )
    level, order = given["level"] or "nominal", names(given["order"])
    return read_table(given["table"], layout, level=level, order=order, judges=given["judges"])


def names(value: str | None) -> list[str] | None:
    return None if value is None else [name.strip() for name in value.split(",")]
