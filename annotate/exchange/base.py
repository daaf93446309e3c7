"""The interface of an exchange format, and the registry of formats.

A format is a module of this package with

    NAME: str                   the word after --to and --from (the module's name, `-` for `_`)
    HELP: str                   one line for the listing
    OPTIONS: dict[str, str]     the keys of `-O KEY=VALUE` with a description; may be left out

and one or both of

    WRITES = "file" | "folder"
    def write(export: Export, out: Out, options: Mapping[str, str]) -> None
    def read_responses(path: Path, reading: ReadOptions) -> Iterator[Response]

A writer gets the units as a blind annotator sees them and, for finished labels, the responses. It opens files
through `out`, which puts all of them in place or none, and stores the number of rows of each in `out.rows`
(`out.lines` counts them itself). A reader yields what the file contains, and `reading.each` reports an unusable
row with its line. `intake` checks the responses against the study and stores all of them or none.
"""

import dataclasses
import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from annotate.exchange.files import Out
from annotate.exchange.responses import Response
from annotate.exchange.units import ExchangeUnit
from judge import plugins
from judge.errors import BadInput, UsageError
from judge.prompts.load import Task
from judge.types import Where

__all__ = ["Bad", "ExchangeUnit", "Export", "Format", "Out", "ReadOptions", "Response", "get", "names"]

UNIT_KEY = "adjudge_unit_id"
"""The key of our unit id in files that pass through another tool."""
PLACE_KEY = "adjudge_place"
"""The key of the position in a person's queue, in the tasks of a project for one person."""

R = TypeVar("R")
Bad = Callable[[BadInput], None]
"""A function that is called with each unusable row. It raises at once or, if rows may be skipped, records the
row and returns.
"""


@dataclass(frozen=True)
class Export:
    """The content of an export. `units` and `responses` are read anew by each call.

    `labels` is the kind of export: units to annotate elsewhere, or finished labels.
    """

    batch: str
    task: Task
    labels: bool
    units: Callable[[], Iterator[ExchangeUnit]]
    responses: Callable[[], Iterator[Response]]
    absent: frozenset[str] = frozenset()
    """The optional inputs of the task that no unit has."""


@dataclass(frozen=True)
class ReadOptions:
    """The arguments of a reader other than the path.

    `task` is the task of the batch or the requested task; None if neither is known. `inputs` returns the
    inputs of a unit by name, None for an unknown unit. `as_person` and `field` apply to rows without an
    annotator or a question.
    """

    bad: Bad
    task: Task | None = None
    inputs: Callable[[str], Mapping[str, Any] | None] = lambda unit: None
    as_person: str | None = None
    field: str | None = None
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    remarks: Counter[str] = dataclasses.field(default_factory=Counter)
    """Kind of valid record that was skipped -> number of records; reported to the user."""

    def each(
        self, path: Path, rows: Iterable[tuple[int, R]], read_row: Callable[[R, Where], Iterable[Response]]
    ) -> Iterator[Response]:
        """Yield the responses of each (line, row). Unusable rows are reported with their line and left out."""
        for line, row in rows:
            try:
                # All of them before the first is yielded, so that a row is imported as a whole or not at all.
                responses = list(read_row(row, Where(str(path), line)))
            except BadInput as e:
                self.bad(BadInput(e.reason, path=str(path), line=line, field=e.field))
            else:
                yield from responses

    def domain(self, name: str) -> list[str]:
        """Return the labels of a field of the task; empty if the field has none, or there is no task."""
        return self.task.domain(name) if self.task and name in self.task.fields else []


class Format:
    """A format's module, with defaults for optional parts."""

    def __init__(self, module: Any) -> None:
        self.name: str = module.NAME
        self.help: str = getattr(module, "HELP", "")
        self.options: Mapping[str, str] = getattr(module, "OPTIONS", {})
        self.writes: Literal["file", "folder"] | None = getattr(module, "WRITES", None)
        self.ending: str | None = getattr(module, "ENDING", None)
        """The ending of a file in the format, with its dot; None for folders, and if any ending is valid."""
        self.reads: bool = hasattr(module, "read_responses")
        self._module = module

    def write(self, export: Export, out: Out, options: Mapping[str, str]) -> None:
        """Write the files. Raises UsageError if the format can only be read, or an option is unknown."""
        if self.writes is None:
            raise UsageError(f"'{self.name}' can only be imported; --to takes: {', '.join(names('write'))}")
        self._check(options)
        self._module.write(export, out, options)

    def read_responses(self, path: Path, reading: ReadOptions) -> Iterator[Response]:
        """Yield the responses in a file, in order. Raises the errors of `write`, and calls `reading.bad` for
        each unusable row.
        """
        if not self.reads:
            raise UsageError(f"'{self.name}' can only be exported; --from takes: {', '.join(names('read'))}")
        self._check(reading.options)
        responses: Iterator[Response] = self._module.read_responses(path, reading)
        return responses

    def _check(self, options: Mapping[str, str]) -> None:
        for key in options:
            if key not in self.options:
                known = ", ".join(f"{k} ({v})" for k, v in self.options.items()) or "none"
                raise UsageError(f"-O {key}: '{self.name}' has no such option; available: {known}")


def names(direction: Literal["write", "read"] | None = None) -> list[str]:
    """Return every format, or only those that can be written or read."""
    formats = {name: get(name) for name in _modules()}
    # A plugin cannot replace a built-in format of the same name.
    formats |= {name: Format(module) for name, module in plugins.working("exchange") if name not in formats}
    return [
        n for n, f in formats.items() if direction is None or (f.reads if direction == "read" else f.writes)
    ]


def get(name: str) -> Format:
    """Return the format called `name`. If there is none, raises UsageError with a list of the known formats."""
    if name not in _modules():
        module = plugins.find("exchange", name)
        if module is not None:
            return Format(module)
        known = [*_modules(), *plugins.names("exchange")]
        raise UsageError(f"no format '{name}'; available: {', '.join(known)}")
    return Format(importlib.import_module(f"annotate.exchange.formats.{name.replace('-', '_')}"))


def _modules() -> Sequence[str]:
    package = importlib.import_module("annotate.exchange.formats")
    modules = [m.name for m in pkgutil.iter_modules(package.__path__)]
    return sorted(n.replace("_", "-") for n in modules if not n.startswith("_"))
