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
"""Callback for each unusable row: raises at once, or records the error and returns when bad rows may be skipped."""


def ignore(error: BadInput) -> None:
    """Ignore a bad row, in a pass over a file whose errors another pass reports."""


Note = Callable[[str], None]
"""Callback for one line about the import as a whole, for the user; it never changes what is stored."""


def _silent(message: str) -> None:
    """Ignore the message; this is the default."""


@dataclass(frozen=True, slots=True)
class Options:
    """The user's options of an import.

    `maps` goes from our field to a dotted path in the user's row; `label_maps` goes from a label
    field to {old value: new value}. Both are stored with the import. `system` names the answers of rows that name no
    system. Cells of the columns `as_text` are never parsed; `scores` goes from a column of numbers to
    the tool that gave them; `taken` is the interpretation of a common table. `note` receives what the
    user should know although no row is bad (documents without text, a label map without effect).
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
        """Yield rows in file order; call `bad` for a row that cannot be used."""


def names() -> list[str]:
    """Return every format: the modules of `judge.importers.formats`, except those with a leading `_`."""
    package = importlib.import_module("judge.importers.formats")
    # The files in the folder are the list, so that a new format needs no registration.
    modules = [m.name for m in pkgutil.iter_modules(package.__path__)]
    return sorted(n.replace("_", "-") for n in modules if not n.startswith("_"))


def get(name: str) -> Importer:
    """Return the importer called `name`. Raises UsageError that lists the existing ones."""
    # A built-in format has priority over a plugin of the same name.
    if name not in names():
        plugin: Importer | None = plugins.find("importers", name)
        if plugin is not None:
            return plugin
        hint = "with the path of a file alone the format is found from it"
        raise UsageError(
            f"no format '{name}'; available: {', '.join([*names(), *plugins.names('importers')])} ({hint})"
        )
    # The name of a format may have a dash (claim-pairs), the name of a module cannot.
    module: Importer = importlib.import_module(f"judge.importers.formats.{name.replace('-', '_')}")
    return module
