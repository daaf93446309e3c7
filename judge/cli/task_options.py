"""Options of commands that use a task: the field and the reference labels.

This module also checks output files.
"""

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
    """Disable the garbage collector for a command that reads whole runs and then ends."""

    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        # Millions of rows of labels form no cycles, and searching for cycles took a fifth of the command's
        # time.
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
    help=f"Reference labels: {HELP}. Default: decided, otherwise gold, otherwise majority.",
)


def check_files(page: Path | None, table: Path | None = None) -> None:
    """Check the extensions of the page (HTML) and the table (CSV), and that both files can be written.

    Raises UsageError if a check fails.
    """
    # Called before anything is computed. Otherwise a look at a sealed test could be used up without any
    # result.
    for path, endings in ((page, PAGE), (table, CSV)):
        if path is None:
            continue
        format_of(path, endings)
        # An existing file is overwritten in place, so its folder need not be writable.
        if path.exists() and os.access(path, os.W_OK):
            continue
        folder = path.resolve().parent
        if path.exists() or not folder.is_dir() or not os.access(folder, os.W_OK):
            raise UsageError(f"{path}: cannot write to this location; nothing was computed")
