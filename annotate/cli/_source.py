"""The source of the labels for every command that measures agreement: fields of the study, or any table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from judge.console import combine_options, db_option, note, note_encodings
from judge.errors import UsageError
from judge.store import Store
from judge.types import attributes

if TYPE_CHECKING:
    from judge.labels.panel import Panel

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
LEVELS = ("nominal", "ordinal", "interval", "ratio")
STUDY = ("field", "task", "batch")


class Scale(NamedTuple):
    """The value of --level: the level of measurement, and the labels in order. None means that the task
    determines them.
    """

    level: str | None = None
    order: Sequence[str] | None = None


def _scale(context: click.Context, option: click.Parameter, text: str | None) -> Scale:
    level, colon, labels = (text or "").partition(":")
    if text is not None and level not in LEVELS:
        raise UsageError(f"--level {text}: must be one of {', '.join(LEVELS)}, e.g. ordinal:low,mid,high")
    return Scale(level or None, names(labels) if colon else None)


@dataclass(frozen=True, slots=True)
class LabelSource:
    """The values of the options that `source_options` adds: a TABLE, or a selection of labels from the study."""

    table: Path | None
    db: Path
    field: str | None
    task: str | None
    judges: tuple[str, ...]
    batch: str | None
    annotators: str | None
    cluster: str | None
    level: Scale

    def __str__(self) -> str:
        return str(self.table or self.db)

    def panels(self) -> list[Panel]:
        """Return the selected labels as one panel for each field.

        Raises UsageError for options that cannot be combined, and BadInput if there is nothing to compare.
        """
        self.check()
        if self.table is not None:
            return [self.read_panel()]
        from annotate.agreement.one_field import panels_of

        # The study stays open until the command ends, because panels read the ids of units when they need them.
        store = click.get_current_context().with_resource(Store.open(self.db, create=False))
        panels, left_out = panels_of(
            store,
            **attributes(self, *STUDY),
            runs=self.judges,
            annotators=names(self.annotators),
            **self.level._asdict(),
        )
        for reason in left_out:
            note(f"note: left out: {reason}")
        return panels

    def check(self) -> None:
        """Raise UsageError if an option does not apply to the source of the labels, or if the table is not a file."""
        table = self.table
        wrong = [name for name in (STUDY if table else ("cluster",)) if getattr(self, name)]
        if wrong:
            problem = (
                f"a study, not for the table {table}" if table else "a table; specify one, e.g. labels.csv"
            )
            raise UsageError(f"--{wrong[0]} is for {problem}")
        # A shell passes the output of another program as a pipe: annotate agreement <(...).
        if table is not None and not table.is_file() and not table.is_fifo():
            problem = "is a folder, not a table" if table.is_dir() else "does not exist"
            raise UsageError(f"{table}: {problem}; specify a CSV, TSV, JSON, JSONL or Parquet file")

    def read_panel(self, *, probabilities: bool = False) -> Panel:
        """Read the table of labels, including the judge's probabilities if they are requested and present.

        Raises BadInput with the file and line for invalid rows, and UsageError if no table was given.
        """
        from judge.labels.columns import as_read, layout_of
        from judge.labels.tables import read_table

        if self.table is None:
            raise UsageError("specify the path of a table with labels")
        level, order = self.level.level or "nominal", self.level.order
        # Probabilities are of labels; numbers have none.
        judges = self.judges if probabilities and level in ("nominal", "ordinal") else None
        # A judge that is named is used, also if only the people were listed.
        listed = names(self.annotators) or ()
        listed = list(dict.fromkeys([*listed, *self.judges])) if listed else listed
        layout = layout_of(self.table, listed, self.cluster, judges)
        # The columns are recognised by their names, so the user must see how they were read.
        if layout_note := as_read(layout):
            note(f"note: {self.table} is {layout_note}")
        note_encodings([self.table])
        return read_table(self.table, layout, level=level, order=order, judges=self.judges)


def as_one(kind: Callable[..., T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Pass the options to a command as a single dataclass instance."""

    def wrap(command: Callable[[T], None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            command(kind(**given))

        return called

    return wrap


def source_options(function: F) -> F:
    """Add TABLE and the options that select labels to a command. The command receives them as `source`, a
    LabelSource.
    """
    option_names = [f.name for f in fields(LabelSource)]

    @wraps(function)
    def command(**given: Any) -> Any:
        source = LabelSource(**{name: given.pop(name) for name in option_names if name in given})
        return function(source=source, **given)

    return combine_options(  # type: ignore[return-value]
        click.argument("table", required=False, type=click.Path(path_type=Path)),
        db_option,
        click.option("--field", metavar="FIELD", help="Use only this field of the study (default: all)."),
        click.option(
            "--task",
            metavar="TASK",
            help="Use only the fields of this task or, with NAME.vN, the labels given under this version.",
        ),
        click.option("--batch", metavar="BATCH", help="Use only the labels of this batch."),
        click.option(
            "--judge",
            "judges",
            multiple=True,
            metavar="NAME",
            help="Judge to evaluate: a run, or an annotator in the table.",
        ),
        click.option(
            "--annotators", metavar="A,B,...", help="Use only these annotators, or these columns of a table."
        ),
        click.option(
            "--cluster", metavar="COLUMN|none", help="Column of the table that contains the question id."
        ),
        click.option(
            "--level",
            metavar="LEVEL[:A,B]",
            callback=_scale,
            help="Scale of the labels, e.g. ordinal:low,mid,high.",
        ),
    )(command)


reference_option = click.option(
    "--reference",
    metavar="NAME",
    help="Reference labels: gold, decided, majority, or an annotator.",
)


def names(value: str | None) -> list[str] | None:
    return None if value is None else [name.strip() for name in value.split(",")]
