"""Import labels from a file in any format, and export a batch to files in a format."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from annotate.exchange.base import Bad, Export, Format, Inputs, ReadOptions
from annotate.exchange.files import Out
from annotate.exchange.gate import import_rows
from annotate.exchange.responses import Response, responses
from annotate.exchange.result import ImportOptions, ImportResult
from annotate.exchange.units import ExchangeUnits, absent, inputs_of_any_task, inputs_of_task
from annotate.sitting import exposure
from annotate.sitting.desk import batch_info
from judge.errors import BadInput, UsageError
from judge.files import format_of
from judge.prompts.load import Task
from judge.store import Store
from judge.store.row_counts import RowOutcome
from judge.types import Json, attributes


def import_file(
    store: Store,
    path: Path,
    form: Format,
    how: ImportOptions,
    *,
    batch: str | None,
    task: Task | None,
    person: str | None,
    field: str | None,
    options: Mapping[str, str],
    bad: Bad,
) -> ImportResult:
    """Store either all labels in a file or none.

    `bad` is called with the error for each unusable row. It either raises the error or records the row.

    Raises BadInput, which names the file, line and field. Raises UsageError and StudyError under the same
    conditions as `import_rows`.
    """
    info = batch_info(store, batch) if batch else None
    with ExitStack() as stack:
        inputs: Inputs
        if info:
            inputs = stack.enter_context(ExchangeUnits(store, info).reader())
        elif task:
            inputs = inputs_of_task(store, task)
        else:
            inputs = inputs_of_any_task(store)
        unread: list[BadInput] = []

        def unreadable(error: BadInput) -> None:
            # This comes first, because it raises without --skip-bad, and then no record is quarantined.
            bad(error)
            unread.append(error)

        reading = ReadOptions(unreadable, info.task if info else task, inputs, person, field, options)
        done = import_rows(
            store,
            form.read_responses(path, reading),
            how,
            bad,
            inputs=inputs,
            batch=batch,
            task=task,
            unread=unread,
        )
        for reason, rows in reading.remarks.items():
            done.count(RowOutcome.LEFT_OUT, reason, rows)
        return done


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export.

    `rows` counts the rows of each file. `repeats` counts the hidden repeats that were left out. `adopted`
    counts the units that were left out because they were labelled before the draw.
    """

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
        """Return the result as the documented JSON object."""
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
    labels: bool,
    person: str | None,
    options: Mapping[str, str],
) -> Exported:
    """Write the batch to files. Raises UsageError for an unknown batch or person, and BadInput if there is
    nothing to export.
    """
    if form.ending is not None and path.suffix:
        format_of(path, {form.ending: form.name})
    info = batch_info(store, batch)
    units = ExchangeUnits(store, info, person)
    export = Export(batch, info.task, labels, units.iterate_units, lambda: iter(()), absent(store, info))
    # `write` raises the error for a format that only reads, before the units are read.
    if form.writes is None:
        form.write(export, Out(path, "file"), options)
    if not len(units):
        raise UsageError(f"batch '{batch}' has no units")
    # A unit that was labelled before the draw would be labelled a second time, by somebody who knows the first label.
    adopted = 0 if labels else units.leave_out_adopted()
    if not len(units):
        raise BadInput(
            f"nothing is left to label in batch '{batch}': its annotators had labelled all of its units before the draw"
        )

    def answered() -> Iterator[Response]:
        return (r for r in responses(store, batch) if person in (None, r.annotator))

    if labels and next(answered(), None) is None:
        raise BadInput(f"batch '{batch}' has no answers yet")
    with Out(path, form.writes or "file") as out:
        # An export of units is for annotators: no format may see the labels, not even a plugin's.
        form.write(replace(export, responses=answered) if labels else export, out, options)
    if not labels:
        # Whoever labels the file sees its units, so it counts as an exposure like a push to a server.
        with store.transaction() as conn:
            exposure.note_batch(conn, info.task, batch, units.people, "push")
    return Exported(
        batch, info.task.name, form.name, str(path), labels, len(units), units.repeats, out.rows, adopted
    )
