"""What split, compare and route share: options that name a field and a reference, and files that can be written."""

import functools
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from judge.errors import UsageError
from judge.files import CSV, PAGE, format_of
from judge.labels.words import HELP

F = TypeVar("F", bound=Callable[..., Any])


def whole_runs(function: F) -> F:
    """For a command that reads whole runs and ends: nothing looks for cycles among millions of rows that have none, which
    takes a fifth of its time."""

    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        was = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if was:
                gc.enable()

    return cast("F", quiet)


field_option = click.option(
    "--field", metavar="FIELD", help="Field of the task, if the task has several fields."
)
reference_option = click.option(
    "--reference",
    metavar="WHO",
    help=f"Reference labels: {HELP}. Default: decided, else gold, else majority.",
)


def check_files(page: Path | None, table: Path | None = None) -> None:
    """Check the files to write before a look at a sealed test is spent: a page is HTML, a table is CSV, and the folders can
    be written. Raises UsageError."""
    for path, endings in ((page, PAGE), (table, CSV)):
        if path is None:
            continue
        format_of(path, endings)
        if path.exists() and os.access(path, os.W_OK):
            continue
        folder = path.resolve().parent
        if path.exists() or not folder.is_dir() or not os.access(folder, os.W_OK):
            raise UsageError(f"{path}: cannot be written there; nothing was looked at")
