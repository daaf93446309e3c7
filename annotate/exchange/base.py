"""The interface of an exchange format, and the registry of formats.

A format is a module of this package with

    NAME: str                   the word after --to and --from: the module's name, with `-` for `_`
    HELP: str                   one line for the listing
    OPTIONS: dict[str, str]     the keys of `-O KEY=VALUE` with a description; optional

and one or both of

    WRITES = "file" | "folder"
    def write(export: Export, out: Out, options: Mapping[str, str]) -> None
    def read_responses(path: Path, reading: ReadOptions) -> Iterator[Response]

A writer receives the units as a blind annotator sees them and, if finished labels are exported, the
responses. It opens its files through `out`, which moves either all files into place or none. It stores the
number of rows of each file in `out.rows`, which `out.lines` does automatically. A reader yields the responses
in the file, and `reading.read_each` reports each unusable row with its line number. `intake` checks the responses
against the study and stores either all of them or none.
"""

import dataclasses
import importlib
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
"""The key of the unit's id in files for other tools."""
PLACE_KEY = "adjudge_place"
"""The key of the unit's position in the annotator's queue, in the tasks of a project for one annotator."""

R = TypeVar("R")
Bad = Callable[[BadInput], None]
"""A function that is called with the error for each unusable row. It either raises the error or, if rows may
be skipped, records the row and returns.
"""
Inputs = Callable[[str], Mapping[str, Any] | None]
"""A function that returns the inputs of a unit by name, or None for an unknown unit."""


@dataclass(frozen=True)
class Export:
    """The content of an export. Each call to `units` or `responses` reads the study again.

    `labels` is true for an export of finished labels, and false for an export of units to annotate elsewhere.
    """

    batch: str
    task: Task
    labels: bool
    units: Callable[[], Iterator[ExchangeUnit]]
    responses: Callable[[], Iterator[Response]]
    absent: frozenset[str] = frozenset()
    """The task's optional inputs that are empty in every unit."""


@dataclass(frozen=True)
class ReadOptions:
    """The arguments of a format's reader, except the path.

    `task` is the task of the batch or the requested task, or None if neither is known. `inputs` returns the
    inputs of a unit by name, or None for an unknown unit. `as_person` is the annotator of rows that name no
    annotator, and `field` is the question of rows that name no question.
    """

    bad: Bad
    task: Task | None = None
    inputs: Inputs = lambda unit: None
    as_person: str | None = None
    field: str | None = None
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    remarks: Counter[str] = dataclasses.field(default_factory=Counter)
    """The number of valid records that were skipped, by kind of record. The numbers are reported to the user."""

    def read_each(
        self, path: Path, rows: Iterable[tuple[int, R]], read_row: Callable[[R, Where], Iterable[Response]]
    ) -> Iterator[Response]:
        """Yield the response in each of `rows`, an iterable of (line number, row). An unusable row is reported
        with its line number and skipped.
        """
        for line, row in rows:
            try:
                # The row's responses are collected before the first is yielded, so that a row is imported
                # either as a whole or not at all.
                responses = list(read_row(row, Where(str(path), line)))
            except BadInput as e:
                self.bad(BadInput(e.reason, path=str(path), line=line, field=e.field))
            else:
                yield from responses

    def inputs_in(self, row: Any, unit: Any) -> dict[str, Any]:
        """Return the texts in a record that are named after inputs of the task, or after inputs of the unit in any
        task. Empty texts are left out, because somebody may have emptied a column. So are ids of the unit or of its
        parts, because a column `passage` may have the passage's id.
        """
        names = self.task.input_names if self.task else self.inputs(str(unit or "")) or ()
        given = row if isinstance(row, Mapping) else {}
        parts = re.split("[:/]", str(unit or ""))
        no_texts = {"", None, *("/".join(parts[n:]) for n in range(len(parts))), *parts, unit}
        return {name: given[name] for name in names if _is_given(given.get(name), no_texts)}

    def domain(self, name: str) -> list[str]:
        """Return the labels that a field allows. The result is empty if the field has no fixed labels, or if
        there is no task.
        """
        return self.task.domain(name) if self.task and name in self.task.fields else []


def _is_given(value: Any, no_texts: Collection[Any]) -> bool:
    return value not in no_texts if isinstance(value, str | None) else True


class Format:
    """A format's module, with defaults for optional parts."""

    def __init__(self, module: Any) -> None:
        self.name: str = module.NAME
        self.help: str = getattr(module, "HELP", "")
        self.options: Mapping[str, str] = getattr(module, "OPTIONS", {})
        self.writes: Literal["file", "folder"] | None = getattr(module, "WRITES", None)
        self.ending: str | None = getattr(module, "ENDING", None)
        """The file extension of the format with its dot, or None if the format is a folder or allows any
        extension.
        """
        self.reads: bool = hasattr(module, "read_responses")
        self._module = module

    def write(self, export: Export, out: Out, options: Mapping[str, str]) -> None:
        """Write the files. Raises UsageError if the format can only be read, or an option is unknown."""
        if self.writes is None:
            raise UsageError(f"'{self.name}' can only be imported; --to accepts: {', '.join(names('write'))}")
        self._check(options)
        self._module.write(export, out, options)

    def read_responses(self, path: Path, reading: ReadOptions) -> Iterator[Response]:
        """Yield the responses in a file, in order. Raises UsageError if the format can only be written, or an
        option is unknown. Calls `reading.bad` for each unusable row.
        """
        if not self.reads:
            raise UsageError(
                f"'{self.name}' can only be exported; --from accepts: {', '.join(names('read'))}"
            )
        self._check(reading.options)
        responses: Iterator[Response] = self._module.read_responses(path, reading)
        return responses

    def _check(self, options: Mapping[str, str]) -> None:
        for key in options:
            if key not in self.options:
                known = ", ".join(f"{k} ({v})" for k, v in self.options.items()) or "none"
                raise UsageError(f"-O {key}: '{self.name}' has no such option; available: {known}")


def names(direction: Literal["write", "read"] | None = None) -> list[str]:
    """Return every format, or only the formats that can be written (`write`) or read (`read`)."""
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
        raise UsageError(f"unknown format '{name}'; available: {', '.join(known)}")
    return Format(importlib.import_module(f"annotate.exchange.formats.{name.replace('-', '_')}"))


def _modules() -> Sequence[str]:
    package = importlib.import_module("annotate.exchange.formats")
    modules = [m.name for m in pkgutil.iter_modules(package.__path__)]
    return sorted(n.replace("_", "-") for n in modules if not n.startswith("_"))
