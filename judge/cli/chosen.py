"""What split, compare and route share: the task and field that a command means, and its table of labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judge.errors import UsageError
from judge.labels.words import HELP

if TYPE_CHECKING:
    from judge.labels.panel import Panel
    from judge.prompts.load import Task
    from judge.store import Store

F = TypeVar("F", bound=Callable[..., Any])


def field_option(function: F) -> F:
    """`--field`, for tasks that ask several questions."""
    return click.option("--field", metavar="FIELD", help="The field, when the task asks for several.")(
        function
    )


def reference_option(function: F) -> F:
    """`--reference`."""
    return click.option(
        "--reference",
        metavar="WHO",
        help=f"What judges are held against: {HELP}. Default: decided, else gold, else majority.",
    )(function)


def field_of(task: Task, name: str | None) -> str:
    """The field asked for, or the task's only one with labels. Raises UsageError."""
    if name is not None:
        if name not in task.fields:
            raise UsageError(f"task {task.name} has no field '{name}'; it has {', '.join(task.fields)}")
        return name
    labelled = [q.field for q in task.spec.questions if q.labels]
    if len(labelled) != 1:
        raise UsageError(
            f"task {task.name} has {len(labelled)} fields with labels; name one with --field: {', '.join(task.fields)}"
        )
    return labelled[0]


def check_files(page: Path | None, *others: Path | None) -> None:
    """Before a look at a sealed test is spent: the page is HTML, and the files can be written. Raises UsageError."""
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"-o {page}: the page is HTML, name it so")
    for path in (page, *others):
        if path is None or (path.exists() and os.access(path, os.W_OK)):
            continue
        folder = path.resolve().parent
        if path.exists() or not folder.is_dir() or not os.access(folder, os.W_OK):
            raise UsageError(f"{path}: cannot be written there; nothing was looked at")


def panel_of(
    store: Store, task: Task, field: str, runs: Sequence[str] = (), distributions: bool = False
) -> Panel:
    """Everybody's labels of the field, judges those of these runs (all when none is named), on a sealed test as well:
    who asks for it masks the test, or logs a look."""
    from judge.labels.study import Scope, read

    return read(store, Scope(field, task.name, runs=tuple(runs)), distributions=distributions, opened=True)
