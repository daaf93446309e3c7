"""A file of a format into the study, and a batch into the files of a format."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from annotate.exchange.base import Bad, Export, Format, ReadOptions
from annotate.exchange.files import Out
from annotate.exchange.intake import take
from annotate.exchange.responses import Response, responses
from annotate.exchange.taken import Intake, Taken
from annotate.exchange.units import ExchangeUnits, absent, shown_by, shown_by_any
from annotate.sitting import exposure
from annotate.sitting.desk import batch_info
from judge.errors import BadInput, UsageError
from judge.files import format_of, stop
from judge.prompts.load import Task
from judge.store import Store
from judge.types import Json, attributes


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
        done = take(
            store, form.read_responses(path, reading), how, complain, batch=batch, task=task, unread=unread
        )
        done.remarks = reading.remarks
        return done


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written; `rows` counts them by file, `repeats` hidden repeats and `adopted` finished units that were left
    out."""

    batch: str
    task: str
    format: str
    path: str
    labels: bool
    units: int
    repeats: int
    rows: dict[str, int]
    adopted: int = 0

    def as_json(self) -> dict[str, Json]:
        """The documented shape."""
        files = [{"file": name, "rows": n} for name, n in self.rows.items()]
        return {
            **attributes(self, "batch", "task", "format", "path", "units"),
            "repeats_left_out": 0 if self.labels else self.repeats,
            "adopted_left_out": self.adopted,
            "files": files,
        }


def export_batch(
    store: Store,
    batch: str,
    form: Format,
    path: Path,
    *,
    labels: bool = False,
    person: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Exported:
    """Write the batch. Raises UsageError for what does not exist, BadInput when there are no labels yet."""
    if form.ending is not None and path.suffix:
        format_of(path, {form.ending: form.name})
    info = batch_info(store, batch)
    units = ExchangeUnits(store, info, person)
    export = Export(batch, info.task, labels, units.each_unit, lambda: iter(()), absent(store, info))
    if form.writes is None:
        form.write(export, Out(path, "file"), options or {})
    if not len(units):
        raise UsageError(f"batch '{batch}' has no units")
    # An empty cell would ask for a second label, which the first one has led.
    adopted = 0 if labels else units.leave_out_adopted()
    if not len(units):
        raise BadInput(
            f"nothing is left to label in batch '{batch}': its people gave these labels before it was drawn"
        )

    def answered() -> Iterator[Response]:
        return (r for r in responses(store, batch) if person in (None, r.annotator))

    if labels and next(answered(), None) is None:
        raise BadInput(f"nobody has answered anything in batch '{batch}' yet")
    with Out(path, form.writes or "file") as out:
        form.write(replace(export, responses=answered), out, options or {})
    if not labels:
        # A file for another tool is a push by hand: whoever labels there sees their units, checks among them.
        with store.transaction() as conn:
            exposure.note_batch(conn, info.task, batch, units.people, "push")
    return Exported(
        batch, info.task.name, form.name, str(path), labels, len(units), units.repeats, out.rows, adopted
    )
