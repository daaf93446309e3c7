"""The interface of an importer, and how the command line finds one.

An importer is a module of this package with

    NAME: str                 the word after `judge items import`
    HELP: str                 one line for the listing
    def read_rows(paths, options, bad) -> Iterator[Row]

If several files make up one import (claims and corpus), the module has `TOGETHER = True`. Then `read_rows` gets all paths in
one call, and they share one transaction. Otherwise it is called once per file. The optional `SIGNS` are sets of keys that
identify the importer's files by their first row. A file with the keys of a set of `BESIDE` belongs to the importer if it is
imported together with a file that has `SIGNS`.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from judge import plugins
from judge.errors import BadInput, UsageError
from judge.importers.roles import CommonTable
from judge.types import Row

__all__ = ["Bad", "Importer", "Options", "Row", "get", "ignore", "names"]

Bad = Callable[[BadInput], None]
"""Callback for each unusable row. It raises at once or, if bad rows may be skipped, records the error and returns."""


def ignore(error: BadInput) -> None:
    """Ignore a bad row. This is for a pass over a file whose errors are reported by another pass."""


Note = Callable[[str], None]
"""Callback that shows the user one line about the import as a whole. It never changes what is stored."""


def _silent(message: str) -> None:
    """Ignore the message; this is the default."""


@dataclass(frozen=True, slots=True)
class Options:
    """The user's options for an import.

    `maps` maps our field to a dotted path in the user's row, and `label_maps` maps a label field to {old
    value: new value}. Both are stored with the import. `system` is the system for rows that do not name one.
    Cells in the columns `as_text` are never parsed. `scores` maps a column of numbers to the tool that
    assigned them. `taken` is the interpretation of a common table. `note` receives information for the user
    that is not about a bad row (documents without text, a label map without effect).
    """

    dataset: str | None = None
    maps: Mapping[str, str] = field(default_factory=dict)
    label_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    note: Note = field(default=_silent, compare=False, repr=False)
    system: str | None = None
    as_text: frozenset[str] = frozenset()
    scores: Mapping[str, str] = field(default_factory=dict)
    taken: CommonTable | None = None


class Importer(Protocol):
    """The interface of an importer module."""

    NAME: str
    HELP: str

    def read_rows(self, paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
        """Yield rows in file order, and call `bad` for each row that cannot be used."""


def names() -> list[str]:
    """Return the names of all formats: the modules in `judge.importers.formats`, except those with a leading `_`."""
    package = importlib.import_module("judge.importers.formats")
    # The files in the folder are the list, so that a new format needs no registration.
    modules = [m.name for m in pkgutil.iter_modules(package.__path__)]
    return sorted(n.replace("_", "-") for n in modules if not n.startswith("_"))


def get(name: str) -> Importer:
    """Return the importer called `name`. Raises UsageError, which lists the available names, if there is none."""
    # A built-in format has priority over a plugin of the same name.
    if name not in names():
        plugin: Importer | None = plugins.find("importers", name)
        if plugin is not None:
            return plugin
        hint = "if only a file path is given, its format is detected"
        raise UsageError(
            f"no format '{name}'; available: {', '.join([*names(), *plugins.names('importers')])} ({hint})"
        )
    # The name of a format may have a dash (claim-pairs), the name of a module cannot.
    module: Importer = importlib.import_module(f"judge.importers.formats.{name.replace('-', '_')}")
    return module
