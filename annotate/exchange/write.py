"""A batch into the files of a format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from annotate.exchange.base import Export, Format
from annotate.exchange.files import Out
from annotate.exchange.responses import Response, responses
from annotate.exchange.units import ExchangeUnits, absent
from annotate.sitting import exposure
from annotate.sitting.desk import batch_info
from judge.errors import BadInput, UsageError
from judge.store import Store
from judge.types import Json, attributes


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written; `rows` counts them by file, `repeats` hidden repeats that were left out."""

    batch: str
    task: str
    format: str
    path: str
    labels: bool
    units: int
    repeats: int
    rows: dict[str, int]

    def as_json(self) -> dict[str, Json]:
        """The documented shape."""
        files = [{"file": name, "rows": n} for name, n in self.rows.items()]
        return {
            **attributes(self, "batch", "task", "format", "path", "units"),
            "repeats_left_out": 0 if self.labels else self.repeats,
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
    info = batch_info(store, batch)
    units = ExchangeUnits(store, info, person)
    export = Export(batch, info.task, labels, units.read, lambda: iter(()), absent(store, info))
    if form.writes is None:
        form.write(export, Out(path, "file"), options or {})
    if not len(units):
        raise UsageError(f"batch '{batch}' has no units")

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
    return Exported(batch, info.task.name, form.name, str(path), labels, len(units), units.repeats, out.rows)
