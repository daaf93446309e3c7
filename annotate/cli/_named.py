"""The study, batch and person that a command requires. If one of them is missing, the error lists the available
names and an example command.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from annotate.store import open_study
from judge.commands import command
from judge.console import db_option
from judge.errors import UsageError


def with_study(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add the option -d FILE to a command. The command receives `store`, the open study, which is closed when
    the command ends.
    """

    @db_option
    @wraps(command)
    def opened(db: Path, **given: Any) -> int | None:
        with open_study(db) as store:
            return command(store=store, **given)

    return opened


class BatchName(click.Argument):
    """The name of a batch. If it is missing, a UsageError lists the batches in the study."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Process the value as click does, but with a different error message."""
        if not self.value_is_missing(value):
            return super().process_value(ctx, value)
        rows = _batches(ctx)
        listed = ", ".join(f"{row['batch']} ({', '.join(row['annotators'])})" for row in rows)
        # The example names the newest batch, which is most likely to be the one that the user needs.
        raise UsageError(
            f"specify a batch; available: {listed}; for example: {_format_command(ctx, rows[-1])}"
        )


class Person(click.Option):
    """The name of the annotator. If it is missing, a UsageError lists the annotators of the batch."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Process the value as click does, but with a different error message."""
        if not self.value_is_missing(value):
            return super().process_value(ctx, value)
        rows, name = _batches(ctx), ctx.params["name"]
        row = next((row for row in rows if row["batch"] == name), None)
        if row is None:
            listed = ", ".join(row["batch"] for row in rows)
            raise UsageError(f"no batch '{name}'; available: {listed}")
        people = ", ".join(row["annotators"])
        raise UsageError(
            f"specify your name with --as: batch '{row['batch']}' is for {people}; for example: {_format_command(ctx, row)}"
        )


def _batches(ctx: click.Context) -> list[dict[str, Any]]:
    from annotate.leading.progress import list_batches

    # The option -d is eager, so it is parsed before the arguments that need the study.
    db = ctx.params["db"]
    with open_study(db) as store:
        rows = list_batches(store)
    if not rows:
        raise UsageError(
            f"{db} has no batch yet; to draw one: {command('annotate batches new NAME TASK -n 30 --annotators A,B')}"
        )
    return rows


def open_command(batch: str, person: str, study: Path) -> str:
    """Return the command that a person types to label a batch."""
    # `command` splits its first text at spaces, so the names, which come from users, are passed apart.
    return command("annotate open", batch, "--as", person, study=study)


def _format_command(ctx: click.Context, row: dict[str, Any]) -> str:
    sits = any(param.name == "person" and param.required for param in ctx.command.params)
    # A lead is one of the annotators only if there is nobody else.
    who = "NAME" if ctx.info_name == "adjudicate" else row["annotators"][0]
    words = ["--as", who] if sits else []
    for param in ctx.command.params:
        if isinstance(param, click.Option) and param.required and param.name != "person":
            words += [param.opts[0], param.metavar or str(param.name).upper()]
    return command(" ".join(["annotate", *ctx.command_path.split()[1:]]), row["batch"], *words)
