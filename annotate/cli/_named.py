"""The study, the batch and the person that a command is about; where one is not named, what there is and what to type."""

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


def in_study(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Give a command -d FILE. It gets `store`, the study opened for human annotators, which closes when it returns."""

    @db_option
    @wraps(command)
    def opened(db: Path, **given: Any) -> int | None:
        with open_study(db) as store:
            return command(store=store, **given)

    return opened


class BatchName(click.Argument):
    """The name of a batch. Raises UsageError with the batches that there are where none is given."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """As click does, with another message."""
        try:
            return super().process_value(ctx, value)
        except click.MissingParameter:
            rows = _batches(ctx)
            listed = ", ".join(f"{row['batch']} ({', '.join(row['annotators'])})" for row in rows)
            # The newest batch, which is the last one, is most likely meant.
            raise UsageError(f"which batch? available: {listed}; as in: {_typed(ctx, rows[-1])}") from None


class Person(click.Option):
    """Who sits down. Raises UsageError with the people of the batch where nobody is named."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """As click does, with another message."""
        try:
            return super().process_value(ctx, value)
        except click.MissingParameter:
            rows, name = _batches(ctx), ctx.params["name"]
            row = next((row for row in rows if row["batch"] == name), None)
            if row is None:
                listed = ", ".join(row["batch"] for row in rows)
                raise UsageError(f"no batch '{name}'; available: {listed}") from None
            people = ", ".join(row["annotators"])
            raise UsageError(
                f"who are you? batch '{row['batch']}' is for {people}; as in: {_typed(ctx, row)}"
            ) from None


def _batches(ctx: click.Context) -> list[dict[str, Any]]:
    from annotate.leading.progress import list_batches

    # The option -d is eager, so it is parsed before the arguments that need the study.
    db = ctx.params["db"]
    with open_study(db) as store:
        rows = list_batches(store)
    if not rows:
        raise UsageError(
            f"which batch? {db} has none yet: {command('annotate batches new NAME TASK -n 30 --annotators A,B')}"
        )
    return rows


def open_command(batch: str, person: str, study: Path) -> str:
    """Return the command with which a person labels a batch, as it can be typed."""
    # `command` splits its first text at spaces, so the names, which come from users, are passed apart.
    return command("annotate open", batch, "--as", person, study=study)


def _typed(ctx: click.Context, row: dict[str, Any]) -> str:
    sits = any(param.name == "person" and param.required for param in ctx.command.params)
    # Who decides where people disagree is one of them only if nobody else is there.
    who = "NAME" if ctx.info_name == "adjudicate" else row["annotators"][0]
    words = ["--as", who] if sits else []
    for param in ctx.command.params:
        if isinstance(param, click.Option) and param.required and param.name != "person":
            words += [param.opts[0], param.metavar or str(param.name).upper()]
    return command(" ".join(["annotate", *ctx.command_path.split()[1:]]), row["batch"], *words)
