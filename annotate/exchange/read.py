"""A file of a format into the study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from annotate.exchange.base import Bad, Format, ReadOptions
from annotate.exchange.intake import take
from annotate.exchange.taken import Intake, Taken
from annotate.exchange.units import ExchangeUnits, shown_by, shown_by_any
from annotate.sitting.desk import batch_info
from judge.errors import BadInput
from judge.files import stop
from judge.prompts.load import Task
from judge.store import Store


def import_file(
    store: Store,
    path: Path,
    form: Format,
    how: Intake,
    *,
    batch: str | None = None,
    task: Task | None = None,
    person: str | None = None,
    field: str | None = None,
    options: Mapping[str, str] | None = None,
    bad: Bad | None = None,
) -> Taken:
    """Store what a file says, all or nothing. `bad` gets each row that cannot be used; without it the first raises.

    Raises BadInput with file, line and field; UsageError and StudyError as `take`.
    """
    complain = bad or stop
    info = batch_info(store, batch) if batch else None
    with ExitStack() as stack:
        inputs: Callable[[str], Mapping[str, Any] | None]
        if info:
            inputs = stack.enter_context(ExchangeUnits(store, info).reader())
        elif task:
            inputs = shown_by(store, task)
        else:
            inputs = shown_by_any(store)
        unread: list[BadInput] = []

        def unreadable(error: BadInput) -> None:
            complain(error)
            unread.append(error)

        reading = ReadOptions(unreadable, info.task if info else task, inputs, person, field, options or {})
        done = take(store, form.read(path, reading), how, complain, batch=batch, task=task, unread=unread)
        done.remarks = reading.remarks
        return done
