"""Where labels come from, for every command that measures: a field of the study, or any table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from judge.console import db_option, note, together
from judge.errors import UsageError
from judge.labels.words import HELP
from judge.store import Store

if TYPE_CHECKING:
    from judge.labels.panel import Panel

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
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


@dataclass(frozen=True, slots=True)
class LabelSource:
    """What the options of `source_options` say: a TABLE with its columns, or what of the study."""

    table: Path | None
    db: Path
    field: str | None
    task: str | None
    runs: tuple[str, ...]
    batch: str | None
    unit: str | None
    annotator: str | None
    label: str | None
    annotators: str | None
    cluster: Clusters
    judges: tuple[str, ...]
    level: str | None
    order: str | None
    probabilities: str | None = None
    """Table: the column with the judge's probabilities, where a command asks for it."""

    def __str__(self) -> str:
        return str(self.table or self.db)

    def panels(self) -> list[Panel]:
        """The labels asked for, one Panel a field.

        Raises UsageError for options that do not go together, BadInput where there is nothing to compare.
        """
        self.check()
        if self.table is not None:
            return [self.read()]
        from annotate.agreement.one_field import panels_of

        with Store.open(self.db, create=False) as store:
            found, left_out = panels_of(
                store,
                field=self.field,
                task=self.task,
                batch=self.batch,
                runs=self.runs,
                annotators=names(self.annotators),
                level=self.level,
                order=names(self.order),
            )
        for told in left_out:
            note(f"note: left out: {told}")
        return found

    def check(self) -> None:
        """Raises UsageError for options that do not go with where the labels are, and for a table that is no file."""
        table = self.table
        # In a study the question is the cluster already.
        own = {"cluster": self.cluster.column not in (None, "question")}
        wrong = [n for n in (STUDY if table else TABLE) if own.get(n, getattr(self, n))]
        if wrong:
            name = {"runs": "run", "judges": "judge"}.get(wrong[0], wrong[0])
            what = f"a study, not for the table {table}" if table else "a table; name one, as in labels.csv"
            raise UsageError(f"--{name} is for {what}")
        if table is not None and not table.is_file() and not table.is_fifo():
            what = "is a folder, not a table" if table.is_dir() else "does not exist"
            raise UsageError(f"{table}: {what}; name a CSV, TSV, JSON, JSONL or Parquet file")

    def read(self) -> Panel:
        """The table of labels. Raises BadInput with file and line, UsageError."""
        from judge.labels.tables import Layout, read_table

        if self.table is None or self.unit is None:
            raise UsageError(f"{self.table}: --unit names the column with the unit's id")
        people = tuple(names(self.annotators) or ())
        layout = Layout(
            self.unit, self.annotator, self.label, people, self.cluster.column, self.probabilities
        )
        level, order = self.level or "nominal", names(self.order)
        return read_table(self.table, layout, level=level, order=order, judges=self.judges)


def as_one(kind: Callable[..., T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """The options of a command as one object of a dataclass, instead of a keyword each."""

    def wrap(command: Callable[[T], None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            command(kind(**given))

        return called

    return wrap


def source_options(function: F) -> F:
    """TABLE and the options that say which labels; the command gets them as `source`, a LabelSource."""
    own = [f.name for f in fields(LabelSource)]

    @wraps(function)
    def command(**given: Any) -> Any:
        source = LabelSource(**{name: given.pop(name) for name in own if name in given})
        return function(source=source, **given)

    return together(  # type: ignore[return-value]
        click.argument("table", required=False, type=click.Path(path_type=Path)),
        db_option,
        click.option(
            "--field", help="Study: the field, as in stance. Default: all that two annotators have."
        ),
        click.option("--task", help="Study: the fields of this task (stance, stance.v2)."),
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
    )(command)


reference_option = click.option(
    "--reference",
    metavar="NAME",
    help=f"What judges are held against: {HELP}. Default: decided, else gold, else majority.",
)
least_others_option = click.option(
    "--least-others",
    type=click.IntRange(1, 2),
    default=1,
    help="Alt-test: units count that so many others labelled: 1 as its authors' code, 2 as the paper's text suggests.",
)


def names(value: str | None) -> list[str] | None:
    return None if value is None else [name.strip() for name in value.split(",")]
